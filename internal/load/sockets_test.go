package load

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"hakaru"
	"hakaru/internal/latency"
)

// Real sockets: kinds and conservation, never a time.

// listen serves each connection with serve until the test is over.
func listen(t *testing.T, network, address string, serve func(n int, c net.Conn)) net.Listener {
	t.Helper()
	l, err := net.Listen(network, address)
	if err != nil {
		t.Fatal(err)
	}
	var serving sync.WaitGroup
	serving.Go(func() {
		for n := 1; ; n++ {
			c, err := l.Accept()
			if err != nil {
				return
			}
			serving.Go(func() {
				defer c.Close()
				serve(n, c)
			})
		}
	})
	t.Cleanup(func() { l.Close(); serving.Wait() })
	return l
}

// engines are those that real sockets are tried with.
var engines = []string{"epoll", "goroutines"}

// short is a load of less than a bucket: the one bucket is reported all the same.
var short = hakaru.Window{Length: 200 * time.Millisecond}

func TestServices(t *testing.T) {
	type counts struct {
		good bool // some answers are
		kind hakaru.ErrorKind
	}
	answering := func(text string, goOn bool) func(int, net.Conn) {
		return func(_ int, c net.Conn) { eachRequest(c, func() bool { return say(c, text) && goOn }) }
	}
	for _, c := range []struct {
		name   string
		serve  func(n int, c net.Conn)
		change func(*hakaru.HTTPRequest)
		want   counts
		words  string // of the first sample
	}{
		{"a byte at a time", func(_ int, c net.Conn) {
			eachRequest(c, func() bool {
				for _, b := range []byte("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhe\r\n3\r\nllo\r\n0\r\n\r\n") {
					if !say(c, string(b)) {
						return false
					}
				}
				return true
			})
		}, func(r *hakaru.HTTPRequest) { r.Expect = "hello" }, counts{good: true}, ""},
		{"a megabyte until the close", answering("HTTP/1.1 200 OK\r\n\r\n"+strings.Repeat("x", 1<<20)+"end", false),
			func(r *hakaru.HTTPRequest) { r.Expect = "xend" }, counts{good: true}, ""},
		{"HTTP/1.0, kept", answering("HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 2\r\n\r\nhi", true),
			func(r *hakaru.HTTPRequest) { r.Version = "1.0" }, counts{good: true}, ""},
		{"takes a large body slowly", func(_ int, c net.Conn) {
			eachUpload(c, largeBody, func() bool { return say(c, hello) })
		}, func(r *hakaru.HTTPRequest) {
			r.Method, r.Body, r.Connections = "POST", strings.Repeat("x", largeBody), 1
		}, counts{good: true}, ""},
		{"answers before it has read the body", func(_ int, c net.Conn) {
			answered := false
			buffer := make([]byte, 64<<10)
			for {
				if _, err := c.Read(buffer); err != nil {
					return
				}
				if !answered && !say(c, "HTTP/1.1 413 Content Too Large\r\nConnection: close\r\nContent-Length: 0\r\n\r\n") {
					return
				}
				answered = true
			}
		}, func(r *hakaru.HTTPRequest) {
			r.Method, r.Body, r.Connections = "POST", strings.Repeat("x", largeBody), 1
		}, counts{kind: hakaru.WrongStatus}, "got 413 Content Too Large"},
		{"plain", answering(hello, true), nil, counts{good: true}, ""},
		{"POST with a body", func(_ int, c net.Conn) {
			request := make([]byte, 4096)
			for {
				if n, err := c.Read(request); err != nil || !strings.HasSuffix(string(request[:n]), "\r\n\r\na=1") || !say(c, hello) {
					return
				}
			}
		}, func(r *hakaru.HTTPRequest) { r.Method, r.Body = "POST", "a=1" }, counts{good: true}, ""},
		{"closes and says so", answering("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nhi", false), nil, counts{good: true}, ""},
		{"HTTP/1.0 until the close", answering("HTTP/1.0 200 OK\r\n\r\nhello", false), nil, counts{good: true}, ""},
		{"closes and does not say so", answering(hello, false), nil, counts{good: true}, ""},
		{"one connection each", answering(hello, false), func(r *hakaru.HTTPRequest) { r.KeepAlive = false }, counts{good: true}, ""},
		{"large body", answering("HTTP/1.1 200 OK\r\nContent-Length: 300000\r\n\r\n"+strings.Repeat("x", 299_990)+"the end!!!", true),
			func(r *hakaru.HTTPRequest) { r.Expect = "xthe end" }, counts{good: true}, ""},
		{"HEAD", answering("HTTP/1.1 200 OK\r\nContent-Length: 300000\r\n\r\n", true), func(r *hakaru.HTTPRequest) { r.Method = "HEAD" }, counts{good: true}, ""},
		{"502", answering("HTTP/1.1 502 Bad Gateway\r\nContent-Length: 4\r\n\r\noops", true), nil, counts{kind: hakaru.ServiceErrors}, `got 502 Bad Gateway, body begins "oops"`},
		{"403", answering("HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n", true), nil, counts{kind: hakaru.WrongStatus}, "got 403 Forbidden, no body"},
		{"wrong body", answering(hello, true), func(r *hakaru.HTTPRequest) { r.Expect = "hallo" }, counts{kind: hakaru.WrongBody}, `got 200 OK without "hallo", body begins "hello"`},
		{"dies within the body", answering("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhello", false), nil, counts{kind: hakaru.ShortBody}, "the answer was cut off: 4 bytes of the body missing"},
		{"dies within the head", answering("HTTP/1.1 200 OK\r\nContent-Le", false), nil, counts{kind: hakaru.ShortBody}, "the answer was cut off: within the head"},
		{"says more than its length", answering(hello+" there", true), nil, counts{kind: hakaru.BadAnswer}, "not an HTTP answer: 6 bytes after its end"},
		{"another protocol", func(_ int, c net.Conn) {
			say(c, "SSH-2.0-OpenSSH_9.2\r\n")
			io.Copy(io.Discard, c)
		}, nil, counts{kind: hakaru.BadAnswer}, `not an HTTP answer: it begins "SSH-2.0-OpenSSH_9.2"`},
		{"hangs up at once", func(_ int, c net.Conn) { eachRequest(c, func() bool { return false }) }, nil, counts{kind: hakaru.Closed}, "the connection was closed without an answer"},
		{"resets every second connection", func(n int, c net.Conn) {
			eachRequest(c, func() bool {
				if n%2 == 0 {
					c.(*net.TCPConn).SetLinger(0)
					return false
				}
				say(c, "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nhi")
				return false
			})
		}, nil, counts{good: true, kind: hakaru.Reset}, "connection reset by peer"},
		{"never answers", func(_ int, c net.Conn) { io.Copy(io.Discard, c) },
			func(r *hakaru.HTTPRequest) { r.Timeout = 50 * time.Millisecond }, counts{kind: hakaru.TimedOut}, "no answer within 50ms"},
	} {
		onEngines(t, c.name, func(t *testing.T, engine string) {
			l := listen(t, "tcp", "127.0.0.1:0", c.serve)
			req := hakaru.HTTPRequest{URL: "http://" + l.Addr().String() + "/", Connections: 4, KeepAlive: true, Engine: engine}
			if c.change != nil {
				c.change(&req)
			}
			report, err := HTTP(context.Background(), req, short, nil)
			if err != nil {
				t.Fatal(err)
			}
			good, bad := kinds(report)
			if good > 0 != c.want.good {
				t.Errorf("%d good answers, want some: %v", good, c.want.good)
			}
			for kind, n := range bad {
				if kind != c.want.kind {
					t.Errorf("%d %s, want none; samples %v", n, kind, report.Samples)
				}
			}
			if c.want.kind != "" {
				if bad[c.want.kind] == 0 {
					t.Errorf("no %s among %v", c.want.kind, bad)
				} else if got := report.Samples[0]; got.Kind != c.want.kind || !strings.Contains(got.Text, c.words) {
					t.Errorf("first sample %v, want %s: %s", got, c.want.kind, c.words)
				}
			}
			if report.Connections != req.Connections {
				t.Errorf("%d connections, want %d", report.Connections, req.Connections)
			}
		})
	}
}

