package compare_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"hakaru"
	"hakaru/internal/compare"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func TestLimits(t *testing.T) {
	type trial struct{ good, bad, load uint64 }
	for _, test := range []struct {
		name   string
		trials []trial
		want   hakaru.LimitVerdict
		reason string
	}{
		{"no trial", nil, hakaru.NotShown, "no trial counted answers"},
		{"two trials", []trial{{5000, 0, 0}, {5000, 0, 0}}, hakaru.NotShown, "needs 3 trials, has 2"},
		{"no errors", []trial{{5000, 0, 0}, {5000, 0, 0}, {5000, 0, 0}}, hakaru.Meets, ""},
		{"no errors in few answers", []trial{{50, 0, 0}, {50, 0, 0}, {50, 0, 0}}, hakaru.NotShown, "contains the limit"},
		{"many errors", []trial{{900, 100, 0}, {910, 90, 0}, {905, 95, 0}}, hakaru.Violates, ""},
		{"errors in one trial only", []trial{{5000, 0, 0}, {5000, 0, 0}, {4500, 500, 0}}, hakaru.NotShown, "contains the limit"},
		{"errors of the load host", []trial{{5000, 500, 500}, {5000, 500, 500}, {5000, 500, 500}}, hakaru.Meets, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			exp := experiment()
			exp.Limits = []hakaru.Limit{{Metric: hakaru.Errors, Bound: 0.01, Implied: true}}
			m := history(exp)
			for _, x := range test.trials {
				m.n++
				r := m.ran("base", 1, 1000)
				r.Buckets = []hakaru.Bucket{
					{At: 500 * time.Millisecond, Bad: 1000}, // warm-up
					{At: time.Second, Good: x.good, Bad: x.bad, Kinds: map[string]uint64{string(hakaru.LoadPorts): x.load}},
					{At: 11 * time.Second, Bad: 1000}, // after the window
				}
			}
			// Neither calibration nor a void trial says anything here.
			m.n++
			m.ran("base", 1, 1000).Phase = hakaru.Calibrate
			m.void("base", 2, hakaru.VoidDied)
			got := compare.Limits(exp, m.history)
			if len(got) != 1 || got[0].Verdict != test.want || got[0].Trials != len(test.trials) || !strings.Contains(got[0].Reason, test.reason) ||
				(got[0].Reason == "") != (test.want != hakaru.NotShown) {
				t.Errorf("%+v", got)
			}
			if got[0].Low > got[0].Value || got[0].High < got[0].Value {
				t.Errorf("value outside its interval: %+v", got[0])
			}
		})
	}
}

func TestLimitOfMetric(t *testing.T) {
	values := func(m *made, metric hakaru.Metric, xs ...float64) {
		for _, x := range xs {
			m.n++
			m.ran("base", 1, 1000).Measurements = []hakaru.Measurement{{Metric: metric, Value: x}}
		}
	}
	for _, test := range []struct {
		name    string
		metric  hakaru.Metric
		bound   float64
		atLeast bool
		values  []float64
		want    string
	}{
		{"memory below", hakaru.Memory, 100, false, []float64{50, 51, 52}, "meets "},
		{"memory above", hakaru.Memory, 100, false, []float64{150, 151, 152}, "violates "},
		{"memory about", hakaru.Memory, 100, false, []float64{90, 100, 110}, "not_shown the interval contains the limit"},
		{"throughput at least", hakaru.Throughput, 100, true, []float64{150, 151, 152}, "meets "},
		{"throughput too low", hakaru.Throughput, 100, true, []float64{50, 51, 52}, "violates "},
		{"two trials", hakaru.Memory, 100, false, []float64{50, 51}, "not_shown needs 3 trials, has 2"},
		{"p99 of a closed loop", hakaru.P99, 1, false, []float64{0.1, 0.1, 0.1}, "not_shown latency of a closed loop"},
		{"p50 of a closed loop", hakaru.P50, 1, false, []float64{0.1, 0.1, 0.1}, "not_shown latency of a closed loop"},
		{"not measured", hakaru.Cost, 1, false, nil, "not_shown no trial measured cost"},
	} {
		t.Run(test.name, func(t *testing.T) {
			exp := experiment()
			exp.Limits = []hakaru.Limit{{Metric: test.metric, Bound: test.bound, AtLeast: test.atLeast}}
			m := history(exp)
			values(m, test.metric, test.values...)
			got := compare.Limits(exp, m.history)[0]
			if text := fmt.Sprintf("%s %s", got.Verdict, got.Reason); !strings.HasPrefix(text, test.want) || got.Trials != len(test.values) {
				t.Errorf("%+v, want %s", got, test.want)
			}
		})
	}
}

