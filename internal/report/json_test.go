package report

import (
	"bytes"
	"encoding/json"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"hakaru"
	"hakaru/internal/layout"
)

// strict decodes and refuses fields that the type does not have.
func strict(t *testing.T, data []byte, into any) {
	t.Helper()
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	if err := dec.Decode(into); err != nil {
		t.Fatalf("%v\n%s", err, data)
	}
}

func TestJSONRoundTrip(t *testing.T) {
	for name := range cases() {
		var b bytes.Buffer
		if err := JSON(&b, caseInput(name)); err != nil {
			t.Fatal(err)
		}
		var r Report
		strict(t, b.Bytes(), &r)
		var again bytes.Buffer
		if err := writeJSON(&again, r); err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(b.String(), again.String()); d != "" {
			t.Errorf("%s: %s", name, d)
		}
		if bytes.Contains(b.Bytes(), []byte(layout.Nbsp)) {
			t.Errorf("%s holds blanks meant for the terminal", name)
		}
	}
}

// TestJSONNames reads the report as a stranger does, by the names that were
// promised.
func TestJSONNames(t *testing.T) {
	var b bytes.Buffer
	if err := JSON(&b, caseInput("winner")); err != nil {
		t.Fatal(err)
	}
	golden(t, "winner.json", b.Bytes())
	var r map[string]any
	if err := json.Unmarshal(b.Bytes(), &r); err != nil {
		t.Fatal(err)
	}
	has := func(what string, v any, names ...string) {
		t.Helper()
		m, ok := v.(map[string]any)
		if !ok {
			t.Fatalf("%s is %T, no object", what, v)
		}
		for _, n := range names {
			if _, ok := m[n]; !ok {
				t.Errorf("%s has no %s", what, n)
			}
		}
	}
	first := func(v any) any {
		t.Helper()
		l, ok := v.([]any)
		if !ok || len(l) == 0 {
			t.Fatalf("%v is no list, or empty", v)
		}
		return l[0]
	}
	has("report", r, "format", "run", "answer", "goal", "variants", "limits", "comparisons", "trials", "environment", "warnings")
	has("run", r["run"], "id", "name", "started", "ended", "state")
	has("answer", r["answer"], "text", "winner", "state")
	has("limit", first(r["limits"]), "metric", "variant", "limit", "low", "high", "verdict")
	has("comparison", first(r["comparisons"]), "metric", "at", "base", "other", "ratio", "low", "high", "verdict", "blocks", "more_blocks")
	trial := first(r["trials"])
	has("trial", trial, "seq", "phase", "block", "attempt", "variant", "void", "measurements", "proofs", "warnings")
	has("proof", first(trial.(map[string]any)["proofs"]), "setting", "asked", "found", "source", "when", "holds")
	answer := r["answer"].(map[string]any)
	if answer["winner"] != "processes" || answer["state"] != "better" || !strings.HasPrefix(answer["text"].(string), "processes serves 3.97 times") {
		t.Errorf("answer %v", answer)
	}
	if c := first(r["comparisons"]).(map[string]any); c["verdict"] != "better" || c["ratio"] != 3.97 {
		t.Errorf("comparison %v", c)
	}
	if v := trial.(map[string]any)["measurements"].(map[string]any)["throughput"].(map[string]any)["value"]; v != 187.4*0.99 {
		t.Errorf("throughput %v", v)
	}
	if first(trial.(map[string]any)["proofs"]).(map[string]any)["holds"] != "yes" || first(r["limits"]).(map[string]any)["verdict"] != "meets" {
		t.Error("words for holds or for verdicts of limits")
	}
}

// TestJSONUnknownIsNull: what is not known is null, never 0.
func TestJSONUnknownIsNull(t *testing.T) {
	in := caseInput("interrupted-before-first-look")
	nan := 0.0
	nan /= nan
	in.Limits[0].Value, in.Limits[0].Trials = nan, 2
	in.History[0].Measurements[0].Value = nan
	var b bytes.Buffer
	if err := JSON(&b, in); err != nil {
		t.Fatal(err)
	}
	var r Report
	strict(t, b.Bytes(), &r)
	if c := r.Comparisons[0]; c.Ratio != nil || c.Low != nil || c.High != nil || c.Verdict != hakaru.Unclear {
		t.Errorf("comparison before the first look: %+v", c)
	}
	if l := r.Limits[0]; l.Value != nil || l.Low != nil || l.High != nil || l.Verdict != hakaru.NotShown {
		t.Errorf("limit that is not shown: %+v", l)
	}
	if m := r.Trials[0].Measurements[hakaru.Throughput]; m.Value != nil || m.Unit != "1/s" {
		t.Errorf("measurement that is no number: %+v", m)
	}
}

// TestJSONNoInterval: a ratio may be known where its interval is not.
func TestJSONNoInterval(t *testing.T) {
	var b bytes.Buffer
	if err := JSON(&b, caseInput("no-interval")); err != nil {
		t.Fatal(err)
	}
	var r Report
	strict(t, b.Bytes(), &r)
	for i, c := range r.Comparisons {
		if c.Low != nil || c.High != nil || c.SameLow != nil || c.SameHigh != nil || (c.Ratio == nil) != (i == 2) {
			t.Errorf("%d: %+v", i, c)
		}
	}
}

func TestJSONPerService(t *testing.T) {
	r := hakaru.Result{Measurements: []hakaru.Measurement{
		{Metric: hakaru.Memory, Of: "app", Value: 2, Unit: "B"}, {Metric: hakaru.Memory, Value: 5, Unit: "B"}, {Metric: hakaru.Memory, Of: "db", Value: 3, Unit: "B"}}}
	want := MeasurementJSON{pointer(5.0), "B", map[string]*float64{"app": pointer(2.0), "db": pointer(3.0)}, false}
	if d := cmp.Diff(want, trialJSON(&r).Measurements[hakaru.Memory]); d != "" {
		t.Error(d)
	}
}

