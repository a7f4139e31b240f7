package compare

import (
	"fmt"
	"math"
	"slices"

	"hakaru"
	"hakaru/internal/measure"
	"hakaru/internal/stats"
)

const (
	limitLevel  = 0.05 // a limit's interval is one of 95 %
	limitTrials = 3    // below these no interval over trials says anything
)

// Limits tells for each stratum, limit and variant whether the limit is met,
// over all compare trials that are not void (those of a dropped block too: a
// limit is about the variant alone, not about a pair). Upper end below the
// limit: meets; lower end above: violates; else not shown (METHOD.md §6).
// Variants without any trial in a stratum are there, as not shown.
func Limits(exp *hakaru.Experiment, history []hakaru.Result) []hakaru.LimitResult {
	var all []hakaru.LimitResult
	for _, at := range exp.Strata {
		key := hakaru.AtKey(at)
		trials := map[string][]*hakaru.Result{}
		for i := range history {
			r := &history[i]
			if r.Phase == hakaru.Compare && r.Void == nil && hakaru.AtKey(r.At) == key {
				trials[r.Variant] = append(trials[r.Variant], r)
			}
		}
		for _, limit := range exp.Limits {
			if ConditionOf(exp, limit) {
				continue
			}
			for _, v := range exp.Variants {
				r := hakaru.LimitResult{Metric: limit.Metric, At: at, Variant: v.Name,
					Limit: limit.Bound, Atleast: limit.AtLeast, Trials: len(trials[v.Name])}
				if limit.Metric == hakaru.Errors {
					judgeErrors(&r, trials[v.Name])
				} else {
					judgeMetric(&r, trials[v.Name])
				}
				all = append(all, r)
			}
		}
	}
	return all
}

// ConditionOf reports whether a limit is what the capacity holds, where that is the
// goal: it is judged at each rate that is tried, and not over a trial.
func ConditionOf(exp *hakaru.Experiment, l hakaru.Limit) bool {
	return exp.Goal == hakaru.Capacity && (Latency(l.Metric) || l.Metric == hakaru.Errors)
}

// judgeMetric takes the t interval of the logarithm over trials.
func judgeMetric(r *hakaru.LimitResult, trials []*hakaru.Result) {
	logs := logsOf(trials, r.Metric, figure)
	// A closed loop's latencies are shown where there is no other.
	closed := false
	if len(logs) == 0 && Latency(r.Metric) {
		logs = logsOf(trials, r.Metric, (*hakaru.Result).Measured)
		closed = len(logs) > 0
	}
	zeros := 0
	for _, t := range trials {
		if x, ok := figure(t, r.Metric); ok && x <= 0 && r.Atleast {
			zeros++
		}
	}
	r.Trials = len(logs) + zeros
	if len(logs) == 0 && zeros > 0 {
		if decide(r); r.Verdict == hakaru.Violates {
			r.Reason = fmt.Sprintf("%s was 0 in every trial", r.Metric)
		}
		return
	}
	if len(logs) == 0 {
		r.Reason = fmt.Sprintf("no trial measured %s above zero", r.Metric)
		return
	}
	r.Value = math.Exp(stats.Mean(logs))
	r.Low, r.High = r.Value, r.Value
	if iv, ok := stats.StudentInterval(logs, limitLevel); ok {
		r.Low, r.High = math.Exp(iv.Low), min(math.Exp(iv.High), math.MaxFloat64)
	}
	if closed {
		// A slow service slows its own load down (METHOD.md §0).
		r.Reason = "latency of a closed loop is not evidence: a limit on it needs an open loop at a fixed rate (load.http)"
		return
	}
	decide(r)
	if zeros > 0 && r.Verdict == hakaru.Meets {
		// 0 is below every lower bound, and has no logarithm.
		r.Verdict, r.Reason = hakaru.NotShown, fmt.Sprintf("%s was 0 in %d of %d trials, and the figures are of the others", r.Metric, zeros, r.Trials)
	}
	if Latency(r.Metric) && !r.Atleast {
		keptUp(r, trials)
	}
}

// keptUp takes trials in which the service fell behind its open loop for what they
// are: their latencies grow with the length of the measurement, and no limit on them
// is met, whatever the figure.
func keptUp(r *hakaru.LimitResult, trials []*hakaru.Result) {
	behind := 0
	for _, t := range trials {
		if measure.FellBehind(t) {
			behind++
		}
	}
	if behind == 0 || r.Verdict == hakaru.Violates {
		return
	}
	r.Verdict, r.Reason = hakaru.NotShown, fmt.Sprintf("the service fell behind the rate in %d of %d trials, where latencies grow with the time of the measurement", behind, len(trials))
	if 2*behind > len(trials) && len(trials) >= limitTrials {
		r.Verdict = hakaru.Violates
	}
}

