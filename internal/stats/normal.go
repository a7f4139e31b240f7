package stats

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/stat/distuv"
)

// Interval is an estimate with its confidence limits.
type Interval struct{ Estimate, Low, High float64 }

// NormalQuantile is the value that a standard normal variable stays below with
// probability p.
func NormalQuantile(p float64) float64 { return distuv.UnitNormal.Quantile(p) }

// StudentQuantile is the value that a t variable stays below with probability p.
func StudentQuantile(p, dof float64) float64 {
	return distuv.StudentsT{Mu: 0, Sigma: 1, Nu: dof}.Quantile(p)
}

// FTail is the probability that an F variable exceeds f.
func FTail(f, numerator, denominator float64) float64 {
	return distuv.F{D1: numerator, D2: denominator}.Survival(f)
}

// Mean of xs; NaN where there are none.
func Mean(xs []float64) float64 {
	sum := 0.0
	for _, x := range xs {
		sum += x
	}
	return sum / float64(len(xs))
}

// SD is the sample standard deviation; NaN below two values.
func SD(xs []float64) float64 {
	if len(xs) < 2 {
		return math.NaN()
	}
	mean, sum := Mean(xs), 0.0
	for _, x := range xs {
		sum += (x - mean) * (x - mean)
	}
	return math.Sqrt(sum / float64(len(xs)-1))
}

// Median of xs, which stay as they are; NaN where there are none.
func Median(xs []float64) float64 {
	sorted := slices.Sorted(slices.Values(xs))
	n := len(sorted)
	if n == 0 {
		return math.NaN()
	}
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}

// StudentInterval is the mean of xs with its t interval. ok is false below two
// values.
func StudentInterval(xs []float64, level float64) (iv Interval, ok bool) {
	n := float64(len(xs))
	if n < 2 {
		return Interval{}, false
	}
	mean := Mean(xs)
	half := StudentQuantile(1-level/2, n-1) * SD(xs) / math.Sqrt(n)
	return Interval{mean, mean - half, mean + half}, true
}
