package latency

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"sync"
	"testing"
	"time"

	hdr "github.com/HdrHistogram/hdrhistogram-go"
	"pgregory.net/rapid"
)

func of(ds ...time.Duration) *Histogram {
	h := &Histogram{}
	for _, d := range ds {
		h.Record(d)
	}
	return h
}

// durations are drawn evenly over the magnitudes, and beyond both ends.
func durations() *rapid.Generator[time.Duration] {
	return rapid.Custom(func(t *rapid.T) time.Duration {
		return time.Duration(math.Exp2(rapid.Float64Range(0, 41).Draw(t, "log2"))) - 100
	})
}

func TestEmpty(t *testing.T) {
	var h Histogram
	if h.Count() != 0 || h.Quantile(0.5) != 0 || h.Mean() != 0 || h.Max() != 0 {
		t.Errorf("the zero value says count %d, p50 %v, mean %v, max %v, want 0 all",
			h.Count(), h.Quantile(0.5), h.Mean(), h.Max())
	}
	b, err := h.Encode()
	if err != nil || b != nil {
		t.Errorf("Encode of nothing: %x, %v, want nil", b, err)
	}
	back, err := Decode(nil)
	if err != nil || back.Count() != 0 || !back.Equal(&h) {
		t.Errorf("Decode of nothing: %v, %v", back, err)
	}
	h.Merge(&Histogram{})
	h.Reset()
}

// Cells hold what was recorded, in order, and a range counts what lies in it.
func TestCells(t *testing.T) {
	const ms = time.Millisecond
	h := of(3*ms, 40*ms, 41*ms, 41*ms, time.Second)
	var seen []time.Duration
	var total uint64
	for d, n := range h.Cells() {
		seen = append(seen, d)
		total += n
	}
	if len(seen) != 4 || !slices.IsSorted(seen) || total != h.Count() {
		t.Errorf("cells %v of %d durations", seen, total)
	}
	for _, c := range []struct {
		from, to time.Duration
		want     uint64
	}{{0, time.Hour, 5}, {38 * ms, 45 * ms, 3}, {0, 2900 * time.Microsecond, 0}, {2 * ms, 4 * ms, 1}, {time.Second - ms, 2 * time.Second, 1}} {
		if got := h.CountBetween(c.from, c.to); got != c.want {
			t.Errorf("%d from %v to %v, want %d", got, c.from, c.to, c.want)
		}
	}
	if got := of(10*ms, 30*ms).StdDev(); (got - 10*ms).Abs() > ms/50 {
		t.Errorf("standard deviation %v, want 10ms", got)
	}
	var none Histogram
	if none.StdDev() != 0 || none.CountBetween(0, time.Hour) != 0 {
		t.Error("the zero value holds something")
	}
}

func TestEnds(t *testing.T) {
	h := of(-time.Second, 0, time.Hour)
	if h.Count() != 3 {
		t.Errorf("count %d, want 3: nothing may be left out", h.Count())
	}
	if h.Max() != Highest {
		t.Errorf("max %v, want %v", h.Max(), Highest)
	}
	if got := h.Quantile(0.5); got > time.Microsecond {
		t.Errorf("median %v, want below 1 µs", got)
	}
}

// The quantile is that of the sorted values, to three digits or 512 ns.
func TestQuantilesOfSortedValues(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ds := rapid.SliceOfN(durations(), 1, 200).Draw(t, "durations")
		h := of(ds...)
		for i := range ds {
			ds[i] = time.Duration(clamp(ds[i]))
		}
		slices.Sort(ds)
		for _, q := range []float64{0.01, 0.1, 0.5, 0.9, 0.99, 1} {
			rank := min(max(int(q*float64(len(ds))+0.5), 1), len(ds))
			want := ds[rank-1]
			within := max(want/1000, 512)
			if got := h.Quantile(q); got < want || got > want+within {
				t.Fatalf("quantile %g of %v = %v, want %v to %v", q, ds, got, want, want+within)
			}
		}
		if got, want := h.Max(), ds[len(ds)-1]; got < want || got > want+max(want/1000, 512) {
			t.Fatalf("max %v, want %v", got, want)
		}
	})
}

func TestMean(t *testing.T) {
	h := of(time.Millisecond, 2*time.Millisecond, 6*time.Millisecond)
	if got, want := h.Mean(), 3*time.Millisecond; (got - want).Abs() > want/1000 {
		t.Errorf("mean %v, want %v", got, want)
	}
}

func TestMergeIsTheSumInAnyOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := rapid.SliceOf(durations()).Draw(t, "a")
		b := rapid.SliceOf(durations()).Draw(t, "b")
		all := of(append(slices.Clone(a), b...)...)
		ab, ba := of(a...), of(b...)
		ab.Merge(of(b...))
		ba.Merge(of(a...))
		if !ab.Equal(all) || !ba.Equal(all) {
			t.Fatalf("merge of %v and %v is not the histogram of all", a, b)
		}
	})
}

func TestEncodeDecode(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := of(rapid.SliceOf(durations()).Draw(t, "durations")...)
		b, err := h.Encode()
		if err != nil {
			t.Fatal(err)
		}
		back, err := Decode(b)
		if err != nil {
			t.Fatal(err)
		}
		if !back.Equal(h) || !h.Equal(back) {
			t.Fatal("decoded histogram differs")
		}
		again, err := back.Encode()
		if err != nil || string(again) != string(b) {
			t.Fatalf("encoded again it differs (%v)", err)
		}
	})
}

// The base64 that JSON makes of the bytes is what HdrHistogram tools exchange.
func TestJSONIsStandardBase64(t *testing.T) {
	b, err := of(time.Millisecond, 3*time.Millisecond).Encode()
	if err != nil {
		t.Fatal(err)
	}
	var text string
	j, err := json.Marshal(b)
	if err == nil {
		err = json.Unmarshal(j, &text)
	}
	if err != nil {
		t.Fatal(err)
	}
	lib, err := hdr.Decode([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	if lib.TotalCount() != 2 || lib.LowestTrackableValue() != 1000 {
		t.Errorf("the library reads %d values from %d ns, want 2 from 1000 ns", lib.TotalCount(), lib.LowestTrackableValue())
	}
}

func TestDecodeRefuses(t *testing.T) {
	encoded := func(low, high int64, digits int) []byte {
		h := hdr.New(low, high, digits)
		if err := h.RecordValue(high); err != nil {
			t.Fatal(err)
		}
		text, err := h.Encode(hdr.V2CompressedEncodingCookieBase)
		if err != nil {
			t.Fatal(err)
		}
		raw, err := base64.StdEncoding.DecodeString(string(text))
		if err != nil {
			t.Fatal(err)
		}
		return raw
	}
	good := encoded(lowest, highest, digits)
	if _, err := Decode(good); err != nil {
		t.Fatalf("our own layout: %v", err)
	}
	for name, bytes := range map[string][]byte{
		"one byte":       {0x1c},
		"cookie only":    good[:8],
		"cut":            good[:len(good)-5],
		"other digits":   encoded(lowest, highest, 2),
		"microseconds":   encoded(1, 600_000_000, 3),
		"wide and dense": encoded(1, math.MaxInt64, 5),
	} {
		if h, err := Decode(bytes); err == nil {
			t.Errorf("%s: decoded with %d values, want an error", name, h.Count())
		}
	}
}

func FuzzDecode(f *testing.F) {
	for _, ds := range [][]time.Duration{{0}, {time.Millisecond, time.Second}, {Highest}} {
		b, err := of(ds...).Encode()
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		h, err := Decode(b)
		if err != nil {
			return
		}
		again, err := h.Encode()
		if err != nil {
			t.Fatal(err)
		}
		back, err := Decode(again)
		if err != nil {
			t.Fatal(err)
		}
		if !back.Equal(h) {
			t.Fatal("round trip differs")
		}
	})
}

// What the library says of the same durations is what is said here, and each
// reads what the other wrote.
func TestAgreesWithTheLibrary(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ds := rapid.SliceOfN(durations(), 1, 200).Draw(t, "durations")
		lib, h := hdr.New(lowest, highest, digits), of(ds...)
		for _, d := range ds {
			if err := lib.RecordValue(clamp(d)); err != nil {
				t.Fatal(err)
			}
		}
		near := func(name string, got time.Duration, want float64) {
			if want = min(want, float64(Highest)); math.Abs(float64(got)-want) > 1 {
				t.Errorf("%s %v, the library says %v", name, got, time.Duration(want))
			}
		}
		near("mean", h.Mean(), lib.Mean())
		near("standard deviation", h.StdDev(), lib.StdDev())
		near("max", h.Max(), float64(lib.Max()))
		for _, q := range []float64{0, 0.001, 0.01, 0.25, 0.5, 0.9, 0.95, 0.99, 0.999, 1} {
			near(fmt.Sprint("quantile ", q), h.Quantile(q), float64(lib.ValueAtPercentile(q*100)))
		}

		text, err := lib.Encode(hdr.V2CompressedEncodingCookieBase)
		if err != nil {
			t.Fatal(err)
		}
		theirs, err := base64.StdEncoding.DecodeString(string(text))
		if err != nil {
			t.Fatal(err)
		}
		if back, err := Decode(theirs); err != nil || !back.Equal(h) {
			t.Errorf("what the library wrote is read as another histogram (%v)", err)
		}
		ours, err := h.Encode()
		if err != nil {
			t.Fatal(err)
		}
		back, err := hdr.Decode([]byte(base64.StdEncoding.EncodeToString(ours)))
		if err != nil || !back.Equals(lib) {
			t.Errorf("the library reads another histogram (%v)", err)
		}
	})
}

