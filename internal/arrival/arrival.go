// Package arrival says when requests of an open load are due.
//
// A Law takes the number of a request, from 0, and gives the time since the
// start at which it is due: constant, Poisson, ramp and steps. A law knows
// nothing of answers: that is what makes a loop open. A closed loop has no law.
//
// Laws are pure: the same law gives the same times in every process, and
// nothing here reads a clock, waits or sends. For the laws without chance
// request n is due when the expected number of arrivals, the integral of the
// rate, has reached n; so that pieces of different rates meet without a jump,
// and rounding does not add up.
package arrival

import (
	"fmt"
	"math"
	"math/rand/v2"
	"time"
)

// Law gives the time at which request n is due, from 0. ok is false when there
// is no such request: the law has ended. Times do not decrease with n.
type Law interface {
	At(n uint64) (due time.Duration, ok bool)
}

// Before counts the requests that are due before a time. Times do not decrease, so
// that the first request due later is found by halves. A Poisson law has to be asked
// in order: of more than some millions of requests the expected number is given,
// which is not exact: theirs differs from it by about its root, less than 0.05 %.
func Before(law Law, t time.Duration) (n uint64, exact bool) {
	later := func(n uint64) bool {
		due, ok := law.At(n)
		return !ok || due >= t
	}
	if p, inOrder := law.(*poisson); inOrder {
		const many = 5e6
		n := uint64(0)
		if expected := p.rate * t.Seconds(); expected > many {
			return uint64(min(math.Round(expected), 1<<62)), false
		}
		for !later(n) {
			n++
		}
		return n, true
	}
	high := uint64(1)
	for !later(high - 1) {
		if high *= 2; high > math.MaxUint64/4 { // of a rate beyond all clocks
			return high, false
		}
	}
	low := high / 2 // all before are due earlier; high-1 is not
	for low < high-1 {
		if middle := low + (high-1-low)/2; later(middle) {
			high = middle + 1
		} else {
			low = middle + 1
		}
	}
	return low, true
}

// at turns seconds into a time; not ok where they are beyond what a Duration
// holds (292 years).
func at(seconds float64) (time.Duration, bool) {
	ns := math.Round(seconds * 1e9)
	if !(ns < math.MaxInt64) {
		return 0, false
	}
	return time.Duration(ns), true
}

func checkRate(what string, rate float64) error {
	if !(rate >= 0) || math.IsInf(rate, 1) {
		return fmt.Errorf("%s %g/s: want a rate of 0 or more", what, rate)
	}
	return nil
}

type constant struct{ rate float64 }

// Constant is rate requests a second, evenly: n/rate.
func Constant(rate float64) (Law, error) {
	if err := checkRate("constant rate", rate); err != nil {
		return nil, err
	}
	return constant{rate}, nil
}

func (c constant) At(n uint64) (time.Duration, bool) {
	return at(float64(n) / c.rate) // 0/0 and n/0 are not times: nobody ever comes
}

type ramp struct{ from, to, over float64 }

// Ramp is a rate that goes evenly from one to another over a time and then
// stays. With r(t) = from + (to−from)·t/T the expected number of arrivals is
// N(t) = from·t + (to−from)·t²/2T, and N(t) = n is solved for t.
func Ramp(from, to float64, over time.Duration) (Law, error) {
	if err := checkRate("ramp from", from); err != nil {
		return nil, err
	}
	if err := checkRate("ramp to", to); err != nil {
		return nil, err
	}
	if over <= 0 {
		return nil, fmt.Errorf("ramp over %v: want a time above 0", over)
	}
	return ramp{from, to, over.Seconds()}, nil
}

func (r ramp) At(number uint64) (time.Duration, bool) {
	n := float64(number)
	if within := (r.from + r.to) / 2 * r.over; n >= within {
		return at(r.over + (n-within)/r.to)
	}
	// The form of the root that does not cancel where the slope is small or
	// negative (Press et al., Numerical Recipes, §5.6).
	slope := (r.to - r.from) / r.over
	root := math.Sqrt(max(r.from*r.from+2*slope*n, 0))
	if n == 0 {
		return 0, true
	}
	return at(2 * n / (r.from + root))
}

// Step is a rate for a time. A rate of 0 is a pause.
type Step struct {
	Rate float64
	For  time.Duration
}

type steps []Step

// Steps is one rate after another; it ends with the last.
func Steps(list ...Step) (Law, error) {
	if len(list) == 0 {
		return nil, fmt.Errorf("no steps: want at least one")
	}
	for i, s := range list {
		if err := checkRate(fmt.Sprintf("step %d:", i+1), s.Rate); err != nil {
			return nil, err
		}
		if s.For <= 0 {
			return nil, fmt.Errorf("step %d: for %v: want a time above 0", i+1, s.For)
		}
	}
	return steps(append([]Step(nil), list...)), nil
}

func (s steps) At(number uint64) (time.Duration, bool) {
	n := float64(number)
	before := 0.0 // expected arrivals
	var began time.Duration
	for _, step := range s {
		expected := step.Rate * step.For.Seconds()
		if n < before+expected { // strictly: what is due at the end of a step is the next one's
			within, ok := at((n - before) / step.Rate)
			return began + min(within, step.For), ok
		}
		before += expected
		began += step.For
	}
	return 0, false
}

// poisson keeps where it is: the times are sums of gaps, so that the n-th one
// cannot be had without those before it.
type poisson struct {
	rate float64
	seed uint64

	rng     *rand.PCG
	next    uint64  // the number after that of seconds
	seconds float64 // the last time given
}

// Poisson is requests that come independently of each other, rate a second on
// average: the gaps are exponential, −ln(1−U)/rate, the first one before
// request 0 (Knuth, The Art of Computer Programming, vol. 2, §3.4.1).
//
// The same rate and seed give the same times. Asked in order, each answer costs
// one step; asked for an earlier number it begins again from 0. It is for one
// goroutine at a time.
func Poisson(rate float64, seed uint64) (Law, error) {
	if err := checkRate("Poisson rate", rate); err != nil {
		return nil, err
	}
	return &poisson{rate: rate, seed: seed}, nil
}

func (p *poisson) At(n uint64) (time.Duration, bool) {
	if p.rate == 0 {
		return 0, false
	}
	if p.rng == nil || n+1 < p.next {
		p.rng, p.next, p.seconds = rand.NewPCG(p.seed, 0x68616b617275), 0, 0
	}
	for ; p.next <= n; p.next++ {
		uniform := float64(p.rng.Uint64()>>11) / (1 << 53) // [0, 1)
		p.seconds -= math.Log1p(-uniform) / p.rate
	}
	return at(p.seconds)
}
