package rehearsal

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"hakaru"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func pointer[T any](v T) *T { return &v }

func setting(name, value string) hakaru.Setting {
	return hakaru.Setting{Name: name, Level: value, Value: &value}
}

// sample is an experiment of three variants in two strata.
func sample() hakaru.Experiment {
	return hakaru.Experiment{
		Name: "fib", Dir: "/srv/fib",
		Variants: []hakaru.Variant{
			{Name: "base"},
			{Name: "processes", Settings: []hakaru.Setting{setting("processes", "4")}},
			{Name: "threads", From: "processes", Settings: []hakaru.Setting{setting("processes", "4"), setting("threads", "2")}},
		},
		Levels:   []hakaru.Factor{{Name: "mix", Levels: []hakaru.Setting{setting("mix", "ro"), setting("mix", "rw")}}},
		Strata:   []map[string]string{{"mix": "ro"}, {"mix": "rw"}},
		Baseline: "base",
		Load:     hakaru.Load{HTTP: &hakaru.HTTPLoad{URL: "http://{http}/20", Connections: "64", Status: "200", Expect: "6765"}},
		Goal:     hakaru.Throughput,
		Limits:   []hakaru.Limit{{Metric: hakaru.Errors, Bound: 0.01, Implied: true}},
		Design:   hakaru.Design{Method: hakaru.MethodCompare, Blocks: 28, Matters: 0.03, Seed: 7, Calibrate: 6},
	}
}

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
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

func TestOutline(t *testing.T) {
	exp := sample()
	exp.Pairs = []hakaru.Pair{{Base: "base", Other: "processes"}, {Base: "base", Other: "threads"}, {Base: "base", Other: "quiet"}}
	exp.NotYet = []hakaru.Finding{{Message: "data: filling a data directory is not built yet"}}
	render := func(variant string, at map[string]string) (hakaru.Bundle, hakaru.LoadSpec, error) {
		argv := []string{"./fib", "--listen", "{http}", "--greeting", "it's"}
		if variant != "base" {
			argv = append(argv, "--processes=4")
		}
		files := []hakaru.File{{Path: "my.cnf", Content: "[client]\npassword = GEHEIM\n"}}
		if variant == "threads" {
			files[0].Content += "threads = 2\n"
		}
		return hakaru.Bundle{Trial: hakaru.Trial{Variant: variant, At: at}, Leases: []hakaru.Lease{{Name: "http"}},
				Units: []hakaru.Unit{{Service: "service", Kind: "command", Argv: argv, Dir: "/srv/fib", Files: files,
					Env: []hakaru.EnvVar{{Name: "LANG"}, {Name: "DB_PASSWORD", Value: pointer("GEHEIM")}}, Ready: hakaru.Ready{Get: "http://{http}/", Status: 200, Body: "6765"}}}},
			hakaru.LoadSpec{HTTP: &hakaru.HTTPRequest{Method: "GET", URL: "http://{http}/" + at["mix"], Connections: 64}, WarmUp: time.Second, Window: 2 * time.Second}, nil
	}
	var blocks []hakaru.Block
	for i := range 15 {
		blocks = append(blocks, hakaru.Block{N: i + 1, Phase: hakaru.Compare, At: exp.Strata[i%2], Trials: []hakaru.Trial{{Variant: "threads"}, {Variant: "base"}, {Variant: "processes"}}})
	}
	var b bytes.Buffer
	err := Outline(&b, Input{Experiment: exp, Blocks: blocks, Trials: 174, PerTrial: 3400 * time.Millisecond, AtMost: 174 * 3400 * time.Millisecond, Render: render})
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "outline.txt", b.Bytes())
	if strings.Contains(b.String(), "GEHEIM") {
		t.Error("the outline tells a secret")
	}
}

// A plan says which loops there are, and what their rates are settled by.
func TestOutlineOfLoops(t *testing.T) {
	for name, change := range map[string]func(*hakaru.Experiment, *hakaru.LoadSpec){
		"outline-open.txt": func(e *hakaru.Experiment, load *hakaru.LoadSpec) {
			e.Goal, e.Load.HTTP.Rate = hakaru.P99, "70%"
			e.Design.Open = &hakaru.OpenDesign{Shares: []hakaru.OpenShare{{Share: 0.7}}, Takes: 4 * time.Second}
			load.Open = &hakaru.OpenSpec{Arrival: hakaru.Arrival{Law: hakaru.ConstantRate}, Share: 0.7, WarmUp: time.Second, Window: 2 * time.Second}
		},
		"outline-capacity.txt": func(e *hakaru.Experiment, load *hakaru.LoadSpec) {
			e.Goal = hakaru.Capacity
			e.Limits = append(e.Limits, hakaru.Limit{Metric: hakaru.P99, Bound: 0.05}, hakaru.Limit{Metric: hakaru.Capacity, Bound: 100, AtLeast: true})
			load.Window = 30 * time.Second
			load.Capacity = &hakaru.CapacitySpec{Steps: 15, Settle: 500 * time.Millisecond, Step: 1500 * time.Millisecond}
		},
	} {
		t.Run(name, func(t *testing.T) {
			exp := sample()
			exp.Variants, exp.Levels, exp.Strata = exp.Variants[:2], nil, []map[string]string{{}}
			load := hakaru.LoadSpec{HTTP: &hakaru.HTTPRequest{Method: "GET", URL: "http://{http}/", Connections: 64}, WarmUp: time.Second, Window: 2 * time.Second}
			change(&exp, &load)
			var b bytes.Buffer
			err := Outline(&b, Input{Experiment: exp, Trials: 62, PerTrial: 7 * time.Second, AtMost: 7 * time.Minute,
				Render: func(variant string, _ map[string]string) (hakaru.Bundle, hakaru.LoadSpec, error) {
					return hakaru.Bundle{}, load, nil
				}})
			if err != nil {
				t.Fatal(err)
			}
			golden(t, name, b.Bytes())
		})
	}
}

// Which trials show the capacity depends on which strata have a share of it.
func TestSettles(t *testing.T) {
	strata := []map[string]string{{"n": "1"}, {"n": "2"}, {"n": "3"}}
	const shows = " before the comparison, of base, show the capacity that the rate of the open loop is a share of"
	for _, c := range []struct {
		name   string
		shares []int
		want   string
	}{
		{"the first only", []int{0}, "6 trials" + shows},
		{"all", []int{0, 1, 2}, "6 trials" + shows + "; 3 more in each other stratum"},
		{"not the first", []int{1, 2}, "3 trials at each of n=2, n=3" + shows},
		{"not the last", []int{0, 1}, "6 trials" + shows + "; 3 more at each of n=2"},
	} {
		exp := &hakaru.Experiment{Baseline: "base", Strata: strata, Design: hakaru.Design{Calibrate: 6}}
		open := &hakaru.OpenDesign{Calibrate: 3}
		for _, i := range c.shares {
			open.Shares = append(open.Shares, hakaru.OpenShare{At: strata[i], Share: 0.7})
		}
		if got := strings.ReplaceAll(settles(exp, open), "\u00a0", " "); got != c.want {
			t.Errorf("%s: %q", c.name, got)
		}
	}
}
