// Package latency records durations, merges them, answers quantiles and turns
// them into bytes and back.
//
// It takes durations one at a time, from one goroutine (Histogram) or from many
// (Recorder), and gives histograms in HdrHistogram's layout: 1 µs to 10 min at
// three significant digits, values in nanoseconds. Encoded they are
// HdrHistogram's V2 compressed form, so that the base64 which JSON makes of the
// bytes is what every HdrHistogram tool reads.
//
// It holds no samples, keeps no time, knows nothing of requests, and does not
// correct for anything: what is recorded is what was measured.
package latency

import (
	"iter"
	"math"
	"time"
)

// The layout. It is part of what is stored: another one is another format.
const (
	lowest  = int64(time.Microsecond) // told apart from 0; in fact the unit is 512 ns
	highest = int64(10 * time.Minute)
	digits  = 3
)

// Highest is the longest duration that is told apart; longer ones count as this.
const Highest = time.Duration(highest)

// Histogram counts durations. The zero value is empty and ready; it is for one
// goroutine at a time. It holds memory for the magnitudes that occur only: a load
// makes one for each half second, and most span a few.
type Histogram struct {
	pages [pageCount]*page
	count uint64
}

// page is the counts of neighbouring cells.
type page [pageCells]int64

// at returns the count of a cell, with the memory for it.
func (h *Histogram) at(cell int) *int64 {
	p := h.pages[cell/pageCells]
	if p == nil {
		p = new(page)
		h.pages[cell/pageCells] = p
	}
	return &p[cell%pageCells]
}

// filled goes through the cells that hold anything, from the lowest.
func (h *Histogram) filled() iter.Seq2[int, int64] {
	return func(yield func(int, int64) bool) {
		for n, p := range h.pages {
			if p == nil {
				continue
			}
			for i, count := range p {
				if count != 0 && !yield(n*pageCells+i, count) {
					return
				}
			}
		}
	}
}

func clamp(d time.Duration) int64 { return min(max(int64(d), 0), highest) }

// Record counts d. What is below 0 counts as 0 and what is above Highest as
// Highest, so that nothing is ever left out of Count.
func (h *Histogram) Record(d time.Duration) {
	*h.at(cell(clamp(d)))++
	h.count++
}

// Merge adds what other holds. The sum of two is the same whichever is merged
// into the other.
func (h *Histogram) Merge(other *Histogram) {
	for n, from := range other.pages {
		if from == nil {
			continue
		}
		to := h.pages[n]
		if to == nil {
			to = new(page)
			h.pages[n] = to
		}
		for i, count := range from {
			to[i] += count
		}
	}
	h.count += other.count
}

// Count is how many durations were recorded.
func (h *Histogram) Count() uint64 { return h.count }

// Quantile returns the duration that a share q (0..1) of the recorded ones did
// not exceed: the highest value that cannot be told from the one of rank
// q·Count (HdrHistogram's definition, rounded to the nearest rank); for q = 0 the
// lowest such value. 0 where nothing was recorded.
func (h *Histogram) Quantile(q float64) time.Duration {
	if h.count == 0 {
		return 0
	}
	rank := max(int64(min(max(q, 0), 1)*float64(h.count)+0.5), 1)
	for cell, count := range h.filled() {
		if rank -= count; rank > 0 {
			continue
		}
		low, size := span(cell)
		if q <= 0 {
			return time.Duration(low)
		}
		return min(time.Duration(low+size-1), Highest)
	}
	return h.Max() // not reached: the counts add up to count
}

// Mean is the arithmetic mean, from the middle of each cell: exact to the
// layout's three digits. 0 where nothing was recorded.
func (h *Histogram) Mean() time.Duration { return time.Duration(math.Round(h.mean())) }

func (h *Histogram) mean() float64 {
	mean := 0.0
	for cell, count := range h.filled() {
		mean += float64(count) / float64(h.count) * middle(cell)
	}
	return mean
}

// Max is the longest recorded duration, rounded up to what the layout tells
// apart. 0 where nothing was recorded.
func (h *Histogram) Max() time.Duration {
	if h.count == 0 {
		return 0
	}
	low, size := span(h.last())
	return min(time.Duration(low+size-1), Highest)
}

// last is the highest cell that holds anything, -1 where none does.
func (h *Histogram) last() int {
	for n := pageCount - 1; n >= 0; n-- {
		if h.pages[n] == nil {
			continue
		}
		for i := pageCells - 1; i >= 0; i-- {
			if h.pages[n][i] != 0 {
				return n*pageCells + i
			}
		}
	}
	return -1
}

// StdDev is the standard deviation, from the middle of each cell. 0 where nothing
// was recorded.
func (h *Histogram) StdDev() time.Duration {
	mean, variance := h.mean(), 0.0
	for cell, count := range h.filled() {
		off := middle(cell) - mean
		variance += float64(count) / float64(h.count) * off * off
	}
	return time.Duration(math.Round(math.Sqrt(variance)))
}

// Cells goes through the cells that hold anything, from the lowest: the middle of
// each, which is exact to the layout's three digits, and its count.
func (h *Histogram) Cells() iter.Seq2[time.Duration, uint64] {
	return func(yield func(time.Duration, uint64) bool) {
		for cell, count := range h.filled() {
			if !yield(time.Duration(middle(cell)), uint64(count)) {
				return
			}
		}
	}
}

// CountBetween is how many durations lie in from..to, to itself not included,
// each taken as the middle of its cell.
func (h *Histogram) CountBetween(from, to time.Duration) (n uint64) {
	for d, count := range h.Cells() {
		if d >= from && d < to {
			n += count
		}
	}
	return n
}

// Reset empties h and keeps its memory.
func (h *Histogram) Reset() {
	for _, p := range h.pages {
		if p != nil {
			*p = page{}
		}
	}
	h.count = 0
}

// Equal reports whether both hold the same counts.
func (h *Histogram) Equal(other *Histogram) bool {
	if h.count != other.count {
		return false
	}
	for n := range h.pages {
		a, b := h.pages[n], other.pages[n]
		if a == nil {
			a = &page{}
		}
		if b == nil {
			b = &page{}
		}
		if *a != *b {
			return false
		}
	}
	return true
}
