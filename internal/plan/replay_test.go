package plan_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"hakaru"
	"hakaru/internal/compare"
	"hakaru/internal/plan"
	"hakaru/internal/plan/simulate"
)

// campaign is a finished run and the trouble it had.
type campaign struct {
	exp  *hakaru.Experiment
	void float64 // share of void trials
	*simulate.Campaign
}

// campaigns are finished histories of every method and every kind of trouble.
func campaigns(t *testing.T) map[string]campaign {
	all := map[string]campaign{}
	trouble := func(seed uint64, share float64) func(hakaru.Trial) *hakaru.Void {
		return func(t hakaru.Trial) *hakaru.Void {
			if t.Variant == "d" {
				return &hakaru.Void{Reason: hakaru.VoidNotStarted, Evidence: "made so"}
			}
			rng := rand.New(rand.NewPCG(seed, uint64(t.Block*100+t.Attempt*10)+uint64(t.Variant[0])))
			if rng.Float64() < share {
				return &hakaru.Void{Reason: hakaru.VoidOthers, Evidence: "made so"}
			}
			return nil
		}
	}
	for name, x := range map[string]struct {
		method           hakaru.Method
		variants, strata int
		pairs, budget    bool
		calibrate        int
		void             float64
		open             bool // latency is the goal, in open loops
	}{
		"compare":       {hakaru.MethodCompare, 3, 1, false, false, 6, 0, false},
		"voids":         {hakaru.MethodCompare, 5, 1, false, false, 2, 0.3, false},
		"previous":      {hakaru.MethodOneAtATime, 4, 2, true, false, 2, 0.1, false},
		"factorial":     {hakaru.MethodFactorial, 8, 3, false, true, 2, 0.05, false},
		"uncalibrated":  {hakaru.MethodCompare, 4, 2, true, false, 0, 0.1, false},
		"void prevails": {hakaru.MethodCompare, 3, 1, false, false, 2, 0.75, false},
		"open loops":    {hakaru.MethodCompare, 3, 3, false, true, 3, 0.1, true},
	} {
		for seed := range uint64(4) {
			exp := experiment(x.variants, x.strata)
			exp.Design.Method, exp.Design.Seed, exp.Design.Calibrate = x.method, seed, x.calibrate
			if x.open {
				openLoops(exp).Goal = hakaru.P99
			}
			if x.pairs {
				previous(exp)
			}
			if x.budget {
				exp.Design.Budget = 40 * time.Minute
			}
			s := &simulate.Service{Effect: map[string]float64{"b": 0.1, "c": 0.02, "e": 0.3}}
			if x.void > 0 {
				s.Void = trouble(seed, x.void)
			}
			c, err := simulate.Run(exp, s, simulate.NewMachine(simulate.DriftOutliers, 0.04, seed))
			if err != nil {
				t.Fatal(err)
			}
			all[fmt.Sprintf("%s %d", name, seed)] = campaign{exp, x.void, c}
		}
	}
	return all
}

// Given the history up to any trial, the planner gives the block that was run,
// and the same whether it started then or was resumed with what was frozen.
func TestReplay(t *testing.T) {
	for name, c := range campaigns(t) {
		t.Run(name, func(t *testing.T) {
			fresh, resumed := newPlanner(t, c.exp, nil), newPlanner(t, c.exp, &c.Frozen)
			for i, r := range c.History {
				planners := []plan.Planner{fresh}
				if r.Phase == hakaru.Compare {
					planners = append(planners, resumed)
				}
				for _, p := range planners {
					blocks, done := p.Next(c.History[:i], 1)
					if done != nil || len(blocks) != 1 {
						t.Fatalf("after %d trials: %d blocks, %+v", i, len(blocks), done)
					}
					want := r.Trial
					want.Seq = 0
					if diff := cmp.Diff(want, blocks[0].Trials[0]); diff != "" || blocks[0].N != r.Block {
						t.Fatalf("after %d trials: %s", i, diff)
					}
				}
			}
			blocks, done := fresh.Next(c.History, 1)
			if blocks != nil || done == nil || *done != c.Done {
				t.Errorf("at the end: %v, %+v", blocks, done)
			}
			if c.Frozen.Looks != nil {
				if diff := cmp.Diff(&c.Frozen, fresh.Frozen(c.History)); diff != "" {
					t.Error(diff)
				}
			}
		})
	}
}

// What is stored as frozen holds, though today's Freeze would give something else.
func TestFrozenHolds(t *testing.T) {
	exp := experiment(2, 1)
	stored := compare.Freeze(exp, nil)
	stored.Looks, stored.Blocks = []int{2}, 2
	p := newPlanner(t, exp, &stored)
	if p.Frozen(nil) != &stored {
		t.Error("another one than the stored one")
	}
	var history []hakaru.Result
	for {
		blocks, done := p.Next(history, 1)
		if done != nil {
			break
		}
		for i, trial := range blocks[0].Trials {
			history = append(history, ran(trial, float64(1000+i*trial.Block)))
		}
	}
	if last := history[len(history)-1]; last.Block != 2+2 {
		t.Errorf("ended with block %d, want 4: two of calibration and two", last.Block)
	}
}

