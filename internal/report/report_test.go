package report

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"charm.land/lipgloss/v2"
	"github.com/google/go-cmp/cmp"

	"hakaru"
	"hakaru/internal/compare"
	"hakaru/internal/layout"
)

var update = flag.Bool("update", false, "rewrite the golden files")

var began = time.Date(2026, 3, 1, 9, 30, 0, 0, time.UTC)

func pointer[T any](v T) *T { return &v }

func setting(name, value string) hakaru.Setting {
	return hakaru.Setting{Name: name, Level: value, Value: &value}
}

// sample is a run over three variants beside the baseline; each case changes it.
func sample() Input {
	exp := hakaru.Experiment{
		Name: "fib", Dir: "/srv/fib", Question: "Which settings serve the Fibonacci app fastest?",
		Variants: []hakaru.Variant{
			{Name: "base"},
			{Name: "processes", Settings: []hakaru.Setting{setting("processes", "4")}},
			{Name: "threads", From: "processes", Settings: []hakaru.Setting{setting("processes", "4"), setting("threads", "2")}},
			{Name: "quiet", From: "threads", Settings: []hakaru.Setting{setting("processes", "4"), setting("threads", "2"), {Name: "request-log", Level: "none"}}},
		},
		Strata: []map[string]string{{}}, Baseline: "base",
		Load:   hakaru.Load{HTTP: &hakaru.HTTPLoad{URL: "http://{http}/20", Connections: "64", Status: "200", Expect: "6765"}},
		Goal:   hakaru.Throughput,
		Limits: []hakaru.Limit{{Metric: hakaru.Errors, Bound: 0.01, Implied: true}},
		Design: hakaru.Design{Method: hakaru.MethodCompare, Blocks: 28, Matters: 0.03, Seed: 7, Calibrate: 6},
	}
	machine := hakaru.Environment{Hakaru: "0.1.0", Hostname: "bench1", Kernel: "Linux 6.12.9", CPUModel: "EPYC 7B13", CPUs: 2, Memory: 8 << 30,
		Limits: map[string]string{"nofile": "1024", "somaxconn": "4096"}, Programs: map[string]string{"uwsgi": "2.0.28"}}
	in := Input{
		Run: hakaru.Run{
			ID: "k3f9a", Name: "fib", Started: began, Ended: pointer(began.Add(4*time.Minute + 11*time.Second)), State: hakaru.RunDone,
			Experiment: exp, Service: machine, Loader: machine,
			Frozen: &hakaru.Frozen{Alpha: 0.05, Matters: 0.03, Comparison: 3, Looks: []int{3, 5, 10, 14, 20, 28}, Level: 0.05 / 18, Blocks: 28,
				Noise: hakaru.Noise{Trials: 6, CV: map[hakaru.Metric]float64{hakaru.Throughput: 0.021, hakaru.CPUPerRequest: 0.0093},
					BlocksNeeded: map[hakaru.Metric]int{hakaru.Throughput: 18, hakaru.CPUPerRequest: 4}, Took: 3400 * time.Millisecond}},
			Done: &hakaru.Done{State: hakaru.Decided, Text: "Every comparison is decided."},
		},
		Outcome: compare.Outcome{State: compare.StateBetter, Complete: 5, VoidTrials: 1,
			Strata: []compare.Answer{{State: compare.StateBetter, Winner: "processes", Blocks: 5}}},
		Diff: map[string]string{"processes": "--- uwsgi.ini\n+++ uwsgi.ini (processes)\n@@ -1,3 +1,4 @@\n [uwsgi]\n master = true\n+processes = 4\n http = {http}\n"},
	}
	in.History = history(exp.Variants, exp.Strata, 5)
	in.Comparisons = []hakaru.Comparison{
		judged("base", "processes", 3.97, 3.9, 4.05, hakaru.Better, 5),
		judged("base", "threads", 1.124, 1.101, 1.148, hakaru.Better, 5),
		judged("base", "quiet", 1.002, 0.991, 1.013, hakaru.Same, 5),
		change1(hakaru.CPUPerRequest, "base", "processes", 1.012, 0.995, 1.03),
		change1(hakaru.Memory, "base", "processes", 1.09, 1.07, 1.11),
		change1(hakaru.P99, "base", "processes", 0.31, 0.28, 0.34),
		change1(hakaru.CPUPerRequest, "base", "threads", 0.97, 0.95, 0.99),
	}
	for _, v := range exp.Variants {
		in.Limits = append(in.Limits, hakaru.LimitResult{Metric: hakaru.Errors, Variant: v.Name, Limit: 0.01, Value: 0.0002, Low: 0, High: 0.0011, Trials: 5, Verdict: hakaru.Meets})
	}
	return in
}

