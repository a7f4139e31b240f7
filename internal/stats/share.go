package stats

import (
	"math"

	"gonum.org/v1/gonum/mathext"
)

// Wilson is the score interval of a share of k in n (Wilson 1927): close to its
// level on average, short, never outside 0…1. n = 0 gives 0…1.
func Wilson(k, n uint64, level float64) Interval {
	if n == 0 {
		return Interval{0, 0, 1}
	}
	z, N := NormalQuantile(1-level/2), float64(n)
	p := float64(k) / N
	centre := (p + z*z/(2*N)) / (1 + z*z/N)
	half := z / (1 + z*z/N) * math.Sqrt(p*(1-p)/N+z*z/(4*N*N))
	// At the ends the formula is exact and rounding is not.
	iv := Interval{p, max(0, centre-half), min(1, centre+half)}
	if k == 0 {
		iv.Low = 0
	}
	if k == n {
		iv.High = 1
	}
	return iv
}

// ClopperPearson is the exact interval of a share of k in n (Clopper and
// Pearson 1934): never below its level, hence wider than Wilson's. n = 0 gives
// 0…1.
func ClopperPearson(k, n uint64, level float64) Interval {
	if n == 0 {
		return Interval{0, 0, 1}
	}
	K, N := float64(k), float64(n)
	iv := Interval{K / N, 0, 1}
	if k > 0 {
		iv.Low = mathext.InvRegIncBeta(K, N-K+1, level/2)
	}
	if k < n {
		iv.High = mathext.InvRegIncBeta(K+1, N-K, 1-level/2)
	}
	return iv
}
