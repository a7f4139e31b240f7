package job

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"syscall"
	"testing"

	"hakaru"
	"hakaru/internal/http1"
)

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
		{"nobody listens", wrap("connect", syscall.ECONNREFUSED), ConnectKind, hakaru.Refused},
		{"no socket", wrap("connect", syscall.ENOENT), ConnectKind, hakaru.Refused},
		{"no port left", wrap("connect", syscall.EADDRNOTAVAIL), ConnectKind, hakaru.LoadPorts},
		{"no descriptor left", wrap("socket", syscall.EMFILE), ConnectKind, hakaru.LoadFiles},
		{"nor on the machine", wrap("socket", syscall.ENFILE), ConnectKind, hakaru.LoadFiles},
		{"no memory", wrap("socket", syscall.ENOBUFS), ConnectKind, hakaru.LoadOther},
		{"no route", wrap("connect", syscall.EHOSTUNREACH), ConnectKind, hakaru.Unreachable},
		{"no such name", &net.OpError{Op: "dial", Err: &net.DNSError{Err: "no such host"}}, ConnectKind, hakaru.Unreachable},
		{"no answer to SYN", wrap("connect", syscall.ETIMEDOUT), ConnectKind, hakaru.TimedOut},
		{"connect deadline", fmt.Errorf("dial: %w", context.DeadlineExceeded), ConnectKind, hakaru.TimedOut},
		{"reset while connecting", wrap("connect", syscall.ECONNRESET), ConnectKind, hakaru.Reset},
		{"no port left at a source address", wrap("bind", syscall.EADDRINUSE), ConnectKind, hakaru.LoadPorts},
		{"wrong certificate", &HandshakeError{x509.HostnameError{Certificate: &x509.Certificate{}}}, ConnectKind, hakaru.TLSFailed},
		{"hangs up in the handshake", &HandshakeError{io.EOF}, ConnectKind, hakaru.TLSFailed},
		{"reset in the handshake", &HandshakeError{wrap("read", syscall.ECONNRESET)}, ConnectKind, hakaru.Reset},
		{"handshake deadline", &HandshakeError{context.DeadlineExceeded}, ConnectKind, hakaru.TimedOut},
		{"alert", &net.OpError{Op: "remote error", Err: errors.New("tls: certificate required")}, BrokenKind, hakaru.TLSFailed},
		{"no TLS any more", tls.RecordHeaderError{Msg: "x"}, BrokenKind, hakaru.TLSFailed},
		{"reset", wrap("read", syscall.ECONNRESET), BrokenKind, hakaru.Reset},
		{"broken pipe", wrap("write", syscall.EPIPE), BrokenKind, hakaru.Reset},
		{"closed", http1.ErrNone, BrokenKind, hakaru.Closed},
		{"cut off", fmt.Errorf("%w: x", http1.ErrCutOff), BrokenKind, hakaru.ShortBody},
		{"not HTTP", fmt.Errorf("%w: x", http1.ErrNotHTTP), BrokenKind, hakaru.BadAnswer},
		{"peer's host is gone", wrap("read", syscall.ETIMEDOUT), BrokenKind, hakaru.TimedOut},
		{"anything else", wrap("read", syscall.EIO), BrokenKind, hakaru.LoadOther},
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
		r := &http1.Request{Status: c.want, Expect: []byte(c.expect)}
		p := &http1.Parser{Want: c.want, Expect: r.Expect}
		p.Reset()
		if _, done, err := p.Feed([]byte(c.answer)); !done {
			t.Fatalf("%s: not done: %v", c.name, err)
		}
		kind := Judge(r, p)
		if kind < 0 != (c.kind == "") {
			t.Errorf("%s: kind %d, want %q", c.name, kind, c.kind)
			continue
		}
		if kind < 0 {
			continue
		}
		if got := Words(r, kind, p); kindNames[kind] != c.kind || got != c.words {
			t.Errorf("%s: %s: %s\nwant %s: %s", c.name, kindNames[kind], got, c.kind, c.words)
		}
	}
}
