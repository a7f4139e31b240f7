package stats_test

import (
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"testing"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"
	"pgregory.net/rapid"

	"hakaru/internal/stats"
)

func near(t *testing.T, what string, got, want, tolerance float64) {
	t.Helper()
	if !(math.Abs(got-want) <= tolerance) {
		t.Errorf("%s: %v, want %v ± %v", what, got, want, tolerance)
	}
}

// Critical values of the signed-rank statistic, two-sided, as published
// (Wilcoxon and Wilcox 1964, and any textbook): the largest W that is
// significant, -1 where none is.
func TestSignedRankTable(t *testing.T) {
	for level, table := range map[float64]map[int]int{
		0.05: {5: -1, 6: 0, 7: 2, 8: 3, 9: 5, 10: 8, 11: 10, 12: 13, 13: 17, 14: 21, 15: 25, 16: 29, 17: 34, 18: 40, 19: 46, 20: 52, 25: 89, 30: 137},
		0.01: {7: -1, 8: 0, 9: 1, 10: 3, 11: 5, 12: 7, 13: 9, 14: 12, 15: 15, 16: 19, 17: 23, 18: 27, 19: 32, 20: 37, 25: 68, 30: 109},
	} {
		for n, want := range table {
			got, ok := stats.SignedRankIndex(n, level)
			if !ok {
				got = -1
			}
			if got != want {
				t.Errorf("n=%d, level %v: W = %d, want %d", n, level, got, want)
			}
		}
	}
}

// The distribution against counting all 2^n signs, and against exact integers
// where those are too many.
func TestSignedRankExact(t *testing.T) {
	for n := 1; n <= 12; n++ {
		counts := make([]float64, n*(n+1)/2+1)
		for signs := range 1 << n {
			w := 0
			for i := range n {
				if signs>>i&1 == 1 {
					w += i + 1
				}
			}
			counts[w]++
		}
		sum := 0.0
		for k, p := range stats.SignedRankCDF(n) {
			sum += counts[k]
			if want := math.Ldexp(sum, -n); p != want {
				t.Fatalf("n=%d: P(W<=%d) = %v, want %v", n, k, p, want)
			}
		}
	}
	const n = 160
	counts := make([]*big.Int, n*(n+1)/2+1)
	for i := range counts {
		counts[i] = new(big.Int)
	}
	counts[0].SetInt64(1)
	for rank := 1; rank <= n; rank++ {
		for j := len(counts) - 1; j >= rank; j-- {
			counts[j].Add(counts[j], counts[j-rank])
		}
	}
	cdf, sum := stats.SignedRankCDF(n), new(big.Int)
	all := new(big.Float).SetInt(new(big.Int).Lsh(big.NewInt(1), n))
	for k, p := range cdf {
		want, _ := new(big.Float).Quo(new(big.Float).SetInt(sum.Add(sum, counts[k])), all).Float64()
		if math.Abs(p-want) > 1e-12*want {
			t.Fatalf("n=%d: P(W<=%d) = %v, want %v", n, k, p, want)
		}
	}
}

func TestMinimalLevel(t *testing.T) {
	for n := 1; n <= 60; n++ {
		level := stats.MinimalLevel(n)
		if _, ok := stats.SignedRankIndex(n, level); !ok {
			t.Errorf("n=%d: no interval at its own minimal level", n)
		}
		if _, ok := stats.SignedRankIndex(n, level*0.999); ok {
			t.Errorf("n=%d: an interval below the minimal level", n)
		}
	}
	// METHOD.md's looks with one comparison: 0.05/6 is feasible from 10 on.
	near(t, "n=10", stats.MinimalLevel(10), 0.001953125, 0)
}

