package render

import (
	"fmt"
	"maps"
	"net/netip"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"hakaru"
	"hakaru/internal/unit"
)

const (
	defaultConnections = 64
	defaultWarmUp      = time.Second
	defaultDuration    = 10 * time.Second
	defaultTimeout     = 10 * time.Second
	maxConnections     = 100_000
	maxThreads         = 1024
	maxRate            = 1e7 // 1/s
	leastSearch        = 5 * time.Second
	maxShare           = 1.50 // of the capacity: above it the service only falls behind
)

const (
	// DefaultShare is the rate of the open loop where a latency is judged and none
	// is written, of the baseline's capacity.
	DefaultShare = 0.70
	// DefaultSearch is how long a search for the capacity takes where no duration
	// is written.
	DefaultSearch = 30 * time.Second
)

// Load renders what is sent.
func (r *Rendering) Load() (hakaru.LoadSpec, error) {
	var spec hakaru.LoadSpec
	var wrong []*Mistake
	if p := r.exp.Load.Program; p != nil {
		spec, wrong = Program(p, r.exp.Dir, r.text)
	} else {
		spec, wrong = HTTP(r.exp.Load.HTTP, r.exp.Dir, r.text)
		if spec.HTTP != nil && r.exp.Goal == hakaru.Capacity {
			h := r.exp.Load.HTTP
			if h.Duration == "" {
				spec.Window = DefaultSearch
			}
			if spec.Window < leastSearch {
				w := written{path: "load.http"}
				w.wrong("duration", h.Duration, fmt.Sprintf("%s is too short to try rates in, with goal: capacity", unit.ExactDuration(spec.Window)), "write at least "+unit.ExactDuration(leastSearch))
				wrong = append(wrong, w.failed...)
			}
			if law := hakaru.ArrivalLaw(r.text(h.Arrival)); law == hakaru.PoissonRate {
				spec.HTTP.Arrival = &hakaru.Arrival{Law: law} // at the rates that are tried
			}
			spec.Capacity = search(r.exp.Limits, spec.Window)
		}
	}
	if len(wrong) > 0 {
		return spec, wrong[0]
	}
	return spec, nil
}

// HTTP renders load over HTTP, and says all that is wrong with it. Paths are
// relative to dir.
func HTTP(h *hakaru.HTTPLoad, dir string, expand func(string) string) (hakaru.LoadSpec, []*Mistake) {
	if h == nil {
		return hakaru.LoadSpec{}, nil
	}
	keys := HTTPTexts(h)
	w := &written{path: "load.http", expand: expand, get: func(key string) string { return *keys[key] }}
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
		w.wrong("url", req.URL, fmt.Sprintf("%q is not a URL that begins with http:// or https://", req.URL), "")
	}
	for _, name := range slices.Sorted(maps.Keys(h.Headers)) {
		if req.Headers == nil {
			req.Headers = map[string]string{}
		}
		req.Headers[name] = w.header(name, h.Headers[name])
	}
	w.sending(req)
	w.connecting(req, h.Sources)
	w.secured(req, dir)
	w.open(&spec)
	return spec, w.failed
}

// HTTPTexts are the single texts of load over HTTP by their keys.
func HTTPTexts(h *hakaru.HTTPLoad) map[string]*string {
	return map[string]*string{
		"url": &h.URL, "method": &h.Method, "body": &h.Body, "connections": &h.Connections, "warm_up": &h.WarmUp,
		"duration": &h.Duration, "timeout": &h.Timeout, "status": &h.Status, "expect": &h.Expect, "keep_alive": &h.KeepAlive,
		"rate": &h.Rate, "arrival": &h.Arrival, "threads": &h.Threads, "precise": &h.Precise, "http_version": &h.Version,
		"engine": &h.Engine, "connect_to": &h.ConnectTo, "family": &h.Family, "insecure": &h.Insecure,
		"server_name": &h.ServerName, "ca": &h.CA, "cert": &h.Cert, "key": &h.Key,
	}
}

// sending reads how the generator works.
func (w *written) sending(req *hakaru.HTTPRequest) {
	req.Threads = w.number("threads", maxThreads)
	if req.Threads > req.Connections {
		w.wrong("threads", w.text("threads"), fmt.Sprintf("%d threads for %d connections: each needs one", req.Threads, req.Connections), "")
	}
	req.Precise = w.truth("precise", false)
	req.Engine = w.choice("engine", "epoll", "goroutines")
	if req.Version = w.choice("http_version", "1.0", "1.1"); req.Version == "1.1" {
		req.Version = ""
	}
}

