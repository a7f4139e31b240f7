package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"hakaru"
	"hakaru/internal/capacity"
	"hakaru/internal/condition"
	"hakaru/internal/endpoint"
	"hakaru/internal/http1"
	"hakaru/internal/load"
	"hakaru/internal/loadreport"
	"hakaru/internal/unit"
)

const (
	loadConnections = 64
	loadDuration    = 10 * time.Second
	// endless is the window of a load that a number of requests ends.
	endless = 1000 * time.Hour
	// Of a search for the capacity: at most so many rates, each held for so long
	// after a moment that is left out.
	searchSteps  = 24
	searchSettle = 500 * time.Millisecond
	searchStep   = 2 * time.Second
	// vain is how long a load goes on of which not one connection was accepted:
	// there is nothing to learn from the rest of it.
	vain = time.Second
)

// loadFlags are those of hakaru load, as written.
type loadFlags struct {
	connections  int
	requests     uint64
	duration     time.Duration
	warmUp       time.Duration
	threads      int
	rate         string
	arrival      string
	seed         uint64
	ramp, steps  string
	precise      bool
	method       string
	headers      []string
	host         string
	body         string
	old, noReuse bool // HTTP/1.0, no keep-alive
	timeout      time.Duration
	status       int
	expect       string
	tls          hakaru.TLS
	connectTo    string
	four, six    bool
	sources      []string
	engine       string
	thresholds   []string
	capacity     string
	format       string
	hdrLog       string
	noLive       bool
}

func (d *door) loadCommand() *cobra.Command {
	var f loadFlags
	cmd := &cobra.Command{
		Use:   "load URL",
		Short: "Send load to a service, and tell throughput, latencies and errors",
		Long: `Send load to a service that is up, and tell throughput, latencies, errors, and
what there is to doubt about them. Nothing is started, compared or stored.

Without a rate the loop is closed: each of the connections sends its next request
when the last one is answered. With --rate, --ramp or --steps it is open: requests
are due by the clock, whatever the service does, and latency counts from when a
request was due. docs/load.md says which of the two answers which question.

The exit code is 0 only if the load did what was asked and all answers were
right, and 3 after a bad answer, none at all, a rate that was not reached, a
threshold that was missed; 1 after another error, 2 after a mistake on the
command line, 128 and the signal's number after a signal.`,
		Example: `  hakaru load http://localhost:8080/                 # 64 connections, 10 s
  hakaru load -c 8 -n 100000 localhost:8080/page      # so many requests
  hakaru load -r 2000/s -d 30s --threshold 'p99<50ms,errors<0.1%' http://localhost:8080/
  hakaru load -X POST -H 'Content-Type: application/json' --body @order.json --status 201 http://localhost:8080/orders
  hakaru load --find-capacity 'p99<50ms,errors<0.1%' unix:/run/app.sock:/page`,
		Args: func(_ *cobra.Command, args []string) error {
			switch len(args) {
			case 0:
				return usagef("hakaru load http://localhost:8080/", "which URL is to be loaded?")
			case 1:
				return nil
			}
			return usagef("quote a URL that holds blanks or &", "one URL at a time, got %d: %s", len(args), strings.Join(args, " "))
		},
		RunE: func(cmd *cobra.Command, args []string) error { return d.load(cmd, &f, args[0]) },
	}
	f.register(cmd)
	cmd.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		next := nearFlag(cmd, err)
		var unknown *pflag.NotExistError
		if errors.As(err, &unknown) {
			if meant, ok := elsewhereFlags[unknown.GetSpecifiedName()]; ok {
				next = meant
			}
		}
		return &usageError{err: err, hint: next}
	})
	return cmd
}