// The interval is the inversion of the test: a shift is inside exactly when the
// test does not reject it, counted here by ranks.
func TestHodgesLehmannInvertsTheTest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(6, 14).Draw(t, "n")
		d := rapid.SliceOfNDistinct(rapid.Float64Range(-5, 5), n, n, rapid.ID).Draw(t, "d")
		shift := rapid.Float64Range(-6, 6).Draw(t, "shift")
		const level = 0.05
		iv, ok := stats.HodgesLehmann(d, level)
		if !ok {
			t.Fatal("no interval")
		}
		abs := make([]float64, n)
		for i, x := range d {
			abs[i] = math.Abs(x - shift)
		}
		order := make([]int, n)
		for i := range order {
			order[i] = i
		}
		slices.SortFunc(order, func(i, j int) int {
			switch {
			case abs[i] < abs[j]:
				return -1
			case abs[i] > abs[j]:
				return 1
			}
			return 0
		})
		for i := 1; i < n; i++ {
			if abs[order[i]]-abs[order[i-1]] < 1e-9 {
				t.Skip("ties")
			}
		}
		plus := 0
		for rank, i := range order {
			if d[i] > shift {
				plus += rank + 1
			}
		}
		k, _ := stats.SignedRankIndex(n, level)
		rejected := min(plus, n*(n+1)/2-plus) <= k
		for _, end := range []float64{iv.Low, iv.High} {
			if math.Abs(shift-end) < 1e-9 {
				t.Skip("on the end")
			}
		}
		if inside := iv.Low < shift && shift < iv.High; inside == rejected {
			t.Fatalf("shift %v: inside [%v, %v] is %v, rejected is %v", shift, iv.Low, iv.High, inside, rejected)
		}
		if iv.Estimate < iv.Low || iv.Estimate > iv.High {
			t.Fatalf("estimate %v outside [%v, %v]", iv.Estimate, iv.Low, iv.High)
		}
	})
}

func TestHodgesLehmannKnown(t *testing.T) {
	// 0…9: Walsh averages are symmetric about 4.5. At 5 % k = 8.
	d := []float64{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}
	iv, ok := stats.HodgesLehmann(d, 0.05)
	if !ok || iv != (stats.Interval{Estimate: 4.5, Low: 2, High: 7}) {
		t.Errorf("got %+v, %v", iv, ok)
	}
	if _, ok := stats.HodgesLehmann(d[:5], 0.05); ok {
		t.Error("five values have no interval at 5 %")
	}
}

func TestStudentInterval(t *testing.T) {
	// Published quantiles.
	near(t, "t(0.975; 9)", stats.StudentQuantile(0.975, 9), 2.2622, 5e-5)
	near(t, "t(0.995; 2)", stats.StudentQuantile(0.995, 2), 9.9248, 5e-5)
	near(t, "z(0.975)", stats.NormalQuantile(0.975), 1.959964, 1e-6)
	xs := []float64{4, 7, 1, 9, 4.5}
	mean, sd := stat.MeanStdDev(xs, nil)
	half := distuv.StudentsT{Sigma: 1, Nu: 4}.Quantile(0.975) * sd / math.Sqrt(5)
	iv, ok := stats.StudentInterval(xs, 0.05)
	if !ok {
		t.Fatal("no interval")
	}
	near(t, "estimate", iv.Estimate, mean, 1e-12)
	near(t, "low", iv.Low, mean-half, 1e-12)
	near(t, "high", iv.High, mean+half, 1e-12)
	if _, ok := stats.StudentInterval(xs[:1], 0.05); ok {
		t.Error("one value has no interval")
	}
}

