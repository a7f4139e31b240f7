package measure

import (
	"math"
	"math/rand/v2"
	"testing"

	"hakaru"
)

// The agent's CPU is hakaru's, not others'.
func TestOthersWithoutTheAgent(t *testing.T) {
	counters := []hakaru.Counter{
		{Name: hakaru.CounterCPU, Of: "app"}, {Name: hakaru.CounterCPU, Of: hakaru.OfGenerator},
		{Name: hakaru.CounterCPU, Of: hakaru.OfAgent}, {Name: hakaru.CounterCPU, Of: hakaru.OfHost},
	}
	bs := buckets(2, func(_ int, b *hakaru.Bucket) { b.Good, b.Counters = 1, []float64{0.1, 0.05, 0.2, 0.5} })
	got := map[string]float64{}
	for _, m := range Window(bs, counters, []string{"app"}, 0, 2*w) {
		if m.Metric == CPU {
			got[m.Of] = m.Value
		}
	}
	for of, want := range map[string]float64{hakaru.OfOthers: 0.3, hakaru.OfAgent: 0.4, hakaru.OfHost: 1} {
		if math.Abs(got[of]-want) > 1e-9 {
			t.Errorf("CPUs of %s: %v, want %v", of, got[of], want)
		}
	}
}

// The error of CPU time per request by requests under way at the edges of the
// window is the one that Window states: sqrt(c/6)/N, with no direction.
func TestRequestsUnderWay(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for _, c := range []struct{ connections, answers int }{{1, 100}, {16, 100}, {16, 10000}} {
		const repeats = 4000
		sum, squares := 0.0, 0.0
		for range repeats {
			// Each connection has one request under way at either edge, of which
			// a uniform share is on this side; each costs 1.
			cpu := float64(c.answers)
			for range c.connections {
				cpu += random.Float64() - random.Float64()
			}
			off := cpu/float64(c.answers) - 1
			sum, squares = sum+off, squares+off*off
		}
		want := math.Sqrt(float64(c.connections)/6) / float64(c.answers)
		got := math.Sqrt(squares / repeats)
		if math.Abs(got/want-1) > 0.05 {
			t.Errorf("%d answers over %d connections: off by %v, want %v", c.answers, c.connections, got, want)
		}
		if mean := sum / repeats; math.Abs(mean) > 4*want/math.Sqrt(repeats) {
			t.Errorf("%d answers over %d connections: %v to one side", c.answers, c.connections, mean)
		}
	}
}