func judged(base, other string, ratio, low, high float64, v hakaru.Verdict, blocks int) hakaru.Comparison {
	return hakaru.Comparison{Metric: hakaru.Throughput, Base: base, Other: other, Blocks: blocks, Trials: 2 * blocks, Ratio: ratio, Low: low, High: high,
		SameLow: low * 1.001, SameHigh: high * 0.999, Level: 0.05 / 18, Verdict: v, Judged: true}
}

func change1(m hakaru.Metric, base, other string, ratio, low, high float64) hakaru.Comparison {
	c := judged(base, other, ratio, low, high, hakaru.Unclear, 5)
	c.Metric, c.Judged = m, false
	return c
}

// history has six calibration trials and the given number of blocks in each
// stratum; the first trial of the second block is void and run again.
func history(variants []hakaru.Variant, strata []map[string]string, blocks int) []hakaru.Result {
	var all []hakaru.Result
	add := func(r hakaru.Result) {
		r.Seq = len(all) + 1
		r.Started, r.Took, r.WarmUp, r.Window = began.Add(time.Duration(r.Seq)*4*time.Second), 3400*time.Millisecond, time.Second, 2*time.Second
		r.StartTook, r.StopTook = 210*time.Millisecond, 90*time.Millisecond
		all = append(all, r)
	}
	result := func(t hakaru.Trial, n int) hakaru.Result {
		rate := map[string]float64{"base": 187.4, "processes": 744.2, "threads": 210.7, "quiet": 187.9}[t.Variant]
		return hakaru.Result{Trial: t,
			Measurements: []hakaru.Measurement{
				{Metric: hakaru.Throughput, Value: rate * (1 + 0.01*float64(n%3-1)), Unit: "1/s"},
				{Metric: hakaru.CPUPerRequest, Value: 0.00512, Unit: "s"}, {Metric: hakaru.CPUPerRequest, Of: "service", Value: 0.00512, Unit: "s"},
				{Metric: hakaru.P99, Value: 0.3412, Unit: "s"}, {Metric: hakaru.Errors, Value: 0, Unit: "ratio"}, {Metric: hakaru.Memory, Value: 24.2e6, Unit: "B"}},
			Proofs: []hakaru.Proof{{Service: "service", Setting: "processes", Asked: "4", Found: "4", Source: "GET /status", When: hakaru.AtReady, Holds: hakaru.Yes}},
		}
	}
	for i := range 6 {
		add(result(hakaru.Trial{Phase: hakaru.Calibrate, Block: i + 1, Attempt: 1, Variant: variants[0].Name}, i))
	}
	n := 6
	for b := range blocks {
		for _, at := range strata {
			n++
			for i, v := range variants {
				r := result(hakaru.Trial{Phase: hakaru.Compare, Block: n, Attempt: 1, Variant: v.Name, At: at}, b)
				if b == 1 && i == 1 {
					void := r
					void.Measurements = nil
					void.Void = &hakaru.Void{Reason: hakaru.VoidOthers, Evidence: "other programs took 61 % of 2 CPUs", Hint: "end them, or pin the service and the load"}
					add(void)
					r.Attempt = 2
				}
				if b == 2 && i < 2 {
					r.Warnings = []hakaru.Warning{{Code: "busy_neighbours", Message: fmt.Sprintf("other programs took %d %% of the machine", 12+i)}}
				}
				add(r)
			}
		}
	}
	return all
}

