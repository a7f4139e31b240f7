package compare_test

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"hakaru"
	"hakaru/internal/compare"
)

func TestVerdict(t *testing.T) {
	for _, test := range []struct {
		name   string
		goal   hakaru.Metric
		ratio  float64
		blocks int
		want   string
	}{
		{"no block", hakaru.Throughput, 1, 0, "v/base unclear 0 no_look"},
		{"before the first look", hakaru.Throughput, 2, 2, "v/base unclear 0 no_look"},
		{"more throughput", hakaru.Throughput, 1.2, 3, "v/base better 3"},
		{"less throughput", hakaru.Throughput, 0.8, 3, "v/base worse 3"},
		{"more CPU", hakaru.CPUPerRequest, 1.2, 3, "v/base worse 3"},
		{"less CPU", hakaru.CPUPerRequest, 0.8, 3, "v/base better 3"},
		{"a difference too small to matter", hakaru.Throughput, 1.01, 3, "v/base same 3"},
	} {
		t.Run(test.name, func(t *testing.T) {
			exp := experiment("v")
			exp.Goal = test.goal
			got := history(exp).blocks(test.blocks, map[string]float64{"v": test.ratio}).compare()
			if len(got) != 1 || short(got[0]) != test.want {
				t.Fatalf("got %v, want %s", got, test.want)
			}
			if c := got[0]; c.Blocks > 0 && (math.Abs(c.Ratio-test.ratio) > 0.005 || c.Low > c.SameLow || c.High < c.SameHigh) {
				t.Errorf("interval %+v", c)
			}
		})
	}
}

// Between two looks the answer is that of the last one, to the digit.
func TestBetweenLooks(t *testing.T) {
	m := history(experiment("v"))
	answers := map[int][]hakaru.Comparison{}
	for n := 1; n <= 14; n++ {
		m.block(map[string]float64{"v": 1 + 0.1*math.Sin(float64(n))})
		answers[n] = m.compare()
	}
	for n, look := range map[int]int{4: 3, 6: 5, 9: 5, 11: 10, 13: 10} {
		if got := answers[n][0]; got.Blocks != look || got.Verdict != hakaru.Unclear || got.MoreBlocks < 1 {
			t.Errorf("after %d blocks: %+v", n, got)
		}
		if diff := cmp.Diff(answers[look], answers[n]); diff != "" {
			t.Errorf("after %d blocks: %s", n, diff)
		}
	}
}

// The numbers of one comparison worked out by hand, so that no later change of
// a formula goes unseen.
func TestIntervalByHand(t *testing.T) {
	exp := experiment("v")
	m := history(exp)
	for _, d := range []float64{0.02, 0.06, 0.10} {
		m.n++
		m.ran("base", 1, 500)
		m.ran("v", 1, 500*math.Exp(d))
	}
	c := m.compare()[0]
	// mean 0.06, sd 0.04, a = 0.05/6, t(1-a/2; 2) = 10.886 (2a: 7.648): two
	// degrees of freedom have t = (2p-1)·sqrt(2/(4p(1-p))).
	quantile := func(p float64) float64 { return (2*p - 1) * math.Sqrt(2/(4*p*(1-p))) }
	a := 0.05 / 6
	half, same := quantile(1-a/2)*0.04/math.Sqrt(3), quantile(1-a)*0.04/math.Sqrt(3)
	for what, pair := range map[string][2]float64{
		"ratio": {c.Ratio, math.Exp(0.06)}, "level": {c.Level, a},
		"low": {c.Low, math.Exp(0.06 - half)}, "high": {c.High, math.Exp(0.06 + half)},
		"same low": {c.SameLow, math.Exp(0.06 - same)}, "same high": {c.SameHigh, math.Exp(0.06 + same)},
	} {
		if math.Abs(pair[0]-pair[1]) > 1e-9 {
			t.Errorf("%s: %v, want %v", what, pair[0], pair[1])
		}
	}
	if c.Verdict != hakaru.Unclear || c.MoreBlocks < 1 || c.Trials != 6 {
		t.Errorf("%+v", c)
	}
}

