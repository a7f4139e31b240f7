package report

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"hakaru"
	"hakaru/internal/compare"
	"hakaru/internal/layout"
	"hakaru/internal/unit"
	"hakaru/internal/wording"
)

// variantTables has a table for each stratum: what each variant reached, and
// what may be said of it against the baseline.
func (x *index) variantTables() []layout.Part {
	var parts []layout.Part
	for i := range x.strata {
		t := &layout.Table{
			Head:  []string{"variant", wording.Metric(x.exp.Goal), "against " + x.exp.Baseline, "verdict", "blocks", "trials", "void"},
			Right: []bool{false, true, false, false, true, true, true},
		}
		if len(x.strata) > 1 {
			t.Title = x.at[i]
		}
		for _, v := range x.exp.Variants {
			t.Rows = append(t.Rows, x.variantRow(i, v.Name))
		}
		parts = append(parts, t)
	}
	if len(parts) == 0 {
		return nil
	}
	note := wording.Metric(x.exp.Goal) + " is the median over valid trials; the change is estimated within blocks, so it need not be the ratio of two medians."
	note += x.goalNote()
	if slices.ContainsFunc(x.Comparisons, func(c hakaru.Comparison) bool { return c.Judged && c.Verdict == hakaru.Same }) {
		note += " The interval beside \"no difference that matters\" is the one that decides it, at twice the level."
	}
	return append(parts, &layout.Paragraph{Text: note, Tone: layout.Faint})
}

// goalNote says what kind of figure the goal is, where its name does not.
func (x *index) goalNote() string {
	switch {
	case compare.Latency(x.exp.Goal):
		return " It is of an open loop, and counts from when a request was due."
	case x.exp.Goal == hakaru.Capacity:
		return " It is the highest rate that holds " + wording.Conditions(x.exp) + "."
	}
	return ""
}

func (x *index) variantRow(stratum int, name string) []layout.Cell {
	at := x.at[stratum]
	t := x.tally(name, at)
	value, changed, word, blocks := layout.Cell{Text: "-"}, layout.Cell{Text: "-"}, layout.Cell{Text: "-"}, "0"
	if m, ok := t.median[x.exp.Goal]; ok {
		value.Text = layout.Whole(unit.Value(m.Value, m.Unit))
	}
	c := x.of(x.exp.Goal, at, x.exp.Baseline, name)
	switch {
	case name == x.exp.Baseline:
		word = layout.Cell{Text: "baseline", Tone: layout.Faint}
		blocks = strconv.Itoa(x.strata[stratum].Blocks)
	case c != nil:
		changed.Text = wording.Change(c)
		blocks = strconv.Itoa(c.Blocks)
		if c.Judged {
			word = wording.Verdict(c)
		}
	}
	if u := x.unusable(name, at); u != nil {
		word = layout.Cell{Text: "unusable: " + wording.VoidReason(u.Reason), Tone: layout.Bad}
	}
	title := layout.Cell{Text: name}
	if s := x.strata[stratum]; s.Winner == name && name != x.exp.Baseline {
		title.Tone = layout.Strong
	}
	return []layout.Cell{title, value, changed, word, {Text: blocks}, {Text: strconv.Itoa(t.valid)}, {Text: strconv.Itoa(t.void)}}
}

// previousTable has the judged pairs whose base is not the baseline.
func (x *index) previousTable() []layout.Part {
	t := &layout.Table{
		Head:  []string{"variant", "against", wording.Metric(x.exp.Goal), "verdict", "blocks"},
		Right: []bool{false, false, false, false, true},
	}
	if len(x.strata) > 1 {
		t.Head = append([]string{"at"}, t.Head...)
		t.Right = append([]bool{false}, t.Right...)
	}
	for i := range x.Comparisons {
		c := &x.Comparisons[i]
		if !c.Judged || c.Base == x.exp.Baseline {
			continue
		}
		row := []layout.Cell{{Text: c.Other}, {Text: c.Base}, {Text: wording.Change(c)}, wording.Verdict(c), {Text: strconv.Itoa(c.Blocks)}}
		if len(x.strata) > 1 {
			row = append([]layout.Cell{{Text: hakaru.AtKey(c.At)}}, row...)
		}
		t.Rows = append(t.Rows, row)
	}
	if len(t.Rows) == 0 {
		return nil
	}
	return []layout.Part{t}
}