// elsewhereFlags are flags of ab, wrk, hey, vegeta and curl, and what they are here.
var elsewhereFlags = map[string]string{
	"k": "connections are kept alive anyway; curl's -k is --insecure", "t": "threads are --threads N, the time is -d 10s",
	"z": "write -d 10s", "R": "write -r 2000/s", "q": "write -r 2000/s for all connections together", "m": "write -X METHOD",
	"p": "write --body @FILE", "T": "write -H 'Content-Type: …'", "C": "write -H 'Cookie: …'", "A": "write -H 'Authorization: …'",
	"a": "write -H 'Authorization: …'", "u": "write -H 'Authorization: …'", "D": "write --body @FILE", "b": "write --body TEXT",
	"data": "write --body TEXT or --body @FILE", "latency": "latencies are told anyway", "L": "latencies are told anyway; redirects are not followed",
	"body-file": "write --body @FILE", "workers": "write -c N", "concurrency": "write -c N",
	"cacert": "write --ca FILE", "unix-socket": "write unix:SOCKET:/PATH as the URL, or --connect-to unix:SOCKET",
}

func (f *loadFlags) register(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.SortFlags = false
	span := func(to *time.Duration, name, short string, value time.Duration, usage string) {
		*to = value
		flags.VarP((*spanFlag)(to), name, short, usage)
	}
	flags.IntVarP(&f.connections, "connections", "c", loadConnections, "keep `N` connections busy")
	span(&f.duration, "duration", "d", 0, "measure for so long (default 10s, where -n and --steps do not end it)")
	flags.Uint64VarP(&f.requests, "requests", "n", 0, "end when `N` requests are answered")
	span(&f.warmUp, "warm-up", "", 0, "send for so long before measuring")
	flags.StringVarP(&f.rate, "rate", "r", "", "open loop: `RATE` requests a second, 2000/s")
	flags.StringVar(&f.arrival, "arrival", "constant", "`LAW` of --rate: constant, or poisson: at random, as independent clients come")
	flags.Uint64Var(&f.seed, "seed", 1, "`N` for --arrival poisson; the same seed gives the same times")
	flags.StringVar(&f.ramp, "ramp", "", "open loop: `FROM..TO`, evenly from one rate to another over the duration, 100/s..2000/s")
	flags.StringVar(&f.steps, "steps", "", "open loop: `STEPS`, one rate after another, 100/s:10s,200/s:10s")
	flags.BoolVar(&f.precise, "precise", false, "open loop: wait for the last 50 µs on the CPU, to send closer to when requests are due")
	flags.StringVar(&f.capacity, "find-capacity", "", "search for the highest rate that holds `BOUNDS`, 'p99<50ms,errors<0.1%'")

	flags.StringVarP(&f.method, "method", "X", "", "the request's `METHOD` (default GET, with a body POST)")
	flags.StringArrayVarP(&f.headers, "header", "H", nil, "a `HEADER`, 'Name: value' (repeatable)")
	flags.StringVar(&f.host, "host", "", "the Host header, `NAME` (default: the URL's)")
	flags.StringVar(&f.body, "body", "", "the request's body: `TEXT`, @FILE, or @- for the standard input")
	flags.BoolVar(&f.old, "http1.0", false, "speak HTTP/1.0")
	flags.BoolVar(&f.noReuse, "no-keep-alive", false, "open a new connection for each request")
	span(&f.timeout, "timeout", "", http1.DefaultTimeout, "of one request; a later answer is a bad one")
	flags.IntVar(&f.status, "status", 0, "the right `STATUS` (default any 2xx)")
	flags.StringVar(&f.expect, "expect", "", "`TEXT` that the body of a right answer contains")

	flags.BoolVar(&f.tls.Insecure, "insecure", false, "https: take any certificate")
	flags.StringVar(&f.tls.ServerName, "server-name", "", "https: the `NAME` to send and to check (default: the URL's host)")
	flags.StringVar(&f.tls.CA, "ca", "", "https: `FILE` (PEM) with whose certificates are good (default: the system's)")
	flags.StringVar(&f.tls.Cert, "cert", "", "https: `FILE` (PEM) with the client certificate to show")
	flags.StringVar(&f.tls.Key, "key", "", "https: `FILE` (PEM) with its key (default: it is in the file of --cert)")

	flags.StringVar(&f.connectTo, "connect-to", "", "connect to `HOST:PORT` or unix:PATH instead of the URL's host")
	flags.BoolVarP(&f.four, "ipv4", "4", false, "only IPv4 addresses of the host")
	flags.BoolVarP(&f.six, "ipv6", "6", false, "only IPv6 addresses of the host")
	flags.StringArrayVar(&f.sources, "source", nil, "connect from this local `ADDRESS` (repeatable: in turn)")
	flags.IntVar(&f.threads, "threads", 0, "send from `N` threads (default: as CPUs and connections suggest)")
	flags.StringVar(&f.engine, "engine", "", "`ENGINE`: epoll or goroutines (default: the one that fits)")

	flags.StringArrayVar(&f.thresholds, "threshold", nil, "`BOUNDS` that the figures are to hold, 'p99<200ms,errors<0.1%,throughput>1000/s' (repeatable)")
	flags.StringVar(&f.format, "format", "text", "`FORMAT` of the standard output: text, json, or csv: a line for each second")
	flags.StringVar(&f.hdrLog, "hdr-log", "", "write an HdrHistogram log to `FILE`, a line for each second")
	flags.BoolVar(&f.noLive, "no-live", false, "no line on the terminal while the load runs")
}

