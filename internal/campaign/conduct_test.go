package campaign_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"hakaru"
	"hakaru/internal/campaign"
	"hakaru/internal/host"
	"hakaru/internal/link"
)

// world is store, agents and machine of a campaign, and keeps a log of all that
// was asked of it. The service's throughput follows a law.
type world struct {
	log    []string
	run    hakaru.Run
	stored []hakaru.Result

	law    map[string]float64 // answers per bucket, by variant
	starts int

	appendFails int                          // number of the trial that cannot be stored
	loses       func(hakaru.Trial) bool      // the load agent is lost in this trial
	startFails  int                          // which start of agents fails
	seen        func(hakaru.Trial, *machine) // before the load
	sent        func(hakaru.Trial, hakaru.LoadSpec)
	took        map[string][]byte // latencies of a bucket in an open loop, by variant
}

func (w *world) note(format string, args ...any) { w.log = append(w.log, fmt.Sprintf(format, args...)) }

func (w *world) History(context.Context, string) ([]hakaru.Result, error) { return w.stored, nil }

var errDisk = errors.New("database or disk is full")

func (w *world) Append(_ context.Context, _ string, r hakaru.Result, _ []hakaru.Output) error {
	if r.Seq == w.appendFails {
		w.note("full")
		return errDisk
	}
	w.note("store %d", r.Seq)
	w.stored = append(w.stored, r)
	return nil
}

func (w *world) Update(_ context.Context, _ string, change func(*hakaru.Run)) error {
	change(&w.run)
	w.note("update")
	return nil
}

var errNoAgent = errors.New("fork: resource temporarily unavailable")

func (w *world) Start(context.Context) (service, load host.Host, err error) {
	w.starts++
	w.note("start")
	if w.starts == w.startFails {
		return nil, nil, errNoAgent
	}
	m := &machine{world: w}
	return m, m, nil
}

func (w *world) Close(ctx context.Context) error {
	w.note("close")
	return ctx.Err()
}

// machine is both hosts, of one life of the agents.
type machine struct {
	host.Host
	*world
	trial hakaru.Trial
}

func (m *machine) Up(_ context.Context, b hakaru.Bundle) (hakaru.Place, error) {
	m.trial = b.Trial
	m.note("up %d", b.Trial.Seq)
	return hakaru.Place{ID: "p"}, nil
}

func (m *machine) Watch(_ context.Context, _ hakaru.Place, w hakaru.Window, begun func()) (hakaru.Watched, error) {
	begun()
	seen := hakaru.Watched{Counters: []hakaru.Counter{{Name: hakaru.CounterCPU, Of: "service"}}}
	for range w.Total() / hakaru.BucketWidth {
		seen.Buckets = append(seen.Buckets, []float64{0.1})
	}
	return seen, nil
}

func (m *machine) Load(ctx context.Context, _ hakaru.Place, spec hakaru.LoadSpec, w hakaru.Window, emit func(hakaru.Bucket)) (hakaru.LoadReport, error) {
	if m.seen != nil {
		m.seen(m.trial, m)
	}
	if m.loses != nil && m.loses(m.trial) {
		return hakaru.LoadReport{}, fmt.Errorf("load: %w", link.ErrLost)
	}
	if m.sent != nil {
		m.sent(m.trial, spec)
	}
	var report hakaru.LoadReport
	for i := range w.Total() / hakaru.BucketWidth {
		// A little noise, the same in every run of this test.
		good := m.law[m.trial.Variant] + float64(m.trial.Seq%3)
		b := hakaru.Bucket{At: i * hakaru.BucketWidth, Good: uint64(good)}
		if spec.HTTP.Arrival != nil {
			b.Latency = m.took[m.trial.Variant]
		}
		emit(b)
		report.Buckets = append(report.Buckets, b)
	}
	return report, ctx.Err()
}

func (m *machine) Prove(context.Context, hakaru.Place, []hakaru.Ask, hakaru.Moment) ([]hakaru.Proof, error) {
	return nil, nil
}

func (m *machine) Down(ctx context.Context, _ hakaru.Place) (hakaru.Leftovers, error) {
	m.note("down")
	return hakaru.Leftovers{}, ctx.Err()
}

