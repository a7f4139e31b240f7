package stats

import "math"

// SuccessiveCV is the spread of one value from the next: the median absolute
// difference of neighbours over 0.6745·sqrt 2 (METHOD.md §5 (d)). On logarithms
// it is the coefficient of variation. Slow drift and single outliers hardly
// move it; with six values it is rough. ok is false below two values.
func SuccessiveCV(logs []float64) (cv float64, ok bool) {
	if len(logs) < 2 {
		return 0, false
	}
	steps := make([]float64, len(logs)-1)
	for i := range steps {
		steps[i] = math.Abs(logs[i+1] - logs[i])
	}
	return Median(steps) / (0.6745 * math.Sqrt2), true
}

// power80 is the normal quantile of 0.8: the chance that a difference just as
// large as asked for is found.
const power80 = 0.84

// BlocksNeeded is about how many blocks tell a difference of delta (on the log
// scale) at the given level of a look, four times in five:
// 1.4·((z+0.84)·sqrt 2·CV/delta)², where 1.4 is what drift and outliers were
// measured to cost (METHOD.md §5 (d)).
func BlocksNeeded(cv, delta, level float64) int {
	x := (NormalQuantile(1-level/2) + power80) * math.Sqrt2 * cv / delta
	return atLeastOne(1.4 * x * x)
}

// BlocksToReach is how many blocks in all would put a difference of distance
// beyond doubt four times in five, given that the standard deviation of a
// block's difference is sd.
func BlocksToReach(sd, distance, level float64) int {
	x := (NormalQuantile(1-level/2) + power80) * sd / distance
	return atLeastOne(x * x)
}

func atLeastOne(n float64) int {
	// Beyond a million nobody waits, and the conversion stays defined.
	return int(math.Ceil(min(max(n, 1), 1e6)))
}
