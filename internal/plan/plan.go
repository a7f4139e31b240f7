// Package plan says what to run next. It takes an experiment and the results so
// far and gives the blocks that should be running now, or the reason why no more
// are wanted.
//
// A planner keeps no state of its own: it replays the history, block 1, 2, 3, …,
// each planned from the results of those before it. So the same history gives
// the same blocks, seed included, a run that was cut off goes on where it ended,
// and a block that is under way is simply named again. Verdicts, and with them
// who leaves the plan when, come from compare.
//
// It runs nothing, waits for nothing and asks no clock. Race, search,
// switchback and auto are not built yet; New says so.
package plan

import (
	"fmt"

	"hakaru"
	"hakaru/internal/compare"
)

// Planner plans the blocks of one run.
type Planner interface {
	// Next gives the blocks that should be running now, at most hosts of them,
	// each with only the trials that are not in the history yet, in order; or
	// why the run is done. Asked again while blocks are under way, with what
	// came in since, it names the rest of them again, and beside them only what
	// does not depend on how they end. When void trials prevail it may say done
	// with later blocks still under way: what they bring cannot change that.
	Next(history []hakaru.Result, hosts int) ([]hakaru.Block, *hakaru.Done)
	// Frozen is what holds for the compare phase, nil until calibration is
	// complete. Store it before the first compare block.
	Frozen(history []hakaru.Result) *hakaru.Frozen
}

// New makes the planner of an experiment. A run that is resumed hands in what
// its store has as frozen; that holds, whatever Freeze would give today.
func New(exp *hakaru.Experiment, frozen *hakaru.Frozen) (Planner, error) {
	switch exp.Design.Method {
	case "", hakaru.MethodCompare, hakaru.MethodOneAtATime, hakaru.MethodFactorial:
		// These differ in which variants and pairs there are, and those are in
		// the experiment already.
	case hakaru.MethodRace, hakaru.MethodSearch, hakaru.MethodSwitchback, hakaru.MethodAuto:
		return nil, fmt.Errorf("plan %s: method %s is not built yet", exp.Name, exp.Design.Method)
	default:
		return nil, fmt.Errorf("plan %s: unknown method %q", exp.Name, exp.Design.Method)
	}
	if len(exp.Strata) == 0 {
		return nil, fmt.Errorf("plan %s: no stratum (an experiment without levels has one empty one)", exp.Name)
	}
	if _, ok := exp.Variant(exp.Baseline); !ok {
		return nil, fmt.Errorf("plan %s: baseline %q is not a variant", exp.Name, exp.Baseline)
	}
	for _, p := range exp.Pairs {
		for _, name := range []string{p.Base, p.Other} {
			if _, ok := exp.Variant(name); !ok {
				return nil, fmt.Errorf("plan %s: pair %s/%s: %q is not a variant", exp.Name, p.Other, p.Base, name)
			}
		}
	}
	return &blocks{exp: exp, frozen: frozen}, nil
}

// blocks plans randomised complete blocks.
type blocks struct {
	exp    *hakaru.Experiment
	frozen *hakaru.Frozen
}

func (p *blocks) Frozen(history []hakaru.Result) *hakaru.Frozen {
	if p.frozen != nil {
		return p.frozen
	}
	l := compare.NewLedger(p.exp, hakaru.Frozen{}, history)
	for n := 1; n <= p.calibrations(); n++ {
		if len(outstanding(l, p.calibration(n))) > 0 {
			return nil
		}
	}
	if l.CalibrationFailed() != nil {
		return nil
	}
	f := compare.Freeze(p.exp, l.Calibration())
	return &f
}

// calibrations is the number of calibration blocks.
func (p *blocks) calibrations() int { return calibrations(p.exp) }

func calibrations(exp *hakaru.Experiment) int {
	n := exp.Design.Calibrate
	if open := exp.Design.Open; open != nil {
		n += open.Calibrate * len(rated(exp))
	}
	return n
}

// rated are the strata but the first whose open loops need the baseline's capacity.
func rated(exp *hakaru.Experiment) []map[string]string {
	var all []map[string]string
	for _, s := range exp.Design.Open.Shares {
		if hakaru.AtKey(s.At) != hakaru.AtKey(exp.Strata[0]) {
			all = append(all, s.At)
		}
	}
	return all
}

// calibration is block n ≤ calibrations: one trial of the baseline, first those of
// the first stratum, which show the noise; then, where open loops need it, one in
// each other stratum by turns.
func (p *blocks) calibration(n int) hakaru.Block {
	at := p.exp.Strata[0]
	if n > p.exp.Design.Calibrate {
		others := rated(p.exp)
		at = others[(n-p.exp.Design.Calibrate-1)%len(others)]
	}
	return block(n, hakaru.Calibrate, at, []string{p.exp.Baseline})
}

