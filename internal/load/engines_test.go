package load

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"hakaru"
	"hakaru/internal/latency"
	"hakaru/internal/load/job"
)

// What is the same whichever engine sends. Real sockets, as in sockets_test.go.

func TestEngineFor(t *testing.T) {
	tcp := &job.Target{Network: "tcp", Address: "127.0.0.1:1"}
	secure := &job.Target{Network: "tcp", Address: "127.0.0.1:1", TLS: &tls.Config{}}
	for _, c := range []struct {
		name, asked string
		to          *job.Target
		want, err   string
	}{
		{"plain", "", tcp, "epoll", ""},
		{"plain, goroutines asked for", "goroutines", tcp, "goroutines", ""},
		{"TLS", "", secure, "goroutines", ""},
		{"TLS, epoll asked for", "epoll", secure, "", "engine epoll: it does not speak TLS: want goroutines"},
		{"unix socket", "", &job.Target{Network: "unix", Address: "/run/x.sock"}, "epoll", ""},
		{"IPv6", "epoll", &job.Target{Network: "tcp", Address: "[::1]:80"}, "epoll", ""},
		{"in memory", "", &job.Target{Dial: func(context.Context) (net.Conn, error) { return nil, nil }}, "goroutines", ""},
		{"no such engine", "threads", tcp, "", `engine "threads" is none: want epoll or goroutines`},
	} {
		e, name, err := engineFor(hakaru.HTTPRequest{Engine: c.asked}, c.to)
		if name != c.want || (e == nil) != (c.err != "") || c.err != "" && (err == nil || err.Error() != c.err) {
			t.Errorf("%s: %q, %v, want %q, %s", c.name, name, err, c.want, c.err)
		}
	}
}

func TestThreadsFor(t *testing.T) {
	for _, c := range []struct{ asked, connections, cpus, want int }{
		{0, 1, 8, 1}, {0, 16, 8, 1}, {0, 17, 8, 2}, {0, 64, 8, 4}, {0, 64, 2, 2}, {0, 10_000, 8, 8},
		{3, 64, 2, 3}, {3, 2, 8, 2},
	} {
		if got := threadsFor(hakaru.HTTPRequest{Threads: c.asked, Connections: c.connections}, c.cpus); got != c.want {
			t.Errorf("%d asked for, %d connections on %d CPUs: %d threads, want %d", c.asked, c.connections, c.cpus, got, c.want)
		}
	}
}

// counting answers every request and counts them.
func counting(t *testing.T) (url string, served *atomic.Uint64) {
	served = &atomic.Uint64{}
	l := listen(t, "tcp", "127.0.0.1:0", func(_ int, c net.Conn) {
		eachRequest(c, func() bool { served.Add(1); return say(c, hello) })
	})
	return "http://" + l.Addr().String() + "/", served
}

// What was asked for in number is sent in number, by several threads.
func TestBudget(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*hakaru.HTTPRequest)
		due    uint64
	}{
		{"closed", func(*hakaru.HTTPRequest) {}, 0},
		{"one connection each", func(r *hakaru.HTTPRequest) { r.KeepAlive = false }, 0},
		{"open", func(r *hakaru.HTTPRequest) { r.Arrival = &hakaru.Arrival{Law: hakaru.ConstantRate, Rate: 10_000} }, 1000},
	} {
		onEngines(t, c.name, func(t *testing.T, engine string) {
			url, served := counting(t)
			req := hakaru.HTTPRequest{URL: url, Connections: 16, Threads: 3, KeepAlive: true, Requests: 1000, Engine: engine}
			c.change(&req)
			report, err := HTTP(t.Context(), req, hakaru.Window{Length: time.Minute}, nil)
			if err != nil {
				t.Fatal(err)
			}
			if n := served.Load(); n != 1000 || report.Tally.Good != 1000 || report.Tally.Bad != 0 || report.Tally.Unsent != 0 || report.Tally.Due != c.due {
				t.Errorf("served %d, counted %d good, %d bad, %d unsent, %d due, want 1000, 1000, 0, 0, %d",
					n, report.Tally.Good, report.Tally.Bad, report.Tally.Unsent, report.Tally.Due, c.due)
			}
		})
	}
}

