// Package rehearsal shows what is not yet a result: the outline of a run that
// has not been made (`--dry-run`), and one trial as it goes (`hakaru try`), for
// the person who writes an experiment file.
//
// It takes the experiment, its blocks and what was rendered of them, or what a
// trial's stages tell, and writes texts onto an io.Writer, laid out and redacted
// by layout.
//
// It renders no config, starts nothing and judges nothing.
package rehearsal

import (
	"fmt"
	"io"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"hakaru"
	"hakaru/internal/layout"
	"hakaru/internal/render"
	"hakaru/internal/unit"
	"hakaru/internal/wording"
)

// Input is a run that has not been made: what `--dry-run` shows.
type Input struct {
	Experiment hakaru.Experiment
	Blocks     []hakaru.Block // in the order in which they would be run
	Trials     int            // at most, calibration included
	PerTrial   time.Duration  // estimate of one, start and stop included
	AtMost     time.Duration  // all of them
	Render     func(variant string, at map[string]string) (hakaru.Bundle, hakaru.LoadSpec, error)
}

// Outline writes what a run would do: its trials, the command lines and files
// of each variant, the estimated time.
func Outline(w io.Writer, in Input) error {
	e := &in.Experiment
	var d layout.Document
	d.Add("", &layout.Paragraph{Text: outlineHead(in), Tone: layout.Strong})
	var missing layout.Bullets
	for _, f := range e.NotYet {
		missing = append(missing, layout.Cell{Text: f.Message, Tone: layout.Bad})
	}
	if len(missing) > 0 {
		d.Add("Not built yet, so this file cannot be run", missing)
	}
	d.Add("Plan", planFacts(e))
	if len(in.Blocks) > 0 {
		d.Add("Blocks, with their trials in order", blockTable(in.Blocks)...)
	}
	if in.Render != nil {
		if err := outlineVariants(&d, in); err != nil {
			return err
		}
	}
	return layout.Text(w, d, layout.Style{})
}

func outlineHead(in Input) string {
	e := &in.Experiment
	head := fmt.Sprintf("%s: %s", e.Name, wording.Count(len(e.Variants), "variant"))
	if e.Stratified() {
		head += " in " + fmt.Sprintf("%d strata", len(e.Strata))
	}
	head += ", at most " + wording.Count(in.Trials, "trial")
	if in.PerTrial > 0 {
		head += fmt.Sprintf(" of about %s, %s at most", layout.Whole(unit.Duration(in.PerTrial)), layout.Whole(unit.Duration(in.AtMost)))
	}
	return head + ". Nothing was started."
}

func planFacts(e *hakaru.Experiment) layout.Facts {
	f := layout.Facts{{"goal", wording.Metric(e.Goal)}, {"baseline", e.Baseline}}
	if e.Load.HTTP != nil || e.Load.Program != nil {
		f = append(f, [2]string{"load", wording.Load(e)})
	}
	pairs := make([]string, len(e.Pairs))
	for i, p := range e.Pairs {
		pairs[i] = p.Other + " against " + p.Base
	}
	if len(pairs) > 0 {
		f = append(f, [2]string{"judged", strings.Join(pairs, ", ")})
	}
	for _, l := range e.Limits {
		f = append(f, [2]string{wording.LimitKind(e, l), wording.Limit(l.Metric, l.Bound, l.AtLeast)})
	}
	d := e.Design
	if open := d.Open; open != nil {
		f = append(f, [2]string{"rate", settles(e, open)})
	}
	return append(f, [2]string{"design", fmt.Sprintf("%s, up to %s in each stratum, %s matters, seed %d", d.Method, wording.Count(d.Blocks, "block"), layout.Whole(unit.Share(d.Matters)), d.Seed)})
}