func TestBlocks(t *testing.T) {
	// Two arms: the pooled interval is the paired t interval.
	a, b := []float64{1, 5, 2, 8}, []float64{2, 7, 2.5, 9}
	d := []float64{1, 2, 0.5, 1}
	want, _ := stats.StudentInterval(d, 0.05)
	got, ok := stats.Blocks{a, b}.Difference(0, 1, 0.05)
	if !ok {
		t.Fatal("no interval")
	}
	near(t, "estimate", got.Estimate, want.Estimate, 1e-12)
	near(t, "low", got.Low, want.Low, 1e-12)
	near(t, "high", got.High, want.High, 1e-12)

	// The residuals of a two-way table worked by hand: rows 1 2 / 3 5 / 2 2.
	s, dof := stats.Blocks{{1, 2}, {3, 5}, {2, 2}}.Residual()
	near(t, "s", s, math.Sqrt(0.5), 1e-12)
	near(t, "dof", dof, 2, 0)

	// A pair noisier than the rest is not flattered by it.
	calm := []float64{0, 0, 0, 0}
	x := stats.Blocks{calm, {0.5, -0.5, 0.5, -0.5}, calm, calm, calm}
	wide, _ := x.Difference(0, 1, 0.05)
	own, _ := stats.StudentInterval(x[1], 0.05)
	near(t, "guarded", wide.High, own.High, 1e-12)
	narrow, _ := x.Difference(0, 2, 0.05)
	if pooled := narrow.High; pooled <= 0 || pooled >= own.High {
		t.Errorf("pooled half-width %v, want between 0 and %v", pooled, own.High)
	}
	if _, ok := (stats.Blocks{{1}, {2}}).Difference(0, 1, 0.05); ok {
		t.Error("one block has no interval")
	}
}

func TestDrift(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	still, moving := stats.Blocks{nil, nil, nil}, stats.Blocks{nil, nil, nil}
	for range 200 {
		common := 0.05 * rng.NormFloat64()
		for arm := range still {
			e := 0.01 * rng.NormFloat64()
			still[arm] = append(still[arm], e)
			moving[arm] = append(moving[arm], e+common)
		}
	}
	if moved, p := still.Drift(); p < 0.01 {
		t.Errorf("a machine that stands still drifts by %v (p %v)", moved, p)
	}
	moved, p := moving.Drift()
	near(t, "moved", moved, 0.05, 0.01)
	near(t, "p", p, 0, 1e-6)
}

func TestShares(t *testing.T) {
	// Newcombe 1998, table I: Wilson's and the exact interval of 81 in 263,
	// 15 in 148, 0 in 20 and 1 in 29.
	for _, test := range []struct {
		k, n                          uint64
		wLow, wHigh, exactLow, exactH float64
	}{
		{81, 263, 0.2553, 0.3662, 0.2527, 0.3676},
		{15, 148, 0.0624, 0.1605, 0.0578, 0.1617},
		{0, 20, 0, 0.1611, 0, 0.1684},
		{1, 29, 0.0061, 0.1718, 0.0009, 0.1776},
	} {
		t.Run(fmt.Sprintf("%d in %d", test.k, test.n), func(t *testing.T) {
			w, c := stats.Wilson(test.k, test.n, 0.05), stats.ClopperPearson(test.k, test.n, 0.05)
			near(t, "Wilson low", w.Low, test.wLow, 5e-5)
			near(t, "Wilson high", w.High, test.wHigh, 5e-5)
			near(t, "exact low", c.Low, test.exactLow, 5e-5)
			near(t, "exact high", c.High, test.exactH, 5e-5)
		})
	}
	// No error in a million answers: -ln(0.025)/n, the rule of three.
	near(t, "0 in 10^6", stats.ClopperPearson(0, 1e6, 0.05).High, 3.6889e-6, 1e-9)
	if c := stats.ClopperPearson(0, 0, 0.05); c.Low != 0 || c.High != 1 {
		t.Errorf("no answers: %+v", c)
	}
	// By definition: at the ends the observed count has probability 2.5 %.
	c := stats.ClopperPearson(3, 1000, 0.05)
	near(t, "tail below", distuv.Binomial{N: 1000, P: c.High}.CDF(3), 0.025, 1e-9)
	near(t, "tail above", 1-distuv.Binomial{N: 1000, P: c.Low}.CDF(2), 0.025, 1e-9)
}

