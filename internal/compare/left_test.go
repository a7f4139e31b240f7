package compare_test

import (
	"math"
	"testing"

	"hakaru"
	"hakaru/internal/compare"
	"hakaru/internal/stats"
)

// A variant that was decided and left takes no part in the spread that later
// looks pool: only arms that are in all of the blocks do. So what it was like
// changes nothing of the others' intervals, and the degrees of freedom are those
// of the arms that are left.
func TestSpreadWithoutThoseWhoLeft(t *testing.T) {
	exp := experiment("far", "near")
	exp.Design.Matters = 0.0005 // too little to be told
	m := history(exp).blocks(3, map[string]float64{"far": 2, "near": 1})
	m.blocks(2, map[string]float64{"near": 1})
	if c := m.compare(); c[0].Verdict != hakaru.Better || c[0].Blocks != 3 || c[1].Blocks != 5 {
		t.Fatalf("far is to be decided after 3 blocks and near looked at after 5: %+v", c)
	}
	near := m.compare()[1]

	arms := stats.Blocks{nil, nil}
	for _, r := range m.history {
		x, _ := r.Measured(exp.Goal)
		switch r.Variant {
		case "base":
			arms[0] = append(arms[0], math.Log(x))
		case "near":
			arms[1] = append(arms[1], math.Log(x))
		}
	}
	want, ok := arms.Difference(0, 1, compare.Freeze(exp, nil).Level)
	if !ok || math.Abs(math.Log(near.Low)-want.Low) > 1e-12 || math.Abs(math.Log(near.High)-want.High) > 1e-12 {
		t.Errorf("near: %v to %v, want exp of %v to %v", near.Low, near.High, want.Low, want.High)
	}
}
