package http1

import (
	"cmp"
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"hakaru"
	"hakaru/internal/endpoint"
)

// DefaultTimeout is how long one request may take where nothing else is said.
const DefaultTimeout = 10 * time.Second

// Request is what is sent and what is expected, made ready before the start.
type Request struct {
	Bytes   []byte
	Head    bool // the method is HEAD
	Again   bool // idempotent: may be sent twice (RFC 9110 §9.2.2)
	Close   bool // one connection each
	Status  int  // expected; 0: any 2xx
	Expect  []byte
	Timeout time.Duration
}

// Build writes the bytes of the one request that is sent over and over.
// All mistakes in it are reported.
func Build(req hakaru.HTTPRequest, to endpoint.Endpoint) (Request, error) {
	method := req.Method
	if method == "" {
		method = "GET"
	}
	var mistakes []error
	mistake := func(format string, args ...any) { mistakes = append(mistakes, fmt.Errorf(format, args...)) }
	if !isToken(method) {
		mistake("method %q is none", method)
	}
	if method == "CONNECT" { // its target is an address, and its answer has no end
		mistake("method CONNECT opens a tunnel: want one that is answered")
	}
	version := cmp.Or(req.Version, "1.1")
	if version != "1.0" && version != "1.1" {
		mistake("HTTP version %q: want 1.0 or 1.1", version)
	}
	if req.Connections < 1 {
		mistake("%d connections: want at least 1", req.Connections)
	}
	if req.Timeout < 0 {
		mistake("timeout %v: want more than 0", req.Timeout)
	}

	host, userAgent, authorized, said := to.Host, "hakaru", to.User == nil, false
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
			said = true
		case "authorization":
			authorized = true
		}
		fmt.Fprintf(&fields, "%s: %s\r\n", name, value)
	}
	if err := errors.Join(mistakes...); err != nil {
		return Request{}, err
	}

	var b strings.Builder
	fmt.Fprintf(&b, "%s %s HTTP/%s\r\nHost: %s\r\n", method, to.URI, version, host)
	if userAgent != "" {
		fmt.Fprintf(&b, "User-Agent: %s\r\n", userAgent)
	}
	if !authorized {
		password, _ := to.User.Password()
		pair := to.User.Username() + ":" + password
		fmt.Fprintf(&b, "Authorization: Basic %s\r\n", base64.StdEncoding.EncodeToString([]byte(pair)))
	}
	b.WriteString(fields.String())
	switch {
	case !req.KeepAlive:
		b.WriteString("Connection: close\r\n")
	case version == "1.0" && !said:
		b.WriteString("Connection: keep-alive\r\n")
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
	return Request{
		Bytes:   []byte(b.String()),
		Head:    method == "HEAD",
		Again:   slices.Contains([]string{"GET", "HEAD", "PUT", "DELETE", "OPTIONS", "TRACE"}, method),
		Close:   !req.KeepAlive,
		Status:  req.Status,
		Expect:  []byte(req.Expect),
		Timeout: timeout,
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
