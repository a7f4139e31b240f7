package plan

import (
	"hakaru"
	"hakaru/internal/compare"
)

// Left is the number of trials that are still to run if none is void and nothing
// is decided before the last look, and how many of them are of the calibration.
// frozen is nil until that is complete.
func Left(exp *hakaru.Experiment, frozen *hakaru.Frozen, history []hakaru.Result) (trials, calibration int) {
	p := &blocks{exp: exp, frozen: frozen}
	if frozen == nil {
		l := compare.NewLedger(exp, hakaru.Frozen{}, history)
		for n := 1; n <= p.calibrations(); n++ {
			calibration += len(outstanding(l, p.calibration(n)))
		}
		trials = calibration
		unbound := *exp
		unbound.Design.Budget = 0 // what it allows is known after calibration
		for _, b := range p.outline(compare.Freeze(&unbound, nil)) {
			trials += len(b.Trials)
		}
		return trials, calibration
	}
	l := compare.NewLedger(exp, *frozen, history)
	for n := p.calibrations() + 1; ; n++ {
		s := l.StratumOf(n)
		if s == nil {
			break
		}
		members := s.Members()
		if l.Enter(n, s) == compare.Open {
			trials += len(outstanding(l, block(n, hakaru.Compare, s.At, members)))
		}
	}
	for _, s := range l.Strata() {
		trials += max(0, frozen.Blocks-s.Complete()-s.Open) * len(s.Members())
	}
	return trials, 0
}