// logsOf are the logarithms of a metric over the trials that have it.
func logsOf(trials []*hakaru.Result, m hakaru.Metric, of func(*hakaru.Result, hakaru.Metric) (float64, bool)) []float64 {
	var logs []float64
	for _, t := range trials {
		if x, ok := of(t, m); ok && x > 0 {
			logs = append(logs, math.Log(x))
		}
	}
	return logs
}

// judgeErrors judges the answers of the closed loop and those of the open one after
// it each by itself, and takes the worse: in one sum the many answers of the closed
// one hide the errors of the few by which latency is judged.
func judgeErrors(r *hakaru.LimitResult, trials []*hakaru.Result) {
	two := slices.ContainsFunc(trials, func(t *hakaru.Result) bool { return t.Open != nil && !t.Open.Whole })
	if !two {
		errorsOf(r, trials, answers)
		return
	}
	closed, open := *r, *r
	errorsOf(&closed, trials, closedAnswers)
	errorsOf(&open, trials, openAnswers)
	which, worse := "closed", closed
	if open.Trials > 0 && (severity(open.Verdict) > severity(closed.Verdict) ||
		open.Verdict == closed.Verdict && open.Value > closed.Value) {
		which, worse = "open", open
	}
	*r = worse
	switch {
	case r.Reason != "":
		r.Reason = fmt.Sprintf("in the %s loop: %s", which, r.Reason)
	case r.Verdict == hakaru.Violates:
		r.Reason = fmt.Sprintf("in the %s loop", which)
	}
}

func severity(v hakaru.LimitVerdict) int {
	switch v {
	case hakaru.Meets:
		return 0
	case hakaru.NotShown:
		return 1
	}
	return 2
}

// errorsOf unites the t interval of the shares over trials with the exact
// interval of the pooled counts. The first is too short when no trial has an
// error, the second when errors come in some trials and not in others.
func errorsOf(r *hakaru.LimitResult, trials []*hakaru.Result, answers func(*hakaru.Result) (bad, total uint64)) {
	var shares []float64
	var bad, total uint64
	for _, t := range trials {
		b, n := answers(t)
		bad, total = bad+b, total+n
		if n > 0 {
			shares = append(shares, float64(b)/float64(n))
		} else if share, ok := t.Measured(hakaru.Errors); ok && (t.Open == nil || t.Open.Whole) {
			shares = append(shares, share)
		}
	}
	r.Trials = len(shares)
	if len(shares) == 0 {
		r.Reason = "no trial counted answers"
		return
	}
	r.Value = stats.Mean(shares)
	r.Low, r.High = r.Value, r.Value
	if iv, ok := stats.StudentInterval(shares, limitLevel); ok {
		r.Low, r.High = iv.Low, iv.High
	}
	if total > 0 {
		exact := stats.ClopperPearson(bad, total, limitLevel)
		r.Value = exact.Estimate
		r.Low, r.High = min(r.Low, exact.Low), max(r.High, exact.High)
	}
	r.Low, r.High = max(0, r.Low), min(1, r.High)
	decide(r)
}

// answers counts the answers that the service got wrong and all answers; what the
// load host did wrong counts as neither, and a load program that tells no wrong
// ones has none of either.
func answers(t *hakaru.Result) (bad, total uint64) {
	if t.Totals != nil && t.Totals.BadUnknown {
		return 0, 0
	}
	return theirs(measure.AllAnswers(t))
}

func closedAnswers(t *hakaru.Result) (bad, total uint64) { return theirs(measure.Answers(t)) }

// openAnswers are those of the open loop after a closed one.
func openAnswers(t *hakaru.Result) (bad, total uint64) {
	good, bad, own := measure.AllAnswers(t)
	g, b, o := measure.Answers(t)
	return theirs(good-g, bad-b, own-o)
}

func theirs(good, bad, own uint64) (uint64, uint64) {
	bad -= min(own, bad)
	return bad, good + bad
}

func decide(r *hakaru.LimitResult) {
	if r.Trials < limitTrials {
		r.Reason = fmt.Sprintf("needs %d trials, has %d", limitTrials, r.Trials)
		return
	}
	above, below := r.Low > r.Limit, r.High < r.Limit
	if r.Atleast {
		above, below = r.High < r.Limit, r.Low > r.Limit
	}
	switch {
	case below:
		r.Verdict = hakaru.Meets
	case above:
		r.Verdict = hakaru.Violates
	default:
		r.Reason = "the interval contains the limit"
	}
}