// spanFlag reads a duration as hakaru's files do.
type spanFlag time.Duration

func (s *spanFlag) String() string {
	if *s == 0 {
		return "" // no default to tell
	}
	return unit.ExactDuration(time.Duration(*s))
}
func (s *spanFlag) Type() string { return "TIME" }
func (s *spanFlag) Set(text string) error {
	v, err := unit.ParseDuration(text)
	*s = spanFlag(v)
	return err
}

// loadPlan is a load that is ready to be sent.
type loadPlan struct {
	loadreport.Load
	format string
}

// loadFormats are those of hakaru load.
var loadFormats = []string{"text", "json", "csv"}

// loadPlan makes a load of the flags, or says what is wrong with them.
func (d *door) loadPlan(flags *pflag.FlagSet, f *loadFlags, address string) (*loadPlan, error) {
	if !slices.Contains(loadFormats, f.format) {
		return nil, usagef("the formats are: "+strings.Join(loadFormats, ", "), "there is no format %q", f.format)
	}
	p := &loadPlan{format: f.format}
	for _, step := range []func(*pflag.FlagSet, *loadFlags, *loadPlan) error{
		func(flags *pflag.FlagSet, f *loadFlags, p *loadPlan) error { return whereTo(flags, f, p, address) },
		howLong, whenDue, d.whatIsSent, bounds,
	} {
		if err := step(flags, f, p); err != nil {
			return nil, err
		}
	}
	to, err := endpoint.Parse(p.Request.URL)
	if err != nil {
		return nil, usagef("write it as http://HOST:PORT/PATH, or unix:SOCKET:/PATH", "%w", err)
	}
	if host, err := netip.ParseAddr(to.Hostname()); err == nil && (p.Request.Family == 4 && !host.Unmap().Is4() || p.Request.Family == 6 && host.Unmap().Is4()) {
		return nil, usagef("leave it out", "-%d and the address %s exclude each other", p.Request.Family, host)
	}
	if to.TLS && p.Request.Engine == "epoll" {
		return nil, usagef("leave --engine out", "the engine epoll does not speak TLS")
	}
	if _, err := http1.Build(p.Request, to); err != nil {
		return nil, usagef("hakaru load --help lists the flags", "%w", err)
	}
	return p, nil
}

