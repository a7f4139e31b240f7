package diagnose

import (
	"fmt"
	"math"
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

// quantile is one of the latencies as they were measured, and as they would be had
// the generator sent each request in time; false where either is not known.
func (v view) quantile(q float64) (took, own time.Duration, ok bool) {
	if v.open == nil || v.open.Tally == nil {
		return 0, 0, false
	}
	without, err := latency.Decode(v.open.Tally.Own)
	if err != nil || without.Count() == 0 {
		return 0, 0, false
	}
	all, ok := measure.Latencies(v.Result.Buckets, v.Result.WarmUp, v.Result.Window)
	if !ok {
		return 0, 0, false
	}
	return all.Quantile(q), without.Quantile(q), true
}

// judged are the quantiles that something is claimed of, each with the bound that
// it is held against; 0: compared between variants.
func (v view) judged() (quantiles, bounds []float64) {
	add := func(m hakaru.Metric, bound float64) {
		switch m {
		case hakaru.P50:
			quantiles, bounds = append(quantiles, 0.50), append(bounds, bound)
		case hakaru.P99:
			quantiles, bounds = append(quantiles, 0.99), append(bounds, bound)
		}
	}
	add(v.Goal, 0)
	for _, l := range v.Limits {
		add(l.Metric, l.Bound)
	}
	return quantiles, bounds
}

// late is a generator that was itself so late, with a connection free, that a
// figure which is judged is its own: more than a tenth of it, or what parts it from
// the bound. METHOD.md, 6, holds the lag at 99 % against the median latency, which
// voids any fast service and yet lets through a p99 that is made by the last 1 % of
// the sends; here the latencies are compared with what they would be without the lag.
func late(v view) *hakaru.Void {
	quantiles, bounds := v.judged()
	for i, q := range quantiles {
		took, own, ok := v.quantile(q)
		if !ok {
			continue
		}
		if bound := bounds[i]; bound > 0 && (took.Seconds() <= bound || own.Seconds() > bound) ||
			bound == 0 && float64(took) <= (1+lateVoid)*float64(own) {
			continue
		}
		return &hakaru.Void{
			Reason: hakaru.VoidGenerator,
			Evidence: fmt.Sprintf("the load generator itself sent late: %s of the answers came within %s of when their requests were due, and would have within %s had it sent in time",
				unit.Share(q), unit.Duration(took), unit.Duration(own)),
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
	if late(v) == nil {
		for _, q := range []float64{0.50, 0.99} {
			if took, own, known := v.quantile(q); known && float64(took) > (1+lateVoid)*float64(own) {
				warn("generator_late", "%s of the answers came within %s, and would have within %s had the load generator sent in time: more CPU for it makes the figures its own less",
					unit.Share(q), unit.Duration(took), unit.Duration(own))
				break
			}
		}
	}
	if answered, due := v.answered(); v.good > 0 && v.behind(answered, due) {
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

// behind reports whether the service did not keep up with the rate (measure.Behind).
func (v view) behind(answered, due float64) bool {
	p99 := math.NaN()
	if all, ok := measure.Latencies(v.Result.Buckets, v.Result.WarmUp, v.Result.Window); ok {
		p99 = all.Quantile(0.99).Seconds()
	}
	return measure.Behind(v.open.Rate, due, answered, v.seconds, p99)
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
