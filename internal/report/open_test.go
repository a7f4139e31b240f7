package report

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"hakaru"
	"hakaru/internal/latency"
	"hakaru/internal/layout"
)

func lag(t *testing.T) []byte {
	t.Helper()
	var h latency.Histogram
	for range 98 {
		h.Record(20 * time.Microsecond)
	}
	for range 2 {
		h.Record(400 * time.Microsecond)
	}
	b, err := h.Encode()
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// openTrial is a trial with both loops.
func openTrial(t *testing.T) hakaru.Result {
	r := sample().History[8]
	r.Open = &hakaru.OpenPhase{Rate: 131, Share: 0.7, WarmUp: 500 * time.Millisecond, Window: time.Second,
		Tally: &hakaru.Tally{Due: 131, Queued: 12, Unsent: 3, Lag: lag(t)}}
	for i := range 3 {
		r.Open.Buckets = append(r.Open.Buckets, hakaru.Bucket{At: time.Duration(i) * hakaru.BucketWidth, Good: 65, Bad: uint64(i), Kinds: map[string]uint64{"timeout": uint64(i)}})
	}
	r.Measurements = append(r.Measurements, hakaru.Measurement{Metric: hakaru.P50, Value: 0.0051, Unit: "s", Open: true}, hakaru.Measurement{Metric: hakaru.ClosedP50, Value: 0.085, Unit: "s"})
	return r
}

// searchTrial is one whose load was a search for the capacity.
func searchTrial() hakaru.Result {
	r := sample().History[8]
	r.Measurements = []hakaru.Measurement{{Metric: hakaru.Capacity, Value: 744.2, Unit: "1/s"}}
	r.Capacity = &hakaru.CapacityReport{Value: 744.2, Low: 731, High: 760, Steps: []hakaru.CapacityStep{
		{Rate: 700, Achieved: 699.8, Values: map[string]float64{"p99<50ms": 0.021}, Holds: true},
		{Rate: 800, Achieved: 760.2, Errors: 0.02, Values: map[string]float64{"p99<50ms": 0.31}, Why: "p99 310 ms, want below 50 ms"},
		{Rate: 750, Achieved: 749, Void: "it used 95 % of its CPUs"},
	}}
	return r
}

func TestTrialsWithLoops(t *testing.T) {
	for name, r := range map[string]hakaru.Result{"trial-open": openTrial(t), "trial-capacity": searchTrial()} {
		t.Run(name, func(t *testing.T) {
			var b bytes.Buffer
			if err := Trial(&b, sample().Run, r, nil, layout.Style{}); err != nil {
				t.Fatal(err)
			}
			path := filepath.Join("testdata", name+".txt")
			if *update {
				if err := os.WriteFile(path, b.Bytes(), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), b.String()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestLoopsJSON(t *testing.T) {
	r := openTrial(t)
	text := func(v any) string {
		b, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	j := trialJSON(&r)
	want := `{"rate":131,"share":0.7,"whole":false,"warm_up_seconds":0.5,"window_seconds":1,"due":131,"queued":12,"unsent":3,"lag_p50_seconds":0.00002,"lag_p99_seconds":0.0004}`
	if *j.Open.Lag50 < 19e-6 || *j.Open.Lag50 > 21e-6 || *j.Open.Lag99 < 390e-6 || *j.Open.Lag99 > 410e-6 {
		t.Errorf("lag %v, %v", *j.Open.Lag50, *j.Open.Lag99)
	}
	*j.Open.Lag50, *j.Open.Lag99 = 0.00002, 0.0004 // a cell of the histogram wide
	if got := text(j.Open); got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
	if m := j.Measurements; !m[hakaru.P50].Open || m[hakaru.ClosedP50].Open || m[hakaru.Throughput].Open {
		t.Errorf("%+v", m)
	}
	r.Open = &hakaru.OpenPhase{Rate: 2000, Whole: true}
	if got := text(trialJSON(&r).Open); got != `{"rate":2000,"share":null,"whole":true,"warm_up_seconds":0,"window_seconds":0,"due":null,"queued":null,"unsent":null,"lag_p50_seconds":null,"lag_p99_seconds":null}` {
		t.Error(got)
	}
	r = searchTrial()
	want = `{"value":744.2,"low":731,"high":760,"reached":"","steps":[` +
		`{"rate":700,"achieved":699.8,"errors":0,"values":{"p99\u003c50ms":0.021},"holds":true,"why":"","void":""},` +
		`{"rate":800,"achieved":760.2,"errors":0.02,"values":{"p99\u003c50ms":0.31},"holds":false,"why":"p99 310 ms, want below 50 ms","void":""},` +
		`{"rate":750,"achieved":749,"errors":0,"values":{},"holds":false,"why":"","void":"it used 95 % of its CPUs"}]}`
	if got := text(trialJSON(&r).Capacity); got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
}
