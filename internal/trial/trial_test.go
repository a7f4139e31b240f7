package trial

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"hakaru"
	"hakaru/internal/host"
)

// fake is both hosts of a trial in which everything is well.
type fake struct {
	host.Host
	window hakaru.Window
	left   time.Duration // what Down was given
	late   error         // of Load
	down   func()
}

func (f *fake) Up(context.Context, hakaru.Bundle) (hakaru.Place, error) {
	return hakaru.Place{ID: "p"}, nil
}

func (f *fake) Watch(_ context.Context, _ hakaru.Place, w hakaru.Window, begun func()) (hakaru.Watched, error) {
	f.window = w
	begun()
	seen := hakaru.Watched{Counters: []hakaru.Counter{{Name: hakaru.CounterCPU, Of: "app"}}}
	for range w.Total() / hakaru.BucketWidth {
		seen.Buckets = append(seen.Buckets, []float64{0.1})
	}
	return seen, nil
}

func (f *fake) Load(_ context.Context, _ hakaru.Place, _ hakaru.LoadSpec, w hakaru.Window, emit func(hakaru.Bucket)) (hakaru.LoadReport, error) {
	var report hakaru.LoadReport
	if f.late != nil {
		return report, f.late
	}
	for i := range w.Total() / hakaru.BucketWidth {
		b := hakaru.Bucket{At: i * hakaru.BucketWidth, Good: 50}
		emit(b)
		report.Buckets = append(report.Buckets, b)
	}
	return report, nil
}

func (f *fake) Down(ctx context.Context, _ hakaru.Place) (hakaru.Leftovers, error) {
	if end, bounded := ctx.Deadline(); bounded {
		f.left = time.Until(end)
	}
	if f.down != nil {
		f.down()
	}
	return hakaru.Leftovers{}, ctx.Err()
}

func spec(warmUp, window, grace time.Duration) Spec {
	return Spec{
		Trial:  hakaru.Trial{Variant: "base", Seq: 1},
		Bundle: hakaru.Bundle{Units: []hakaru.Unit{{Service: "app", Stop: hakaru.Stop{Grace: grace}}}},
		Load:   hakaru.LoadSpec{WarmUp: warmUp, Window: window, HTTP: &hakaru.HTTPRequest{Connections: 1}},
		Goal:   hakaru.Throughput,
	}
}

// The measured window is as long as it was asked for, whatever the warm-up: of
// 0.3 s and 0.5 s there would be no whole bucket left.
func TestWarmUpEndsWithABucket(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, c := range []struct{ warmUp, becomes time.Duration }{
			{0, 0}, {time.Nanosecond, 500 * time.Millisecond}, {300 * time.Millisecond, 500 * time.Millisecond},
			{500 * time.Millisecond, 500 * time.Millisecond}, {1100 * time.Millisecond, 1500 * time.Millisecond},
		} {
			f := &fake{}
			out, err := Run(t.Context(), spec(c.warmUp, 500*time.Millisecond, 0), f, f, Sight{})
			if err != nil {
				t.Fatal(err)
			}
			if f.window.WarmUp != c.becomes || out.Result.WarmUp != c.becomes {
				t.Errorf("warm-up %v: %v, told as %v; want %v", c.warmUp, f.window.WarmUp, out.Result.WarmUp, c.becomes)
			}
			if x, ok := out.Result.Measured(hakaru.Throughput); !ok || x != 100 {
				t.Errorf("warm-up %v: throughput %v, %v; want 100", c.warmUp, x, ok)
			}
		}
	})
}

// A service gets the grace that the file gives it.
func TestDownWaitsForTheGrace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{}
		if _, err := Run(t.Context(), spec(0, 500*time.Millisecond, 5*time.Minute), f, f, Sight{}); err != nil {
			t.Fatal(err)
		}
		if f.left < 5*time.Minute {
			t.Errorf("taking it down was given %v, its grace is 5 min", f.left)
		}
	})
}

// An interrupt while the place is taken down comes too late to lose the trial.
func TestInterruptWhileTakenDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		f := &fake{down: cancel}
		out, err := Run(ctx, spec(0, 500*time.Millisecond, 0), f, f, Sight{})
		if err != nil {
			t.Fatal(err)
		}
		if out.Result.Void != nil || len(out.Result.Measurements) == 0 {
			t.Errorf("void %v, measured %v", out.Result.Void, out.Result.Measurements)
		}
	})
}

// A load that could not begin in time is a trial to run again, not the end of
// the run.
func TestLateLoad(t *testing.T) {
	f := &fake{late: &host.LateError{Message: "the window began 200ms ago, its warm-up of 0s is over"}}
	out, err := Run(t.Context(), spec(0, 500*time.Millisecond, 0), f, f, Sight{})
	if err != nil {
		t.Fatal(err)
	}
	if v := out.Result.Void; v == nil || v.Reason != hakaru.VoidGenerator || v.Reason.Own() {
		t.Errorf("void %+v", v)
	}
}

// A window is whole buckets: what is asked for off the grid is measured to the
// next half second, and that is what the result says.
func TestWholeBuckets(t *testing.T) {
	for asked, want := range map[time.Duration]time.Duration{
		0: 0, time.Millisecond: 500 * time.Millisecond, 500 * time.Millisecond: 500 * time.Millisecond,
		700 * time.Millisecond: time.Second, 2 * time.Second: 2 * time.Second,
	} {
		if got := wholeBuckets(asked); got != want {
			t.Errorf("%v becomes %v, want %v", asked, got, want)
		}
	}
}
