// Package report writes what was found, for people and for programs: a text
// for the terminal, Markdown for a pull request, JSON with documented names
// (docs/report-json.md); the list of runs, and one trial in full.
//
// It takes the stored run and its history, and the comparisons, limits and
// outcome that compare made of them, and writes onto an io.Writer. The answer
// comes first, in one sentence; doubt stands under the table that it is about.
// Everything that leaves through this package is redacted (redact) and cleaned
// of control characters (layout).
//
// It decides nothing: no verdict, no winner, no void. It prints no number by
// itself (unit does), has the single words from wording, lays out no line (layout
// does), opens no file and asks no clock. What is not a result yet, a dry run or
// a trial as it goes, is rehearsal's.
package report

import (
	"io"
	"time"

	"hakaru"
	"hakaru/internal/compare"
	"hakaru/internal/layout"
)

// Input is all that a report is made of.
type Input struct {
	Run         hakaru.Run
	History     []hakaru.Result // buckets are not needed
	Comparisons []hakaru.Comparison
	Limits      []hakaru.LimitResult
	Outcome     compare.Outcome
	Diff        map[string]string // variant → unified diff of the person's config
	Now         time.Time         // for a run that has not ended
}

// Text writes the report for a terminal.
func Text(w io.Writer, in Input, style layout.Style) error {
	return layout.Text(w, build(&in), style)
}

// Markdown writes the same report for a pull request or a ticket.
func Markdown(w io.Writer, in Input) error {
	return layout.Markdown(w, build(&in))
}

// build puts the sections in the order in which a person asks: what is the
// answer, how sure is it, what speaks against it, how was it measured.
func build(in *Input) layout.Document {
	x := newIndex(in)
	var d layout.Document
	d.Add("", x.headline()...)
	d.Add("", x.variantTables()...)
	d.Add("Doubt", x.doubts()...)
	d.Add("Void trials", x.voids()...)
	d.Add("Limits", x.limitTable()...)
	d.Add("Against the previous variant", x.previousTable()...)
	d.Add("Other figures against "+in.Run.Experiment.Baseline+" (no verdict)", x.otherFigures()...)
	d.Add("Settings in force", x.proofs()...)
	d.Add("Noise", x.noise()...)
	d.Add("How it was measured", x.method()...)
	d.Add("The change", x.change()...)
	return d
}
