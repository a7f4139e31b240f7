package stats

import (
	"math"
	"slices"
)

// SignedRankCDF is P(W <= k) for k = 0…n(n+1)/4 of Wilcoxon's signed-rank
// statistic of n values under the null hypothesis of symmetry about 0, exact
// but for rounding; the upper half follows by symmetry. The counts are those of
// the subsets of 1…n by their sum, halved at each step so that no n overflows.
func SignedRankCDF(n int) []float64 {
	top := n * (n + 1) / 4
	p := make([]float64, top+1)
	p[0] = 1
	for rank := 1; rank <= n; rank++ {
		for sum := top; sum >= rank; sum-- {
			p[sum] = (p[sum] + p[sum-rank]) / 2
		}
		for sum := min(rank-1, top); sum >= 0; sum-- {
			p[sum] /= 2
		}
	}
	for k := 1; k <= top; k++ {
		p[k] += p[k-1]
	}
	return p
}

// SignedRankIndex is the largest k with P(W <= k) <= level/2: the interval of
// the median reaches from the k-th Walsh average (from 0) to the k-th from the
// top. ok is false where n values are too few for the level.
func SignedRankIndex(n int, level float64) (k int, ok bool) {
	if n < 1 || MinimalLevel(n) > level {
		return 0, false
	}
	cdf := SignedRankCDF(n)
	k = (n*(n+1)/2 - 1) / 2 // the middle, which no level below 1 reaches
	for cdf[k] > level/2 {
		k--
	}
	return k, true
}

// MinimalLevel is the smallest level at which n values have a signed-rank
// interval at all: 2·P(W = 0).
func MinimalLevel(n int) float64 { return math.Ldexp(1, 1-n) }

// HodgesLehmann is the median of the Walsh averages of d with the interval that
// inverts the exact signed-rank test. Its level holds for any d that is
// symmetric about its centre, whatever the tails. ok is false where d is too
// short for the level.
func HodgesLehmann(d []float64, level float64) (iv Interval, ok bool) {
	n := len(d)
	k, ok := SignedRankIndex(n, level)
	if !ok {
		return Interval{}, false
	}
	walsh := make([]float64, 0, n*(n+1)/2)
	for i, a := range d {
		for _, b := range d[i:] {
			walsh = append(walsh, (a+b)/2)
		}
	}
	slices.Sort(walsh)
	m := len(walsh)
	return Interval{
		Estimate: (walsh[(m-1)/2] + walsh[m/2]) / 2,
		Low:      walsh[k],
		High:     walsh[m-1-k],
	}, true
}
