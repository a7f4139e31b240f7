// Package capacity searches for the highest rate that holds conditions: it says
// which rate to offer next, and what the rates so far are evidence of.
//
// It takes the steps so far, each a rate that was held for a time and did or did not
// hold, and gives the next rate, or the capacity with its 95 % interval; both are
// pure functions of the steps. Judge says of one step whether it holds. It sends
// nothing and asks no clock.
//
// A step is noisy evidence, since a rate that holds in one second fails in the next.
// So its chance to hold falls with the rate r as
//
//	P(holds) = ε + (1−ε−δ) / (1 + exp((ln r − θ)/s))
//
// where exp θ is the capacity, the rate at which half of the steps hold, s says how
// wide the region is in which some hold and some do not, and ε and δ that now and
// then a step is decided by something else: often enough one fails that the service
// can bear, since another program took the CPU, and hardly ever one holds that it
// cannot. θ and s are estimated together, by Bayes' rule
// on a grid, and the next rate is the one whose outcome is expected to leave the
// least entropy about θ: the Ψ method of psychophysics, where a threshold of
// hearing is the same question (Watson & Pelli 1983, QUEST; Kontsevich & Tyler
// 1999; s as a nuisance: Prins 2013).
package capacity

import (
	"fmt"
	"math"
	"slices"

	"hakaru"
	"hakaru/internal/unit"
)

const (
	// lucky is ε and unlucky δ: steps that hold, or fail, whatever the rate.
	lucky   = 0.002
	unlucky = 0.04
	// fine is the width of the grid's cells where the capacity may be, coarse
	// elsewhere, around how far beyond the bounds that steps have shown it may be.
	fine   = 0.007
	coarse = 0.04
	around = 0.15
	// above is how far beyond what a closed loop shows the capacity may lie. Where
	// there was none, or a rate that holds beyond outdone times of that says that it
	// showed too little, the capacity may lie far beyond the rates so far.
	above   = 1.3
	outdone = 1.1
	far     = 4
	// below is how far beneath it a rate is still looked for.
	below = 64
	// beginning is the first rate, of what a closed loop shows.
	beginning = 0.7
	// level of the interval.
	level = 0.95
)

// Precise ends a search: the interval lies within this share of the capacity.
const Precise = 0.03

// spreads are the values of s, from a service with a hard bound on a quiet machine
// to steps that differ by a third and more, and how likely each is at first. Wide
// ones are rare, but without them the interval of a noisy machine would be too
// narrow.
var spreads = []struct{ s, prior float64 }{
	{0.005, 0.20}, {0.01, 0.20}, {0.02, 0.20}, {0.05, 0.15}, {0.10, 0.15}, {0.20, 0.10},
}

// Search is what is known before the first step.
type Search struct {
	// Most is the throughput that a closed loop showed, 1/s; 0: not known.
	Most float64
	// First is the rate of the first step; 0: 0.7 of Most.
	First float64
	Steps int // at most, void ones included
}

// Next is the rate to offer after these steps; done where there is none, since the
// interval is narrow, no rate holds, the generator is at its limit, or the steps are
// used up.
//
// Where nothing holds it goes down, where everything holds up to an unknown bound it
// doubles; with both known it asks where it learns most.
func (s Search) Next(steps []hakaru.CapacityStep) (rate float64, done bool) {
	first := s.first()
	if len(steps) >= s.Steps || !(first > 0) || math.IsInf(first, 1) {
		return 0, true
	}
	v := see(steps)
	least := s.least()
	switch {
	case v.ceiling > 0 && v.held > 0:
		// Between what held and what the generator cannot offer nothing but a
		// better bound is to be had.
		if v.ceiling <= v.held*(1+Precise) {
			return 0, true
		}
		return round(math.Sqrt(v.held * v.ceiling)), false
	case v.ceiling > 0:
		return s.down(v.ceiling, v.void)
	case len(v.valid) == 0:
		return first, false
	case v.held == 0:
		if v.failed <= least*1.001 {
			return 0, true
		}
		return s.down(v.failed, len(v.valid))
	case v.failed == 0 && s.Most == 0:
		return round(2 * v.held), false
	}
	p := s.posterior(v)
	if v.failed > 0 && p.precise() {
		return 0, true
	}
	return round(math.Exp(p.best())), false
}

