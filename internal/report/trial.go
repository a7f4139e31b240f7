package report

import (
	"fmt"
	"strings"

	"hakaru"
	"hakaru/internal/unit"
)

// trialDocument is one trial in full.
func trialDocument(run hakaru.Run, r hakaru.Result, outputs []hakaru.Output) document {
	var d document
	who := fmt.Sprintf("Trial %d of run %s: %s", r.Seq, run.ID, r.Variant)
	if len(r.At) > 0 {
		who += " at " + hakaru.AtKey(r.At)
	}
	who += fmt.Sprintf(", %s, block %d", r.Phase, r.Block)
	if r.Attempt > 1 {
		who += fmt.Sprintf(", re-run %d", r.Attempt-1)
	}
	d.add("", append([]part{&paragraph{who + ".", strong}}, trialVoid(r.Void)...)...)

	var f facts
	say := func(name, value string) { f = append(f, [2]string{name, value}) }
	say("begun", r.Started.Format("2006-01-02 15:04:05.000 MST"))
	say("took", whole(unit.Duration(r.Took))+fmt.Sprintf(" (ready after %s, stopped in %s)", whole(unit.Duration(r.StartTook)), whole(unit.Duration(r.StopTook))))
	say("window", fmt.Sprintf("%s after %s of warm-up", whole(unit.Duration(r.Window)), whole(unit.Duration(r.WarmUp))))
	if r.Host != "" {
		say("host", r.Host)
	}
	if v, known := run.Experiment.Variant(r.Variant); known && len(v.Settings) > 0 {
		var set []string
		for _, s := range v.Settings {
			set = append(set, settingText(s))
		}
		say("settings", strings.Join(set, ", "))
	}
	d.add("", f)
	d.add("Measured", measured(r)...)
	d.add("Settings in force", trialProofs(r)...)
	var warnings bullets
	for _, w := range r.Warnings {
		warnings = append(warnings, cell{w.Message, doubtful})
	}
	if len(warnings) > 0 {
		d.add("Doubt", warnings)
	}
	d.add("Half-seconds", series(r)...)
	for _, o := range outputs {
		title := "Output of " + o.Service
		if o.Cut > 0 {
			title += fmt.Sprintf(" (%s cut from the middle)", unit.Bytes(float64(o.Cut)))
		}
		if o.Text == "" {
			d.add(title, &paragraph{"It wrote nothing.", faint})
			continue
		}
		d.add(title, &block{"", o.Text})
	}
	return d
}

func trialVoid(v *hakaru.Void) []part {
	if v == nil {
		return nil
	}
	return []part{&paragraph{"Void: " + voidReason(v.Reason) + because(v), bad}}
}

func measured(r hakaru.Result) []part {
	var f facts
	for _, m := range r.Measurements {
		name := metricName(m.Metric)
		if m.Of != "" {
			name += " of " + m.Of
		}
		f = append(f, [2]string{name, whole(unit.Value(m.Value, m.Unit))})
	}
	if len(f) == 0 {
		return []part{&paragraph{"Nothing was measured.", faint}}
	}
	return []part{f}
}

func trialProofs(r hakaru.Result) []part {
	if len(r.Proofs) == 0 {
		return nil
	}
	t := &table{head: []string{"setting", "asked", "found", "by", "at", "holds"}, right: make([]bool, 6)}
	for _, p := range r.Proofs {
		name := p.Setting
		if p.Service != "" {
			name = p.Service + "." + name
		}
		if Secret(p.Setting) {
			p.Asked, p.Found = hide(p.Asked), hide(p.Found)
		}
		holds := cell{text: "yes", tone: good}
		switch p.Holds {
		case hakaru.No:
			holds = cell{"no", bad}
		case hakaru.NotProved:
			holds = cell{"not proved", doubtful}
		}
		t.rows = append(t.rows, []cell{{text: name}, {text: orNothing(p.Asked)}, {text: orNothing(p.Found)}, {text: p.Source}, {text: string(p.When)}, holds})
	}
	return []part{t}
}

// series is what came in each bucket, warm-up marked: a trend in the window, or
// a stall, can be seen at a glance.
func series(r hakaru.Result) []part {
	if len(r.Buckets) == 0 {
		return nil
	}
	t := &table{head: []string{"from", "good", "bad", ""}, right: []bool{true, true, true, false}}
	for _, b := range r.Buckets {
		note := cell{}
		if b.At < r.WarmUp {
			note = cell{"warm-up", faint}
		}
		for _, kind := range sortedKeys(b.Kinds) {
			note.text = strings.TrimPrefix(fmt.Sprintf("%s, %d %s", note.text, b.Kinds[kind], kind), ", ")
		}
		t.rows = append(t.rows, []cell{{text: whole(unit.Duration(b.At))}, {text: fmt.Sprint(b.Good)}, {text: fmt.Sprint(b.Bad)}, note})
	}
	return []part{t}
}