// Every request of an open loop is either sent or told of as not sent.
func TestOpenLoop(t *testing.T) {
	for _, c := range []struct {
		name    string
		arrival hakaru.Arrival
		change  func(*hakaru.HTTPRequest)
		due     uint64
	}{
		{"evenly", hakaru.Arrival{Law: hakaru.ConstantRate, Rate: 200}, nil, 200},
		{"by several threads", hakaru.Arrival{Law: hakaru.ConstantRate, Rate: 1000}, func(r *hakaru.HTTPRequest) { r.Threads, r.Connections = 3, 7 }, 1000},
		{"precisely", hakaru.Arrival{Law: hakaru.ConstantRate, Rate: 200}, func(r *hakaru.HTTPRequest) { r.Precise = true }, 200},
		{"one connection each", hakaru.Arrival{Law: hakaru.ConstantRate, Rate: 200}, func(r *hakaru.HTTPRequest) { r.KeepAlive = false }, 200},
		{"a ramp", hakaru.Arrival{Law: hakaru.RampRate, Rate: 0, To: 400, Over: time.Second}, nil, 200},
	} {
		onEngines(t, c.name, func(t *testing.T, engine string) {
			url, served := counting(t)
			req := hakaru.HTTPRequest{URL: url, Connections: 4, KeepAlive: true, Engine: engine, Arrival: &c.arrival}
			if c.change != nil {
				c.change(&req)
			}
			report, err := HTTP(t.Context(), req, hakaru.Window{Length: time.Second}, nil)
			if err != nil {
				t.Fatal(err)
			}
			tally := report.Tally
			if n := served.Load(); tally.Due != c.due || n+tally.Unsent != c.due || tally.Good > n || tally.Bad != 0 {
				t.Errorf("%d due, %d served, %d unsent, %d good, %d bad %v; want %d due, as many served or unsent",
					tally.Due, n, tally.Unsent, tally.Good, tally.Bad, report.Samples, c.due)
			}
			lag, err := latency.Decode(tally.Lag)
			if err != nil || lag.Count() != served.Load() {
				t.Errorf("%d lags (%v), want one for each of %d sent", lag.Count(), err, served.Load())
			}
			own, err := latency.Decode(tally.Own)
			if err != nil || own.Count() != tally.Good {
				t.Errorf("%d latencies without lag (%v), want one for each of %d good answers", own.Count(), err, tally.Good)
			}
		})
	}
}

// The latency of a request that has to wait for a connection holds the wait.
func TestOpenLoopWaitsForConnections(t *testing.T) {
	onEngines(t, "", func(t *testing.T, engine string) {
		const stall = 300 * time.Millisecond
		l := listen(t, "tcp", "127.0.0.1:0", func(_ int, c net.Conn) {
			first := true
			eachRequest(c, func() bool {
				if first {
					time.Sleep(stall)
				}
				first = false
				return say(c, hello)
			})
		})
		req := hakaru.HTTPRequest{URL: "http://" + l.Addr().String() + "/", Connections: 2, KeepAlive: true, Engine: engine,
			Arrival: &hakaru.Arrival{Law: hakaru.ConstantRate, Rate: 200}}
		report, err := HTTP(t.Context(), req, hakaru.Window{Length: 2 * time.Second}, nil)
		if err != nil {
			t.Fatal(err)
		}
		// Those due in the first 200 ms cannot be answered before 300 ms; only the
		// two that stalled took that long from their send.
		took, err := latency.Decode(report.Latency)
		if err != nil {
			t.Fatal(err)
		}
		if slow := took.CountBetween(stall/3, time.Hour); slow < 40 {
			t.Errorf("%d latencies of a third of the stall or more, want 40 at least", slow)
		}
		if report.Tally.Queued < 38 {
			t.Errorf("%d had to wait for a connection, want 38 at least", report.Tally.Queued)
		}
	})
}

