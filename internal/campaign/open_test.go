package campaign_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"hakaru"
	"hakaru/internal/campaign"
	"hakaru/internal/latency"
)

func took(t *testing.T, d time.Duration) []byte {
	t.Helper()
	var h latency.Histogram
	for i := range 500 {
		h.Record(d + time.Duration(i)*time.Microsecond)
	}
	b, err := h.Encode()
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// openWorld is a campaign for the latency at a share of the capacity, in two strata
// of which the second is calibrated as well.
func openWorld(t *testing.T) *world {
	w := newWorld()
	w.took = map[string][]byte{"base": took(t, 5*time.Millisecond), "other": took(t, 3*time.Millisecond)}
	e := &w.run.Experiment
	n := func(level string) hakaru.Setting { return hakaru.Setting{Name: "n", Level: level, Value: &level} }
	e.Levels, e.Strata = []hakaru.Factor{{Name: "n", Levels: []hakaru.Setting{n("1"), n("2")}}}, []map[string]string{{"n": "1"}, {"n": "2"}}
	e.Load.HTTP.Rate, e.Load.HTTP.Arrival, e.Goal = "70%", "poisson", hakaru.P99
	e.Design.Blocks = 3
	e.Design.Open = &hakaru.OpenDesign{Calibrate: 1, Takes: time.Second}
	for _, at := range e.Strata {
		e.Design.Open.Shares = append(e.Design.Open.Shares, hakaru.OpenShare{At: at, Share: 0.7})
	}
	return w
}

// The rates are settled by the calibration of each stratum and kept: every trial of
// a block has its open loop at them, those of the calibration have none; and so it
// goes on wherever the run was cut off.
func TestOpenLoops(t *testing.T) {
	w := openWorld(t)
	type loop struct {
		Rate float64
		Seed uint64
	}
	loops := map[int][]loop{} // by block
	loads := 0
	w.sent = func(trial hakaru.Trial, spec hakaru.LoadSpec) {
		loads++
		if a := spec.HTTP.Arrival; a != nil {
			loops[trial.Block] = append(loops[trial.Block], loop{a.Rate, a.Seed})
		}
	}
	var frozen *hakaru.Frozen
	var guessed []campaign.PlanEvent
	res, err := w.campaign(t, context.Background(), func(e campaign.Event) {
		if e.Frozen != nil {
			frozen = e.Frozen
		}
		if e.Trial != nil {
			guessed = append(guessed, e.Trial.Left)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"calibrate 1.1 base", "calibrate 2.1 base", "calibrate 3.1 base"}
	if plan := w.plan(); !slices.Equal(plan[:3], want) || len(plan) != 3+2*2*3 {
		t.Fatalf("%v", plan)
	}
	// 500 a bucket, and 1, 2 and 0 more in the first three trials.
	if len(frozen.Rates) != 2 || frozen.Rates[0].Capacity != 1003 || frozen.Rates[0].Rate != 702 || frozen.Rates[1].Capacity != 1000 || frozen.Rates[1].Rate != 700 {
		t.Fatalf("%+v", frozen.Rates)
	}
	for block := 1; block <= 9; block++ {
		both := loops[block]
		switch {
		case block <= 3:
			if len(both) != 0 {
				t.Errorf("an open loop in calibration trial %d", block)
			}
		case len(both) != 2 || both[0] != both[1] || both[0].Seed != 5+uint64(block):
			t.Errorf("block %d: %+v", block, both)
		}
	}
	if loads != 3+2*12 {
		t.Errorf("%d loads", loads)
	}
	// What a trial of a block takes is known from those that lack the open loop.
	if first, fourth := guessed[1].PerTrial, guessed[3].PerTrial; first < time.Second || fourth < time.Second {
		t.Errorf("a trial is taken to take %v, then %v", first, fourth)
	}
	if res.Done == nil || res.Done.State != hakaru.Decided {
		t.Errorf("%+v", res.Done)
	}
	whole, plan := w.stored, w.plan()
	for _, cut := range []int{1, 2, 3, 4, 9, 14} {
		t.Run(fmt.Sprintf("resumed after %d", cut), func(t *testing.T) {
			again := openWorld(t)
			again.stored = slices.Clone(whole[:cut])
			if cut > 3 {
				again.run.Frozen = frozen
			}
			rates := map[float64]bool{}
			again.sent = func(_ hakaru.Trial, spec hakaru.LoadSpec) {
				if a := spec.HTTP.Arrival; a != nil {
					rates[a.Rate] = true
				}
			}
			if _, err := again.campaign(t, context.Background(), nil); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(plan, again.plan()); diff != "" {
				t.Error(diff)
			}
			if len(rates) > 2 || cut < 14 && (!rates[702] || !rates[700]) {
				t.Errorf("rates %v", rates)
			}
		})
	}
}

// A trial of no run has an open loop at a share of what its own closed one shows;
// one of a run that was frozen before there were open loops has none.
func TestSpecifyOpenLoop(t *testing.T) {
	exp := &openWorld(t).run.Experiment
	one := hakaru.Trial{Phase: hakaru.Compare, Block: 7, Attempt: 1, Variant: "base", At: exp.Strata[0]}
	calibration := one
	calibration.Phase = hakaru.Calibrate
	for _, c := range []struct {
		name   string
		frozen *hakaru.Frozen
		trial  hakaru.Trial
		open   bool
		rate   float64
	}{
		{"of no run", nil, one, true, 0},
		{"calibration", nil, calibration, false, 0},
		{"settled", &hakaru.Frozen{Rates: []hakaru.OpenRate{{At: exp.Strata[0], Rate: 700}}}, one, true, 700},
		{"not settled", &hakaru.Frozen{}, one, false, 0},
	} {
		spec, err := campaign.Specify(exp, c.frozen, c.trial)
		if err != nil {
			t.Fatal(err)
		}
		if o := spec.Load.Open; (o != nil) != c.open || c.open && (o.Arrival.Rate != c.rate || o.Share != 0.7 || o.Arrival.Seed != 12) {
			t.Errorf("%s: %+v", c.name, o)
		}
	}
}

// What a run takes is guessed stratum by stratum: one whose rate is written has one
// loop, one with a share has two, and the calibration never has the second. Where the
// run begins it says the same.
func TestEstimate(t *testing.T) {
	w := openWorld(t)
	e := &w.run.Experiment
	e.Load.HTTP.Rate = "{rate}"
	rate := func(level string) hakaru.Setting { return hakaru.Setting{Name: "rate", Level: level, Value: &level} }
	e.Levels = []hakaru.Factor{{Name: "rate", Levels: []hakaru.Setting{rate("2000/s"), rate("70%")}}}
	e.Strata = []map[string]string{{"rate": "2000/s"}, {"rate": "70%"}}
	e.Design.Open.Shares = []hakaru.OpenShare{{At: e.Strata[1], Share: 0.7}}
	one := campaign.Guess(e, hakaru.Compare, e.Strata[0])
	if two := campaign.Guess(e, hakaru.Compare, e.Strata[1]); two != one+e.Design.Open.Takes || campaign.Longest(e) != two {
		t.Errorf("%v with one loop, %v with two, the longest %v", one, two, campaign.Longest(e))
	}
	// Three of the calibration, and in each stratum three blocks of two.
	calibrations := e.Design.Calibrate + e.Design.Open.Calibrate
	atMost, trials := campaign.Estimate(e)
	if trials != calibrations+12 || atMost != time.Duration(trials)*one+6*e.Design.Open.Takes {
		t.Errorf("%v for %d trials of %v", atMost, trials, one)
	}

	w = openWorld(t)
	atMost, trials = campaign.Estimate(&w.run.Experiment)
	var first *campaign.PlanEvent
	if _, err := w.campaign(t, context.Background(), func(e campaign.Event) {
		if e.Trial != nil && first == nil {
			first = &e.Trial.Left
		}
	}); err != nil {
		t.Fatal(err)
	}
	if first.AtMost != atMost || first.Trials != trials {
		t.Errorf("%+v at the start, %v for %d trials before", first, atMost, trials)
	}
}
