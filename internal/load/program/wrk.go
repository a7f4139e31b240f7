package program

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"hakaru"
	"hakaru/internal/grammar"
)

// wrk is wrk 4.1. It keeps its connections, and opens a new one where the service
// closed it. It looks whether its time is over every 100 ms, and says how long it
// took.
type wrk struct{}

const wrkThreads = 2 // its own default

func (wrk) threads(spec hakaru.ProgramSpec) int {
	if n, err := strconv.Atoi(spec.Options["threads"]); err == nil && n > 0 {
		return n
	}
	return max(1, min(wrkThreads, spec.Connections))
}

func (p wrk) Call(spec hakaru.ProgramSpec, d time.Duration, _ bool) (Call, error) {
	o := spec.Options
	url, err := httpURL(o["url"])
	if err != nil {
		return Call{}, err
	}
	call := Call{Argv: []string{
		firstWord(o["program"], "wrk"), "--latency", "-t", strconv.Itoa(p.threads(spec)),
		"-c", strconv.Itoa(spec.Connections), "-d", strconv.Itoa(int(d.Seconds())) + "s",
	}}
	add := func(words ...string) { call.Argv = append(call.Argv, words...) }
	if o["timeout"] != "" {
		add("--timeout", o["timeout"]+"s")
	}
	for _, h := range headers(o) {
		add("-H", h)
	}
	body, method := o["body"], o["method"]
	if body != "" || method != "" && method != "GET" {
		if method == "" {
			method = "POST"
		}
		// Only a script can tell wrk of a method or a body.
		call.Files = []string{"wrk.method = " + luaText(method) + "\n"}
		if body != "" {
			call.Files[0] += "wrk.body = " + luaText(body) + "\n"
		}
		add("-s", file(0))
	}
	more, err := grammar.Split(o["args"])
	if err != nil {
		return Call{}, fmt.Errorf("args of wrk: %w", err)
	}
	add(more...)
	add(url)
	return call, nil
}

// luaText writes a text as a string of Lua 5.1, whatever is in it: every byte but
// letters, digits and blanks as \ddd (reference manual, 2.1).
func luaText(text string) string {
	var b strings.Builder
	b.WriteByte('"')
	for i := range len(text) {
		switch c := text[i]; {
		case c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == ' ':
			b.WriteByte(c)
		default:
			fmt.Fprintf(&b, `\%03d`, c)
		}
	}
	b.WriteByte('"')
	return b.String()
}

func (p wrk) CPUs(spec hakaru.ProgramSpec) int { return p.threads(spec) }

func (wrk) Install() string { return "apt-get install wrk" }

func (wrk) Version() []string { return []string{"-v"} }

func (wrk) Doubts(_ hakaru.ProgramSpec, t hakaru.Totals) []hakaru.Warning {
	var doubts []hakaru.Warning
	if t.Closed > 0 {
		doubts = append(doubts, hakaru.Warning{Code: "wrk_closed", Message: fmt.Sprintf(
			"wrk counted %d read errors, one for each answer: the service closes every connection after its answer without saying so, and wrk takes that for an error; they are not counted as such", t.Closed)})
	}
	if len(t.Quantiles) == 0 {
		return doubts
	}
	return append(doubts, hakaru.Warning{Code: "program_latency", Message: "p50 and p99 are wrk's, of all answers, in a closed loop; it adds what it reckons a stall to have hidden, which is a model and no measurement"})
}

// Read reads the report. "N requests" are all answers, those with a wrong status
// and those that took longer than the timeout included; "socket errors" are none
// of them. 3xx is right to wrk.
func (wrk) Read(spec hakaru.ProgramSpec, w Written) hakaru.Totals {
	var t hakaru.Totals
	if w.State != "" {
		t.Failed, t.Hint = ended("wrk", w), "try the command line by hand"
		if strings.Contains(w.Stderr, "unable to connect") {
			t.Hint = "is load.wrk.url where the service listens?"
		}
		return t
	}
	var answers uint64
	var printed time.Duration
	told := false
	for l := range strings.Lines(w.Stdout) {
		f := strings.Fields(l)
		if len(f) >= 4 && f[1] == "requests" && f[2] == "in" {
			n, err := strconv.ParseUint(f[0], 10, 64)
			d, fine := wrkTime(strings.TrimSuffix(f[3], ","))
			answers, printed, told = n, seconds(d), err == nil && fine
		}
	}
	r := fields(w.Stdout)
	rate, found := r.number("Requests/sec")
	if !told || !found {
		t.Failed = "wrk ended without its report: " + firstWord(lastLines(w.Stderr+"\n"+w.Stdout, 3), "it wrote nothing")
		t.Hint = "see all of it with hakaru try"
		return t
	}
	t.Took = took(answers, rate, printed, wrkHalf(printed))
	var timeouts uint64
	if line, found := r["Socket errors"]; found {
		var connect, read, write uint64
		if _, err := fmt.Sscanf(line, "connect %d, read %d, write %d, timeout %d", &connect, &read, &write, &timeouts); err != nil {
			t.Failed = fmt.Sprintf("wrk says %q, which is not understood", "Socket errors: "+line)
			return t
		}
		count(&t, hakaru.Unreachable, connect)
		if closedEach(read, answers, spec.Connections) {
			t.Closed = read
		} else {
			count(&t, hakaru.Reset, read) // closed early, or no HTTP: wrk does not tell them apart
		}
		count(&t, hakaru.Reset, write)
		count(&t, hakaru.TimedOut, timeouts)
	}
	wrong, _ := r.whole("Non-2xx or 3xx responses")
	count(&t, hakaru.WrongStatus, wrong)
	t.Good = less(answers, wrong+timeouts)
	if t.Good == 0 {
		return t
	}
	for name, m := range map[string]hakaru.Metric{"50%": hakaru.P50, "99%": hakaru.P99} {
		if s, fine := wrkTime(r[name]); fine {
			quantile(&t, m, s)
		}
	}
	return t
}

// closedEach reports whether read errors are one for each answer. A service that
// closes each connection behind its answer and does not announce it (no
// "Connection: close", as uWSGI's HTTP router does) leaves wrk waiting for the
// next one, and wrk counts the end of that as an error of reading. Errors that
// came instead of answers would not be as many as these, but for the connections
// that were under way.
func closedEach(read, answers uint64, connections int) bool {
	open := uint64(max(connections, 1))
	return read > open && read+open >= answers && read <= answers+open
}

// wrkHalf is half of the last digit of a time, which is the second decimal of its
// unit.
func wrkHalf(d time.Duration) time.Duration {
	switch {
	case d >= time.Hour:
		return time.Hour / 200
	case d >= time.Minute:
		return time.Minute / 200
	}
	return time.Second / 200
}

// wrkTime reads a time as wrk prints it, into seconds: "82.00us", "1.65ms",
// "1.10s", "2.00m", "1.50h" (units.c).
func wrkTime(text string) (float64, bool) {
	digits := strings.TrimRight(text, "umsh")
	unit, known := map[string]float64{"us": 1e-6, "ms": 1e-3, "s": 1, "m": 60, "h": 3600}[text[len(digits):]]
	value, err := strconv.ParseFloat(digits, 64)
	if !known || err != nil || !finite(value) || value < 0 {
		return 0, false
	}
	return value * unit, true
}