// down is a rate below one that did not hold, the n-th: half of the first, then a
// quarter, since what is far off is found by few steps.
func (s Search) down(from float64, n int) (rate float64, done bool) {
	least := s.least()
	if from <= least*1.001 {
		return 0, true
	}
	divisor := 4.0
	if n <= 1 {
		divisor = 2
	}
	return max(round(from/divisor), least), false
}

func (s Search) first() float64 {
	if s.First > 0 {
		return round(s.First)
	}
	return round(beginning * s.Most)
}

// least is the lowest rate that is tried.
func (s Search) least() float64 { return round(max(s.Most, s.first()) / below) }

// round keeps four digits, so that a rate that is shown is the rate that was
// offered.
func round(rate float64) float64 {
	if !(rate > 0) || math.IsInf(rate, 1) {
		return rate
	}
	unit := math.Pow(10, math.Floor(math.Log10(rate))-3)
	if unit < 1 { // dividing by a whole number leaves no 3.4999999999999996
		return math.Round(rate*math.Round(1/unit)) / math.Round(1/unit)
	}
	return math.Round(rate/unit) * unit
}

// Estimate is what the steps so far say. Value is the median of the posterior of
// exp θ, the rate at which a step holds in half of the cases; a little below it nearly
// all do, by how much says s.
func (s Search) Estimate(steps []hakaru.CapacityStep) hakaru.CapacityReport {
	report := hakaru.CapacityReport{Steps: slices.Clone(steps)}
	v := see(steps)
	switch {
	case v.held == 0 && v.failed == 0:
		if v.void > 0 {
			report.Reached = fmt.Sprintf("no step counts: %s", v.why)
		}
		return report
	case v.held == 0: // somewhere below the lowest rate, or nowhere
		report.High = v.failed
		return report
	case v.failed == 0:
		// What lies above was not seen, so that only the lower bound says something.
		low, _, _ := s.posterior(v).interval()
		report.Value, report.High = v.held, v.held
		report.Low = min(math.Exp(low), v.held)
		report.Reached = fmt.Sprintf("no rate that was offered was too high: the highest, %s, held", unit.Rate(v.held))
		if v.void > 0 {
			report.Reached = fmt.Sprintf("%s held, and above it the load generator was at its limit: %s", unit.Rate(v.held), v.why)
		}
		return report
	}
	low, value, high := s.posterior(v).interval()
	report.Value, report.Low, report.High = math.Exp(value), math.Exp(low), math.Exp(high)
	return report
}

// seen is what steps say at a glance.
type seen struct {
	valid  []hakaru.CapacityStep
	held   float64 // the highest rate that held; 0: none did
	failed float64 // the lowest that did not
	// ceiling is the lowest rate that the generator could not offer, where two
	// attempts say so and none that counts was too high; 0: there is none.
	ceiling float64
	void    int
	why     string // of the last one above held
}

func see(steps []hakaru.CapacityStep) seen {
	var v seen
	for _, step := range steps {
		switch {
		case step.Void != "":
			continue
		case step.Holds:
			v.held = max(v.held, step.Rate)
		case v.failed == 0 || step.Rate < v.failed:
			v.failed = step.Rate
		}
		v.valid = append(v.valid, step)
	}
	ceiling := math.Inf(1)
	for _, step := range steps {
		if step.Void != "" && step.Rate > v.held {
			v.void++
			v.why = step.Void
			ceiling = min(ceiling, step.Rate)
		}
	}
	if v.void >= 2 && v.failed == 0 {
		v.ceiling = ceiling
	}
	return v
}

// posterior is the distribution of θ and s after some steps, on a grid of cells.
type posterior struct {
	edges  []float64   // of the cells of θ, one more than cells
	thetas []float64   // their middles
	p      [][]float64 // of spreads × cells, sum 1
	sum    []float64   // over spreads
}