func newWorld() *world {
	return &world{
		law: map[string]float64{"base": 500, "other": 650},
		run: hakaru.Run{ID: "k3f9a", Experiment: hakaru.Experiment{
			Name:     "fib",
			Services: []hakaru.Service{{Name: "service", Kind: "command", Run: []string{"fib"}}},
			Variants: []hakaru.Variant{{Name: "base"}, {Name: "other"}},
			Strata:   []map[string]string{{}},
			Baseline: "base",
			Pairs:    []hakaru.Pair{{Base: "base", Other: "other"}},
			Load:     hakaru.Load{HTTP: &hakaru.HTTPLoad{URL: "http://127.0.0.1:9/", WarmUp: "0s", Duration: "500ms"}},
			Goal:     hakaru.Throughput,
			Design:   hakaru.Design{Method: hakaru.MethodCompare, Blocks: 10, Matters: 0.03, Calibrate: 2, Seed: 5},
		}},
	}
}

// campaign carries it through, or on, in a bubble of time.
func (w *world) campaign(t *testing.T, ctx context.Context, events func(campaign.Event)) (campaign.Result, error) {
	t.Helper()
	var res campaign.Result
	var err error
	synctest.Test(t, func(*testing.T) {
		res, err = campaign.Run(ctx, campaign.Spec{Run: w.run, Store: w, Agents: w, Events: events, Now: time.Now})
	})
	if last := w.log[len(w.log)-1]; last != "close" {
		t.Errorf("the agents were not closed at the end, but: %s", last)
	}
	return res, err
}

// plan is which trials were run, in order.
func (w *world) plan() (plan []string) {
	for _, r := range w.stored {
		plan = append(plan, fmt.Sprintf("%s %d.%d %s", r.Phase, r.Block, r.Attempt, r.Variant))
	}
	return plan
}

// To a verdict: every trial is stored before the next begins, what is frozen is
// stored before the first block, and the end is a decision.
func TestToAVerdict(t *testing.T) {
	w := newWorld()
	var events []campaign.Event
	res, err := w.campaign(t, context.Background(), func(e campaign.Event) { events = append(events, e) })
	if err != nil {
		t.Fatal(err)
	}
	if res.Done == nil || res.Done.State != hakaru.Decided || w.run.Frozen == nil {
		t.Errorf("done %+v, frozen %+v", res.Done, w.run.Frozen)
	}
	if diff := cmp.Diff(w.stored, res.History); diff != "" {
		t.Errorf("stored and told differ: %s", diff)
	}
	want := []string{"start"}
	for n := range w.stored {
		if n == 2 { // both calibration trials are known
			want = append(want, "update")
		}
		want = append(want, fmt.Sprintf("up %d", n+1), "down", fmt.Sprintf("store %d", n+1))
	}
	if diff := cmp.Diff(append(want, "close"), w.log); diff != "" {
		t.Error(diff)
	}
	told := map[string]int{}
	for _, e := range events {
		switch {
		case e.Frozen != nil:
			told["frozen"]++
		case e.Trial != nil:
			told["trial"]++
			if e.Trial.Left.Trials < 1 || e.Trial.Left.AtMost <= 0 || e.Trial.Left.Known != (e.Trial.Trial.Seq > 1) {
				t.Errorf("trial %d: left %+v", e.Trial.Trial.Seq, e.Trial.Left)
			}
		case e.Result != nil:
			told["result"]++
		case e.Lost != nil:
			t.Errorf("lost: %v", e.Lost)
		}
	}
	if diff := cmp.Diff(map[string]int{"frozen": 1, "trial": len(w.stored), "result": len(w.stored)}, told); diff != "" {
		t.Error(diff)
	}
}

// A store that takes no more ends the run at once, with what was being done.
func TestStoreFull(t *testing.T) {
	w := newWorld()
	w.appendFails = 3
	res, err := w.campaign(t, context.Background(), nil)
	if !errors.Is(err, errDisk) || !strings.Contains(err.Error(), "store trial 3: ") {
		t.Errorf("error %v", err)
	}
	if len(res.History) != 2 || res.Done != nil {
		t.Errorf("%d trials, done %+v", len(res.History), res.Done)
	}
	want := []string{"start", "up 1", "down", "store 1", "up 2", "down", "store 2", "update", "up 3", "down", "full", "close"}
	if diff := cmp.Diff(want, w.log); diff != "" {
		t.Error(diff)
	}
}

