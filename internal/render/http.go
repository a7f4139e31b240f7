package render

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"hakaru"
	"hakaru/internal/hint"
	"hakaru/internal/unit"
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
	var failed []*Mistake
	wrong := func(key, text, why, fix string) {
		failed = append(failed, &Mistake{Path: "load.http." + key, Text: text, Code: "bad-value", Message: fmt.Sprintf("load.http.%s: %s", key, why), Fix: fix})
	}
	period := func(key, text string, otherwise, least time.Duration) time.Duration {
		text = expand(text)
		if text == "" {
			return otherwise
		}
		d, err := unit.ParseDuration(text)
		if err != nil {
			wrong(key, text, err.Error(), hint.Duration(text))
		} else if d < least {
			wrong(key, text, fmt.Sprintf("%s is shorter than %s", text, unit.ExactDuration(least)), "")
		}
		return d
	}
	req := &hakaru.HTTPRequest{URL: expand(h.URL), Method: "GET", Body: expand(h.Body), Expect: expand(h.Expect), Connections: defaultConnections, KeepAlive: true}
	spec := hakaru.LoadSpec{HTTP: req}
	spec.WarmUp = period("warm_up", h.WarmUp, defaultWarmUp, 0)
	spec.Window = period("duration", h.Duration, defaultDuration, hakaru.BucketWidth)
	req.Timeout = period("timeout", h.Timeout, defaultTimeout, time.Millisecond)
	if text := expand(h.Connections); text != "" {
		n, err := strconv.ParseUint(text, 10, 32)
		if err != nil || n == 0 || n > maxConnections {
			wrong("connections", text, fmt.Sprintf("%q is not a whole number from 1 to %d", text, maxConnections), "")
		}
		req.Connections = int(n)
	}
	if text := expand(h.Status); text != "" {
		n, err := strconv.ParseUint(text, 10, 32)
		if err != nil || n < 100 || n > 599 {
			wrong("status", text, fmt.Sprintf("%q is not a status from 100 to 599", text), "")
		}
		req.Status = int(n)
	}
	switch text := expand(h.KeepAlive); text {
	case "", "true", "yes", "on":
	case "false", "no", "off":
		req.KeepAlive = false
	default:
		wrong("keep_alive", text, fmt.Sprintf("%q is neither true nor false", text), "")
	}
	if method := expand(h.Method); method != "" {
		if req.Method = strings.ToUpper(method); !token(method) {
			wrong("method", method, fmt.Sprintf("%q is not a method of HTTP", method), "")
		}
	}
	if !address(req.URL) {
		wrong("url", req.URL, fmt.Sprintf("%q is not a URL that begins with http://", req.URL), "")
	}
	for _, name := range slices.Sorted(maps.Keys(h.Headers)) {
		value := expand(h.Headers[name])
		if strings.ContainsAny(value, "\r\n\x00") {
			wrong("headers."+name, value, "a header is one line", "")
		}
		if !token(name) {
			failed = append(failed, &Mistake{Path: "load.http.headers." + name, Text: name, Code: "bad-header", Message: fmt.Sprintf("%q cannot be the name of a header", name)})
		}
		if req.Headers == nil {
			req.Headers = map[string]string{}
		}
		req.Headers[name] = value
	}
	return spec, failed
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
