package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// TestLoops runs whole experiments in open loops on a service whose laws are known:
// one that stalls for 100 ms in every second has p99 = 90 ms at a steady rate, where
// a closed loop of so few connections sees next to nothing of it; and two workers
// hold twice the rate of one.
func TestLoops(t *testing.T) {
	const stalling = `
service:
  kind: serve
  run: hakaru serve --listen {http} --wait 20ms --threads 32
  ports: [http]
base: {stall-every: 1s}
factors: {stall: [0s, 100ms]}
`
	for _, c := range []struct {
		name, experiment string
		check            func(r loopReport) error
	}{
		{"a limit on latency at a share of the capacity", stalling + `
load: {http: {url: "http://{http}/9000", connections: 32, rate: 10%, warm_up: 500ms, duration: 1s}}
goal: cpu_per_request
limits: {p99: 60ms}
design: {blocks: 3, calibrate: 2}
`, func(r loopReport) error {
			if got := r.limit("p99", "stall=0s") + ", " + r.limit("p99", "stall=100ms"); got != "meets, violates" {
				return fmt.Errorf("limits %s", got)
			}
			if len(r.Design.OpenLoops) != 1 || r.Design.OpenLoops[0].Share != 0.1 {
				return fmt.Errorf("open loops %+v", r.Design.OpenLoops)
			}
			rate := r.Design.OpenLoops[0].Rate
			for _, x := range r.Trials {
				if calibrates := x.Phase == "calibrate"; calibrates != (x.Open == nil) && len(x.Void) <= len("null") || x.Open != nil && x.Open.Rate != rate {
					return fmt.Errorf("trial %d (%s): open loop %+v, the rate is %v", x.Seq, x.Phase, x.Open, rate)
				}
			}
			return nil
		}},
		{"a latency as the goal at a rate", stalling + `
load: {http: {url: "http://{http}/9000", connections: 64, rate: 200/s, warm_up: 500ms, duration: 1s}}
goal: p99
design: {blocks: 3, calibrate: 1}
`, func(r loopReport) error {
			c := r.judged()
			if c.Metric != "p99" || c.Verdict != "worse" || c.Ratio == nil || *c.Ratio < 2.5 {
				return fmt.Errorf("%+v", c)
			}
			return nil
		}},
		{"the capacity of one worker and of two", `
service:
  kind: serve
  run: hakaru serve --listen {http} --wait 30ms --threads 6
  ports: [http]
factors: {processes: [1, 2]}
load: {http: {url: "http://{http}/9000", connections: 32, warm_up: 500ms, duration: 8s}}
goal: capacity
limits: {p99: 200ms}
design: {blocks: 3, calibrate: 1}
`, func(r loopReport) error {
			c := r.judged()
			if c.Metric != "capacity" || c.Verdict != "better" || c.Ratio == nil || *c.Ratio < 1.6 || *c.Ratio > 2.4 {
				return fmt.Errorf("%+v", c)
			}
			for _, x := range r.Trials {
				if x.Capacity == nil && len(x.Void) <= len("null") {
					return fmt.Errorf("trial %d has no capacity", x.Seq)
				}
			}
			return nil
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newSite(t, c.experiment)
			cmd := s.command("run", "--format", "json", "app.yaml")
			out, err := cmd.Output()
			if code := cmd.ProcessState.ExitCode(); code != 0 && code != 3 {
				t.Fatalf("%v\n%s", err, out)
			}
			var r loopReport
			if err := json.Unmarshal(out, &r); err != nil {
				t.Fatalf("%v in\n%s", err, out)
			}
			s.clean()
			// That the machine is too busy to measure on is no matter here, as long as it
			// is said and nothing is claimed.
			if busy := r.busy(); busy && r.judged().Verdict == "unclear" {
				t.Logf("too busy: %s", r.Answer.Text)
			} else if err := c.check(r); err != nil {
				t.Errorf("%v\n%s", err, s.output("report", "last"))
			}
		})
	}
}

// loopReport is what is looked at here of a report.
type loopReport struct {
	Answer struct{ Text, State string }
	Limits []struct{ Metric, Variant, Verdict string }

	Comparisons []judgedPair
	Trials      []struct {
		Seq      int
		Phase    string
		Void     json.RawMessage
		Open     *struct{ Rate float64 }
		Capacity *struct{ Value float64 }
	}
	Design struct {
		OpenLoops []struct{ Rate, Share float64 } `json:"open_loops"`
		Complete  int                             `json:"complete_blocks"`
	}
}

type judgedPair struct {
	Metric, Verdict string
	Judged          bool
	Ratio           *float64
}

func (r loopReport) limit(metric, variant string) string {
	for _, l := range r.Limits {
		if l.Metric == metric && l.Variant == variant {
			return l.Verdict
		}
	}
	return "none"
}

func (r loopReport) judged() judgedPair {
	for _, c := range r.Comparisons {
		if c.Judged {
			return c
		}
	}
	return judgedPair{}
}

// busy reports whether a run was kept from its blocks by what else the machine did:
// trials are void by others, or by a generator that did not get the CPU, and not all
// three blocks are complete.
func (r loopReport) busy() bool {
	for _, x := range r.Trials {
		text := string(x.Void)
		if strings.Contains(text, `"others"`) || strings.Contains(text, `"generator_limited"`) {
			return r.Design.Complete < 3
		}
	}
	return false
}
