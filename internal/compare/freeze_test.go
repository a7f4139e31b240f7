package compare_test

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"hakaru"
	"hakaru/internal/compare"
)

func TestFreezeLooks(t *testing.T) {
	for _, test := range []struct {
		blocks, variants, strata int
		looks                    []int
	}{
		{28, 1, 1, []int{3, 5, 10, 14, 20, 28}},
		{0, 1, 1, []int{3, 5, 10, 14, 20, 28}},
		{10, 1, 1, []int{3, 5, 10}},
		{12, 1, 1, []int{3, 5, 10, 12}},
		{4, 1, 1, []int{3, 4}},
		{2, 1, 1, []int{2}},
		{1, 1, 1, []int{1}},
		{200, 1, 1, []int{3, 5, 10, 14, 20, 28, 40, 56, 80, 112, 160, 200}},
		// 2^-9 at ten blocks is more than 0.05/(4·6), and than 0.05/(9·2·5).
		{28, 4, 1, []int{3, 5, 10, 14, 20, 28}},
		{28, 5, 1, []int{3, 5, 14, 20, 28}},
		{28, 9, 2, []int{3, 5, 14, 20, 28}},
		{28, 300, 1, []int{3, 5, 20, 28}},
		{10, 100, 1, []int{3, 5}},
	} {
		t.Run(fmt.Sprintf("%d blocks, %d variants, %d strata", test.blocks, test.variants, test.strata), func(t *testing.T) {
			var names []string
			for i := range test.variants {
				names = append(names, fmt.Sprint("v", i))
			}
			exp := experiment(names...)
			exp.Design.Blocks = test.blocks
			exp.Strata = make([]map[string]string, test.strata)
			f := compare.Freeze(exp, nil)
			if fmt.Sprint(f.Looks) != fmt.Sprint(test.looks) {
				t.Fatalf("looks %v, want %v", f.Looks, test.looks)
			}
			m := test.variants * test.strata
			if f.Comparison != m || math.Abs(f.Level*float64(m*len(f.Looks))-0.05) > 1e-12 || f.Blocks != test.looks[len(test.looks)-1] {
				t.Errorf("%+v", f)
			}
			if cut := test.blocks > f.Blocks; cut != strings.Contains(f.Note, "signed-rank") {
				t.Errorf("note %q", f.Note)
			}
		})
	}
}

func calibration(took time.Duration, goals ...float64) []hakaru.Result {
	var all []hakaru.Result
	for i, x := range goals {
		all = append(all, hakaru.Result{
			Trial: hakaru.Trial{Phase: hakaru.Calibrate, Block: i + 1, Attempt: 1, Variant: "base"}, Took: took,
			Measurements: []hakaru.Measurement{{Metric: hakaru.Throughput, Value: x}, {Metric: hakaru.CPUPerRequest, Value: 1 / x}},
		})
	}
	return all
}

func TestFreezeBudget(t *testing.T) {
	for _, test := range []struct {
		budget time.Duration
		blocks int
		note   string
	}{
		{0, 28, ""},
		{10 * time.Minute, 27, "a budget of 10 min less 60 s for calibration allows 27 blocks of 2 trials at 10 s a trial"},
		{time.Hour, 28, "allows 177 blocks of 2 trials at 10 s a trial; 28 are planned, as asked for"},
		{100 * time.Second, 2, "fewer than the 3 of the first look"},
		{30 * time.Second, 1, "allows 0 blocks of 2 trials at 10 s a trial; one is planned all the same"},
	} {
		exp := experiment("v")
		exp.Design.Budget = test.budget
		f := compare.Freeze(exp, calibration(10*time.Second, 1, 1, 1, 1, 1, 1))
		if f.Blocks != test.blocks || !strings.Contains(f.Note, test.note) || (test.note == "") != (f.Note == "") {
			t.Errorf("%v: %d blocks, note %q", test.budget, f.Blocks, f.Note)
		}
	}
	exp := experiment("v")
	exp.Design.Budget = time.Minute
	if f := compare.Freeze(exp, nil); f.Blocks != 28 || !strings.Contains(f.Note, "no calibration trial") {
		t.Errorf("%+v", f)
	}
}

func TestNoise(t *testing.T) {
	goals := []float64{100, 102, 99, 101, 100, 103}
	n := compare.Freeze(experiment("v"), append(calibration(5*time.Second, goals...),
		hakaru.Result{Trial: hakaru.Trial{Phase: hakaru.Calibrate}, Void: &hakaru.Void{}, Took: time.Hour})).Noise
	// The steps are 1.98, 2.99, 2.00, 1.00 and 2.96 %; their median 2.00.
	if want := math.Log(101.0/99) / (0.6745 * math.Sqrt2); math.Abs(n.CV[hakaru.Throughput]-want) > 1e-12 {
		t.Errorf("CV %v, want %v", n.CV[hakaru.Throughput], want)
	}
	if n.Trials != 6 || n.Took != 5*time.Second || math.Abs(n.CV[hakaru.CPUPerRequest]-n.CV[hakaru.Throughput]) > 1e-12 {
		t.Errorf("%+v", n)
	}
	// Blocks for 2.1 %: 16·(2.1/2)².
	if got := n.BlocksNeeded[hakaru.Throughput]; got < 16 || got > 19 {
		t.Errorf("blocks needed: %d", got)
	}
	few := compare.Freeze(experiment("v"), calibration(time.Second, 100)).Noise
	if len(few.CV) != 0 || few.Trials != 1 {
		t.Errorf("one trial has no noise: %+v", few)
	}
}
