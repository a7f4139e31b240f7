package load

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"hakaru"
)

// Servers as people run them, with what each sends of its own: all engines get
// right answers only, and as many as the server counted.

// server is one that runs. All know /plain (a length), /empty (204), /same (304) and
// /unsized (a body whose length is not said before), each in its own words.
type server struct {
	base   string                   // of URLs
	tls    *hakaru.TLS              // nil: it does not speak it
	served func() uint64            // answers so far, those to this question left out
	dial   func() (net.Conn, error) // to see what an answer looks like
}

// answerCase is one kind of answer.
type answerCase struct {
	name   string
	path   string
	change func(*hakaru.HTTPRequest)
	like   string // regular expression that the answer matches; without one: not looked at
}

const (
	lengthSaid = `^HTTP/1\.. 200 [^\r]*\r\n(?:[^\r]+\r\n)*(?i:content-length): 6\r\n(?:[^\r]+\r\n)*\r\nhello\n$`
	chunked    = `^HTTP/1\.1 200 [^\r]*\r\n(?:[^\r]+\r\n)*(?i:transfer-encoding): chunked\r\n(?:[^\r]+\r\n)*\r\n(?s:.*)\r\n0\r\n\r\n$`
	untilClose = `^HTTP/1\.. 200 [^\r]*\r\n(?:[^TC][^\r]*\r\n|Content-Type[^\r]*\r\n|Connection: [^\r]*\r\n)*\r\nhello\n$`
	noContent  = `^HTTP/1\.1 204 No Content\r\n(?:[^\r]+\r\n)*\r\n$`
	notChanged = `^HTTP/1\.1 304 Not Modified\r\n(?:[^\r]+\r\n)*\r\n$`
	headOnly   = `^HTTP/1\.1 200 [^\r]*\r\n(?:[^\r]+\r\n)*(?i:content-length): 6\r\n(?:[^\r]+\r\n)*\r\n$`
)

func anew(r *hakaru.HTTPRequest)    { r.KeepAlive = false }
func oldHTTP(r *hakaru.HTTPRequest) { r.Version = "1.0" }
func head(r *hakaru.HTTPRequest)    { r.Method, r.Expect = "HEAD", "" }
func status(want int) func(*hakaru.HTTPRequest) {
	return func(r *hakaru.HTTPRequest) { r.Status, r.Expect = want, "" }
}

// sized are the answers whose length is known from the head; all servers have them.
var sized = []answerCase{
	{"length", "plain", nil, lengthSaid},
	{"length, one connection each", "plain", anew, lengthSaid},
	{"HTTP 1.0", "plain", oldHTTP, lengthSaid},
	{"204", "empty", status(204), noContent},
	{"304", "same", status(304), notChanged},
	{"HEAD", "plain", head, headOnly},
	{"HEAD, one connection each", "plain", func(r *hakaru.HTTPRequest) { head(r); anew(r) }, headOnly},
}

// withUnsized are sized, those where the length is not said, which look like unsized,
// and more.
func withUnsized(unsized string, more ...answerCase) []answerCase {
	return append(append([]answerCase{
		{"length not said", "unsized", nil, unsized},
		{"length not said, one connection each", "unsized", anew, unsized},
		{"HTTP 1.0, length not said", "unsized", oldHTTP, untilClose},
	}, sized...), more...)
}