// withScheme adds what people leave out: the scheme of a URL, and of a socket's path.
func withScheme(address string) string {
	for _, scheme := range []string{"http", "https"} {
		for _, slip := range []string{scheme + ":/", scheme + "//", scheme + ":"} {
			rest, slipped := strings.CutPrefix(address, slip)
			if _, err := strconv.ParseUint(strings.SplitN(rest, "/", 2)[0], 10, 16); slipped && err != nil && !strings.HasPrefix(rest, "/") {
				return scheme + "://" + rest
			}
		}
	}
	switch {
	case strings.Contains(address, "://"), strings.HasPrefix(address, "unix:"):
		return address
	case strings.HasPrefix(address, "/"):
		return "unix:" + address
	}
	return "http://" + address
}

// whereTo is what is said about connections.
func whereTo(flags *pflag.FlagSet, f *loadFlags, p *loadPlan, address string) error {
	q := &p.Request
	q.URL = withScheme(address)
	q.Connections, q.Threads, q.Engine, q.ConnectTo, q.Sources = f.connections, f.threads, f.engine, f.connectTo, f.sources
	q.KeepAlive = !f.noReuse
	switch {
	case f.four && f.six:
		return usagef("leave both out to take whichever answers", "-4 and -6 exclude each other")
	case f.four:
		q.Family = 4
	case f.six:
		q.Family = 6
	}
	if f.connections < 1 {
		return usagef("write -c 64", "-c %d: want at least 1 connection", f.connections)
	}
	if f.threads < 0 {
		return usagef("leave it out for as many as are good", "--threads %d: want at least 1", f.threads)
	}
	if f.engine != "" && f.engine != "epoll" && f.engine != "goroutines" {
		return usagef("the engines are: epoll, goroutines", "there is no engine %q", f.engine)
	}
	for _, source := range f.sources {
		if _, err := netip.ParseAddr(source); err != nil {
			return usagef("write an address of this machine, such as 127.0.0.2", "--source %s is no IP address", source)
		}
	}
	if network, to := endpoint.Address(f.connectTo); f.connectTo != "" && network == "tcp" {
		if host, port, err := net.SplitHostPort(to); err != nil || host == "" || port == "" {
			return usagef("write --connect-to HOST:PORT, or unix:SOCKET", "--connect-to %s is no address to connect to", f.connectTo)
		}
	}
	var used []string
	for _, name := range []string{"insecure", "server-name", "ca", "cert", "key"} {
		if flags.Changed(name) {
			used = append(used, "--"+name)
		}
	}
	if len(used) == 0 {
		return nil
	}
	if !strings.HasPrefix(q.URL, "https://") {
		return usagef("write https://"+strings.TrimPrefix(address, "http://"), "%s for https, and %s is not", are(used), address)
	}
	if f.tls.Key != "" && f.tls.Cert == "" {
		return usagef("name the certificate with --cert FILE", "no --cert beside the file of the key")
	}
	q.TLS = &f.tls
	if f.tls.Cert != "" && f.tls.Key == "" {
		f.tls.Key = f.tls.Cert
	}
	return nil
}

// howLong is what ends the load.
func howLong(flags *pflag.FlagSet, f *loadFlags, p *loadPlan) error {
	w, q := &p.Window, &p.Request
	q.Requests = f.requests
	w.WarmUp = f.warmUp
	counted, timed := flags.Changed("requests"), flags.Changed("duration")
	switch {
	case counted && f.requests == 0:
		return usagef("write -n 1000", "-n 0: want at least 1 request")
	case timed && f.duration <= 0:
		return usagef("write -d 10s", "-d 0: want a time above 0")
	case counted && f.warmUp > 0:
		return usagef("write -d 10s instead of -n, or leave --warm-up out", "--warm-up is for a load that a time ends: of -n requests some would be measured and some not")
	case counted && uint64(f.connections) > f.requests && flags.Changed("connections"):
		return usagef(fmt.Sprintf("write -c %d, or more requests", f.requests), "-c %d connections for -n %d requests: some would have none", f.connections, f.requests)
	case counted && uint64(f.connections) > f.requests:
		q.Connections = int(f.requests)
	}
	switch {
	case timed:
		w.Length = f.duration
	case !counted:
		w.Length = loadDuration
	}
	return nil
}

