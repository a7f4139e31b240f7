// Package loadreport tells one load by itself: what hakaru load prints.
//
// It takes a load as it was asked for and what came of it, and gives a report as
// text or JSON, and whether the load did what was asked and all answers were
// right. Of the buckets as they come it makes seconds, and of those lines of CSV,
// of an HdrHistogram interval log, and of a terminal (Seconds).
//
// It sends nothing, asks no clock and decides no exit code. What there is to
// doubt about the figures is diagnose's to say, what a condition holds
// condition's.
package loadreport

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"hakaru"
	"hakaru/internal/condition"
	"hakaru/internal/diagnose"
	"hakaru/internal/endpoint"
	"hakaru/internal/latency"
	"hakaru/internal/unit"
)

// reached is the share of an offered rate below which it was not reached.
const reached = 0.99

// Load is one load, as asked for and as it went.
type Load struct {
	Request hakaru.HTTPRequest
	// Window is what was asked for. Its Length is 0 where only Request.Requests was
	// to end the load.
	Window     hakaru.Window
	Started    time.Time
	Report     hakaru.LoadReport
	Conditions []hakaru.Condition // that its figures are to hold
	Search     *hakaru.CapacitySpec
	// Stopped says why the load ended before it was over; empty: it did not.
	Stopped string
}

// Result is a Load with its figures made out.
type Result struct {
	Load
	tally    *hakaru.Tally
	to       endpoint.Endpoint
	took     parts
	outcomes []condition.Outcome

	Warnings []hakaru.Warning // what there is to doubt
	// Failures says in sentences what was not as asked for; none: the load did what
	// was asked and all answers were right.
	Failures []string
}

// parts are the histograms of a tally.
type parts struct {
	latency, service, waiting, failed, connect, lag *latency.Histogram
}

// Read makes out the figures.
func Read(l Load) (*Result, error) {
	r := &Result{Load: l, tally: l.Report.Tally}
	if r.tally == nil {
		r.tally = &hakaru.Tally{}
	}
	var err error
	if r.to, err = endpoint.Parse(l.Request.URL); err != nil {
		return nil, err
	}
	t := r.tally
	for _, part := range []struct {
		what string
		from []byte
		to   **latency.Histogram
	}{
		{"latency", t.Latency, &r.took.latency}, {"service time", t.Service, &r.took.service},
		{"time to the first byte", t.Waiting, &r.took.waiting}, {"latency of bad answers", t.Failed, &r.took.failed},
		{"connect time", t.Connect, &r.took.connect}, {"send lag", t.Lag, &r.took.lag},
	} {
		if *part.to, err = latency.Decode(part.from); err != nil {
			return nil, fmt.Errorf("%s of the load: %w", part.what, err)
		}
	}
	if l.Report.Tally != nil {
		if r.Warnings, err = diagnose.Load(diagnose.LoadFacts{
			Tally: t, Connections: l.Request.Connections, Open: r.open(), Precise: l.Request.Precise, Address: r.to.Address,
		}); err != nil {
			return nil, err
		}
		r.outcomes = r.shown(condition.Check(l.Conditions, t))
	}
	r.Warnings = append(r.Warnings, l.Report.Warnings...)
	r.Failures = r.failures()
	return r, nil
}

// open reports whether the figures are of an open loop; those of a search are of
// the highest rate that held, or of the closed loop before all where there is none.
func (r *Result) open() bool {
	if r.Search != nil {
		return r.tally.Due > 0
	}
	return r.Request.Arrival != nil
}

// answers is good and bad ones.
func (r *Result) answers() uint64 { return r.tally.Good + r.tally.Bad }

func perSecond(n float64, took time.Duration) float64 {
	if took <= 0 {
		return math.NaN()
	}
	return n / took.Seconds()
}