// A load whose law ends is over when the last answer is in.
func TestLawEnds(t *testing.T) {
	onEngines(t, "", func(t *testing.T, engine string) {
		url, served := counting(t)
		req := hakaru.HTTPRequest{URL: url, Connections: 4, Threads: 2, KeepAlive: true, Engine: engine,
			Arrival: &hakaru.Arrival{Law: hakaru.StepRates, Steps: []hakaru.RateStep{{Rate: 100, For: 200 * time.Millisecond}, {Rate: 1000, For: 100 * time.Millisecond}}}}
		report, err := HTTP(t.Context(), req, hakaru.Window{Length: time.Hour}, nil)
		if err != nil {
			t.Fatal(err)
		}
		if n := served.Load(); n != 120 || report.Tally.Good != n || report.Tally.Due != n || report.Tally.Unsent != 0 {
			t.Errorf("served %d, %d good, %d due, %d unsent, want 120, 120, 120, 0", n, report.Tally.Good, report.Tally.Due, report.Tally.Unsent)
		}
	})
}

func TestManyConnections(t *testing.T) {
	const connections = 2000
	onEngines(t, "", func(t *testing.T, engine string) {
		url, _ := counting(t)
		req := hakaru.HTTPRequest{URL: url, Connections: connections, KeepAlive: true, Engine: engine}
		report, err := HTTP(t.Context(), req, hakaru.Window{Start: time.Now().Add(300 * time.Millisecond), Length: time.Second}, nil)
		if err != nil {
			t.Fatal(err)
		}
		good, bad := kinds(report)
		if good == 0 || len(bad) != 0 || report.Connections != connections || report.Tally.Connects > connections {
			t.Errorf("%d good, bad %v, %d connections, %d opened, want %d", good, bad, report.Connections, report.Tally.Connects, connections)
		}
	})
}

// A unix socket whose accept queue is full is no error until the timeout.
func TestFullUnixSocket(t *testing.T) {
	onEngines(t, "", func(t *testing.T, engine string) {
		path := filepath.Join(t.TempDir(), "full.sock")
		fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			t.Fatal(err)
		}
		if err := unix.Bind(fd, &unix.SockaddrUnix{Name: path}); err != nil {
			t.Fatal(err)
		}
		if err := unix.Listen(fd, 1); err != nil {
			t.Fatal(err)
		}
		f := os.NewFile(uintptr(fd), path)
		l, err := net.FileListener(f)
		f.Close()
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		req := hakaru.HTTPRequest{URL: "unix:" + path + ":/", Connections: 8, Timeout: 60 * time.Millisecond, Engine: engine}
		report, err := HTTP(t.Context(), req, short, nil)
		if err != nil {
			t.Fatal(err)
		}
		good, bad := kinds(report)
		if good != 0 || bad[hakaru.TimedOut] == 0 || len(bad) != 1 {
			t.Errorf("%d good, bad %v, want timeouts only", good, bad)
		}
	})
}

// The service closes each kept connection after an answer and does not say so: an
// idempotent request is sent again, another one is an error.
func TestClosedWhileIdle(t *testing.T) {
	for _, method := range []string{"GET", "POST"} {
		onEngines(t, method, func(t *testing.T, engine string) {
			l := listen(t, "tcp", "127.0.0.1:0", func(_ int, c net.Conn) {
				eachRequest(c, func() bool { say(c, hello); return false })
			})
			req := hakaru.HTTPRequest{URL: "http://" + l.Addr().String() + "/", Method: method, Connections: 2, KeepAlive: true, Engine: engine}
			report, err := HTTP(t.Context(), req, short, nil)
			if err != nil {
				t.Fatal(err)
			}
			good, bad := kinds(report)
			again := report.Tally.Retried
			if method == "GET" && (good == 0 || len(bad) != 0 || again == 0) {
				t.Errorf("%d good, bad %v, %d sent again, want good ones and some sent again", good, bad, again)
			}
			if method == "POST" && (good == 0 || bad[hakaru.Closed]+bad[hakaru.Reset] == 0 || again != 0) {
				t.Errorf("%d good, bad %v, %d sent again, want good ones, closed ones, none again", good, bad, again)
			}
		})
	}
}

