package report

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"hakaru"
	"hakaru/internal/compare"
	"hakaru/internal/layout"
	"hakaru/internal/unit"
	"hakaru/internal/wording"
)

// headline is the answer: one sentence, and where there are strata one for
// each below it; then what a reader must know before believing it.
func (x *index) headline() []layout.Part {
	parts := []layout.Part{&layout.Paragraph{Text: x.answer(), Tone: layout.Strong}}
	if len(x.strata) > 1 {
		var b layout.Bullets
		for i, s := range x.strata {
			b = append(b, layout.Cell{Text: x.at[i] + ": " + x.sentence(i), Tone: toneOf(s.State)})
		}
		parts = append(parts, b)
	}
	for i, s := range x.strata {
		where := ""
		if len(x.strata) > 1 {
			where = "At " + x.at[i] + ": "
		}
		for _, note := range x.beside(s) {
			parts = append(parts, &layout.Paragraph{Text: where + note, Tone: layout.Doubtful})
		}
	}
	if note := x.unfinished(); note != "" {
		parts = append(parts, &layout.Paragraph{Text: note, Tone: layout.Doubtful})
	}
	if x.exp.Question != "" {
		parts = append(parts, &layout.Paragraph{Text: "The question was: " + x.exp.Question, Tone: layout.Faint})
	}
	return parts
}

func toneOf(s compare.State) layout.Tone {
	switch s {
	case compare.StateBetter:
		return layout.Good
	case compare.StateVoid:
		return layout.Bad
	case compare.StateUnclear:
		return layout.Doubtful
	}
	return layout.Plain
}

// answer is the one sentence.
func (x *index) answer() string {
	switch {
	case len(x.strata) == 1:
		return x.sentence(0)
	case len(x.strata) == 0:
		return "There is no answer yet: nothing was compared."
	}
	names := make([]string, len(x.exp.Levels))
	for i, l := range x.exp.Levels {
		names[i] = l.Name
	}
	over := wording.List(names)
	if over == "" {
		over = "stratum"
	}
	first := x.strata[0]
	alike := !slices.ContainsFunc(x.strata, func(s compare.Answer) bool { return s.State != first.State || s.Winner != first.Winner })
	baseline := x.exp.Baseline
	switch {
	case alike && first.State == compare.StateBetter:
		return fmt.Sprintf("%s is better than %s at every level of %s.", first.Winner, baseline, over)
	case alike && first.State == compare.StateSame:
		return fmt.Sprintf("At no level of %s does any variant differ from %s by more than %s.", over, baseline, x.matters())
	case alike && first.State == compare.StateNoneBetter:
		return fmt.Sprintf("At no level of %s can a variant be recommended over %s.", over, baseline)
	case alike && first.State == compare.StateUnclear:
		if !slices.ContainsFunc(x.strata, func(s compare.Answer) bool { return len(x.open(s)) > 0 || len(s.Undecided) == 0 }) {
			return fmt.Sprintf("Nothing is judged at any level of %s: %s.", over, strings.Join(x.notJudged(), "; "))
		}
		return fmt.Sprintf("Not enough data at any level of %s.", over)
	case alike:
		return fmt.Sprintf("No answer at any level of %s.", over)
	}
	var each []string
	for i, s := range x.strata {
		what := s.Winner
		switch s.State {
		case compare.StateUnclear:
			what = "not enough data"
			if len(x.open(s)) == 0 && len(s.Undecided) > 0 {
				what = "nothing that can be judged"
			}
		case compare.StateVoid:
			what = "no answer"
		case compare.StateSame:
			what = "no difference that matters"
		}
		each = append(each, what+" at "+x.at[i])
	}
	return "The answer depends on " + over + ": " + wording.List(each) + "."
}

