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

// latencies makes a history of trials with a p99 each, of an open loop or not.
func latencies(goal hakaru.Metric, open bool, ratio float64, blocks int) *made {
	exp := experiment("v")
	exp.Goal = goal
	exp.Limits = []hakaru.Limit{{Metric: hakaru.P99, Bound: 0.05}}
	m := history(exp).blocks(blocks, map[string]float64{"v": ratio})
	for i := range m.history {
		r := &m.history[i]
		p99 := 0.04
		if r.Variant == "v" {
			p99 *= ratio
		}
		// Not by more than a thousandth apart from block to block.
		p99 *= 1 + 0.001*math.Sin(float64(r.Block))
		r.Measurements = []hakaru.Measurement{{Metric: hakaru.Throughput, Value: 1000}, {Metric: hakaru.P99, Value: p99, Open: open}}
	}
	return m
}

// A latency is judged of an open loop, lower is better, and of a closed one never.
func TestLatencyGoal(t *testing.T) {
	for _, c := range []struct {
		name string
		open bool
		v    float64
		want string
	}{
		{"lower", true, 0.8, "v/base better 3"},
		{"higher", true, 2, "v/base worse 3"},
		{"of a closed loop", false, 0.8, "v/base unclear 5 no_interval missing"},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := latencies(hakaru.P99, c.open, c.v, 5)
			if got := short(m.compare()[0]); got != c.want {
				t.Errorf("%s, want %s", got, c.want)
			}
		})
	}
	// Beside another goal it is shown, whatever loop it is of.
	m := latencies(hakaru.Throughput, false, 0.8, 5)
	shown := false
	for _, c := range m.compare() {
		shown = shown || c.Metric == hakaru.P99 && !c.Judged && c.Ratio > 0.79 && c.Ratio < 0.81
	}
	if !shown {
		t.Errorf("no change of p99: %+v", m.compare())
	}
}

func TestLatencyLimit(t *testing.T) {
	for _, c := range []struct {
		open      bool
		base, two hakaru.LimitVerdict
		reason    string
	}{
		{true, hakaru.Meets, hakaru.Violates, ""},
		{false, hakaru.NotShown, hakaru.NotShown, "latency of a closed loop is not evidence"},
	} {
		t.Run(fmt.Sprint("open ", c.open), func(t *testing.T) {
			m := latencies(hakaru.Throughput, c.open, 2, 5)
			limits := compare.Limits(m.exp, m.history)
			if len(limits) != 2 || limits[0].Verdict != c.base || limits[1].Verdict != c.two || !strings.HasPrefix(limits[1].Reason, c.reason) {
				t.Errorf("%+v", limits)
			}
			if v := limits[0].Value; limits[0].Trials != 5 || v < 0.0399 || v > 0.0401 {
				t.Errorf("%+v: not what was measured", limits[0])
			}
		})
	}
}

// behind makes the trials of a variant fall behind their open loop in so many blocks.
func (m *made) behind(variant string, blocks int) {
	for i := range m.history {
		r := &m.history[i]
		if r.Variant != variant {
			continue
		}
		answered := uint64(500)
		if r.Block > blocks {
			answered = 1000
		}
		r.Open = &hakaru.OpenPhase{Rate: 2000, WarmUp: time.Second, Window: 5 * time.Second}
		for at := time.Duration(0); at < 6*time.Second; at += hakaru.BucketWidth {
			r.Open.Buckets = append(r.Open.Buckets, hakaru.Bucket{At: at, Good: answered})
		}
	}
}

// Where the service falls behind, latencies are made by how long is measured: they
// meet no limit, and two of them are not compared.
func TestFellBehind(t *testing.T) {
	for _, c := range []struct {
		base, v int
		limits  [2]hakaru.LimitVerdict
		want    string
	}{
		{0, 0, [2]hakaru.LimitVerdict{hakaru.Meets, hakaru.Meets}, "v/base better 3"},
		{0, 1, [2]hakaru.LimitVerdict{hakaru.Meets, hakaru.NotShown}, "v/base better 3"},
		{5, 2, [2]hakaru.LimitVerdict{hakaru.Violates, hakaru.NotShown}, "v/base unclear 3 behind"},
		{5, 5, [2]hakaru.LimitVerdict{hakaru.Violates, hakaru.Violates}, "v/base unclear 3 behind"},
		{3, 1, [2]hakaru.LimitVerdict{hakaru.Violates, hakaru.NotShown}, "v/base better 3"},
	} {
		t.Run(fmt.Sprint(c.base, " and ", c.v), func(t *testing.T) {
			m := latencies(hakaru.P99, true, 0.8, 5)
			m.behind("base", c.base)
			m.behind("v", c.v)
			for i, l := range compare.Limits(m.exp, m.history) {
				if l.Verdict != c.limits[i] || (l.Reason == "") != (l.Verdict == hakaru.Meets) {
					t.Errorf("%+v, want %v", l, c.limits[i])
				}
			}
			if got := short(m.compare()[0]); got != c.want {
				t.Errorf("%s, want %s", got, c.want)
			}
		})
	}
}

