// Package report writes what was found, for people and for programs: a text
// for the terminal, Markdown for a pull request, JSON with documented names
// (docs/report-json.md); the list of runs, one trial in full, and the outline
// of a run that has not been made.
//
// It takes the stored run and its history, and the comparisons, limits and
// outcome that compare made of them, and writes onto an io.Writer. The answer
// comes first, in one sentence; doubt stands under the table that it is about.
// Everything that leaves through this package is redacted (see Redact) and
// cleaned of control characters.
//
// It decides nothing: no verdict, no winner, no void. It prints no number by
// itself (unit does), opens no file and asks no clock.
package report

import (
	"io"
	"time"

	"hakaru"
	"hakaru/internal/compare"
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

// Style is how a text is to look on the terminal.
type Style struct {
	Color bool
	Width int // columns; 0: 80
}

func (s Style) width() int {
	if s.Width <= 0 {
		return 80
	}
	return max(s.Width, 40)
}

// Text writes the report for a terminal.
func Text(w io.Writer, in Input, style Style) error {
	return renderText(w, build(&in), style)
}

// Markdown writes the same report for a pull request or a ticket.
func Markdown(w io.Writer, in Input) error {
	return renderMarkdown(w, build(&in))
}

// build puts the sections in the order in which a person asks: what is the
// answer, how sure is it, what speaks against it, how was it measured.
func build(in *Input) document {
	x := newIndex(in)
	var d document
	d.add("", x.headline()...)
	d.add("", x.variantTables()...)
	d.add("Doubt", x.doubts()...)
	d.add("Void trials", x.voids()...)
	d.add("Limits", x.limitTable()...)
	d.add("Against the previous variant", x.previousTable()...)
	d.add("Other figures against "+in.Run.Experiment.Baseline+" (no verdict)", x.otherFigures()...)
	d.add("Settings in force", x.proofs()...)
	d.add("Noise", x.noise()...)
	d.add("How it was measured", x.method()...)
	d.add("The change", x.change()...)
	return d
}
