package load

import (
	"context"
	"fmt"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"hakaru"
	"hakaru/internal/endpoint"

	"github.com/google/go-cmp/cmp"
)

func TestBuildRequest(t *testing.T) {
	for _, c := range []struct {
		name string
		req  hakaru.HTTPRequest
		want string
	}{
		{"plain", hakaru.HTTPRequest{KeepAlive: true},
			"GET /x HTTP/1.1\r\nHost: a:1\r\nUser-Agent: hakaru\r\n\r\n"},
		{"one connection each", hakaru.HTTPRequest{},
			"GET /x HTTP/1.1\r\nHost: a:1\r\nUser-Agent: hakaru\r\nConnection: close\r\n\r\n"},
		{"own headers, in order", hakaru.HTTPRequest{KeepAlive: true, Headers: map[string]string{"X-B": "2", "Accept": "*/*", "host": "b", "User-Agent": "c", "Connection": "Keep-Alive"}},
			"GET /x HTTP/1.1\r\nHost: b\r\nUser-Agent: c\r\nAccept: */*\r\nConnection: Keep-Alive\r\nX-B: 2\r\n\r\n"},
		{"body", hakaru.HTTPRequest{KeepAlive: true, Method: "POST", Body: "a=1", Headers: map[string]string{"Content-Type": "application/x-www-form-urlencoded"}},
			"POST /x HTTP/1.1\r\nHost: a:1\r\nUser-Agent: hakaru\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: 3\r\n\r\na=1"},
		{"POST of nothing", hakaru.HTTPRequest{KeepAlive: true, Method: "POST"},
			"POST /x HTTP/1.1\r\nHost: a:1\r\nUser-Agent: hakaru\r\nContent-Length: 0\r\n\r\n"},
	} {
		c.req.Connections = 1
		got, err := buildRequest(c.req, endpoint.Endpoint{Host: "a:1", URI: "/x"})
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		if d := cmp.Diff(c.want, string(got.bytes)); d != "" {
			t.Errorf("%s (-want +got)\n%s", c.name, d)
		}
	}
}

func TestCredentialsOfTheURL(t *testing.T) {
	to, err := endpoint.Parse("http://me:secret@127.0.0.1:1/")
	if err != nil {
		t.Fatal(err)
	}
	r, err := buildRequest(hakaru.HTTPRequest{Connections: 1}, to)
	if err != nil || !strings.Contains(string(r.bytes), "Authorization: Basic bWU6c2VjcmV0\r\n") {
		t.Errorf("%q, %v: want basic credentials", r.bytes, err)
	}
	_, err = HTTP(context.Background(), hakaru.HTTPRequest{URL: "http://me:secret@127.0.0.1:1/"}, hakaru.Window{}, nil)
	if err == nil || strings.Contains(err.Error(), "secret") {
		t.Errorf("error %v: want one without the password", err)
	}
}

func TestBuildRequestTellsAllMistakes(t *testing.T) {
	_, err := buildRequest(hakaru.HTTPRequest{
		Method:  "GET /",
		Timeout: -1,
		Headers: map[string]string{"a b": "c", "X": "y\r\nZ: w", "Content-Length": "3", "Connection": "close"},
	}, endpoint.Endpoint{})
	if err == nil {
		t.Fatal("no error")
	}
	for _, part := range []string{`method "GET /"`, "0 connections", "timeout", `header name "a b"`, "header X", "header Content-Length", "header Connection"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%q is not in\n%v", part, err)
		}
	}
}

func TestKinds(t *testing.T) {
	wrap := func(call string, errno syscall.Errno) error {
		return &net.OpError{Op: call, Net: "tcp", Err: os.NewSyscallError(call, errno)}
	}
	for _, c := range []struct {
		name string
		err  error
		kind func(error) int
		want hakaru.ErrorKind
	}{
		{"nobody listens", wrap("connect", syscall.ECONNREFUSED), connectKind, hakaru.Refused},
		{"no socket", wrap("connect", syscall.ENOENT), connectKind, hakaru.Refused},
		{"no port left", wrap("connect", syscall.EADDRNOTAVAIL), connectKind, hakaru.LoadPorts},
		{"no descriptor left", wrap("socket", syscall.EMFILE), connectKind, hakaru.LoadFiles},
		{"nor on the machine", wrap("socket", syscall.ENFILE), connectKind, hakaru.LoadFiles},
		{"no memory", wrap("socket", syscall.ENOBUFS), connectKind, hakaru.LoadOther},
		{"no route", wrap("connect", syscall.EHOSTUNREACH), connectKind, hakaru.Unreachable},
		{"no such name", &net.OpError{Op: "dial", Err: &net.DNSError{Err: "no such host"}}, connectKind, hakaru.Unreachable},
		{"no answer to SYN", wrap("connect", syscall.ETIMEDOUT), connectKind, hakaru.TimedOut},
		{"connect deadline", fmt.Errorf("dial: %w", context.DeadlineExceeded), connectKind, hakaru.TimedOut},
		{"reset while connecting", wrap("connect", syscall.ECONNRESET), connectKind, hakaru.Reset},
		{"reset", wrap("read", syscall.ECONNRESET), brokenKind, hakaru.Reset},
		{"broken pipe", wrap("write", syscall.EPIPE), brokenKind, hakaru.Reset},
		{"closed", errNone, brokenKind, hakaru.Closed},
		{"cut off", fmt.Errorf("%w: x", errCutOff), brokenKind, hakaru.ShortBody},
		{"not HTTP", fmt.Errorf("%w: x", errNotHTTP), brokenKind, hakaru.BadAnswer},
		{"peer's host is gone", wrap("read", syscall.ETIMEDOUT), brokenKind, hakaru.TimedOut},
		{"anything else", wrap("read", syscall.EIO), brokenKind, hakaru.LoadOther},
	} {
		if got := kindNames[c.kind(c.err)]; got != c.want {
			t.Errorf("%s (%v): %s, want %s", c.name, c.err, got, c.want)
		}
	}
}

