package compare

import (
	"cmp"
	"fmt"
	"slices"

	"hakaru"
)

// MaxAttempts is how often a trial is run within its block before it counts as
// failed: once, and two re-runs.
const MaxAttempts = 3

// BlockState says what became of a block.
type BlockState uint8

const (
	Open     BlockState = iota // trials are outstanding
	Complete                   // each usable member has a valid trial
	Dropped                    // a member stayed void in all attempts: left out whole
)

// Ledger reads a history block by block. The caller enters blocks in the order
// of their numbers: the planner those it planned, Compare those it finds. All
// that is known after block N follows from the results of blocks 1…N, so the
// same history gives the same plan and the same verdicts.
type Ledger struct {
	exp    *hakaru.Experiment
	frozen hakaru.Frozen
	trials map[int]map[string][]*hakaru.Result // block → variant → attempts in order
	strata []*Stratum

	calibration []*hakaru.Result // all attempts, in block order
	complete    int
	dropped     int
	droppedRow  int // dropped one after another
	lastVoid    *hakaru.Result
	prevail     string
}

// Stratum is the part of a ledger within which variants compete.
type Stratum struct {
	At      map[string]string
	Entered int // blocks, open ones included
	Open    int
	Dropped int

	ledger   *Ledger
	blocks   []map[string]*hakaru.Result // complete ones in order: member → its valid trial
	pairs    []*standing
	valid    map[string]bool
	unusable map[string]UnusableVariant
}

// standing is how far one pair has come in one stratum.
type standing struct {
	hakaru.Pair
	settled bool // it needs no more blocks: decided, refused or not usable
	// judged is the comparison of the goal at the last look reached, nil before
	// the first.
	judged *hakaru.Comparison
}

// NewLedger sorts a history; no block is entered yet. Results of other phases
// than calibrate and compare are passed over.
func NewLedger(exp *hakaru.Experiment, frozen hakaru.Frozen, history []hakaru.Result) *Ledger {
	l := &Ledger{exp: exp, frozen: frozen, trials: map[int]map[string][]*hakaru.Result{}}
	for i := range history {
		r := &history[i]
		switch r.Phase {
		case hakaru.Calibrate:
			l.calibration = append(l.calibration, r)
			fallthrough
		case hakaru.Compare:
			if l.trials[r.Block] == nil {
				l.trials[r.Block] = map[string][]*hakaru.Result{}
			}
			l.trials[r.Block][r.Variant] = append(l.trials[r.Block][r.Variant], r)
		}
	}
	byAttempt := func(a, b *hakaru.Result) int { return cmp.Compare(a.Attempt, b.Attempt) }
	for _, block := range l.trials {
		for _, attempts := range block {
			slices.SortStableFunc(attempts, byAttempt)
		}
	}
	slices.SortStableFunc(l.calibration, func(a, b *hakaru.Result) int {
		return cmp.Or(cmp.Compare(a.Block, b.Block), byAttempt(a, b))
	})
	for _, at := range exp.Strata {
		s := &Stratum{At: at, ledger: l, valid: map[string]bool{}, unusable: map[string]UnusableVariant{}}
		for _, p := range exp.Pairs {
			s.pairs = append(s.pairs, &standing{Pair: p})
		}
		l.strata = append(l.strata, s)
	}
	for _, r := range l.calibration {
		if s := l.stratum(r.At); s != nil && r.Void == nil {
			s.valid[r.Variant] = true
		}
	}
	for _, r := range l.calibration {
		s := l.stratum(r.At)
		if s == nil || s == l.strata[0] || s.valid[r.Variant] {
			continue
		}
		if attempts := l.trials[r.Block][r.Variant]; own(attempts) {
			if last, state := settle(attempts); state == Dropped {
				s.lose(r.Variant, last)
			}
		}
	}
	return l
}

// read enters every compare block of a history, in order.
func read(exp *hakaru.Experiment, frozen hakaru.Frozen, history []hakaru.Result) *Ledger {
	l := NewLedger(exp, frozen, history)
	var numbers []int
	for n := range l.trials {
		numbers = append(numbers, n)
	}
	slices.Sort(numbers)
	for _, n := range numbers {
		if s := l.StratumOf(n); s != nil {
			l.Enter(n, s)
		}
	}
	return l
}

// Strata in the order of the experiment.
func (l *Ledger) Strata() []*Stratum { return l.strata }

// StratumOf is the stratum in which block n was run, nil where the history has
// no compare trial of it.
func (l *Ledger) StratumOf(n int) *Stratum {
	for _, attempts := range l.trials[n] {
		if r := attempts[0]; r.Phase == hakaru.Compare {
			return l.stratum(r.At)
		}
	}
	return nil
}