// connecting reads what is connected to, and from where.
func (w *written) connecting(req *hakaru.HTTPRequest, sources []string) {
	if req.ConnectTo = w.text("connect_to"); req.ConnectTo != "" && !strings.Contains(req.ConnectTo, "{") {
		if host, port, found := cutLast(req.ConnectTo, ":"); strings.ContainsAny(req.ConnectTo, " \t\r\n") || !found || port == "" || host == "" {
			w.wrong("connect_to", req.ConnectTo, fmt.Sprintf("%q is neither HOST:PORT nor unix:PATH", req.ConnectTo), "")
		}
	}
	if family := w.choice("family", "4", "6"); family != "" {
		req.Family = int(family[0] - '0')
	}
	for _, source := range sources {
		text := w.expand(source)
		if _, err := netip.ParseAddr(text); err != nil {
			w.wrong("sources", text, fmt.Sprintf("%q is not an IP address of this machine", text), "")
		}
		req.Sources = append(req.Sources, text)
	}
}

func cutLast(text, sep string) (before, after string, found bool) {
	if i := strings.LastIndex(text, sep); i >= 0 {
		return text[:i], text[i+len(sep):], true
	}
	return text, "", false
}

// secured reads how connections of https are made.
func (w *written) secured(req *hakaru.HTTPRequest, dir string) {
	file := func(key string) string {
		if text := w.text(key); text != "" && !path.IsAbs(text) {
			return path.Join(dir, text)
		} else {
			return text
		}
	}
	tls := hakaru.TLS{ServerName: w.text("server_name"), Insecure: w.truth("insecure", false), CA: file("ca"), Cert: file("cert"), Key: file("key")}
	if tls == (hakaru.TLS{}) {
		return
	}
	req.TLS = &tls
	for _, pair := range [][2]string{{"cert", "key"}, {"key", "cert"}} {
		if w.text(pair[0]) != "" && w.text(pair[1]) == "" {
			w.wrong(pair[0], w.text(pair[0]), fmt.Sprintf("%s is of no use without %s", pair[0], pair[1]), "")
		}
	}
	if strings.HasPrefix(req.URL, "http://") {
		for _, key := range []string{"server_name", "insecure", "ca", "cert", "key"} {
			if text := w.text(key); text != "" {
				w.wrong(key, text, key+" is about https, and the URL begins with http://", "")
				return
			}
		}
	}
}

// open reads the rate: all of the load is an open loop at it, or there is another
// loop after the closed one, whose rate is a share of what is not known here.
func (w *written) open(spec *hakaru.LoadSpec) {
	law := hakaru.ArrivalLaw(w.choice("arrival", string(hakaru.ConstantRate), string(hakaru.PoissonRate)))
	text := w.text("rate")
	if text == "" {
		return
	}
	if law == "" {
		law = hakaru.ConstantRate
	}
	if strings.HasSuffix(text, "%") {
		share, err := unit.ParseShare(text)
		switch {
		case err != nil:
			w.wrong("rate", text, err.Error(), "")
		case share <= 0 || share >= maxShare:
			w.wrong("rate", text, fmt.Sprintf("%s of the capacity is to be above 0 %% and below %s", text, unit.Share(maxShare)), "")
		}
		spec.Open = &hakaru.OpenSpec{Arrival: hakaru.Arrival{Law: law}, Share: share, WarmUp: spec.WarmUp, Window: spec.Window}
		return
	}
	rate, err := unit.ParseRate(text)
	switch number, bare := strconv.ParseFloat(text, 64); {
	case err == nil && rate > 0 && rate <= maxRate:
	case bare == nil && number > 0:
		w.wrong("rate", text, fmt.Sprintf("%q is not a rate", text), fmt.Sprintf("write %s/s, or a share of the baseline's capacity: %s%%", text, unit.Value(DefaultShare*100, "1")))
	case err != nil:
		w.wrong("rate", text, fmt.Sprintf("%q is neither a rate, such as 2000/s, nor a share of the baseline's capacity, such as 70%%", text), "")
	default:
		w.wrong("rate", text, fmt.Sprintf("%s is to be above 0/s and at most %s", text, unit.Rate(maxRate)), "")
	}
	spec.HTTP.Arrival = &hakaru.Arrival{Law: law, Rate: rate}
}

// search is what a search for the capacity is asked. Each rate is held for a
// twentieth of its time, so that some fifteen are tried, after as much as a service
// needs to have answered what the rate before left with it.
func search(limits []hakaru.Limit, window time.Duration) *hakaru.CapacitySpec {
	spec := hakaru.CapacitySpec{
		Settle: hakaru.BucketWidth,
		Step:   max(time.Second, (window / 20).Round(hakaru.BucketWidth)),
	}
	spec.Steps = max(1, int(window/(spec.Settle+spec.Step)))
	for _, l := range limits {
		if c, is := Condition(l); is {
			spec.Holds = append(spec.Holds, c)
		}
	}
	return &spec
}

// Condition is a limit as a condition that a capacity holds; false where it is
// none.
func Condition(l hakaru.Limit) (hakaru.Condition, bool) {
	c := hakaru.Condition{Metric: l.Metric, Bound: l.Bound, AtLeast: l.AtLeast}
	switch l.Metric {
	case hakaru.P50:
		c.Quantile = 0.50
	case hakaru.P99:
		c.Quantile = 0.99
	case hakaru.Errors:
	default:
		return hakaru.Condition{}, false
	}
	return c, !l.AtLeast
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
