//go:build linux

package main

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"hakaru/internal/unit"
)

const reportHead = `# CPU time per request, beside other programs

What a request costs hakaru's load engine, and what it costs others: every
program sends as many requests as it can to one nginx worker on loopback.

    make bench-load

CPU time is user and system time of the client's process, its start included, as
the kernel hands it over at its end; requests are counted by nginx (stub_status).
In each round every program runs once in each scenario, in random order, and
hakaru's figure is divided by the peer's of the same round. A cell is the median
of these ratios (below 1: hakaru needs less) with its 95 % interval (signed
ranks). *Same CPU*: nginx and client share one CPU, so that nothing waits.
*Two CPUs*: each has its own, as people run it; there a cheaper client waits more
often and gets smaller batches, so that ratios come closer to 1. *floor* is a bare
loop of write and read that parses and records nothing.
`

// write draws the report. It has no date in it: what is measured, and on what,
// is in its head.
func (res *results) write(to io.Writer) error {
	var b bytes.Buffer
	b.WriteString(reportHead)
	b.WriteString("\n| | |\n|---|---|\n")
	for _, f := range res.facts {
		fmt.Fprintf(&b, "| %s | %s |\n", f.name, strings.ReplaceAll(f.value, "|", "\\|"))
	}
	names := res.clients()
	for _, p := range []protocol{sameCPU, twoCPUs} {
		all := cells(func(s scenario) bool {
			return slices.ContainsFunc(res.rows, func(r row) bool { return r.cell == cell{p, s}.String() })
		})
		all = slices.DeleteFunc(all, func(c cell) bool { return c.protocol != p })
		if len(all) == 0 {
			continue
		}
		title := p.String()
		fmt.Fprintf(&b, "\n## %s%s\n\n", strings.ToUpper(title[:1]), title[1:])
		b.WriteString("hakaru's CPU time per request to that of:\n\n")
		table(&b, all, names[1:], func(c cell, name string) string {
			f, ok := res.ratio(c.String(), name)
			if !ok {
				return "–"
			}
			return f.String()
		})
		b.WriteString("\nCPU µs per request, and thousand requests per second of the process's life (medians):\n\n")
		table(&b, all, names, func(c cell, name string) string {
			cost, rate, ok := res.medians(c.String(), name)
			if !ok {
				return "–"
			}
			return fmt.Sprintf("%.1f, %.1fk", cost, rate/1000)
		})
	}
	res.writeGoals(&b)
	res.writeOpens(&b)
	res.writeDoubts(&b)
	_, err := to.Write(b.Bytes())
	return err
}

func (f figure) String() string {
	if !f.interval {
		return fmt.Sprintf("%.2f", f.median)
	}
	return fmt.Sprintf("%.2f (%.2f–%.2f)", f.median, f.low, f.high)
}

// clients are those with a row or a word on why not, in the order of the table.
func (res *results) clients() []string {
	names := []string{subject}
	for _, c := range clients("")[1:] {
		if slices.ContainsFunc(res.rows, func(r row) bool { return r.client == c.name }) ||
			slices.ContainsFunc(res.facts, func(f fact) bool { return f.name == c.name }) {
			names = append(names, c.name)
		}
	}
	return names
}

func table(b *bytes.Buffer, columns []cell, lines []string, value func(cell, string) string) {
	b.WriteString("| |")
	for _, c := range columns {
		fmt.Fprintf(b, " %s |", c.scenario.words)
	}
	b.WriteString("\n|---|" + strings.Repeat("---|", len(columns)) + "\n")
	for _, name := range lines {
		fmt.Fprintf(b, "| %s |", name)
		for _, c := range columns {
			fmt.Fprintf(b, " %s |", value(c, name))
		}
		b.WriteString("\n")
	}
}

// judged is a goal with what was seen of it.
func (res *results) judged(each func(g goal, where cell, seen, verdict string)) {
	for _, c := range cells(func(scenario) bool { return true }) {
		if !slices.ContainsFunc(res.rows, func(r row) bool { return r.cell == c.String() }) {
			continue
		}
		for _, g := range goals() {
			if g.cell != c.String() {
				continue
			}
			seen, verdict := "–", "not shown (not measured)"
			if f, ok := res.ratio(g.cell, g.peer); ok {
				seen, verdict = fmt.Sprintf("%v, %d pairs", f, f.pairs), g.verdict(f)
			}
			each(g, c, seen, verdict)
		}
	}
}