// TestDocumented keeps docs/report-json.md complete: each field of each
// document has a row, and no row is left of a field that is gone; and the
// examples are documents of those types.
func TestDocumented(t *testing.T) {
	data, err := os.ReadFile("../../docs/report-json.md")
	if err != nil {
		t.Fatal(err)
	}
	doc := string(data)
	for heading, typ := range map[string]reflect.Type{"## The report": reflect.TypeFor[Report](), "## The list of runs": reflect.TypeFor[ListJSON]()} {
		_, part, found := strings.Cut(doc, heading+"\n")
		if !found {
			t.Fatalf("no section %q", heading)
		}
		part, _, _ = strings.Cut(part, "\n## ")
		var documented []string
		for _, m := range regexp.MustCompile("(?m)^\\| `([^`]+)`").FindAllStringSubmatch(part, -1) {
			documented = append(documented, m[1])
		}
		fields := paths(typ, "")
		for _, f := range fields {
			if !slices.Contains(documented, f) {
				t.Errorf("%s: %s is not documented", heading, f)
			}
		}
		for _, d := range documented {
			if !slices.Contains(fields, d) {
				t.Errorf("%s: %s is documented and does not exist", heading, d)
			}
		}
		examples := regexp.MustCompile("(?s)```json\n(.*?)```").FindAllStringSubmatch(part, -1)
		if len(examples) == 0 {
			t.Errorf("%s has no example", heading)
		}
		for _, e := range examples {
			strict(t, []byte(e[1]), reflect.New(typ).Interface())
		}
	}
}

// paths lists the fields of a type as a reader of JSON writes them:
// trials[].proofs[].holds, measurements.*.value.
func paths(t reflect.Type, prefix string) []string {
	switch t.Kind() {
	case reflect.Pointer:
		return paths(t.Elem(), prefix)
	case reflect.Slice:
		return paths(t.Elem(), prefix+"[]")
	case reflect.Map:
		return paths(t.Elem(), prefix+".*")
	case reflect.Struct:
		if t == reflect.TypeFor[time.Time]() {
			return nil
		}
		var all []string
		for i := range t.NumField() {
			name := strings.TrimPrefix(prefix+"."+t.Field(i).Tag.Get("json"), ".")
			if t.Field(i).Type.Kind() == reflect.Slice {
				all = append(all, name+"[]")
			} else {
				all = append(all, name)
			}
			all = append(all, paths(t.Field(i).Type, name)...)
		}
		return all
	}
	return nil
}

func TestList(t *testing.T) {
	runs := []hakaru.RunInfo{
		{ID: "k3f9a", Name: "fib", Started: began.Add(time.Hour), State: hakaru.RunRunning, Trials: 3},
		{ID: "b2cde", Name: "allocator-in-a-database", Started: began, Ended: pointer(began.Add(4*time.Minute + 11*time.Second)), State: hakaru.RunInterrupted, Trials: 27, Void: 2},
	}
	var text, data, none bytes.Buffer
	if err := List(&text, runs, "text"); err != nil {
		t.Fatal(err)
	}
	golden(t, "list.txt", text.Bytes())
	if err := List(&data, runs, "json"); err != nil {
		t.Fatal(err)
	}
	golden(t, "list.json", data.Bytes())
	var l ListJSON
	strict(t, data.Bytes(), &l)
	if len(l.Runs) != 2 || l.Runs[1].ID != "b2cde" || l.Runs[0].Ended != nil {
		t.Errorf("%+v", l)
	}
	if err := List(&none, nil, "json"); err != nil || !strings.Contains(none.String(), `"runs": []`) {
		t.Errorf("no runs: %s, %v", none.String(), err)
	}
	if err := List(&none, nil, "xml"); err == nil {
		t.Error("a format that there is not")
	}
}

func TestShow(t *testing.T) {
	in := sample()
	var b bytes.Buffer
	if err := Trials(&b, in.Run, in.History[:13], layout.Style{}); err != nil {
		t.Fatal(err)
	}
	golden(t, "trials.txt", b.Bytes())

	r := in.History[12] // the re-run of the void one
	r.Host = "local"
	r.Proofs = append(r.Proofs, hakaru.Proof{Service: "service", Setting: "password", Asked: "GEHEIM", Found: "GEHEIM", Source: "environ of pid 12", When: hakaru.AtEnd, Holds: hakaru.No},
		hakaru.Proof{Service: "service", Setting: "lifetime", Asked: "30", Source: "kind command knows no way to see it"})
	r.Warnings = []hakaru.Warning{{Code: "x", Message: "other programs took 12 % of the machine"}}
	for i := range 6 {
		r.Buckets = append(r.Buckets, hakaru.Bucket{At: time.Duration(i) * hakaru.BucketWidth, Good: uint64(370 + i)})
	}
	r.Buckets[3].Bad, r.Buckets[3].Kinds = 5, map[string]uint64{"reset": 2, "timeout": 3}
	outputs := []hakaru.Output{{Service: "service", Text: "listening on 127.0.0.1:4000\npassword: GEHEIM\nrequest took \x1b[31m5 ms\x1b[0m\n", Cut: 12345}, {Service: "nginx"}}
	b.Reset()
	if err := Trial(&b, in.Run, r, outputs, layout.Style{}); err != nil {
		t.Fatal(err)
	}
	golden(t, "trial.txt", b.Bytes())
	b.Reset()
	if err := Trial(&b, in.Run, in.History[11], nil, layout.Style{}); err != nil {
		t.Fatal(err)
	}
	golden(t, "trial-void.txt", b.Bytes())
}
