package plan

import (
	"time"

	"hakaru"
	"hakaru/internal/compare"
	"hakaru/internal/stats"
)

// roundStream keeps the shuffles of strata apart from those within blocks,
// whose streams are the block numbers.
const roundStream = 1 << 32

// shuffled is a random order of 0…n-1.
func shuffled(n int, seed, stream uint64) []int {
	order := make([]int, n)
	for i := range order {
		order[i] = i
	}
	stats.Shuffle(order, seed, stream)
	return order
}

// Outline is what would be run if no trial is void, no calibration trial
// changes the number of blocks, and nothing is decided before the last look.
// It is nil for an experiment that New refuses.
func Outline(exp *hakaru.Experiment) []hakaru.Block {
	if _, err := New(exp, nil); err != nil {
		return nil
	}
	p := &blocks{exp: exp}
	var all []hakaru.Block
	for n := 1; n <= p.calibrations(); n++ {
		all = append(all, p.calibration(n))
	}
	unbound := *exp
	unbound.Design.Budget = 0 // what it allows is known after calibration
	return append(all, p.outline(compare.Freeze(&unbound, nil))...)
}

func (p *blocks) outline(frozen hakaru.Frozen) []hakaru.Block {
	var all []hakaru.Block
	l := compare.NewLedger(p.exp, frozen, nil)
	n := p.calibrations()
	for round := range frozen.Blocks {
		for _, i := range shuffled(len(l.Strata()), p.exp.Design.Seed, roundStream+uint64(round)) {
			s := l.Strata()[i]
			if members := s.Members(); len(members) > 0 {
				n++
				all = append(all, block(n, hakaru.Compare, s.At, p.order(n, members)))
			}
		}
	}
	return all
}

// Estimate is the longest time the run takes, and its trials, if each takes as long
// as takes says of its phase and stratum and none is void. A budget bounds the blocks,
// as it will after calibration. It is 0 for an experiment that New refuses.
func Estimate(exp *hakaru.Experiment, takes func(hakaru.Phase, map[string]string) time.Duration) (atMost time.Duration, trials int) {
	if _, err := New(exp, nil); err != nil {
		return 0, 0
	}
	p := &blocks{exp: exp}
	var calibration []hakaru.Result
	for n := 1; n <= p.calibrations(); n++ {
		for _, t := range p.calibration(n).Trials {
			calibration = append(calibration, hakaru.Result{Trial: t, Took: takes(t.Phase, t.At)})
			atMost += takes(t.Phase, t.At)
			trials++
		}
	}
	for _, b := range p.outline(compare.Freeze(exp, calibration)) {
		atMost += time.Duration(len(b.Trials)) * takes(b.Phase, b.At)
		trials += len(b.Trials)
	}
	return atMost, trials
}
