package report

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"charm.land/lipgloss/v2"

	"hakaru"
	"hakaru/internal/compare"
	"hakaru/internal/layout"
)

// judge makes a report's input of a history, as the door does.
func judge(in Input) Input {
	e := &in.Run.Experiment
	e.Pairs = nil
	for _, v := range e.Variants {
		if v.Name != e.Baseline {
			e.Pairs = append(e.Pairs, hakaru.Pair{Base: e.Baseline, Other: v.Name})
		}
	}
	var calibration []hakaru.Result
	for _, r := range in.History {
		if r.Phase == hakaru.Calibrate {
			calibration = append(calibration, r)
		}
	}
	frozen := compare.Freeze(e, calibration)
	in.Run.Frozen = &frozen
	in.Comparisons = compare.Compare(e, frozen, in.History)
	in.Limits = compare.Limits(e, in.History)
	in.Outcome = compare.Judge(e, frozen, in.History, in.Comparisons, in.Limits)
	return in
}

// TestEveryMoment draws the report of a run that was cut off after any of its
// trials: there is always one, it fits the terminal, and it is JSON.
func TestEveryMoment(t *testing.T) {
	whole := sample().History
	claimed := 0
	for n := range len(whole) + 1 {
		in := sample()
		in.History, in.Run.State, in.Run.Done = whole[:n], hakaru.RunInterrupted, nil
		in = judge(in)
		var text, md, data bytes.Buffer
		if err := Text(&text, in, layout.Style{}); err != nil {
			t.Fatal(err)
		}
		if err := Markdown(&md, in); err != nil {
			t.Fatal(err)
		}
		if err := JSON(&data, in); err != nil {
			t.Fatal(err)
		}
		var r Report
		strict(t, data.Bytes(), &r)
		for _, line := range strings.Split(text.String(), "\n") {
			if lipgloss.Width(line) > 80 {
				t.Errorf("after %d trials: too long: %s", n, line)
			}
		}
		first, _, _ := strings.Cut(text.String(), "\n")
		claims := strings.HasPrefix(first, "processes serves 3.9")
		if claims != (r.Answer.State == compare.StateBetter) || claims && r.Answer.Winner != "processes" {
			t.Errorf("after %d trials: %q beside %+v", n, first, r.Answer)
		}
		if !claims && !strings.HasPrefix(first, "Not enough data") {
			t.Errorf("after %d trials: %q", n, first)
		}
		if claims {
			claimed++
		}
		if len(r.Trials) != n || !strings.Contains(text.String(), "was interrupted") {
			t.Errorf("after %d trials: %d in the report", n, len(r.Trials))
		}
	}
	if claimed == 0 {
		t.Error("never an answer")
	}
}

// TestSwappedBaseline: with the better variant as the baseline, the other one is
// worse, in the same words about the same figures.
func TestSwappedBaseline(t *testing.T) {
	in := sample()
	in.Run.Experiment.Baseline = "processes"
	in.Diff = nil
	in = judge(in)
	var text bytes.Buffer
	if err := Text(&text, in, layout.Style{Width: 200}); err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(text.String(), "None of the 3 variants is better than processes.") {
		t.Errorf("%.200s", text.String())
	}
	for _, line := range strings.Split(text.String(), "\n") {
		if strings.HasPrefix(line, "base ") && !strings.Contains(line, " worse ") {
			t.Error(line)
		}
	}
}

// TestFewVariants: the sentence where there is one other variant, and none.
func TestFewVariants(t *testing.T) {
	for n, want := range map[int]string{
		1: "Nothing was compared: processes is the only variant.",
		2: "base is worse than processes: throughput -",
	} {
		in := sample()
		e := &in.Run.Experiment
		e.Baseline = "processes"
		e.Variants = slices.DeleteFunc(slices.Clone(e.Variants), func(v hakaru.Variant) bool {
			return v.Name != "processes" && (n == 1 || v.Name != "base")
		})
		e.Pairs = slices.DeleteFunc(slices.Clone(e.Pairs), func(hakaru.Pair) bool { return true })
		if n == 2 {
			e.Pairs = []hakaru.Pair{{Base: "processes", Other: "base"}}
		}
		in.Diff = nil
		in.History = slices.DeleteFunc(slices.Clone(in.History), func(r hakaru.Result) bool {
			_, ok := e.Variant(r.Variant)
			return !ok
		})
		in = judge(in)
		var text bytes.Buffer
		if err := Text(&text, in, layout.Style{Width: 200}); err != nil {
			t.Fatal(err)
		}
		if got := strings.ReplaceAll(text.String(), layout.Nbsp, " "); !strings.HasPrefix(got, want) {
			t.Errorf("%d variants: %.200s", n, got)
		}
	}
}
