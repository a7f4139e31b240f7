package compare

import (
	"math"
	"testing"

	"hakaru"
)

func TestSoFarIsTheMedianOfCompleteBlocks(t *testing.T) {
	exp := &hakaru.Experiment{
		Goal: hakaru.Throughput, Baseline: "a",
		Variants: []hakaru.Variant{{Name: "a"}, {Name: "b"}}, Pairs: []hakaru.Pair{{Base: "a", Other: "b"}},
		Strata: []map[string]string{{}}, Design: hakaru.Design{Blocks: 5, Matters: 0.03},
	}
	frozen := Freeze(exp, nil)
	var history []hakaru.Result
	for block, ratio := range []float64{1.1, 1.2, 1.9} {
		for _, v := range []string{"a", "b"} {
			value := 100.0
			if v == "b" {
				value *= ratio
			}
			history = append(history, hakaru.Result{
				Trial:        hakaru.Trial{Phase: hakaru.Compare, Block: block + 1, Attempt: 1, Variant: v, Seq: len(history) + 1},
				Measurements: []hakaru.Measurement{{Metric: hakaru.Throughput, Value: value, Unit: "1/s"}},
			})
		}
	}
	for _, c := range []struct {
		trials int
		blocks int
		ratio  float64
	}{{1, 0, 0}, {2, 1, 1.1}, {3, 1, 1.1}, {4, 2, math.Sqrt(1.1 * 1.2)}, {6, 3, 1.2}} {
		got := SoFar(exp, frozen, history[:c.trials])
		switch {
		case c.blocks == 0:
			if len(got) > 0 {
				t.Errorf("after %d trials: %+v, want nothing", c.trials, got)
			}
		case len(got) != 1 || got[0].Blocks != c.blocks || math.Abs(got[0].Ratio-c.ratio) > 1e-12 || got[0].Verdict != hakaru.Unclear || got[0].Judged:
			t.Errorf("after %d trials: %+v, want %v over %d blocks, not judged", c.trials, got, c.ratio, c.blocks)
		}
	}
}
