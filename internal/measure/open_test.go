package measure

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"hakaru"
)

// figures are the whole stack's, in short.
func figures(r *hakaru.Result) map[string]float64 {
	out := map[string]float64{}
	for _, m := range Result(r, []string{"app"}) {
		name := string(m.Metric)
		if m.Of != "" && m.Of != "app" {
			continue
		}
		if m.Of == "app" {
			name += " of app"
		}
		if m.Open {
			name += " open"
		}
		out[name] = m.Value
	}
	return out
}

// With both loops latencies are of the open one, errors of both, and all else of the
// closed one.
func TestOpenLoop(t *testing.T) {
	const ms = time.Millisecond
	counters := []hakaru.Counter{{Name: hakaru.CounterCPU, Of: "app"}, {Name: hakaru.CounterMemory, Of: "app", Gauge: true}}
	closed := buckets(3, func(i int, b *hakaru.Bucket) {
		b.Good, b.Bad, b.Latency, b.Counters = 100, 0, encoded(t, 8*ms, 8*ms), []float64{0.1, 1000}
	})
	open := buckets(3, func(i int, b *hakaru.Bucket) {
		b.Good, b.Latency, b.Counters = 50, encoded(t, 2*ms, 2*ms), []float64{0.5, 9000}
		if i > 0 { // not in the warm-up
			b.Bad, b.Kinds = 50, map[string]uint64{"timeout": 50}
		}
	})
	r := &hakaru.Result{Counters: counters, Buckets: closed, WarmUp: w, Window: 2 * w}
	near := func(want, got float64) bool { return got > want*0.999 && got < want*1.001 }
	for _, c := range []struct {
		name string
		open *hakaru.OpenPhase
		want map[string]float64
	}{
		{"closed only", nil, map[string]float64{"throughput": 200, "cpu_per_request": 0.001, "cpu_per_request of app": 0.001, "errors": 0, "p50": 0.008, "p99": 0.008,
			"memory": 1000, "memory of app": 1000, "cpu of app": 0.2, "bad": 0}},
		{"all of it open", &hakaru.OpenPhase{Rate: 200, Whole: true}, map[string]float64{"throughput": 200, "cpu_per_request": 0.001, "cpu_per_request of app": 0.001, "errors": 0,
			"p50 open": 0.008, "p99 open": 0.008, "memory": 1000, "memory of app": 1000, "cpu of app": 0.2, "bad": 0}},
		{"both", &hakaru.OpenPhase{Rate: 200, Counters: counters, Buckets: open, WarmUp: w, Window: 2 * w}, map[string]float64{"throughput": 200, "cpu_per_request": 0.001,
			"cpu_per_request of app": 0.001, "errors": 0.25, "p50 open": 0.002, "p99 open": 0.002, "closed_p50": 0.008, "closed_p99": 0.008,
			"memory": 1000, "memory of app": 1000, "cpu of app": 0.2, "bad": 100}},
		{"both, and no answer in the open one", &hakaru.OpenPhase{Rate: 200, Buckets: buckets(3, nil), WarmUp: w, Window: 2 * w}, map[string]float64{"throughput": 200,
			"cpu_per_request": 0.001, "cpu_per_request of app": 0.001, "errors": 0, "closed_p50": 0.008, "closed_p99": 0.008,
			"memory": 1000, "memory of app": 1000, "cpu of app": 0.2, "bad": 0}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r.Open = c.open
			if diff := cmp.Diff(c.want, figures(r), cmp.Comparer(func(a, b float64) bool { return a == b || near(a, b) })); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// Over the rates that a search tries nothing is a figure but what it found, and
// memory.
func TestCapacity(t *testing.T) {
	r := &hakaru.Result{
		Counters: []hakaru.Counter{{Name: hakaru.CounterCPU, Of: "app"}, {Name: hakaru.CounterMemory, Of: "app", Gauge: true}},
		Buckets:  buckets(2, func(i int, b *hakaru.Bucket) { b.Good, b.Counters = 100, []float64{0.1, 1000} }), Window: 2 * w,
		Capacity: &hakaru.CapacityReport{Value: 321, Low: 310, High: 330},
	}
	if diff := cmp.Diff(map[string]float64{"capacity": 321, "memory": 1000, "memory of app": 1000}, figures(r)); diff != "" {
		t.Error(diff)
	}
}