func TestRealServers(t *testing.T) {
	for _, c := range []struct {
		name    string
		start   func(t *testing.T) server
		answers []answerCase
		keeps   bool // connections, where it is asked to
	}{
		{"nginx", nginxOver("tcp"), withUnsized(chunked), true},
		{"nginx on a unix socket", nginxOver("unix"), withUnsized(chunked), true},
		{"nginx with TLS", nginxOver("tls"), withUnsized(chunked), true},
		{"uwsgi http-socket", uwsgiWith("--http-socket=%s"), withUnsized(untilClose), false},
		{"uwsgi http", uwsgiWith("--http=%s"), withUnsized(untilClose), false},
		{"uwsgi http with keep-alive", uwsgiWith("--http=%s", "--http-keepalive=1", "--add-header=Connection: Keep-Alive"), withUnsized(untilClose), true},
		// Where it does not say a length it holds the connection until its timeout before it
		// closes it.
		{"uwsgi http11-socket", uwsgiWith("--http11-socket=%s", "--socket-timeout=1"), sized, true},
		{"gunicorn", gunicornWith(), withUnsized(chunked), false},
		{"gunicorn with threads", gunicornWith("--threads=4"), withUnsized(chunked), true},
		{"node", startNode, withUnsized(chunked,
			answerCase{"until the close", "close", nil, untilClose},
			answerCase{"103 before", "hints", nil, `^HTTP/1\.1 103 [^\r]*\r\n(?:[^\r]+\r\n)+\r\nHTTP/1\.1 200 `},
			answerCase{"trailers", "trailers", nil, `\r\n0\r\nX-Sum: 6\r\n\r\n$`},
			answerCase{"large", "large", func(r *hakaru.HTTPRequest) { r.Expect = "the end" }, `the end$`}), true},
		{"Go net/http", startGo, withUnsized(chunked,
			answerCase{"103 before", "hints", nil, `^HTTP/1\.1 103 [^\r]*\r\n(?:[^\r]+\r\n)+\r\nHTTP/1\.1 200 `},
			answerCase{"trailers", "trailers", nil, `\r\n0\r\nX-Sum: 6\r\n\r\n$`},
			answerCase{"large", "large", func(r *hakaru.HTTPRequest) { r.Expect = "the end" }, `the end\r\n0\r\n\r\n$`}), true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := c.start(t)
			for _, a := range c.answers {
				req := hakaru.HTTPRequest{URL: s.base + "/" + a.path, Connections: 4, KeepAlive: true, Expect: "hello", Requests: 100}
				if a.change != nil {
					a.change(&req)
				}
				s.confirm(t, a, req)
				for _, engine := range engines {
					if req.TLS = s.tls; s.tls != nil && engine == "epoll" {
						continue // it does not speak it, and says so: TestEngineFor
					}
					t.Run(a.name+"/"+engine, func(t *testing.T) {
						req.Engine = engine
						tally := s.load(t, req)
						if kept := tally.Connects <= 4; a.name == "length" && kept != c.keeps {
							t.Errorf("%d connections made, want as few as there are: %v", tally.Connects, c.keeps)
						}
					})
				}
			}
		})
	}
}

// confirm looks whether an answer is what the case is for, so that another version of
// the server does not make a test of nothing.
func (s server) confirm(t *testing.T, a answerCase, req hakaru.HTTPRequest) {
	t.Helper()
	c, err := s.dial()
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(30 * time.Second))
	method, version := "GET", "1.1"
	if req.Method != "" {
		method = req.Method
	}
	if req.Version != "" {
		version = req.Version
	}
	fmt.Fprintf(c, "%s /%s HTTP/%s\r\nHost: x\r\nConnection: close\r\n\r\n", method, a.path, version)
	answer, err := io.ReadAll(c)
	if err != nil || !regexp.MustCompile(a.like).Match(answer) {
		t.Errorf("%s: %v, %.400q... is not like %s", a.name, err, answer, a.like)
	}
}

func (s server) load(t *testing.T, req hakaru.HTTPRequest) *hakaru.Tally {
	before := s.served()
	report, err := HTTP(t.Context(), req, hakaru.Window{Length: 20 * time.Second}, nil)
	if err != nil {
		t.Fatal(err)
	}
	tally := report.Tally
	want := req.Status
	if want == 0 {
		want = 200
	}
	if n := s.served() - before; tally.Good != req.Requests || tally.Bad != 0 || n != req.Requests || tally.Statuses[want] != req.Requests || len(tally.Statuses) != 1 {
		t.Errorf("%d good, %d bad %v %v, statuses %v, %d by the server's count; want %d of %d (%d sent again, %d connections made)",
			tally.Good, tally.Bad, tally.Kinds, report.Samples, tally.Statuses, n, req.Requests, want, tally.Retried, tally.Connects)
	}
	return tally
}

// loopbacks counts the addresses of this machine that were given to servers.
var loopbacks atomic.Int32

