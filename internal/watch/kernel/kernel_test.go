package kernel

import (
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestParseStat(t *testing.T) {
	const text = "812 (my (odd) name) S 1 800 799 0 -1 4194560 100 200 0 0 150 50 7 3 20 0 4 0 123456 1000000 25 18446744073709551615 1 1 0\n"
	got, err := ParseStat([]byte(text))
	want := Stat{
		PID: 812, Parent: 1, Group: 800, Session: 799, State: 'S', CPU: 2 * time.Second, ChildCPU: 100 * time.Millisecond,
		Threads: 4, Start: 123456, RSS: uint64(25 * os.Getpagesize()), Comm: "my (odd) name",
	}
	if err != nil || got != want {
		t.Errorf("%+v, %v\nwant %+v", got, err, want)
	}
	for _, bad := range []string{"", "1", "1 (a", "(a) S", "1 (a)", "1 (a) S 1 2", "1 (a) S x 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22"} {
		if s, err := ParseStat([]byte(bad)); err == nil {
			t.Errorf("%q: %+v", bad, s)
		}
	}
}

func FuzzParseStat(f *testing.F) {
	f.Add([]byte("812 (a) S 1 800 799 0 -1 4194560 100 200 0 0 150 50 7 3 20 0 4 0 123456 1000000 25 1\n"))
	f.Add([]byte("1 () R"))
	f.Fuzz(func(t *testing.T, b []byte) {
		s, err := ParseStat(b)
		if err == nil && !strings.Contains(string(b), "("+s.Comm+")") {
			t.Errorf("%q gives %+v", b, s)
		}
	})
}

func TestSelf(t *testing.T) {
	s, err := ReadStat(os.Getpid())
	if err != nil || s.PID != os.Getpid() || s.Parent != os.Getppid() || !s.Alive() || s.RSS == 0 || s.Start == 0 {
		t.Errorf("%+v, %v", s, err)
	}
	words, err := Cmdline(os.Getpid())
	if err != nil || !slices.Equal(words, os.Args) {
		t.Errorf("%q, %v", words, err)
	}
	pids, err := PIDs(nil)
	if err != nil || !slices.Contains(pids, os.Getpid()) {
		t.Errorf("%v, %v", pids, err)
	}
	tids, err := Threads(os.Getpid(), nil)
	if err != nil || !slices.Contains(tids, os.Getpid()) {
		t.Errorf("%v, %v", tids, err)
	}
	if id, err := BootID(); err != nil || len(id) != 36 {
		t.Errorf("%q, %v", id, err)
	}
	// A group whose leader's number was used again has no members by session.
	if m, err := (Group{Leader: s.PID, Start: s.Start + 1}).Members(); err != nil || len(m) != 0 {
		t.Errorf("members of a group that is gone: %v, %v", m, err)
	}
	if m, err := (Group{Leader: s.PID, Start: s.Start}).Members(); err != nil || !slices.Contains(m, s.PID) {
		t.Errorf("members: %v, %v", m, err)
	}
}

// What the kernel answers about sockets of this process.
func TestListeners(t *testing.T) {
	tcp, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer tcp.Close()
	path := filepath.Join(t.TempDir(), "s")
	unix, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close()
	inodes, err := SocketInodes(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	d, err := OpenDiag()
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	// Twice: answers to the first question must not end the second.
	for range 2 {
		list, err := d.TCP(nil)
		if err != nil {
			t.Fatal(err)
		}
		want := netip.MustParseAddrPort(tcp.Addr().String())
		i := slices.IndexFunc(list, func(l Listener) bool { return l.Addr == want })
		if i < 0 || !slices.Contains(inodes, list[i].Inode) || list[i].Backlog == 0 {
			t.Errorf("%v is not among %+v with an inode of %v", want, list, inodes)
		}
		list, err = d.Unix(nil)
		if err != nil {
			t.Fatal(err)
		}
		i = slices.IndexFunc(list, func(l Listener) bool { return l.Path == path })
		if i < 0 || !slices.Contains(inodes, list[i].Inode) || list[i].Backlog == 0 {
			t.Errorf("%s is not among %+v", path, list)
		}
	}
}

func TestHolder(t *testing.T) {
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	list, err := ListenersTCP()
	if err != nil {
		t.Fatal(err)
	}
	at := netip.MustParseAddrPort(l.Addr().String())
	i := slices.IndexFunc(list, func(l Listener) bool { return l.Addr == at })
	if i < 0 {
		t.Fatalf("%v is not among %+v", at, list)
	}
	for _, test := range []struct {
		name   string
		inodes []uint64
		want   int
	}{
		{"nothing asked", nil, 0},
		{"nobody's", []uint64{0}, 0},
		{"ours beside nobody's", []uint64{0, list[i].Inode}, os.Getpid()},
	} {
		if pid, err := Holder(test.inodes); pid != test.want || err != nil {
			t.Errorf("%s: pid %d, %v, want %d", test.name, pid, err, test.want)
		}
	}
}

func FuzzDiagAnswers(f *testing.F) {
	f.Add(make([]byte, inetDiagMsgLength+44))
	f.Add([]byte{1, 2, 3})
	f.Fuzz(func(t *testing.T, b []byte) {
		if l, ok := parseInet(b); ok && !l.Addr.Addr().IsValid() {
			t.Errorf("%v: no address", b)
		}
		if l, ok := parseUnix(b); ok && l.Path == "" {
			t.Errorf("%v: no path", b)
		}
	})
}

func TestUnescapeMount(t *testing.T) {
	if got := unescapeMount(`/a\040b\134c`); got != `/a b\c` {
		t.Errorf("%q", got)
	}
}