func TestCountsOfAnySize(t *testing.T) {
	for _, n := range []int64{0, 1, -1, 63, 64, -64, -65, 1 << 20, -1 << 40, math.MaxInt64, math.MinInt64} {
		b := appendCount(nil, n)
		if got, used := readCount(append(b, 0x55)); got != n || used != len(b) {
			t.Errorf("%d is read as %d, of %d bytes %d", n, got, len(b), used)
		}
		if _, used := readCount(b[:len(b)-1]); used != 0 {
			t.Errorf("%d cut off is read all the same", n)
		}
	}
}

// The recorder's own array is the library's layout, at the edges of every cell.
func TestRecorderHasTheLibrarysLayout(t *testing.T) {
	lib := hdr.New(lowest, highest, digits)
	if n := len(lib.Export().Counts); n != cells {
		t.Fatalf("%d cells, the library has %d", cells, n)
	}
	check := func(v int64) {
		if v < 0 || v > highest {
			return
		}
		lib.Reset()
		if err := lib.RecordValue(v); err != nil {
			t.Fatal(err)
		}
		if got := lib.Export().Counts[cell(v)]; got != 1 {
			t.Fatalf("%d ns: cell %d, the library counts it elsewhere", v, cell(v))
		}
	}
	for shift := range 40 {
		for _, v := range []int64{1<<shift - 1, 1 << shift, 1<<shift + 1, 3 << shift / 2} {
			check(v)
		}
	}
	check(highest)
	check(highest - 1)
	for c := range cells {
		low, size := span(c)
		if cell(low) != c || low+size-1 <= highest && cell(low+size-1) != c || cell(max(low-1, 0)) == c && low > 0 {
			t.Fatalf("cell %d: values from %d, %d of them", c, low, size)
		}
	}
}

func TestRecorderEqualsHistogram(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ds := rapid.SliceOf(durations()).Draw(t, "durations")
		var r Recorder
		for _, d := range ds {
			r.Record(d)
		}
		var got Histogram
		r.Drain(&got)
		if !got.Equal(of(ds...)) {
			t.Fatalf("drained histogram of %v differs", ds)
		}
		var empty Histogram
		r.Drain(&empty)
		if empty.Count() != 0 {
			t.Fatalf("%d counts left after Drain", empty.Count())
		}
	})
}

func TestRecorderLosesNothing(t *testing.T) {
	const writers, each = 4, 20_000
	var r Recorder
	var writing sync.WaitGroup
	for w := range writers {
		writing.Go(func() {
			for i := range each {
				r.Record(time.Duration(w*each+i) * time.Microsecond)
			}
		})
	}
	done := make(chan struct{})
	go func() { writing.Wait(); close(done) }()
	var all Histogram
	for open := true; open; {
		select {
		case <-done:
			open = false
		default:
		}
		r.Drain(&all)
	}
	if all.Count() != writers*each {
		t.Errorf("%d of %d recorded", all.Count(), writers*each)
	}
}

func TestRecordDoesNotAllocate(t *testing.T) {
	var h Histogram
	var r Recorder
	h.Record(0)
	d := time.Duration(0)
	if n := testing.AllocsPerRun(1000, func() { d += 1234567; h.Record(d); r.Record(d) }); n != 0 {
		t.Errorf("%g allocations per recorded value, want 0", n)
	}
}

func BenchmarkHistogramRecord(b *testing.B) {
	var h Histogram
	for i := 0; b.Loop(); i++ {
		h.Record(time.Duration(i&0xffff) << 8)
	}
}

func BenchmarkRecorderRecord(b *testing.B) {
	r := new(Recorder)
	for i := 0; b.Loop(); i++ {
		r.Record(time.Duration(i&0xffff) << 8)
	}
}
