package load

import (
	"net"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"hakaru"
	"hakaru/internal/load/goroutines"
)

// A load of hours needs no more memory than one of minutes.
func TestHoursInConstantMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &pipes{serve: func(n int, c net.Conn) {
			eachRequest(c, func() bool { time.Sleep(100 * time.Millisecond); return say(c, hello) })
		}}
		heap := func() uint64 {
			// What lies in a sync.Pool, a compressor of a megabyte here, is held
			// through one collection and is gone with the next.
			runtime.GC()
			runtime.GC()
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			return m.HeapAlloc
		}
		const length = 4 * time.Hour
		var early, late uint64
		buckets := 0
		emit := func(b hakaru.Bucket) {
			switch buckets++; b.At {
			case time.Minute:
				early = heap()
			case length - time.Minute:
				late = heap()
			}
		}
		report, err := run(t.Context(), plainRequest(2), hakaru.Window{Length: length}, emit, goroutines.Engine{}, p.dial)
		if err != nil {
			t.Fatal(err)
		}
		p.serving.Wait()
		if want := int(length / hakaru.BucketWidth); buckets != want || report.Tally.Good < uint64(length/time.Second)*19 {
			t.Errorf("%d buckets, %d answers, want %d and about 20 each second", buckets, report.Tally.Good, want)
		}
		const slack = 256 << 10 // 28,680 buckets lie between the two: 9 bytes for each
		if late > early+slack {
			t.Errorf("the heap grew from %d to %d bytes", early, late)
		}
	})
}
