package report

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"hakaru"
	"hakaru/internal/layout"
	"hakaru/internal/redact"
	"hakaru/internal/unit"
	"hakaru/internal/wording"
)

// numbers prints trial numbers: "trial 3", "trials 3, 5, 9 and 12 more".
func numbers(seqs []int) string {
	const shown = 8
	var words []string
	for _, s := range seqs[:min(len(seqs), shown)] {
		words = append(words, strconv.Itoa(s))
	}
	if more := len(seqs) - shown; more > 0 {
		words = append(words, fmt.Sprintf("%d more", more))
	}
	return wording.Plural(words, "trial", "trials") + " " + wording.List(words)
}

// grouped keeps things that are said several times together, in the order in
// which they were said first.
type grouped[K comparable] struct {
	order []K
	seqs  map[K][]int
}

func (g *grouped[K]) add(k K, seq int) {
	if g.seqs == nil {
		g.seqs = map[K][]int{}
	}
	if _, known := g.seqs[k]; !known {
		g.order = append(g.order, k)
	}
	g.seqs[k] = append(g.seqs[k], seq)
}

// doubts are all warnings: of the run, of comparisons, of trials, each said
// once with where, or how often, it occurred.
func (x *index) doubts() []layout.Part {
	var b layout.Bullets
	for _, w := range x.Run.Warnings {
		b = append(b, layout.Cell{Text: w.Message, Tone: layout.Doubtful})
	}
	type about struct{ message, pair string }
	var pairs []about
	for _, c := range x.Comparisons {
		for _, w := range c.Warnings {
			pair := c.Other + " against " + c.Base
			if len(c.At) > 0 {
				pair += " at " + hakaru.AtKey(c.At)
			}
			// The same doubt about several metrics of a pair is one doubt.
			if a := (about{w.Message, pair}); !slices.Contains(pairs, a) {
				pairs = append(pairs, a)
			}
		}
	}
	var said grouped[string]
	for i, p := range pairs {
		said.add(p.message, i)
	}
	for _, message := range said.order {
		var who []string
		for _, i := range said.seqs[message] {
			who = append(who, pairs[i].pair)
		}
		b = append(b, layout.Cell{Text: message + " (" + wording.List(who) + ")", Tone: layout.Doubtful})
	}
	// Messages of trials hold figures, so that each is different: of those that
	// are alike the first one speaks for all.
	var trials grouped[string]
	first := map[string]string{}
	for _, r := range x.History {
		seen := map[string]bool{}
		for _, w := range r.Warnings {
			likeness := wording.Likeness(w)
			if seen[likeness] {
				continue
			}
			seen[likeness] = true
			if _, known := first[likeness]; !known {
				first[likeness] = w.Message
			}
			trials.add(likeness, r.Seq)
		}
	}
	for _, likeness := range trials.order {
		seqs := trials.seqs[likeness]
		where := "trial " + strconv.Itoa(seqs[0])
		if n := len(seqs); n > 1 {
			where = fmt.Sprintf("in %d of %s, first in %s", n, wording.Count(len(x.History), "trial"), layout.Whole(where))
		}
		b = append(b, layout.Cell{Text: first[likeness] + " (" + where + ")", Tone: layout.Doubtful})
	}
	if len(b) == 0 {
		return nil
	}
	return []layout.Part{b}
}

// voids groups void trials by variant, stratum and reason, each with the
// evidence of its first trial.
func (x *index) voids() []layout.Part {
	type key struct {
		variant, at string
		reason      hakaru.VoidReason
	}
	var g grouped[key]
	first := map[key]*hakaru.Void{}
	total := 0
	for i := range x.History {
		r := &x.History[i]
		if r.Void == nil {
			continue
		}
		k := key{r.Variant, hakaru.AtKey(r.At), r.Void.Reason}
		if first[k] == nil {
			first[k] = r.Void
		}
		g.add(k, r.Seq)
		total++
	}
	if total == 0 {
		return nil
	}
	parts := []layout.Part{&layout.Paragraph{Text: fmt.Sprintf("%d of %s %s not count; void trials are kept, and never averaged in.", total, wording.Count(len(x.History), "trial"), wording.Plural(make([]string, total), "does", "do"))}}
	var b layout.Bullets
	for _, k := range g.order {
		who := k.variant
		if k.at != "" {
			who += " at " + k.at
		}
		text := fmt.Sprintf("%s, %s: %s", who, numbers(g.seqs[k]), wording.VoidReason(k.reason))
		b = append(b, layout.Cell{Text: text + wording.Because(first[k]), Tone: layout.Bad})
	}
	return append(parts, b)
}