func (l *Ledger) stratum(at map[string]string) *Stratum {
	key := hakaru.AtKey(at)
	for _, s := range l.strata {
		if hakaru.AtKey(s.At) == key {
			return s
		}
	}
	return nil
}

// Enter reads block n, planned in stratum s with the members that s has now.
func (l *Ledger) Enter(n int, s *Stratum) BlockState {
	valid := map[string]*hakaru.Result{}
	outstanding := false
	var failed []string
	for _, v := range s.Members() {
		switch r, state := settle(l.trials[n][v]); state {
		case Complete:
			valid[v], s.valid[v] = r, true
		case Dropped:
			failed = append(failed, v)
			l.lastVoid = r
		case Open:
			outstanding = true
		}
	}
	spoilt := false
	for _, v := range failed {
		if attempts := l.trials[n][v]; s.valid[v] || !own(attempts) {
			spoilt = true
		} else {
			s.lose(v, attempts[len(attempts)-1])
		}
	}
	s.Entered++
	switch {
	case outstanding:
		// Even where it is lost already: a block that was handed out is run to
		// its end, so that the plan does not depend on when it was asked for.
		s.Open++
		return Open
	case s.baselineLost():
		// The block is nobody's fault but the baseline's, and no other will be
		// planned here, so it does not count towards prevailing voids.
		s.Dropped++
		return Dropped
	case spoilt:
		s.Dropped++
		l.dropped++
		l.droppedRow++
		l.weigh()
		return Dropped
	}
	l.complete++
	l.droppedRow = 0
	s.blocks = append(s.blocks, valid)
	if slices.Contains(l.frozen.Looks, len(s.blocks)) {
		s.look()
	}
	return Complete
}

// settle finds what counts of a trial's attempts: the last that is not void; or
// the last void one when there are no attempts left.
func settle(attempts []*hakaru.Result) (*hakaru.Result, BlockState) {
	for _, r := range slices.Backward(attempts) {
		if r.Void == nil {
			return r, Complete
		}
	}
	if len(attempts) > 0 && attempts[len(attempts)-1].Attempt >= MaxAttempts {
		return attempts[len(attempts)-1], Dropped
	}
	return nil, Open
}

// own reports whether all attempts are void by the variant's own doing. The
// attempts of this one block decide: a single void of the surroundings earlier
// must not keep a variant that never starts in the plan for ever.
func own(attempts []*hakaru.Result) bool {
	return !slices.ContainsFunc(attempts, func(r *hakaru.Result) bool { return r.Void == nil || !r.Void.Own() })
}

// lose marks a variant as unusable in this stratum: it leaves later blocks, and
// this block counts for the others.
func (s *Stratum) lose(variant string, last *hakaru.Result) {
	s.unusable[variant] = UnusableVariant{variant, s.At, last.Void.Reason, last.Void.Evidence}
	for _, p := range s.pairs {
		if p.Base == variant || p.Other == variant {
			p.settled = true
		}
	}
}

func (s *Stratum) baselineLost() bool {
	_, lost := s.unusable[s.ledger.exp.Baseline]
	return lost
}

// weigh tells when void trials prevail: three blocks dropped in a row, or more
// dropped than complete and more than three. With blocks under way this is provisional:
// one of them may still break a row, so the planner waits for them before it
// ends the run.
func (l *Ledger) weigh() {
	if l.prevail != "" {
		return
	}
	if l.droppedRow < 3 && l.dropped <= max(3, l.complete) {
		return
	}
	how := fmt.Sprintf("%d blocks dropped and %d complete", l.dropped, l.complete)
	if l.droppedRow >= 3 {
		how = fmt.Sprintf("%d blocks in a row dropped", l.droppedRow)
	}
	l.prevail = fmt.Sprintf("void trials prevail: %s; the last one, of %s, was %s: %s",
		how, l.lastVoid.Variant, l.lastVoid.Void.Reason, l.lastVoid.Void.Evidence)
}

// Prevailing is why the run can give no answer, or empty: calibration failed,
// void trials prevail, the baseline is unusable in every stratum, or so is
// everything else. start is true where the reason is that a baseline did not
// start.
func (l *Ledger) Prevailing() (text string, start bool) {
	if r := l.CalibrationFailed(); r != nil {
		where := ""
		if s := l.stratum(r.At); s != nil && s != l.strata[0] {
			where = " at " + hakaru.AtKey(r.At)
		}
		return fmt.Sprintf("%s was void in all %d attempts of a calibration trial%s (%s): %s",
			theBaseline(r.Variant), MaxAttempts, where, r.Void.Reason, r.Void.Evidence), r.Void.Reason == hakaru.VoidNotStarted
	}
	if l.prevail != "" {
		// Where somebody else keeps the services from starting, no variant is
		// unusable, and the baseline does not start either.
		last := l.lastVoid.Void
		return l.prevail, last.Foreign && last.Reason == hakaru.VoidNotStarted
	}
	base := l.exp.Baseline
	var lost UnusableVariant
	for _, s := range l.strata {
		switch {
		case s.baselineLost():
			lost = s.unusable[base]
		case len(s.pairs) > 0 && s.othersLost():
			if lost.Variant == "" {
				lost = s.unusable[s.pairs[0].Other]
			}
		default:
			return "", false
		}
	}
	if lost.Variant == "" {
		return "", false
	}
	who := "no variant but the baseline is usable; " + lost.Variant
	if lost.Variant == base {
		who = theBaseline(base)
	}
	return fmt.Sprintf("%s was void in all %d attempts (%s): %s", who, MaxAttempts, lost.Reason, lost.Evidence),
		lost.Variant == base && lost.Reason == hakaru.VoidNotStarted
}