// From ten blocks on a wild trial moves nothing: ranks.
func TestOutlier(t *testing.T) {
	exp := experiment("v")
	exp.Design.Blocks = 10
	m := history(exp)
	rng := rand.New(rand.NewPCG(1, 1))
	for i := range 10 {
		m.n++
		m.ran("base", 1, 1000*math.Exp(0.04*rng.NormFloat64()))
		x := 1100 * math.Exp(0.04*rng.NormFloat64())
		if i == 4 {
			x = 400
		}
		m.ran("v", 1, x)
	}
	c := m.compare()[0]
	if c.Blocks != 10 || c.Ratio < 1.06 || c.Ratio > 1.14 {
		t.Errorf("%+v", c)
	}
}

func TestWhatCounts(t *testing.T) {
	better := map[string]float64{"v": 1.5}
	for _, test := range []struct {
		name  string
		build func(*made)
		want  string
		ratio float64
	}{
		{"a verdict stays", func(m *made) { m.blocks(3, better).blocks(25, map[string]float64{"v": 0.5}) }, "v/base better 3", 1.5},
		{"calibration does not count", func(m *made) {
			m.blocks(2, better)
			for range 6 {
				m.n++
				m.ran("base", 1, 1).Phase = hakaru.Calibrate
			}
		}, "v/base unclear 0 no_look", 0},
		{"the re-run counts", func(m *made) {
			m.blocks(2, better)
			m.n++
			m.ran("base", 1, 1000)
			m.void("v", 1, hakaru.VoidOthers)
			m.void("v", 2, hakaru.VoidOthers)
			m.ran("v", 3, 1500)
		}, "v/base better 3", 1.5},
		{"a block that is not complete does not count", func(m *made) {
			m.blocks(2, better)
			m.n++
			m.ran("base", 1, 1000)
			m.void("v", 1, hakaru.VoidOthers)
		}, "v/base unclear 0 no_look", 0},
		{"a dropped block does not count", func(m *made) {
			m.blocks(2, better)
			m.n++
			m.ran("base", 1, 1)
			for attempt := range 3 {
				m.void("v", attempt+1, hakaru.VoidGenerator)
			}
			m.block(better)
		}, "v/base better 3", 1.5},
		{"unusable", func(m *made) {
			m.n++
			m.ran("base", 1, 1000)
			for attempt := range 3 {
				m.void("v", attempt+1, hakaru.VoidNotStarted)
			}
		}, "v/base unclear 0 unusable no_look", 0},
		{"not unusable: somebody else has its address", func(m *made) {
			m.n++
			m.ran("base", 1, 1000)
			for attempt := range 3 {
				m.void("v", attempt+1, hakaru.VoidNotStarted)
				m.history[len(m.history)-1].Void.Foreign = true
			}
		}, "v/base unclear 0 no_look", 0},
		{"not unusable: it ran before", func(m *made) {
			m.blocks(1, better)
			m.n++
			m.ran("base", 1, 1000)
			for attempt := range 3 {
				m.void("v", attempt+1, hakaru.VoidDied)
			}
			m.blocks(2, better)
		}, "v/base better 3", 1.5},
		{"a trial without the goal", func(m *made) {
			m.blocks(2, better)
			m.n++
			m.ran("base", 1, 1000)
			m.ran("v", 1, 0).Measurements = nil
		}, "v/base better 3 missing", 1.5},
		{"zero in one block of one", func(m *made) {
			m.blocks(2, better)
			m.n++
			m.ran("base", 1, 1000)
			m.ran("v", 1, 0)
			m.blocks(11, better)
		}, "v/base unclear 3 missing zero", 1.5},
		{"zero in the last block of the baseline", func(m *made) {
			m.blocks(2, better)
			m.n++
			m.ran("base", 1, 0)
			m.ran("v", 1, 1000)
		}, "v/base unclear 3 missing zero", 1.5},
		{"always zero", func(m *made) {
			m.blocks(5, map[string]float64{"v": 0})
		}, "v/base unclear 3 no_interval missing zero", 0},
		{"zero of both at once", func(m *made) {
			m.blocks(2, better)
			m.n++
			m.ran("base", 1, 0)
			m.ran("v", 1, 0)
		}, "v/base better 3 missing", 1.5},
	} {
		t.Run(test.name, func(t *testing.T) {
			m := history(experiment("v"))
			test.build(m)
			got := m.compare()[0]
			if short(got) != test.want || math.Abs(got.Ratio-test.ratio) > 0.01 {
				t.Errorf("got %s at %.3f, want %s at %v", short(got), got.Ratio, test.want, test.ratio)
			}
		})
	}
}