// whenDue is the law of an open loop.
func whenDue(flags *pflag.FlagSet, f *loadFlags, p *loadPlan) error {
	var laws []string
	for _, name := range []string{"rate", "ramp", "steps", "find-capacity"} {
		if flags.Changed(name) {
			laws = append(laws, "--"+name)
		}
	}
	if len(laws) > 1 {
		return usagef("choose one of them", "%s exclude each other", strings.Join(laws, " and "))
	}
	for _, name := range []string{"arrival", "seed"} {
		if flags.Changed(name) && f.rate == "" && f.capacity == "" {
			return usagef("write -r 2000/s", "--%s is of an open loop with a rate, and there is no --rate", name)
		}
	}
	if f.precise && len(laws) == 0 {
		return usagef("write -r 2000/s, or leave --precise out", "--precise is of an open loop: in a closed one no request has a time at which it is due")
	}
	p.Request.Precise = f.precise
	if len(laws) == 0 {
		return nil
	}
	a := &hakaru.Arrival{Law: hakaru.ArrivalLaw(f.arrival)}
	switch a.Law {
	case hakaru.PoissonRate:
		a.Seed = f.seed
	case hakaru.ConstantRate:
		if flags.Changed("seed") {
			return usagef("write --arrival poisson, or leave --seed out", "--seed is of --arrival poisson: a constant rate leaves nothing to chance")
		}
	default:
		return usagef("the laws are: constant, poisson", "there is no arrival %q", f.arrival)
	}
	if laws[0] == "--find-capacity" {
		p.Request.Arrival = a // of each step, with its own rate
		return nil
	}
	if laws[0] != "--rate" && f.warmUp > 0 {
		return usagef("let it begin with a lower rate", "--warm-up and %s exclude each other: the law begins with the load", laws[0])
	}
	if laws[0] != "--rate" && f.requests > 0 {
		return usagef("leave -n out", "-n and %s exclude each other: the law says how many requests there are", laws[0])
	}
	var err error
	switch laws[0] {
	case "--rate":
		if a.Rate, err = parseRate(f.rate); err != nil {
			return usagef("write -r 2000/s", "--rate: %w", err)
		}
		if a.Rate == 0 {
			return usagef("write -r 2000/s", "--rate %s: want a rate above 0", f.rate)
		}
		p.Request.Arrival = a
	case "--ramp":
		if p.Request.Arrival, err = parseRamp(f.ramp, p.Window.Length); err != nil {
			return usagef("write --ramp 100/s..2000/s", "--ramp %s: %w", f.ramp, err)
		}
	case "--steps":
		if flags.Changed("duration") {
			return usagef("leave -d out", "-d and --steps exclude each other: the steps say how long they are")
		}
		if p.Request.Arrival, err = parseSteps(f.steps); err != nil {
			return usagef("write --steps '100/s:10s,200/s:10s'", "--steps %s: %w", f.steps, err)
		}
		p.Window.Length = 0
		for _, s := range p.Request.Arrival.Steps {
			p.Window.Length += s.For
		}
	}
	return nil
}

// parseRate reads a rate as people write it in haste: 2000, 2000/s, 1.5k, 1k/s,
// 600/min.
func parseRate(text string) (float64, error) {
	number, per, slash := strings.Cut(strings.TrimSpace(text), "/")
	number = strings.TrimSpace(number)
	factor := 1.0
	for suffix, f := range map[string]float64{"k": 1e3, "K": 1e3, "M": 1e6} {
		if rest, ok := strings.CutSuffix(number, suffix); ok {
			number, factor = rest, f
		}
	}
	if !slash {
		per = "s"
	}
	rate, err := unit.ParseRate(number + "/" + per)
	if err != nil {
		return 0, fmt.Errorf("%q is not a rate: write a number per time, such as 2000/s", text)
	}
	return rate * factor, nil
}

