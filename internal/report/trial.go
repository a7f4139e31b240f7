package report

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"hakaru"
	"hakaru/internal/layout"
	"hakaru/internal/unit"
	"hakaru/internal/wording"
)

// trialDocument is one trial in full.
func trialDocument(run hakaru.Run, r hakaru.Result, outputs []hakaru.Output) layout.Document {
	var d layout.Document
	who := fmt.Sprintf("Trial %d of run %s: %s", r.Seq, run.ID, r.Variant)
	if len(r.At) > 0 {
		who += " at " + hakaru.AtKey(r.At)
	}
	who += fmt.Sprintf(", %s, block %d", r.Phase, r.Block)
	if r.Attempt > 1 {
		who += fmt.Sprintf(", re-run %d", r.Attempt-1)
	}
	d.Add("", append([]layout.Part{&layout.Paragraph{Text: who + ".", Tone: layout.Strong}}, trialVoid(r.Void)...)...)

	var f layout.Facts
	say := func(name, value string) { f = append(f, [2]string{name, value}) }
	say("begun", r.Started.Format("2006-01-02 15:04:05.000 MST"))
	say("took", layout.Whole(unit.Duration(r.Took))+fmt.Sprintf(" (ready after %s, stopped in %s)", layout.Whole(unit.Duration(r.StartTook)), layout.Whole(unit.Duration(r.StopTook))))
	say("window", fmt.Sprintf("%s after %s of warm-up", layout.Whole(unit.Duration(r.Window)), layout.Whole(unit.Duration(r.WarmUp))))
	if t := r.Totals; t != nil {
		say("load", t.Command)
		if t.Failed == "" {
			say("it says", totals(t))
		}
	}
	if o := r.Open; o != nil {
		say("open loop", wording.OpenPhase(o))
	}
	if c := r.Capacity; c != nil {
		say("capacity", wording.Capacity(c))
	}
	if r.Host != "" {
		say("host", r.Host)
	}
	if v, known := run.Experiment.Variant(r.Variant); known && len(v.Settings) > 0 {
		var set []string
		for _, s := range v.Settings {
			set = append(set, wording.Setting(s))
		}
		say("settings", strings.Join(set, ", "))
	}
	d.Add("", f)
	d.Add("Measured", measured(r)...)
	d.Add("Settings in force", trialProofs(r)...)
	var warnings layout.Bullets
	for _, w := range r.Warnings {
		warnings = append(warnings, layout.Cell{Text: w.Message, Tone: layout.Doubtful})
	}
	if len(warnings) > 0 {
		d.Add("Doubt", warnings)
	}
	if c := r.Capacity; c != nil {
		d.Add("Rates that were tried", wording.Steps(c))
	}
	d.Add("Half-seconds", series(r)...)
	if o := r.Open; o != nil && !o.Whole {
		d.Add("Half-seconds of the open loop", bucketTable(o.Buckets, o.WarmUp)...)
	}
	for _, o := range outputs {
		title := "Output of " + wording.Writer(o.Service)
		if o.Cut > 0 {
			title += fmt.Sprintf(" (%s cut from the middle)", unit.Bytes(float64(o.Cut)))
		}
		if o.Text == "" {
			d.Add(title, &layout.Paragraph{Text: "It wrote nothing.", Tone: layout.Faint})
			continue
		}
		d.Add(title, &layout.Block{Text: o.Text})
	}
	return d
}

// totals is what a load program told.
func totals(t *hakaru.Totals) string {
	text := layout.Whole(unit.Duration(t.Took))
	if t.Good > 0 || t.Bad > 0 {
		text += fmt.Sprintf(", %d good", t.Good)
		if !t.BadUnknown {
			text += fmt.Sprintf(", %d bad", t.Bad)
		}
	}
	for i, kind := range sortedKeys(t.Kinds) {
		text += []string{": ", ", "}[min(i, 1)] + fmt.Sprintf("%d %s", t.Kinds[kind], strings.ReplaceAll(kind, "_", " "))
	}
	if t.Score != nil {
		text += ", score " + unit.Value(*t.Score, "1")
	}
	return text
}

func trialVoid(v *hakaru.Void) []layout.Part {
	if v == nil {
		return nil
	}
	return []layout.Part{&layout.Paragraph{Text: "Void: " + wording.VoidReason(v.Reason) + wording.Because(v), Tone: layout.Bad}}
}

func measured(r hakaru.Result) []layout.Part {
	var f layout.Facts
	for _, m := range r.Measurements {
		name := wording.Measured(m)
		if m.Of != "" {
			name += " of " + m.Of
		}
		f = append(f, [2]string{name, layout.Whole(unit.Value(m.Value, m.Unit))})
	}
	if len(f) == 0 {
		return []layout.Part{&layout.Paragraph{Text: "Nothing was measured.", Tone: layout.Faint}}
	}
	return []layout.Part{f}
}

func trialProofs(r hakaru.Result) []layout.Part {
	if len(r.Proofs) == 0 {
		return nil
	}
	return []layout.Part{wording.Proofs(r.Proofs, true)}
}

// series is what came in each bucket, warm-up marked: a trend in the window, or
// a stall, can be seen at a glance.
func series(r hakaru.Result) []layout.Part {
	if len(r.Buckets) == 0 || r.Totals != nil { // a load program tells sums only
		return nil
	}
	return bucketTable(r.Buckets, r.WarmUp)
}

func bucketTable(buckets []hakaru.Bucket, warmUp time.Duration) []layout.Part {
	if len(buckets) == 0 {
		return nil
	}
	t := &layout.Table{Head: []string{"from", "good", "bad", ""}, Right: []bool{true, true, true, false}}
	for _, b := range buckets {
		note := layout.Cell{}
		if b.At < warmUp {
			note = layout.Cell{Text: "warm-up", Tone: layout.Faint}
		}
		for _, kind := range sortedKeys(b.Kinds) {
			note.Text = strings.TrimPrefix(fmt.Sprintf("%s, %d %s", note.Text, b.Kinds[kind], kind), ", ")
		}
		t.Rows = append(t.Rows, []layout.Cell{{Text: layout.Whole(unit.Duration(b.At))}, {Text: fmt.Sprint(b.Good)}, {Text: fmt.Sprint(b.Bad)}, note})
	}
	return []layout.Part{t}
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
