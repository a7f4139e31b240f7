package measure

import (
	"math"
	"testing"
	"time"

	"hakaru"
	"hakaru/internal/latency"

	"github.com/google/go-cmp/cmp"
)

const w = hakaru.BucketWidth

func encoded(t *testing.T, ds ...time.Duration) []byte {
	t.Helper()
	var h latency.Histogram
	for _, d := range ds {
		h.Record(d)
	}
	b, err := h.Encode()
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func buckets(n int, fill func(i int, b *hakaru.Bucket)) []hakaru.Bucket {
	bs := make([]hakaru.Bucket, n)
	for i := range bs {
		bs[i].At = time.Duration(i) * w
		if fill != nil {
			fill(i, &bs[i])
		}
	}
	return bs
}

func TestCut(t *testing.T) {
	for _, c := range []struct {
		name           string
		n              int
		warmUp, length time.Duration
		first, count   int
	}{
		{"whole", 6, w, 5 * w, 1, 5},
		{"no warm-up", 6, 0, 6 * w, 0, 6},
		{"warm-up rounded up", 6, w + 1, 5*w - 1, 2, 4},
		{"window ends within a bucket", 6, w, 5*w - 1, 1, 4},
		{"buckets end early", 3, w, 5 * w, 1, 2},
		{"shorter than a bucket", 6, w, w / 2, 0, 0},
		{"all warm-up", 2, 4 * w, w, 0, 0},
		{"none", 0, w, w, 0, 0},
	} {
		got := Cut(buckets(c.n, nil), c.warmUp, c.length)
		if len(got) != c.count || c.count > 0 && got[0].At != time.Duration(c.first)*w {
			t.Errorf("%s: %d buckets %v, want %d from number %d", c.name, len(got), got, c.count, c.first)
		}
	}
}

var columns = []hakaru.Counter{
	{Name: hakaru.CounterCPU, Of: "web"},
	{Name: hakaru.CounterCPU, Of: "db"},
	{Name: hakaru.CounterMemory, Of: "web", Gauge: true},
	{Name: hakaru.CounterMemory, Of: "db", Gauge: true},
	{Name: hakaru.CounterCPU, Of: hakaru.OfHost},
	{Name: hakaru.CounterCPU, Of: hakaru.OfGenerator},
}

// Two buckets of warm-up that must not show, then two of 100 good answers.
func steady(t *testing.T) []hakaru.Bucket {
	return buckets(4, func(i int, b *hakaru.Bucket) {
		if i < 2 {
			b.Good, b.Bad = 9999, 9999
			b.Latency = encoded(t, time.Minute)
			b.Counters = []float64{99, 99, 99, 99, 99, 99}
			return
		}
		b.Good = 100
		b.Latency = encoded(t, time.Millisecond, time.Millisecond, 10*time.Millisecond)
		b.Counters = []float64{0.2, 0.05, 1000 + float64(i), 500, 0.5, 0.1}
	})
}

func value(ms []hakaru.Measurement, m hakaru.Metric, of string) (float64, bool) {
	for _, x := range ms {
		if x.Metric == m && x.Of == of {
			return x.Value, true
		}
	}
	return 0, false
}

func near(a, b float64) bool { return math.Abs(a-b) <= 1e-3*math.Abs(b)+1e-12 }

func TestWindow(t *testing.T) {
	ms := Window(steady(t), columns, []string{"web", "db"}, 2*w, 2*w)
	want := []hakaru.Measurement{
		{Metric: hakaru.Throughput, Value: 200, Unit: "1/s"},
		{Metric: hakaru.CPUPerRequest, Value: 0.0025, Unit: "s"},
		{Metric: hakaru.CPUPerRequest, Of: "web", Value: 0.002, Unit: "s"},
		{Metric: hakaru.CPUPerRequest, Of: "db", Value: 0.0005, Unit: "s"},
		{Metric: hakaru.Errors, Value: 0, Unit: "ratio"},
		{Metric: hakaru.P50, Value: 0.001, Unit: "s"},
		{Metric: hakaru.P99, Value: 0.01, Unit: "s"},
		{Metric: hakaru.Memory, Value: 1503, Unit: "B"},
		{Metric: hakaru.Memory, Of: "web", Value: 1003, Unit: "B"},
		{Metric: hakaru.Memory, Of: "db", Value: 500, Unit: "B"},
		{Metric: CPU, Of: "web", Value: 0.4, Unit: "cpus"},
		{Metric: CPU, Of: "db", Value: 0.1, Unit: "cpus"},
		{Metric: CPU, Of: hakaru.OfGenerator, Value: 0.2, Unit: "cpus"},
		{Metric: CPU, Of: hakaru.OfOthers, Value: 0.3, Unit: "cpus"},
		{Metric: CPU, Of: hakaru.OfHost, Value: 1, Unit: "cpus"},
		{Metric: Bad, Value: 0, Unit: "1"},
	}
	if d := cmp.Diff(want, ms, cmp.Comparer(near)); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
}

func TestWindowIsBlindToTheWarmUpAndToOrderOfServices(t *testing.T) {
	bs := steady(t)
	want := Window(bs, columns, []string{"web", "db"}, 2*w, 2*w)
	bs[0].Good, bs[1].Counters = 1, nil
	got := Window(bs, columns, []string{"db", "web"}, 2*w, 2*w)
	for _, m := range want {
		if v, ok := value(got, m.Metric, m.Of); !ok || !near(v, m.Value) {
			t.Errorf("%s of %q: %g (%v), want %g", m.Metric, m.Of, v, ok, m.Value)
		}
	}
}

func TestErrors(t *testing.T) {
	for _, c := range []struct {
		name     string
		good     uint64
		bad      uint64
		kinds    map[string]uint64
		want     float64
		has      bool
		badTotal float64
	}{
		{"none", 10, 0, nil, 0, true, 0},
		{"a tenth", 9, 1, map[string]uint64{string(hakaru.Reset): 1}, 0.1, true, 1},
		{"kinds unknown", 9, 1, nil, 0.1, true, 1},
		{"made by the load host", 9, 3, map[string]uint64{string(hakaru.LoadPorts): 2, string(hakaru.TimedOut): 1}, 0.1, true, 3},
		{"nothing but the load host's", 0, 3, map[string]uint64{string(hakaru.LoadFiles): 3}, 0, false, 3},
		{"nothing at all", 0, 0, nil, 0, false, 0},
		{"all", 0, 2, map[string]uint64{string(hakaru.Refused): 2}, 1, true, 2},
	} {
		ms := Window(buckets(1, func(_ int, b *hakaru.Bucket) { b.Good, b.Bad, b.Kinds = c.good, c.bad, c.kinds }), nil, nil, 0, w)
		got, has := value(ms, hakaru.Errors, "")
		if !near(got, c.want) || has != c.has {
			t.Errorf("%s: errors %g (%v), want %g (%v)", c.name, got, has, c.want, c.has)
		}
		if got, _ := value(ms, Bad, ""); got != c.badTotal {
			t.Errorf("%s: bad %g, want %g", c.name, got, c.badTotal)
		}
	}
}

// What was not watched is left out, never 0.
func TestWhatIsMissing(t *testing.T) {
	for _, c := range []struct {
		name     string
		change   func([]hakaru.Bucket)
		services []string
		metric   hakaru.Metric
		of       string
		has      bool
	}{
		{"a service without columns takes the whole away", nil, []string{"web", "cache"}, hakaru.CPUPerRequest, "", false},
		{"and not the others' part", nil, []string{"web", "cache"}, hakaru.CPUPerRequest, "web", true},
		{"nor their memory", nil, []string{"web", "cache"}, hakaru.Memory, "web", true},
		{"others cannot be told then", nil, []string{"web", "cache"}, CPU, hakaru.OfOthers, false},
		{"no services, no whole", nil, nil, hakaru.CPUPerRequest, "", false},
		{"a bucket without counters", func(bs []hakaru.Bucket) { bs[2].Counters = nil }, []string{"web"}, hakaru.CPUPerRequest, "web", false},
		{"no good answer, no CPU per request", func(bs []hakaru.Bucket) { bs[2].Good, bs[3].Good = 0, 0 }, []string{"web"}, hakaru.CPUPerRequest, "web", false},
		{"but a throughput of 0", func(bs []hakaru.Bucket) { bs[2].Good, bs[3].Good = 0, 0 }, []string{"web"}, hakaru.Throughput, "", true},
		{"a histogram that cannot be read", func(bs []hakaru.Bucket) { bs[3].Latency = []byte("x") }, []string{"web"}, hakaru.P99, "", false},
		{"memory is of the last bucket", func(bs []hakaru.Bucket) { bs[3].Counters = bs[3].Counters[:2] }, []string{"web"}, hakaru.Memory, "web", false},
	} {
		bs := steady(t)
		if c.change != nil {
			c.change(bs)
		}
		if v, has := value(Window(bs, columns, c.services, 2*w, 2*w), c.metric, c.of); has != c.has {
			t.Errorf("%s: %s of %q = %g (%v), want %v", c.name, c.metric, c.of, v, has, c.has)
		}
	}
	if ms := Window(steady(t), columns, nil, 4*w, w); ms != nil {
		t.Errorf("without a bucket: %v", ms)
	}
}

func TestOthersAreNeverBelowZero(t *testing.T) {
	bs := buckets(1, func(_ int, b *hakaru.Bucket) { b.Counters = []float64{0.4, 0, 0, 0, 0.45, 0.1} })
	if v, ok := value(Window(bs, columns, []string{"web", "db"}, 0, w), CPU, hakaru.OfOthers); !ok || v != 0 {
		t.Errorf("others %g (%v), want 0", v, ok)
	}
}

func TestSumAndLast(t *testing.T) {
	bs := steady(t)
	for _, c := range []struct {
		name string
		read func() (float64, bool)
		want float64
		ok   bool
	}{
		{"sum", func() (float64, bool) { return Sum(bs, columns, 2*w, 2*w, hakaru.CounterCPU, "web") }, 0.4, true},
		{"sum of one bucket", func() (float64, bool) { return Sum(bs, columns, 3*w, w, hakaru.CounterCPU, "db") }, 0.05, true},
		{"unknown counter", func() (float64, bool) { return Sum(bs, columns, 2*w, 2*w, hakaru.CounterStolen, "web") }, 0, false},
		{"unknown service", func() (float64, bool) { return Sum(bs, columns, 2*w, 2*w, hakaru.CounterCPU, "nobody") }, 0, false},
		{"no sum of a gauge", func() (float64, bool) { return Sum(bs, columns, 2*w, 2*w, hakaru.CounterMemory, "web") }, 0, false},
		{"no window", func() (float64, bool) { return Sum(bs, columns, 9*w, w, hakaru.CounterCPU, "web") }, 0, false},
		{"last", func() (float64, bool) { return Last(bs, columns, 2*w, 2*w, hakaru.CounterMemory, "web") }, 1003, true},
		{"no last of an increase", func() (float64, bool) { return Last(bs, columns, 2*w, 2*w, hakaru.CounterCPU, "web") }, 0, false},
	} {
		if got, ok := c.read(); !near(got, c.want) || ok != c.ok {
			t.Errorf("%s: %g (%v), want %g (%v)", c.name, got, ok, c.want, c.ok)
		}
	}
}
