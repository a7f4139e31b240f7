package condition

import (
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"hakaru"
	"hakaru/internal/latency"

	"github.com/google/go-cmp/cmp"
)

func TestParse(t *testing.T) {
	for _, c := range []struct {
		text   string
		want   []hakaru.Condition
		string string // empty: text
	}{
		{"p99<50ms", []hakaru.Condition{{Metric: "p99", Quantile: 0.99, Bound: 0.05}}, ""},
		{"errors<0.1%", []hakaru.Condition{{Metric: "errors", Bound: 0.001}}, ""},
		{"errors < 0.001", []hakaru.Condition{{Metric: "errors", Bound: 0.001}}, "errors<0.1%"},
		{"errors<0%", []hakaru.Condition{{Metric: "errors"}}, ""},
		{"throughput>1000/s", []hakaru.Condition{{Metric: "throughput", Bound: 1000, AtLeast: true}}, ""},
		{"throughput>=600/min", []hakaru.Condition{{Metric: "throughput", Bound: 10, AtLeast: true}}, "throughput>10/s"},
		{"p99.9<=80ms", []hakaru.Condition{{Metric: "p99.9", Quantile: 0.999, Bound: 0.08}}, "p99.9<80ms"},
		{"p99.99<1m30s", []hakaru.Condition{{Metric: "p99.99", Quantile: 0.9999, Bound: 90}}, ""},
		{"max<1s", []hakaru.Condition{{Metric: "max", Quantile: 1, Bound: 1}}, ""},
		{"p100<1s", []hakaru.Condition{{Metric: "max", Quantile: 1, Bound: 1}}, "max<1s"},
		{"p50.0<250us", []hakaru.Condition{{Metric: "p50", Quantile: 0.5, Bound: 250e-6}}, "p50<250µs"},
		{" p99 < 50 ms , errors<0.7 %,throughput > 0.3/s", []hakaru.Condition{
			{Metric: "p99", Quantile: 0.99, Bound: 0.05}, {Metric: "errors", Bound: 0.007}, {Metric: "throughput", Bound: 0.3, AtLeast: true},
		}, "p99<50ms,errors<0.7%,throughput>0.3/s"},
		{"p99>1ms,p99<2ms", []hakaru.Condition{
			{Metric: "p99", Quantile: 0.99, Bound: 0.001, AtLeast: true}, {Metric: "p99", Quantile: 0.99, Bound: 0.002},
		}, ""},
	} {
		got, err := Parse(c.text)
		if err != nil {
			t.Errorf("%s: %v", c.text, err)
			continue
		}
		near := cmp.Comparer(func(a, b float64) bool { return math.Abs(a-b) <= 1e-12 })
		if d := cmp.Diff(c.want, got, near); d != "" {
			t.Errorf("%s (-want +got)\n%s", c.text, d)
		}
		want := c.string
		if want == "" {
			want = c.text
		}
		if text := Join(got); text != want {
			t.Errorf("%s: printed as %s, want %s", c.text, text, want)
		}
		if again, err := Parse(Join(got)); err != nil || !cmp.Equal(got, again) {
			t.Errorf("%s: read again: %v, %v", Join(got), again, err)
		}
	}
}

