package wording

import (
	"testing"

	"hakaru"
	"hakaru/internal/layout"
)

// TestSwap: the same verdict the other way round reads the other way round.
func TestSwap(t *testing.T) {
	for _, c := range []struct {
		ratio, low, high float64
		verdict          hakaru.Verdict
		want             string
	}{
		{1.25, 1.2, 1.3, hakaru.Better, "+25.0 % (+20.0 to +30.0) better"},
		{0.8, 0.77, 0.833, hakaru.Worse, "-20.0 % (-23.0 to -16.7) worse"},
		{3.97, 3.9, 4.05, hakaru.Better, "3.97 times (3.9 to 4.05) better"},
		{3.9714, 3.9006, 12.0491, hakaru.Better, "3.97 times (3.9 to 12) better"},
		{1, 0.99, 1.01, hakaru.Same, "0.0 % (-1.0 to +1.0) no difference that matters (-0.9 to +0.9)"},
	} {
		j := hakaru.Comparison{Metric: hakaru.Throughput, Base: "a", Other: "b", Blocks: 5, Ratio: c.ratio, Low: c.low, High: c.high,
			SameLow: c.low * 1.001, SameHigh: c.high * 0.999, Verdict: c.verdict, Judged: true}
		if got := layout.Flat(Change(&j) + " " + Verdict(&j).Text); got != c.want {
			t.Errorf("got %q, want %q", got, c.want)
		}
	}
}
