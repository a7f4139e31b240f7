package loadreport

import (
	"bytes"
	"encoding/json"
	"flag"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	hdr "github.com/HdrHistogram/hdrhistogram-go"
	"github.com/google/go-cmp/cmp"

	"hakaru"
	"hakaru/internal/condition"
	"hakaru/internal/latency"
	"hakaru/internal/layout"
)

var update = flag.Bool("update", false, "rewrite the golden files")

const ms = time.Millisecond

// spread encodes n latencies that grow evenly on a scale of logarithms.
func spread(t *testing.T, n int, low, high time.Duration) []byte {
	t.Helper()
	var h latency.Histogram
	for i := range n {
		at := float64(i) / float64(max(n-1, 1))
		h.Record(time.Duration(float64(low) * math.Pow(float64(high)/float64(low), at)))
	}
	b, err := h.Encode()
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func conditions(t *testing.T, text string) []hakaru.Condition {
	t.Helper()
	c, err := condition.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// closed is a closed loop in which all went well.
func closed(t *testing.T) Load {
	return Load{
		Request: hakaru.HTTPRequest{URL: "http://localhost:8080/page", Method: "GET", Connections: 8, KeepAlive: true, Timeout: 10 * time.Second},
		Window:  hakaru.Window{WarmUp: time.Second, Length: 10 * time.Second},
		Started: time.Date(2026, 3, 1, 9, 30, 0, 0, time.UTC),
		Report: hakaru.LoadReport{Connections: 8, Tally: &hakaru.Tally{
			Took: 10 * time.Second, Good: 40_000, Bytes: 9_600_000, Statuses: map[int]uint64{200: 40_000},
			Latency: spread(t, 40_000, 300*time.Microsecond, 9*ms), Service: spread(t, 40_000, 300*time.Microsecond, 9*ms),
			Waiting: spread(t, 40_000, 280*time.Microsecond, 8*ms), Connect: spread(t, 8, 90*time.Microsecond, 400*time.Microsecond),
			Engine: "epoll", Threads: 2, CPU: 0.61, CPUs: 2, Waited: 0.02, GCs: 2, GCPause: 85 * time.Microsecond,
			Address: "127.0.0.1:8080",
		}},
	}
}

// open is an open loop whose rate the service could not keep.
func open(t *testing.T) Load {
	l := closed(t)
	l.Request.Arrival = &hakaru.Arrival{Law: hakaru.ConstantRate, Rate: 5000}
	l.Window.WarmUp = 0
	l.Conditions = conditions(t, "p99<50ms,throughput>1000/s")
	r := l.Report.Tally
	r.Due, r.Queued, r.Unsent = 50_000, 31_000, 9_992
	r.Latency, r.Lag = spread(t, 40_000, 300*time.Microsecond, 2*time.Second), spread(t, 40_000, 2*time.Microsecond, 25*time.Microsecond)
	return l
}

func with(l Load, change func(l *Load, t *hakaru.Tally)) Load {
	change(&l, l.Report.Tally)
	return l
}

// loads are those of the golden files.
func loads(t *testing.T) map[string]Load {
	return map[string]Load{
		"closed": closed(t),
		"open":   open(t),
		"all-502": with(closed(t), func(l *Load, r *hakaru.Tally) {
			r.Failed = r.Latency
			r.Good, r.Bad, r.Kinds, r.Statuses = 0, 40_000, map[string]uint64{"server_error": 40_000}, map[int]uint64{502: 40_000}
			r.Latency, r.Service, r.Waiting = nil, nil, nil
			l.Report.Samples = []hakaru.Sample{{Kind: hakaru.ServiceErrors, Text: `got 502 Bad Gateway, body begins "no upstream; password=GEHEIM"`}}
		}),
		"refused": with(closed(t), func(l *Load, r *hakaru.Tally) {
			l.Window.WarmUp, l.Report.Connections, l.Stopped = 0, 0, "stopped after 1 s, in which nobody took a connection"
			*r = hakaru.Tally{Took: time.Second, Bad: 48, Kinds: map[string]uint64{"refused": 48}, Failed: spread(t, 48, 80*time.Microsecond, ms), Engine: "epoll", Threads: 2, CPUs: 2, CPU: 0.01, Address: "127.0.0.1:8080"}
			l.Report.Samples = []hakaru.Sample{{Kind: hakaru.Refused, Text: "connect to 127.0.0.1:8080: connection refused"}}
		}),
		"dies": with(closed(t), func(l *Load, r *hakaru.Tally) {
			l.Request.URL = "http://me:GEHEIM@localhost:8080/page"
			r.Bad, r.Kinds, r.Failed = 2_008, map[string]uint64{"refused": 2000, "reset": 8}, spread(t, 2008, 80*time.Microsecond, ms)
			l.Report.Samples = []hakaru.Sample{{Kind: hakaru.Reset, Text: "read: connection reset by peer"}, {Kind: hakaru.Refused, Text: "connect to 127.0.0.1:8080: connection refused"}}
		}),
		"never-answers": with(closed(t), func(l *Load, r *hakaru.Tally) {
			*r = hakaru.Tally{Took: 10 * time.Second, Connect: r.Connect, Engine: "epoll", Threads: 2, CPUs: 2, Address: "127.0.0.1:8080"}
		}),
		"interrupted": with(closed(t), func(l *Load, r *hakaru.Tally) {
			l.Stopped, r.Took, r.Good, r.Resolved = "interrupted by SIGINT", 2500*ms, 10_000, []string{"[::1]:8080", "127.0.0.1:8080"}
			l.Request.KeepAlive, l.Request.Method, r.Connects, r.Retried = false, "POST", 10_000, 3
		}),
		"capacity": with(open(t), func(l *Load, r *hakaru.Tally) {
			l.Conditions, l.Window = nil, hakaru.Window{}
			l.Search = &hakaru.CapacitySpec{Holds: conditions(t, "p99<50ms,errors<0.1%"), Steps: 24, Settle: 500 * ms, Step: 2 * time.Second}
			l.Request.Arrival = &hakaru.Arrival{Law: hakaru.ConstantRate}
			r.Took, r.Due, r.Good, r.Unsent, r.Queued = 10*time.Second, 40_000, 39_998, 0, 0
			r.Latency = r.Service
			l.Report.Capacity = &hakaru.CapacityReport{Value: 4120, Low: 4010, High: 4190, Steps: []hakaru.CapacityStep{
				{Rate: 2800, Achieved: 2800, Holds: true, Latency: spread(t, 5600, ms, 5*ms), Values: map[string]float64{"p99<50ms": 0.0048, "errors<0.1%": 0}},
				{Rate: 5600, Achieved: 4300, Errors: 0.002, Why: "p99 812 ms, want below 50 ms", Latency: spread(t, 8600, ms, 850*ms), Values: map[string]float64{"p99<50ms": 0.812, "errors<0.1%": 0.002}},
				{Rate: 4000, Achieved: 4000, Holds: true, Latency: spread(t, 8000, ms, 20*ms)},
				{Rate: 4200, Void: "the generator used 93 % of its CPUs"},
			}}
		}),
		"no-capacity": with(open(t), func(l *Load, r *hakaru.Tally) {
			l.Conditions, l.Window = nil, hakaru.Window{}
			l.Search = &hakaru.CapacitySpec{Holds: conditions(t, "p99<1ms"), Steps: 24, Settle: 500 * ms, Step: 2 * time.Second}
			l.Request.Arrival = nil
			r.Due = 0
			l.Report.Capacity = &hakaru.CapacityReport{Steps: []hakaru.CapacityStep{{Rate: 10, Achieved: 10, Why: "p99 4 ms, want below 1 ms", Latency: spread(t, 20, 3*ms, 4*ms)}}}
		}),
	}
}

func read(t *testing.T, l Load) *Result {
	t.Helper()
	r, err := Read(l)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), string(got)); d != "" {
		t.Errorf("%s (-want +got):\n%s", path, d)
	}
}

