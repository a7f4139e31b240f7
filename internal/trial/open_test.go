package trial_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"hakaru"
	"hakaru/internal/latency"
	"hakaru/internal/trial"
)

// loopHosts are both sides of a trial that has an open loop, and note what was sent
// in which window.
type loopHosts struct {
	hosts
	sent    []hakaru.LoadSpec
	windows []hakaru.Window
	watched []hakaru.Window
	ends    string                 // the service dies in this load: "closed", "open"
	buckets int                    // of a search; 0: as many as the window has
	found   *hakaru.CapacityReport // by it
	took    time.Duration          // of every answer
}

func (h *loopHosts) Watch(ctx context.Context, p hakaru.Place, w hakaru.Window, begun func()) (hakaru.Watched, error) {
	h.watched = append(h.watched, w)
	if err := h.call("watch"); err != nil {
		return hakaru.Watched{}, err
	}
	begun()
	_ = until(ctx, w) // it tells what it has seen when it is to end
	seen := hakaru.Watched{Counters: []hakaru.Counter{{Name: hakaru.CounterCPU, Of: "app"}}}
	for range min(int(time.Since(w.Start)/hakaru.BucketWidth), int(w.Total()/hakaru.BucketWidth)) {
		seen.Buckets = append(seen.Buckets, []float64{0.1})
	}
	if h.ends == []string{"closed", "open"}[len(h.watched)-1] {
		seen.Ended = []hakaru.Exit{{Service: "app", State: "signal: killed"}}
	}
	return seen, nil
}

func (h *loopHosts) Load(ctx context.Context, _ hakaru.Place, spec hakaru.LoadSpec, w hakaru.Window, emit func(hakaru.Bucket)) (hakaru.LoadReport, error) {
	h.sent, h.windows = append(h.sent, spec), append(h.windows, w)
	if err := h.call("load"); err != nil {
		return hakaru.LoadReport{}, err
	}
	var took, lag latency.Histogram
	for range 500 {
		took.Record(h.took)
		lag.Record(h.took / 1000)
	}
	encoded, err := took.Encode()
	if err != nil {
		return hakaru.LoadReport{}, err
	}
	late, err := lag.Encode()
	if err != nil {
		return hakaru.LoadReport{}, err
	}
	n := int(w.Total() / hakaru.BucketWidth)
	if h.buckets > 0 {
		n = h.buckets
	}
	report := hakaru.LoadReport{
		Counters: []hakaru.Counter{{Name: hakaru.CounterCPU, Of: hakaru.OfGenerator}}, Connections: 4, Capacity: h.found,
		Tally: &hakaru.Tally{Due: uint64(1000 * w.Length.Seconds()), Queued: 7, Latency: encoded, Connect: encoded, Service: encoded, Lag: late},
	}
	for i := range n {
		b := hakaru.Bucket{At: time.Duration(i) * hakaru.BucketWidth, Good: 500, Latency: encoded, Counters: []float64{0.01}}
		emit(b)
		report.Buckets = append(report.Buckets, b)
	}
	return report, until(ctx, hakaru.Window{Start: w.Start, Length: time.Duration(n) * hakaru.BucketWidth})
}

func withOpen(rate float64) trial.Spec {
	spec := one()
	spec.Load.Open = &hakaru.OpenSpec{
		Arrival: hakaru.Arrival{Law: hakaru.PoissonRate, Rate: rate, Seed: 5}, Share: 0.7, WarmUp: 400 * time.Millisecond, Window: 3 * time.Second,
	}
	return spec
}

// After the closed loop the same request is sent once more in an open one, watched
// as well, to the same place, before what is proved at the end.
func TestOpenLoop(t *testing.T) {
	broken := errors.New("no space left on device")
	both := []string{"up", "prove ready", "watch", "load", "prove load", "watch", "load", "prove end", "down"}
	for _, c := range []struct {
		name  string
		spec  trial.Spec
		ends  string // the service, in this loop
		calls []string
		rate  float64 // of the open loop; 0: none
		void  hakaru.VoidReason
	}{
		{"the rate is settled", withOpen(650), "", both, 650, ""},
		{"the rate is a share of what the closed loop shows", withOpen(0), "", both, 700, ""},
		{"the service died before it", withOpen(650), "closed", allCalls, 0, hakaru.VoidDied},
		{"the service dies in it", withOpen(650), "open", both, 650, hakaru.VoidDied},
		{"no open loop", one(), "", allCalls, 0, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := &loopHosts{ends: c.ends, took: 5 * time.Millisecond}
				h.held = hakaru.Yes
				var stages []trial.Stage
				buckets := 0
				out, err := trial.Run(t.Context(), c.spec, h, h, trial.Sight{
					Stage: func(s trial.Stage) { stages = append(stages, s) }, Bucket: func(hakaru.Bucket) { buckets++ },
				})
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(c.calls, h.calls); diff != "" {
					t.Error(diff)
				}
				r := out.Result
				var void hakaru.VoidReason
				if r.Void != nil {
					void = r.Void.Reason
				}
				if void != c.void || (r.Open != nil) != (c.rate > 0) || slices.Contains(stages, trial.OpenLoop) != (c.rate > 0) {
					t.Fatalf("void %+v, open %+v, stages %v", r.Void, r.Open, stages)
				}
				if x, ok := r.Measured(hakaru.Throughput); !ok || x != 1000 || len(r.Buckets) != 6 {
					t.Errorf("the closed loop: %v/s in %d buckets", x, len(r.Buckets))
				}
				if c.rate == 0 {
					return
				}
				sent := h.sent[1]
				request := *c.spec.Load.HTTP
				request.Arrival = &hakaru.Arrival{Law: hakaru.PoissonRate, Rate: c.rate, Seed: 5}
				want := hakaru.LoadSpec{HTTP: &request, WarmUp: 500 * time.Millisecond, Window: 3 * time.Second}
				if diff := cmp.Diff(want, sent); diff != "" {
					t.Error(diff)
				}
				if h.sent[0].HTTP.Arrival != nil || h.windows[1] != h.watched[1] || !h.windows[1].Start.After(h.windows[0].Start.Add(h.windows[0].Total())) {
					t.Errorf("sent in %v, watched in %v", h.windows, h.watched)
				}
				o := r.Open
				if o.Rate != c.rate || o.Share != 0.7 || o.Whole || o.WarmUp != want.WarmUp || o.Window != want.Window || len(o.Buckets) != 7 || buckets != 6+7 ||
					len(o.Counters) != 2 || len(o.Buckets[0].Counters) != 2 || o.Buckets[0].At != 0 {
					t.Errorf("%+v", o)
				}
				if o.Tally.Queued != 7 || o.Tally.Lag == nil || o.Tally.Latency != nil || o.Tally.Connect != nil {
					t.Errorf("%+v", o.Tally)
				}
			})
		})
	}
	for _, at := range []string{"watch", "load"} {
		t.Run(at+" fails", func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := &failing{at: at, err: broken}
				h.held, h.took = hakaru.Yes, 5*time.Millisecond
				_, err := trial.Run(t.Context(), withOpen(650), h, h, trial.Sight{})
				if !errors.Is(err, broken) || h.calls[len(h.calls)-1] != "down" {
					t.Errorf("%v after %v", err, h.calls)
				}
			})
		})
	}
}

