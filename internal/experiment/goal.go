package experiment

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"hakaru"
	"hakaru/internal/grammar"
	"hakaru/internal/hint"
	"hakaru/internal/unit"
)

func metrics() []string {
	return []string{"throughput", "cpu_per_request", "p50", "p99", "errors", "memory", "capacity", "cost", "score"}
}

func (b *builder) buildGoal() {
	b.exp.Goal = hakaru.Throughput
	program := b.exp.Load.Program
	if program != nil && (program.Options["score"] != "" || !grammar.Runs(program.Name)) {
		b.exp.Goal = hakaru.Score
	}
	if g := b.doc.Goal; g.Set {
		b.exp.Goal = hakaru.Metric(g.Value)
		if !slices.Contains(metrics(), g.Value) {
			b.Mistake(g.At, "unknown-metric", fmt.Sprintf("goal: unknown metric %q", g.Value), hint.Name(g.Value, metrics()))
		}
		switch b.exp.Goal {
		case hakaru.Cost:
			b.Later(g.At, "goal: "+g.Value+" is not built yet")
		}
		if missing := b.notTold(b.exp.Goal); missing != "" {
			b.Mistake(g.At, "no-figure", fmt.Sprintf("goal: %s: %s", g.Value, missing), "")
		}
	}
	hasErrors := false
	for i, name := range b.doc.Limits.Keys {
		at, value := b.doc.Limits.Places[i], b.doc.Limits.Values[i]
		if !slices.Contains(metrics(), name) {
			b.Mistake(at, "unknown-metric", fmt.Sprintf("limits: unknown metric %q", name), hint.Name(name, metrics()))
			continue
		}
		metric := hakaru.Metric(name)
		hasErrors = hasErrors || metric == hakaru.Errors
		if !value.Set {
			continue
		}
		limit, err := parseLimit(metric, value.Value)
		if err != nil {
			b.Mistake(value.At, "bad-limit", fmt.Sprintf("limits.%s: %v", name, err), limitHint(metric, value.Value))
			continue
		}
		if metric == hakaru.Cost {
			b.Later(at, "limits."+name+" is not built yet")
		}
		if missing := b.notTold(metric); missing != "" {
			b.Mistake(at, "no-figure", fmt.Sprintf("limits.%s: %s", name, missing), "")
		}
		b.exp.Limits = append(b.exp.Limits, limit)
	}
	if !hasErrors && b.notTold(hakaru.Errors) == "" {
		b.exp.Limits = append(b.exp.Limits, hakaru.Limit{Metric: hakaru.Errors, Bound: 0.01, Implied: true})
	}
}

// notTold says why a metric cannot be had from the load; "" where it can.
func (b *builder) notTold(m hakaru.Metric) string {
	p := b.exp.Load.Program
	if p != nil && !grammar.Runs(p.Name) {
		return ""
	}
	var says func(key string) bool
	if p != nil && p.Name == "command" {
		says = func(key string) bool { return p.Options[key] != "" }
	}
	switch {
	case m == hakaru.Score && (says == nil || !says("score")):
		return "only load.command with a score: pattern tells a score"
	case says == nil:
	case m == hakaru.Throughput && !says("good") && !says("throughput"):
		return "load.command says neither good: nor throughput:"
	case m == hakaru.CPUPerRequest && !says("good"):
		return "load.command does not say how many good: answers there were"
	case m == hakaru.Errors && (!says("good") || !says("bad")):
		return "load.command does not say how many good: and bad: answers there were"
	case latency(m):
		return "load.command tells no latencies"
	}
	return ""
}

// parseLimit reads a bound in the metric's own unit; "<= 5ms" and ">= 100/s" say
// the direction, which otherwise is the metric's own.
func parseLimit(metric hakaru.Metric, text string) (hakaru.Limit, error) {
	limit := hakaru.Limit{Metric: metric, AtLeast: metric.HigherIsBetter()}
	text = strings.TrimSpace(text)
	for _, sign := range []string{"<=", "<", ">=", ">"} {
		if rest, found := strings.CutPrefix(text, sign); found {
			text, limit.AtLeast = strings.TrimSpace(rest), sign[0] == '>'
			break
		}
	}
	var err error
	switch metric {
	case hakaru.Errors:
		limit.Bound, err = unit.ParseShare(text)
		if err == nil && limit.Bound > 1 {
			err = fmt.Errorf("%q is more than everything", text)
		}
	case hakaru.Throughput, hakaru.Capacity:
		limit.Bound, err = unit.ParseRate(text)
	case hakaru.CPUPerRequest, hakaru.P50, hakaru.P99:
		d, derr := unit.ParseDuration(text)
		limit.Bound, err = d.Seconds(), derr
	case hakaru.Memory:
		limit.Bound, err = unit.ParseBytes(text)
	default: // cost, score
		limit.Bound, err = strconv.ParseFloat(text, 64)
		if err != nil || math.IsNaN(limit.Bound) || math.IsInf(limit.Bound, 0) {
			err = fmt.Errorf("%q is not a number", text)
		}
	}
	return limit, err
}

func limitHint(metric hakaru.Metric, text string) string {
	if _, err := strconv.ParseFloat(text, 64); err != nil {
		return ""
	}
	switch metric {
	case hakaru.Throughput, hakaru.Capacity:
		return "write " + text + "/s"
	case hakaru.CPUPerRequest, hakaru.P50, hakaru.P99:
		return "write " + text + "ms, or " + text + "s for seconds"
	case hakaru.Errors:
		return "write " + text + "%"
	}
	return ""
}
