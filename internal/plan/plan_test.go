package plan_test

import (
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"hakaru"
	"hakaru/internal/compare"
	"hakaru/internal/plan"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// experiment has the baseline a and further variants b, c, … each against the
// baseline, in the given number of strata.
func experiment(variants, strata int) *hakaru.Experiment {
	exp := &hakaru.Experiment{
		Name: "made", Baseline: "a", Goal: hakaru.Throughput,
		Design: hakaru.Design{Method: hakaru.MethodCompare, Blocks: 10, Matters: 0.03, Seed: 7, Calibrate: 2},
	}
	for i := range variants {
		name := string(rune('a' + i))
		exp.Variants = append(exp.Variants, hakaru.Variant{Name: name})
		if i > 0 {
			exp.Pairs = append(exp.Pairs, hakaru.Pair{Base: "a", Other: name})
		}
	}
	for i := range strata {
		exp.Strata = append(exp.Strata, map[string]string{"n": fmt.Sprint(i + 1)})
	}
	if strata == 1 {
		exp.Strata = []map[string]string{{}}
	}
	return exp
}

// previous adds the pairs of `compare: [baseline, previous]`.
func previous(exp *hakaru.Experiment) *hakaru.Experiment {
	for i := 2; i < len(exp.Variants); i++ {
		exp.Pairs = append(exp.Pairs, hakaru.Pair{Base: exp.Variants[i-1].Name, Other: exp.Variants[i].Name})
	}
	return exp
}

// openLoops adds open loops whose rates need two trials in each stratum but the
// first.
func openLoops(exp *hakaru.Experiment) *hakaru.Experiment {
	exp.Design.Open = &hakaru.OpenDesign{Calibrate: 2, Takes: 10 * time.Second}
	for _, at := range exp.Strata {
		exp.Design.Open.Shares = append(exp.Design.Open.Shares, hakaru.OpenShare{At: at, Share: 0.7})
	}
	return exp
}

// text writes blocks as lines: number, phase, stratum, trials.
func text(blocks []hakaru.Block) string {
	var b strings.Builder
	for _, x := range blocks {
		fmt.Fprintf(&b, "%d %s", x.N, x.Phase)
		if at := hakaru.AtKey(x.At); at != "" {
			fmt.Fprintf(&b, " [%s]", at)
		}
		b.WriteByte(':')
		for _, t := range x.Trials {
			fmt.Fprintf(&b, " %s", t.Variant)
			if t.Attempt > 1 {
				fmt.Fprintf(&b, "%d", t.Attempt)
			}
		}
		b.WriteByte('\n')
	}
	return b.String()
}

func ran(t hakaru.Trial, goal float64) hakaru.Result {
	return hakaru.Result{Trial: t, Took: 10 * time.Second, Window: 5 * time.Second,
		Measurements: []hakaru.Measurement{{Metric: hakaru.Throughput, Value: goal}}}
}

func voided(t hakaru.Trial, reason hakaru.VoidReason) hakaru.Result {
	return hakaru.Result{Trial: t, Took: 10 * time.Second, Void: &hakaru.Void{Reason: reason, Evidence: "made so"}}
}

func newPlanner(t *testing.T, exp *hakaru.Experiment, frozen *hakaru.Frozen) plan.Planner {
	t.Helper()
	p, err := plan.New(exp, frozen)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// The order of a seed is kept for ever, or a stored run could not be resumed.
func TestOutline(t *testing.T) {
	for _, test := range []struct {
		name string
		exp  *hakaru.Experiment
	}{
		{"compare", experiment(3, 1)},
		{"strata", experiment(3, 3)},
		{"ten-levels-two-strata", experiment(10, 2)},
		{"open-loops", openLoops(experiment(2, 3))},
	} {
		t.Run(test.name, func(t *testing.T) {
			outline := plan.Outline(test.exp)
			got, path := text(outline), filepath.Join("testdata", "outline", test.name+".txt")
			if *update {
				if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, []byte(got), 0o666); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got); diff != "" {
				t.Error(diff)
			}
			trials := 0
			for _, b := range outline {
				trials += len(b.Trials)
				if want := len(test.exp.Variants); b.Phase == hakaru.Compare && len(b.Trials) != want {
					t.Errorf("block %d has %d trials, want %d", b.N, len(b.Trials), want)
				}
			}
			takes := time.Duration(trials) * time.Minute
			if open := test.exp.Design.Open; open != nil { // which the six of the calibration lack
				takes -= 6 * open.Takes
			}
			estimate := func(phase hakaru.Phase, _ map[string]string) time.Duration {
				if open := test.exp.Design.Open; open != nil && phase == hakaru.Calibrate {
					return time.Minute - open.Takes
				}
				return time.Minute
			}
			if atMost, n := plan.Estimate(test.exp, estimate); n != trials || atMost != takes {
				t.Errorf("estimate %v for %d trials, outline has %d", atMost, n, trials)
			}
		})
	}
}

// What is run when nothing is void and nothing can be decided is the outline.
func TestOutlineIsRun(t *testing.T) {
	exp := experiment(3, 3)
	p := newPlanner(t, exp, nil)
	rng := rand.New(rand.NewPCG(1, 1))
	var history []hakaru.Result
	var was []hakaru.Block
	for {
		blocks, done := p.Next(history, 1)
		if done != nil {
			if done.State != hakaru.Exhausted {
				t.Errorf("%+v", done)
			}
			break
		}
		was = append(was, blocks[0])
		for _, trial := range blocks[0].Trials {
			history = append(history, ran(trial, 1000*math.Exp(rng.NormFloat64())))
		}
	}
	if diff := cmp.Diff(text(plan.Outline(exp)), text(was)); diff != "" {
		t.Error(diff)
	}
}

func TestEstimateWithBudget(t *testing.T) {
	exp := experiment(2, 1)
	exp.Design.Budget = 10 * time.Minute // 2 for calibration, 4 blocks of 2
	if atMost, trials := plan.Estimate(exp, func(hakaru.Phase, map[string]string) time.Duration { return time.Minute }); atMost != 10*time.Minute || trials != 10 {
		t.Errorf("%v, %d trials", atMost, trials)
	}
}

func TestNew(t *testing.T) {
	for _, test := range []struct {
		change func(*hakaru.Experiment)
		want   string
	}{
		{func(e *hakaru.Experiment) { e.Design.Method = hakaru.MethodFactorial }, ""},
		{func(e *hakaru.Experiment) { e.Design.Method = hakaru.MethodOneAtATime }, ""},
		{func(e *hakaru.Experiment) { e.Design.Method = "" }, ""},
		{func(e *hakaru.Experiment) { e.Design.Method = hakaru.MethodRace }, "plan made: method race is not built yet"},
		{func(e *hakaru.Experiment) { e.Design.Method = hakaru.MethodSearch }, "plan made: method search is not built yet"},
		{func(e *hakaru.Experiment) { e.Design.Method = hakaru.MethodSwitchback }, "plan made: method switchback is not built yet"},
		{func(e *hakaru.Experiment) { e.Design.Method = hakaru.MethodAuto }, "plan made: method auto is not built yet"},
		{func(e *hakaru.Experiment) { e.Design.Method = "magic" }, `plan made: unknown method "magic"`},
		{func(e *hakaru.Experiment) { e.Baseline = "z" }, `plan made: baseline "z" is not a variant`},
		{func(e *hakaru.Experiment) { e.Pairs[0].Other = "z" }, `plan made: pair z/a: "z" is not a variant`},
		{func(e *hakaru.Experiment) { e.Strata = nil }, "plan made: no stratum (an experiment without levels has one empty one)"},
	} {
		exp := experiment(3, 1)
		test.change(exp)
		got := ""
		if _, err := plan.New(exp, nil); err != nil {
			got = err.Error()
		}
		if got != test.want {
			t.Errorf("got %q, want %q", got, test.want)
		}
		if outline := plan.Outline(exp); (outline == nil) != (test.want != "") {
			t.Errorf("%q: outline of %d blocks", test.want, len(outline))
		}
	}
}

// script runs a campaign in which a function says what becomes of each trial,
// and writes what was run, one block a line, and how it ended.
func script(t *testing.T, exp *hakaru.Experiment, result func(hakaru.Trial) hakaru.Result) (string, []hakaru.Result) {
	t.Helper()
	p := newPlanner(t, exp, nil)
	var history []hakaru.Result
	var b strings.Builder
	last := 0
	for {
		blocks, done := p.Next(history, 1)
		if done != nil {
			fmt.Fprintf(&b, "\n%s: %s\n", done.State, done.Text)
			return strings.TrimSpace(b.String()), history
		}
		if len(blocks) != 1 || len(history) > 1000 {
			t.Fatalf("%d blocks after %d trials", len(blocks), len(history))
		}
		trial := blocks[0].Trials[0]
		if trial.Block != last {
			fmt.Fprintf(&b, "\n%d:", trial.Block)
			last = trial.Block
		}
		r := result(trial)
		fmt.Fprintf(&b, " %s", trial.Variant)
		if trial.Attempt > 1 {
			fmt.Fprint(&b, trial.Attempt)
		}
		if r.Void != nil {
			b.WriteByte('-')
		}
		history = append(history, r)
	}
}

func TestVoids(t *testing.T) {
	goal := map[string]float64{"a": 1000, "b": 1500, "c": 1000}
	good := func(t hakaru.Trial) hakaru.Result { return ran(t, goal[t.Variant]) }
	for _, test := range []struct {
		name   string
		change func(*hakaru.Experiment)
		result func(hakaru.Trial) hakaru.Result
		want   string
	}{
		{"none", nil, good, `
1: a
2: a
3: b c a
4: a b c
5: a c b
decided: every comparison that can be made is settled after 3 complete blocks`},
		{"re-run behind the others", nil, func(t hakaru.Trial) hakaru.Result {
			if t.Block == 1 && t.Attempt < 3 || t.Block == 4 && t.Variant != "b" && t.Attempt < 2 || t.Block == 5 && t.Variant == "a" && t.Attempt < 3 {
				return voided(t, hakaru.VoidOthers)
			}
			return good(t)
		}, `
1: a- a2- a3
2: a
3: b c a
4: a- b c- a2 c2
5: a- c b a2- a3
decided: every comparison that can be made is settled after 3 complete blocks`},
		{"a variant that never starts", nil, func(t hakaru.Trial) hakaru.Result {
			if t.Variant == "c" {
				return voided(t, hakaru.VoidNotStarted)
			}
			return good(t)
		}, `
1: a
2: a
3: b c- a c2- c3-
4: a b
5: a b
decided: every comparison that can be made is settled after 3 complete blocks`},
		{"a block that stays incomplete is dropped", nil, func(t hakaru.Trial) hakaru.Result {
			if t.Variant == "c" && t.Block == 4 {
				return voided(t, hakaru.VoidDied)
			}
			return good(t)
		}, `
1: a
2: a
3: b c a
4: a b c- c2- c3-
5: a c b
6: c b a
decided: every comparison that can be made is settled after 3 complete blocks`},
		{"three dropped in a row", nil, func(t hakaru.Trial) hakaru.Result {
			if t.Variant == "c" && t.Block > 3 {
				return voided(t, hakaru.VoidGenerator)
			}
			return good(t)
		}, `
1: a
2: a
3: b c a
4: a b c- c2- c3-
5: a c- b c2- c3-
6: c- b a c2- c3-
void: void trials prevail: 3 blocks in a row dropped; the last one, of c, was generator_limited: made so`},
		{"more dropped than complete", func(e *hakaru.Experiment) { e.Design.Blocks = 28; goal["b"] = 1030; goal["c"] = 1030 }, func(t hakaru.Trial) hakaru.Result {
			if t.Variant == "c" && t.Block > 3 && t.Block%3 != 0 {
				return voided(t, hakaru.VoidThrottled)
			}
			r := good(t)
			r.Measurements[0].Value *= 1 + 0.1*math.Sin(float64(t.Block*len(t.Variant+"x")*int(t.Variant[0])))
			return r
		}, `
1: a
2: a
3: b c a
4: a b c- c2- c3-
5: a c- b c2- c3-
6: c b a
7: b c- a c2- c3-
8: b c- a c2- c3-
void: void trials prevail: 4 blocks dropped and 2 complete; the last one, of c, was throttled: made so`},
		{"the baseline never starts", nil, func(t hakaru.Trial) hakaru.Result {
			return voided(t, hakaru.VoidNotStarted)
		}, `
1: a- a2- a3-
no_start: the baseline a was void in all 3 attempts of a calibration trial (not_started): made so`},
		{"calibration disturbed", nil, func(t hakaru.Trial) hakaru.Result {
			if t.Block == 2 {
				return voided(t, hakaru.VoidOthers)
			}
			return good(t)
		}, `
1: a
2: a- a2- a3-
void: the baseline a was void in all 3 attempts of a calibration trial (others): made so`},
		{"no calibration, the baseline dies", func(e *hakaru.Experiment) { e.Design.Calibrate = 0 }, func(t hakaru.Trial) hakaru.Result {
			if t.Variant == "a" {
				return voided(t, hakaru.VoidDied)
			}
			return good(t)
		}, `
1: b c a- a2- a3-
void: the baseline a was void in all 3 attempts (died): made so`},
		{"no calibration, somebody else has the address", func(e *hakaru.Experiment) { e.Design.Calibrate = 0 }, func(t hakaru.Trial) hakaru.Result {
			r := voided(t, hakaru.VoidNotStarted)
			r.Void.Foreign = true
			return r
		}, `
1: b- c- a- b2- c2- a2- b3- c3- a3-
2: c- b- a- c2- b2- a2- c3- b3- a3-
3: b- c- a- b2- c2- a2- b3- c3- a3-
no_start: void trials prevail: 3 blocks in a row dropped; the last one, of c, was not_started: made so`},
		{"no other variant is usable", nil, func(t hakaru.Trial) hakaru.Result {
			if t.Variant != "a" {
				return voided(t, hakaru.VoidProof)
			}
			return good(t)
		}, `
1: a
2: a
3: b- c- a b2- c2- b3- c3-
void: no variant but the baseline is usable; b was void in all 3 attempts (proof_failed): made so`},
		{"a decided variant leaves", func(e *hakaru.Experiment) { goal["b"], goal["c"] = 3000, 1000 }, func(t hakaru.Trial) hakaru.Result {
			r := good(t)
			if t.Variant == "c" {
				r.Measurements[0].Value *= 1 + 0.2*float64(t.Block%2)
			}
			return r
		}, `
1: a
2: a
3: b c a
4: a b c
5: a c b
6: c a
7: c a
8: c a
9: a c
10: c a
11: c a
12: a c
exhausted: the last planned look is reached after 10 complete blocks, and 1 of 2 comparisons have no verdict`},
	} {
		t.Run(test.name, func(t *testing.T) {
			clear(goal)
			goal["a"], goal["b"], goal["c"] = 1000, 1500, 1000
			exp := experiment(3, 1)
			if test.change != nil {
				test.change(exp)
			}
			got, _ := script(t, exp, test.result)
			if diff := cmp.Diff(strings.TrimSpace(test.want), strings.ReplaceAll(got, "\n\n", "\n")); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// A stratum in which the baseline cannot run is closed; the others go on.
func TestStratumWithoutBaseline(t *testing.T) {
	exp := experiment(2, 2)
	got, history := script(t, exp, func(t hakaru.Trial) hakaru.Result {
		if t.At["n"] == "2" && t.Variant == "a" {
			return voided(t, hakaru.VoidNotStarted)
		}
		return ran(t, map[string]float64{"a": 1000, "b": 1500}[t.Variant])
	})
	if !strings.Contains(got, "decided: every comparison that can be made is settled after 3 complete blocks") {
		t.Error(got)
	}
	frozen := compare.Freeze(exp, history)
	o := compare.Judge(exp, frozen, history, compare.Compare(exp, frozen, history), nil)
	if o.State != compare.StateBetter || o.Strata[0].Winner != "b" || o.Strata[1].State != compare.StateVoid {
		t.Errorf("%+v", o)
	}
}

// A stratum in which calibration shows no capacity has no rate for its open loop,
// and is closed before the first block; the others go on with theirs.
func TestStratumWithoutRate(t *testing.T) {
	exp := openLoops(experiment(2, 2))
	got, history := script(t, exp, func(t hakaru.Trial) hakaru.Result {
		if t.At["n"] == "2" {
			return voided(t, hakaru.VoidDied)
		}
		return ran(t, map[string]float64{"a": 1000, "b": 1500}[t.Variant])
	})
	want := `
1: a
2: a
3: a- a2- a3-
4: a- a2- a3-
5: b a
6: b a
7: b a
decided: every comparison that can be made is settled after 3 complete blocks`
	if diff := cmp.Diff(strings.TrimSpace(want), strings.ReplaceAll(got, "\n\n", "\n")); diff != "" {
		t.Error(diff)
	}
	frozen := newPlanner(t, exp, nil).Frozen(history)
	if frozen == nil || len(frozen.Rates) != 1 || frozen.Noise.Trials != 2 || !strings.Contains(frozen.Note, "no open loop at n=2") {
		t.Fatalf("%+v", frozen)
	}
	if rate, ok := frozen.Rate(exp.Strata[0]); !ok || rate.Rate != 700 || rate.Capacity != 1000 {
		t.Errorf("%+v", rate)
	}
	o := compare.Judge(exp, *frozen, history, compare.Compare(exp, *frozen, history), nil)
	if o.State != compare.StateBetter || o.Strata[0].Winner != "b" || o.Strata[1].State != compare.StateVoid || len(o.Unusable) != 1 {
		t.Errorf("%+v", o)
	}
}

// A stratum whose calibration is void by something else on the machine has no
// variant to blame, and no rate: the run ends as where that is so of the first
// stratum, and does not say that all is settled.
func TestStratumWithoutRateByOthers(t *testing.T) {
	for _, c := range []struct {
		name string
		void func(hakaru.Trial) bool
		want string
	}{
		{"each", func(t hakaru.Trial) bool { return true }, `
1: a
2: a
3: a- a2- a3-
4: a- a2- a3-
void: the baseline a was void in all 3 attempts of a calibration trial at n=2 (others): made so`},
		{"one", func(t hakaru.Trial) bool { return t.Block == 3 }, `
1: a
2: a
3: a- a2- a3-
4: a
5: b a
6: b a
7: b a
8: b a
9: a b
10: b a
decided: every comparison that can be made is settled after 6 complete blocks`},
	} {
		t.Run(c.name, func(t *testing.T) {
			exp := openLoops(experiment(2, 2))
			got, history := script(t, exp, func(t hakaru.Trial) hakaru.Result {
				if t.Phase == hakaru.Calibrate && t.At["n"] == "2" && c.void(t) {
					return voided(t, hakaru.VoidOthers)
				}
				return ran(t, map[string]float64{"a": 1000, "b": 1500}[t.Variant])
			})
			if diff := cmp.Diff(strings.TrimSpace(c.want), strings.ReplaceAll(got, "\n\n", "\n")); diff != "" {
				t.Error(diff)
			}
			frozen := compare.Freeze(exp, nil)
			if o := compare.Judge(exp, frozen, history, compare.Compare(exp, frozen, history), nil); len(o.Unusable) != 0 {
				t.Errorf("%+v", o.Unusable)
			}
		})
	}
}