// failing is loopHosts of which the second load, or its watch, fails.
type failing struct {
	loopHosts
	at  string
	err error
}

func (h *failing) Watch(ctx context.Context, p hakaru.Place, w hakaru.Window, begun func()) (hakaru.Watched, error) {
	if h.at == "watch" && len(h.watched) == 1 {
		return hakaru.Watched{}, h.err
	}
	return h.loopHosts.Watch(ctx, p, w, begun)
}

func (h *failing) Load(ctx context.Context, p hakaru.Place, spec hakaru.LoadSpec, w hakaru.Window, emit func(hakaru.Bucket)) (hakaru.LoadReport, error) {
	if h.at == "load" && len(h.sent) == 1 {
		return hakaru.LoadReport{}, h.err
	}
	return h.loopHosts.Load(ctx, p, spec, w, emit)
}

// Where the load itself is an open loop there is one, and its latencies are judged.
func TestWholeLoadIsOpen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &loopHosts{took: 5 * time.Millisecond}
		h.held = hakaru.Yes
		spec := one()
		spec.Load.HTTP.Arrival = &hakaru.Arrival{Law: hakaru.ConstantRate, Rate: 1000}
		out, err := trial.Run(t.Context(), spec, h, h, trial.Sight{})
		if err != nil {
			t.Fatal(err)
		}
		r := out.Result
		if r.Void != nil || len(h.sent) != 1 || r.Open == nil || !r.Open.Whole || r.Open.Rate != 1000 || r.Open.Buckets != nil || r.Open.Window != r.Window || r.Open.Tally.Lag == nil {
			t.Fatalf("void %+v, open %+v, %d loads", r.Void, r.Open, len(h.sent))
		}
		if !slices.ContainsFunc(r.Measurements, func(m hakaru.Measurement) bool { return m.Metric == hakaru.P99 && m.Open }) {
			t.Errorf("%+v", r.Measurements)
		}
	})
}

// A search for the capacity ends by itself: so does the watch, and the window is
// what was seen.
func TestSearch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &loopHosts{took: 5 * time.Millisecond, buckets: 5, found: &hakaru.CapacityReport{
			Value: 1234, Low: 1200, High: 1260, Steps: []hakaru.CapacityStep{{Rate: 1000, Holds: true, Latency: []byte{1}}, {Rate: 2000, Why: "p99 61 ms, want below 50 ms"}}}}
		h.held = hakaru.Yes
		spec := one()
		spec.Goal = hakaru.Capacity
		spec.Load.Window = time.Minute
		spec.Load.Capacity = &hakaru.CapacitySpec{Holds: []hakaru.Condition{{Metric: hakaru.P99, Quantile: 0.99, Bound: 0.05}}, Steps: 10, Step: time.Second}
		var stages []trial.Stage
		out, err := trial.Run(t.Context(), spec, h, h, trial.Sight{Stage: func(s trial.Stage) { stages = append(stages, s) }})
		if err != nil {
			t.Fatal(err)
		}
		r := out.Result
		if r.Void != nil || r.Took > 5*time.Second || r.WarmUp != time.Second || r.Window != time.Duration(len(r.Buckets))*hakaru.BucketWidth-r.WarmUp || len(r.Buckets) < 4 {
			t.Errorf("void %+v, took %v, window %v in %d buckets", r.Void, r.Took, r.Window, len(r.Buckets))
		}
		if x, ok := r.Measured(hakaru.Capacity); !ok || x != 1234 || r.Capacity.Steps[0].Latency != nil || r.Capacity.Steps[1].Why == "" {
			t.Errorf("%+v", r.Capacity)
		}
		if _, ok := r.Measured(hakaru.Throughput); ok || !slices.Contains(stages, trial.Searching) {
			t.Errorf("%+v, stages %v", r.Measurements, stages)
		}
		if h.found.Steps[0].Latency == nil {
			t.Error("what the load host told was changed")
		}
	})
}
