package campaign

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"hakaru"
	"hakaru/internal/host"
)

// fake is store, agents and both hosts of a run in which everything is well.
type fake struct {
	host.Host
	stored []hakaru.Result
	down   func() // called while a place is taken down
}

func (f *fake) History(context.Context, string) ([]hakaru.Result, error) { return nil, nil }

func (f *fake) Append(ctx context.Context, _ string, r hakaru.Result, _ []hakaru.Output) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	f.stored = append(f.stored, r)
	return nil
}

func (f *fake) Update(_ context.Context, _ string, change func(*hakaru.Run)) error {
	change(&hakaru.Run{})
	return nil
}

func (f *fake) Start(context.Context) (service, load host.Host, err error) { return f, f, nil }
func (f *fake) Close(context.Context) error                                { return nil }

func (f *fake) Up(context.Context, hakaru.Bundle) (hakaru.Place, error) {
	return hakaru.Place{ID: "p"}, nil
}

func (f *fake) Watch(_ context.Context, _ hakaru.Place, w hakaru.Window, begun func()) (hakaru.Watched, error) {
	begun()
	seen := hakaru.Watched{Counters: []hakaru.Counter{{Name: hakaru.CounterCPU, Of: "service"}}}
	for range w.Total() / hakaru.BucketWidth {
		seen.Buckets = append(seen.Buckets, []float64{0.1})
	}
	return seen, nil
}

func (f *fake) Load(_ context.Context, _ hakaru.Place, _ hakaru.LoadSpec, w hakaru.Window, _ func(hakaru.Bucket)) (hakaru.LoadReport, error) {
	var report hakaru.LoadReport
	for i := range w.Total() / hakaru.BucketWidth {
		report.Buckets = append(report.Buckets, hakaru.Bucket{At: i * hakaru.BucketWidth, Good: 50})
	}
	return report, nil
}

func (f *fake) Prove(context.Context, hakaru.Place, []hakaru.Ask, hakaru.Moment) ([]hakaru.Proof, error) {
	return nil, nil
}

func (f *fake) Down(context.Context, hakaru.Place) (hakaru.Leftovers, error) {
	if f.down != nil {
		f.down()
	}
	return hakaru.Leftovers{}, nil
}

func run() hakaru.Run {
	return hakaru.Run{ID: "k3f9a", Experiment: hakaru.Experiment{
		Name:     "fib",
		Services: []hakaru.Service{{Name: "service", Kind: "command", Run: []string{"fib"}}},
		Variants: []hakaru.Variant{{Name: "base"}, {Name: "other"}},
		Strata:   []map[string]string{{}},
		Baseline: "base",
		Pairs:    []hakaru.Pair{{Base: "base", Other: "other"}},
		Load:     hakaru.Load{HTTP: &hakaru.HTTPLoad{URL: "http://127.0.0.1:9/", WarmUp: "0s", Duration: "500ms"}},
		Goal:     hakaru.Throughput,
		Design:   hakaru.Design{Method: hakaru.MethodCompare, Blocks: 2, Calibrate: 1},
	}}
}

// A trial that was finished is stored although the interrupt came while its
// service was being stopped.
func TestInterruptKeepsAFinishedTrial(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		why := errors.New("interrupted")
		ctx, cancel := context.WithCancelCause(t.Context())
		f := &fake{down: func() { cancel(why) }}
		res, err := Run(ctx, Spec{Run: run(), Store: f, Agents: f, Now: time.Now})
		if !errors.Is(err, why) {
			t.Errorf("the run ended with %v", err)
		}
		if len(f.stored) != 1 || len(res.History) != 1 || f.stored[0].Void != nil {
			t.Errorf("%d trials stored, %d told; want one that counts: %+v", len(f.stored), len(res.History), f.stored)
		}
	})
}

// Without an interrupt it goes on to the planned end, and each trial is stored.
func TestRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{}
		res, err := Run(t.Context(), Spec{Run: run(), Store: f, Agents: f, Now: time.Now})
		if err != nil {
			t.Fatal(err)
		}
		if res.Done == nil || len(f.stored) != 5 {
			t.Errorf("done %+v after %d trials, want 1 + 2·2", res.Done, len(f.stored))
		}
		for i, r := range f.stored {
			if r.Seq != i+1 {
				t.Errorf("trial %d has number %d", i+1, r.Seq)
			}
		}
	})
}

func TestWithout(t *testing.T) {
	open := PlanEvent{Trials: 5, PerTrial: 3 * time.Second, AtMost: 13 * time.Second, Calibration: 2, Lacks: time.Second}
	if got, want := open.Without(1), (PlanEvent{Trials: 4, PerTrial: 3 * time.Second, AtMost: 11 * time.Second, Calibration: 1, Lacks: time.Second}); got != want {
		t.Errorf("%+v", got)
	}
	if got := open.Without(3); got.AtMost != 6*time.Second || got.Calibration != 0 {
		t.Errorf("%+v", got)
	}
	p := PlanEvent{Trials: 2, PerTrial: time.Second, AtMost: 2 * time.Second, Known: true}
	if got, want := p.Without(1), (PlanEvent{Trials: 1, PerTrial: time.Second, AtMost: time.Second, Known: true}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	if got := p.Without(3); got.Trials != 0 || got.AtMost != 0 {
		t.Errorf("%+v, want nothing", got)
	}
}