func TestMistakes(t *testing.T) {
	for _, c := range []struct {
		text   string
		offset int
		says   string
		hint   string
	}{
		{"", 0, "a condition is missing", "such as p99<50ms"},
		{"p99<50ms,", 9, "a condition is missing", "such as"},
		{"p99", 3, "neither < nor >", "such as"},
		{"p99<", 4, "the bound is missing", "such as"},
		{"p99=50ms", 3, "never equal", "write < or >"},
		{"p99==50ms", 3, "never equal", "write < or >"},
		{"p99<50", 4, "it has no unit", "write p99<50ms, or 50s"},
		{"p99<fast", 4, "not a duration", ""},
		{"p99.9.9<1s", 0, `no figure "p99.9.9"`, "p99.9"},
		{"p0<1s", 0, "a quantile lies between", ""},
		{"p99.99999999999<1s", 0, "a quantile lies between", ""},
		{"p101<1s", 0, "a quantile lies between", ""},
		{"error<1%", 0, `no figure "error"`, `did you mean "errors"?`},
		{"mean<1s", 0, `no figure "mean"`, "write p50 or p99"},
		{"rps>100/s", 0, `no figure "rps"`, `"throughput"`},
		{"errors<5", 7, "more than everything", "write errors<5%"},
		{"p99<1s, throughput>100", 19, "not a rate", "write throughput>100/s"},
		{"p99<1s, p99<=2s", 8, "has a bound already, p99<1s", ""},
		{"p99<-1s", 4, "must not be negative", ""},
		{"errors<NaN", 7, "not a percentage", ""},
	} {
		_, err := Parse(c.text)
		e, is := errors.AsType[*Error](err)
		if !is {
			t.Errorf("%s: error %v, want a mistake", c.text, err)
			continue
		}
		if e.Offset != c.offset || !strings.Contains(e.Error(), c.says) || !strings.Contains(e.Hint(), c.hint) {
			t.Errorf("%s: at %d: %s (hint: %s)\nwant at %d: %s (hint: %s)", c.text, e.Offset, e, e.Hint(), c.offset, c.says, c.hint)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, text := range []string{"p99<50ms,errors<0.1%,throughput>1000/s", "p99.9<=80ms, max < 1s", "p1e2<3s", "errors<", "p.<1s,<"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got, err := Parse(text)
		if e, is := errors.AsType[*Error](err); err != nil {
			if !is || e.Offset < 0 || e.Offset > len(text) {
				t.Fatalf("%q: %#v: no mistake within the text", text, err)
			}
			return
		}
		again, err := Parse(Join(got))
		if err != nil || Join(again) != Join(got) {
			t.Fatalf("%q is %q, which is %q (%v)", text, Join(got), Join(again), err)
		}
	})
}

func tally(good, bad uint64, kinds map[string]uint64, each ...time.Duration) *hakaru.Tally {
	var h latency.Histogram
	for _, d := range each {
		h.Record(d)
	}
	encoded, err := h.Encode()
	if err != nil {
		panic(err)
	}
	return &hakaru.Tally{Took: 2 * time.Second, Good: good, Bad: bad, Kinds: kinds, Latency: encoded}
}

func TestCheck(t *testing.T) {
	own := string(hakaru.LoadPorts)
	for _, c := range []struct {
		name, text string
		tally      *hakaru.Tally
		holds      bool
		value      float64
		words      string
	}{
		{"below", "p99<50ms", tally(2, 0, nil, time.Millisecond, 40*time.Millisecond), true, 0.040, "p99 40 ms, want below 50 ms"},
		{"above", "p99<50ms", tally(2, 0, nil, time.Millisecond, 61*time.Millisecond), false, 0.061, "p99 61 ms, want below 50 ms"},
		{"the middle", "p50<50ms", tally(3, 0, nil, time.Millisecond, time.Millisecond, 61*time.Millisecond), true, 0.001, "p50 1 ms, want below 50 ms"},
		{"the highest", "max<50ms", tally(3, 0, nil, time.Millisecond, time.Millisecond, 61*time.Millisecond), false, 0.061, "max 61 ms, want below 50 ms"},
		{"no good answer", "p99<50ms", tally(0, 7, nil), false, math.NaN(), "p99: no good answer, want below 50 ms"},
		{"errors", "errors<1%", tally(98, 2, nil), false, 0.02, "errors 2 %, want below 1 %"},
		{"on the bound", "errors<2%", tally(98, 2, nil), true, 0.02, "errors 2 %, want below 2 %"},
		{"none", "errors<0%", tally(98, 0, nil), true, 0, "errors 0 %, want below 0 %"},
		{"the load host's", "errors<1%", tally(98, 2, map[string]uint64{own: 2}), true, 0, "errors 0 %, want below 1 %"},
		{"only the load host's", "errors<1%", tally(0, 2, map[string]uint64{own: 2}), false, math.NaN(), "errors: no answer, want below 1 %"},
		{"throughput", "throughput>40/s", tally(98, 2, nil), true, 49, "throughput 49/s, want above 40/s"},
		{"not enough", "throughput>50/s", tally(98, 2, nil), false, 49, "throughput 49/s, want above 50/s"},
		{"nothing", "throughput>50/s", &hakaru.Tally{}, false, 0, "throughput 0/s, want above 50/s"},
		{"unreadable", "p99<1s", &hakaru.Tally{Latency: []byte("no")}, false, math.NaN(), ""},
	} {
		conditions, err := Parse(c.text)
		if err != nil {
			t.Fatal(err)
		}
		got := Check(conditions, c.tally)
		if len(got) != 1 {
			t.Fatalf("%s: %d outcomes", c.name, len(got))
		}
		o := got[0]
		if o.Holds != c.holds || math.IsNaN(o.Value) != math.IsNaN(c.value) || math.Abs(o.Value-c.value) > c.value/500 || c.words != "" && o.Words != c.words {
			t.Errorf("%s: %v %g %s\nwant %v %g %s", c.name, o.Holds, o.Value, o.Words, c.holds, c.value, c.words)
		}
		if all, why := All(got); all != c.holds || all != (why == "") {
			t.Errorf("%s: all hold: %v, %q", c.name, all, why)
		}
	}
}