// sentence is the answer in one stratum.
func (x *index) sentence(i int) string {
	s, at, baseline := x.strata[i], x.at[i], x.exp.Baseline
	if len(x.exp.Variants) == 1 && s.State != compare.StateVoid {
		return fmt.Sprintf("Nothing was compared: %s is the only variant.", baseline)
	}
	var others []string
	for _, v := range x.exp.Variants {
		if v.Name != baseline {
			others = append(others, v.Name)
		}
	}
	the := fmt.Sprintf("None of the %d variants", len(others))
	if len(others) == 1 {
		the = others[0]
	}
	switch s.State {
	case compare.StateBetter:
		c := x.of(x.exp.Goal, at, baseline, s.Winner)
		if c == nil || c.Blocks == 0 {
			return fmt.Sprintf("%s is better than %s.", s.Winner, baseline)
		}
		return x.claim(c) + "."
	case compare.StateSame:
		if len(others) == 1 {
			return fmt.Sprintf("%s does not differ from %s by more than %s.", the, baseline, x.matters())
		}
		return fmt.Sprintf("%s differs from %s by more than %s.", the, baseline, x.matters())
	case compare.StateNoneBetter:
		if len(s.Excluded) > 0 {
			return fmt.Sprintf("No variant can be recommended over %s: %s %s better and %s a limit.", baseline, wording.List(s.Excluded), wording.IsAre(s.Excluded), wording.Plural(s.Excluded, "violates", "violate"))
		}
		if len(others) == 1 {
			if c := x.of(x.exp.Goal, at, baseline, the); c != nil && c.Verdict == hakaru.Worse && !wording.Times(c) {
				return fmt.Sprintf("%s is worse than %s: %s %s (%s"+layout.Nbsp+"%%).", the, baseline, wording.Metric(c.Metric), layout.Whole(unit.Change(c.Ratio)), wording.Interval(c))
			}
			return fmt.Sprintf("%s is not better than %s.", the, baseline)
		}
		return fmt.Sprintf("%s is better than %s.", the, baseline)
	case compare.StateUnclear:
		return x.undecided(s, at)
	}
	if u := x.unusable(baseline, at); u != nil {
		return fmt.Sprintf("No answer: %s, which the others are compared with, cannot be used: %s (%s).", baseline, wording.VoidReason(u.Reason), strings.TrimSuffix(u.Evidence, "."))
	}
	if out := x.unusableNames(at); len(others) > 0 && len(out) == len(others) {
		u := x.unusable(out[0], at)
		return fmt.Sprintf("No answer: %s cannot be used: %s (%s).", wording.List(out), wording.VoidReason(u.Reason), strings.TrimSuffix(u.Evidence, "."))
	}
	total, void, common := x.voidCount(at)
	if void == 0 {
		return "No answer: no block is complete."
	}
	return fmt.Sprintf("No answer: %d of %s are void, mostly because %s.", void, wording.Count(total, "trial"), wording.VoidReason(common))
}

func (x *index) unusableNames(at string) []string {
	var names []string
	for _, v := range x.exp.Variants {
		if v.Name != x.exp.Baseline && x.unusable(v.Name, at) != nil {
			names = append(names, v.Name)
		}
	}
	return names
}

// voidCount counts the trials of a stratum and finds the commonest void reason.
func (x *index) voidCount(at string) (total, void int, common hakaru.VoidReason) {
	by := map[hakaru.VoidReason]int{}
	for _, r := range x.History {
		if hakaru.AtKey(r.At) != at {
			continue
		}
		total++
		if r.Void == nil {
			continue
		}
		void++
		by[r.Void.Reason]++
		if n := by[r.Void.Reason]; n > by[common] || n == by[common] && r.Void.Reason < common {
			common = r.Void.Reason
		}
	}
	return total, void, common
}

// open are those of the undecided of a stratum that more data may decide: what
// cannot act within a trial, say, is none of them.
func (x *index) open(s compare.Answer) (names []string) {
	for _, name := range s.Undecided {
		if x.refused(s, name) == "" {
			names = append(names, name)
		}
	}
	return names
}

// refused is why a variant is not judged in a stratum, however much is measured;
// empty where it is.
func (x *index) refused(s compare.Answer, name string) string {
	if c := x.of(x.exp.Goal, hakaru.AtKey(s.At), x.exp.Baseline, name); c != nil {
		return wording.NotJudged(c)
	}
	return ""
}

