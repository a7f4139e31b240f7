package report

import (
	"fmt"
	"io"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"hakaru"
	"hakaru/internal/render"
	"hakaru/internal/unit"
)

// OutlineInput is a run that has not been made: what `--dry-run` shows.
type OutlineInput struct {
	Experiment hakaru.Experiment
	Blocks     []hakaru.Block // in the order in which they would be run
	Trials     int            // at most, calibration included
	PerTrial   time.Duration  // estimate of one, start and stop included
	AtMost     time.Duration  // all of them
	Render     func(variant string, at map[string]string) (hakaru.Bundle, hakaru.LoadSpec, error)
}

// Outline writes what a run would do: its trials, the command lines and files
// of each variant, the estimated time.
func Outline(w io.Writer, in OutlineInput) error {
	e := &in.Experiment
	var d document
	d.add("", &paragraph{outlineHead(in), strong})
	var missing bullets
	for _, f := range e.NotYet {
		missing = append(missing, cell{f.Message, bad})
	}
	if len(missing) > 0 {
		d.add("Not built yet, so this file cannot be run", missing)
	}
	d.add("Plan", planFacts(e))
	if len(in.Blocks) > 0 {
		d.add("Blocks, with their trials in order", blockTable(in.Blocks)...)
	}
	if in.Render != nil {
		if err := outlineVariants(&d, in); err != nil {
			return err
		}
	}
	return renderText(w, d, Style{})
}

func outlineHead(in OutlineInput) string {
	e := &in.Experiment
	head := fmt.Sprintf("%s: %s", e.Name, count(len(e.Variants), "variant"))
	if e.Stratified() {
		head += " in " + fmt.Sprintf("%d strata", len(e.Strata))
	}
	head += ", at most " + count(in.Trials, "trial")
	if in.PerTrial > 0 {
		head += fmt.Sprintf(" of about %s, %s at most", whole(unit.Duration(in.PerTrial)), whole(unit.Duration(in.AtMost)))
	}
	return head + ". Nothing was started."
}

func planFacts(e *hakaru.Experiment) facts {
	f := facts{{"goal", metricName(e.Goal)}, {"baseline", e.Baseline}}
	if e.Load.HTTP != nil || e.Load.Program != nil {
		f = append(f, [2]string{"load", loadText(e)})
	}
	pairs := make([]string, len(e.Pairs))
	for i, p := range e.Pairs {
		pairs[i] = p.Other + " against " + p.Base
	}
	if len(pairs) > 0 {
		f = append(f, [2]string{"judged", strings.Join(pairs, ", ")})
	}
	for _, l := range e.Limits {
		f = append(f, [2]string{"limit", limitText(l.Metric, l.Bound, l.AtLeast)})
	}
	d := e.Design
	return append(f, [2]string{"design", fmt.Sprintf("%s, up to %s in each stratum, %s matters, seed %d", d.Method, count(d.Blocks, "block"), whole(unit.Share(d.Matters)), d.Seed)})
}

// blockTable shows the first blocks; the others are like them, in another
// order.
func blockTable(blocks []hakaru.Block) []part {
	const shown = 12
	t := &table{head: []string{"block", "phase", "trials"}, right: []bool{true, false, false}}
	stratified := slices.ContainsFunc(blocks, func(b hakaru.Block) bool { return len(b.At) > 0 })
	if stratified {
		t.head, t.right = append(t.head, "at"), append(t.right, false)
	}
	for _, b := range blocks[:min(len(blocks), shown)] {
		names := make([]string, len(b.Trials))
		for i, trial := range b.Trials {
			names[i] = whole(trial.Variant)
		}
		row := []cell{{text: fmt.Sprint(b.N)}, {text: string(b.Phase)}, {text: strings.Join(names, ", ")}}
		if stratified {
			row = append(row, cell{text: hakaru.AtKey(b.At)})
		}
		t.rows = append(t.rows, row)
	}
	parts := []part{t}
	if more := len(blocks) - shown; more > 0 {
		parts = append(parts, &paragraph{fmt.Sprintf("… and %s, each in an order of its own.", count(more, "more"+nbsp+"block")), faint})
	}
	return parts
}

// outlineVariants shows what would be started. What does not differ from
// before, a stratum's services or a file, is not shown again.
func outlineVariants(d *document, in OutlineInput) error {
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
			parts := []part{loadFacts(load)}
			if i > 0 && reflect.DeepEqual(first, b.Units) {
				parts = append(parts, &paragraph{"The services are the same as at " + hakaru.AtKey(strata[0]) + ".", faint})
			} else {
				parts = append(parts, unitParts(b, v.Name, files)...)
			}
			if i == 0 {
				first = b.Units
			}
			d.add(title, parts...)
		}
	}
	return nil
}

func loadFacts(load hakaru.LoadSpec) facts {
	times := fmt.Sprintf("%s of warm-up, %s measured", whole(unit.Duration(load.WarmUp)), whole(unit.Duration(load.Window)))
	if h := load.HTTP; h != nil {
		return facts{{"load", fmt.Sprintf("%s %s, %d connections, %s", h.Method, h.URL, h.Connections, times)}}
	}
	return facts{{"load", times}}
}

// outlined is a file that was shown, and for which variant.
type outlined struct{ variant, content string }

func unitParts(b hakaru.Bundle, variant string, shown map[string]outlined) []part {
	var parts []part
	for _, u := range b.Units {
		f := facts{{"service", u.Service + " (" + u.Kind + ")"}, {"run", render.CommandLine(u.Argv)}}
		if u.Dir != "" {
			f = append(f, [2]string{"in", u.Dir})
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
		f = append(f, [2]string{"ready", readyText(u.Ready)})
		parts = append(parts, f)
		for _, file := range u.Files {
			key := u.Service + "\x00" + file.Path
			if before, known := shown[key]; known && before.content == file.Content {
				parts = append(parts, &paragraph{"File " + file.Path + ": as for " + before.variant + ".", plain})
				continue
			}
			if _, known := shown[key]; !known {
				shown[key] = outlined{variant, file.Content}
			}
			parts = append(parts, &paragraph{"File " + file.Path + ":", plain}, &block{"", file.Content})
		}
	}
	return parts
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

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