// proofs says which settings were seen in force, which could not be, and which
// were not.
func (x *index) proofs() []layout.Part {
	type key struct {
		service, setting, asked string
		holds                   hakaru.Held
	}
	var g grouped[key]
	first := map[key]hakaru.Proof{}
	for _, r := range x.History {
		for _, p := range r.Proofs {
			if redact.Secret(p.Setting) {
				p.Asked, p.Found = hide(p.Asked), hide(p.Found)
			}
			k := key{p.Service, p.Setting, p.Asked, p.Holds}
			if _, known := first[k]; !known {
				first[k] = p
			}
			g.add(k, r.Seq)
		}
	}
	if len(g.order) == 0 {
		return []layout.Part{&layout.Paragraph{Text: "Nothing was asked of the running services, so it is not proved that any setting was in force.", Tone: layout.Doubtful}}
	}
	services := map[string]bool{}
	for _, k := range g.order {
		services[k.service] = true
	}
	var yes []string
	var b layout.Bullets
	for _, k := range g.order {
		p, name := first[k], wording.ProvedSetting(k.service, k.setting, len(services) > 1)
		by := wording.ByInTrials(p.Source)
		seqs := slices.Compact(g.seqs[k]) // asked at several moments of a trial
		times := "in " + wording.Count(len(seqs), "trial")
		switch k.holds {
		case hakaru.Yes:
			yes = append(yes, fmt.Sprintf("%s = %s (%s, by %s)", name, orNothing(p.Asked), times, by))
		case hakaru.No:
			b = append(b, layout.Cell{Text: fmt.Sprintf("%s = %s was not in force: %s by %s (%s)", name, orNothing(p.Asked), orNothing(p.Found), by, numbers(seqs)), Tone: layout.Bad})
		default:
			why := by
			if p.Found != "" {
				why = strings.TrimPrefix(why+": "+p.Found, ": ")
			}
			if why == "" {
				why = "nothing could be read"
			}
			b = append(b, layout.Cell{Text: fmt.Sprintf("%s = %s is not proved: %s (%s)", name, orNothing(p.Asked), why, times), Tone: layout.Doubtful})
		}
	}
	if len(yes) > 0 {
		b = append(layout.Bullets{{Text: "seen in force: " + strings.Join(yes, ", ")}}, b...)
	}
	return []layout.Part{b}
}

func orNothing(text string) string {
	if text == "" {
		return "(nothing)"
	}
	return text
}

func hide(text string) string {
	if text == "" {
		return ""
	}
	return redact.Mask
}

// noise is what the calibration showed: how steady each metric is here, and
// what that costs.
func (x *index) noise() []layout.Part {
	if x.Run.Frozen == nil || x.Run.Frozen.Noise.Trials == 0 {
		return nil
	}
	n := x.Run.Frozen.Noise
	var said []string
	for _, m := range []hakaru.Metric{hakaru.Throughput, hakaru.CPUPerRequest, x.exp.Goal} {
		cv, known := n.CV[m]
		if !known || m == x.exp.Goal && (m == hakaru.Throughput || m == hakaru.CPUPerRequest) && len(said) == 2 {
			continue
		}
		text := fmt.Sprintf("%s varies by %s from trial to trial", wording.Metric(m), layout.Whole(unit.Share(cv)))
		if b := n.BlocksNeeded[m]; b > 0 {
			text += fmt.Sprintf(", which takes about %s to resolve %s", wording.Count(b, "block"), x.matters())
		}
		if !slices.Contains(said, text) {
			said = append(said, text)
		}
	}
	if len(said) == 0 {
		return nil
	}
	return []layout.Part{&layout.Paragraph{Text: fmt.Sprintf("In %s of %s before the comparison, %s.", wording.Count(n.Trials, "trial"), x.exp.Baseline, strings.Join(said, "; "))}}
}