// cases are the reports that are kept as golden files.
func cases() map[string]func(in *Input) {
	return map[string]func(in *Input){
		"winner": func(in *Input) {
			in.Run.Warnings = []hakaru.Warning{{Code: "shared_cpus", Message: "the load and the service shared CPUs, so what one used the other lacked"}}
		},
		"ties-and-excluded": func(in *Input) {
			in.Outcome.Strata[0].Ties, in.Outcome.Strata[0].Excluded = []string{"threads"}, []string{"quiet"}
			in.Outcome.Strata[0].NotShown = []hakaru.Metric{hakaru.P99}
			in.Comparisons[0] = judged("base", "processes", 1.131, 1.11, 1.152, hakaru.Better, 5)
			in.Comparisons[2] = judged("base", "quiet", 1.4, 1.35, 1.45, hakaru.Better, 5)
			in.Limits[3].Value, in.Limits[3].Low, in.Limits[3].High, in.Limits[3].Verdict = 0.043, 0.032, 0.055, hakaru.Violates
			in.Limits = append(in.Limits, hakaru.LimitResult{Metric: hakaru.P99, Variant: "processes", Limit: 0.25, Value: 0.31, Trials: 5,
				Reason: "p99 of a closed loop is not judged"})
		},
		"same": func(in *Input) {
			in.Outcome.State, in.Outcome.Strata[0] = compare.StateSame, compare.Answer{State: compare.StateSame, Winner: "base", Blocks: 20}
			for i, v := range []string{"processes", "threads", "quiet"} {
				in.Comparisons[i] = judged("base", v, 1.001, 0.989, 1.012, hakaru.Same, 20)
			}
			in.Diff = nil
		},
		"none-better": func(in *Input) {
			in.Outcome.State, in.Outcome.Strata[0] = compare.StateNoneBetter, compare.Answer{State: compare.StateNoneBetter, Winner: "base", Blocks: 5}
			in.Comparisons[0] = judged("base", "processes", 0.81, 0.78, 0.84, hakaru.Worse, 5)
			in.Comparisons[1] = judged("base", "threads", 0.9, 0.87, 0.93, hakaru.Worse, 5)
			in.Diff = nil
		},
		"cpu-goal": func(in *Input) {
			in.Run.Experiment.Goal = hakaru.CPUPerRequest
			for i := range in.Comparisons {
				c := &in.Comparisons[i]
				c.Judged = c.Metric == hakaru.CPUPerRequest
				if c.Judged {
					c.Ratio, c.Low, c.High, c.Verdict = 0.799, 0.781, 0.819, hakaru.Better
				} else {
					c.Verdict = hakaru.Unclear
				}
			}
		},
		"open-loop": func(in *Input) {
			e := &in.Run.Experiment
			e.Goal, e.Load.HTTP.Rate, e.Load.HTTP.Arrival = hakaru.P99, "70%", "poisson"
			e.Limits = append([]hakaru.Limit{{Metric: hakaru.P50, Bound: 0.05}}, e.Limits...)
			in.Run.Frozen.Rates = []hakaru.OpenRate{{Rate: 131, Share: 0.7, Capacity: 187.4, Trials: 6}}
			for i := range in.Comparisons {
				c := &in.Comparisons[i]
				c.Judged = c.Metric == hakaru.P99
				if c.Judged {
					c.Ratio, c.Low, c.High, c.Verdict = 0.31, 0.28, 0.34, hakaru.Better
				} else {
					c.Verdict = hakaru.Unclear
				}
			}
			for i := range in.History {
				r := &in.History[i]
				for j := range r.Measurements {
					r.Measurements[j].Open = r.Measurements[j].Metric == hakaru.P99 && r.Phase == hakaru.Compare
				}
			}
			in.Limits = append(in.Limits, hakaru.LimitResult{Metric: hakaru.P50, Variant: "processes", Limit: 0.05, Value: 0.031, Low: 0.03, High: 0.032, Trials: 5, Verdict: hakaru.Meets})
		},
		"capacity": func(in *Input) {
			e := &in.Run.Experiment
			e.Goal = hakaru.Capacity
			e.Limits = []hakaru.Limit{{Metric: hakaru.P99, Bound: 0.05}, {Metric: hakaru.Errors, Bound: 0.01, Implied: true}}
			in.Comparisons, in.Limits = in.Comparisons[:3], nil
			for i := range in.Comparisons {
				in.Comparisons[i].Metric = hakaru.Capacity
			}
			for i := range in.History {
				r := &in.History[i]
				for j := range r.Measurements {
					if r.Measurements[j].Metric == hakaru.Throughput {
						r.Measurements[j].Metric = hakaru.Capacity
					}
				}
			}
		},
		"unclear": func(in *Input) {
			in.Outcome.State = compare.StateUnclear
			in.Outcome.Strata[0] = compare.Answer{State: compare.StateUnclear, Winner: "base", Blocks: 28, Undecided: []string{"processes", "threads"}}
			in.Comparisons[0] = judged("base", "processes", 1.02, 0.96, 1.08, hakaru.Unclear, 28)
			in.Comparisons[0].MoreBlocks = 41
			in.Comparisons[0].Warnings = []hakaru.Warning{{Code: "acts_after", Message: "max-worker-lifetime needs 30 s to act, a trial lasts 3 s"}}
			in.Comparisons[1] = judged("base", "threads", 1.01, 0.97, 1.05, hakaru.Unclear, 28)
			in.Comparisons[1].MoreBlocks = 12
			in.Comparisons[1].Warnings = in.Comparisons[0].Warnings
			in.Run.Done = &hakaru.Done{State: hakaru.Exhausted, Text: "The last planned look, after 28 blocks, is reached."}
			in.Diff = nil
		},
		"cannot-act": func(in *Input) {
			in.Outcome.State = compare.StateUnclear
			in.Outcome.Strata[0] = compare.Answer{State: compare.StateUnclear, Winner: "base", Blocks: 5, Undecided: []string{"processes", "quiet"}}
			in.Comparisons[0] = judged("base", "processes", 1.02, 0.96, 1.08, hakaru.Unclear, 5)
			in.Comparisons[0].MoreBlocks = 41
			in.Comparisons[1] = judged("base", "threads", 0.9, 0.87, 0.93, hakaru.Worse, 5)
			in.Comparisons[2] = judged("base", "quiet", 1.001, 0.99, 1.012, hakaru.Unclear, 5)
			in.Comparisons[2].Warnings = []hakaru.Warning{{Code: compare.WarnCannotAct, Message: "base and quiet differ only in max-lifetime, which needs 30s to act, longer than a trial lasts, so no verdict is given"}}
			in.Run.Done = &hakaru.Done{State: hakaru.Exhausted, Text: "The last planned look, after 5 blocks, is reached."}
			in.Diff = nil
		},
		"no-interval": func(in *Input) {
			in.Outcome.State = compare.StateUnclear
			in.Outcome.Strata[0] = compare.Answer{State: compare.StateUnclear, Winner: "base", Blocks: 1, Undecided: []string{"processes", "threads", "quiet"}}
			for i := range in.Comparisons {
				c := &in.Comparisons[i]
				c.Blocks, c.Verdict, c.Low, c.High, c.SameLow, c.SameHigh = 1, hakaru.Unclear, 0, 0, 0, 0
				c.Warnings = []hakaru.Warning{{Code: compare.WarnNoInterval, Message: "too few values (1) for an interval at level 0.0028"}}
			}
			in.Comparisons[2].Ratio = 0 // no block has the figure of both
			in.Diff = nil
		},
		"strata": func(in *Input) {
			e := &in.Run.Experiment
			ro, rw := map[string]string{"mix": "ro"}, map[string]string{"mix": "rw"}
			e.Levels = []hakaru.Factor{{Name: "mix", Levels: []hakaru.Setting{setting("mix", "ro"), setting("mix", "rw")}}}
			e.Strata = []map[string]string{ro, rw}
			in.History = history(e.Variants, e.Strata, 5)
			in.Outcome.Strata = []compare.Answer{
				{At: ro, State: compare.StateBetter, Winner: "processes", Blocks: 5},
				{At: rw, State: compare.StateUnclear, Winner: "base", Blocks: 5, Undecided: []string{"processes", "threads"}},
			}
			var all []hakaru.Comparison
			for _, c := range in.Comparisons {
				c.At = ro
				all = append(all, c)
				c.At = rw
				if c.Judged && c.Other != "quiet" {
					c.Ratio, c.Low, c.High, c.Verdict, c.MoreBlocks = 1.03, 0.98, 1.08, hakaru.Unclear, 9
				}
				all = append(all, c)
			}
			in.Comparisons = all
			in.Limits = nil
		},
		"strata-alike": func(in *Input) {
			cases()["strata"](in)
			in.Outcome.Strata[1] = in.Outcome.Strata[0]
			in.Outcome.Strata[1].At = map[string]string{"mix": "rw"}
			for i := range in.Comparisons {
				in.Comparisons[i].Verdict = in.Comparisons[i-i%2].Verdict
			}
		},
		"limit-violated": func(in *Input) {
			in.Outcome.State, in.Outcome.ViolatesLimit = compare.StateNoneBetter, true
			in.Outcome.Strata[0] = compare.Answer{State: compare.StateNoneBetter, Winner: "base", Blocks: 5, Excluded: []string{"processes", "threads"}, Violated: []hakaru.Metric{hakaru.Errors}}
			in.Run.Experiment.Limits[0] = hakaru.Limit{Metric: hakaru.Errors, Bound: 0.001}
			for i := range in.Limits {
				in.Limits[i].Limit, in.Limits[i].Value, in.Limits[i].Low, in.Limits[i].High, in.Limits[i].Verdict = 0.001, 0.021, 0.014, 0.029, hakaru.Violates
			}
			in.Diff = nil
		},
		"unusable": func(in *Input) {
			in.Outcome.Unusable = []compare.UnusableVariant{{Variant: "quiet", Reason: hakaru.VoidNotStarted, Evidence: "exit status 1 after 40 ms: unrecognized option 'request-log'"}}
			in.Comparisons[2].Blocks = 0
			for i := range in.History {
				if r := &in.History[i]; r.Variant == "quiet" {
					r.Measurements, r.Proofs = nil, nil
					r.Void = &hakaru.Void{Reason: hakaru.VoidNotStarted, Evidence: "exit status 1 after 40 ms: unrecognized option 'request-log'", Hint: "hakaru show k3f9a 10 has its output"}
				}
			}
		},
		"proofs": func(in *Input) {
			for i := range in.History {
				r := &in.History[i]
				switch r.Variant {
				case "threads":
					r.Proofs = append(r.Proofs, hakaru.Proof{Service: "service", Setting: "threads", Asked: "2", Found: "1", Source: "threads of pid 812", When: hakaru.UnderLoad, Holds: hakaru.No})
					r.Proofs = append(r.Proofs, r.Proofs[len(r.Proofs)-1]) // at the end once more
				case "quiet":
					r.Proofs = append(r.Proofs, hakaru.Proof{Service: "service", Setting: "request-log", Found: "", Source: "kind command knows no way to see it", When: hakaru.AtReady})
				}
			}
		},
		"void": func(in *Input) {
			in.Outcome = compare.Outcome{State: compare.StateVoid, VoidTrials: 12, Dropped: 3, Strata: []compare.Answer{{State: compare.StateVoid, Dropped: 3}}}
			for i := range in.Comparisons {
				in.Comparisons[i].Blocks, in.Comparisons[i].Verdict = 0, hakaru.Unclear
			}
			in.History = in.History[:20]
			for i := range in.History {
				if r := &in.History[i]; r.Phase == hakaru.Compare {
					r.Measurements = nil
					r.Void = &hakaru.Void{Reason: hakaru.VoidGenerator, Evidence: "the generator's thread was 97 % busy while the service used 41 % of its CPUs"}
				}
			}
			in.Run.Done = &hakaru.Done{State: hakaru.AllVoid, Text: "Void trials prevail, so the run was ended."}
			in.Limits, in.Diff = nil, nil
		},
		"baseline-unusable": func(in *Input) {
			cases()["void"](in)
			in.Outcome.Unusable = []compare.UnusableVariant{{Variant: "base", Reason: hakaru.VoidWrongAnswers, Evidence: "43 of 120 answers had status 500."}}
		},
		"interrupted": func(in *Input) {
			in.Run.State, in.Run.Done = hakaru.RunInterrupted, nil
		},
		"interrupted-before-first-look": func(in *Input) {
			in.Run.State, in.Run.Done = hakaru.RunInterrupted, nil
			in.Outcome = compare.Outcome{State: compare.StateUnclear, Complete: 2, VoidTrials: 1,
				Strata: []compare.Answer{{State: compare.StateUnclear, Winner: "base", Blocks: 2, Undecided: []string{"processes", "threads", "quiet"}}}}
			in.History = history(in.Run.Experiment.Variants, in.Run.Experiment.Strata, 2)
			for i := range in.Comparisons {
				c := &in.Comparisons[i]
				c.Blocks, c.Verdict, c.Ratio, c.Low, c.High = 0, hakaru.Unclear, 0, 0, 0
				c.Warnings = []hakaru.Warning{{Code: "no_look", Message: "no planned look is reached yet"}}
			}
			for i := range in.Limits {
				in.Limits[i] = hakaru.LimitResult{Metric: hakaru.Errors, Variant: in.Limits[i].Variant, Limit: 0.01, Trials: 2, Reason: "needs 3 trials"}
			}
			in.Diff = nil
		},
		"previous": func(in *Input) {
			in.Comparisons = append(in.Comparisons,
				judged("processes", "threads", 0.283, 0.274, 0.291, hakaru.Worse, 5),
				judged("threads", "quiet", 0.98, 0.94, 1.02, hakaru.Unclear, 5))
			in.Comparisons[len(in.Comparisons)-1].MoreBlocks = 7
		},
		"calibrating": func(in *Input) {
			in.Run.State, in.Run.Done, in.Run.Frozen, in.Run.Ended = hakaru.RunRunning, nil, nil, nil
			in.Now = began.Add(90 * time.Second)
			in.History, in.Comparisons, in.Limits, in.Outcome, in.Diff = in.History[:3], nil, nil, compare.Outcome{State: compare.StateUnclear}, nil
		},
		"secrets": func(in *Input) {
			e := &in.Run.Experiment
			e.Load.HTTP.Headers = map[string]string{"Authorization": "Bearer GEHEIM", "X-Api-Key": "GEHEIM", "Accept": "*/*"}
			e.Load.HTTP.URL = "http://me:GEHEIM@{http}/?token=GEHEIM&n=20"
			e.Variants[1].Settings = append(e.Variants[1].Settings, setting("db-password", "GEHEIM"), setting("key_buffer_size", "16M"))
			in.Diff["processes"] = " [client]\n-password = GEHEIM\n+password = GEHEIM2\n key_buffer_size = 16M\n"
			r := &in.History[8]
			r.Proofs = append(r.Proofs, hakaru.Proof{Setting: "db-password", Asked: "GEHEIM", Found: "GEHEIM", Source: "cmdline of pid 12: app --password GEHEIM", Holds: hakaru.Yes})
			r.Warnings = append(r.Warnings, hakaru.Warning{Code: "log", Message: `the log says {"password":"GEHEIM"}`})
			in.Run.Service.Programs = map[string]string{"app": "1.0 DB_PASSWORD=GEHEIM"}
			in.Run.Warnings = []hakaru.Warning{{Code: "url", Message: "postgres://me:GEHEIM@db/x did not answer"}}
		},
		"hostile": func(in *Input) {
			in.Run.Experiment.Question = "\x1b]0;owned\x07\x1b[2Jどの設定が速い? | `a` <b> *c*"
			in.Run.Warnings = []hakaru.Warning{{Code: "x", Message: "bad \xff bytes \u202e and\ttab"}}
		},
	}
}

