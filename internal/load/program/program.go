// Package program sends load with programs that others wrote: ab, wrk, or a
// command of one's own.
//
// It takes a rendered ProgramSpec and a window, runs the program twice (a warm-up
// whose figures are dropped, and the measured run), and gives what the program
// said of the second as Totals, with its output, and the CPU time it used in
// buckets of half a second. What each program's words mean is in a file of its
// own: how it is called (Call), and what it says (Read, a pure function of what it
// wrote). A new program is such a file, and a line in Find.
//
// It believes a program no number that it did not print, and no answer that it did
// not count. A program that failed is told as such; whether that voids a trial is
// for internal/diagnose. No shell is involved, and nothing that a program started
// in its session outlives its run.
package program

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"hakaru"
)

// Program is what hakaru knows about a load program.
type Program interface {
	// Call says how to run it, with names in spec already replaced, for d; a
	// program that ends by itself (spec.Counted) is not told d, unless warmUp says
	// that this run is the warm-up.
	Call(spec hakaru.ProgramSpec, d time.Duration, warmUp bool) (Call, error)
	// Read makes figures of what it wrote. It is pure.
	Read(spec hakaru.ProgramSpec, w Written) hakaru.Totals
	// CPUs is how many CPUs it can use at all; 0: any number.
	CPUs(spec hakaru.ProgramSpec) int
	// Doubts are what there is to doubt about its figures whatever they are.
	Doubts(spec hakaru.ProgramSpec, t hakaru.Totals) []hakaru.Warning
	// Install says how to get it.
	Install() string
	// Version are the words after its name that make it say its version; empty
	// where it has none to say.
	Version() []string
}

// Call is one run of a program.
type Call struct {
	Argv []string
	// Files are handed to it as /dev/fd/3, /dev/fd/4 and so on, each with this
	// content to begin with. They are in memory only: a request body may hold a
	// secret, and nothing is left behind whoever dies.
	Files []string
}

// Written is what a run wrote, and how it ended.
type Written struct {
	Stdout, Stderr string
	Files          []string // as they were at its end
	State          string   // "exit status 104", "signal: killed"; empty: exit status 0
	Took           time.Duration
}

// Find returns a program by its name in an experiment file.
func Find(name string) (Program, bool) {
	switch name {
	case "ab":
		return ab{}, true
	case "wrk":
		return wrk{}, true
	case "command":
		return command{}, true
	}
	return nil, false
}

// file is the path by which a program finds the i-th of Call.Files.
func file(i int) string { return fmt.Sprintf("/dev/fd/%d", 3+i) }

// lastLines are the last lines of what a program wrote that are not empty, on
// one line; the usage text that follows an error is not among them.
func lastLines(text string, n int) string {
	if i := strings.Index(text, "\nUsage:"); i >= 0 {
		text = text[:i]
	}
	var lines []string
	for l := range strings.Lines(text) {
		if l = strings.TrimSpace(l); l != "" {
			lines = append(lines, l)
		}
	}
	return strings.Join(lines[max(0, len(lines)-n):], " / ")
}

// ended says how a program that failed ended, with its last words.
func ended(name string, w Written) string {
	state := w.State
	if state == "" {
		state = "exit status 0"
	}
	said := lastLines(w.Stderr, 3)
	if said == "" {
		said = lastLines(w.Stdout, 3)
	}
	if said == "" {
		return fmt.Sprintf("%s ended with %s and wrote nothing", name, state)
	}
	return fmt.Sprintf("%s ended with %s: %s", name, state, said)
}

// lacking are the words of the C library for what a load host can run out of.
var lacking = []string{
	"Too many open files", "Cannot assign requested address", "Cannot allocate memory", "No buffer space available",
	"Resource temporarily unavailable",
}

// blame says of a program that failed whether it did so for what its machine
// lacks. Nobody but the kernel (out of memory) or a person kills it.
func blame(t *hakaru.Totals, w Written) {
	if w.State == "signal: killed" {
		t.OfLoadHost, t.Hint = true, "something killed it: was memory short? (dmesg)"
		return
	}
	said := lastLines(w.Stderr, 3)
	t.OfLoadHost = slices.ContainsFunc(lacking, func(words string) bool { return strings.Contains(said, words) })
}

// quantile puts a latency in where it is one: a 0 is what a program prints for
// less than it can tell apart.
func quantile(t *hakaru.Totals, m hakaru.Metric, seconds float64) {
	if !(seconds > 0) {
		return
	}
	if t.Quantiles == nil {
		t.Quantiles = map[hakaru.Metric]float64{}
	}
	t.Quantiles[m] = seconds
}

// count adds bad answers of a kind.
func count(t *hakaru.Totals, kind hakaru.ErrorKind, n uint64) {
	if n == 0 {
		return
	}
	if t.Kinds == nil {
		t.Kinds = map[string]uint64{}
	}
	t.Kinds[string(kind)] += n
	t.Bad += n
}

// less is a-b, at least 0.
func less(a, b uint64) uint64 { return a - min(a, b) }

// took is the time in which n answers came: as it was printed, to half of the
// step of its last digit, or from the rate, which has two decimals, whichever is
// known more exactly. Where the two differ by more than rounding explains,
// something else is the matter, and what was measured is the time.
func took(n uint64, rate float64, printed time.Duration, half time.Duration) time.Duration {
	if n == 0 || !(rate > 0) || printed <= 0 {
		return printed
	}
	const halfRate = 0.005
	exact := time.Duration(float64(n) / rate * float64(time.Second))
	if (exact-printed).Abs() > 2*half+printed/100 || halfRate/rate > float64(half)/float64(printed) {
		return printed
	}
	return exact
}

func firstWord(option, otherwise string) string {
	if option != "" {
		return option
	}
	return otherwise
}
