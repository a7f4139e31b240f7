// Command aa runs the same experiment many times on the built-in service and
// counts what hakaru claims: of two identical variants, how often one is called
// better or worse (it should be never), and how often 20 % more work per request
// is found (it should be always).
//
//	make bench            # or: go run ./bench/aa -hakaru bin/hakaru
//
// It prints a Markdown table and the runs behind it; docs/bench-aa.md keeps one.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"syscall"
	"time"
)

// experiment: the work is a fixed number of rounds, so that its CPU time changes
// with the speed of the CPU as a real program's does.
const experiment = `
question: Does hakaru see a difference where there is none, and one of 20 %% where there is one?
service:
  kind: serve
  run: hakaru serve --listen {http}
  ports: [http]
base: {processes: 2, work: %d}
variants:
  base: {}
  same: {}
  more: {work: %d}
load:
  http: {url: "http://{http}/9000", connections: 8, warm_up: 1s, duration: 2s}
goal: cpu_per_request
design: {blocks: 10, calibrate: 0}
`

type answer struct {
	Comparisons []struct {
		Metric  string
		Other   string
		Ratio   float64
		Low     float64
		High    float64
		Verdict string
		Blocks  int
	}
	Trials []struct{ Void json.RawMessage }
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "aa:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	hakaru := flag.String("hakaru", "bin/hakaru", "the program")
	runs := flag.Int("runs", 20, "how often")
	work := flag.Int("work", 1000, "rounds of work per request of the baseline")
	flag.Parse()

	dir, err := os.MkdirTemp("", "hakaru-aa-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, "hakaru.yaml")
	if err := os.WriteFile(file, fmt.Appendf(nil, experiment, *work, *work*12/10), 0o600); err != nil {
		return err
	}

	counts := map[string]map[string]int{"same": {}, "more": {}}
	ratios := map[string][]float64{}
	covered, void, trials := 0, 0, 0
	began := time.Now()
	fmt.Println("| run | same: change (interval) | verdict | blocks | more: change (interval) | verdict | blocks |")
	fmt.Println("|---|---|---|---|---|---|---|")
	for n := 1; n <= *runs; n++ {
		cmd := exec.CommandContext(ctx, *hakaru, "run", file, "--seed", fmt.Sprint(n), "--format", "json", "--wait",
			"--store", filepath.Join(dir, "aa.db"))
		cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGINT) }
		out, err := cmd.Output()
		if err != nil {
			var exit *exec.ExitError
			if errors.As(err, &exit) {
				return fmt.Errorf("run %d: %w\n%s", n, err, exit.Stderr)
			}
			return fmt.Errorf("run %d: %w", n, err)
		}
		var a answer
		if err := json.Unmarshal(out, &a); err != nil {
			return fmt.Errorf("run %d: read the report: %w", n, err)
		}
		row := map[string]string{}
		for _, c := range a.Comparisons {
			if c.Metric != "cpu_per_request" {
				continue
			}
			counts[c.Other][c.Verdict]++
			ratios[c.Other] = append(ratios[c.Other], c.Ratio)
			row[c.Other] = fmt.Sprintf("%+.2f %% (%+.2f to %+.2f) | %s | %d", 100*(c.Ratio-1), 100*(c.Low-1), 100*(c.High-1), c.Verdict, c.Blocks)
			if c.Other == "same" && c.Low <= 1 && 1 <= c.High {
				covered++
			}
		}
		for _, t := range a.Trials {
			trials++
			if len(t.Void) > 0 && string(t.Void) != "null" {
				void++
			}
		}
		fmt.Printf("| %d | %s | %s |\n", n, row["same"], row["more"])
	}
	fmt.Printf("\nidentical variants, called better or worse: %d of %d (no difference that matters: %d, not enough data: %d)\n",
		counts["same"]["better"]+counts["same"]["worse"], *runs, counts["same"]["same"], counts["same"]["unclear"])
	fmt.Printf("interval of the identical pair holds 1: %d of %d\n", covered, *runs)
	fmt.Printf("20 %% more work per request, called worse: %d of %d\n", counts["more"]["worse"], *runs)
	for _, v := range []string{"same", "more"} {
		fmt.Printf("%s: median change %+.2f %%, spread of the runs (sd) %.2f %%\n", v, 100*(median(ratios[v])-1), 100*sd(ratios[v]))
	}
	fmt.Printf("%d trials, %d void, %s in all\n", trials, void, time.Since(began).Round(time.Second))
	return nil
}

func median(v []float64) float64 {
	if len(v) == 0 {
		return math.NaN()
	}
	s := slices.Sorted(slices.Values(v))
	return (s[(len(s)-1)/2] + s[len(s)/2]) / 2
}

func sd(v []float64) float64 {
	mean, sum := 0.0, 0.0
	for _, x := range v {
		mean += x / float64(len(v))
	}
	for _, x := range v {
		sum += (x - mean) * (x - mean)
	}
	return math.Sqrt(sum / float64(len(v)-1))
}