func (g goal) String() string {
	text := fmt.Sprintf("≤ %.2f", g.most)
	if g.notWorse {
		text = "not shown above 1"
	}
	if g.stretch > 0 {
		text += fmt.Sprintf(" (hoped for: %.2f)", g.stretch)
	}
	return text
}

func (res *results) writeGoals(b *bytes.Buffer) {
	if len(res.rows) == 0 {
		return
	}
	b.WriteString("\n## Goals\n\nMet: the whole interval is on the right side. Not met: it is on the wrong side.\n\n" +
		"| | | to | goal | seen | |\n|---|---|---|---|---|---|\n")
	res.judged(func(g goal, where cell, seen, verdict string) {
		fmt.Fprintf(b, "| %v | %s | %s | %v | %s | %s |\n", where.protocol, where.scenario.words, g.peer, g, seen, verdict)
	})
}

func (res *results) writeOpens(b *bytes.Buffer) {
	yes := func(ok bool) string {
		if ok {
			return "met"
		}
		return "**not met**"
	}
	if p50, p99 := res.open("lag"); len(p50) > 0 {
		fmt.Fprintf(b, "\n## How late a request is sent\n\nBy hakaru itself: 10,000 requests a second over 64 connections, `--precise`, two\nCPUs, in the ordinary class; the best of %d runs.\n\n"+
			"| | goal | seen | all runs | |\n|---|---|---|---|---|\n"+
			"| p50 | ≤ %s | %v | %s | %s |\n| p99 | ≤ %v | %v | %s | %s |\n", len(p50),
			unit.Duration(lagP50), unit.Duration(p50[0]), list(p50), yes(p50[0] <= lagP50), unit.Duration(lagP99), unit.Duration(p99[0]), list(p99), yes(p99[0] <= lagP99))
	}
	if p50, p99 := res.open("truth"); len(p50) > 0 {
		m50, m99 := p50[len(p50)/2], p99[len(p99)/2]
		fmt.Fprintf(b, "\n## Whether latencies are true\n\nA server stalls for 100 ms in each second; 2000 requests a second are due over 16\n"+
			"connections for 10 s, both sides in the ordinary class. On paper half of the\nanswers come at once, and one in a hundred takes 90 ms and more. "+
			"The median of %d\nruns, within 2 %% or 0.2 ms:\n\n"+
			"| | on paper | seen | all runs | |\n|---|---|---|---|---|\n"+
			"| p50 | %s | %s | %s | %s |\n| p99 | %s | %s | %s | %s |\n", len(p50),
			unit.Duration(lawP50), unit.Duration(m50), list(p50), yes(near(m50, lawP50)), unit.Duration(lawP99), unit.Duration(m99), list(p99), yes(near(m99, lawP99)))
	}
}

func list(ds []time.Duration) string {
	var words []string
	for _, d := range ds {
		words = append(words, unit.Duration(d))
	}
	return strings.Join(words, ", ")
}

// writeDoubts tells of runs that did not go as they should.
func (res *results) writeDoubts(b *bytes.Buffer) {
	type place struct{ cell, client string }
	runs, cut, bad := map[place]int{}, map[place]int{}, map[place]int{}
	why := map[place]string{}
	var order []place
	for _, r := range res.rows {
		p := place{r.cell, r.client}
		if runs[p]++; runs[p] == 1 {
			order = append(order, p)
		}
		switch {
		case r.note == cutNote:
			cut[p]++
		case !r.counts():
			if bad[p]++; why[p] == "" {
				why[p] = r.note
			}
		}
	}
	var lines []string
	for _, p := range order {
		if cut[p] > 0 {
			lines = append(lines, fmt.Sprintf("- %s, %s: %d of %d runs did not end in time and were ended; their CPU time per request counts", p.cell, p.client, cut[p], runs[p]))
		}
		if bad[p] > 0 {
			lines = append(lines, fmt.Sprintf("- %s, %s: %d of %d runs do not count: %s", p.cell, p.client, bad[p], runs[p], why[p]))
		}
	}
	if len(lines) > 0 {
		b.WriteString("\n## Runs that went wrong\n\n" + strings.Join(lines, "\n") + "\n")
	}
}
