package epoll

import (
	"context"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
	"unsafe"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"hakaru"
	"hakaru/internal/arrival"
	"hakaru/internal/endpoint"
	"hakaru/internal/http1"
	"hakaru/internal/load/job"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const hello = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"

// newJob is a job of an hour that began just now.
func newJob(tb testing.TB, req hakaru.HTTPRequest, to *job.Target) *job.Job {
	tb.Helper()
	req.Connections, req.KeepAlive = max(req.Connections, 1), true
	r, err := http1.Build(req, endpoint.Endpoint{Host: "service.test", URI: "/"})
	if err != nil {
		tb.Fatal(err)
	}
	return &job.Job{
		Request: r, Schedule: job.Schedule{Start: time.Now(), Total: time.Hour}, Connections: req.Connections, Threads: 1,
		To: to, Rec: job.NewRecorder(1, 0, time.Hour),
	}
}

// paired is a loop whose one connection is one end of a pair of sockets, and a
// function that takes the request that was sent and answers it at the other end.
func paired(tb testing.TB, j *job.Job, answer string) (l *loop, serve func()) {
	tb.Helper()
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		tb.Fatal(err)
	}
	l = newLoop(j, 0, 1, &bell{fd: -1})
	tb.Cleanup(func() { l.shutDown(); shut(pair[1]) })
	if l.broken != nil {
		tb.Fatal(l.broken)
	}
	c := &l.conns[0]
	c.fd, c.life, c.state = int32(pair[0]), 1, idle
	if errno := control(l.ep, unix.EPOLL_CTL_ADD, pair[0], readable, c.index, c.life); errno != 0 {
		tb.Fatal(errno)
	}
	l.clock()
	l.connected(c)
	l.Close = true // prepare opens nothing
	l.prepare()
	l.Close = false
	text, request := []byte(answer), make([]byte, 4096)
	return l, func() {
		for {
			n, errno := receive(pair[1], request)
			if errno == unix.EAGAIN { // an open loop's is not due yet
				l.turn()
				continue
			}
			if errno != 0 || n != len(j.Bytes) {
				tb.Fatalf("a request of %d bytes (%v), want %d", n, errno, len(j.Bytes))
			}
			if _, errno := send(pair[1], text); errno != 0 {
				tb.Fatal(errno)
			}
			return
		}
	}
}

var nowhere = &job.Target{Network: "tcp", Address: "127.0.0.1:1"}

func TestARequestDoesNotAllocate(t *testing.T) {
	const chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhe\r\n3\r\nllo\r\n0\r\n\r\n"
	for _, c := range []struct {
		name   string
		req    hakaru.HTTPRequest
		answer string
		rate   float64
	}{
		{"plain", hakaru.HTTPRequest{}, hello, 0},
		{"text expected", hakaru.HTTPRequest{Expect: "ell"}, hello, 0},
		{"chunked", hakaru.HTTPRequest{Expect: "ell"}, chunked, 0},
		{"open loop", hakaru.HTTPRequest{}, hello, 20_000},
	} {
		t.Run(c.name, func(t *testing.T) {
			j := newJob(t, c.req, nowhere)
			if c.rate > 0 {
				j.Law = func() arrival.Law {
					law, err := arrival.Constant(c.rate)
					if err != nil {
						t.Error(err)
					}
					return law
				}
			}
			l, serve := paired(t, j, c.answer)
			request := func() { serve(); l.turn() }
			request() // makes room for lines that are split
			if n := testing.AllocsPerRun(1000, request); n != 0 {
				t.Errorf("%g allocations per request, want 0", n)
			}
			var d job.Drained
			if j.Rec.DrainAll(&d); d.Bad != 0 || d.Latency().Count() < 1000 {
				t.Errorf("%d recorded, bad ones %v", d.Latency().Count(), d.Kinds)
			}
		})
	}
}

func BenchmarkTurn(b *testing.B) {
	l, serve := paired(b, newJob(b, hakaru.HTTPRequest{}, nowhere), hello)
	b.ReportAllocs()
	for b.Loop() {
		serve()
		l.turn()
	}
}

// 19,000 connections are to fit into a few MiB.
func TestConnectionsAreSmall(t *testing.T) {
	if size := unsafe.Sizeof(conn{}); size > 512 {
		t.Errorf("%d bytes for each connection, want at most 512", size)
	}
}