// otherFigures has a line for each variant: the changes of all other metrics.
func (x *index) otherFigures() []layout.Part {
	var lines layout.Bullets
	for i := range x.strata {
		for _, v := range x.exp.Variants {
			var figures []string
			for _, m := range x.metrics() {
				c := x.of(m, x.at[i], x.exp.Baseline, v.Name)
				if c == nil || c.Judged || m == x.exp.Goal || c.Blocks == 0 {
					continue
				}
				figures = append(figures, wording.Metric(m)+layout.Nbsp+wording.Change(c))
			}
			if len(figures) == 0 {
				continue
			}
			where := ""
			if len(x.strata) > 1 {
				where = " at " + x.at[i]
			}
			lines = append(lines, layout.Cell{Text: v.Name + where + ": " + strings.Join(figures, ", ")})
		}
	}
	if len(lines) == 0 {
		return nil
	}
	return []layout.Part{lines}
}

// limitTable has a row for each limit and variant.
func (x *index) limitTable() []layout.Part {
	if len(x.Limits) == 0 {
		return nil
	}
	t := &layout.Table{
		Head:  []string{"limit", "variant", "measured", "verdict"},
		Right: []bool{false, false, false, false},
	}
	implied, shown := false, false
	for _, g := range x.limitGroups() {
		l := g.LimitResult
		text := wording.Limit(l.Metric, l.Limit, l.Atleast)
		for _, e := range x.exp.Limits {
			if e.Implied && e.Metric == l.Metric && e.Bound == l.Limit {
				text, implied = text+" *", true
			}
		}
		who := l.Variant
		if g.all > 0 {
			who = fmt.Sprintf("all %d, at worst", g.all)
		} else if len(l.At) > 0 {
			who += " at " + hakaru.AtKey(l.At)
		}
		u := wording.Unit(l.Metric)
		measured := "-"
		if l.Trials > 0 && finite(l.Value) {
			measured = layout.Whole(unit.Value(l.Value, u))
			if finite(l.Low) && finite(l.High) && (l.Low != 0 || l.High != 0) {
				shown = true
				measured += " (" + layout.Whole(unit.Value(l.Low, u)+" to "+unit.Value(l.High, u)) + ")"
			}
		}
		var word layout.Cell
		switch l.Verdict {
		case hakaru.Meets:
			word = layout.Cell{Text: "meets"}
		case hakaru.Violates:
			word = layout.Cell{Text: "violates", Tone: layout.Bad}
		default:
			word = layout.Cell{Text: "not shown", Tone: layout.Doubtful}
		}
		if l.Reason != "" {
			word.Text += ": " + l.Reason
		}
		t.Rows = append(t.Rows, []layout.Cell{{Text: text}, {Text: who}, {Text: measured}, word})
	}
	var notes []string
	if shown {
		notes = append(notes, fmt.Sprintf("Intervals are %s over trials.", layout.Whole(unit.Share(0.95))))
	}
	if implied {
		notes = append(notes, "* is not in the file: it holds wherever no other limit on errors is written.")
	}
	if len(notes) == 0 {
		return []layout.Part{t}
	}
	return []layout.Part{t, &layout.Paragraph{Text: strings.Join(notes, " "), Tone: layout.Faint}}
}

// limitGroup is a row of the table of limits: one result, or the worst of all
// results of a limit that every variant meets in every stratum.
type limitGroup struct {
	hakaru.LimitResult
	all int // how many it stands for; 0: itself
}

func (x *index) limitGroups() []limitGroup {
	type limit struct {
		metric  hakaru.Metric
		bound   float64
		atLeast bool
	}
	of := func(l hakaru.LimitResult) limit { return limit{l.Metric, l.Limit, l.Atleast} }
	results := map[limit][]hakaru.LimitResult{}
	for _, l := range x.Limits {
		results[of(l)] = append(results[of(l)], l)
	}
	var groups []limitGroup
	for _, l := range x.Limits {
		same := results[of(l)]
		if len(same) < 3 || slices.ContainsFunc(same, func(l hakaru.LimitResult) bool { return l.Verdict != hakaru.Meets }) {
			groups = append(groups, limitGroup{LimitResult: l})
			continue
		}
		if l.Variant != same[0].Variant || hakaru.AtKey(l.At) != hakaru.AtKey(same[0].At) {
			continue
		}
		worst := slices.MaxFunc(same, func(a, b hakaru.LimitResult) int {
			if l.Atleast {
				return cmp.Compare(b.Low, a.Low)
			}
			return cmp.Compare(a.High, b.High)
		})
		groups = append(groups, limitGroup{worst, len(same)})
	}
	return groups
}