// Outcomes, each with the history that leads to it.
func TestJudge(t *testing.T) {
	memory := func(m *made, of map[string]float64) {
		for i := range m.history {
			if r := &m.history[i]; r.Void == nil {
				r.Measurements = append(r.Measurements, hakaru.Measurement{Metric: hakaru.Memory, Value: max(1, of[r.Variant])})
			}
		}
	}
	failing := func(m *made, variant string, reason hakaru.VoidReason) {
		for attempt := range 3 {
			m.void(variant, attempt+1, reason)
		}
	}
	for _, test := range []struct {
		name  string
		build func(*made)
	}{
		{"better", func(m *made) { m.blocks(3, map[string]float64{"v": 1.2, "w": 1.1}) }},
		{"tie", func(m *made) {
			m.blocks(3, map[string]float64{"v": 1.2, "w": 1.2})
		}},
		{"same", func(m *made) { m.blocks(3, map[string]float64{"v": 1.002, "w": 0.998}) }},
		{"none better", func(m *made) { m.blocks(3, map[string]float64{"v": 0.9, "w": 1}) }},
		{"unclear", func(m *made) { m.blocks(2, map[string]float64{"v": 1.2, "w": 1}) }},
		{"limit", func(m *made) {
			m.exp.Limits = []hakaru.Limit{{Metric: hakaru.Memory, Bound: 100}}
			m.blocks(3, map[string]float64{"v": 1.2, "w": 1.1})
			memory(m, map[string]float64{"v": 500})
		}},
		{"baseline violates", func(m *made) {
			m.exp.Limits = []hakaru.Limit{{Metric: hakaru.Memory, Bound: 100}}
			m.blocks(3, map[string]float64{"v": 1.2, "w": 0.9})
			memory(m, map[string]float64{"base": 500, "v": 500, "w": 500})
		}},
		{"one unusable", func(m *made) {
			m.block(map[string]float64{"w": 1.2})
			failing(m, "v", hakaru.VoidNotStarted)
			m.blocks(2, map[string]float64{"w": 1.2})
		}},
		{"baseline unusable", func(m *made) {
			m.n++
			failing(m, "base", hakaru.VoidNotStarted)
			m.ran("v", 1, 1)
			m.ran("w", 1, 1)
		}},
		{"calibration void", func(m *made) {
			m.n++
			failing(m, "base", hakaru.VoidNotStarted)
			for i := range m.history {
				m.history[i].Phase = hakaru.Calibrate
			}
		}},
		{"all others unusable", func(m *made) {
			m.n++
			m.ran("base", 1, 1)
			failing(m, "v", hakaru.VoidDied)
			failing(m, "w", hakaru.VoidWrongAnswers)
		}},
		{"voids prevail", func(m *made) {
			for range 3 {
				m.block(map[string]float64{"v": 1})
				failing(m, "w", hakaru.VoidGenerator)
			}
		}},
		{"strata", func(m *made) {
			m.exp.Strata = []map[string]string{{"n": "1"}, {"n": "2"}}
			m.at = m.exp.Strata[0]
			m.blocks(3, map[string]float64{"v": 1.2, "w": 1})
			m.at = m.exp.Strata[1]
			m.blocks(3, map[string]float64{"v": 1, "w": 1.3})
		}},
		{"nothing to compare", func(m *made) {
			m.exp.Pairs = nil
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			m := history(experiment("v", "w"))
			test.build(m)
			got, err := json.MarshalIndent(m.judge(), "", "  ")
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, '\n')
			path := filepath.Join("testdata", "outcome", strings.ReplaceAll(test.name, " ", "-")+".json")
			if *update {
				if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, got, 0o666); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), string(got)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// What a pair says directly goes before two early verdicts against the baseline.
func TestJudgeDirect(t *testing.T) {
	for _, test := range []struct {
		direct hakaru.Verdict // on w against v
		winner string
		ties   []string
	}{
		{hakaru.Better, "w", nil},
		{hakaru.Worse, "v", nil},
		{hakaru.Same, "v", []string{"w"}},
		{hakaru.Unclear, "v", []string{"w"}},
	} {
		t.Run(test.direct.String(), func(t *testing.T) {
			m := history(experiment("v", "w"))
			m.exp.Pairs = append(m.exp.Pairs, hakaru.Pair{Base: "v", Other: "w"})
			m.blocks(3, map[string]float64{"v": 1.4, "w": 1.4})
			against := func(base, other string, ratio float64, verdict hakaru.Verdict) hakaru.Comparison {
				return hakaru.Comparison{Metric: hakaru.Throughput, Base: base, Other: other, Blocks: 3,
					Ratio: ratio, Low: ratio - 0.1, High: ratio + 0.1, Judged: true, Verdict: verdict}
			}
			comparisons := []hakaru.Comparison{
				against("base", "v", 1.45, hakaru.Better),
				against("base", "w", 1.40, hakaru.Better),
				against("v", "w", 1, test.direct),
			}
			got := compare.Judge(m.exp, compare.Freeze(m.exp, nil), m.history, comparisons, nil).Strata[0]
			if got.Winner != test.winner || fmt.Sprint(got.Ties) != fmt.Sprint(test.ties) {
				t.Errorf("%+v", got)
			}
		})
	}
}
