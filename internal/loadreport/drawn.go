package loadreport

import (
	"fmt"
	"math"
	"strings"
	"time"

	"hakaru/internal/latency"
	"hakaru/internal/unit"
)

const (
	lines = 12 // at most, of a drawn histogram
	wide  = 36 // columns of its longest bar
)

// series are steps within a decade, evenly spaced on a scale of logarithms: the
// values of resistors (IEC 60063: E24, E12, E6), and coarser ones.
var series = [][]float64{
	{1, 1.1, 1.2, 1.3, 1.5, 1.6, 1.8, 2, 2.2, 2.4, 2.7, 3, 3.3, 3.6, 3.9, 4.3, 4.7, 5.1, 5.6, 6.2, 6.8, 7.5, 8.2, 9.1},
	{1, 1.2, 1.5, 1.8, 2.2, 2.7, 3.3, 3.9, 4.7, 5.6, 6.8, 8.2},
	{1, 1.5, 2.2, 3.3, 4.7, 6.8},
	{1, 2, 5},
	{1, 3},
	{1},
}

// drawn shows a histogram as bars over classes that grow evenly on a scale of
// logarithms, since latencies do. Empty for no values.
func drawn(h *latency.Histogram) string {
	if h.Count() == 0 {
		return ""
	}
	edges := edgesFor(h.Quantile(0), h.Max())
	counts := make([]uint64, len(edges)-1)
	most := uint64(0)
	class := 0
	for d, n := range h.Cells() {
		for class < len(counts)-1 && d >= edges[class+1] {
			class++
		}
		counts[class] += n
		most = max(most, counts[class])
	}
	var b strings.Builder
	for i, n := range counts {
		length := bar(float64(n) / float64(most))
		if n == 0 {
			length = ""
		}
		fmt.Fprintf(&b, "%8s - %-8s%9d %7s  %s\n", unit.Duration(edges[i]), unit.Duration(edges[i+1]), n, share(n, h.Count()), length)
	}
	return b.String()
}

// share has two decimals, so that a column of them can be read.
func share(n, of uint64) string { return fmt.Sprintf("%.2f%%", 100*float64(n)/float64(of)) }

// edgesFor gives the borders of the finest classes that are few enough: the first
// at or below low, the last above high.
func edgesFor(low, high time.Duration) (edges []time.Duration) {
	for _, steps := range series {
		if edges = edgesOf(steps, low, high); len(edges)-1 <= lines {
			break
		}
	}
	return edges
}

func edgesOf(steps []float64, low, high time.Duration) (edges []time.Duration) {
	low = max(low, time.Microsecond)
	for decade := math.Pow(10, math.Floor(math.Log10(float64(low)))); ; decade *= 10 {
		for _, s := range steps {
			edge := time.Duration(math.Round(s * decade))
			if edge <= low {
				edges = edges[:0] // only the last one below counts
			}
			if edges = append(edges, edge); edge > max(low, high) {
				return edges
			}
		}
	}
}

// bar is a bar of a share of the full width, in eighths of a column; never
// nothing.
func bar(share float64) string {
	eighths := max(int(math.Round(share*wide*8)), 1)
	text := strings.Repeat("█", eighths/8)
	if rest := eighths % 8; rest > 0 {
		text += string([]rune("▏▎▍▌▋▊▉")[rest-1])
	}
	return text
}