func TestAlarms(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		var h alarms
		var want []time.Duration
		for range rng.IntN(40) {
			at := time.Duration(rng.IntN(20))
			h.add(alarm{at: at})
			want = append(want, at)
		}
		slices.Sort(want)
		var got []time.Duration
		for now := time.Duration(0); now < 20; now++ {
			for {
				if first := h.first(); len(h) > 0 && first != want[len(got)] || len(h) == 0 && first != never {
					t.Fatalf("first of %v is %v", h, first)
				}
				a, ok := h.before(now)
				if !ok {
					break
				}
				if a.at != now {
					t.Fatalf("alarm of %v at %v", a.at, now)
				}
				got = append(got, a.at)
			}
		}
		if !slices.Equal(got, want) {
			t.Fatalf("alarms %v, want %v", got, want)
		}
	}
}

func TestAddresses(t *testing.T) {
	for _, c := range []struct {
		network, address string
		want             string // the bytes after the family
		err              string
	}{
		{"tcp", "127.0.0.1:8080", "\x1f\x90\x7f\x00\x00\x01" + strings.Repeat("\x00", 8), ""},
		{"tcp", "[::1]:80", "\x00\x50\x00\x00\x00\x00" + strings.Repeat("\x00", 15) + "\x01" + "\x00\x00\x00\x00", ""},
		{"tcp", "[::ffff:10.0.0.1]:1", "\x00\x01\x0a\x00\x00\x01" + strings.Repeat("\x00", 8), ""},
		{"unix", "/a/b", "/a/b\x00", ""},
		{"unix", "@name", "\x00name", ""},
		{"unix", strings.Repeat("x", 108), "", "at most 107 bytes"},
		{"tcp", "localhost:80", "", `address "localhost:80": want IP:PORT`},
		{"tcp", "[fe80::1%none0]:80", "", `no interface "none0"`},
	} {
		a, err := addressOf(&job.Target{Network: c.network, Address: c.address})
		if c.err != "" {
			if err == nil || !strings.Contains(err.Error(), c.err) {
				t.Errorf("%s: error %v, want %q", c.address, err, c.err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", c.address, err)
			continue
		}
		raw := unsafe.Slice((*byte)(unsafe.Pointer(&a.raw)), a.size)
		if got := string(raw[2:]); got != c.want {
			t.Errorf("%s: %q, want %q", c.address, got, c.want)
		}
	}
}

// Connections come from each of the source addresses in turn.
func TestSources(t *testing.T) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer shut(fd)
	if err := unix.Bind(fd, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		t.Fatal(err)
	}
	if err := unix.Listen(fd, 16); err != nil {
		t.Fatal(err)
	}
	own, err := unix.Getsockname(fd)
	if err != nil {
		t.Fatal(err)
	}
	to := &job.Target{
		Network: "tcp", Address: netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), uint16(own.(*unix.SockaddrInet4).Port)).String(),
		Sources: []netip.Addr{netip.MustParseAddr("127.0.0.2"), netip.MustParseAddr("127.0.0.3")},
	}
	j := newJob(t, hakaru.HTTPRequest{Connections: 6}, to)
	j.Threads = 2
	var running sync.WaitGroup
	opened := 0
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	running.Go(func() { opened = Engine{}.Run(ctx, j) })
	from := map[[4]byte]int{}
	var accepted []int
	for range 6 {
		c, peer, err := unix.Accept(fd)
		if err != nil {
			t.Fatal(err)
		}
		defer shut(c)
		from[peer.(*unix.SockaddrInet4).Addr]++
		accepted = append(accepted, c)
	}
	for _, c := range accepted { // a request has been sent: the engine knows that it is open
		if n, err := unix.Read(c, make([]byte, 4096)); n <= 0 {
			t.Fatal(n, err)
		}
	}
	cancel() // nobody answers
	running.Wait()
	if from[[4]byte{127, 0, 0, 2}] != 3 || from[[4]byte{127, 0, 0, 3}] != 3 || opened != 6 {
		t.Errorf("%d connections, from %v, want 3 from each", opened, from)
	}
}

// The clock of Linux before 5.11 counts in milliseconds.
func TestWaitWithoutPwait2(t *testing.T) {
	w, err := newWaiter(1)
	if err != nil {
		t.Fatal(err)
	}
	defer shut(w.ep)
	w.coarse = true
	began := time.Now()
	if e := w.wait(1500 * time.Microsecond); len(e) != 0 {
		t.Errorf("events %v, want none", e)
	}
	if took := time.Since(began); took < 1500*time.Microsecond {
		t.Errorf("waited %v, want no less than was asked for", took)
	}
}