// freeAddress is an address on loopback where nobody listens. Each has an IP address
// of its own, so that the port is not another server's, or a connection's, before the
// server has it.
func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", fmt.Sprintf("127.0.1.%d:0", loopbacks.Add(1)))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// startServer starts a program in dir, waits until it listens at a TCP address, and
// ends it, and what it started, after the test. count reads the answer to /served.
func startServer(t *testing.T, address string, count func(answer string) uint64, dir string, argv ...string) server {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Dir = dir
	var output bytes.Buffer
	cmd.Stdout, cmd.Stderr = &output, &output
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 20 * time.Second
	if err := cmd.Start(); err != nil {
		cancel()
		t.Fatal(err)
	}
	over := make(chan error, 1)
	go func() { over <- cmd.Wait() }()
	t.Cleanup(func() {
		cancel()
		<-over
		syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // what it may have left in its group
		if t.Failed() {
			t.Logf("%s said\n%s", argv[0], output.String())
		}
	})
	dial := func() (net.Conn, error) { return net.Dial("tcp", address) }
	for began := time.Now(); ; {
		c, err := dial()
		if err == nil {
			c.Close()
			break
		}
		select {
		case err := <-over:
			over <- err
			t.Fatalf("%v ended: %v", argv, err)
		case <-time.After(10 * time.Millisecond):
		}
		if time.Since(began) > time.Minute {
			t.Fatalf("%v does not listen at %s: %v", argv, address, err)
		}
	}
	client := http.Client{Timeout: 30 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	served := func() uint64 {
		t.Helper()
		r, err := client.Get("http://" + address + "/served")
		if err != nil {
			t.Fatal(err)
		}
		defer r.Body.Close()
		text, err := io.ReadAll(r.Body)
		if err != nil || r.StatusCode != 200 {
			t.Fatalf("/served: %s, %v", r.Status, err)
		}
		return count(string(text))
	}
	return server{base: "http://" + address, served: served, dial: dial}
}

func number(text string) uint64 {
	n, _ := strconv.ParseUint(strings.TrimSpace(text), 10, 64) // 0 is noticed
	return n
}

func fileIn(t *testing.T, dir, name, content string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// nginx does not say the length of what a filter changes.
const nginxConf = `daemon off;
worker_processes 1;
pid nginx.pid;
error_log stderr;
events { worker_connections 64; }
http {
  access_log off;
  client_body_temp_path body; proxy_temp_path proxy; fastcgi_temp_path fastcgi; uwsgi_temp_path uwsgi; scgi_temp_path scgi;
  default_type text/plain;
  server {
    listen ADDRESS; listen unix:SOCKET; listen SECURE ssl;
    ssl_certificate CERT; ssl_certificate_key KEY;
    location = /plain { return 200 "hello\n"; }
    location = /empty { return 204; }
    location = /same { return 304; }
    location = /unsized { sub_filter_types *; sub_filter hallo hello; return 200 "hallo\n"; }
    location = /served { stub_status; }
  }
}
`

// nginxOver gives one of the ways to the same server.
func nginxOver(way string) func(t *testing.T) server {
	return func(t *testing.T) server {
		dir, address, secure := t.TempDir(), freeAddress(t), freeAddress(t)
		socket := filepath.Join(dir, "http.sock")
		ca := newAuthority(t)
		host, _, err := net.SplitHostPort(secure)
		if err != nil {
			t.Fatal(err)
		}
		ca.pair("nginx", time.Hour, host)
		conf := fileIn(t, dir, "nginx.conf", strings.NewReplacer("ADDRESS", address, "SOCKET", socket, "SECURE", secure,
			"CERT", ca.path("nginx.crt"), "KEY", ca.path("nginx.key")).Replace(nginxConf))
		// Its count holds the questions, this one too.
		asked := uint64(0)
		counts := regexp.MustCompile(`\n *\d+ \d+ (\d+) `)
		count := func(text string) uint64 {
			asked++
			found := counts.FindStringSubmatch(text)
			if found == nil {
				t.Fatalf("stub_status says %q", text)
			}
			return number(found[1]) - asked
		}
		s := startServer(t, address, count, dir, "nginx", "-e", "stderr", "-p", dir+"/", "-c", conf)
		switch way {
		case "unix":
			s.base = "unix:" + socket + ":"
			s.dial = func() (net.Conn, error) { return net.Dial("unix", socket) }
		case "tls":
			s.base, s.tls = "https://"+secure, &hakaru.TLS{CA: ca.path("ca.crt")}
			s.dial = func() (net.Conn, error) {
				return tls.Dial("tcp", secure, &tls.Config{InsecureSkipVerify: true})
			}
		}
		return s
	}
}

const wsgiApp = `import threading

lock = threading.Lock()
served = 0


def app(environ, start_response):
    global served
    path = environ["PATH_INFO"]
    if path == "/served":
        body = str(served).encode()
        start_response("200 OK", [("Content-Length", str(len(body)))])
        return [body]
    with lock:
        served += 1
    if path == "/empty":
        start_response("204 No Content", [])
        return []
    if path == "/same":
        start_response("304 Not Modified", [("ETag", '"x"')])
        return []
    body = [b"hel", b"lo\n"]
    if path == "/unsized":
        start_response("200 OK", [("Content-Type", "text/plain")])
        return iter(body)
    start_response("200 OK", [("Content-Type", "text/plain"), ("Content-Length", "6")])
    return [] if environ["REQUEST_METHOD"] == "HEAD" else body
`

func uwsgiWith(socket string, more ...string) func(t *testing.T) server {
	return func(t *testing.T) server {
		dir, address := t.TempDir(), freeAddress(t)
		fileIn(t, dir, "app.py", wsgiApp)
		argv := append([]string{"uwsgi", "--plugins=http,python3", "--module=app", "--callable=app", "--master", "--die-on-term",
			"--disable-logging", "--enable-threads", "--threads=4", fmt.Sprintf(socket, address)}, more...)
		return startServer(t, address, number, dir, argv...)
	}
}

func gunicornWith(more ...string) func(t *testing.T) server {
	return func(t *testing.T) server {
		dir, address := t.TempDir(), freeAddress(t)
		fileIn(t, dir, "app.py", wsgiApp)
		return startServer(t, address, number, dir, append([]string{"gunicorn", "--bind=" + address, "--worker-tmp-dir=" + dir, "app:app"}, more...)...)
	}
}

const nodeServer = `
let served = 0;
require('http').createServer((request, response) => {
  if (request.url === '/served') return response.end(String(served));
  served++;
  response.setHeader('Content-Type', 'text/plain');
  switch (request.url) {
  case '/empty': response.writeHead(204); return response.end();
  case '/same': response.writeHead(304, {ETag: '"x"'}); return response.end();
  case '/unsized': response.write('hel'); return response.end('lo\n');
  case '/close': response.setHeader('Connection', 'close'); response.removeHeader('Transfer-Encoding'); response.write('hel'); return response.end('lo\n');
  case '/hints': response.writeEarlyHints({link: '</x.css>; rel=preload'}); return response.end('hello\n');
  case '/trailers': response.setHeader('Trailer', 'X-Sum'); response.write('hello\n'); response.addTrailers({'X-Sum': '6'}); return response.end();
  case '/large': return response.end('x'.repeat(300000) + 'the end');
  }
  response.setHeader('Content-Length', '6');
  response.end('hello\n');
}).listen(Number(process.argv[3]), process.argv[2]);
process.on('SIGTERM', () => process.exit(0));
`

func startNode(t *testing.T) server {
	dir, address := t.TempDir(), freeAddress(t)
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		t.Fatal(err)
	}
	script := fileIn(t, dir, "server.js", nodeServer)
	return startServer(t, address, number, dir, "node", script, host, port)
}

func startGo(t *testing.T) server {
	var served atomic.Uint64
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		served.Add(1)
		w.Header().Set("Content-Type", "text/plain")
		unsized := func(pieces ...string) {
			for _, p := range pieces {
				io.WriteString(w, p)
				w.(http.Flusher).Flush()
			}
		}
		switch r.URL.Path {
		case "/empty":
			w.WriteHeader(http.StatusNoContent)
		case "/same":
			w.WriteHeader(http.StatusNotModified)
		case "/unsized":
			unsized("hel", "lo\n")
		case "/hints":
			w.Header().Set("Link", "</x.css>; rel=preload")
			w.WriteHeader(http.StatusEarlyHints)
			io.WriteString(w, "hello\n")
		case "/trailers":
			w.Header().Set("Trailer", "X-Sum")
			unsized("hello\n")
			w.Header().Set("X-Sum", "6")
		case "/large":
			unsized(strings.Repeat("x", 300_000), "the end")
		default:
			io.WriteString(w, "hello\n")
		}
	}))
	t.Cleanup(s.Close)
	return server{base: s.URL, served: served.Load, dial: func() (net.Conn, error) { return net.Dial("tcp", s.Listener.Addr().String()) }}
}
