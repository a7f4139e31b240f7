package wording

import (
	"fmt"
	"strings"

	"hakaru"
	"hakaru/internal/compare"
	"hakaru/internal/latency"
	"hakaru/internal/layout"
	"hakaru/internal/unit"
)

// loopOf is what kind of loop the load begins with, as written.
func loopOf(e *hakaru.Experiment) string {
	h := e.Load.HTTP
	switch {
	case e.Goal == hakaru.Capacity:
		return ""
	case h.Rate == "" || strings.HasSuffix(h.Rate, "%"):
		return "closed loop, "
	case strings.Contains(h.Rate, "{"):
		return "" // of either kind, by the level
	}
	return "open loop at " + h.Rate + law(hakaru.ArrivalLaw(h.Arrival)) + ", "
}

// openLoopOf is what follows or takes the place of a closed loop, as written.
func openLoopOf(e *hakaru.Experiment) string {
	h := e.Load.HTTP
	switch {
	case e.Goal == hakaru.Capacity:
		return ", at rates that are tried for the highest that holds " + Conditions(e)
	case strings.Contains(h.Rate, "{"):
		return ", rate " + h.Rate + law(hakaru.ArrivalLaw(h.Arrival))
	case strings.HasSuffix(h.Rate, "%"):
		share := h.Rate
		if value, err := unit.ParseShare(h.Rate); err == nil {
			share = unit.Share(value)
		}
		return ", then an open loop at " + layout.Whole(share) + " of the baseline's capacity" + law(hakaru.ArrivalLaw(h.Arrival))
	}
	return ""
}

// law says how the requests of an open loop come where that is not evenly.
func law(l hakaru.ArrivalLaw) string {
	if l == hakaru.PoissonRate {
		return " by Poisson's law"
	}
	return ""
}

// Conditions are the limits that a capacity holds, as in a sentence.
func Conditions(e *hakaru.Experiment) string {
	var words []string
	for _, l := range e.Limits {
		if compare.ConditionOf(e, l) {
			words = append(words, Limit(l.Metric, l.Bound, l.AtLeast))
		}
	}
	if len(words) == 0 {
		return "the limits"
	}
	return List(words)
}

// LimitKind says what a limit is for: of those that a capacity holds it is the rate
// that is judged.
func LimitKind(e *hakaru.Experiment, l hakaru.Limit) string {
	if compare.ConditionOf(e, l) {
		return "held by it"
	}
	return "limit"
}

// OpenRate is the rate of an open loop and what it was settled by.
func OpenRate(r hakaru.OpenRate) string {
	return fmt.Sprintf("%s in an open loop (%s of the baseline's %s)",
		layout.Whole(unit.Rate(r.Rate)), layout.Whole(unit.Share(r.Share)), layout.Whole(unit.Rate(r.Capacity)))
}

// OpenRates are those of all strata: "latency at 1400/s in an open loop (70 % of
// the baseline's 2000/s)"; empty where none was settled.
func OpenRates(f *hakaru.Frozen) string {
	if f == nil || len(f.Rates) == 0 {
		return ""
	}
	words := make([]string, len(f.Rates))
	for i, r := range f.Rates {
		if words[i] = OpenRate(r); len(r.At) > 0 {
			words[i] = hakaru.AtKey(r.At) + ": " + words[i]
		}
	}
	return "latency at " + strings.Join(words, "; ")
}

// Sent says what a load sends beside its request and connections, as rendered: its
// loop and times. of is what a share of a rate is a share of.
func Sent(load hakaru.LoadSpec, of string) string {
	times := func(warmUp, window string) string {
		return layout.Whole(warmUp) + " of warm-up, " + layout.Whole(window) + " measured"
	}
	window := unit.Duration(load.Window)
	if p := load.Program; p != nil && p.Counted {
		window = "at most " + window
	}
	text := times(unit.Duration(load.WarmUp), window)
	switch {
	case load.Capacity != nil:
		c := load.Capacity
		text = fmt.Sprintf("%s of warm-up, then at most %s in %s, each held for %s after %s", layout.Whole(unit.Duration(load.WarmUp)),
			Count(c.Steps, "rate"), layout.Whole(unit.Duration(load.Window)), layout.Whole(unit.Duration(c.Step)), layout.Whole(unit.Duration(c.Settle)))
	case load.HTTP != nil && load.HTTP.Arrival != nil:
		text = "open loop at " + layout.Whole(unit.Rate(load.HTTP.Arrival.Rate)) + law(load.HTTP.Arrival.Law) + ", " + text
	}
	if o := load.Open; o != nil {
		rate := layout.Whole(unit.Share(o.Share)) + " of " + of
		if o.Arrival.Rate > 0 {
			rate = layout.Whole(unit.Rate(o.Arrival.Rate))
		}
		text += "; then an open loop at " + rate + law(o.Arrival.Law) + ", " + times(unit.Duration(o.WarmUp), unit.Duration(o.Window))
	}
	return text
}

// OpenPhase is what is known of the open loop of a trial beside its latencies.
func OpenPhase(o *hakaru.OpenPhase) string {
	text := "at " + layout.Whole(unit.Rate(o.Rate))
	if o.Share > 0 {
		text += " (" + layout.Whole(unit.Share(o.Share)) + " of the capacity)"
	}
	if !o.Whole {
		text += fmt.Sprintf(", %s after %s of warm-up", layout.Whole(unit.Duration(o.Window)), layout.Whole(unit.Duration(o.WarmUp)))
	}
	t := o.Tally
	if t == nil {
		return text
	}
	text += fmt.Sprintf("; %d requests were due, %d waited for a connection", t.Due, t.Queued)
	if t.Unsent > 0 {
		text += fmt.Sprintf(", %d were not sent by its end", t.Unsent)
	}
	if lag, err := latency.Decode(t.Lag); err == nil && lag.Count() > 0 {
		text += fmt.Sprintf("; the generator sent %s late at p50 and %s at p99", layout.Whole(unit.Duration(lag.Quantile(0.50))), layout.Whole(unit.Duration(lag.Quantile(0.99))))
	}
	return text
}

// Steps are the rates that a search for the capacity tried, in order.
func Steps(c *hakaru.CapacityReport) *layout.Table {
	t := &layout.Table{Head: []string{"rate", "good", "errors", "holds"}, Right: []bool{true, true, true, false}}
	for _, s := range c.Steps {
		word := layout.Cell{Text: "yes", Tone: layout.Good}
		switch {
		case s.Void != "":
			word = layout.Cell{Text: "does not count: " + s.Void, Tone: layout.Doubtful}
		case !s.Holds:
			word = layout.Cell{Text: "no: " + s.Why, Tone: layout.Bad}
		}
		t.Rows = append(t.Rows, []layout.Cell{
			{Text: layout.Whole(unit.Rate(s.Rate))}, {Text: layout.Whole(unit.Rate(s.Achieved))}, {Text: layout.Whole(unit.Share(s.Errors))}, word,
		})
	}
	return t
}

// Capacity is a capacity with the interval of its search.
func Capacity(c *hakaru.CapacityReport) string {
	switch {
	case c.Reached != "":
		return fmt.Sprintf("at least %s: %s", layout.Whole(unit.Rate(c.Low)), c.Reached)
	case c.Value == 0:
		return "no rate that was tried holds the limits"
	}
	return fmt.Sprintf("%s (%s to %s, after %s)", layout.Whole(unit.Rate(c.Value)), layout.Whole(unit.Rate(c.Low)), layout.Whole(unit.Rate(c.High)), Count(len(c.Steps), "rate"))
}