// A block that is dropped for one variant is dropped for all, though the others
// ran in it.
func TestDroppedWhole(t *testing.T) {
	exp := experiment("v", "w")
	m := history(exp).blocks(2, map[string]float64{"v": 1.5, "w": 1})
	m.block(map[string]float64{"v": 9})
	for attempt := range 3 {
		m.void("w", attempt+1, hakaru.VoidThrottled)
	}
	if got := m.compare(); got[0].Blocks != 0 || got[1].Blocks != 0 {
		t.Errorf("%v", got)
	}
	if o := m.judge(); o.Complete != 2 || o.Dropped != 1 || o.VoidTrials != 3 {
		t.Errorf("%+v", o)
	}
}

// A score that is printed in whole numbers and the same in every block has no
// spread, and decides nothing: 12 may be 12.4, and 13 12.6. One that moves does.
func TestNoSpread(t *testing.T) {
	for _, test := range []struct {
		name        string
		metric      hakaru.Metric
		base, other []float64
		want        string
	}{
		{"one more each time", hakaru.Score, []float64{12, 12, 12}, []float64{13, 13, 13}, "v/base unclear 3 no_spread"},
		{"the same", hakaru.Score, []float64{12, 12, 12}, []float64{12, 12, 12}, "v/base unclear 3 no_spread"},
		{"both move in step", hakaru.Score, []float64{12, 14, 12}, []float64{24, 28, 24}, "v/base unclear 3 no_spread drift"},
		{"with digits", hakaru.Score, []float64{12.1, 12.2, 12.1}, []float64{24.3, 24.1, 24.2}, "v/base better 3"},
		{"what hakaru counted", hakaru.Throughput, []float64{4096, 4096, 4096}, []float64{8192, 8192, 8192}, "v/base better 3"},
	} {
		t.Run(test.name, func(t *testing.T) {
			exp := experiment("v")
			exp.Goal = test.metric
			m := history(exp)
			for i := range test.base {
				m.n++
				m.ran("base", 1, test.base[i])
				m.ran("v", 1, test.other[i])
			}
			got := m.compare()[0]
			if short(got) != test.want {
				t.Errorf("got %s, want %s", short(got), test.want)
			}
			if strings.Contains(test.want, "no_spread") && got.MoreBlocks != 0 {
				t.Errorf("%d more blocks are said to decide what does not move", got.MoreBlocks)
			}
		})
	}
}

func TestCannotAct(t *testing.T) {
	value := func(s string) *string { return &s }
	lifetime := hakaru.Setting{Name: "max-worker-lifetime", Value: value("30")}
	threads := hakaru.Setting{Name: "threads", Value: value("2")}
	for _, test := range []struct {
		name     string
		settings []hakaru.Setting
		after    time.Duration
		want     string
	}{
		{"only that", []hakaru.Setting{lifetime}, 30 * time.Second, "v/base unclear 3 cannot_act"},
		{"something else too", []hakaru.Setting{lifetime, threads}, 30 * time.Second, "v/base better 3"},
		{"in time", []hakaru.Setting{lifetime}, 10 * time.Second, "v/base better 3"},
		{"the same value as base", []hakaru.Setting{lifetime, {Name: "http", Value: value("x")}}, 30 * time.Second, "v/base unclear 3 cannot_act"},
		{"null where base has it", []hakaru.Setting{lifetime, {Name: "http"}}, 30 * time.Second, "v/base better 3"},
	} {
		t.Run(test.name, func(t *testing.T) {
			exp := experiment("v")
			exp.Services = []hakaru.Service{{Name: "service", Base: []hakaru.Setting{{Name: "http", Value: value("x")}}}}
			exp.Variants[1].Settings = test.settings
			exp.ActsAfter = map[string]time.Duration{"max-worker-lifetime": test.after}
			got := history(exp).blocks(5, map[string]float64{"v": 1.5}).compare()[0]
			if short(got) != test.want {
				t.Errorf("got %s, want %s", short(got), test.want)
			}
			if strings.Contains(test.want, "cannot") && (got.MoreBlocks != 0 || !strings.Contains(got.Warnings[0].Message, "max-worker-lifetime")) {
				t.Errorf("%+v", got)
			}
		})
	}
}