// A load that is broken off closes what it had open, and so does one that ends.
func TestNoDescriptorIsLeft(t *testing.T) {
	url, _ := counting(t)
	count := func() string {
		entries, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Fatal(err)
		}
		var open []string
		for _, e := range entries {
			to, err := os.Readlink("/proc/self/fd/" + e.Name())
			if err == nil && (strings.HasPrefix(to, "anon_inode:") || strings.HasPrefix(to, "socket:")) {
				open = append(open, strings.TrimRight(to, "0123456789[]"))
			}
		}
		return fmt.Sprint(len(open))
	}
	for _, engine := range engines {
		for _, law := range []*hakaru.Arrival{nil, {Law: hakaru.PoissonRate, Rate: 100, Seed: 1}} {
			req := hakaru.HTTPRequest{URL: url, Connections: 9, Threads: 2, KeepAlive: true, Engine: engine, Arrival: law}
			run := func() {
				ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
				defer cancel()
				if _, err := HTTP(ctx, req, hakaru.Window{Length: time.Hour}, nil); err == nil {
					t.Errorf("%s: no error from a load that was broken off", engine)
				}
				if _, err := HTTP(t.Context(), req, hakaru.Window{Length: 20 * time.Millisecond}, nil); err != nil {
					t.Error(err)
				}
			}
			run()
			before := settled(count)
			run()
			if after := settled(count); after != before {
				t.Errorf("%s: %s sockets and other nameless files are open after a load, %s before", engine, after, before)
			}
		}
	}
}

// settled asks until the answer is the same for a while: the service notices a
// closed connection a moment later.
func settled(ask func() string) string {
	last := ask()
	for same := 0; same < 10; same++ {
		time.Sleep(5 * time.Millisecond)
		if now := ask(); now != last {
			last, same = now, 0
		}
	}
	return last
}

// Nobody listens: as many failures as requests were asked for, no more.
func TestBudgetOfRefusals(t *testing.T) {
	for _, engine := range []string{"epoll", "goroutines"} {
		t.Run(engine, func(t *testing.T) {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			l.Close()
			req := hakaru.HTTPRequest{URL: "http://" + l.Addr().String() + "/", Connections: 10, KeepAlive: true, Requests: 30, Engine: engine}
			report, err := HTTP(t.Context(), req, hakaru.Window{Length: 20 * time.Second}, nil)
			if err != nil {
				t.Fatal(err)
			}
			if tally := report.Tally; tally.Bad != 30 || tally.Kinds["refused"] != 30 {
				t.Errorf("%d bad, %v, want 30 refused", tally.Bad, tally.Kinds)
			}
		})
	}
}

// A service closes connections that lie idle: a request that cannot be sent twice
// is not sent over one of them.
func TestIdleConnectionsAreClosed(t *testing.T) {
	l := listen(t, "tcp", "127.0.0.1:0", func(_ int, c net.Conn) {
		eachRequest(c, func() bool {
			// One answer, and then the end, without saying so.
			say(c, hello)
			return false
		})
	})
	req := hakaru.HTTPRequest{URL: "http://" + l.Addr().String() + "/", Method: "POST", Connections: 2, KeepAlive: true, Requests: 12,
		Arrival: &hakaru.Arrival{Law: hakaru.ConstantRate, Rate: 20}, Engine: "epoll"}
	report, err := HTTP(t.Context(), req, hakaru.Window{Length: 10 * time.Second}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if tally := report.Tally; tally.Good != 12 || tally.Bad != 0 || tally.Retried != 0 {
		t.Errorf("%d good, bad %v, %d sent again, want 12, none, 0: %v", tally.Good, tally.Kinds, tally.Retried, report.Samples)
	}
}

// A warm-up that ends within a bucket is as long as the bucket.
func TestWarmUpInWholeBuckets(t *testing.T) {
	s, err := newSchedule(hakaru.Window{WarmUp: 300 * time.Millisecond, Length: time.Second})
	if err != nil || s.WarmUp != hakaru.BucketWidth || s.Total != hakaru.BucketWidth+time.Second {
		t.Errorf("warm-up %v of %v (%v), want 500ms of 1.5s", s.WarmUp, s.Total, err)
	}
}
