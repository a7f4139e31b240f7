package main

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"hakaru"
	"hakaru/internal/experiment"
	"hakaru/internal/plan"
	"hakaru/internal/plan/simulate"
	"hakaru/internal/store"
)

// replayed is an experiment file; the method and its variants are put in.
const replayed = `
service:
  kind: serve
  run: hakaru serve --listen {http} --wait 2ms
  ports: [http]
%s
load: {http: {url: "http://{http}/%s", connections: 2, warm_up: 0s, duration: 500ms}}
goal: cpu_per_request
design: {%sblocks: %d, calibrate: %d}
`

var methods = map[hakaru.Method]struct {
	design, variants, path string
	real                   int // blocks of the real run
}{
	hakaru.MethodCompare:    {"method: compare, ", "variants: {base: {}, two: {processes: 2}, quick: {threads: 2}}\ncompare: [baseline, previous]", "9000", 1},
	hakaru.MethodOneAtATime: {"method: one-at-a-time, ", "factors: {processes: [1, 2], threads: [1, 2]}", "9000", 1},
	hakaru.MethodFactorial:  {"", "factors: {processes: [1, 2]}\nat: {size: [10, 9000]}", "{size}", 1},
}

// TestReplay: for runs of every method as they are in the store, real ones and
// long made-up ones full of trouble, the planner given the history up to any
// trial gives the block that was run then. So a run that was cut off goes on as
// if it had not been.
func TestReplay(t *testing.T) {
	for method, m := range methods {
		t.Run("real/"+string(method), func(t *testing.T) {
			t.Parallel() // nobody reads the figures, and a void trial is welcome
			s := newSite(t, fmt.Sprintf(replayed, m.variants, m.path, m.design, m.real, 1))
			s.output("run", "--format", "json", "app.yaml")
			st, err := store.Open(t.Context(), filepath.Join(s.dir, "store", "hakaru.db"))
			if err != nil {
				t.Fatal(err)
			}
			defer st.Close()
			replay(t, st, "last", method)
		})
		t.Run("made/"+string(method), func(t *testing.T) {
			exp, err := experiment.Parse("app.yaml", fmt.Appendf(nil, replayed, m.variants, m.path, m.design, 14, 3), experiment.Options{Dir: t.TempDir()})
			if err != nil {
				t.Fatal(err)
			}
			st, err := store.Open(t.Context(), filepath.Join(t.TempDir(), "h.db"))
			if err != nil {
				t.Fatal(err)
			}
			defer st.Close()
			for seed := range uint64(3) {
				exp.Design.Seed = seed
				replay(t, st, storeMade(t, st, exp, seed), method)
			}
		})
	}
}

// storeMade runs a made-up campaign in which every tenth trial is void, and puts
// it trial by trial into the store.
func storeMade(t *testing.T, st *store.Store, exp *hakaru.Experiment, seed uint64) string {
	t.Helper()
	service := &simulate.Service{
		Effect: map[string]float64{exp.Variants[1].Name: -0.08},
		Void: func(trial hakaru.Trial) *hakaru.Void {
			key := hakaru.AtKey(trial.At) + trial.Variant
			random := rand.New(rand.NewPCG(seed, uint64(trial.Block*1000+trial.Attempt*100+len(key))))
			if random.Float64() < 0.1 {
				return &hakaru.Void{Reason: hakaru.VoidOthers, Evidence: "made so"}
			}
			return nil
		},
	}
	c, err := simulate.Run(exp, service, simulate.NewMachine(simulate.DriftOutliers, 0.04, seed))
	if err != nil {
		t.Fatal(err)
	}
	id, err := st.NewRun(t.Context(), hakaru.Run{
		Name: exp.Name, Started: time.Now(), State: hakaru.RunRunning, Experiment: *exp,
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range c.History {
		if err := st.Append(t.Context(), id, r, nil); err != nil {
			t.Fatal(err)
		}
	}
	err = st.Update(t.Context(), id, func(r *hakaru.Run) { r.State, r.Done, r.Frozen = hakaru.RunDone, &c.Done, &c.Frozen })
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func replay(t *testing.T, st *store.Store, id string, method hakaru.Method) {
	t.Helper()
	run, err := st.Find(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	history, err := st.History(t.Context(), run.ID)
	if err != nil {
		t.Fatal(err)
	}
	if run.Experiment.Design.Method != method || run.State != hakaru.RunDone || run.Frozen == nil || len(history) < 3 {
		t.Fatalf("method %s, %s, frozen %v, %d trials", run.Experiment.Design.Method, run.State, run.Frozen, len(history))
	}
	planner := func(frozen *hakaru.Frozen) plan.Planner {
		p, err := plan.New(&run.Experiment, frozen)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	fresh, resumed := planner(nil), planner(run.Frozen)
	for i, r := range history {
		asked := []plan.Planner{fresh}
		if r.Phase != hakaru.Calibrate {
			asked = append(asked, resumed) // what is frozen is known then
		}
		for _, p := range asked {
			blocks, done := p.Next(history[:i], 1)
			if done != nil || len(blocks) != 1 {
				t.Fatalf("after %d trials: %d blocks, %+v", i, len(blocks), done)
			}
			want := r.Trial
			want.Seq, want.Run, want.Host = 0, "", ""
			if diff := cmp.Diff(want, blocks[0].Trials[0], cmpopts.EquateEmpty()); diff != "" || blocks[0].N != r.Block {
				t.Fatalf("after %d trials another one (block %d): %s", i, blocks[0].N, diff)
			}
		}
	}
	if _, done := fresh.Next(history, 1); done == nil || run.Done == nil || *done != *run.Done {
		t.Errorf("at the end %+v, stored %+v", done, run.Done)
	}
}