// Each pair goes by the levels that it has, not by the shortest there is.
func TestCannotActByLevel(t *testing.T) {
	value := func(s string) *string { return &s }
	const name = "max-worker-lifetime"
	exp := experiment("soon", "late", "later")
	exp.Services = []hakaru.Service{{Name: "service"}}
	exp.Pairs = append(exp.Pairs, hakaru.Pair{Base: "soon", Other: "late"}, hakaru.Pair{Base: "late", Other: "later"})
	exp.ActsAfter = map[string]time.Duration{name: 5 * time.Second} // of a trial of 11 s
	for i, seconds := range []int{5, 60, 3600} {
		v := &exp.Variants[i+1]
		v.Settings = []hakaru.Setting{{Name: name, Value: value(strconv.Itoa(seconds))}}
		if seconds > 5 {
			v.ActsAfter = map[string]time.Duration{name: time.Duration(seconds) * time.Second}
		}
	}
	var got []string
	for _, c := range history(exp).blocks(5, map[string]float64{"soon": 1.5, "late": 1.2, "later": 1}).compare() {
		got = append(got, short(c))
	}
	want := []string{"soon/base better 3", "late/base unclear 3 cannot_act", "later/base unclear 3 cannot_act", "late/soon worse 3", "later/late unclear 3 cannot_act"}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

// A setting that does nothing without another that is off decides nothing, and
// neither does one beside it that cannot act in time.
func TestIdle(t *testing.T) {
	value := func(s string) *string { return &s }
	lifetime := hakaru.Setting{Name: "max-worker-lifetime", Value: value("3")}
	harakiri := hakaru.Setting{Name: "harakiri", Value: value("60")}
	threads := hakaru.Setting{Name: "threads", Value: value("2")}
	const why = "max-worker-lifetime needs master, which is switched off"
	for _, test := range []struct {
		name     string
		settings []hakaru.Setting
		idle     map[string]string
		want     string
	}{
		{"idle", []hakaru.Setting{lifetime}, map[string]string{lifetime.Name: why}, "v/base unclear 3 cannot_act"},
		{"not idle", []hakaru.Setting{lifetime}, nil, "v/base better 3"},
		{"something else too", []hakaru.Setting{lifetime, threads}, map[string]string{lifetime.Name: why}, "v/base better 3"},
		{"and one that is late", []hakaru.Setting{lifetime, harakiri}, map[string]string{lifetime.Name: why}, "v/base unclear 3 cannot_act"},
	} {
		t.Run(test.name, func(t *testing.T) {
			exp := experiment("v")
			exp.Services = []hakaru.Service{{Name: "service"}}
			exp.Variants[1].Settings, exp.Variants[1].Idle = test.settings, test.idle
			exp.ActsAfter = map[string]time.Duration{harakiri.Name: time.Minute}
			got := history(exp).blocks(5, map[string]float64{"v": 1.5}).compare()[0]
			if short(got) != test.want {
				t.Errorf("got %s, want %s", short(got), test.want)
			}
			if strings.Contains(test.want, "cannot") && !strings.Contains(got.Warnings[0].Message, why) {
				t.Errorf("%+v", got.Warnings)
			}
		})
	}
}

func TestOtherMetrics(t *testing.T) {
	exp := experiment("v")
	m := history(exp).blocks(3, map[string]float64{"v": 1.2})
	for i := range m.history {
		r := &m.history[i]
		share, memory := 0.0, 100.0
		if r.Variant == "v" {
			share, memory = 0.01, 109
		}
		r.Measurements = append(r.Measurements,
			hakaru.Measurement{Metric: hakaru.Memory, Value: memory},
			hakaru.Measurement{Metric: hakaru.Memory, Of: "nginx", Value: 1},
			hakaru.Measurement{Metric: hakaru.Errors, Value: share})
	}
	got := m.compare()
	if len(got) != 2 {
		t.Fatalf("want goal and memory, errors have no logarithm: %+v", got)
	}
	if c := got[1]; c.Metric != hakaru.Memory || c.Judged || c.Verdict != hakaru.Unclear || math.Abs(c.Ratio-1.09) > 1e-9 || c.Blocks != 3 {
		t.Errorf("%+v", c)
	}
}

func TestDrift(t *testing.T) {
	m := history(experiment("v")).blocks(3, map[string]float64{"v": 1.2})
	for i := range m.history {
		m.history[i].Measurements[0].Value *= 1 + 0.2*float64(m.history[i].Block)
	}
	if got := m.compare()[0]; short(got) != "v/base better 3 drift" {
		t.Errorf("%s", short(got))
	}
}

// noisy is a history of any shape.
func noisy(t *rapid.T) *made {
	exp := experiment("v", "w")
	exp.Pairs = append(exp.Pairs, hakaru.Pair{Base: "v", Other: "w"})
	exp.Goal = rapid.SampledFrom([]hakaru.Metric{hakaru.Throughput, hakaru.CPUPerRequest}).Draw(t, "goal")
	m := history(exp)
	seed := rapid.Uint64().Draw(t, "seed")
	effect, cv := rapid.Float64Range(-0.3, 0.3).Draw(t, "effect"), rapid.Float64Range(0, 0.1).Draw(t, "cv")
	rng := rand.New(rand.NewPCG(seed, 0))
	for range rapid.IntRange(0, 30).Draw(t, "blocks") {
		m.n++
		for i, v := range exp.Variants {
			attempt := 1
			for attempt <= 3 && rng.Float64() < 0.1 {
				m.void(v.Name, attempt, hakaru.VoidOthers)
				attempt++
			}
			if attempt <= 3 {
				m.ran(v.Name, attempt, 1000*math.Exp(float64(i)*effect+cv*rng.NormFloat64()))
			}
		}
	}
	return m
}

// Swapping the variants of a pair makes better worse and the ratio its inverse.
func TestSwap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := noisy(t)
		frozen := compare.Freeze(m.exp, nil)
		there := compare.Compare(m.exp, frozen, m.history)
		swapped := *m.exp
		swapped.Pairs = nil
		for _, p := range m.exp.Pairs {
			swapped.Pairs = append(swapped.Pairs, hakaru.Pair{Base: p.Other, Other: p.Base})
		}
		back := compare.Compare(&swapped, frozen, m.history)
		opposite := map[hakaru.Verdict]hakaru.Verdict{hakaru.Better: hakaru.Worse, hakaru.Worse: hakaru.Better}
		for i, c := range there {
			want, ok := opposite[c.Verdict]
			if !ok {
				want = c.Verdict
			}
			b := back[i]
			if b.Verdict != want || b.Blocks != c.Blocks {
				t.Fatalf("%+v\nswapped %+v", c, b)
			}
			if c.Blocks > 0 && (math.Abs(b.Ratio*c.Ratio-1) > 1e-9 || math.Abs(b.Low*c.High-1) > 1e-9) {
				t.Fatalf("%+v\nswapped %+v", c, b)
			}
		}
	})
}