// onEngines tries all engines, at the same time.
func onEngines(t *testing.T, name string, try func(t *testing.T, engine string)) {
	t.Helper()
	for _, engine := range engines {
		t.Run(strings.TrimPrefix(name+"/"+engine, "/"), func(t *testing.T) {
			t.Parallel()
			try(t, engine)
		})
	}
}

// largeBody is more than the sockets' buffers hold.
const largeBody = 8 << 20

// eachUpload calls answer for each request with a body of size that comes.
func eachUpload(c net.Conn, size int, answer func() bool) {
	r := bufio.NewReaderSize(c, 256<<10)
	for {
		head, err := http.ReadRequest(r)
		if err != nil {
			return
		}
		if n, err := io.Copy(io.Discard, head.Body); err != nil || n != int64(size) || !answer() {
			return
		}
	}
}

// What net/http served and what was counted is the same number, but for what
// was out at the end.
func TestNothingIsLostOrCountedTwice(t *testing.T) {
	onEngines(t, "", func(t *testing.T, engine string) {
		const connections = 8
		var served atomic.Uint64
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			served.Add(1)
			io.WriteString(w, "hello")
		}))
		defer s.Close()
		var emitted []hakaru.Bucket
		report, err := HTTP(t.Context(),
			hakaru.HTTPRequest{URL: strings.Replace(s.URL, "127.0.0.1", "localhost", 1), Connections: connections, KeepAlive: true, Expect: "hello", Engine: engine},
			hakaru.Window{Start: time.Now().Add(50 * time.Millisecond), WarmUp: 500 * time.Millisecond, Length: time.Second},
			func(b hakaru.Bucket) { emitted = append(emitted, b) })
		if err != nil {
			t.Fatal(err)
		}
		good, bad := kinds(report)
		if total := served.Load(); len(bad) != 0 || good > total || good+connections < total {
			t.Errorf("served %d, counted %d good and %v", total, good, bad)
		}
		if len(emitted) != 3 || len(report.Buckets) != 3 {
			t.Fatalf("%d buckets emitted, %d reported, want 3", len(emitted), len(report.Buckets))
		}
		measured, inWindow := uint64(0), uint64(0)
		for i, b := range report.Buckets {
			if emitted[i].Good != b.Good || emitted[i].At != b.At {
				t.Errorf("bucket %d emitted as %d at %v, reported as %d at %v", i, emitted[i].Good, emitted[i].At, b.Good, b.At)
			}
			h, err := latency.Decode(b.Latency)
			if err != nil || h.Count() != b.Good {
				t.Errorf("bucket %d: %d service times (%v) of %d good answers", i, h.Count(), err, b.Good)
			}
			if len(b.Counters) != len(report.Counters) {
				t.Errorf("bucket %d: %d values in %d columns", i, len(b.Counters), len(report.Counters))
			}
			if i > 0 {
				inWindow += b.Good
			}
		}
		if h, err := latency.Decode(report.Latency); err == nil {
			measured = h.Count()
		}
		if measured != inWindow {
			t.Errorf("%d service times in the measured window, %d good answers", measured, inWindow)
		}
		if cpu := column(t, report, hakaru.CounterCPU); cpu <= 0 {
			t.Errorf("the generator used %g s of CPU, want more than 0", cpu)
		}
	})
}

