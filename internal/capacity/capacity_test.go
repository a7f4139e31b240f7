package capacity

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"hakaru"

	"github.com/google/go-cmp/cmp"
)

// run searches against a service, which says whether the n-th step holds.
func run(s Search, holds func(n int, rate float64) bool) hakaru.CapacityReport {
	var steps []hakaru.CapacityStep
	for {
		rate, done := s.Next(steps)
		if done {
			return s.Estimate(steps)
		}
		steps = append(steps, hakaru.CapacityStep{Rate: rate, Holds: holds(len(steps), rate)})
	}
}

// Over many seeded searches the interval holds the true capacity about as often as
// it says, for services that are as the model is and for services that are not; and
// it is narrow, or the steps are used up.
func TestCoverage(t *testing.T) {
	const runs, most = 100, 16
	logistic := func(spread float64) func(*rand.Rand, float64) func(int, float64) bool {
		return func(rng *rand.Rand, truth float64) func(int, float64) bool {
			return func(_ int, rate float64) bool {
				return rng.Float64() < 1/(1+math.Exp(math.Log(rate/truth)/spread))
			}
		}
	}
	for _, c := range []struct {
		name     string
		service  func(rng *rand.Rand, truth float64) func(int, float64) bool
		coverage float64 // at least
		width    float64 // median of half the interval, of the value, at most
		steps    int     // median, at most
	}{
		{"hard", func(_ *rand.Rand, truth float64) func(int, float64) bool {
			return func(_ int, rate float64) bool { return rate < truth }
		}, 0.97, 0.03, 15},
		{"logistic, 1 %", logistic(0.01), 0.93, 0.04, most},
		{"logistic, 3 %", logistic(0.03), 0.93, 0.08, most},
		{"logistic, 10 %", logistic(0.10), 0.90, 0.15, most},
		{"hard, and each step's speed differs by 5 %", func(rng *rand.Rand, truth float64) func(int, float64) bool {
			return func(_ int, rate float64) bool { return rate < truth*math.Exp(0.05*rng.NormFloat64()) }
		}, 0.93, 0.08, most},
		{"1 %, and one step in thirty fails for something else", func(rng *rand.Rand, truth float64) func(int, float64) bool {
			holds := logistic(0.01)(rng, truth)
			return func(n int, rate float64) bool { return holds(n, rate) && rng.Float64() > 1.0/30 }
		}, 0.93, 0.05, most},
		{"1 %, and one step in six fails for something else", func(rng *rand.Rand, truth float64) func(int, float64) bool {
			holds := logistic(0.01)(rng, truth)
			return func(n int, rate float64) bool { return holds(n, rate) && rng.Float64() > 1.0/6 }
		}, 0.90, 0.20, most},
		{"2 %, and becoming slower by 5 % in all", func(rng *rand.Rand, truth float64) func(int, float64) bool {
			holds := logistic(0.02)(rng, 1)
			return func(n int, rate float64) bool {
				return holds(n, rate/truth/(1+0.05*(0.5-float64(n)/most)))
			}
		}, 0.93, 0.08, most},
	} {
		t.Run(c.name, func(t *testing.T) {
			covered, widths, taken := 0, []float64(nil), []int(nil)
			for seed := range uint64(runs) {
				rng := rand.New(rand.NewPCG(seed, 7))
				s := Search{Most: 1000 * math.Exp(rng.NormFloat64()), Steps: most}
				truth := s.Most * math.Exp(-rng.ExpFloat64()/2) // near the closed loop's, or far below it
				truth = max(truth, s.Most/30)
				report := run(s, c.service(rng, truth))
				if report.Low <= truth && truth <= report.High {
					covered++
				}
				if !(report.Low <= report.Value && report.Value <= report.High) || len(report.Steps) > most {
					t.Fatalf("seed %d: %g in %g to %g after %d steps", seed, report.Value, report.Low, report.High, len(report.Steps))
				}
				widths = append(widths, (report.High-report.Low)/2/report.Value)
				taken = append(taken, len(report.Steps))
			}
			slices.Sort(widths)
			slices.Sort(taken)
			share := float64(covered) / runs
			t.Logf("covered %.3f, half width %.4f (90 %%: %.4f), steps %d (90 %%: %d)", share, widths[runs/2], widths[runs*9/10], taken[runs/2], taken[runs*9/10])
			if share < c.coverage {
				t.Errorf("the interval holds the truth in %.3f of the runs, want at least %.2f", share, c.coverage)
			}
			if widths[runs/2] > c.width || taken[runs/2] > c.steps {
				t.Errorf("median of half the width %.4f after %d steps, want at most %.3f after %d", widths[runs/2], taken[runs/2], c.width, c.steps)
			}
		})
	}
}

// steps and void make steps as they are written in tests: 100 holds, -100 does not.
func steps(rates ...float64) (list []hakaru.CapacityStep) {
	for _, r := range rates {
		list = append(list, hakaru.CapacityStep{Rate: math.Abs(r), Holds: r > 0})
	}
	return list
}