// settles says which trials of the calibration settle the rates of open loops.
func settles(e *hakaru.Experiment, open *hakaru.OpenDesign) string {
	const what = " before the comparison, of %s, show the capacity that the rate of the open loop is a share of"
	first, others := false, []string(nil)
	for _, s := range open.Shares {
		if key := hakaru.AtKey(s.At); key == hakaru.AtKey(e.Strata[0]) {
			first = true
		} else {
			others = append(others, key)
		}
	}
	switch {
	case !first:
		return fmt.Sprintf("%s at each of %s"+what, wording.Count(open.Calibrate, "trial"), strings.Join(others, ", "), e.Baseline)
	case len(others) == 0:
		return fmt.Sprintf("%s"+what, wording.Count(e.Design.Calibrate, "trial"), e.Baseline)
	}
	text := fmt.Sprintf("%s"+what, wording.Count(e.Design.Calibrate, "trial"), e.Baseline)
	if len(others) == len(e.Strata)-1 {
		return text + fmt.Sprintf("; %d more in each other stratum", open.Calibrate)
	}
	return text + fmt.Sprintf("; %d more at each of %s", open.Calibrate, strings.Join(others, ", "))
}

// blockTable shows the first blocks; the others are like them, in another
// order.
func blockTable(blocks []hakaru.Block) []layout.Part {
	const shown = 12
	t := &layout.Table{Head: []string{"block", "phase", "trials"}, Right: []bool{true, false, false}}
	stratified := slices.ContainsFunc(blocks, func(b hakaru.Block) bool { return len(b.At) > 0 })
	if stratified {
		t.Head, t.Right = append(t.Head, "at"), append(t.Right, false)
	}
	for _, b := range blocks[:min(len(blocks), shown)] {
		names := make([]string, len(b.Trials))
		for i, trial := range b.Trials {
			names[i] = layout.Whole(trial.Variant)
		}
		row := []layout.Cell{{Text: fmt.Sprint(b.N)}, {Text: string(b.Phase)}, {Text: strings.Join(names, ", ")}}
		if stratified {
			row = append(row, layout.Cell{Text: hakaru.AtKey(b.At)})
		}
		t.Rows = append(t.Rows, row)
	}
	parts := []layout.Part{t}
	if more := len(blocks) - shown; more > 0 {
		parts = append(parts, &layout.Paragraph{Text: fmt.Sprintf("… and %s, each in an order of its own.", wording.Count(more, "more"+layout.Nbsp+"block")), Tone: layout.Faint})
	}
	return parts
}

// outlineVariants shows what would be started. What does not differ from
// before, a stratum's services or a file, is not shown again.
func outlineVariants(d *layout.Document, in Input) error {
	e := &in.Experiment
	files := map[string]outlined{}
	strata := e.Strata
	if len(strata) == 0 {
		strata = []map[string]string{nil}
	}
	for _, v := range e.Variants {
		var first []hakaru.Unit
		for i, at := range strata {
			b, load, err := in.Render(v.Name, at)
			if err != nil {
				return fmt.Errorf("render variant %s: %w", v.Name, err)
			}
			title := "Variant " + v.Name
			if key := hakaru.AtKey(at); key != "" {
				title += " at " + key
			}
			parts := []layout.Part{loadFacts(load, "the baseline's capacity")}
			if i > 0 && reflect.DeepEqual(first, b.Units) {
				parts = append(parts, &layout.Paragraph{Text: "The services are the same as at " + hakaru.AtKey(strata[0]) + ".", Tone: layout.Faint})
			} else {
				parts = append(parts, unitParts(b, v.Name, files)...)
			}
			if i == 0 {
				first = b.Units
			}
			d.Add(title, parts...)
		}
	}
	return nil
}

func loadFacts(load hakaru.LoadSpec, shareOf string) layout.Facts {
	times := wording.Sent(load, shareOf)
	if h := load.HTTP; h != nil {
		return layout.Facts{{"load", fmt.Sprintf("%s %s, %d connections, %s", h.Method, h.URL, h.Connections, times)}}
	}
	if p := load.Program; p != nil {
		rendered := hakaru.ProgramLoad{Name: p.Name, Options: maps.Clone(p.Options)}
		if p.Connections > 0 {
			rendered.Options["connections"] = strconv.Itoa(p.Connections)
		}
		return layout.Facts{{"load", wording.Load(&hakaru.Experiment{Load: hakaru.Load{Program: &rendered}}) + ", " + times}}
	}
	return layout.Facts{{"load", times}}
}