func caseInput(name string) Input {
	in := sample()
	cases()[name](&in)
	return in
}

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), string(got)); d != "" {
		t.Errorf("%s: -want +got\n%s", path, d)
	}
}

func TestGolden(t *testing.T) {
	for name := range cases() {
		t.Run(name, func(t *testing.T) {
			var text, md bytes.Buffer
			if err := Text(&text, caseInput(name), layout.Style{}); err != nil {
				t.Fatal(err)
			}
			golden(t, name+".txt", text.Bytes())
			for n, line := range strings.Split(text.String(), "\n") {
				if w := lipgloss.Width(line); w > 80 {
					t.Errorf("line %d has %d columns: %s", n+1, w, line)
				}
			}
			if err := Markdown(&md, caseInput(name)); err != nil {
				t.Fatal(err)
			}
			golden(t, name+".md", md.Bytes())
		})
	}
}

// TestColourChangesNothing: colour adds escapes and no character.
func TestColourChangesNothing(t *testing.T) {
	for name := range cases() {
		var plain, coloured bytes.Buffer
		if err := Text(&plain, caseInput(name), layout.Style{}); err != nil {
			t.Fatal(err)
		}
		if err := Text(&coloured, caseInput(name), layout.Style{Color: true}); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(coloured.String(), "\x1b[") || strings.Contains(plain.String(), "\x1b") {
			t.Errorf("%s: colour where there should be none, or none where it was asked for", name)
		}
		trim := func(s string) string {
			lines := strings.Split(strip(s), "\n")
			for i := range lines {
				lines[i] = strings.TrimRight(lines[i], " ")
			}
			return strings.Join(lines, "\n")
		}
		if d := cmp.Diff(trim(plain.String()), trim(coloured.String())); d != "" {
			t.Errorf("%s: %s", name, d)
		}
	}
}

