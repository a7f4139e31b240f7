package measure

import (
	"math"
	"testing"
	"time"

	"hakaru"
)

// Figures of a load program: its sums, and the service's CPU time of the window.
func TestResultOfProgram(t *testing.T) {
	score := 12.5
	trial := func(t *hakaru.Totals) *hakaru.Result {
		return &hakaru.Result{
			Totals: t, WarmUp: 2 * w, Window: 4 * w,
			Counters: []hakaru.Counter{{Name: hakaru.CounterCPU, Of: "app"}},
			Buckets: buckets(6, func(i int, b *hakaru.Bucket) {
				b.Counters = []float64{[]float64{9, 9, 0.1, 0.2, 0.1, 0}[i]}
			}),
		}
	}
	for _, c := range []struct {
		name   string
		totals hakaru.Totals
		want   map[hakaru.Metric]float64
		absent []hakaru.Metric
	}{
		{"ab", hakaru.Totals{Took: 1600 * time.Millisecond, Good: 800, Bad: 200, Kinds: map[string]uint64{"reset": 200}, Quantiles: map[hakaru.Metric]float64{hakaru.P50: 0.002}},
			map[hakaru.Metric]float64{hakaru.Throughput: 500, hakaru.CPUPerRequest: 0.0005, hakaru.Errors: 0.2, hakaru.P50: 0.002, Bad: 200},
			[]hakaru.Metric{hakaru.P99, hakaru.Score}},
		{"a score alone", hakaru.Totals{Took: time.Second, Score: &score},
			map[hakaru.Metric]float64{hakaru.Score: 12.5},
			[]hakaru.Metric{hakaru.Throughput, hakaru.CPUPerRequest, hakaru.Errors, hakaru.P50}},
		{"a throughput it tells, and no bad answers", hakaru.Totals{Took: time.Second, Good: 10, Throughput: 70, BadUnknown: true},
			map[hakaru.Metric]float64{hakaru.Throughput: 70, hakaru.CPUPerRequest: 0.04}, []hakaru.Metric{hakaru.Score, hakaru.Errors, Bad}},
		{"too short for the CPUs in use", hakaru.Totals{Took: 200 * time.Millisecond, Good: 100},
			map[hakaru.Metric]float64{hakaru.Throughput: 500, hakaru.CPUPerRequest: 0.004}, []hakaru.Metric{CPU}},
		{"it failed", hakaru.Totals{Failed: "no"}, map[hakaru.Metric]float64{CPU: 0.2},
			[]hakaru.Metric{hakaru.Throughput, hakaru.CPUPerRequest, hakaru.Errors, Bad}},
	} {
		r := trial(&c.totals)
		r.Measurements = Result(r, []string{"app"})
		of := func(m hakaru.Metric) (float64, bool) {
			for _, x := range r.Measurements {
				if x.Metric == m {
					return x.Value, true
				}
			}
			return 0, false
		}
		for m, want := range c.want {
			if got, ok := of(m); !ok || math.Abs(got-want) > 1e-12 {
				t.Errorf("%s: %s is %v (%v), want %v", c.name, m, got, ok, want)
			}
		}
		for _, m := range c.absent {
			if got, ok := of(m); ok {
				t.Errorf("%s: there is %s: %v", c.name, m, got)
			}
		}
	}
}
