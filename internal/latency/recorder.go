package latency

import (
	"math/bits"
	"sync/atomic"
	"time"
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

// span is the lowest value that a cell counts, and how many it counts.
func span(cell int) (low, size int64) {
	bucket, sub := cell/(subCount/2)-1, cell%(subCount/2)+subCount/2
	if bucket < 0 {
		bucket, sub = 0, cell
	}
	return int64(sub) << (bucket + unitMagnitude), 1 << (bucket + unitMagnitude)
}

// middle is the value that stands for all that a cell counts.
func middle(cell int) float64 {
	low, size := span(cell)
	return float64(low + size/2)
}

const (
	pageCells = 512
	pageCount = cells / pageCells // 44: fits the bits of a word
)

// Recorder counts durations that several goroutines record at the same time,
// without a lock and without allocating: one atomic addition each. It has the
// layout of Histogram in one array, of which memory is used where something was
// recorded: a histogram for each of 500 connections would be 86 MB.
type Recorder struct {
	touched atomic.Uint64 // a bit for each page of counts in which something was ever recorded
	counts  [cells]atomic.Int64
}

// Record counts d; see Histogram.Record.
func (r *Recorder) Record(d time.Duration) {
	cell := cell(clamp(d))
	// First the mark, then the count, so that no count lies in an unmarked page.
	if bit := uint64(1) << (cell / pageCells); r.touched.Load()&bit == 0 {
		r.touched.Or(bit)
	}
	r.counts[cell].Add(1)
}

// Drain moves all counts into h. It may run while others record: a duration is
// given to this Drain or to the next one, never lost and never counted twice.
func (r *Recorder) Drain(into *Histogram) {
	for touched := r.touched.Load(); touched != 0; touched &= touched - 1 {
		first := bits.TrailingZeros64(touched) * pageCells
		for i := first; i < first+pageCells; i++ {
			if r.counts[i].Load() == 0 { // most are; a load is cheaper than a swap
				continue
			}
			count := r.counts[i].Swap(0)
			*into.at(i) += count
			into.count += uint64(count)
		}
	}
}