func void(rates ...float64) (list []hakaru.CapacityStep) {
	for _, r := range rates {
		list = append(list, hakaru.CapacityStep{Rate: r, Void: "the generator used 95 % of its CPUs"})
	}
	return list
}

func rates(steps []hakaru.CapacityStep) (list []float64) {
	for _, s := range steps {
		list = append(list, s.Rate)
	}
	return list
}

func TestNext(t *testing.T) {
	for _, c := range []struct {
		name     string
		search   Search
		steps    []hakaru.CapacityStep
		low, top float64 // the next rate lies between; 0: done
	}{
		{"the first", Search{Most: 1000, Steps: 9}, nil, 700, 700},
		{"the first as asked for", Search{First: 123.456, Steps: 9}, nil, 123.5, 123.5},
		{"nothing is known", Search{Steps: 9}, nil, 0, 0},
		{"used up", Search{Most: 1000, Steps: 2}, steps(700, -900), 0, 0},
		{"half where it fails", Search{Most: 1000, Steps: 9}, steps(-700), 350, 350},
		{"then a quarter", Search{Most: 1000, Steps: 9}, steps(-700, -350), 87.5, 87.5},
		{"not below the lowest", Search{Most: 1000, Steps: 9}, steps(-700, -350, -87.5, -21.88), 15.62, 15.63},
		{"which fails too", Search{Most: 1000, Steps: 9}, steps(-700, -350, -87.5, -21.88, -15.63), 0, 0},
		{"between", Search{Most: 1000, Steps: 9}, steps(-700, 350), 400, 650},
		{"towards the closed loop's", Search{Most: 1000, Steps: 9}, steps(700), 750, 1200},
		{"above it, if that holds", Search{Most: 1000, Steps: 9}, steps(700, 950, 1100, 1250), 1251, 4000},
		{"double, where no bound is known", Search{First: 100, Steps: 9}, steps(100), 200, 200},
		{"and again", Search{First: 100, Steps: 9}, steps(100, 200, 400, 800), 1600, 1600},
		{"back where that fails", Search{First: 100, Steps: 9}, steps(100, 200, -400), 210, 390},
		{"a void step again", Search{Most: 1000, Steps: 9}, void(700), 700, 700},
		{"above what held", Search{Most: 1000, Steps: 9}, append(steps(700), void(950)...), 750, 1200},
		{"below the generator's bound", Search{Most: 1000, Steps: 9}, append(steps(700), void(950, 950)...), 800, 830},
		{"close to it", Search{Most: 1000, Steps: 9}, append(steps(700, 930), void(950, 950)...), 0, 0},
		{"a bound that holds later is none", Search{Most: 1000, Steps: 9}, append(void(950, 950), steps(960)...), 970, 1250},
		{"the generator's from the beginning", Search{Most: 1000, Steps: 9}, void(700, 700), 175, 175},
		{"down to the lowest", Search{Most: 1000, Steps: 9}, void(700, 700, 175, 43.75, 15.63), 0, 0},
	} {
		rate, done := c.search.Next(c.steps)
		if done != (c.top == 0) || rate < c.low || rate > c.top {
			t.Errorf("%s: %g, done %v, want %g to %g", c.name, rate, done, c.low, c.top)
		}
	}
}

func TestEstimate(t *testing.T) {
	alternating := append(steps(700, 950, -970, 960, -965, 955), steps(-950, 960, -960, 955, -965)...)
	for _, c := range []struct {
		name             string
		search           Search
		steps            []hakaru.CapacityStep
		low, value, high [2]float64
		reached          string // contains; empty: it is empty
	}{
		{"nothing yet", Search{Most: 1000}, nil, [2]float64{}, [2]float64{}, [2]float64{}, ""},
		{"nothing holds", Search{Most: 1000}, steps(-700, -350, -15.63), [2]float64{}, [2]float64{}, [2]float64{15.63, 15.63}, ""},
		{"nothing counts", Search{Most: 1000}, void(700, 700), [2]float64{}, [2]float64{}, [2]float64{}, "no step counts: the generator used"},
		{"a bracket", Search{Most: 1000}, steps(700, -950), [2]float64{20, 700}, [2]float64{750, 900}, [2]float64{950, 1200}, ""},
		{"as the closed loop", Search{Most: 1000}, steps(700, 950, 980, -1020, 1000, -1010, 990, -1030), [2]float64{900, 1000}, [2]float64{995, 1015}, [2]float64{1015, 1200}, ""},
		{"contradictions widen it", Search{Most: 1000}, alternating, [2]float64{750, 900}, [2]float64{950, 970}, [2]float64{1000, 1200}, ""},
		{"one failure of something else", Search{Most: 1000}, steps(-300, 700, 950, 980, -1020, 1000, -1010, 990, -1030), [2]float64{880, 1000}, [2]float64{985, 1015}, [2]float64{1015, 1200}, ""},
		{"the generator's bound", Search{Most: 1000}, append(steps(500, 700), void(950, 950)...), [2]float64{400, 700}, [2]float64{700, 700}, [2]float64{700, 700}, "at its limit: the generator used"},
		{"all hold", Search{First: 100}, steps(100, 200, 400), [2]float64{250, 400}, [2]float64{400, 400}, [2]float64{400, 400}, "the highest, 400/s, held"},
	} {
		got := c.search.Estimate(c.steps)
		within := func(x float64, of [2]float64) bool { return x >= of[0] && x <= of[1] }
		if !within(got.Low, c.low) || !within(got.Value, c.value) || !within(got.High, c.high) {
			t.Errorf("%s: %g in %g to %g, want %v in %v to %v", c.name, got.Value, got.Low, got.High, c.value, c.low, c.high)
		}
		if !strings.Contains(got.Reached, c.reached) || (got.Reached == "") != (c.reached == "") {
			t.Errorf("%s: reached %q, want %q", c.name, got.Reached, c.reached)
		}
		if d := cmp.Diff(c.steps, got.Steps); d != "" {
			t.Errorf("%s: steps (-want +got)\n%s", c.name, d)
		}
	}
}