// rates are those of an open loop, in answers of whatever kind: a wrong answer is
// a fault of its own.
func (r *Result) rates() (offered, achieved float64) {
	offered = perSecond(float64(r.tally.Due), r.tally.Took)
	if r.counted() {
		// The law would have gone on while the last answers were awaited.
		offered = r.Request.Arrival.Rate
	}
	return offered, perSecond(float64(r.answers()), r.tally.Took)
}

// counted reports whether a number of requests ended an open loop.
func (r *Result) counted() bool {
	return r.Request.Requests > 0 && r.Request.Arrival != nil && r.answers() >= r.Request.Requests
}

// kept reports whether an open loop's rate was reached. What is out when the load
// ends, at most a request for each connection, is not missing. A number of requests
// that ended it must have been answered within the time that the law takes for them,
// and the one that the last answer took.
func (r *Result) kept() bool {
	t := r.tally
	if r.counted() {
		n, rate := float64(r.Request.Requests), r.Request.Arrival.Rate
		law := n / rate
		if r.Request.Arrival.Law == hakaru.PoissonRate {
			law += 3 * math.Sqrt(n) / rate // three standard deviations
		}
		return t.Took.Seconds() <= law/reached+r.took.service.Max().Seconds()
	}
	missing := t.Due - min(t.Due, r.answers())
	out := min(missing-min(missing, t.Unsent), uint64(max(r.Request.Connections, 0)))
	return float64(missing-out) <= (1-reached)*float64(t.Due)
}

func (r *Result) failures() (all []string) {
	say := func(format string, args ...any) { all = append(all, fmt.Sprintf(format, args...)) }
	t := r.tally
	if r.Search != nil {
		switch c := r.Report.Capacity; {
		case r.Stopped != "":
			say("%s", r.Stopped)
		case c == nil || len(c.Steps) == 0:
			say("no rate could be tried")
		case c.Value == 0:
			say("no rate that was tried holds %s", condition.Join(r.Search.Holds))
		}
		return all
	}
	if r.Stopped != "" {
		say("%s", r.Stopped)
	}
	switch {
	case r.answers() > 0:
	case t.Took <= 0:
		say("nothing was measured")
	case r.Report.Connections > 0:
		say("the service took connections and not one answer came within %s", unit.Duration(t.Took))
	default:
		say("not one connection could be made within %s", unit.Duration(t.Took))
	}
	// Who says how many errors are fine has said so of bad answers.
	allowed := slices.ContainsFunc(r.Conditions, func(c hakaru.Condition) bool { return c.Metric == hakaru.Errors })
	if t.Bad > 0 && !allowed {
		of := fmt.Sprintf("%d of %d", t.Bad, r.answers())
		if t.Good == 0 {
			of = fmt.Sprintf("all %d", t.Bad)
		}
		say("%s requests failed: %s", of, kindList(t.Kinds))
	}
	if n := r.Request.Requests; n > 0 && r.answers() < n && r.answers() > 0 && r.Stopped == "" {
		say("only %d of %d requests were answered within %s", r.answers(), n, unit.Duration(t.Took))
	}
	if r.open() && r.answers() > 0 && !r.kept() {
		offered, achieved := r.rates()
		say("the offered rate was not reached: %s of %s (%s)", unit.Rate(achieved), unit.Rate(offered), unit.Share(achieved/offered))
	}
	for _, o := range r.outcomes {
		if !o.Holds {
			say("%s", o.Words)
		}
	}
	return all
}

// kindNames are names of failures for people.
var kindNames = map[hakaru.ErrorKind]string{
	hakaru.WrongStatus: "another status", hakaru.WrongBody: "another body", hakaru.BadAnswer: "not HTTP",
	hakaru.ShortBody: "cut off", hakaru.Refused: "connection refused", hakaru.Reset: "connection reset",
	hakaru.Closed: "closed without an answer", hakaru.TimedOut: "timed out", hakaru.Unreachable: "unreachable",
	hakaru.TLSFailed: "TLS failed", hakaru.LoadPorts: "no local port left", hakaru.LoadFiles: "no descriptor left",
	hakaru.LoadOther: "this machine's", hakaru.ServiceErrors: "server error",
}