func TestNoise(t *testing.T) {
	// METHOD.md §5 (d): CV 2, 5, 20 % and 3 % → about 16, 97, 1500.
	for cv, want := range map[float64]int{0.02: 16, 0.05: 97, 0.20: 1500} {
		got := stats.BlocksNeeded(cv, math.Log(1.03), 0.05/6)
		if math.Abs(float64(got-want)) > 0.04*float64(want) {
			t.Errorf("CV %v: %d blocks, want about %d", cv, got, want)
		}
	}
	if _, ok := stats.SuccessiveCV([]float64{1}); ok {
		t.Error("one value has no noise")
	}
	rng := rand.New(rand.NewPCG(3, 4))
	var logs, drifting []float64
	for i := range 4000 {
		e := 0.05 * rng.NormFloat64()
		logs, drifting = append(logs, e), append(drifting, e+float64(i)*0.001)
	}
	cv, _ := stats.SuccessiveCV(logs)
	near(t, "CV", cv, 0.05, 0.002)
	cv, _ = stats.SuccessiveCV(drifting)
	near(t, "CV with drift", cv, 0.05, 0.002)
	near(t, "median", stats.Median([]float64{3, 1, 2, 10}), 2.5, 0)
	if n := stats.BlocksToReach(1, 1e-9, 0.05); n != 1e6 {
		t.Errorf("no distance: %d blocks", n)
	}
}

// The orders of a seed are kept for ever: a stored run must resume to the same
// plan. If this fails, the shuffle is wrong, not the test.
func TestShuffleStays(t *testing.T) {
	for _, test := range []struct {
		seed, stream uint64
		want         string
	}{
		{0, 0, "[8 6 5 3 0 4 2 9 7 1]"},
		{1, 1, "[9 8 2 6 5 3 0 4 1 7]"},
		{1, 2, "[5 3 6 7 0 8 9 4 2 1]"},
		{42, 1 << 32, "[5 6 4 8 1 2 0 7 3 9]"},
		{math.MaxUint64, 7, "[2 7 6 0 4 9 1 3 8 5]"},
	} {
		xs := []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}
		stats.Shuffle(xs, test.seed, test.stream)
		if got := fmt.Sprint(xs); got != test.want {
			t.Errorf("seed %d stream %d: %s, want %s", test.seed, test.stream, got, test.want)
		}
	}
}

// Every order is about as frequent as any other over the streams of one seed.
func TestShuffleFair(t *testing.T) {
	counts := map[[4]int]int{}
	const streams = 24000
	for stream := range uint64(streams) {
		xs := [4]int{0, 1, 2, 3}
		stats.Shuffle(xs[:], 5, stream)
		counts[xs]++
	}
	if len(counts) != 24 {
		t.Fatalf("%d of 24 orders", len(counts))
	}
	chi := 0.0
	for _, n := range counts {
		chi += float64((n-streams/24)*(n-streams/24)) / (streams / 24)
	}
	if p := (distuv.ChiSquared{K: 23}).Survival(chi); p < 0.001 {
		t.Errorf("chi² %v, p %v", chi, p)
	}
}

// Coverage, seeded: the rank interval holds its level under heavy tails and
// outliers, and t under the normal noise it is made for.
func TestCoverage(t *testing.T) {
	rng := rand.New(rand.NewPCG(11, 12))
	const rounds, level = 2000, 0.05
	normal := func() float64 { return rng.NormFloat64() }
	heavy := func() float64 {
		x := rng.NormFloat64()
		if rng.Float64() < 0.06 {
			x *= 10
		}
		return x
	}
	for _, test := range []struct {
		name   string
		n      int
		noise  func() float64
		method func([]float64, float64) (stats.Interval, bool)
	}{
		{"ranks, normal", 10, normal, stats.HodgesLehmann},
		{"ranks, outliers", 14, heavy, stats.HodgesLehmann},
		{"t, normal", 5, normal, stats.StudentInterval},
	} {
		t.Run(test.name, func(t *testing.T) {
			missed := 0
			for range rounds {
				d := make([]float64, test.n)
				for i := range d {
					d[i] = 3 + test.noise()
				}
				if iv, ok := test.method(d, level); !ok || iv.Low > 3 || iv.High < 3 {
					missed++
				}
			}
			share := float64(missed) / rounds
			// Three standard errors; ranks are discrete and may be below.
			if share > level+0.015 || share < 0.02 {
				t.Errorf("missed in %.1f %%, want about %.0f", 100*share, 100*level)
			}
		})
	}
}