func TestJudge(t *testing.T) {
	for _, c := range []struct {
		name   string
		want   int
		expect string
		answer string
		kind   hakaru.ErrorKind // empty: good
		words  string
	}{
		{"any 2xx", 0, "", "HTTP/1.1 204 No Content\r\n\r\n", "", ""},
		{"404", 0, "", "HTTP/1.1 404 Not Found\r\nContent-Length: 4\r\n\r\ngone", hakaru.WrongStatus, `got 404 Not Found, body begins "gone"`},
		{"502", 0, "", "HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\n\r\n", hakaru.ServiceErrors, "got 502 Bad Gateway, no body"},
		{"expected 404", 404, "", "HTTP/1.1 404 Not Found\r\nContent-Length: 4\r\n\r\ngone", "", ""},
		{"expected 404, got 200", 404, "", "HTTP/1.1 200\r\nContent-Length: 2\r\n\r\nhi", hakaru.WrongStatus, `got 200, body begins "hi"`},
		{"expected 503", 503, "", "HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n", "", ""},
		{"wrong body", 0, "hello", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi", hakaru.WrongBody, `got 200 OK without "hello", body begins "hi"`},
		{"right body", 0, "hi", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi", "", ""},
	} {
		r := &request{status: c.want, expect: []byte(c.expect)}
		p := &parser{want: c.want, expect: r.expect}
		parse(p, []byte(c.answer))
		kind := r.judge(p)
		if kind < 0 != (c.kind == "") {
			t.Errorf("%s: kind %d, want %q", c.name, kind, c.kind)
			continue
		}
		if kind < 0 {
			continue
		}
		if got := r.words(kind, p); kindNames[kind] != c.kind || got != c.words {
			t.Errorf("%s: %s: %s\nwant %s: %s", c.name, kindNames[kind], got, c.kind, c.words)
		}
	}
}

func TestSoftLimit(t *testing.T) {
	for _, c := range []struct {
		name             string
		need, soft, hard uint64
		want             uint64
		err              string
	}{
		{"enough", 500, 1024, 4096, 1024, ""},
		{"raised", 2000, 1024, 4096, 4096, ""},
		{"too many", 5000, 1024, 4096, 0, "need 5000 open files and the hard limit is 4096: use at most 3996 connections"},
	} {
		got, err := softLimit(c.need, c.soft, c.hard, 4900)
		if got != c.want || (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%s: %d, %v, want %d, %q", c.name, got, err, c.want, c.err)
		}
	}
}

func TestSchedule(t *testing.T) {
	now := time.Now()
	for _, c := range []struct {
		name string
		w    hakaru.Window
		err  string
	}{
		{"now", hakaru.Window{Length: time.Second}, ""},
		{"soon, without a monotonic reading", hakaru.Window{Start: now.Add(time.Minute).Round(0), Length: time.Second}, ""},
		{"late within the warm-up", hakaru.Window{Start: now.Add(-time.Minute), WarmUp: time.Hour, Length: time.Second}, ""},
		{"too late", hakaru.Window{Start: now.Add(-time.Minute), WarmUp: time.Second, Length: time.Second}, "the window began 1m"},
		{"no length", hakaru.Window{Start: now}, "want a length above 0"},
		{"negative warm-up", hakaru.Window{Start: now, WarmUp: -1, Length: 1}, "warm-up"},
	} {
		s, err := newSchedule(c.w)
		if (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%s: error %v, want %q", c.name, err, c.err)
		}
		if err == nil && s.total != c.w.Total() {
			t.Errorf("%s: total %v, want %v", c.name, s.total, c.w.Total())
		}
	}
}