// outlined is a file that was shown, and for which variant.
type outlined struct{ variant, content string }

func unitParts(b hakaru.Bundle, variant string, shown map[string]outlined) []layout.Part {
	var parts []layout.Part
	for _, u := range b.Units {
		f := append(layout.Facts{{"service", u.Service + " (" + u.Kind + ")"}}, runFacts(u)...)
		in := u.Dir
		switch u.Revision {
		case "":
		case ".":
			f = append(f, [2]string{"version", "the working tree as it is"})
		default:
			f = append(f, [2]string{"version", fmt.Sprintf("commit %.12s", u.Revision)})
			in += ", as it is in a checkout of that version"
		}
		if len(u.Build) > 0 {
			f = append(f, [2]string{"build", render.CommandLine(u.Build)})
		}
		if u.Dir != "" {
			f = append(f, [2]string{"in", in})
		}
		if u.User != "" {
			f = append(f, [2]string{"as", u.User})
		}
		for _, v := range u.Env {
			if v.Value == nil {
				f = append(f, [2]string{"env", "without " + v.Name})
			} else {
				f = append(f, [2]string{"env", v.Name + "=" + *v.Value})
			}
		}
		if u.Attached == nil {
			f = append(f, [2]string{"ready", readyText(u.Ready)})
		} else {
			f = append(f, [2]string{"up", readyText(u.Ready)})
		}
		parts = append(parts, f)
		for _, file := range u.Files {
			key := u.Service + "\x00" + file.Path
			if before, known := shown[key]; known && before.content == file.Content {
				parts = append(parts, &layout.Paragraph{Text: "File " + file.Path + ": as for " + before.variant + "."})
				continue
			}
			if _, known := shown[key]; !known {
				shown[key] = outlined{variant, file.Content}
			}
			parts = append(parts, &layout.Paragraph{Text: "File " + file.Path + ":"}, &layout.Block{Text: file.Content})
		}
	}
	return parts
}

// runFacts is the command line of a service, or how settings reach one that
// hakaru does not start.
func runFacts(u hakaru.Unit) layout.Facts {
	if u.Attached == nil {
		return layout.Facts{{"run", render.CommandLine(u.Argv)}}
	}
	f := layout.Facts{{"attached", "hakaru does not start it"}}
	for _, c := range []struct {
		what  string
		words []string
	}{{"apply", u.Attached.Apply}, {"restart", u.Attached.Restart}, {"undo", u.Attached.Undo}} {
		text := render.CommandLine(c.words)
		switch {
		case len(c.words) == 0:
			continue
		case c.what == "undo":
			text += "   (run whatever happens)"
		}
		f = append(f, [2]string{c.what, text})
	}
	if len(f) == 1 {
		f = append(f, [2]string{"changed", "nothing: it is measured as it is"})
	}
	return f
}

func readyText(r hakaru.Ready) string {
	var ways []string
	if r.Get != "" {
		text := "GET " + r.Get
		if r.Status != 0 {
			text += fmt.Sprintf(" answers %d", r.Status)
		}
		if r.Body != "" {
			text += fmt.Sprintf(" with %q in it", r.Body)
		}
		ways = append(ways, text)
	}
	if r.Connect != "" {
		ways = append(ways, r.Connect+" takes a connection")
	}
	if r.Log != "" {
		ways = append(ways, fmt.Sprintf("it writes %q", r.Log))
	}
	if len(ways) == 0 {
		return "as soon as it lives: the file does not say how to tell"
	}
	return "when " + strings.Join(ways, " and ")
}
