package report

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"hakaru"
	"hakaru/internal/render"
	"hakaru/internal/unit"
)

// Try shows one trial as it goes: everything that a person who writes an
// experiment file wants to see, in the order in which it happens. The first
// error of the writer is kept; the rest is then not written.
type Try struct {
	w     io.Writer
	style Style
	err   error
}

// NewTry returns a Try that writes onto w.
func NewTry(w io.Writer, style Style) *Try { return &Try{w: w, style: style} }

// Err is the first error in writing.
func (t *Try) Err() error { return t.err }

func (t *Try) show(title string, parts ...part) {
	if t.err != nil || len(parts) == 0 {
		return
	}
	var d document
	d.add(title, parts...)
	if t.err = renderText(t.w, d, t.style); t.err == nil {
		_, t.err = io.WriteString(t.w, "\n")
	}
}

// Spec shows what is about to be started and sent, as it was rendered.
func (t *Try) Spec(b hakaru.Bundle, load hakaru.LoadSpec) {
	title := "Variant " + b.Trial.Variant
	if at := hakaru.AtKey(b.Trial.At); at != "" {
		title += " at " + at
	}
	parts := append([]part{loadFacts(load)}, unitParts(b, b.Trial.Variant, map[string]outlined{})...)
	t.show(title, parts...)
}

// Stage names the part of the trial that begins.
func (t *Try) Stage(stage string) { t.show("", &paragraph{text: "… " + stage, tone: faint}) }

// Place shows what is up, under which process ids and addresses.
func (t *Try) Place(p hakaru.Place) {
	var f facts
	for _, name := range slices.Sorted(maps.Keys(p.Names)) {
		if !strings.Contains(name, ".") {
			f = append(f, [2]string{"{" + name + "}", p.Names[name]})
		}
	}
	for _, u := range p.Units {
		f = append(f, [2]string{u.Service, fmt.Sprintf("pid %d, ready after %s: %s", u.PID, unit.Duration(u.Ready), render.CommandLine(u.Argv))})
	}
	for _, a := range p.Answers {
		f = append(f, [2]string{"answer", fmt.Sprintf("%s: %s", a.Probe, a.Got)})
	}
	t.show("Ready after "+unit.Duration(p.Took), f)
}

// Proofs shows the answers to one round of proofs.
func (t *Try) Proofs(proofs []hakaru.Proof) {
	if len(proofs) == 0 {
		return
	}
	table := &table{head: []string{"setting", "asked", "found", "holds", "source"}, right: make([]bool, 5)}
	for _, p := range proofs {
		tone := map[hakaru.Held]tone{hakaru.Yes: good, hakaru.No: bad, hakaru.NotProved: doubtful}[p.Holds]
		table.rows = append(table.rows, []cell{
			{p.Setting, plain}, {p.Asked, plain}, {p.Found, plain},
			{strings.ReplaceAll(p.Holds.String(), "_", " "), tone}, {p.Source, faint},
		})
	}
	t.show(fmt.Sprintf("In force (at %s)", proofs[0].When), table)
}

// Result shows what was measured, what speaks against it, and what the services
// wrote.
func (t *Try) Result(r hakaru.Result, samples []hakaru.Sample, exits []hakaru.Exit, outputs []hakaru.Output) {
	if r.Void == nil {
		t.show("This trial would count", &paragraph{text: "Nothing speaks against it.", tone: good})
	} else {
		parts := []part{&paragraph{text: r.Void.Evidence, tone: bad}}
		if r.Void.Hint != "" {
			parts = append(parts, &paragraph{text: "hint: " + r.Void.Hint})
		}
		t.show("This trial would be void ("+strings.ReplaceAll(string(r.Void.Reason), "_", " ")+")", parts...)
	}
	if len(r.Measurements) > 0 {
		table := &table{head: []string{"measured", "of", "value"}, right: []bool{false, false, true}}
		for _, m := range r.Measurements {
			table.rows = append(table.rows, []cell{{string(m.Metric), plain}, {m.Of, plain}, {unit.Value(m.Value, m.Unit), plain}})
		}
		t.show("Figures", table)
	}
	var doubts bullets
	for _, w := range r.Warnings {
		doubts = append(doubts, cell{w.Message, doubtful})
	}
	if len(doubts) > 0 {
		t.show("Doubt", doubts)
	}
	var bads bullets
	for _, s := range samples {
		bads = append(bads, cell{strings.ReplaceAll(string(s.Kind), "_", " ") + ": " + s.Text, bad})
	}
	if len(bads) > 0 {
		t.show("The first bad answers", bads)
	}
	f := facts{{"start", unit.Duration(r.StartTook)}, {"stop", unit.Duration(r.StopTook)}, {"in all", unit.Duration(r.Took)}}
	for _, e := range exits {
		state := e.State
		if e.Forced {
			state += " (had to be killed)"
		}
		f = append(f, [2]string{e.Service, state})
	}
	t.show("Time and end", f)
	for _, o := range outputs {
		title := "Written by " + o.Service
		if o.Service == "" {
			title = "Its last lines"
		}
		if strings.TrimSpace(o.Text) == "" {
			continue
		}
		t.show(title, &block{text: ends(o.Text, outputEnds)})
	}
}

// outputEnds is how many lines are shown of each end of what a service wrote: a
// request log has thousands that say the same.
const outputEnds = 15

// ends keeps the first and last n lines of a text and says how many it left out.
func ends(text string, n int) string {
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	if len(lines) <= 2*n+1 {
		return text
	}
	return strings.Join(lines[:n], "\n") +
		fmt.Sprintf("\n… %d lines left out …\n", len(lines)-2*n) +
		strings.Join(lines[len(lines)-n:], "\n")
}
