package report

import (
	"fmt"
	"io"
	"reflect"
	"strconv"
	"time"

	"hakaru"
	"hakaru/internal/layout"
	"hakaru/internal/unit"
	"hakaru/internal/wording"
)

// ListJSON is the list of runs as JSON.
type ListJSON struct {
	Format int           `json:"format"`
	Runs   []RunLineJSON `json:"runs"`
}

// RunLineJSON is one run of the list.
type RunLineJSON struct {
	ID      string          `json:"id"`
	Name    string          `json:"name"`
	Started time.Time       `json:"started"`
	Ended   *time.Time      `json:"ended"`
	State   hakaru.RunState `json:"state"`
	Trials  int             `json:"trials"`
	Void    int             `json:"void"`
}

// List writes the runs of a store, in the order given, as "text" or "json".
func List(w io.Writer, runs []hakaru.RunInfo, format string) error {
	switch format {
	case "json":
		l := ListJSON{Format: JSONFormat, Runs: []RunLineJSON{}}
		for _, r := range runs {
			l.Runs = append(l.Runs, RunLineJSON{r.ID, r.Name, r.Started, r.Ended, r.State, r.Trials, r.Void})
		}
		redactAll(reflect.ValueOf(&l).Elem())
		return writeJSON(w, l)
	case "text", "":
	default:
		return fmt.Errorf("list the runs: format %q: want text or json", format)
	}
	var d layout.Document
	if len(runs) == 0 {
		d.Add("", &layout.Paragraph{Text: "No run is stored yet."})
	} else {
		t := &layout.Table{Head: []string{"run", "name", "begun", "state", "took", "trials", "void"}, Right: []bool{false, false, false, false, true, true, true}}
		for _, r := range runs {
			took := "-"
			if r.Ended != nil {
				took = layout.Whole(unit.Duration(r.Ended.Sub(r.Started)))
			}
			state := layout.Cell{Text: string(r.State)}
			switch r.State {
			case hakaru.RunFailed:
				state.Tone = layout.Bad
			case hakaru.RunInterrupted, hakaru.RunRunning:
				state.Tone = layout.Doubtful
			}
			t.Rows = append(t.Rows, []layout.Cell{{Text: r.ID, Tone: layout.Strong}, {Text: r.Name}, {Text: layout.Whole(r.Started.Format("2006-01-02 15:04"))}, state, {Text: took}, {Text: strconv.Itoa(r.Trials)}, {Text: strconv.Itoa(r.Void)}})
		}
		d.Add("", t)
	}
	return layout.Text(w, d, layout.Style{})
}

// Trials writes a line for each trial of a run: `hakaru show RUN`.
func Trials(w io.Writer, run hakaru.Run, history []hakaru.Result, style layout.Style) error {
	t := &layout.Table{Head: []string{"trial", "phase", "block", "variant", wording.Metric(run.Experiment.Goal), ""}, Right: []bool{true, false, true, false, true, false}}
	for i := range history {
		r := &history[i]
		value, note := "-", layout.Cell{}
		for _, m := range r.Measurements {
			if m.Metric == run.Experiment.Goal && m.Of == "" {
				value = layout.Whole(unit.Value(m.Value, m.Unit))
			}
		}
		switch {
		case r.Void != nil:
			note = layout.Cell{Text: "void: " + wording.VoidReason(r.Void.Reason), Tone: layout.Bad}
		case len(r.Warnings) > 0:
			note = layout.Cell{Text: wording.Count(len(r.Warnings), "warning"), Tone: layout.Doubtful}
		}
		if r.Attempt > 1 {
			if note.Text != "" {
				note.Text += "; "
			}
			note.Text += "re-run " + strconv.Itoa(r.Attempt-1)
		}
		who := r.Variant
		if len(r.At) > 0 {
			who += " at " + hakaru.AtKey(r.At)
		}
		t.Rows = append(t.Rows, []layout.Cell{{Text: strconv.Itoa(r.Seq)}, {Text: string(r.Phase)}, {Text: strconv.Itoa(r.Block)}, {Text: who}, {Text: value}, note})
	}
	var d layout.Document
	head := fmt.Sprintf("Run %s (%s), %s, %s.", run.ID, run.Name, run.State, wording.Count(len(history), "trial"))
	if len(history) == 0 {
		d.Add("", &layout.Paragraph{Text: head, Tone: layout.Strong})
	} else {
		d.Add("", &layout.Paragraph{Text: head, Tone: layout.Strong}, t)
	}
	return layout.Text(w, d, style)
}

// Trial writes one trial in full, with what its services wrote:
// `hakaru show RUN TRIAL`.
func Trial(w io.Writer, run hakaru.Run, r hakaru.Result, outputs []hakaru.Output, style layout.Style) error {
	return layout.Text(w, trialDocument(run, r, outputs), style)
}
