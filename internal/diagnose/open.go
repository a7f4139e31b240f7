package diagnose

import (
	"fmt"
	"time"

	"hakaru"
	"hakaru/internal/latency"
	"hakaru/internal/measure"
	"hakaru/internal/unit"
)

// during says in which of two loads something was seen, to begin a sentence with.
func (v view) during() string {
	return fmt.Sprintf("in the open loop at %s", unit.Rate(v.open.Rate))
}

// quantile is one of the generator's lag and of the latencies that it is part of;
// false where either is not known.
func (v view) quantile(q float64) (lag, took time.Duration, ok bool) {
	if v.open == nil || v.open.Tally == nil {
		return 0, 0, false
	}
	late, err := latency.Decode(v.open.Tally.Lag)
	if err != nil || late.Count() == 0 {
		return 0, 0, false
	}
	all, ok := measure.Latencies(v.Result.Buckets, v.Result.WarmUp, v.Result.Window)
	if !ok {
		return 0, 0, false
	}
	return late.Quantile(q), all.Quantile(q), true
}

// late is a generator that sent so much later than requests were due, with a
// connection free, that the latencies are its own: METHOD.md, 6. Its lag is compared
// at the quantiles that are judged. That of 99 % is more than a tenth of the median
// of any fast service, and then moves no figure: that is a doubt.
func late(v view) *hakaru.Void {
	for _, q := range []float64{0.50, 0.99} {
		lag, took, ok := v.quantile(q)
		if !ok || float64(lag) <= lateVoid*float64(took) {
			continue
		}
		return &hakaru.Void{
			Reason: hakaru.VoidGenerator,
			Evidence: fmt.Sprintf("the load generator itself sent late: by up to %s for %s of the requests, where they were answered within %s",
				unit.Duration(lag), unit.Share(q), unit.Duration(took)),
			Hint: "give it CPUs of its own (hosts: {load: {cpus: …}}), or write precise: true or a lower rate in load.http",
		}
	}
	return nil
}

// openDoubts are the warnings that only an open loop gives cause for.
func (v view) openDoubts(warn func(code, format string, args ...any)) {
	if v.open == nil || v.seconds == 0 {
		return
	}
	lag, _, known := v.quantile(0.99)
	_, median, _ := v.quantile(0.50)
	if known && late(v) == nil && float64(lag) > lateVoid*float64(median) {
		warn("generator_late", "the load generator sent up to %s late for 99 %% of the requests, which is %s of the median latency: more CPU for it, or precise: true in load.http, makes the figures its own less",
			unit.Duration(lag), unit.Share(float64(lag)/float64(median)))
	}
	if answered, due := v.answered(); v.good > 0 && answered < achievedLeast*due && !v.underWay(due-answered) {
		warn("rate_not_reached", "only %s of the offered %s were answered: the service fell behind, and its latencies grow with the time of the measurement", unit.Rate(answered/v.seconds), unit.Rate(due/v.seconds))
	}
	if t := v.open.Tally; t != nil && t.Due > 0 {
		if share := float64(t.Queued) / float64(t.Due); share > queuedWarn {
			warn("queued", "%s of the requests waited until one of %d connections was free, and their latency holds that: more connections in load.http make it the service's own queue", unit.Share(share), v.Connections)
		}
	}
	if v.good >= fewAnswers && v.good < answersForP99 {
		warn("few_answers", "only %d answers came in the measured window, so that few lie above the quantile of 99 %%: measure longer", v.good)
	}
}

// answered counts the requests of an open loop that were done with in the window,
// well or badly, and those that were due in it.
func (v view) answered() (answered, due float64) {
	answered = float64(v.good)
	for _, n := range v.kinds {
		answered += float64(n)
	}
	due = v.open.Rate * v.seconds
	if t := v.open.Tally; t != nil && t.Due > 0 {
		due = float64(t.Due)
	}
	return answered, due
}

// underWay reports whether so many requests may be missing only because they were
// out at the end of the window, where a stall may just have been: not more than the
// rate makes in the time within which nearly all answers come.
func (v view) underWay(missing float64) bool {
	const short = 0.1 // of the window; a service that falls behind takes longer and longer
	_, took, ok := v.quantile(0.99)
	if !ok {
		return missing < 2
	}
	return missing <= 1+v.open.Rate*took.Seconds() && took.Seconds() < short*v.seconds
}

// searched is a search for the capacity that found none for what is not the
// service's doing.
func searched(v view) *hakaru.Void {
	c := v.Result.Capacity
	counted, why := 0, ""
	for _, s := range c.Steps {
		if s.Void == "" {
			counted++
		} else {
			why = s.Void
		}
	}
	switch {
	case c.Reached != "":
		return &hakaru.Void{
			Reason:   hakaru.VoidGenerator,
			Evidence: fmt.Sprintf("the capacity is at least %s, and what it is is not known: %s", unit.Rate(c.Low), c.Reached),
			Hint:     v.moreLoad(),
		}
	case len(c.Steps) == 0:
		return &hakaru.Void{
			Reason:   hakaru.VoidGenerator,
			Evidence: "the time was over before any rate was tried",
			Hint:     "a longer duration in load.http has time for some",
		}
	case counted == 0:
		return &hakaru.Void{
			Reason:   hakaru.VoidGenerator,
			Evidence: fmt.Sprintf("none of the %d rates that were tried counts: %s", len(c.Steps), why),
			Hint:     v.moreLoad(),
		}
	}
	return nil
}

// wideSearch is the width of a capacity's interval, of the capacity, from which it
// is told: between the trials of a few blocks it weighs less.
const wideSearch = 0.20

func (v view) searchDoubts(warn func(code, format string, args ...any)) {
	c := v.Result.Capacity
	if c == nil {
		return
	}
	if c.Value == 0 {
		warn("no_capacity", "no rate that was tried held the limits, and what is no rate is compared with none")
		return
	}
	if width := (c.High - c.Low) / c.Value; width > wideSearch {
		warn("wide_capacity", "the search ended with a capacity between %s and %s: a longer duration narrows it", unit.Rate(c.Low), unit.Rate(c.High))
	}
}