func TestUnixSocket(t *testing.T) {
	onEngines(t, "", func(t *testing.T, engine string) {
		path := filepath.Join(t.TempDir(), "http.sock")
		listen(t, "unix", path, func(_ int, c net.Conn) { eachRequest(c, func() bool { return say(c, hello) }) })
		report, err := HTTP(t.Context(), hakaru.HTTPRequest{URL: "unix:" + path + ":/x", Connections: 4, KeepAlive: true, Engine: engine}, short, nil)
		if err != nil {
			t.Fatal(err)
		}
		if good, bad := kinds(report); good == 0 || len(bad) != 0 {
			t.Errorf("%d good, bad %v", good, bad)
		}
	})
}

func TestNobodyListens(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	tcp := "http://" + l.Addr().String() + "/"
	l.Close()
	none := "unix:" + filepath.Join(t.TempDir(), "none.sock")
	for name, url := range map[string]string{"TCP": tcp, "unix socket": none} {
		onEngines(t, name, func(t *testing.T, engine string) {
			report, err := HTTP(t.Context(), hakaru.HTTPRequest{URL: url, Connections: 2, KeepAlive: true, Engine: engine}, short, nil)
			if err != nil {
				t.Fatal(err)
			}
			good, bad := kinds(report)
			if good != 0 || bad[hakaru.Refused] == 0 || len(bad) != 1 || report.Connections != 0 {
				t.Errorf("%d good, bad %v, %d connections, want refused only", good, bad, report.Connections)
			}
		})
	}
}

func TestTooManyConnections(t *testing.T) {
	_, err := HTTP(context.Background(), hakaru.HTTPRequest{URL: "http://127.0.0.1:1/", Connections: 1 << 40, KeepAlive: true}, short, nil)
	if err == nil || !strings.Contains(err.Error(), "open files and the hard limit is") {
		t.Errorf("error %v, want one before the start that says what is needed", err)
	}
}