func parseRamp(text string, over time.Duration) (*hakaru.Arrival, error) {
	from, to, ok := strings.Cut(text, "..")
	if !ok {
		return nil, errors.New("want two rates with .. between them")
	}
	a := &hakaru.Arrival{Law: hakaru.RampRate, Over: over}
	var err error
	if a.Rate, err = parseRate(from); err != nil {
		return nil, err
	}
	if a.To, err = parseRate(to); err != nil {
		return nil, err
	}
	if a.Rate+a.To == 0 {
		return nil, errors.New("one of the two is to be above 0")
	}
	return a, nil
}

func parseSteps(text string) (*hakaru.Arrival, error) {
	a := &hakaru.Arrival{Law: hakaru.StepRates}
	some := false
	for part := range strings.SplitSeq(text, ",") {
		rate, span, ok := strings.Cut(part, ":")
		if !ok {
			return nil, fmt.Errorf("%q is no step: want a rate, a colon and a time", strings.TrimSpace(part))
		}
		var s hakaru.RateStep
		var err error
		if s.Rate, err = parseRate(rate); err != nil {
			return nil, err
		}
		if s.For, err = unit.ParseDuration(span); err != nil {
			return nil, err
		}
		if s.For <= 0 {
			return nil, fmt.Errorf("%q: want a time above 0", strings.TrimSpace(part))
		}
		some = some || s.Rate > 0
		a.Steps = append(a.Steps, s)
	}
	if !some {
		return nil, errors.New("one of the rates is to be above 0")
	}
	return a, nil
}

// whatIsSent is the request, and what a right answer is.
func (d *door) whatIsSent(flags *pflag.FlagSet, f *loadFlags, p *loadPlan) error {
	q := &p.Request
	q.Timeout, q.Status, q.Expect = f.timeout, f.status, f.expect
	if f.timeout <= 0 {
		return usagef("write --timeout 10s", "--timeout 0: want a time above 0")
	}
	if flags.Changed("status") && (f.status < 200 || f.status > 599) {
		return usagef("leave it out for any 2xx", "--status %d: want a status from 200 to 599", f.status)
	}
	if f.old {
		q.Version = "1.0"
	}
	q.Headers = map[string]string{}
	seen := map[string]string{}
	for _, h := range f.headers {
		name, value, ok := strings.Cut(h, ":")
		name, value = strings.TrimSpace(name), strings.TrimSpace(value)
		if !ok || name == "" {
			return usagef("write -H 'Name: value'", "-H %q: want a name, a colon and a value", h)
		}
		if before, twice := seen[strings.ToLower(name)]; twice {
			return usagef("join the values with a comma", "-H: %s is given twice, also as %s", name, before)
		}
		seen[strings.ToLower(name)] = name
		q.Headers[name] = value
	}
	if f.host != "" {
		if _, twice := seen["host"]; twice {
			return usagef("leave one of them out", "--host and -H 'Host: …' exclude each other")
		}
		q.Headers["Host"] = f.host
	}
	q.Method = f.method
	if q.Method == "" {
		q.Method = "GET"
		if flags.Changed("body") {
			q.Method = "POST"
		}
	}
	var err error
	q.Body, err = d.body(f.body)
	return err
}

// body is what --body stands for.
func (d *door) body(text string) (string, error) {
	name, isFile := strings.CutPrefix(text, "@")
	if !isFile {
		return text, nil
	}
	var content []byte
	var err error
	switch name {
	case "":
		return "", usagef("write @- for the standard input", "--body @: which file?")
	case "-":
		content, err = io.ReadAll(d.stdin)
	default:
		content, err = os.ReadFile(name)
	}
	if err != nil {
		return "", fmt.Errorf("read the body: %w", err)
	}
	return string(content), nil
}

