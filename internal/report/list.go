package report

import (
	"fmt"
	"io"
	"reflect"
	"strconv"
	"time"

	"hakaru"
	"hakaru/internal/unit"
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
	var d document
	if len(runs) == 0 {
		d.add("", &paragraph{"No run is stored yet.", plain})
	} else {
		t := &table{head: []string{"run", "name", "begun", "state", "took", "trials", "void"}, right: []bool{false, false, false, false, true, true, true}}
		for _, r := range runs {
			took := "-"
			if r.Ended != nil {
				took = whole(unit.Duration(r.Ended.Sub(r.Started)))
			}
			state := cell{text: string(r.State)}
			switch r.State {
			case hakaru.RunFailed:
				state.tone = bad
			case hakaru.RunInterrupted, hakaru.RunRunning:
				state.tone = doubtful
			}
			t.rows = append(t.rows, []cell{{r.ID, strong}, {text: r.Name}, {text: whole(r.Started.Format("2006-01-02 15:04"))}, state, {text: took}, {text: strconv.Itoa(r.Trials)}, {text: strconv.Itoa(r.Void)}})
		}
		d.add("", t)
	}
	return renderText(w, d, Style{})
}

// Trials writes a line for each trial of a run: `hakaru show RUN`.
func Trials(w io.Writer, run hakaru.Run, history []hakaru.Result, style Style) error {
	t := &table{head: []string{"trial", "phase", "block", "variant", metricName(run.Experiment.Goal), ""}, right: []bool{true, false, true, false, true, false}}
	for i := range history {
		r := &history[i]
		value, note := "-", cell{}
		for _, m := range r.Measurements {
			if m.Metric == run.Experiment.Goal && m.Of == "" {
				value = whole(unit.Value(m.Value, m.Unit))
			}
		}
		switch {
		case r.Void != nil:
			note = cell{"void: " + voidReason(r.Void.Reason), bad}
		case len(r.Warnings) > 0:
			note = cell{count(len(r.Warnings), "warning"), doubtful}
		}
		if r.Attempt > 1 {
			if note.text != "" {
				note.text += "; "
			}
			note.text += "re-run " + strconv.Itoa(r.Attempt-1)
		}
		who := r.Variant
		if len(r.At) > 0 {
			who += " at " + hakaru.AtKey(r.At)
		}
		t.rows = append(t.rows, []cell{{text: strconv.Itoa(r.Seq)}, {text: string(r.Phase)}, {text: strconv.Itoa(r.Block)}, {text: who}, {text: value}, note})
	}
	var d document
	head := fmt.Sprintf("Run %s (%s), %s, %s.", run.ID, run.Name, run.State, count(len(history), "trial"))
	if len(history) == 0 {
		d.add("", &paragraph{head, strong})
	} else {
		d.add("", &paragraph{head, strong}, t)
	}
	return renderText(w, d, style)
}

// Trial writes one trial in full, with what its services wrote:
// `hakaru show RUN TRIAL`.
func Trial(w io.Writer, run hakaru.Run, r hakaru.Result, outputs []hakaru.Output, style Style) error {
	return renderText(w, trialDocument(run, r, outputs), style)
}
