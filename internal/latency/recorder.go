package latency

import (
	"math/bits"
	"sync/atomic"
	"time"

	hdr "github.com/HdrHistogram/hdrhistogram-go"
)

// The layout of the counts, as HdrHistogram's countsIndex computes it: cells of
// 512 ns up to 2048 of them, then 1024 cells for each doubling. A test holds it
// against the library cell by cell.
const (
	unitMagnitude = 9  // floor(log2 lowest)
	subMagnitude  = 11 // 2^11 ≥ 2·10^digits
	subCount      = 1 << subMagnitude
	subMask       = (subCount - 1) << unitMagnitude
	cells         = 22 * subCount / 2 // 21 doublings reach highest
)

// cell returns the index of the count for value v, 0 ≤ v ≤ highest.
func cell(v int64) int {
	bucket := bits.Len64(uint64(v)|subMask) - unitMagnitude - subMagnitude
	sub := int(v >> (uint(bucket) + unitMagnitude))
	return bucket*(subCount/2) + sub
}

// Recorder counts durations that several goroutines record at the same time,
// without a lock: one atomic addition each. It is the same layout as Histogram
// in an own array, because the library's counts are for one goroutine, and a
// histogram for each of 500 connections would be 86 MB.
type Recorder struct {
	counts [cells]atomic.Int64
}

// Record counts d; see Histogram.Record.
func (r *Recorder) Record(d time.Duration) { r.counts[cell(clamp(d))].Add(1) }

// Drain moves all counts into h. It may run while others record: a duration is
// given to this Drain or to the next one, never lost and never counted twice.
func (r *Recorder) Drain(into *Histogram) {
	var counts []int64
	for i := range r.counts {
		if r.counts[i].Load() == 0 { // most are; a load is cheaper than a swap
			continue
		}
		if counts == nil {
			counts = make([]int64, cells)
		}
		counts[i] = r.counts[i].Swap(0)
	}
	if counts == nil {
		return
	}
	into.Merge(&Histogram{h: hdr.Import(&hdr.Snapshot{
		LowestTrackableValue:  lowest,
		HighestTrackableValue: highest,
		SignificantFigures:    digits,
		Counts:                counts,
	})})
}