// notJudged are the reasons for which variants are not judged, each once.
func (x *index) notJudged() (reasons []string) {
	for _, s := range x.strata {
		for _, name := range s.Undecided {
			if why := x.refused(s, name); why != "" && !slices.Contains(reasons, why) {
				reasons = append(reasons, why)
			}
		}
	}
	return reasons
}

// undecided says why some variants of a stratum have no verdict.
func (x *index) undecided(s compare.Answer, at string) string {
	open := x.open(s)
	var said []string
	if len(open) > 0 || len(s.Undecided) == 0 {
		said = append(said, x.notEnough(s, open, at))
	}
	for _, why := range x.notJudged() {
		var names []string
		for _, name := range s.Undecided {
			if x.refused(s, name) == why {
				names = append(names, name)
			}
		}
		if len(names) > 0 {
			said = append(said, fmt.Sprintf("%s %s not judged against %s: %s.", wording.List(names), wording.IsAre(names), x.exp.Baseline, why))
		}
	}
	return strings.Join(said, " ")
}

// notEnough says what is missing to decide the variants that are open.
func (x *index) notEnough(s compare.Answer, open []string, at string) string {
	looked, more := 0, 0
	for _, name := range open {
		if c := x.of(x.exp.Goal, at, x.exp.Baseline, name); c != nil {
			looked, more = max(looked, c.Blocks), max(more, c.MoreBlocks)
		}
	}
	who := ""
	if len(open) > 0 {
		who = " to tell " + wording.List(open) + " from " + x.exp.Baseline
	}
	switch {
	case looked == 0 && x.Run.Frozen != nil && len(x.Run.Frozen.Looks) > 0:
		return fmt.Sprintf("Not enough data%s: %s complete, the first comparison is after %d.", who, wording.Count(s.Blocks, "block"), x.Run.Frozen.Looks[0])
	case looked == 0:
		return fmt.Sprintf("Not enough data%s: no block was complete.", who)
	case more > 0:
		return fmt.Sprintf("Not enough data%s after %s; about %d more would do.", who, wording.Count(looked, "block"), more)
	}
	return fmt.Sprintf("Not enough data%s after %s.", who, wording.Count(looked, "block"))
}

// claim words a comparison that is better.
func (x *index) claim(c *hakaru.Comparison) string {
	size := strings.TrimLeft(layout.Whole(unit.Change(c.Ratio)), "+-")
	var what string
	switch {
	case wording.Times(c) && c.Metric == hakaru.Throughput:
		what = fmt.Sprintf("serves %s times the throughput of", wording.Factor(c.Ratio))
	case wording.Times(c):
		what = fmt.Sprintf("has %s times the %s of", wording.Factor(c.Ratio), wording.Metric(c.Metric))
	case c.Metric == hakaru.Throughput:
		what = fmt.Sprintf("serves %s more throughput than", size)
	case c.Metric == hakaru.CPUPerRequest:
		what = fmt.Sprintf("uses %s less CPU time per request than", size)
	case c.Metric == hakaru.P50 || c.Metric == hakaru.P99:
		what = fmt.Sprintf("has a %s lower %s than", size, wording.Metric(c.Metric))
	case c.Metric.HigherIsBetter():
		what = fmt.Sprintf("has %s more %s than", size, wording.Metric(c.Metric))
	default:
		what = fmt.Sprintf("has %s less %s than", size, wording.Metric(c.Metric))
	}
	between := wording.Interval(c)
	if !wording.Times(c) {
		between += layout.Nbsp + "%"
	}
	sure := ""
	if f := x.family(); f != "" {
		sure = "; " + f + " over all comparisons"
	}
	return fmt.Sprintf("%s %s %s (%s%s, %s)", c.Other, what, c.Base, between, sure, wording.Count(c.Blocks, "block"))
}

