package experiment_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"hakaru"
	"hakaru/internal/experiment"
	"hakaru/internal/mistake"
	"hakaru/internal/render"
)

func TestFromFlags(t *testing.T) {
	opt := options()
	opt.Connections, opt.Duration = "64", "20s"
	exp, err := experiment.FromFlags(experiment.Flags{
		Service: "hakaru serve --listen {http} --wait 5ms",
		Factors: []string{"processes=1,2,4", "log=null,off"},
		URL:     "http://{http}/", Goal: "cpu_per_request", Limits: []string{"errors=0.1%"}, Options: opt,
	})
	if err != nil {
		t.Fatal(err)
	}
	s := exp.Services[0]
	if s.Kind != "serve" || cmp.Diff(s.Ports, []string{"http"}) != "" || exp.Goal != hakaru.CPUPerRequest || len(exp.Variants) != 6 || exp.Name != "hakaru" {
		t.Errorf("got %+v", exp)
	}
	bundle, load, _, err := render.Trial(exp, "processes=2 log=off", map[string]string{})
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(bundle.Units[0].Argv, " "); got != "{hakaru.exe} serve --listen {http} --wait 5ms --processes=2 --log=off" {
		t.Errorf("argv %s", got)
	}
	if load.HTTP.Connections != 64 || load.Window.Seconds() != 20 || bundle.Units[0].Ready.Get != "http://{http}/" {
		t.Errorf("load %+v, ready %+v", load, bundle.Units[0].Ready)
	}
	// The same flags give the same order of trials.
	again, err := experiment.FromFlags(experiment.Flags{
		Service: "hakaru serve --listen {http} --wait 5ms", Factors: []string{"processes=1,2,4", "log=null,off"},
		URL: "http://{http}/", Goal: "cpu_per_request", Limits: []string{"errors=0.1%"}, Options: opt,
	})
	if err != nil || cmp.Diff(exp, again) != "" {
		t.Errorf("the same flags differ: %v\n%s", err, cmp.Diff(exp, again))
	}
}

// A kind that is not built yet is a plain command to the flags: placeholders
// carry its settings, and it is ready when the URL answers.
func TestFromFlagsCommand(t *testing.T) {
	exp, err := experiment.FromFlags(experiment.Flags{
		Service: "starman --listen {http} --workers {workers} app.psgi",
		Factors: []string{"workers=1,2,4"}, URL: "http://{http}/x", Options: options(),
	})
	if err != nil {
		t.Fatal(err)
	}
	if s := exp.Services[0]; s.Kind != "command" || s.Ready.Get != "http://{http}/x" || s.Ready.Status != 200 || len(exp.NotYet) > 0 {
		t.Errorf("got %+v, not yet %v", s, exp.NotYet)
	}
}

func TestFromFlagsMistakes(t *testing.T) {
	for name, c := range map[string]struct {
		flags experiment.Flags
		want  []string
	}{
		"the example, whose kind is not built": {
			experiment.Flags{Service: "starman --listen {http}", Factors: []string{"workers=1,2,4"}, URL: "http://{http}/"},
			[]string{"--factor workers=1,2,4: nothing uses the setting workers", "starman is not known well enough yet", "write {workers}"}},
		"no service":   {experiment.Flags{Factors: []string{"a=1,2"}, URL: "http://127.0.0.1/"}, []string{"--service names no program"}},
		"no URL":       {experiment.Flags{Service: "hakaru serve", Factors: []string{"processes=1,2"}}, []string{"--url names nothing to request"}},
		"factor":       {experiment.Flags{Service: "./a {a}", Factors: []string{"a"}, URL: "http://127.0.0.1/"}, []string{"--factor takes NAME=VALUE"}},
		"factor twice": {experiment.Flags{Service: "./a {a}", Factors: []string{"a=1", "a=2"}, URL: "http://127.0.0.1/"}, []string{"a is given twice"}},
		"level twice":  {experiment.Flags{Service: "./a {a}", Factors: []string{"a=1,1"}, URL: "http://127.0.0.1/"}, []string{"a has the level 1 twice"}},
		"unknown of kind": {experiment.Flags{Service: "hakaru serve", Factors: []string{"proceses=1,2"}, URL: "http://127.0.0.1/"},
			[]string{"serve has no setting called", `did you mean "processes"?`}},
		"duration": {experiment.Flags{Service: "hakaru serve", Factors: []string{"processes=1,2"}, URL: "http://127.0.0.1/", Options: experiment.Options{Duration: "20"}},
			[]string{"--duration: load.http.duration", "write 20s"}},
		"limit": {experiment.Flags{Service: "hakaru serve", URL: "http://127.0.0.1/", Limits: []string{"p99=5"}}, []string{"--limit p99=5: limits.p99"}},
		"all of them": {experiment.Flags{Service: "hakaru serve --config b.ini", Settings: "b.ini", URL: "http://{htp}/", Goal: "memroy", Matters: "3", Method: "one-at-time", Status: "x", Options: options()},
			[]string{"--settings: read settings b.ini", "starts at the working directory", "--goal: goal: unknown metric", `did you mean "memory"?`,
				"--matters: design.matters", "--method: unknown method", "--status: load.http.status"}},
		"set": {experiment.Flags{Service: "hakaru serve", URL: "http://127.0.0.1/", Options: experiment.Options{Set: []string{"procs=5", "x"}}},
			[]string{"--set procs=5: serve has no setting", "--set takes name=value"}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := experiment.FromFlags(c.flags)
			mistakes, ok := errors.AsType[mistake.List](err)
			if !ok {
				t.Fatalf("error %v, want mistakes", err)
			}
			for _, want := range c.want {
				if !strings.Contains(mistakes.Error(), want) {
					t.Errorf("%q is not in:\n%v", want, mistakes)
				}
			}
		})
	}
}