// A lost agent costs the trial it was in, which is stored as void and run again
// by new agents.
func TestAgentLost(t *testing.T) {
	undisturbed := newWorld()
	if _, err := undisturbed.campaign(t, context.Background(), nil); err != nil {
		t.Fatal(err)
	}
	w := newWorld()
	w.loses = func(t hakaru.Trial) bool { return t.Seq == 4 }
	var lost error
	res, err := w.campaign(t, context.Background(), func(e campaign.Event) {
		if e.Lost != nil {
			lost = e.Lost
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	if w.starts != 2 || !errors.Is(lost, link.ErrLost) {
		t.Errorf("%d starts, told %v", w.starts, lost)
	}
	fourth := w.stored[3]
	if fourth.Void == nil || fourth.Void.Reason != hakaru.VoidAgent || !strings.Contains(fourth.Void.Evidence, "closed") {
		t.Errorf("the trial it was in: %+v", fourth.Void)
	}
	again := 0
	for _, r := range w.stored {
		if r.Block == fourth.Block && r.Variant == fourth.Variant && r.Attempt == 2 && r.Void == nil {
			again++
		}
	}
	if again != 1 || res.Done == nil || res.Done.State != hakaru.Decided {
		t.Errorf("run again %d times, then %+v: %v", again, res.Done, w.plan())
	}
	if len(w.stored) != len(undisturbed.stored)+1 {
		t.Errorf("%d trials, undisturbed %d", len(w.stored), len(undisturbed.stored))
	}
}

// Agents that are lost again and again are not started for ever, and what they
// did not finish is no trial that counts.
func TestAgentsLostAgainAndAgain(t *testing.T) {
	w := newWorld()
	w.loses = func(t hakaru.Trial) bool { return t.Seq%2 == 0 }
	_, err := w.campaign(t, context.Background(), nil)
	if !errors.Is(err, link.ErrLost) || !strings.Contains(err.Error(), "agents were lost 6 times") {
		t.Errorf("error %v", err)
	}
	if w.starts != 6 {
		t.Errorf("%d starts, want the first and five more", w.starts)
	}
}

func TestAgentsDoNotStart(t *testing.T) {
	w := newWorld()
	w.startFails = 1
	if _, err := w.campaign(t, context.Background(), nil); !errors.Is(err, errNoAgent) || len(w.stored) != 0 {
		t.Errorf("error %v, %d trials", err, len(w.stored))
	}
	w = newWorld()
	w.startFails = 2
	w.loses = func(t hakaru.Trial) bool { return t.Seq == 2 }
	_, err := w.campaign(t, context.Background(), nil)
	if !errors.Is(err, errNoAgent) || !strings.Contains(err.Error(), "start the agents anew") {
		t.Errorf("error %v", err)
	}
	if len(w.stored) != 1 {
		t.Errorf("%d trials stored: the second was not finished", len(w.stored))
	}
}

// Cut off in any trial and resumed, the run comes to the same plan and end, and
// no trial is run twice.
func TestResume(t *testing.T) {
	undisturbed := newWorld()
	end, err := undisturbed.campaign(t, context.Background(), nil)
	if err != nil {
		t.Fatal(err)
	}
	why := errors.New("interrupted")
	for n := 1; n <= len(undisturbed.stored); n++ {
		t.Run(fmt.Sprintf("in trial %d", n), func(t *testing.T) {
			w := newWorld()
			ctx, cancel := context.WithCancelCause(context.Background())
			w.seen = func(t hakaru.Trial, _ *machine) {
				if t.Seq == n {
					cancel(why)
				}
			}
			res, err := w.campaign(t, ctx, nil)
			if !errors.Is(err, why) || res.Done != nil || len(w.stored) != n-1 {
				t.Fatalf("error %v, done %+v, %d trials", err, res.Done, len(w.stored))
			}
			w.seen = nil
			res, err = w.campaign(t, context.Background(), nil)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(undisturbed.plan(), w.plan()); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(end.Done, res.Done); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(end.Frozen, w.run.Frozen); diff != "" {
				t.Error(diff)
			}
			for i, r := range w.stored {
				if r.Seq != i+1 {
					t.Errorf("trial %d has number %d", i+1, r.Seq)
				}
			}
		})
	}
}