func kindName(kind string) string {
	if name, ok := kindNames[hakaru.ErrorKind(kind)]; ok {
		return name
	}
	return strings.ReplaceAll(kind, "_", " ")
}

// kindsByCount has the most frequent first.
func kindsByCount(kinds map[string]uint64) []string {
	names := slices.Sorted(maps.Keys(kinds))
	slices.SortStableFunc(names, func(a, b string) int {
		switch {
		case kinds[a] > kinds[b]:
			return -1
		case kinds[a] < kinds[b]:
			return 1
		}
		return 0
	})
	return names
}

func kindList(kinds map[string]uint64) string {
	parts := make([]string, 0, len(kinds))
	for _, kind := range kindsByCount(kinds) {
		parts = append(parts, fmt.Sprintf("%s %d", kindName(kind), kinds[kind]))
	}
	return strings.Join(parts, ", ")
}

// advice says what a kind of bad answer means here, and what may be done; empty
// where the samples say all.
func (r *Result) advice(kind hakaru.ErrorKind) string {
	t := r.tally
	where := t.Address
	if where == "" {
		where = r.to.Address
	}
	switch kind {
	case hakaru.Refused:
		if t.Good > 0 {
			return "the service answered, and then nobody listened at " + where + " any more: it ended, or was restarted"
		}
		return "nobody listens at " + where + ": is the service up, and is this its address?"
	case hakaru.Reset:
		return "the service, or what stands before it, reset connections on which a request was out: its log should say why"
	case hakaru.Closed:
		return "the service closed connections on which a request was out, without an answer: a worker that ended, or a keep-alive timeout that ran out just then"
	case hakaru.ShortBody:
		return "answers ended before the length that they named: the service, or a worker of it, ended in the middle"
	case hakaru.TimedOut:
		if t.Good == 0 {
			return "the service takes connections and does not answer within the timeout (--timeout)"
		}
		return "some requests got no answer within the timeout (--timeout): they wait behind others, or are lost"
	case hakaru.TLSFailed:
		return "--ca FILE names whose certificates are good, --server-name the name to check, and --insecure takes any certificate"
	case hakaru.BadAnswer:
		return "what listens there does not answer in HTTP/1: another port, or https:// instead of http://?"
	case hakaru.WrongBody:
		return "a right answer was to hold the text of --expect"
	case hakaru.Unreachable:
		return "there is no way from here to " + where
	case hakaru.ServiceErrors:
		if t.Statuses[502]+t.Statuses[504] > 0 {
			return "502 and 504 come from a gateway: the service behind it did not answer it"
		}
		if t.Statuses[503] > 0 {
			return "503 says that the service, or its gateway, turns requests away: a limit of requests or connections"
		}
	}
	return ""
}

// shown takes back what too few answers do not show: a bound on a quantile with no
// answer above it.
func (r *Result) shown(outcomes []condition.Outcome) []condition.Outcome {
	n := r.took.latency.Count()
	for i, o := range outcomes {
		q := o.Condition.Quantile
		if q == 0 || n == 0 || !math.IsNaN(quantile(r.took.latency, q)) {
			continue
		}
		_, bound, _ := strings.Cut(o.Words, ", ")
		answers := "good answers are"
		if n == 1 {
			answers = "good answer is"
		}
		outcomes[i].Value, outcomes[i].Holds = math.NaN(), false
		outcomes[i].Words = fmt.Sprintf("%s: %d %s too few, %s", o.Condition.Metric, n, answers, bound)
	}
	return outcomes
}

// quantile is a quantile of so many values that there is one above it; NaN
// otherwise.
func quantile(h *latency.Histogram, q float64) float64 {
	if n := float64(h.Count()); n == 0 || q < 1 && n*(1-q) < 0.9999 {
		return math.NaN()
	}
	return h.Quantile(q).Seconds()
}
