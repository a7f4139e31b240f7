package load

import (
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"hakaru"
)

// target is where to connect and what to ask for there.
type target struct {
	network, address string // for net.Dialer: "tcp" or "unix"
	host             string // the Host field
	uri              string // the request target
	user             *url.Userinfo
}

// parseTarget reads the forms of a URL:
//
//	http://host:port/path
//	http+unix://%2Frun%2Fapp.sock/path   the socket's path escaped as the host
//	unix:/run/app.sock:/path             also http://unix:/run/app.sock:/path, as nginx writes it
//	unix:/run/app.sock/path              where a part of the path ends in ".sock" or ".socket"
//	tcp://host:port/path                 so that {socket.url}/path works whatever the socket is
func parseTarget(text string) (target, error) {
	for _, prefix := range []string{"unix:", "http://unix:"} {
		if rest, ok := strings.CutPrefix(text, prefix); ok {
			return unixTarget(text, strings.TrimPrefix(rest, "//"))
		}
	}
	if rest, ok := strings.CutPrefix(text, "http+unix://"); ok {
		host, path, _ := strings.Cut(rest, "/")
		socket, err := url.PathUnescape(host)
		if err != nil {
			return target{}, fmt.Errorf("URL %q: %w", text, err)
		}
		return unixTarget(text, socket+":/"+path)
	}
	u, err := url.Parse(text)
	if err != nil {
		return target{}, fmt.Errorf("URL: %w", err) // url.Error names it
	}
	switch u.Scheme {
	case "http", "tcp":
	case "https":
		return target{}, fmt.Errorf("URL %q: TLS is not supported yet", text)
	default:
		return target{}, fmt.Errorf("URL %q: want http://HOST:PORT/PATH or unix:SOCKET:/PATH", text)
	}
	if u.Hostname() == "" {
		return target{}, fmt.Errorf("URL %q names no host", text)
	}
	port := u.Port()
	if port == "" {
		port = "80"
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
		return target{}, fmt.Errorf("URL %q: port %s is none", text, port)
	}
	u.Scheme = "http"
	return target{
		network: "tcp",
		address: net.JoinHostPort(u.Hostname(), port),
		host:    u.Host,
		uri:     u.RequestURI(),
		user:    u.User,
	}, nil
}

// unixTarget splits SOCKET:/PATH, or SOCKET/PATH after a part that looks like a
// socket.
func unixTarget(text, rest string) (target, error) {
	socket, path := rest, "/"
	if before, after, ok := strings.Cut(rest, ":/"); ok {
		socket, path = before, "/"+after
	} else {
		for _, suffix := range []string{".sock/", ".socket/"} {
			if before, after, ok := strings.Cut(rest, suffix); ok {
				socket, path = before+strings.TrimSuffix(suffix, "/"), "/"+after
				break
			}
		}
	}
	if socket == "" {
		return target{}, fmt.Errorf("URL %q names no socket", text)
	}
	u, err := url.Parse("http://localhost" + path)
	if err != nil {
		return target{}, fmt.Errorf("URL %q: %w", text, err)
	}
	return target{network: "unix", address: socket, host: "localhost", uri: u.RequestURI()}, nil
}

// request is what is sent and what is expected, made ready before the start.
type request struct {
	bytes   []byte
	head    bool // the method is HEAD
	again   bool // idempotent: may be sent twice (RFC 9110 §9.2.2)
	close   bool // one connection each
	status  int  // expected; 0: any 2xx
	expect  []byte
	timeout time.Duration
}

// buildRequest writes the bytes of the one request that is sent over and over.
// All mistakes in it are reported.
func buildRequest(req hakaru.HTTPRequest, to target) (request, error) {
	method := req.Method
	if method == "" {
		method = "GET"
	}
	var mistakes []error
	mistake := func(format string, args ...any) { mistakes = append(mistakes, fmt.Errorf(format, args...)) }
	if !isToken(method) {
		mistake("method %q is none", method)
	}
	if req.Connections < 1 {
		mistake("%d connections: want at least 1", req.Connections)
	}
	if req.Timeout < 0 {
		mistake("timeout %v: want more than 0", req.Timeout)
	}

	host, userAgent, authorized := to.host, "hakaru", to.user == nil
	var fields strings.Builder
	for _, name := range slices.Sorted(maps.Keys(req.Headers)) {
		value := req.Headers[name]
		if !isToken(name) {
			mistake("header name %q is none", name)
			continue
		}
		if strings.ContainsAny(value, "\r\n\x00") {
			mistake("header %s: the value holds a line end", name)
			continue
		}
		switch strings.ToLower(name) {
		case "host":
			host = value
			continue
		case "user-agent":
			userAgent = value
			continue
		case "content-length", "transfer-encoding":
			mistake("header %s: it is set from the body", name)
			continue
		case "connection":
			if !req.KeepAlive || !strings.EqualFold(strings.TrimSpace(value), "keep-alive") {
				mistake("header %s: say keep_alive: true or false instead", name)
				continue
			}
		case "authorization":
			authorized = true
		}
		fmt.Fprintf(&fields, "%s: %s\r\n", name, value)
	}
	if err := errors.Join(mistakes...); err != nil {
		return request{}, err
	}

	var b strings.Builder
	fmt.Fprintf(&b, "%s %s HTTP/1.1\r\nHost: %s\r\n", method, to.uri, host)
	if userAgent != "" {
		fmt.Fprintf(&b, "User-Agent: %s\r\n", userAgent)
	}
	if !authorized {
		password, _ := to.user.Password()
		pair := to.user.Username() + ":" + password
		fmt.Fprintf(&b, "Authorization: Basic %s\r\n", base64.StdEncoding.EncodeToString([]byte(pair)))
	}
	b.WriteString(fields.String())
	if !req.KeepAlive {
		b.WriteString("Connection: close\r\n")
	}
	if req.Body != "" || slices.Contains([]string{"POST", "PUT", "PATCH"}, method) {
		fmt.Fprintf(&b, "Content-Length: %d\r\n", len(req.Body))
	}
	b.WriteString("\r\n")
	b.WriteString(req.Body)

	timeout := req.Timeout
	if timeout == 0 {
		timeout = DefaultTimeout
	}
	return request{
		bytes:   []byte(b.String()),
		head:    method == "HEAD",
		again:   slices.Contains([]string{"GET", "HEAD", "PUT", "DELETE", "OPTIONS", "TRACE"}, method),
		close:   !req.KeepAlive,
		status:  req.Status,
		expect:  []byte(req.Expect),
		timeout: timeout,
	}, nil
}

// isToken reports whether s is a token of RFC 9110 §5.6.2.
func isToken(s string) bool {
	for _, c := range []byte(s) {
		if c <= ' ' || c >= 0x7f || strings.IndexByte(`"(),/:;<=>?@[\]{}`, c) >= 0 {
			return false
		}
	}
	return s != ""
}