// posterior starts from θ that is uniform over what is possible: above the lowest
// rate that is tried, and not far above what a closed loop or a step has shown. Cells
// are small where the capacity may be, around and between the rates at which steps
// begin to fail and cease to hold.
func (s Search) posterior(v seen) *posterior {
	least, top := s.least(), above*s.Most
	for _, step := range v.valid {
		least = min(least, step.Rate)
	}
	switch {
	case s.Most == 0:
		top = far * max(v.held, v.failed)
	case v.held > outdone*s.Most:
		top = far * v.held
	}
	from, to := math.Log(least), math.Log(top)
	low, high := from, to
	if v.held > 0 {
		low = math.Log(v.held) - around
	}
	if v.failed > 0 {
		low, high = min(low, math.Log(v.failed)-around), math.Log(max(v.failed, v.held))+around
	}
	to = max(to, from+coarse)
	p := &posterior{edges: []float64{from}}
	for at := from; at < to; {
		width := coarse
		if at >= low-coarse && at < high {
			width = fine
		}
		at = min(at+width, to)
		p.thetas = append(p.thetas, (p.edges[len(p.edges)-1]+at)/2)
		p.edges = append(p.edges, at)
	}
	p.p, p.sum = make([][]float64, len(spreads)), make([]float64, len(p.thetas))
	for i := range p.p {
		p.p[i] = make([]float64, len(p.thetas))
		for j := range p.p[i] {
			p.p[i][j] = spreads[i].prior * (p.edges[j+1] - p.edges[j])
		}
	}
	for _, step := range v.valid {
		p.learn(math.Log(step.Rate), step.Holds)
	}
	total := 0.0
	for _, row := range p.p {
		for j, x := range row {
			p.sum[j] += x
			total += x
		}
	}
	for j := range p.sum {
		p.sum[j] /= total
	}
	return p
}

// learn is Bayes' rule for one step.
func (p *posterior) learn(at float64, holds bool) {
	total := 0.0
	for i, row := range p.p {
		for j := range row {
			c := chance(p.thetas[j]-at, spreads[i].s)
			if !holds {
				c = 1 - c
			}
			row[j] *= c
			total += row[j]
		}
	}
	for _, row := range p.p { // steps may be many, and factors small
		for j := range row {
			row[j] /= total
		}
	}
}

// chance is that a step holds whose rate lies so far, in logarithms, below the
// capacity.
func chance(distance, spread float64) float64 {
	x := distance / spread
	switch { // exp is most of what a search computes, and e^−12 far below ε
	case x > 12:
		return 1 - unlucky
	case x < -12:
		return lucky
	}
	return lucky + (1-lucky-unlucky)/(1+math.Exp(-x))
}

// quantile of θ, within a cell by proportion.
func (p *posterior) quantile(q float64) float64 {
	before := 0.0
	for j, x := range p.sum {
		if before+x >= q {
			return p.edges[j] + (q-before)/x*(p.edges[j+1]-p.edges[j])
		}
		before += x
	}
	return p.edges[len(p.edges)-1]
}

func (p *posterior) interval() (low, median, high float64) {
	return p.quantile((1 - level) / 2), p.quantile(0.5), p.quantile((1 + level) / 2)
}

func (p *posterior) precise() bool {
	low, median, high := p.interval()
	return median-low <= Precise && high-median <= Precise
}

// best is ln of the rate whose outcome is expected to leave the least entropy about
// θ, among a few quantiles of θ.
func (p *posterior) best() float64 {
	best, least := 0.0, math.Inf(1)
	for _, q := range []float64{0.1, 0.3, 0.5, 0.7, 0.9} {
		at := p.quantile(q)
		entropy, holdAll, failAll := 0.0, 0.0, 0.0
		for j, theta := range p.thetas {
			if p.sum[j] < 1e-6 { // changes no entropy
				continue
			}
			width := p.edges[j+1] - p.edges[j]
			hold, fail := 0.0, 0.0
			for i, spread := range spreads {
				x, c := p.p[i][j], chance(theta-at, spread.s)
				hold += x * c
				fail += x * (1 - c)
			}
			holdAll += hold
			failAll += fail
			// Of densities: a cell's own width is no knowledge.
			entropy -= hold*log(hold/width) + fail*log(fail/width)
		}
		// Of each outcome's distribution once it is normalised, weighted by its chance.
		entropy += holdAll*log(holdAll) + failAll*log(failAll)
		if entropy < least {
			best, least = at, entropy
		}
	}
	return best
}

// log gives 0 for 0, where it is multiplied by it.
func log(x float64) float64 {
	if x <= 0 {
		return 0
	}
	return math.Log(x)
}
