package compare

import (
	"math"

	"hakaru"
	"hakaru/internal/stats"
)

// SoFar is the median change of the goal over the complete blocks of every pair
// that has no verdict yet, for whoever watches. It claims nothing: there is no
// interval, since the data may only be judged at the planned looks.
func SoFar(exp *hakaru.Experiment, frozen hakaru.Frozen, history []hakaru.Result) []hakaru.Comparison {
	var all []hakaru.Comparison
	for _, s := range read(exp, frozen, history).strata {
		for _, p := range s.pairs {
			if p.settled || len(s.blocks) == 0 {
				continue
			}
			v := s.values(exp.Goal, p.Pair, len(s.blocks))
			if len(v.d) == 0 {
				continue
			}
			all = append(all, hakaru.Comparison{
				Metric: exp.Goal, At: s.At, Base: p.Base, Other: p.Other, Blocks: len(s.blocks),
				Ratio: math.Exp(stats.Median(v.d)),
			})
		}
	}
	return all
}
