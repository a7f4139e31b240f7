package trial_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"hakaru"
	"hakaru/internal/host"
	"hakaru/internal/link"
	"hakaru/internal/trial"
)

// hosts are both sides of a trial, and note what they were asked for. A call
// named in fails gives that error; one named in during calls back from within.
type hosts struct {
	host.Host

	mu     sync.Mutex
	calls  []string
	fails  map[string]error
	during map[string]func()
	held   hakaru.Held // of proofs
	bad    map[string]uint64
}

func (h *hosts) call(name string) error {
	h.mu.Lock()
	h.calls = append(h.calls, name)
	h.mu.Unlock()
	if f := h.during[name]; f != nil {
		f()
	}
	return h.fails[name]
}

func (h *hosts) Up(context.Context, hakaru.Bundle) (hakaru.Place, error) {
	return hakaru.Place{ID: "p", Took: time.Second}, h.call("up")
}

// until waits for the end of the window, as a real host does.
func until(ctx context.Context, w hakaru.Window) error {
	timer := time.NewTimer(time.Until(w.Start.Add(w.Total())))
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (h *hosts) Watch(ctx context.Context, _ hakaru.Place, w hakaru.Window, begun func()) (hakaru.Watched, error) {
	if err := h.call("watch"); err != nil {
		return hakaru.Watched{}, err
	}
	begun()
	seen := hakaru.Watched{Counters: []hakaru.Counter{{Name: hakaru.CounterCPU, Of: "app"}}}
	for range w.Total() / hakaru.BucketWidth {
		seen.Buckets = append(seen.Buckets, []float64{0.1})
	}
	return seen, until(ctx, w)
}

func (h *hosts) Load(ctx context.Context, _ hakaru.Place, _ hakaru.LoadSpec, w hakaru.Window, emit func(hakaru.Bucket)) (hakaru.LoadReport, error) {
	if err := h.call("load"); err != nil {
		return hakaru.LoadReport{}, err
	}
	report := hakaru.LoadReport{Counters: []hakaru.Counter{{Name: hakaru.CounterCPU, Of: hakaru.OfGenerator}}}
	for i := range w.Total() / hakaru.BucketWidth {
		b := hakaru.Bucket{At: i * hakaru.BucketWidth, Good: 50, Kinds: h.bad, Counters: []float64{0.01}}
		emit(b)
		report.Buckets = append(report.Buckets, b)
	}
	return report, until(ctx, w)
}

func (h *hosts) Prove(_ context.Context, _ hakaru.Place, asks []hakaru.Ask, when hakaru.Moment) ([]hakaru.Proof, error) {
	err := h.call("prove " + string(when))
	return []hakaru.Proof{{Setting: asks[0].Setting, Asked: "2", Found: "1", When: when, Holds: h.held}}, err
}

func (h *hosts) Down(ctx context.Context, _ hakaru.Place) (hakaru.Leftovers, error) {
	if ctx.Err() != nil {
		return hakaru.Leftovers{}, fmt.Errorf("there is no time left to take it down: %w", ctx.Err())
	}
	return hakaru.Leftovers{Outputs: []hakaru.Output{{Service: "app", Text: "bye"}}}, h.call("down")
}

func one() trial.Spec {
	return trial.Spec{
		Trial:  hakaru.Trial{Variant: "two", Block: 1, Attempt: 1, Seq: 3},
		Bundle: hakaru.Bundle{Units: []hakaru.Unit{{Service: "app"}}},
		Load:   hakaru.LoadSpec{WarmUp: time.Second, Window: 2 * time.Second, HTTP: &hakaru.HTTPRequest{Connections: 4}},
		Asks:   []hakaru.Ask{{Service: "app", Setting: "processes"}},
		Goal:   hakaru.Throughput,
	}
}

var allCalls = []string{"up", "prove ready", "watch", "load", "prove load", "prove end", "down"}

func TestRun(t *testing.T) {
	gone := fmt.Errorf("load: %w", link.ErrLost)
	broken := errors.New("no space left on device")
	for _, c := range []struct {
		name  string
		hosts *hosts
		calls []string
		void  hakaru.VoidReason
		err   error
	}{
		{"all is well", &hosts{held: hakaru.Yes}, allCalls, "", nil},
		{"what cannot be proved is no reason to stop", &hosts{held: hakaru.NotProved}, allCalls, "", nil},
		{"wrong answers", &hosts{held: hakaru.Yes, bad: map[string]uint64{"wrong_body": 1}}, allCalls, hakaru.VoidWrongAnswers, nil},
		{"the service does not start: void, and there is nothing to take down",
			&hosts{fails: map[string]error{"up": &host.NotStarted{Message: "start the service: exit status 4", Hint: "look", Output: "boom"}}},
			[]string{"up"}, hakaru.VoidNotStarted, nil},
		{"the host cannot start anything", &hosts{fails: map[string]error{"up": broken}}, []string{"up"}, "", broken},
		{"the service agent is gone at the start", &hosts{fails: map[string]error{"up": gone}}, []string{"up"}, hakaru.VoidAgent, link.ErrLost},
		{"a setting is not in force: nothing is learnt by loading it",
			&hosts{held: hakaru.No}, []string{"up", "prove ready", "down"}, hakaru.VoidProof, nil},
		{"the load agent is gone", &hosts{held: hakaru.Yes, fails: map[string]error{"load": gone}},
			[]string{"up", "prove ready", "watch", "load", "down"}, hakaru.VoidAgent, link.ErrLost},
		{"the watch fails: the load is not begun", &hosts{held: hakaru.Yes, fails: map[string]error{"watch": broken}},
			[]string{"up", "prove ready", "watch", "down"}, "", broken},
		{"a proof cannot be asked for", &hosts{held: hakaru.Yes, fails: map[string]error{"prove load": broken}},
			[]string{"up", "prove ready", "watch", "load", "prove load", "down"}, "", broken},
		{"the service agent is gone at the end", &hosts{held: hakaru.Yes, fails: map[string]error{"down": gone}},
			allCalls, hakaru.VoidAgent, link.ErrLost},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := c.hosts
				out, err := trial.Run(t.Context(), one(), h, h, trial.Sight{})
				if !errors.Is(err, c.err) || (err == nil) != (c.err == nil) {
					t.Errorf("error %v, want %v", err, c.err)
				}
				if err != nil && !strings.Contains(err.Error(), "trial of two: ") {
					t.Errorf("the error does not say which trial: %v", err)
				}
				if diff := cmp.Diff(c.calls, h.calls); diff != "" {
					t.Error(diff)
				}
				var void hakaru.VoidReason
				if out.Result.Void != nil {
					void = out.Result.Void.Reason
				}
				if void != c.void {
					t.Errorf("void %+v, want %s", out.Result.Void, c.void)
				}
				if out.Result.Seq != 3 || out.Result.Started.IsZero() {
					t.Errorf("it is not said which trial this was, or when: %+v", out.Result.Trial)
				}
			})
		})
	}
}

