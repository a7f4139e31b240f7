package compare

import (
	"cmp"
	"math"
	"slices"

	"hakaru"
)

// Judge says who is recommended in each stratum, from comparisons and limits
// that Compare and Limits gave for the same history.
func Judge(exp *hakaru.Experiment, frozen hakaru.Frozen, history []hakaru.Result,
	comparisons []hakaru.Comparison, limits []hakaru.LimitResult) Outcome {
	l := read(exp, frozen, history)
	var o Outcome
	for i := range history {
		if history[i].Void != nil {
			o.VoidTrials++
		}
	}
	if r := l.CalibrationFailed(); r != nil && own(l.trials[r.Block][r.Variant]) {
		o.Unusable = append(o.Unusable, UnusableVariant{r.Variant, r.At, r.Void.Reason, r.Void.Evidence})
	}
	for _, s := range l.strata {
		a := s.answer(comparisons, limits)
		o.Strata = append(o.Strata, a)
		o.Complete += a.Blocks
		o.Dropped += a.Dropped
		o.ViolatesLimit = o.ViolatesLimit || len(a.Violated) > 0
		for _, v := range exp.Variants {
			if u, lost := s.unusable[v.Name]; lost {
				o.Unusable = append(o.Unusable, u)
			}
		}
	}
	o.State = overall(o.Strata)
	if text, _ := l.Prevailing(); text != "" {
		o.State = StateVoid
	}
	return o
}

// overall is the state of the run: the first of these that any stratum has,
// and void only where no stratum has another.
func overall(answers []Answer) State {
	for _, state := range []State{StateBetter, StateUnclear, StateNoneBetter, StateSame} {
		if slices.ContainsFunc(answers, func(a Answer) bool { return a.State == state }) {
			return state
		}
	}
	return StateVoid
}

func (s *Stratum) answer(comparisons []hakaru.Comparison, limits []hakaru.LimitResult) Answer {
	base, key := s.ledger.exp.Baseline, hakaru.AtKey(s.At)
	a := Answer{At: s.At, Blocks: len(s.blocks), Dropped: s.Dropped}
	held := func(variant string, verdict hakaru.LimitVerdict) (metrics []hakaru.Metric) {
		for _, l := range limits {
			if l.Variant == variant && l.Verdict == verdict && hakaru.AtKey(l.At) == key {
				metrics = append(metrics, l.Metric)
			}
		}
		return metrics
	}
	var judged, better []hakaru.Comparison
	same := true
	for _, c := range comparisons {
		if !c.Judged || hakaru.AtKey(c.At) != key {
			continue
		}
		if _, lost := s.unusable[c.Other]; lost || c.Base != base {
			continue
		}
		judged = append(judged, c)
		same = same && c.Verdict == hakaru.Same
		switch {
		case c.Verdict == hakaru.Unclear:
			a.Undecided = append(a.Undecided, c.Other)
		case c.Verdict == hakaru.Better && held(c.Other, hakaru.Violates) != nil:
			a.Excluded = append(a.Excluded, c.Other)
		case c.Verdict == hakaru.Better:
			better = append(better, c)
		}
	}
	hasPairs := len(s.pairs) > 0
	if s.baselineLost() || s.ledger.CalibrationFailed() != nil || (hasPairs && len(judged) == 0) || (len(s.blocks) == 0 && s.Dropped > 0) {
		return Answer{At: s.At, State: StateVoid, Blocks: a.Blocks, Dropped: a.Dropped}
	}
	a.Winner = base
	switch {
	case len(better) > 0:
		a.State = StateBetter
		// The first in the file wins where two are exactly equal.
		slices.SortStableFunc(better, func(x, y hakaru.Comparison) int {
			return cmp.Compare(improvement(y), improvement(x))
		})
		lead := better[0]
		// Two that were compared directly are told apart by that, which has
		// more blocks than two early verdicts against the baseline.
		for range better {
			if i := slices.IndexFunc(better, func(c hakaru.Comparison) bool {
				return direct(comparisons, key, c.Other, lead.Other) == hakaru.Better
			}); i >= 0 {
				lead = better[i]
			}
		}
		a.Winner = lead.Other
		for _, c := range better {
			if c.Other == lead.Other {
				continue
			}
			verdict := direct(comparisons, key, c.Other, lead.Other)
			if verdict == hakaru.Same || (verdict == hakaru.Unclear && overlap(c, lead)) {
				a.Ties = append(a.Ties, c.Other)
			}
		}
	case len(a.Undecided) > 0:
		a.State = StateUnclear
	case hasPairs && same:
		a.State = StateSame
	default:
		a.State = StateNoneBetter
	}
	a.Violated, a.NotShown = held(a.Winner, hakaru.Violates), held(a.Winner, hakaru.NotShown)
	return a
}

// improvement is the log ratio in the direction of better.
func improvement(c hakaru.Comparison) float64 {
	if c.Metric.HigherIsBetter() {
		return math.Log(c.Ratio)
	}
	return -math.Log(c.Ratio)
}

func overlap(a, b hakaru.Comparison) bool { return a.Low <= b.High && b.Low <= a.High }

// direct is the verdict on x against y where the experiment has that pair, in
// either direction; Unclear where it has not.
func direct(comparisons []hakaru.Comparison, key, x, y string) hakaru.Verdict {
	for _, c := range comparisons {
		if !c.Judged || hakaru.AtKey(c.At) != key {
			continue
		}
		switch {
		case c.Other == x && c.Base == y:
			return c.Verdict
		case c.Other == y && c.Base == x && c.Verdict == hakaru.Better:
			return hakaru.Worse
		case c.Other == y && c.Base == x && c.Verdict == hakaru.Worse:
			return hakaru.Better
		case c.Other == y && c.Base == x:
			return c.Verdict
		}
	}
	return hakaru.Unclear
}
