package report

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"hakaru"
	"hakaru/internal/compare"
	"hakaru/internal/layout"
	"hakaru/internal/stats"
	"hakaru/internal/unit"
)

// index is an Input with what every section looks up.
type index struct {
	*Input
	exp    *hakaru.Experiment
	strata []compare.Answer // in the order of the experiment
	at     []string         // hakaru.AtKey of each; where there is only one: ""
}

func newIndex(in *Input) *index {
	x := &index{Input: in, exp: &in.Run.Experiment, strata: in.Outcome.Strata}
	for _, s := range x.strata {
		x.at = append(x.at, hakaru.AtKey(s.At))
	}
	return x
}

// metricNames are names for people; a metric without one goes by its own.
var metricNames = map[hakaru.Metric]string{hakaru.CPUPerRequest: "CPU per request"}

func metricName(m hakaru.Metric) string {
	if name, ok := metricNames[m]; ok {
		return name
	}
	return string(m)
}

// metricUnit is the unit in which limits on a metric are written.
func metricUnit(m hakaru.Metric) string {
	switch m {
	case hakaru.Throughput, hakaru.Capacity:
		return "1/s"
	case hakaru.CPUPerRequest, hakaru.P50, hakaru.P99:
		return "s"
	case hakaru.Errors:
		return "ratio"
	case hakaru.Memory:
		return "B"
	}
	return "1"
}

// of returns the comparison of other against base in a stratum, or nil.
func (x *index) of(m hakaru.Metric, at, base, other string) *hakaru.Comparison {
	for i := range x.Comparisons {
		c := &x.Comparisons[i]
		if c.Metric == m && c.Base == base && c.Other == other && hakaru.AtKey(c.At) == at {
			return c
		}
	}
	return nil
}

// unusable returns why a variant cannot be used in a stratum, or nil.
func (x *index) unusable(variant, at string) *compare.UnusableVariant {
	for i := range x.Outcome.Unusable {
		if u := &x.Outcome.Unusable[i]; u.Variant == variant && hakaru.AtKey(u.At) == at {
			return u
		}
	}
	return nil
}

// tally is what the trials of a variant in a stratum show, calibration left out.
type tally struct {
	valid, void int
	median      map[hakaru.Metric]hakaru.Measurement // of the whole stack, over valid trials
}

func (x *index) tally(variant, at string) tally {
	t := tally{median: map[hakaru.Metric]hakaru.Measurement{}}
	values := map[hakaru.Metric][]float64{}
	units := map[hakaru.Metric]string{}
	for i := range x.History {
		r := &x.History[i]
		if r.Variant != variant || r.Phase == hakaru.Calibrate || hakaru.AtKey(r.At) != at {
			continue
		}
		if r.Void != nil {
			t.void++
			continue
		}
		t.valid++
		for _, m := range r.Measurements {
			if m.Of == "" {
				values[m.Metric] = append(values[m.Metric], m.Value)
				units[m.Metric] = m.Unit
			}
		}
	}
	for m, v := range values {
		t.median[m] = hakaru.Measurement{Metric: m, Value: stats.Median(v), Unit: units[m]}
	}
	return t
}

// family is the share of right answers the whole family of comparisons is
// built for: "95 %"; empty before it was frozen.
func (x *index) family() string {
	if x.Run.Frozen == nil || x.Run.Frozen.Alpha <= 0 {
		return ""
	}
	return layout.Whole(unit.Share(1 - x.Run.Frozen.Alpha))
}

func (x *index) matters() string {
	if x.Run.Frozen != nil && x.Run.Frozen.Matters > 0 {
		return layout.Whole(unit.Share(x.Run.Frozen.Matters))
	}
	return layout.Whole(unit.Share(x.exp.Design.Matters))
}

// count prints a number with its noun: "1 block", "5 blocks".
func count(n int, noun string) string {
	if n == 1 {
		return "1" + layout.Nbsp + noun
	}
	return fmt.Sprintf("%d"+layout.Nbsp+"%ss", n, noun)
}

