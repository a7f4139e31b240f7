package stats

import "math"

// Blocks are values in complete randomised blocks: Blocks[i][b] is arm i in
// block b. All arms have the same number of blocks.
type Blocks [][]float64

// Residual is the standard deviation of the residuals
// r_ib = l_ib - mean_i - mean_b + mean over k arms and n blocks, with its
// degrees of freedom (k-1)(n-1): the two-way layout without interaction.
func (x Blocks) Residual() (s, dof float64) {
	k, n := len(x), len(x[0])
	block, all := x.Means(), 0.0
	for _, m := range block {
		all += m / float64(n)
	}
	sum := 0.0
	for _, arm := range x {
		mean := Mean(arm)
		for b, v := range arm {
			r := v - mean - block[b] + all
			sum += r * r
		}
	}
	dof = float64((k - 1) * (n - 1))
	return math.Sqrt(sum / dof), dof
}

// Means are the means of the blocks over their arms.
func (x Blocks) Means() []float64 {
	means := make([]float64, len(x[0]))
	for _, arm := range x {
		for b, v := range arm {
			means[b] += v / float64(len(x))
		}
	}
	return means
}

// Difference is the mean of arm other minus arm base with its t interval. The
// spread is pooled over all arms, unless this pair's own is larger: then the
// arms do not share one spread and pooling would flatter the noisy one
// (METHOD.md §5 (a) 2). ok is false below two blocks or two arms.
func (x Blocks) Difference(base, other int, level float64) (iv Interval, ok bool) {
	if len(x) < 2 || len(x[0]) < 2 {
		return Interval{}, false
	}
	n := float64(len(x[0]))
	d := make([]float64, len(x[0]))
	for b := range d {
		d[b] = x[other][b] - x[base][b]
	}
	s, dof := x.Residual()
	spread := math.Sqrt2 * s
	// With two arms both are the same number; rounding must not choose.
	if own := SD(d); own > spread && len(x) > 2 {
		spread, dof = own, n-1
	}
	mean := Mean(d)
	half := StudentQuantile(1-level/2, dof) * spread / math.Sqrt(n)
	return Interval{mean, mean - half, mean + half}, true
}

// Drift compares the spread of block means with s/sqrt(k), which is all there
// would be if every block had run on the same machine at the same speed. moved
// is the spread beyond that, p the probability of so much spread without drift
// (an F test of blocks against residuals).
func (x Blocks) Drift() (moved, p float64) {
	if len(x) < 2 || len(x[0]) < 2 {
		return 0, 1
	}
	s, dof := x.Residual()
	expected := s / math.Sqrt(float64(len(x)))
	seen := SD(x.Means())
	if seen <= expected {
		return 0, 1
	}
	moved = math.Sqrt(seen*seen - expected*expected)
	if expected == 0 {
		return moved, 0
	}
	ratio := seen / expected
	return moved, FTail(ratio*ratio, float64(len(x[0])-1), dof)
}