// strip removes escapes of colour.
func strip(s string) string {
	var b strings.Builder
	for s != "" {
		before, after, found := strings.Cut(s, "\x1b[")
		b.WriteString(before)
		if !found {
			break
		}
		_, s, _ = strings.Cut(after, "m")
	}
	return b.String()
}

func TestSecretsStay(t *testing.T) {
	in := caseInput("secrets")
	writers := map[string]func(*bytes.Buffer) error{
		"text":     func(b *bytes.Buffer) error { return Text(b, in, layout.Style{Width: 200}) },
		"narrow":   func(b *bytes.Buffer) error { return Text(b, in, layout.Style{Width: 40}) },
		"markdown": func(b *bytes.Buffer) error { return Markdown(b, in) },
		"json":     func(b *bytes.Buffer) error { return JSON(b, in) },
		"trial": func(b *bytes.Buffer) error {
			return Trial(b, in.Run, in.History[8], []hakaru.Output{{Service: "app", Text: "password: GEHEIM\nAuthorization: Basic GEHEIM\n"}}, layout.Style{})
		},
		"trials": func(b *bytes.Buffer) error { return Trials(b, in.Run, in.History, layout.Style{}) },
	}
	for name, write := range writers {
		var b bytes.Buffer
		if err := write(&b); err != nil {
			t.Fatal(err)
		}
		if i := strings.Index(b.String(), "GEHEIM"); i >= 0 {
			t.Errorf("%s: …%s…", name, b.String()[max(0, i-80):min(b.Len(), i+20)])
		}
		if name != "trials" && !strings.Contains(b.String(), "***") {
			t.Errorf("%s: nothing is redacted", name)
		}
	}
	if in.Diff["processes"] != " [client]\n-password = GEHEIM\n+password = GEHEIM2\n key_buffer_size = 16M\n" || *in.Run.Experiment.Variants[1].Settings[1].Value != "GEHEIM" {
		t.Error("writing a report changed its input")
	}
}

// TestWriterError: what the writer says is not lost.
func TestWriterError(t *testing.T) {
	for name, write := range map[string]func(w *broken) error{
		"text":     func(w *broken) error { return Text(w, sample(), layout.Style{}) },
		"markdown": func(w *broken) error { return Markdown(w, sample()) },
		"json":     func(w *broken) error { return JSON(w, sample()) },
		"list":     func(w *broken) error { return List(w, nil, "text") },
	} {
		if err := write(&broken{}); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

type broken struct{}

func (*broken) Write([]byte) (int, error) { return 0, os.ErrClosed }