// list joins words as in a sentence: "a, b and c".
func list(words []string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:len(words)-1], ", ") + " and " + words[len(words)-1]
}

// times reports whether a ratio reads better as "3.97 times" than as a change.
func times(c *hakaru.Comparison) bool { return c.Ratio >= 2 }

// factor prints a ratio in three digits: a fourth one is noise.
func factor(ratio float64) string {
	if !finite(ratio) || ratio <= 0 {
		return unit.Value(ratio, "1")
	}
	step := math.Pow(10, math.Floor(math.Log10(ratio))-2)
	return unit.Value(math.Round(ratio/step)*step, "1")
}

// interval prints the bounds of a comparison without their sign of percent:
// "+10.1 to +14.8", "3.9 to 4.05".
func interval(c *hakaru.Comparison) string { return bounds(c.Ratio, c.Low, c.High) }

func bounds(ratio, low, high float64) string {
	if ratio >= 2 {
		return layout.Whole(factor(low) + " to " + factor(high))
	}
	bare := func(ratio float64) string { return strings.TrimSuffix(unit.Change(ratio), " %") }
	return layout.Whole(bare(low) + " to " + bare(high))
}

// change prints a comparison as a figure with its interval.
func change(c *hakaru.Comparison) string {
	if c.Blocks == 0 {
		return "-"
	}
	if times(c) {
		return layout.Whole(factor(c.Ratio)+" times") + " (" + interval(c) + ")"
	}
	return layout.Whole(unit.Change(c.Ratio)) + " (" + interval(c) + ")"
}

// verdict words a judged comparison.
func verdict(c *hakaru.Comparison) layout.Cell {
	switch c.Verdict {
	case hakaru.Better:
		return layout.Cell{Text: "better", Tone: layout.Good}
	case hakaru.Worse:
		return layout.Cell{Text: "worse", Tone: layout.Bad}
	case hakaru.Same:
		return layout.Cell{Text: "no difference that matters (" + bounds(c.Ratio, c.SameLow, c.SameHigh) + ")"}
	}
	text := "not enough data"
	if c.MoreBlocks > 0 {
		text += " (about " + count(c.MoreBlocks, "more"+layout.Nbsp+"block") + ")"
	}
	return layout.Cell{Text: text, Tone: layout.Doubtful}
}

// voidReasons are the reasons in words, after "because".
var voidReasons = map[hakaru.VoidReason]string{
	hakaru.VoidNotStarted:       "the service did not become ready",
	hakaru.VoidDied:             "the service died or was replaced",
	hakaru.VoidWrongAnswers:     "there were wrong answers",
	hakaru.VoidLoadErrors:       "the load host made errors",
	hakaru.VoidAcceptQueue:      "the accept queue overflowed",
	hakaru.VoidGenerator:        "the load generator was at its limit",
	hakaru.VoidOthers:           "other programs took over half of the machine",
	hakaru.VoidThrottled:        "a CPU quota throttled the service",
	hakaru.VoidProof:            "a setting was not in force",
	hakaru.VoidAgent:            "the agent was lost",
	hakaru.VoidNothingCompleted: "not one request completed",
}

func voidReason(r hakaru.VoidReason) string {
	if words, ok := voidReasons[r]; ok {
		return words
	}
	return string(r)
}

// metrics returns the metrics that have comparisons, in a fixed order.
func (x *index) metrics() []hakaru.Metric {
	order := []hakaru.Metric{hakaru.Throughput, hakaru.Capacity, hakaru.Score, hakaru.CPUPerRequest, hakaru.P50, hakaru.P99, hakaru.Errors, hakaru.Memory, hakaru.Cost}
	var all []hakaru.Metric
	for _, c := range x.Comparisons {
		if !slices.Contains(order, c.Metric) {
			order = append(order, c.Metric)
		}
	}
	for _, m := range order {
		if slices.ContainsFunc(x.Comparisons, func(c hakaru.Comparison) bool { return c.Metric == m }) {
			all = append(all, m)
		}
	}
	return all
}
