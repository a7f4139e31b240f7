package main

import (
	"bytes"
	"context"
	"strings"
	"testing"
)

// Every flag of an experiment reaches it, and those that stand for a file do not
// go beside one.
func TestExperimentFlags(t *testing.T) {
	t.Chdir(t.TempDir())
	service := []string{"--service", "./app {http} {a}", "--factor", "a=1,2", "--url", "http://{http}/x"}
	for name, c := range map[string]struct {
		args []string
		code int
		want []string // on stdout and stderr
	}{
		"all": {append(service, "--status", "404", "--expect", "gone", "--goal", "cpu_per_request", "--limit", "errors=0.2%", "--limit", "memory=64MiB",
			"--matters", "5%", "--method", "one-at-a-time", "--warm-up", "2s", "-d", "3s", "-c", "7", "--blocks", "9", "--calibrate", "2", "--seed", "4"),
			0, []string{"goal CPU per request", "7 connections", "status 404", `"gone"`, "0.2 %", "67.1 MB", "5 % matters", "one-at-a-time", "up to 9 blocks", "seed 4", "2 calibrate a=1 3 compare", "2 s of warm-up, 3 s measured"}},
		"a goal alone":          {[]string{"--goal", "p50"}, exitUsage, []string{"--goal is for an experiment without a file", "--service"}},
		"beside a file":         {[]string{"x.yaml", "--goal", "p50", "--limit", "p50=1ms"}, exitUsage, []string{"--goal, --limit are for an experiment without a file", "x.yaml"}},
		"no calibration at all": {append(service, "--calibrate", "-1"), exitUsage, []string{"--calibrate -1: want"}},
		"no blocks":             {append(service, "--blocks", "0"), exitUsage, []string{"--blocks 0"}},
		"mistakes, each":        {append(service, "--goal", "memroy", "--matters", "x"), exitUsage, []string{"--goal: ", `did you mean "memory"?`, "--matters: "}},
		"with a run to go on":   {[]string{"--resume", "last", "--method", "factorial"}, exitUsage, []string{"--resume goes on with the experiment as it was stored"}},
	} {
		t.Run(name, func(t *testing.T) {
			var stdout, stderr bytes.Buffer
			code := run(context.Background(), append([]string{"run", "--dry-run"}, c.args...), strings.NewReader(""), &stdout, &stderr)
			if code != c.code {
				t.Errorf("exit code %d, want %d", code, c.code)
			}
			said := strings.Join(strings.Fields(stdout.String()+stderr.String()), " ")
			for _, want := range c.want {
				if !strings.Contains(said, want) {
					t.Errorf("%q is not in:\n%s%s", want, &stdout, &stderr)
				}
			}
		})
	}
}
