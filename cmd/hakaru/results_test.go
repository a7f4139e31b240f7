package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"hakaru"
	"hakaru/internal/report"
	"hakaru/internal/store"
)

// TestReportJSON: the report of a real run decodes into what is documented, has
// nothing else, and has every name that others may rely on.
func TestReportJSON(t *testing.T) {
	s := newSite(t, `
service:
  kind: serve
  run: hakaru serve --listen {http} --wait 2ms --error-rate {rate}
  ports: [http]
variants: {base: {}, two: {processes: 2}, gone: {processes: 2, listen: "127.0.0.1:1"}}
params: {rate: 0%}
load: {http: {url: "http://{http}/9000", connections: 2, warm_up: 0s, duration: 500ms}}
goal: cpu_per_request
design: {blocks: 1, calibrate: 0}
`)
	raw := s.output("run", "--format", "json", "app.yaml")
	if again := s.output("report", "last", "--format", "json"); !bytes.Equal(raw, again) {
		t.Error("run and report print different reports")
	}
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.DisallowUnknownFields()
	var r report.Report
	if err := decoder.Decode(&r); err != nil {
		t.Fatal(err)
	}
	if r.Format != report.JSONFormat || len(r.Variants) != 3 || len(r.Comparisons) == 0 || len(r.Limits) == 0 {
		t.Errorf("%+v", r)
	}

	var tree map[string]any
	if err := json.Unmarshal(raw, &tree); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{
		"answer.text", "answer.winner", "answer.state", "goal", "variants[].name",
		"limits[].metric", "limits[].variant", "limits[].limit", "limits[].low", "limits[].high", "limits[].verdict",
		"comparisons[].metric", "comparisons[].at", "comparisons[].base", "comparisons[].other", "comparisons[].ratio",
		"comparisons[].low", "comparisons[].high", "comparisons[].verdict", "comparisons[].blocks", "comparisons[].more_blocks",
		"trials[].seq", "trials[].phase", "trials[].block", "trials[].attempt", "trials[].variant", "trials[].void",
		"trials[].measurements", "trials[].warnings",
		"trials[].proofs[].setting", "trials[].proofs[].asked", "trials[].proofs[].found", "trials[].proofs[].source",
		"trials[].proofs[].when", "trials[].proofs[].holds",
	} {
		if n := has(t, tree, path); n == 0 {
			t.Errorf("nothing is called %s", path)
		}
	}
	for _, x := range r.Comparisons {
		mustBe(t, "verdict of a comparison", x.Verdict.String(), "better", "worse", "same", "unclear")
	}
	for _, x := range r.Limits {
		mustBe(t, "verdict of a limit", x.Verdict.String(), "meets", "violates", "not_shown")
	}
	for _, trial := range r.Trials {
		for _, p := range trial.Proofs {
			mustBe(t, "holds", p.Holds.String(), "yes", "no", "not_proved")
		}
	}

	var list struct{ Runs []map[string]any }
	if err := json.Unmarshal(s.output("list", "--format", "json"), &list); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"id", "name", "started", "state"} {
		if len(list.Runs) != 1 || list.Runs[0][name] == nil {
			t.Errorf("the list has no %s: %v", name, list.Runs)
		}
	}
}

// has counts where a path leads to; every element of a list must have what
// follows it.
func has(t *testing.T, tree any, path string) int {
	t.Helper()
	if path == "" {
		return 1
	}
	name, rest, _ := strings.Cut(path, ".")
	name, isList := strings.CutSuffix(name, "[]")
	object, ok := tree.(map[string]any)
	value, there := object[name]
	if !ok || !there {
		t.Errorf("%s is missing in %v", path, tree)
		return 0
	}
	if !isList {
		return has(t, value, rest)
	}
	elements, ok := value.([]any)
	if !ok {
		t.Errorf("%s is no list: %v", name, value)
	}
	n := 0
	for _, e := range elements {
		n += has(t, e, rest)
	}
	return n
}

func mustBe(t *testing.T, what, got string, words ...string) {
	t.Helper()
	for _, w := range words {
		if got == w {
			return
		}
	}
	t.Errorf("%s is %q, want one of %v", what, got, words)
}

// TestAmbiguousRun: the beginning of a run's name is enough where it fits one.
func TestAmbiguousRun(t *testing.T) {
	s := newSite(t, killed)
	st, err := store.Open(t.Context(), filepath.Join(s.dir, "store", "hakaru.db"))
	if err != nil {
		t.Fatal(err)
	}
	first := map[byte]string{}
	var one, other string
	for n := 0; other == ""; n++ { // there are fewer letters than runs soon
		id, err := st.NewRun(t.Context(), hakaru.Run{Name: fmt.Sprint("made ", n), Started: time.Now(), State: hakaru.RunFailed})
		if err != nil {
			t.Fatal(err)
		}
		if one = first[id[0]]; one != "" {
			other = id
		}
		first[id[0]] = id
	}
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"show"}, {"report"}, {"rm"}, {"run", "--resume"}} {
		cmd := s.command(append(args, one[:1])...)
		text, err := cmd.CombinedOutput()
		if code := cmd.ProcessState.ExitCode(); code != exitFailed {
			t.Errorf("%v: %v\n%s", args, err, text)
		}
		for _, want := range []string{one, other, "hint: give more letters"} {
			if !strings.Contains(string(text), want) {
				t.Errorf("%v: no %q in\n%s", args, want, text)
			}
		}
	}
	if text := s.output("show", other[:4]); !strings.Contains(string(text), other) {
		t.Errorf("show of %s:\n%s", other[:4], text)
	}
}
