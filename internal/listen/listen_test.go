package listen

import (
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestInheritedSockets(t *testing.T) {
	for _, test := range []struct {
		name  string
		env   []string
		want  []inherited
		wrong string
	}{
		{"nothing", []string{"A=b"}, nil, ""},
		{"Server::Starter", []string{"SERVER_STARTER_PORT=127.0.0.1:8080=3;8081=4;/a=b.sock=5", "SERVER_STARTER_GENERATION=2"},
			[]inherited{{3, "127.0.0.1:8080", ServerStarter}, {4, "8081", ServerStarter}, {5, "/a=b.sock", ServerStarter}}, ""},
		{"without a descriptor", []string{"SERVER_STARTER_PORT=8080"}, nil, "is not ADDRESS=FD"},
		{"no number", []string{"SERVER_STARTER_PORT=8080=x"}, nil, "is not a descriptor"},
		{"systemd", []string{"LISTEN_FDS=2", "LISTEN_PID=77", "LISTEN_FDNAMES=web"}, []inherited{{3, "web", Systemd}, {4, "", Systemd}}, ""},
		{"for another process", []string{"LISTEN_FDS=2", "LISTEN_PID=78"}, nil, ""},
		{"no count", []string{"LISTEN_FDS=x", "LISTEN_PID=77"}, nil, "not a number of descriptors"},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, err := inheritedSockets(test.env, 77)
			if d := cmp.Diff(test.want, got, cmp.AllowUnexported(inherited{})); d != "" {
				t.Error(d)
			}
			if (test.wrong == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), test.wrong) {
				t.Errorf("%v, want %q", err, test.wrong)
			}
			if rest := HandedOn(append(test.env, "KEPT=1")); rest[len(rest)-1] != "KEPT=1" || strings.Contains(strings.Join(rest, " "), "LISTEN") || strings.Contains(strings.Join(rest, " "), "STARTER") {
				t.Errorf("the workers get %q", rest)
			}
		})
	}
}

func TestAddressInUse(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	address := l.Addr().String()
	_, err = bind(address, 1)
	if want := fmt.Sprintf("listen %s: address in use by pid %d (", address, os.Getpid()); err == nil || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("%v, want %s", err, want)
	}
}

func TestBlocks(t *testing.T) {
	for _, test := range []struct {
		held, wanted string
		want         bool
	}{
		{"127.0.0.1:80", "127.0.0.1:80", true},
		{"127.0.0.1:80", "127.0.0.1:81", false},
		{"127.0.0.1:80", "127.0.0.2:80", false},
		{"127.0.0.1:80", "[::ffff:127.0.0.1]:80", true},
		{"0.0.0.0:80", "127.0.0.1:80", true},
		{"127.0.0.1:80", "0.0.0.0:80", true},
		{"[::]:80", "127.0.0.1:80", true},
		{"[fe80::1]:80", "[fe80::1%lo]:80", true},
		{"127.0.0.1:80", "", false},
	} {
		wanted, _ := netip.ParseAddrPort(test.wanted)
		if got := blocks(netip.MustParseAddrPort(test.held), wanted); got != test.want {
			t.Errorf("%s in the way of %q: %v", test.held, test.wanted, got)
		}
	}
	if !blocks(netip.MustParseAddrPort("127.0.0.1:80"), (&net.TCPAddr{Port: 80}).AddrPort()) {
		t.Error("an address without a host is every address")
	}
}

func TestUnixSocketFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	first, err := bindUnix(path, 1)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := bindUnix(path, 1); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("address in use by pid %d", os.Getpid())) {
		t.Errorf("while somebody listens: %v", err)
	}
	if err := first.file.Close(); err != nil { // as after kill -9
		t.Fatal(err)
	}
	second, err := bindUnix(path, 1)
	if err != nil {
		t.Fatalf("a stale socket: %v", err)
	}
	if err := first.close(); err == nil || second.made == "" {
		t.Errorf("closing twice: %v", err)
	}
	if _, err := os.Stat(path); err != nil {
		t.Errorf("the socket of the second was taken away by the first: %v", err)
	}
	if err := second.close(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); !os.IsNotExist(err) {
		t.Errorf("left behind: %v", err)
	}
	if err := os.WriteFile(path, []byte("precious"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := bindUnix(path, 1); err == nil || !strings.Contains(err.Error(), "is no socket") {
		t.Errorf("a file in the way: %v", err)
	}
}

func TestBacklogInForce(t *testing.T) {
	l, err := bind("127.0.0.1:0", 1)
	if err != nil {
		t.Fatal(err)
	}
	defer l.close()
	if got := QueueLength(l.fd, 1); got != 1 {
		t.Errorf("backlog %d", got)
	}
	if err := l.SetBacklog(1 << 30); err != nil {
		t.Fatal(err)
	}
	if got := QueueLength(l.fd, 1<<30); got == 1<<30 || got < 2 {
		t.Errorf("backlog %d: the kernel's limit does not show", got)
	}
}

func TestNotAListeningSocket(t *testing.T) {
	f, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	_, err = Open("127.0.0.1:0", 1, []string{fmt.Sprintf("SERVER_STARTER_PORT=8080=%d", f.Fd())})
	if err == nil || !strings.Contains(err.Error(), "take over descriptor") {
		t.Errorf("%v", err)
	}
}