// What a service said before it ended is kept, and why, in words.
func TestNotStarted(t *testing.T) {
	h := &hosts{fails: map[string]error{"up": &host.NotStarted{Message: "start the service: exit status 4", Hint: "look", Output: "boom"}}}
	out, err := trial.Run(t.Context(), one(), h, h, trial.Sight{})
	if err != nil {
		t.Fatal(err)
	}
	want := &hakaru.Void{Reason: hakaru.VoidNotStarted, Evidence: "start the service: exit status 4", Hint: "look"}
	if diff := cmp.Diff(want, out.Result.Void); diff != "" {
		t.Error(diff)
	}
	if len(out.Outputs) != 1 || out.Outputs[0].Text != "boom" {
		t.Errorf("output: %+v", out.Outputs)
	}
}

// An interrupt at any point takes the place down, with time to do it in, and is
// the error.
func TestInterrupt(t *testing.T) {
	why := errors.New("interrupted by hand")
	for _, at := range []string{"prove ready", "watch", "load", "prove load"} {
		t.Run(at, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancelCause(t.Context())
				h := &hosts{held: hakaru.Yes, during: map[string]func(){at: func() { cancel(why) }}}
				_, err := trial.Run(ctx, one(), h, h, trial.Sight{})
				if !errors.Is(err, why) {
					t.Errorf("error %v", err)
				}
				if h.calls[len(h.calls)-1] != "down" {
					t.Errorf("the place was not taken down: %v", h.calls)
				}
			})
		})
	}
}

// What may be shown is told in the order in which it happens, and the service is
// held when all is measured, before it is taken down.
func TestSight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &hosts{held: hakaru.Yes}
		var mu sync.Mutex
		var told []string
		tell := func(what string) {
			mu.Lock()
			defer mu.Unlock()
			told = append(told, what)
		}
		buckets := 0
		out, err := trial.Run(t.Context(), one(), h, h, trial.Sight{
			Stage:  func(s trial.Stage) { tell(string(s)) },
			Up:     func(p hakaru.Place) { tell("up " + p.ID) },
			Proofs: func(p []hakaru.Proof) { tell("proofs " + string(p[0].When)) },
			Bucket: func(hakaru.Bucket) { buckets++ },
			Hold: func(context.Context, hakaru.Place) {
				tell("hold")
				if slices.Contains(h.calls, "down") {
					t.Error("held after it was taken down")
				}
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		want := []string{"starting", "up p", "proofs ready", "warm-up", "measuring", "proofs load", "proofs end", "hold", "stopping"}
		if diff := cmp.Diff(want, told); diff != "" {
			t.Error(diff)
		}
		if buckets != 6 || len(out.Result.Buckets) != 6 || len(out.Result.Buckets[0].Counters) != 2 || len(out.Result.Counters) != 2 {
			t.Errorf("%d buckets shown, %+v", buckets, out.Result.Buckets)
		}
		if x, ok := out.Result.Measured(hakaru.Throughput); !ok || x != 100 {
			t.Errorf("throughput %v, want 100/s of the last two seconds", x)
		}
		if out.Result.Took != 3*time.Second+100*time.Millisecond+800*time.Microsecond || out.Result.StartTook != time.Second {
			t.Errorf("took %v, start %v", out.Result.Took, out.Result.StartTook)
		}
	})
}
