package rehearsal

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"hakaru"
	"hakaru/internal/layout"
	"hakaru/internal/render"
	"hakaru/internal/unit"
	"hakaru/internal/wording"
)

// Try shows one trial as it goes: everything that a person who writes an
// experiment file wants to see, in the order in which it happens. The first
// error of the writer is kept; the rest is then not written.
type Try struct {
	w     io.Writer
	style layout.Style
	err   error

	proofs []hakaru.Proof // last shown
}

// NewTry returns a Try that writes onto w.
func NewTry(w io.Writer, style layout.Style) *Try { return &Try{w: w, style: style} }

// Err is the first error in writing.
func (t *Try) Err() error { return t.err }

func (t *Try) show(title string, parts ...layout.Part) {
	if t.err != nil || len(parts) == 0 {
		return
	}
	var d layout.Document
	d.Add(title, parts...)
	if t.err = layout.Text(t.w, d, t.style); t.err == nil {
		_, t.err = io.WriteString(t.w, "\n")
	}
}

// Spec shows what is about to be started and sent, as it was rendered.
func (t *Try) Spec(b hakaru.Bundle, load hakaru.LoadSpec) {
	title := "Variant " + b.Trial.Variant
	if at := hakaru.AtKey(b.Trial.At); at != "" {
		title += " at " + at
	}
	parts := append([]layout.Part{loadFacts(load, "what the closed loop shows")}, unitParts(b, b.Trial.Variant, map[string]outlined{})...)
	t.show(title, parts...)
}

// Stage names the part of the trial that begins.
func (t *Try) Stage(stage string) {
	t.show("", &layout.Paragraph{Text: "… " + stage, Tone: layout.Faint})
}

// Place shows what is up, under which process ids and addresses.
func (t *Try) Place(p hakaru.Place) {
	var f layout.Facts
	for _, name := range slices.Sorted(maps.Keys(p.Names)) {
		if !strings.Contains(name, ".") {
			f = append(f, [2]string{"{" + name + "}", p.Names[name]})
		}
	}
	for _, u := range p.Units {
		if u.Attached {
			where := fmt.Sprintf("pid %d, which hakaru did not start", u.PID)
			if u.PID == 0 {
				where = "none of its processes can be found on this machine"
			}
			f = append(f, [2]string{u.Service, fmt.Sprintf("%s; as asked for after %s", where, unit.Duration(u.Ready))})
			continue
		}
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
	title := fmt.Sprintf("In force (at %s)", proofs[0].When)
	if alike(proofs, t.proofs) {
		t.show(title, &layout.Paragraph{Text: "As before."})
		return
	}
	t.proofs = proofs
	t.show(title, wording.Proofs(proofs, false))
}

// alike reports whether two rounds of proofs say the same, but for the moment.
func alike(a, b []hakaru.Proof) bool {
	return slices.EqualFunc(a, b, func(x, y hakaru.Proof) bool {
		x.When = y.When
		return x == y
	})
}

// Result shows what was measured, what speaks against it, and what the services
// wrote.
func (t *Try) Result(r hakaru.Result, samples []hakaru.Sample, exits []hakaru.Exit, outputs []hakaru.Output) {
	if r.Void == nil {
		t.show("This trial would count", &layout.Paragraph{Text: "Nothing speaks against it.", Tone: layout.Good})
	} else {
		parts := []layout.Part{&layout.Paragraph{Text: r.Void.Evidence, Tone: layout.Bad}}
		if r.Void.Hint != "" {
			parts = append(parts, &layout.Paragraph{Text: "hint: " + r.Void.Hint})
		}
		t.show("This trial would be void ("+strings.ReplaceAll(string(r.Void.Reason), "_", " ")+")", parts...)
	}
	if len(r.Measurements) > 0 {
		table := &layout.Table{Head: []string{"measured", "of", "value"}, Right: []bool{false, false, true}}
		for _, m := range r.Measurements {
			table.Rows = append(table.Rows, []layout.Cell{{Text: figure(m)}, {Text: m.Of}, {Text: unit.Value(m.Value, m.Unit)}})
		}
		t.show("Figures", table)
	}
	if o := r.Open; o != nil {
		t.show("Open loop", &layout.Paragraph{Text: wording.OpenPhase(o)})
	}
	if c := r.Capacity; c != nil {
		t.show("Capacity", &layout.Paragraph{Text: wording.Capacity(c)}, wording.Steps(c))
	}
	var doubts layout.Bullets
	for _, w := range r.Warnings {
		doubts = append(doubts, layout.Cell{Text: w.Message, Tone: layout.Doubtful})
	}
	if len(doubts) > 0 {
		t.show("Doubt", doubts)
	}
	var bads layout.Bullets
	for _, s := range samples {
		bads = append(bads, layout.Cell{Text: strings.ReplaceAll(string(s.Kind), "_", " ") + ": " + s.Text, Tone: layout.Bad})
	}
	if len(bads) > 0 {
		t.show("The first bad answers", bads)
	}
	if sums := r.Totals; sums != nil && sums.Command != "" {
		t.show("Load as it was run", &layout.Block{Text: sums.Command})
	}
	f := layout.Facts{{"start", unit.Duration(r.StartTook)}, {"stop", unit.Duration(r.StopTook)}, {"in all", unit.Duration(r.Took)}}
	for _, e := range exits {
		state := e.State
		if e.Forced {
			state += " (had to be killed)"
		}
		f = append(f, [2]string{e.Service, state})
	}
	t.show("Time and end", f)
	for _, o := range outputs {
		title := "Written by " + wording.Writer(o.Service)
		if o.Service == "" {
			title = "Its last lines"
		}
		if strings.TrimSpace(o.Text) == "" {
			continue
		}
		t.show(title, &layout.Block{Text: ends(o.Text, outputEnds)})
	}
}

// figure names a figure by what it is called in a file, and a latency with its loop.
func figure(m hakaru.Measurement) string {
	if m.Open {
		return string(m.Metric) + " (open loop)"
	}
	return string(m.Metric)
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