func TestOverrides(t *testing.T) {
	src := []byte("service: {run: \"hakaru serve --listen {http}\", ports: [http]}\nparams: {n: 10}\nbase: {threads: 1}\nvariants: {a: {processes: 1}, b: {processes: 2}}\nload: {http: {url: \"http://{http}/{n}\"}}\ndesign: {blocks: 5, seed: 3}\n")
	opt := options()
	seed := uint64(99)
	opt.Set, opt.Blocks, opt.Budget, opt.Seed, opt.Connections, opt.WarmUp = []string{"threads=8", "log=off", "n=20"}, 12, 60e9, &seed, "7", "2s"
	exp, err := experiment.Parse("x.yaml", src, opt)
	if err != nil {
		t.Fatal(err)
	}
	bundle, load, _, err := render.Trial(exp, "b", map[string]string{})
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(bundle.Units[0].Argv, " "); !strings.HasSuffix(got, "--threads=8 --log=off --processes=2") {
		t.Errorf("argv %s", got)
	}
	d := exp.Design
	if d.Blocks != 12 || d.Seed != 99 || d.Budget != 60e9 || load.HTTP.Connections != 7 || load.WarmUp != 2e9 || load.HTTP.URL != "http://{http}/20" {
		t.Errorf("design %+v, load %+v", d, load.HTTP)
	}
}

// The order of variants is the order of the file, and pairs follow `compare`.
func TestPairs(t *testing.T) {
	file := func(rest string) string {
		return "service: {run: \"./a {x}\"}\nload: {http: {url: \"http://127.0.0.1:1/\"}}\nvariants: {a: {x: 1}, b: {x: 2}, c: {x: 3}}\n" + rest
	}
	for rest, want := range map[string]string{
		"":                                "a:b a:c",
		"compare: baseline\n":             "a:b a:c",
		"compare: [previous]\n":           "a:b b:c",
		"compare: [baseline, previous]\n": "a:b a:c b:c",
		"baseline: b\n":                   "b:a b:c",
		"baseline: b\ncompare: [baseline, previous]\n": "b:a b:c",
		"baseline: c\ncompare: [previous]\n":           "a:b b:c",
	} {
		exp, err := experiment.Parse("x.yaml", []byte(file(rest)), options())
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, p := range exp.Pairs {
			got = append(got, p.Base+":"+p.Other)
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%q: pairs %v, want %s", rest, got, want)
		}
	}
}

// The flags say the same as the file would.
func TestFlagsAreAFile(t *testing.T) {
	opt := options()
	opt.Set, opt.WarmUp = []string{"listen={http}"}, "2s"
	fromFlags, err := experiment.FromFlags(experiment.Flags{
		Service: "hakaru serve --config serve.ini", Settings: "serve.ini", URL: "http://{http}/x", Status: "404", Expect: "gone",
		Factors: []string{"processes=1,2", "log=off,null"}, Goal: "cpu_per_request", Limits: []string{"memory=64MiB"},
		Matters: "5%", Method: "one-at-a-time", Options: opt,
	})
	if err != nil {
		t.Fatal(err)
	}
	fromFile, err := experiment.Parse("hakaru.yaml", []byte(`
service: {run: hakaru serve --config serve.ini, settings: serve.ini, ports: [http]}
factors: {processes: [1, 2], log: [off, null]}
load: {http: {url: "http://{http}/x", status: 404, expect: gone}}
goal: cpu_per_request
limits: {memory: 64MiB}
design: {method: one-at-a-time, matters: 5%}
`), opt)
	if err != nil {
		t.Fatal(err)
	}
	fromFlags.Name, fromFlags.Sources, fromFlags.Design.Seed = fromFile.Name, fromFile.Sources, fromFile.Design.Seed
	if diff := cmp.Diff(fromFile, fromFlags); diff != "" {
		t.Errorf("file and flags differ:\n%s", diff)
	}
}

// A program that no kind knows is ready when the URL gives the right answer.
func TestReadyOfFlags(t *testing.T) {
	exp, err := experiment.FromFlags(experiment.Flags{Service: "./app {http}", URL: "http://{http}/x", Status: "404", Expect: "gone", Options: options()})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(hakaru.Ready{Get: "http://{http}/x", Status: 404, Body: "gone"}, exp.Services[0].Ready); diff != "" {
		t.Error(diff)
	}
}
