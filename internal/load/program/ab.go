package program

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"hakaru"
	"hakaru/internal/grammar"
)

// ab is ApacheBench 2.3, as Apache HTTP Server 2.4 has it (support/ab.c).
//
// A run by time is `-t D -n N` in this order: -t implies -n 50000 unless -n
// follows. ab asks for 32 bytes of memory for each of N at its start, so N is
// what its one thread cannot answer in D, and never more than mostRequests: a run
// that has answered so many ends before its time, and its figures are right. -r is not given: with it ab counts
// one reset under several names, and goes on; without it, it ends at the first
// one, which is told as its failure. -l is given only where it was asked for:
// without it an answer of another length than the first is counted as failed,
// which is all that ab sees of a wrong body; with it, ab takes a connection that
// is closed without an answer for an answer.
type ab struct{}

const (
	// mostRate is more answers a second than ab's one thread can take.
	mostRate = 300_000
	// mostRequests take 640 MB.
	mostRequests = 20_000_000
)

func (ab) Call(spec hakaru.ProgramSpec, d time.Duration, warmUp bool) (Call, error) {
	o := spec.Options
	url, err := httpURL(o["url"])
	if err != nil {
		return Call{}, err
	}
	call := Call{Argv: []string{firstWord(o["program"], "ab"), "-q"}, Files: []string{""}}
	add := func(words ...string) { call.Argv = append(call.Argv, words...) }
	if o["keep_alive"] != "" {
		add("-k")
	}
	if o["any_length"] != "" {
		add("-l")
	}
	if o["timeout"] != "" {
		add("-s", o["timeout"])
	}
	add("-c", strconv.Itoa(spec.Connections))
	if spec.Counted && !warmUp {
		add("-n", o["requests"])
	} else {
		s := max(1, int(d.Seconds()))
		add("-t", strconv.Itoa(s), "-n", strconv.Itoa(min(s*mostRate, mostRequests)))
	}
	method := o["method"]
	if body, found := o["body"]; found {
		call.Files = append(call.Files, body)
		if method == "PUT" {
			add("-u", file(1))
		} else {
			add("-p", file(1))
		}
	}
	switch {
	case method == "HEAD":
		add("-i")
	case method != "" && method != "GET" && !(o["body"] != "" && (method == "POST" || method == "PUT")):
		add("-m", method)
	}
	for _, h := range headers(o) {
		name, value, _ := strings.Cut(h, ": ")
		if strings.EqualFold(name, "Content-Type") && o["body"] != "" {
			add("-T", value)
			continue
		}
		add("-H", h)
	}
	// Latencies of every percentage in microseconds, where the table has whole
	// milliseconds.
	add("-e", file(0))
	more, err := grammar.Split(o["args"])
	if err != nil {
		return Call{}, fmt.Errorf("args of ab: %w", err)
	}
	add(more...)
	add(url)
	return call, nil
}

func (ab) CPUs(hakaru.ProgramSpec) int { return 1 } // one thread

func (ab) Install() string { return "apt-get install apache2-utils" }

func (ab) Version() []string { return []string{"-V"} }

func (ab) Doubts(spec hakaru.ProgramSpec, t hakaru.Totals) []hakaru.Warning {
	var doubts []hakaru.Warning
	if spec.Options["any_length"] != "" {
		doubts = append(doubts, hakaru.Warning{Code: "ab_any_length", Message: "with any_length, ab counts a connection that is closed without an answer as an answer, and no wrong body is seen"})
	}
	if len(t.Quantiles) > 0 {
		doubts = append(doubts, hakaru.Warning{Code: "program_latency", Message: "p50 and p99 are ab's, of all answers, in a closed loop: what waited because the service was slow is not in them"})
	}
	return doubts
}

// Read reads the report. ab counts one bad answer under several names: a reset
// with -r is Receive, Length and Exceptions at once, so that "Failed requests" can
// be more than the requests there were. What is not surely good is not counted as
// good.
func (ab) Read(spec hakaru.ProgramSpec, w Written) hakaru.Totals {
	var t hakaru.Totals
	if w.State != "" {
		t.Failed, t.Hint = ended("ab", w), abHint(w.Stderr)
		return t
	}
	r := fields(w.Stdout)
	complete, ok1 := r.whole("Complete requests")
	printed, ok2 := r.number("Time taken for tests")
	failed, ok3 := r.whole("Failed requests")
	if !ok1 || !ok2 || !ok3 {
		t.Failed = "ab ended without its report: " + firstWord(lastLines(w.Stderr+"\n"+w.Stdout, 3), "it wrote nothing")
		t.Hint = "see all of it with hakaru try"
		return t
	}
	rate, _ := r.number("Requests per second")
	t.Took = took(complete, rate, seconds(printed), time.Millisecond/2)

	var connect, receive, length, exceptions uint64
	if failed > 0 {
		detail := between(w.Stdout, "(Connect:", ")")
		if _, err := fmt.Sscanf(detail, "%d, Receive: %d, Length: %d, Exceptions: %d", &connect, &receive, &length, &exceptions); err != nil {
			exceptions = failed // not broken down: all of them are bad
		}
	}
	broken := max(receive, exceptions)
	count(&t, hakaru.Unreachable, connect)
	count(&t, hakaru.Reset, broken)
	count(&t, hakaru.WrongBody, less(length, broken))
	status, _ := r.whole("Non-2xx responses")
	count(&t, hakaru.WrongStatus, status)
	t.Good = less(complete, broken+less(length, broken)+status)
	if bytes, found := r.whole("Total transferred"); found && bytes == 0 && t.Good > 0 {
		// Connections that were closed without an answer, of which ab says
		// "Failed requests: 0".
		count(&t, hakaru.Closed, t.Good)
		t.Good = 0
	}
	if t.Good == 0 {
		return t
	}
	table := ""
	if len(w.Files) > 0 {
		table = w.Files[0]
	}
	for percent, m := range map[int]hakaru.Metric{50: hakaru.P50, 99: hakaru.P99} {
		ms, fine := csvPercent(table, percent)
		if !fine { // in whole milliseconds; none where there was one request
			ms, _ = r.number(fmt.Sprintf("%d%%", percent))
		}
		quantile(&t, m, ms/1000)
	}
	return t
}

// abHint is advice on the errors by which ab ends.
func abHint(stderr string) string {
	switch {
	case strings.Contains(stderr, "Connection reset by peer"):
		return "ab ends at the first connection that is reset: see why the service resets it (a full accept queue, a worker that ends), or use load.http, which counts it as an error"
	case strings.Contains(stderr, "timeout specified has expired"):
		return "no answer came for as long as ab waits: raise timeout, or use fewer connections"
	case strings.Contains(stderr, "Connection refused"):
		return "is load.ab.url where the service listens?"
	case strings.Contains(stderr, "Too many open files"):
		return "give the load host more descriptors: ulimit -n"
	case strings.Contains(stderr, "Cannot assign requested address"):
		return "the load host has no port left: keep_alive: true, fewer requests, or a wider net.ipv4.ip_local_port_range"
	}
	return "try the command line by hand"
}

// csvPercent looks a percentage up in what -e wrote: "50,0.082", in
// milliseconds.
func csvPercent(table string, percent int) (float64, bool) {
	for l := range strings.Lines(table) {
		name, value, found := strings.Cut(strings.TrimSpace(l), ",")
		if !found || name != strconv.Itoa(percent) {
			continue
		}
		ms, err := strconv.ParseFloat(value, 64)
		return ms, err == nil && finite(ms) && ms >= 0
	}
	return 0, false
}
