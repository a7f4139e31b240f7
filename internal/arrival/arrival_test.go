package arrival

import (
	"math"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func must(t interface{ Fatal(...any) }) func(Law, error) Law {
	return func(l Law, err error) Law {
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
}

func TestFormulas(t *testing.T) {
	law := must(t)
	const s, ms = time.Second, time.Millisecond
	for _, c := range []struct {
		name string
		law  Law
		n    uint64
		want time.Duration
		ok   bool
	}{
		{"constant, first", law(Constant(200)), 0, 0, true},
		{"constant", law(Constant(200)), 7, 35 * ms, true},
		{"constant does not drift", law(Constant(3)), 3_000_000, 1_000_000 * s, true},
		{"constant of nothing", law(Constant(0)), 0, 0, false},
		{"beyond time", law(Constant(1e-12)), 1, 0, false},

		{"ramp, first", law(Ramp(0, 100, 10*s)), 0, 0, true},
		{"ramp up: 5t² = 20", law(Ramp(0, 100, 10*s)), 20, 2 * s, true},
		{"ramp up, its end", law(Ramp(0, 100, 10*s)), 500, 10 * s, true},
		{"after the ramp", law(Ramp(0, 100, 10*s)), 600, 11 * s, true},
		{"ramp down: 100t − 5t² = 255", law(Ramp(100, 0, 10*s)), 255, 3 * s, true},
		{"ramp down to nothing", law(Ramp(100, 0, 10*s)), 501, 0, false},
		{"level ramp", law(Ramp(50, 50, 10*s)), 100, 2 * s, true},

		{"steps, first one", law(Steps(Step{10, s}, Step{100, s})), 9, 900 * ms, true},
		{"steps, meeting", law(Steps(Step{10, s}, Step{100, s})), 10, s, true},
		{"steps, second one", law(Steps(Step{10, s}, Step{100, s})), 60, 1500 * ms, true},
		{"steps, the last request", law(Steps(Step{10, s}, Step{100, s})), 109, 1990 * ms, true},
		{"steps, ended", law(Steps(Step{10, s}, Step{100, s})), 110, 0, false},
		{"steps, a pause first", law(Steps(Step{0, s}, Step{10, s})), 0, s, true},
		{"steps, a pause between", law(Steps(Step{1, s}, Step{0, 5 * s}, Step{10, s})), 1, 6 * s, true},
		{"steps, half an arrival is carried over", law(Steps(Step{1, 1500 * ms}, Step{10, s})), 2, 1550 * ms, true},

		{"Poisson of nothing", law(Poisson(0, 1)), 0, 0, false},
	} {
		got, ok := c.law.At(c.n)
		if ok != c.ok || (got-c.want).Abs() > time.Nanosecond {
			t.Errorf("%s: At(%d) = %v, %v, want %v, %v", c.name, c.n, got, ok, c.want, c.ok)
		}
	}
}

func TestMistakes(t *testing.T) {
	for _, c := range []struct {
		name string
		make func() (Law, error)
		want string
	}{
		{"negative rate", func() (Law, error) { return Constant(-1) }, "constant rate -1/s"},
		{"no number", func() (Law, error) { return Poisson(math.NaN(), 1) }, "Poisson rate NaN/s"},
		{"endless", func() (Law, error) { return Constant(math.Inf(1)) }, "+Inf/s"},
		{"ramp to below 0", func() (Law, error) { return Ramp(1, -1, time.Second) }, "ramp to -1/s"},
		{"ramp over nothing", func() (Law, error) { return Ramp(1, 2, 0) }, "ramp over 0s"},
		{"no steps", func() (Law, error) { return Steps() }, "no steps"},
		{"step of no length", func() (Law, error) { return Steps(Step{1, time.Second}, Step{1, 0}) }, "step 2: for 0s"},
		{"step below 0", func() (Law, error) { return Steps(Step{-1, time.Second}) }, "step 1: -1/s"},
	} {
		if _, err := c.make(); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want %q in it", c.name, err, c.want)
		}
	}
}

// laws draws any law.
func laws() *rapid.Generator[Law] {
	rate := rapid.Float64Range(0.1, 1e5)
	span := rapid.Custom(func(t *rapid.T) time.Duration {
		return time.Duration(rapid.Int64Range(1, int64(time.Minute)).Draw(t, "ns"))
	})
	return rapid.Custom(func(t *rapid.T) Law {
		law := must(t)
		switch rapid.IntRange(0, 3).Draw(t, "law") {
		case 0:
			return law(Constant(rate.Draw(t, "rate")))
		case 1:
			return law(Poisson(rate.Draw(t, "rate"), rapid.Uint64().Draw(t, "seed")))
		case 2:
			return law(Ramp(rate.Draw(t, "from"), rate.Draw(t, "to"), span.Draw(t, "over")))
		}
		list := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) Step {
			return Step{rapid.SampledFrom([]float64{0, 1, 10, 333}).Draw(t, "rate"), span.Draw(t, "for")}
		}), 1, 5).Draw(t, "steps")
		return law(Steps(list...))
	})
}