func TestText(t *testing.T) {
	for name, l := range loads(t) {
		var b bytes.Buffer
		if err := read(t, l).Text(&b, layout.Style{Width: 80}); err != nil {
			t.Fatal(err)
		}
		golden(t, name+".txt", b.Bytes())
		if strings.Contains(b.String(), "GEHEIM") {
			t.Errorf("%s tells a secret", name)
		}
	}
}

// TestFailures: what is not as asked for is said, one sentence each, and nothing
// else is.
func TestFailures(t *testing.T) {
	for _, c := range []struct {
		name string
		load Load
		want []string
	}{
		{"all right", closed(t), nil},
		{"one bad answer", with(closed(t), func(l *Load, r *hakaru.Tally) { r.Bad, r.Kinds = 1, map[string]uint64{"reset": 1} }),
			[]string{"1 of 40001 requests failed: connection reset 1"}},
		{"errors that were allowed", with(closed(t), func(l *Load, r *hakaru.Tally) {
			r.Bad, r.Kinds, l.Conditions = 1, map[string]uint64{"reset": 1}, conditions(t, "errors<1%")
		}), nil},
		{"more errors than allowed", with(closed(t), func(l *Load, r *hakaru.Tally) {
			r.Bad, r.Kinds, l.Conditions = 10_000, map[string]uint64{"reset": 10_000}, conditions(t, "errors<1%")
		}), []string{"errors 20 %, want below 1 %"}},
		{"nothing measured", with(closed(t), func(l *Load, r *hakaru.Tally) { *r = hakaru.Tally{} }), []string{"nothing was measured"}},
		{"no connection", with(closed(t), func(l *Load, r *hakaru.Tally) {
			*r, l.Report.Connections = hakaru.Tally{Took: time.Second}, 0
		}), []string{"not one connection could be made within 1 s"}},
		{"no answer", with(closed(t), func(l *Load, r *hakaru.Tally) { *r = hakaru.Tally{Took: time.Second} }),
			[]string{"the service took connections and not one answer came within 1 s"}},
		{"all of -n", with(closed(t), func(l *Load, r *hakaru.Tally) { l.Request.Requests = 40_000 }), nil},
		{"not all of -n", with(closed(t), func(l *Load, r *hakaru.Tally) { l.Request.Requests = 50_000 }),
			[]string{"only 40000 of 50000 requests were answered within 10 s"}},
		{"rate reached, some out at the end", with(open(t), func(l *Load, r *hakaru.Tally) { l.Conditions, r.Due, r.Unsent = nil, 40_008, 0 }), nil},
		{"few requests, all connections out at the end", with(open(t), func(l *Load, r *hakaru.Tally) {
			l.Conditions, r.Due, r.Unsent, r.Good = nil, 20, 0, 12
		}), nil},
		{"rate kept by -n requests, the last of which takes its time", with(open(t), func(l *Load, r *hakaru.Tally) {
			l.Conditions, l.Request.Requests, r.Good, r.Due, r.Unsent = nil, 100, 100, 5000, 0
			r.Took, r.Service = 1020*ms, spread(t, 100, ms, time.Second)
		}), nil},
		{"rate missed by -n requests", with(open(t), func(l *Load, r *hakaru.Tally) {
			l.Conditions, l.Request.Requests, r.Due, r.Unsent = nil, 40_000, 50_000, 0
		}), []string{"the offered rate was not reached: 4000/s of 5000/s (80 %)"}},
		{"rate missed", open(t), []string{"the offered rate was not reached: 4000/s of 5000/s (80 %)", "p99 1.83 s, want below 50 ms"}},
		{"bad answers reach the rate too", with(open(t), func(l *Load, r *hakaru.Tally) {
			l.Conditions, r.Unsent, r.Bad, r.Kinds = nil, 0, 10_000, map[string]uint64{"server_error": 10_000}
		}), []string{"10000 of 50000 requests failed: server error 10000"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if d := cmp.Diff(c.want, read(t, c.load).Failures); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestJSON(t *testing.T) {
	for name, l := range loads(t) {
		var b bytes.Buffer
		if err := read(t, l).JSON(&b); err != nil {
			t.Fatal(err)
		}
		var r Report
		strict(t, b.Bytes(), &r)
		if strings.Contains(b.String(), "GEHEIM") || strings.Contains(b.String(), layout.Nbsp) {
			t.Errorf("%s holds a secret, or blanks for the terminal", name)
		}
		if want := name == "closed" || name == "capacity"; r.OK != want {
			t.Errorf("%s: ok %v, failures %v", name, r.OK, r.Failures)
		}
		if name == "open" {
			golden(t, "open.json", regexp.MustCompile(`"hdr": "[^"]*"`).ReplaceAll(b.Bytes(), []byte(`"hdr": "…"`)))
			h, err := latency.Decode(r.Latency.HDR)
			if err != nil || h.Count() != 40_000 || h.Quantile(0.99).Seconds() != *r.Latency.P99 {
				t.Errorf("the histogram is not the one of the figures: %v", err)
			}
		}
	}
}

func strict(t *testing.T, data []byte, into any) {
	t.Helper()
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	if err := dec.Decode(into); err != nil {
		t.Fatalf("%v\n%s", err, data)
	}
}

// TestFewValues: a quantile that no value lies above is not known.
func TestFewValues(t *testing.T) {
	l := with(closed(t), func(l *Load, r *hakaru.Tally) { r.Good, r.Latency = 100, spread(t, 100, ms, 2*ms) })
	j, err := read(t, l).report()
	if err != nil {
		t.Fatal(err)
	}
	if s := j.Latency; s.P99 == nil || s.P999 != nil || s.P9999 != nil || s.Max == 0 {
		t.Errorf("of 100 values: %+v", s)
	}
	if j.Failed != nil || j.Open != nil || j.Capacity != nil || j.Asked.Law != nil {
		t.Errorf("what there is not is null: %+v", j)
	}
}

// TestDocumented keeps docs/load.md complete: a row for each field, and none of a
// field that is gone.
func TestDocumented(t *testing.T) {
	data, err := os.ReadFile("../../docs/load.md")
	if err != nil {
		t.Fatal(err)
	}
	_, part, found := strings.Cut(string(data), "## JSON\n")
	if !found {
		t.Fatal("no section JSON")
	}
	part, _, _ = strings.Cut(part, "\n## ")
	var documented []string
	for _, m := range regexp.MustCompile("(?m)^\\| `([^`]+)`").FindAllStringSubmatch(part, -1) {
		documented = append(documented, m[1])
	}
	fields := paths(reflect.TypeFor[Report](), "")
	for _, f := range fields {
		// A spread has its own rows, once.
		if slices.Contains(documented, f) {
			continue
		}
		t.Errorf("%s is not documented", f)
	}
	for _, d := range documented {
		if !slices.Contains(fields, d) {
			t.Errorf("%s is documented and does not exist", d)
		}
	}
	if !slices.Contains(fields, "latency.p99_seconds") || !slices.Contains(fields, "capacity.steps[].why") {
		t.Errorf("fields %v", fields)
	}
}

// paths lists the fields of a type as a reader of JSON writes them; those of a
// spread of its first occurrence only.
func paths(t reflect.Type, prefix string) (all []string) {
	switch t.Kind() {
	case reflect.Pointer:
		return paths(t.Elem(), prefix)
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			return nil
		}
		return paths(t.Elem(), prefix+"[]")
	case reflect.Struct:
		if t == reflect.TypeFor[time.Time]() || t == reflect.TypeFor[SpreadJSON]() && prefix != "latency" {
			return nil
		}
		for i := range t.NumField() {
			f := t.Field(i)
			name := strings.TrimPrefix(prefix+"."+f.Tag.Get("json"), ".")
			if f.Type.Kind() == reflect.Slice && f.Type.Elem().Kind() != reflect.Uint8 {
				all = append(all, name+"[]")
			} else {
				all = append(all, name)
			}
			all = append(all, paths(f.Type, name)...)
		}
	}
	return all
}

// buckets are those of a load whose answers took 10 ms in its first second and
// 20 ms from then on.
func buckets(t *testing.T, n int) (all []hakaru.Bucket) {
	for i := range n {
		d := 10 * ms
		if i >= 2 {
			d = 20 * ms
		}
		b := hakaru.Bucket{At: time.Duration(i) * hakaru.BucketWidth, Good: 100, Latency: spread(t, 100, d, d)}
		if i == 3 {
			b.Bad, b.Kinds = 2, map[string]uint64{"reset": 2}
		}
		all = append(all, b)
	}
	return all
}

// seconds runs buckets through Seconds.
func seconds(t *testing.T, l Load, n int, took time.Duration, to ...func(Second) error) {
	t.Helper()
	s := &Seconds{Load: l, To: to}
	for _, b := range buckets(t, n) {
		s.Add(b)
	}
	if err := s.End(took); err != nil {
		t.Fatal(err)
	}
}

func TestSeconds(t *testing.T) {
	l := closed(t)
	l.Window.WarmUp = 500 * ms
	l.Request.Arrival = &hakaru.Arrival{Law: hakaru.RampRate, Rate: 0, To: 400, Over: 2 * time.Second}
	var csv bytes.Buffer
	line, err := CSV(&csv)
	if err != nil {
		t.Fatal(err)
	}
	var live []string
	seconds(t, l, 6, 2300*ms, line, func(s Second) error { live = append(live, s.Live()); return nil })
	golden(t, "seconds.csv", csv.Bytes())
	golden(t, "live.txt", []byte(strings.Join(live, "\n")+"\n"))
}

// TestHDRLog reads the log as HdrHistogram's own reader does.
func TestHDRLog(t *testing.T) {
	l := closed(t)
	var log bytes.Buffer
	line, err := HDRLog(&log, l.Started)
	if err != nil {
		t.Fatal(err)
	}
	seconds(t, l, 7, 2500*ms, line) // a second of warm-up, which is left out
	if !strings.HasPrefix(log.String(), "#[") || strings.Count(log.String(), "HISTFAAAA") != 3 {
		t.Errorf("log\n%s", log.String())
	}
	reader := hdr.NewHistogramLogReader(&log)
	var counts []int64
	var begins []int64
	for {
		h, err := reader.NextIntervalHistogram()
		if err != nil {
			t.Fatal(err)
		}
		if h == nil {
			break
		}
		counts, begins = append(counts, h.TotalCount()), append(begins, h.StartTimeMs()-l.Started.UnixMilli())
		if p := time.Duration(h.ValueAtQuantile(50)); p < 20*ms || p > 20*ms+ms/20 {
			t.Errorf("median %v, want 20ms", p)
		}
	}
	if d := cmp.Diff([]int64{200, 200, 100}, counts); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff([]int64{1000, 2000, 3000}, begins); d != "" {
		t.Error(d)
	}
}

func TestOffered(t *testing.T) {
	ramp := &hakaru.Arrival{Law: hakaru.RampRate, Rate: 100, To: 300, Over: 10 * time.Second}
	steps := &hakaru.Arrival{Law: hakaru.StepRates, Steps: []hakaru.RateStep{{Rate: 10, For: time.Second}, {Rate: 0, For: time.Second}, {Rate: 30, For: time.Second}}}
	for _, c := range []struct {
		name     string
		law      *hakaru.Arrival
		from, to time.Duration
		want     float64
	}{
		{"closed", nil, 0, time.Second, math.NaN()},
		{"constant", &hakaru.Arrival{Law: hakaru.ConstantRate, Rate: 7}, 5 * time.Second, 6 * time.Second, 7},
		{"ramp, all", ramp, 0, 10 * time.Second, 200},
		{"ramp, its middle", ramp, 4500 * ms, 5500 * ms, 200},
		{"ramp, beyond", ramp, 11 * time.Second, 12 * time.Second, 300},
		{"steps, across", steps, 500 * ms, 2500 * ms, 10},
		{"steps, over", steps, 3 * time.Second, 4 * time.Second, 0},
	} {
		if got := Offered(c.law, c.from, c.to); math.Abs(got-c.want) > 1e-9 || math.IsNaN(got) != math.IsNaN(c.want) {
			t.Errorf("%s: %g, want %g", c.name, got, c.want)
		}
	}
}

// TestDrawn: every value is in a class, there are few of them, and the borders lie
// around all values.
func TestDrawn(t *testing.T) {
	for _, c := range []struct{ low, high time.Duration }{
		{0, 0}, {ms, ms}, {ms, 1001 * time.Microsecond}, {10 * time.Microsecond, 10 * time.Minute}, {999 * ms, time.Second}, {time.Microsecond, 2 * time.Microsecond},
	} {
		edges := edgesFor(c.low, c.high)
		if n := len(edges) - 1; n < 1 || n > lines {
			t.Errorf("%v to %v: %d classes %v", c.low, c.high, n, edges)
		}
		if !slices.IsSorted(edges) || edges[0] > max(c.low, time.Microsecond) || edges[len(edges)-1] <= c.high {
			t.Errorf("%v to %v: borders %v", c.low, c.high, edges)
		}
	}
	h, err := latency.Decode(spread(t, 1000, ms, 100*ms))
	if err != nil {
		t.Fatal(err)
	}
	total := 0.0
	for _, m := range regexp.MustCompile(`([0-9.]+)%`).FindAllStringSubmatch(drawn(h), -1) {
		var share float64
		if err := json.Unmarshal([]byte(m[1]), &share); err != nil {
			t.Fatal(err)
		}
		total += share
	}
	if math.Abs(total-100) > 0.1 {
		t.Errorf("the classes hold %g %% of the values", total)
	}
	if drawn(&latency.Histogram{}) != "" {
		t.Error("something is drawn of nothing")
	}
}

// TestThresholdOnTooFew: a bound on a quantile that no answer lies above is not
// shown to hold, and has no value, as the quantile has none.
func TestThresholdOnTooFew(t *testing.T) {
	for _, c := range []struct {
		text  string
		n     int
		holds bool
		words string
	}{
		{"p99.99<1s", 10, false, "p99.99: 10 good answers are too few, want below 1 s"},
		{"p50<1s", 1, false, "p50: 1 good answer is too few, want below 1 s"},
		{"p90<1s", 10, true, ""},
		{"max<1s", 1, true, ""},
	} {
		l := closed(t)
		l.Conditions = conditions(t, c.text)
		r := l.Report.Tally
		r.Good, r.Latency, r.Statuses = uint64(c.n), spread(t, c.n, ms, 2*ms), map[int]uint64{200: uint64(c.n)}
		result, err := Read(l)
		if err != nil {
			t.Fatal(err)
		}
		o := result.outcomes[0]
		if o.Holds != c.holds || math.IsNaN(o.Value) == c.holds || !c.holds && o.Words != c.words || c.holds != (len(result.Failures) == 0) {
			t.Errorf("%s of %d: %+v, failures %v", c.text, c.n, o, result.Failures)
		}
	}
}
