// Package hint says what a person may have meant: the known name that is most
// like what was written, or how a number without a unit is written with one.
//
// It takes words and gives words, for the hint beneath a mistake; it knows
// nothing of files, places or settings. Whoever finds the mistake knows the names
// that would have been right.
package hint

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Near returns the candidate that is most like what was written, or "". It is
// like when at most a third of its letters are wrong; two swapped neighbours
// count as one wrong letter (optimal string alignment distance, Damerau 1964).
func Near(written string, candidates []string) string {
	best, bestDistance := "", 1<<30
	for _, c := range candidates {
		if c == written || len(c) > 64 || len(written) > 64 {
			continue
		}
		d := distance(normal(written), normal(c))
		if shorter := min(len(c), len(written)); d < bestDistance && d <= max(1, shorter/3) && d < shorter {
			best, bestDistance = c, d
		}
	}
	return best
}

// normal makes spellings alike that people mix up.
func normal(name string) string {
	return strings.ReplaceAll(strings.ToLower(name), "_", "-")
}

func distance(a, b string) int {
	before, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			row[j] = min(last[j]+1, row[j-1]+1, last[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, last, row = last, row, before
	}
	return last[len(b)]
}

// Name is a hint for a name that is not known.
func Name(written string, candidates []string) string {
	if c := Near(written, candidates); c != "" {
		return fmt.Sprintf("did you mean %q?", c)
	}
	if len(candidates) == 0 {
		return ""
	}
	return "known are " + List(candidates)
}

// List writes names in a row, the first thirty of them.
func List(names []string) string {
	if len(names) > 30 {
		return strings.Join(names[:30], ", ") + ", …"
	}
	return strings.Join(names, ", ")
}

// Duration is a hint for a duration that was written as a plain number.
func Duration(text string) string {
	if f, err := strconv.ParseFloat(text, 64); err == nil && f > 0 && !math.IsInf(f, 0) {
		return "write " + text + "s for seconds, or " + text + "ms for milliseconds"
	}
	return ""
}