// theBaseline names the baseline within a sentence.
func theBaseline(name string) string {
	if name == "baseline" {
		return "the baseline"
	}
	return "the baseline " + name
}

func (s *Stratum) othersLost() bool {
	return !slices.ContainsFunc(s.pairs, func(p *standing) bool {
		_, base := s.unusable[p.Base]
		_, other := s.unusable[p.Other]
		return !base && !other
	})
}

// CalibrationFailed is the last attempt of a calibration trial that was void every
// time, for which the run can give no answer, or nil. In the first stratum that is
// any. Another stratum of which no calibration trial counts has no rate for its open
// loop: where that is the baseline's own doing it is closed, and the others go on;
// where it is not, nothing is known of any variant there, and the run ends.
func (l *Ledger) CalibrationFailed() *hakaru.Result {
	for _, r := range l.calibration {
		last, state := settle(l.trials[r.Block][r.Variant])
		if state != Dropped {
			continue
		}
		if s := l.stratum(r.At); s == nil || s == l.strata[0] || l.unseen(s, r.Variant) {
			return last
		}
	}
	return nil
}

// unseen reports whether all calibration trials of a stratum are done with and none
// counts, by no doing of the baseline.
func (l *Ledger) unseen(s *Stratum, baseline string) bool {
	if _, lost := s.unusable[baseline]; lost || s.valid[baseline] || l.exp.Design.Open == nil {
		return false
	}
	settled := map[int]bool{}
	for _, r := range l.calibration {
		if _, state := settle(l.trials[r.Block][r.Variant]); state != Open && l.stratum(r.At) == s {
			settled[r.Block] = true
		}
	}
	return len(settled) >= l.exp.Design.Open.Calibrate
}

// Members are the variants that the stratum's next block holds, in the order of
// the experiment: those of its undecided pairs. None where no block is wanted.
func (s *Stratum) Members() []string {
	if s.Finished() {
		return nil
	}
	var members []string
	for _, v := range s.ledger.exp.Variants {
		if slices.ContainsFunc(s.pairs, func(p *standing) bool {
			return !p.settled && (p.Base == v.Name || p.Other == v.Name)
		}) {
			members = append(members, v.Name)
		}
	}
	return members
}

// Finished reports whether the stratum wants no more blocks.
func (s *Stratum) Finished() bool {
	return s.baselineLost() || s.Undecided() == 0 || s.nextLook() == 0
}

// nextLook is the number of complete blocks at the next planned look, 0 after
// the last.
func (s *Stratum) nextLook() int {
	for _, n := range s.ledger.frozen.Looks {
		if n > len(s.blocks) {
			return n
		}
	}
	return 0
}

// MustWait reports whether another block of this stratum would depend on one
// that is still under way: blocks up to the next look are all out, or it is not
// known yet whether each member can run at all.
func (s *Stratum) MustWait() bool {
	if s.Open == 0 {
		return false
	}
	if len(s.blocks)+s.Open >= s.nextLook() {
		return true
	}
	return slices.ContainsFunc(s.Members(), func(v string) bool { return !s.valid[v] })
}

// Complete is the number of complete blocks.
func (s *Stratum) Complete() int { return len(s.blocks) }

// Undecided is the number of pairs that still wait for a verdict.
func (s *Stratum) Undecided() int {
	n := 0
	for _, p := range s.pairs {
		if !p.settled {
			n++
		}
	}
	return n
}

// Attempt is the result of one trial, nil where the history has none.
func (l *Ledger) Attempt(k hakaru.Key) *hakaru.Result {
	for _, r := range l.trials[k.Block][k.Variant] {
		if r.Attempt == k.Attempt {
			return r
		}
	}
	return nil
}

// Calibration are all attempts of the calibration trials, in order of blocks.
func (l *Ledger) Calibration() []hakaru.Result {
	all := make([]hakaru.Result, len(l.calibration))
	for i, r := range l.calibration {
		all[i] = *r
	}
	return all
}