// bounds are thresholds, and those of a search for the capacity.
func bounds(flags *pflag.FlagSet, f *loadFlags, p *loadPlan) error {
	read := func(flag, text string) ([]hakaru.Condition, error) {
		conditions, err := condition.Parse(text)
		if err == nil {
			return conditions, nil
		}
		next := ""
		var advice hinter
		if errors.As(err, &advice) {
			next = advice.Hint()
		}
		return nil, usagef(next, "%s: %w", flag, err)
	}
	var err error
	if len(f.thresholds) > 0 {
		if p.Conditions, err = read("--threshold", strings.Join(f.thresholds, ",")); err != nil {
			return err
		}
	}
	if !flags.Changed("find-capacity") {
		return nil
	}
	spec := &hakaru.CapacitySpec{Steps: searchSteps, Settle: searchSettle, Step: searchStep}
	p.Search = spec
	if spec.Holds, err = read("--find-capacity", f.capacity); err != nil {
		return err
	}
	if err := capacity.Valid(*spec); err != nil {
		return usagef("write --find-capacity 'p99<50ms,errors<0.1%'", "--find-capacity: %w", err)
	}
	if flags.Changed("duration") {
		// About two dozen steps with what lies between them are to fit.
		spec.Step = min(max((f.duration/36).Truncate(hakaru.BucketWidth), hakaru.BucketWidth), time.Minute)
		if least := 4 * (spec.Settle + spec.Step); f.duration < least {
			return usagef("write -d 60s, or leave it out", "-d %s is too short to search in: want at least %s", unit.ExactDuration(f.duration), unit.ExactDuration(least))
		}
	} else {
		p.Window.Length = 0
	}
	for _, name := range []string{"requests", "warm-up", "threshold", "hdr-log"} {
		if flags.Changed(name) {
			return usagef("leave --"+name+" out", "--%s and --find-capacity exclude each other: a search is many loads, each with its own beginning", name)
		}
	}
	if f.format == "csv" {
		return usagef("write --format json", "--format csv and --find-capacity exclude each other: a search is many loads")
	}
	return nil
}

// load is the command.
func (d *door) load(cmd *cobra.Command, f *loadFlags, address string) error {
	p, err := d.loadPlan(cmd.Flags(), f, address)
	if err != nil {
		return err
	}
	result, err := d.send(cmd.Context(), p, f)
	if result == nil {
		return err
	}
	if printErr := d.printLoad(result, p.format); printErr != nil {
		return printErr
	}
	if err != nil {
		return err
	}
	if len(result.Failures) > 0 {
		return &answerNo{why: strings.Join(result.Failures, "; ")}
	}
	return nil
}

// errVain ends a load of which nothing comes.
var errVain = errors.New("nobody takes a connection")

