package render

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"hakaru"
)

const (
	defaultConnections = 64
	defaultWarmUp      = time.Second
	defaultDuration    = 10 * time.Second
	defaultTimeout     = 10 * time.Second
	maxConnections     = 100_000
)

// Load renders what is sent.
func (r *Rendering) Load() (hakaru.LoadSpec, error) {
	var spec hakaru.LoadSpec
	var wrong []*Mistake
	if p := r.exp.Load.Program; p != nil {
		spec, wrong = Program(p, r.exp.Dir, r.text)
	} else {
		spec, wrong = HTTP(r.exp.Load.HTTP, r.text)
	}
	if len(wrong) > 0 {
		return spec, wrong[0]
	}
	return spec, nil
}

// HTTP renders load over HTTP, and says all that is wrong with it.
func HTTP(h *hakaru.HTTPLoad, expand func(string) string) (hakaru.LoadSpec, []*Mistake) {
	if h == nil {
		return hakaru.LoadSpec{}, nil
	}
	w := &written{path: "load.http", expand: expand, get: func(key string) string {
		return map[string]string{"connections": h.Connections, "warm_up": h.WarmUp, "duration": h.Duration, "timeout": h.Timeout,
			"status": h.Status, "keep_alive": h.KeepAlive, "method": h.Method}[key]
	}}
	req := &hakaru.HTTPRequest{URL: expand(h.URL), Method: "GET", Body: expand(h.Body), Expect: expand(h.Expect), Connections: defaultConnections}
	spec := hakaru.LoadSpec{HTTP: req}
	spec.WarmUp = w.period("warm_up", defaultWarmUp, 0, false)
	spec.Window = w.period("duration", defaultDuration, hakaru.BucketWidth, false)
	req.Timeout = w.period("timeout", defaultTimeout, time.Millisecond, false)
	if n := w.number("connections", maxConnections); n > 0 {
		req.Connections = n
	}
	if text := w.text("status"); text != "" {
		n, err := strconv.ParseUint(text, 10, 32)
		if err != nil || n < 100 || n > 599 {
			w.wrong("status", text, fmt.Sprintf("%q is not a status from 100 to 599", text), "")
		}
		req.Status = int(n)
	}
	req.KeepAlive = w.truth("keep_alive", true)
	if method := w.method(); method != "" {
		req.Method = method
	}
	if !address(req.URL) {
		w.wrong("url", req.URL, fmt.Sprintf("%q is not a URL that begins with http://", req.URL), "")
	}
	for _, name := range slices.Sorted(maps.Keys(h.Headers)) {
		if req.Headers == nil {
			req.Headers = map[string]string{}
		}
		req.Headers[name] = w.header(name, h.Headers[name])
	}
	return spec, w.failed
}

// address reports whether load can be sent to a URL: over HTTP, to a unix socket
// in one of the forms that internal/load reads, or to a leased socket, {s.url},
// whose family may differ from trial to trial.
func address(url string) bool {
	if strings.ContainsAny(url, " \t\r\n") {
		return false
	}
	for _, begin := range []string{"http://", "https://", "http+unix://", "unix:"} {
		if strings.HasPrefix(url, begin) {
			return true
		}
	}
	name, _, closed := strings.Cut(url, "}")
	return closed && strings.HasPrefix(name, "{") && strings.HasSuffix(name, ".url")
}

// token reports whether text is a token of HTTP (RFC 9110, 5.6.2).
func token(text string) bool {
	for i := range len(text) {
		c := text[i]
		letter := c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
		if !letter && strings.IndexByte("!#$%&'*+-.^_`|~", c) < 0 {
			return false
		}
	}
	return text != ""
}
