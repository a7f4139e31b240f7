package plan

import (
	"testing"

	"hakaru"
)

// What is left counts down by one a trial to the last of a run in which nothing
// is decided early, and is what the outline holds before the first.
func TestLeftCountsDown(t *testing.T) {
	t.Run("closed loop", func(t *testing.T) { leftCountsDown(t, leftExperiment()) })
	open := leftExperiment()
	open.Design.Open = &hakaru.OpenDesign{Calibrate: 2, Shares: []hakaru.OpenShare{{At: open.Strata[0], Share: 0.7}, {At: open.Strata[1], Share: 0.7}}}
	t.Run("open loops", func(t *testing.T) { leftCountsDown(t, open) })
}

func leftCountsDown(t *testing.T, exp *hakaru.Experiment) {
	p, err := New(exp, nil)
	if err != nil {
		t.Fatal(err)
	}
	want, first := 0, 0
	for _, b := range Outline(exp) {
		want += len(b.Trials)
		if b.Phase == hakaru.Calibrate {
			first++
		}
	}
	var history []hakaru.Result
	for {
		frozen := p.Frozen(history)
		if got, of := Left(exp, frozen, history); got != want-len(history) || of != max(0, first-len(history)) {
			t.Fatalf("after %d trials: %d left, %d of the calibration, want %d, %d", len(history), got, of, want-len(history), first-len(history))
		}
		next, done := p.Next(history, 1)
		if done != nil {
			break
		}
		trial := next[0].Trials[0]
		trial.Seq = len(history) + 1
		// Far too noisy for any verdict.
		value := []float64{100, 10, 1000, 30, 300}[len(history)*7%5]
		history = append(history, hakaru.Result{Trial: trial, Measurements: []hakaru.Measurement{{Metric: hakaru.Throughput, Value: value, Unit: "1/s"}}})
	}
	if len(history) != want {
		t.Errorf("ran %d trials, outlined %d", len(history), want)
	}
}

func leftExperiment() *hakaru.Experiment {
	return &hakaru.Experiment{
		Name: "left", Baseline: "a", Goal: hakaru.Throughput,
		Variants: []hakaru.Variant{{Name: "a"}, {Name: "b"}, {Name: "c"}},
		Pairs:    []hakaru.Pair{{Base: "a", Other: "b"}, {Base: "a", Other: "c"}},
		Levels:   []hakaru.Factor{{Name: "mix"}},
		Strata:   []map[string]string{{"mix": "ro"}, {"mix": "rw"}},
		Design:   hakaru.Design{Method: hakaru.MethodCompare, Blocks: 5, Matters: 0.03, Seed: 1, Calibrate: 2},
	}
}