func TestFrozenNotBeforeCalibration(t *testing.T) {
	exp := experiment(2, 1)
	p := newPlanner(t, exp, nil)
	trial := func(n, attempt int) hakaru.Trial {
		return hakaru.Trial{Phase: hakaru.Calibrate, Block: n, Attempt: attempt, Variant: "a", At: exp.Strata[0]}
	}
	history := []hakaru.Result{ran(trial(1, 1), 1), voided(trial(2, 1), hakaru.VoidOthers)}
	if f := p.Frozen(history); f != nil {
		t.Errorf("one trial is outstanding: %+v", f)
	}
	history = append(history, ran(trial(2, 2), 1.1))
	if f := p.Frozen(history); f == nil || f.Noise.Trials != 2 {
		t.Errorf("%+v", f)
	}
}

// With several hosts blocks end in any order. A block once named keeps its
// stratum and order until it has ended, none is named again after that, no
// trial is run twice, and the history that comes out, replayed, is judged the
// same as it was.
func TestSeveralHosts(t *testing.T) {
	for name, c := range campaigns(t) {
		t.Run(name, func(t *testing.T) {
			for _, hosts := range []int{2, 5} {
				p := newPlanner(t, c.exp, nil)
				rng := rand.New(rand.NewPCG(uint64(hosts), c.exp.Design.Seed))
				machine := simulate.NewMachine(simulate.Normal, 0.04, 3)
				s := &simulate.Service{Effect: map[string]float64{"b": 0.1, "c": 0.02, "e": 0.3}}
				if share := c.void; share > 0 {
					s.Void = func(t hakaru.Trial) *hakaru.Void {
						if t.Variant == "d" {
							return &hakaru.Void{Reason: hakaru.VoidNotStarted, Evidence: "made so"}
						}
						if t.Phase == hakaru.Compare && rng.Float64() < share {
							return &hakaru.Void{Reason: hakaru.VoidOthers, Evidence: "made so"}
						}
						return nil
					}
				}
				var history []hakaru.Result
				known := map[int]hakaru.Block{} // named and not ended
				seen := map[hakaru.Key]bool{}
				most := 0
				for len(history) < 2000 {
					blocks, done := p.Next(history, hosts)
					if done != nil {
						// Void trials may prevail whatever a later block brings.
						if len(known) > 0 && done.State != hakaru.AllVoid {
							t.Errorf("done with %d blocks under way: %+v", len(known), done)
						}
						break
					}
					if len(blocks) == 0 || len(blocks) > hosts {
						t.Fatalf("%d blocks for %d hosts", len(blocks), hosts)
					}
					most = max(most, len(blocks))
					now := map[int]hakaru.Block{}
					for _, b := range blocks {
						if was, ok := known[b.N]; ok && hakaru.AtKey(was.At) != hakaru.AtKey(b.At) {
							t.Fatalf("block %d moved:\n%s%s", b.N, text([]hakaru.Block{was}), text([]hakaru.Block{b}))
						}
						if seen[b.Trials[0].Key()] {
							t.Fatalf("trial %v is named again", b.Trials[0].Key())
						}
						now[b.N] = b
					}
					for n, was := range known {
						if b, ok := now[n]; ok && !cmp.Equal(was.Trials, b.Trials) {
							t.Fatalf("block %d changed:\n%s%s", n, text([]hakaru.Block{was}), text([]hakaru.Block{b}))
						} else if !ok {
							t.Fatalf("block %d vanished while under way", n)
						}
					}
					// One trial of one of them ends.
					b := blocks[rng.IntN(len(blocks))]
					history = append(history, s.Trial(c.exp, machine, b.Trials[0]))
					seen[b.Trials[0].Key()] = true
					delete(now, b.N)
					known = now
				}
				if most < 2 && c.void < 0.5 {
					t.Errorf("never more than %d blocks at once with %d hosts", most, hosts)
				}
				f := p.Frozen(history)
				if f == nil {
					t.Fatal("nothing frozen")
				}
				one, oneDone := p.Next(history, 1)
				if one != nil || oneDone == nil {
					t.Errorf("one host finds the run not done: %v", text(one))
				}
				rng.Shuffle(len(history), func(i, j int) { history[i], history[j] = history[j], history[i] })
				if _, done := p.Next(history, 1); done == nil || *done != *oneDone {
					t.Errorf("another end in another order: %+v, %+v", done, oneDone)
				}
			}
		})
	}
}

// Ten levels in two strata, to the end: every level that is truly better is
// found in both.
func TestTenLevelsTwoStrata(t *testing.T) {
	exp := experiment(10, 2)
	exp.Design.Blocks = 28
	s := &simulate.Service{Effect: map[string]float64{}}
	for i, v := range exp.Variants {
		s.Effect[v.Name] = 0.2 * float64(i)
	}
	c, err := simulate.Run(exp, s, simulate.NewMachine(simulate.DriftOutliers, 0.02, 1))
	if err != nil {
		t.Fatal(err)
	}
	if c.Done.State != hakaru.Decided || c.Frozen.Comparison != 18 {
		t.Errorf("%+v, %+v", c.Done, c.Frozen)
	}
	o := compare.Judge(exp, c.Frozen, c.History, c.Comparisons, nil)
	for _, a := range o.Strata {
		if a.State != compare.StateBetter || a.Winner != "j" {
			t.Errorf("%+v", a)
		}
	}
	diff := cmp.Diff(c.Comparisons, compare.Compare(exp, c.Frozen, c.History), cmpopts.EquateEmpty())
	if diff != "" {
		t.Error(diff)
	}
}