// Another unit, and another order in the store, change nothing; and whatever the
// data are, the answer can be written as JSON.
func TestUnitAndOrder(t *testing.T) {
	approximately := cmp.Comparer(func(a, b float64) bool { return math.Abs(a-b) <= 1e-9*max(math.Abs(a), math.Abs(b)) })
	rapid.Check(t, func(t *rapid.T) {
		m := noisy(t)
		frozen := compare.Freeze(m.exp, nil)
		want := compare.Compare(m.exp, frozen, m.history)
		other := make([]hakaru.Result, len(m.history))
		for i, r := range m.history {
			r.Measurements = append([]hakaru.Measurement(nil), r.Measurements...)
			for j := range r.Measurements {
				r.Measurements[j].Value *= 1e-6
			}
			other[len(other)-1-i] = r
		}
		if diff := cmp.Diff(want, compare.Compare(m.exp, frozen, other), approximately); diff != "" {
			t.Fatal(diff)
		}
		if _, err := json.Marshal([]any{want, frozen, m.judge(), compare.Limits(m.exp, m.history)}); err != nil {
			t.Fatal(err)
		}
	})
}

// Strata do not touch each other.
func TestStrata(t *testing.T) {
	exp := experiment("v")
	exp.Strata = []map[string]string{{"mix": "ro"}, {"mix": "rw"}}
	m := history(exp).blocks(3, map[string]float64{"v": 1.5})
	m.at = exp.Strata[1]
	m.blocks(3, map[string]float64{"v": 0.5})
	got := m.compare()
	if fmt.Sprint(short(got[0]), short(got[1])) != fmt.Sprint("v/base better 3", "v/base worse 3") || got[1].At["mix"] != "rw" {
		t.Errorf("%v", got)
	}
	if got[0].Level != 0.05/12 {
		t.Errorf("level %v, want 0.05 over two comparisons and six looks", got[0].Level)
	}
}