// beside lists what stands beside the answer of a stratum and may change a
// reader's mind.
func (x *index) beside(s compare.Answer) []string {
	var notes []string
	at := hakaru.AtKey(s.At)
	if len(s.Ties) > 0 {
		notes = append(notes, fmt.Sprintf("%s %s better than %s too, and not distinguished from %s.", wording.List(s.Ties), wording.IsAre(s.Ties), x.exp.Baseline, s.Winner))
	}
	if s.State == compare.StateBetter && len(s.Excluded) > 0 {
		notes = append(notes, fmt.Sprintf("%s %s better than %s and %s a limit, so not recommended.", wording.List(s.Excluded), wording.IsAre(s.Excluded), x.exp.Baseline, wording.Plural(s.Excluded, "violates", "violate")))
	}
	if s.State == compare.StateBetter && len(s.Undecided) > 0 {
		notes = append(notes, x.undecided(s, at))
	}
	if s.State == compare.StateUnclear {
		if v := x.decided(at); v != "" {
			notes = append(notes, v)
		}
	}
	if len(s.Violated) > 0 {
		notes = append(notes, fmt.Sprintf("%s violates the limit on %s.", s.Winner, metricList(s.Violated)))
	}
	if len(s.NotShown) > 0 && s.State == compare.StateBetter {
		notes = append(notes, fmt.Sprintf("It is not shown that %s holds the limit on %s.", s.Winner, metricList(s.NotShown)))
	}
	if out := x.unusableNames(at); len(out) > 0 && s.State != compare.StateVoid {
		notes = append(notes, fmt.Sprintf("%s could not be used, see the void trials.", wording.List(out)))
	}
	if s.Dropped > 0 {
		notes = append(notes, fmt.Sprintf("%s left out, because %s trials stayed void after all re-runs.", countWere(s.Dropped, "block"), wording.Plural(make([]string, s.Dropped), "its", "their")))
	}
	return notes
}

func countWere(n int, noun string) string {
	if n == 1 {
		return wording.Count(n, noun) + " was"
	}
	return wording.Count(n, noun) + " were"
}

func metricList(ms []hakaru.Metric) string {
	names := make([]string, len(ms))
	for i, m := range ms {
		names[i] = wording.Metric(m)
	}
	return wording.List(names)
}

// decided says what is known already where the answer as a whole is open.
func (x *index) decided(at string) string {
	var same, worse []string
	baseline := x.exp.Baseline
	for _, v := range x.exp.Variants {
		if c := x.of(x.exp.Goal, at, x.exp.Baseline, v.Name); c != nil && c.Judged {
			switch c.Verdict {
			case hakaru.Same:
				same = append(same, v.Name)
			case hakaru.Worse:
				worse = append(worse, v.Name)
			}
		}
	}
	var said []string
	if len(same) > 0 {
		said = append(said, fmt.Sprintf("%s %s not differ from %s by more than %s", wording.List(same), wording.Plural(same, "does", "do"), baseline, x.matters()))
	}
	if len(worse) > 0 {
		said = append(said, fmt.Sprintf("%s %s worse than %s", wording.List(worse), wording.IsAre(worse), baseline))
	}
	if len(said) == 0 {
		return ""
	}
	return "Known so far: " + strings.Join(said, "; ") + "."
}

// unfinished says what a run's state means for its figures.
func (x *index) unfinished() string {
	looked := 0
	for _, c := range x.Comparisons {
		if c.Judged {
			looked = max(looked, c.Blocks)
		}
	}
	figures := "the first comparison was not reached, so nothing is judged"
	if looked > 0 {
		figures = fmt.Sprintf("the figures are those of its last planned comparison, after %s; later trials are not judged", wording.Count(looked, "block"))
	}
	switch x.Run.State {
	case hakaru.RunInterrupted:
		return "The run was interrupted: " + figures + "."
	case hakaru.RunFailed:
		return "The run ended with an error: " + figures + "."
	case hakaru.RunRunning:
		return "The run has not ended: " + figures + "."
	}
	if x.Run.Done == nil || x.Run.Done.Text == "" || x.saidAlready() {
		return ""
	}
	return asSentence(x.Run.Done.Text)
}

// saidAlready reports whether the answer has said why the run ended: its
// baseline cannot be used.
func (x *index) saidAlready() bool {
	return len(x.strata) == 1 && x.strata[0].State == compare.StateVoid && x.unusable(x.exp.Baseline, x.at[0]) != nil
}

func asSentence(text string) string {
	first, size := utf8.DecodeRuneInString(text)
	return string(unicode.ToUpper(first)) + strings.TrimSuffix(text[size:], ".") + "."
}