func TestTimesDoNotDecrease(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		law := laws().Draw(t, "law")
		n := rapid.Uint64Range(0, 1000).Draw(t, "from")
		last := time.Duration(0)
		for i := range uint64(100) {
			due, ok := law.At(n + i)
			if !ok {
				for j := range uint64(3) {
					if _, ok := law.At(n + i + j); ok {
						t.Fatalf("request %d is due though %d never is", n+i+j, n+i)
					}
				}
				return
			}
			if due < last {
				t.Fatalf("request %d due at %v, before the one before it at %v", n+i, due, last)
			}
			last = due
		}
	})
}

// A ramp whose ends are the same rate, and steps of one rate, are constant.
func TestLevelLawsAreConstant(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		law := must(t)
		rate := rapid.Float64Range(1, 1000).Draw(t, "rate")
		n := rapid.Uint64Range(0, 5000).Draw(t, "n")
		want, _ := law(Constant(rate)).At(n)
		level, _ := law(Ramp(rate, rate, 3*time.Second)).At(n)
		stepped, _ := law(Steps(Step{rate, time.Second}, Step{rate, 10_000 * time.Second})).At(n)
		if (level-want).Abs() > time.Microsecond || (stepped-want).Abs() > time.Microsecond {
			t.Fatalf("request %d at %g/s: constant %v, ramp %v, steps %v", n, rate, want, level, stepped)
		}
	})
}

// Gaps are exponential: mean and standard deviation 1/rate, and a share of
// exp(−1) is longer than the mean. Seeded; within four standard errors.
func TestPoissonGaps(t *testing.T) {
	const rate, count = 50.0, 20_000
	law := must(t)(Poisson(rate, 7))
	sum, squares, longer, last := 0.0, 0.0, 0, 0.0
	for n := range uint64(count) {
		due, ok := law.At(n)
		if !ok {
			t.Fatal("it ended")
		}
		gap := due.Seconds() - last
		last = due.Seconds()
		sum += gap
		squares += gap * gap
		if gap > 1/rate {
			longer++
		}
	}
	mean := sum / count
	deviation := math.Sqrt(squares/count - mean*mean)
	share := float64(longer) / count
	root := math.Sqrt(count)
	if math.Abs(mean*rate-1) > 4/root {
		t.Errorf("mean gap %g s, want %g", mean, 1/rate)
	}
	if math.Abs(deviation*rate-1) > 4*math.Sqrt(2)/root { // var of the sd estimate: (kurtosis 9 − 1)/4n
		t.Errorf("standard deviation %g s, want %g", deviation, 1/rate)
	}
	if p := math.Exp(-1); math.Abs(share-p) > 4*math.Sqrt(p*(1-p))/root {
		t.Errorf("a share of %g longer than the mean, want %g", share, p)
	}
}

// The same seed gives the same times, in whatever order they are asked for;
// another one gives others.
func TestPoissonIsDeterministic(t *testing.T) {
	law := must(t)
	a, b, other := law(Poisson(10, 1)), law(Poisson(10, 1)), law(Poisson(10, 2))
	var times []time.Duration
	for n := range uint64(50) {
		due, _ := a.At(n)
		times = append(times, due)
	}
	same := 0
	for _, n := range []uint64{49, 49, 3, 20, 0, 19} {
		if due, ok := b.At(n); !ok || due != times[n] {
			t.Errorf("request %d at %v, want %v", n, due, times[n])
		}
		if due, _ := other.At(n); due == times[n] {
			same++
		}
	}
	if same > 0 {
		t.Errorf("%d times are the same with another seed", same)
	}
}

// As many are due before a time as counting them one by one says.
func TestBefore(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		law := laws().Draw(t, "law")
		until := time.Duration(rapid.Int64Range(0, int64(50*time.Millisecond)).Draw(t, "ns"))
		want := uint64(0)
		for ; ; want++ {
			if due, ok := law.At(want); !ok || due >= until {
				break
			}
		}
		if got, exact := Before(law, until); got != want || !exact {
			t.Fatalf("%d requests due before %v, want %d", got, until, want)
		}
	})
}