func (p *blocks) Next(history []hakaru.Result, hosts int) ([]hakaru.Block, *hakaru.Done) {
	if hosts < 1 {
		return nil, nil
	}
	frozen := p.Frozen(history)
	if frozen == nil {
		return p.calibrate(history)
	}
	l := compare.NewLedger(p.exp, *frozen, history)
	var running []hakaru.Block
	for n := p.calibrations() + 1; ; n++ {
		if text, start := l.Prevailing(); text != "" {
			if len(running) > 0 {
				return running, nil
			}
			return nil, void(text, start)
		}
		s := l.StratumOf(n)
		if s == nil {
			s = p.choose(l)
		}
		if s == nil {
			if len(running) == 0 {
				return nil, finish(p.exp, l)
			}
			return running, nil
		}
		if l.StratumOf(n) == nil && s.MustWait() {
			return running, nil
		}
		b := block(n, hakaru.Compare, s.At, p.order(n, s.Members()))
		if l.Enter(n, s) != compare.Open {
			continue
		}
		b.Trials = outstanding(l, b)
		running = append(running, b)
		if len(running) == hosts {
			return running, nil
		}
	}
}

// calibrate names the next calibration trial: one at a time, since the noise is
// read from one trial to the next.
func (p *blocks) calibrate(history []hakaru.Result) ([]hakaru.Block, *hakaru.Done) {
	l := compare.NewLedger(p.exp, hakaru.Frozen{}, history)
	if text, start := l.Prevailing(); text != "" {
		return nil, void(text, start)
	}
	for n := 1; n <= p.calibrations(); n++ {
		b := p.calibration(n)
		if b.Trials = outstanding(l, b); len(b.Trials) > 0 {
			return []hakaru.Block{b}, nil
		}
	}
	return nil, nil // not reached: then there is what is frozen, or it failed
}

// choose takes the stratum with the fewest blocks so far among those that want
// more; where several have as few, the order is shuffled anew for each round.
func (p *blocks) choose(l *compare.Ledger) *compare.Stratum {
	var next *compare.Stratum
	var best int
	strata := l.Strata()
	for i, s := range strata {
		if s.Finished() {
			continue
		}
		rank := 0
		for r, j := range shuffled(len(strata), p.exp.Design.Seed, roundStream+uint64(s.Entered)) {
			if j == i {
				rank = r
			}
		}
		if next == nil || s.Entered < next.Entered || (s.Entered == next.Entered && rank < best) {
			next, best = s, rank
		}
	}
	return next
}

// order puts the members of block n in their random order. All variants are
// shuffled and the absent ones passed over, so that a variant that leaves moves
// no other.
func (p *blocks) order(n int, members []string) []string {
	in := map[string]bool{}
	for _, v := range members {
		in[v] = true
	}
	var order []string
	for _, i := range shuffled(len(p.exp.Variants), p.exp.Design.Seed, uint64(n)) {
		if name := p.exp.Variants[i].Name; in[name] {
			order = append(order, name)
		}
	}
	return order
}

// block is a block with the first attempt of each variant.
func block(n int, phase hakaru.Phase, at map[string]string, variants []string) hakaru.Block {
	b := hakaru.Block{N: n, Phase: phase, At: at}
	for _, v := range variants {
		b.Trials = append(b.Trials, hakaru.Trial{Phase: phase, Block: n, Attempt: 1, Variant: v, At: at})
	}
	return b
}

// outstanding are the trials of a block that are still to be run: first attempts
// in their order, then, behind all others, re-runs of void ones.
func outstanding(l *compare.Ledger, b hakaru.Block) []hakaru.Trial {
	var left []hakaru.Trial
	queue := b.Trials
	for i := 0; i < len(queue); i++ {
		t := queue[i]
		result := l.Attempt(t.Key())
		switch {
		case result == nil:
			left = append(left, t)
		case result.Void != nil && t.Attempt < compare.MaxAttempts:
			t.Attempt++
			queue = append(queue[:len(queue):len(queue)], t)
		}
	}
	return left
}

func void(text string, start bool) *hakaru.Done {
	if start {
		return &hakaru.Done{State: hakaru.NoStart, Text: text}
	}
	return &hakaru.Done{State: hakaru.AllVoid, Text: text}
}

func finish(exp *hakaru.Experiment, l *compare.Ledger) *hakaru.Done {
	if len(exp.Pairs) == 0 {
		return &hakaru.Done{State: hakaru.Decided, Text: "there is nothing to compare: no pair of variants"}
	}
	open, blocks := 0, 0
	for _, s := range l.Strata() {
		open += s.Undecided()
		blocks += s.Complete()
	}
	if open > 0 {
		return &hakaru.Done{State: hakaru.Exhausted,
			Text: fmt.Sprintf("the last planned look is reached after %d complete blocks, and %d of %d comparisons have no verdict",
				blocks, open, len(exp.Pairs)*len(l.Strata()))}
	}
	return &hakaru.Done{State: hakaru.Decided, Text: fmt.Sprintf("every comparison that can be made is settled after %d complete blocks", blocks)}
}
