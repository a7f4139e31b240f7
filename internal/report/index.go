package report

import (
	"slices"

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