// Errors are judged in each loop by itself: the many answers of the closed one do not
// hide those of the few by which latency is judged.
func TestErrorsOfTwoLoops(t *testing.T) {
	for _, c := range []struct {
		name               string
		closedBad, openBad uint64 // of 20000 and of 1000
		want               hakaru.LimitVerdict
		reason             string
	}{
		{"none", 0, 0, hakaru.Meets, ""},
		{"in the open one", 0, 50, hakaru.Violates, "in the open loop"},
		{"in the closed one", 1000, 0, hakaru.Violates, "in the closed loop"},
		{"a few in the open one", 0, 9, hakaru.NotShown, "in the open loop: the interval contains the limit"},
		{"more in the closed one", 2000, 50, hakaru.Violates, "in the closed loop"},
	} {
		t.Run(c.name, func(t *testing.T) {
			exp := experiment()
			exp.Limits = []hakaru.Limit{{Metric: hakaru.Errors, Bound: 0.01, Implied: true}}
			m := history(exp)
			for range 4 {
				m.n++
				r := m.ran("base", 1, 1000)
				r.Buckets = []hakaru.Bucket{{At: time.Second, Good: 20000 - c.closedBad, Bad: c.closedBad}}
				r.Open = &hakaru.OpenPhase{Rate: 100, Window: 10 * time.Second,
					Buckets: []hakaru.Bucket{{Good: 1000 - c.openBad, Bad: c.openBad}}}
			}
			if got := compare.Limits(exp, m.history)[0]; got.Verdict != c.want || got.Reason != c.reason || got.Trials != 4 {
				t.Errorf("%+v", got)
			}
		})
	}
}

// A rate that is written is no throughput, and no change of it is shown.
func TestNoThroughputOfWrittenRate(t *testing.T) {
	for _, whole := range []bool{false, true} {
		m := latencies(hakaru.P99, true, 0.8, 5)
		for i := range m.history {
			m.history[i].Open = &hakaru.OpenPhase{Rate: 1000, Whole: whole}
		}
		shown := false
		for _, c := range m.compare() {
			shown = shown || c.Metric == hakaru.Throughput
		}
		if shown == whole {
			t.Errorf("whole %v: throughput shown %v", whole, shown)
		}
	}
}

// A capacity of 0 is the worst there is, and no lower bound is met with it.
func TestLimitOfZero(t *testing.T) {
	for _, c := range []struct {
		name   string
		values []float64
		want   hakaru.LimitVerdict
		reason string
	}{
		{"none", []float64{1200, 1210, 1190}, hakaru.Meets, ""},
		{"in some", []float64{1200, 0, 1210, 0, 1190}, hakaru.NotShown, "capacity was 0 in 2 of 5 trials"},
		{"and too low in the others", []float64{500, 0, 510, 490}, hakaru.Violates, ""},
		{"in all", []float64{0, 0, 0}, hakaru.Violates, "capacity was 0 in every trial"},
		{"in both", []float64{0, 0}, hakaru.NotShown, "needs 3 trials, has 2"},
	} {
		t.Run(c.name, func(t *testing.T) {
			exp := experiment()
			exp.Goal = hakaru.Capacity
			exp.Limits = []hakaru.Limit{{Metric: hakaru.Capacity, Bound: 900, AtLeast: true}}
			m := history(exp)
			for _, x := range c.values {
				m.n++
				m.ran("base", 1, x)
			}
			got := compare.Limits(exp, m.history)[0]
			if got.Verdict != c.want || got.Trials != len(c.values) || !strings.HasPrefix(got.Reason, c.reason) || (c.reason == "") != (got.Reason == "") {
				t.Errorf("%+v", got)
			}
		})
	}
}