// send sends the load. The result is there, beside an error, where anything was
// measured.
func (d *door) send(ctx context.Context, p *loadPlan, f *loadFlags) (result *loadreport.Result, err error) {
	seconds := &loadreport.Seconds{}
	p.Started = time.Now()
	if f.hdrLog != "" {
		// What is in the file is kept until there is something to write.
		file, openErr := os.OpenFile(f.hdrLog, os.O_WRONLY|os.O_CREATE, 0o666)
		if openErr != nil {
			return nil, fmt.Errorf("write the HDR log: %w", openErr)
		}
		out := bufio.NewWriter(file)
		defer func() {
			if closeErr := errors.Join(out.Flush(), file.Close()); err == nil && closeErr != nil {
				err = fmt.Errorf("write the HDR log: %w", closeErr)
			}
		}()
		var line func(loadreport.Second) error
		seconds.To = append(seconds.To, func(s loadreport.Second) error {
			if line == nil { // its head says when the load began
				if info, statErr := file.Stat(); statErr == nil && info.Mode().IsRegular() {
					if cutErr := file.Truncate(0); cutErr != nil {
						return fmt.Errorf("write the HDR log: %w", cutErr)
					}
				}
				var headErr error
				if line, headErr = loadreport.HDRLog(out, p.Started); headErr != nil {
					return fmt.Errorf("write the HDR log: %w", headErr)
				}
			}
			return line(s)
		})
	}
	if p.format == "csv" {
		line, err := loadreport.CSV(d.stdout)
		if err != nil {
			return nil, err
		}
		seconds.To = append(seconds.To, line)
	}
	live := newProgress(d.stderr, nil)
	live.live = live.live && !f.noLive
	seconds.To = append(seconds.To, func(s loadreport.Second) error {
		live.draw("hakaru: " + s.Live())
		return nil
	})
	defer live.clear()
	seconds.Load = p.Load

	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	window := p.Window
	if p.Search != nil {
		return d.search(ctx, p, window, live)
	}
	if window.Length == 0 {
		window.Length = endless
	}
	var good uint64
	begun, stood := false, false
	report, err := load.Stream(ctx, p.Request, window, func(b hakaru.Bucket) {
		if !begun { // the first bucket has just ended
			begun, p.Started = true, time.Now().Add(-hakaru.BucketWidth)
		}
		seconds.Add(b)
		good += b.Good
		stood = stood || good > 0 || !onlyConnects(b.Kinds)
		if !stood && b.At >= p.Window.WarmUp && b.At+hakaru.BucketWidth >= p.Window.WarmUp+vain {
			cancel(errVain)
		}
	})
	live.clear()
	if report.Tally == nil {
		return nil, err
	}
	if secondsErr := seconds.End(report.Tally.Took); err == nil {
		err = secondsErr
	}
	return p.ended(report, err)
}

// search looks for the capacity.
func (d *door) search(ctx context.Context, p *loadPlan, window hakaru.Window, live *progress) (*loadreport.Result, error) {
	steps := 0
	report, err := load.FindCapacity(ctx, p.Request, *p.Search, window, func(b hakaru.Bucket) {
		live.draw(fmt.Sprintf("hakaru: step %d of at most %d  %s", steps+1, p.Search.Steps, unit.Rate(float64(b.Good)/hakaru.BucketWidth.Seconds())))
	}, func(s hakaru.CapacityStep) {
		steps++
		if live.live {
			live.say("%s", loadreport.StepLine(s))
		}
	})
	live.clear()
	if report.Tally == nil && report.Capacity == nil {
		return nil, err
	}
	return p.ended(report, err)
}

// ended makes a result of what came back. That nobody was there to take a
// connection is no error: it is the answer.
func (p *loadPlan) ended(report hakaru.LoadReport, err error) (*loadreport.Result, error) {
	if errors.Is(err, errVain) {
		p.Stopped, err = fmt.Sprintf("stopped after %s, in which nobody took a connection", unit.Duration(vain)), nil
	}
	var cut *interrupted
	if errors.As(err, &cut) {
		p.Stopped = cut.Error()
	}
	p.Report = report
	result, readErr := loadreport.Read(p.Load)
	if readErr != nil {
		return nil, errors.Join(err, readErr)
	}
	return result, err
}

// onlyConnects reports whether there were failures and all of them of
// connections that could not be made.
func onlyConnects(kinds map[string]uint64) bool {
	vainKinds := []string{string(hakaru.Refused), string(hakaru.Unreachable), string(hakaru.TLSFailed)}
	for kind := range maps.Keys(kinds) {
		if !slices.Contains(vainKinds, kind) {
			return false
		}
	}
	return len(kinds) > 0
}

func (d *door) printLoad(r *loadreport.Result, format string) error {
	switch format {
	case "json":
		return r.JSON(d.stdout)
	case "csv": // printed as it came
		for _, w := range r.Warnings {
			d.say("hakaru: doubt: %s\n", w.Message)
		}
		return nil
	}
	return r.Text(d.stdout, d.style())
}