// Other units of the rate change nothing, and more of the same evidence makes the
// interval no wider.
func TestScale(t *testing.T) {
	search := func(scale float64) hakaru.CapacityReport {
		return run(Search{Most: scale, Steps: 20}, func(_ int, rate float64) bool { return rate < 0.8123*scale })
	}
	one := search(1000)
	if one.Low > 812.3 || one.High < 812.3 || (one.High-one.Low)/one.Value > 2*Precise {
		t.Errorf("%g in %g to %g, want 812.3 and narrow", one.Value, one.Low, one.High)
	}
	for _, scale := range []float64{1, 10, 1e6} {
		got := search(scale)
		for i, r := range rates(got.Steps) {
			if want := one.Steps[i].Rate * scale / 1000; math.Abs(r/want-1) > 1e-3 {
				t.Errorf("of %g: step %d at %g, want %g", scale, i, r, want)
			}
		}
		if math.Abs(got.Value/one.Value/scale*1000-1) > 1e-3 {
			t.Errorf("of %g: %g, want %g", scale, got.Value, one.Value*scale/1000)
		}
	}
}

// What a closed loop showed, or the first rates, may have been hit by something else.
func TestMisled(t *testing.T) {
	for _, c := range []struct {
		name   string
		search Search
		fails  []int // steps that do, whatever the rate
	}{
		{"a closed loop that showed a fifth", Search{Most: 200, Steps: 20}, nil},
		{"and the third step fails", Search{Most: 200, Steps: 20}, []int{2}},
		{"the first step fails", Search{Most: 1200, Steps: 20}, []int{0}},
		{"the first two", Search{Most: 1200, Steps: 20}, []int{0, 1}},
		{"the first from a low rate", Search{First: 100, Steps: 20}, []int{0}},
		{"the third from a low rate", Search{First: 100, Steps: 20}, []int{2}},
	} {
		got := run(c.search, func(n int, rate float64) bool { return rate < 1000 && !slices.Contains(c.fails, n) })
		if got.Low > 1000 || got.High < 1000 || math.Abs(got.Value/1000-1) > 0.05 {
			t.Errorf("%s: %g in %g to %g after %v, want 1000", c.name, got.Value, got.Low, got.High, rates(got.Steps))
		}
	}
}

func TestExtremes(t *testing.T) {
	for _, c := range []struct {
		name  string
		holds func(n int, rate float64) bool
	}{
		{"never", func(int, float64) bool { return false }},
		{"always", func(int, float64) bool { return true }},
		{"in turn", func(n int, _ float64) bool { return n%2 == 0 }},
		{"high ones only", func(_ int, rate float64) bool { return rate > 900 }},
	} {
		for _, s := range []Search{{Most: 1000, Steps: 40}, {First: 1000, Steps: 40}, {Most: 1000, First: 2, Steps: 40}, {Most: 1000, First: 5000, Steps: 40}} {
			got := run(s, c.holds)
			for _, x := range append(rates(got.Steps), got.Value, got.Low, got.High) {
				if math.IsNaN(x) || math.IsInf(x, 0) || x < 0 {
					t.Errorf("%s, %+v: %g is no rate", c.name, s, x)
				}
			}
			if got.Low > got.Value || got.Value > got.High {
				t.Errorf("%s, %+v: %g in %g to %g", c.name, s, got.Value, got.Low, got.High)
			}
			if c.name == "never" && got.Value != 0 || c.name == "always" && got.Value == 0 {
				t.Errorf("%s, %+v: %g", c.name, s, got.Value)
			}
		}
	}
}