// What a capacity holds is judged rate by rate, and is no limit of a trial.
func TestConditionsAreNoLimits(t *testing.T) {
	m := latencies(hakaru.Capacity, true, 2, 3)
	m.exp.Limits = append(m.exp.Limits, hakaru.Limit{Metric: hakaru.Errors, Bound: 0.01}, hakaru.Limit{Metric: hakaru.Capacity, Bound: 900, AtLeast: true})
	for i := range m.history {
		m.history[i].Measurements = []hakaru.Measurement{{Metric: hakaru.Capacity, Value: 1000 + float64(i)}}
	}
	limits := compare.Limits(m.exp, m.history)
	if len(limits) != 2 || limits[0].Metric != hakaru.Capacity || limits[0].Verdict != hakaru.Meets {
		t.Errorf("%+v", limits)
	}
	if c := m.compare()[0]; c.Metric != hakaru.Capacity || c.Verdict != hakaru.Same {
		t.Errorf("%+v", c)
	}
}

// The rate of an open loop is a share of the median throughput of that stratum's
// calibration trials; noise and time are those of the first stratum.
func TestRates(t *testing.T) {
	exp := experiment("v")
	exp.Strata = []map[string]string{{"n": "1"}, {"n": "2"}, {"n": "3"}}
	exp.Design.Budget = 10 * time.Minute
	exp.Design.Open = &hakaru.OpenDesign{Calibrate: 2, Takes: 5 * time.Second, Shares: []hakaru.OpenShare{
		{At: exp.Strata[0], Share: 0.7}, {At: exp.Strata[2], Share: 0.5}}}
	at := func(all []hakaru.Result, n int) []hakaru.Result {
		for i := range all {
			all[i].At = exp.Strata[n]
		}
		return all
	}
	trials := append(at(calibration(10*time.Second, 1000, 1010, 5000), 0), at(calibration(time.Hour, 18, 20), 2)...)
	trials[2].Void = &hakaru.Void{Reason: hakaru.VoidOthers}
	f := compare.Freeze(exp, trials)
	if len(f.Rates) != 2 || f.Rates[0].Rate != 704 || f.Rates[0].Capacity != 1005 || f.Rates[0].Trials != 2 || f.Rates[1].Rate != 9.5 || f.Rates[1].Capacity != 19 {
		t.Errorf("%+v", f.Rates)
	}
	if f.Noise.Trials != 2 || f.Noise.Took != 10*time.Second {
		t.Errorf("noise of another stratum: %+v", f.Noise)
	}
	if _, ok := f.Rate(exp.Strata[1]); ok {
		t.Error("a rate where none was asked for")
	}
	// Two hours of calibration are more than the budget; one block is planned all the
	// same, and a trial of it takes the open loop more.
	if !strings.Contains(f.Note, "at 15 s a trial") {
		t.Error(f.Note)
	}
	if lost := compare.Freeze(exp, trials[:3]); len(lost.Rates) != 1 || !strings.Contains(lost.Note, "no open loop at n=3") {
		t.Errorf("%+v", lost)
	}
}

// A rate that is written has no noise, and a closed loop's latency none that counts.
func TestNoiseOfOpenLoops(t *testing.T) {
	exp := experiment("v")
	exp.Goal = hakaru.P99
	trials := calibration(time.Second, 100, 101, 99, 100)
	for i := range trials {
		trials[i].Measurements = append(trials[i].Measurements, hakaru.Measurement{Metric: hakaru.P99, Value: 0.01 * float64(10+i%2)})
	}
	if n := compare.Freeze(exp, trials).Noise; n.CV[hakaru.Throughput] == 0 || n.CV[hakaru.P99] != 0 {
		t.Errorf("closed: %+v", n)
	}
	for i := range trials {
		trials[i].Open = &hakaru.OpenPhase{Rate: 100, Whole: true}
		trials[i].Measurements[2].Open = true
	}
	n := compare.Freeze(exp, trials).Noise
	if _, told := n.CV[hakaru.Throughput]; told || n.CV[hakaru.P99] == 0 || n.CV[hakaru.CPUPerRequest] == 0 {
		t.Errorf("open: %+v", n)
	}
}

// A rate has three digits: what is printed is what is sent.
func TestRate(t *testing.T) {
	for _, c := range []struct{ capacity, share, want float64 }{
		{2000, 0.7, 1400}, {1987.4, 0.7, 1390}, {123456, 0.7, 86400}, {1.2345, 0.5, 0.617}, {10, 0.1, 1}, {0, 0.7, 0},
	} {
		if got := compare.Rate(c.capacity, c.share); got != c.want {
			t.Errorf("%g of %g: %v, want %v", c.share, c.capacity, got, c.want)
		}
	}
}
