// Package simulate runs whole campaigns on made-up services, so that the share
// of false claims and the power of the method can be counted.
//
// It takes an experiment, the true level of each variant and a kind of noise,
// drives the planner as a campaign would, one trial after another, and gives
// the history and the verdicts. The noise is that of METHOD.md §4. Everything
// follows from the seed. It starts nothing, measures nothing, asks no clock, and
// says nothing about real servers.
package simulate

import (
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"hakaru"
	"hakaru/internal/compare"
	"hakaru/internal/plan"
)

// Noise is the kind of what lies between two runs of the same thing.
type Noise string

const (
	Normal        Noise = "normal"
	Student3      Noise = "t3"       // heavy tails, scaled to the same standard deviation
	Outliers      Noise = "outliers" // normal, and 3 % of trials 10 to 50 % slow
	DriftOutliers Noise = "drift"    // outliers, drift and level shifts of the machine
)

// Machine is a machine with its noise, one trial after another.
type Machine struct {
	noise Noise
	cv    float64
	rng   *rand.Rand
	drift float64 // AR(1), standard deviation 3 %, memory of 20 trials
	shift float64 // sum of level shifts: 1 % of trials, standard deviation 4 %
}

// NewMachine gives a machine at its first trial.
func NewMachine(noise Noise, cv float64, seed uint64) *Machine {
	m := &Machine{noise: noise, cv: cv, rng: rand.New(rand.NewPCG(seed, 0x6d616368696e65))}
	m.drift = 0.03 * m.rng.NormFloat64()
	return m
}

// Trial is the disturbance of the next trial, on the log scale of throughput.
func (m *Machine) Trial() float64 {
	var e float64
	switch m.noise {
	case Student3:
		chi := 0.0
		for range 3 {
			x := m.rng.NormFloat64()
			chi += x * x
		}
		// t with 3 degrees has variance 3.
		e = m.cv * m.rng.NormFloat64() / math.Sqrt(chi/3) / math.Sqrt(3)
	default:
		e = m.cv * m.rng.NormFloat64()
	}
	if m.noise == Outliers || m.noise == DriftOutliers {
		if m.rng.Float64() < 0.03 {
			e += math.Log(1 - (0.1 + 0.4*m.rng.Float64()))
		}
	}
	if m.noise == DriftOutliers {
		memory := math.Exp(-1.0 / 20)
		m.drift = memory*m.drift + 0.03*math.Sqrt(1-memory*memory)*m.rng.NormFloat64()
		if m.rng.Float64() < 0.01 {
			m.shift += 0.04 * m.rng.NormFloat64()
		}
		e += m.drift + m.shift
	}
	return e
}

// Service is what the variants truly are.
type Service struct {
	// Effect is the log ratio of the goal to that of a variant without entry.
	Effect map[string]float64
	// Void says whether a trial is void; nil: none is.
	Void func(hakaru.Trial) *hakaru.Void
	// Window of every trial; 0: 10 s.
	Window time.Duration
}

// Trial runs one trial: goal (and CPU per request beside throughput) with the
// noise of the machine in the direction in which a slow machine is worse.
func (s *Service) Trial(exp *hakaru.Experiment, m *Machine, t hakaru.Trial) hakaru.Result {
	slow := m.Trial()
	r := hakaru.Result{Trial: t, Took: 12 * time.Second, WarmUp: time.Second, Window: s.Window}
	if r.Window == 0 {
		r.Window = 10 * time.Second
	}
	if s.Void != nil {
		if r.Void = s.Void(t); r.Void != nil {
			return r
		}
	}
	if !exp.Goal.HigherIsBetter() {
		slow = -slow
	}
	level, unit := 1000.0, "1/s"
	if !exp.Goal.HigherIsBetter() {
		level, unit = 0.001, "s"
	}
	r.Measurements = append(r.Measurements, hakaru.Measurement{
		Metric: exp.Goal, Unit: unit, Value: level * math.Exp(s.Effect[t.Variant]+slow),
		Open: compare.Latency(exp.Goal) && t.Phase != hakaru.Calibrate})
	if compare.Latency(exp.Goal) { // and the closed loop, which settles the rate of the open one
		r.Measurements = append(r.Measurements, hakaru.Measurement{Metric: hakaru.Throughput, Unit: "1/s", Value: 1000 * math.Exp(-slow)})
	}
	return r
}

// Campaign is a finished run.
type Campaign struct {
	History     []hakaru.Result
	Frozen      hakaru.Frozen
	Done        hakaru.Done
	Comparisons []hakaru.Comparison
}

// Run runs a campaign to its end.
func Run(exp *hakaru.Experiment, s *Service, m *Machine) (*Campaign, error) {
	planner, err := plan.New(exp, nil)
	if err != nil {
		return nil, fmt.Errorf("simulate %s: %w", exp.Name, err)
	}
	c := &Campaign{}
	for {
		blocks, done := planner.Next(c.History, 1)
		if done != nil {
			c.Done = *done
			break
		}
		if len(blocks) == 0 || len(blocks[0].Trials) == 0 {
			return nil, fmt.Errorf("simulate %s: the planner names neither a trial nor an end after %d trials", exp.Name, len(c.History))
		}
		for _, t := range blocks[0].Trials {
			t.Seq = len(c.History) + 1
			c.History = append(c.History, s.Trial(exp, m, t))
		}
	}
	if f := planner.Frozen(c.History); f != nil {
		c.Frozen = *f
		c.Comparisons = compare.Compare(exp, c.Frozen, c.History)
	}
	return c, nil
}

// Verdict is the verdict of a campaign on one variant against the baseline, in
// the first stratum.
func (c *Campaign) Verdict(exp *hakaru.Experiment, variant string) hakaru.Verdict {
	for _, x := range c.Comparisons {
		if x.Judged && x.Base == exp.Baseline && x.Other == variant && hakaru.AtKey(x.At) == hakaru.AtKey(exp.Strata[0]) {
			return x.Verdict
		}
	}
	return hakaru.Unclear
}
