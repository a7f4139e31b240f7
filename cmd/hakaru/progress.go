package main

import (
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strings"
	"time"

	"golang.org/x/term"

	"hakaru"
	"hakaru/internal/campaign"
	"hakaru/internal/compare"
	"hakaru/internal/host"
	"hakaru/internal/layout"
	"hakaru/internal/redact"
	"hakaru/internal/trial"
	"hakaru/internal/unit"
	"hakaru/internal/wording"
)

// progress tells on standard error what a run is doing: a line a trial, and on
// a terminal one that is written over while the trial runs.
type progress struct {
	w    io.Writer
	live bool // a terminal: the current line may be written over
	exp  *hakaru.Experiment

	current campaign.TrialEvent
	stage   trial.Stage
	frozen  *hakaru.Frozen
	history []hakaru.Result
	said    map[string]string // stratum and pair → last verdict said
	doubted map[string]bool   // warnings of trials that were told, by wording.Likeness
	drawn   bool              // the current line is one to write over
}

func newProgress(w io.Writer, exp *hakaru.Experiment) *progress {
	file, isFile := w.(*os.File)
	return &progress{w: w, exp: exp, live: isFile && term.IsTerminal(int(file.Fd())), said: map[string]string{}, doubted: map[string]bool{}}
}

func (p *progress) say(format string, args ...any) {
	p.clear()
	// What a trial's evidence quotes can hold what its file keeps secret, and
	// standard error ends up in logs.
	fmt.Fprint(p.w, redact.Text(fmt.Sprintf("hakaru: "+format+"\n", args...)))
}

// clear takes away the line that is written over.
func (p *progress) clear() {
	if p.drawn {
		fmt.Fprint(p.w, "\r\x1b[K")
		p.drawn = false
	}
}

func (p *progress) draw(line string) {
	if !p.live {
		return
	}
	p.clear()
	if file, ok := p.w.(*os.File); ok {
		letters := []rune(line)
		if width, _, err := term.GetSize(int(file.Fd())); err == nil && width > 1 && len(letters) > width-1 {
			line = string(letters[:width-1])
		}
	}
	fmt.Fprint(p.w, line)
	p.drawn = true
}

func (p *progress) waiting(h host.Holder) {
	p.say("waiting for %s (pid %d) to end: it has this machine", h.What, h.PID)
}

func (p *progress) begin(run hakaru.Run, path string) {
	p.say("run %s of %s, kept in %s (seed %d)", run.ID, run.Name, path, run.Experiment.Design.Seed)
}

func (p *progress) end() { p.clear() }

// event is told everything that happens.
func (p *progress) event(e campaign.Event) {
	switch {
	case e.Resumed != nil:
		p.history = e.Resumed
		p.say("going on after %d trials", len(e.Resumed))
	case e.Frozen != nil:
		p.frozen = e.Frozen
		p.planned(e.Frozen)
	case e.Trial != nil:
		p.current = *e.Trial
		p.draw(p.head() + " starting")
	case e.Stage != "":
		p.stage = e.Stage
		p.draw(p.head() + " " + string(e.Stage))
	case e.Bucket != nil && p.exp.Load.Program != nil:
		// A load program tells nothing before its end.
	case e.Bucket != nil:
		p.draw(fmt.Sprintf("%s %s %s", p.head(), p.stage, unit.Rate(float64(e.Bucket.Good)/hakaru.BucketWidth.Seconds())))
	case e.Lost != nil:
		p.say("%v; starting anew", e.Lost)
	case e.Result != nil:
		p.history = append(p.history, *e.Result)
		p.result(e.Result)
		p.looks()
	}
}

// head says which trial this is and how much there is left, and on what basis.
func (p *progress) head() string {
	t := p.current
	return fmt.Sprintf("trial %d (%s) %s, %s", t.Trial.Seq, where(t.Trial), what(t.Trial), left(t.Left))
}

func where(t hakaru.Trial) string {
	s := string(t.Phase)
	if t.Phase != hakaru.Calibrate {
		s = fmt.Sprintf("block %d", t.Block)
	}
	if t.Attempt > 1 {
		s += fmt.Sprintf(", attempt %d", t.Attempt)
	}
	return s
}

func what(t hakaru.Trial) string {
	if at := hakaru.AtKey(t.At); at != "" {
		return t.Variant + " at " + at
	}
	return t.Variant
}

// count is a number with its noun on a line that nothing wraps.
func count(n int, noun string) string {
	return strings.ReplaceAll(wording.Count(n, noun), layout.Nbsp, " ")
}

func left(l campaign.PlanEvent) string {
	if l.Trials == 0 {
		return "none left"
	}
	basis := "guessed"
	if l.Known {
		basis = unit.Duration(l.PerTrial) + " a trial"
	}
	return fmt.Sprintf("at most %s left, %s (%s)", count(l.Trials, "trial"), unit.Duration(l.AtMost.Round(time.Second)), basis)
}

func (p *progress) result(r *hakaru.Result) {
	line := fmt.Sprintf("trial %d (%s) %s:", r.Seq, where(r.Trial), what(r.Trial))
	if r.Void != nil {
		p.say("%s void: %s", line, r.Void.Evidence)
		return
	}
	var figures []string
	shown := shownMetrics(p.exp.Goal)
	for _, l := range p.exp.Limits {
		if compare.Latency(l.Metric) && r.Open != nil && !slices.Contains(shown, l.Metric) {
			shown = append(shown, l.Metric)
		}
	}
	for _, m := range shown {
		if v, ok := r.Measured(m); ok {
			figures = append(figures, unit.Value(v, unitOf(r, m))+" "+wording.Metric(m))
		}
	}
	p.say("%s %s; %s", line, strings.Join(figures, ", "), left(p.current.Left.Without(1)))
	for _, w := range r.Warnings {
		// What is true of every trial is told with the first one: the report counts
		// the others.
		if like := wording.Likeness(w); !p.doubted[like] {
			p.doubted[like] = true
			p.say("  doubt: %s", w.Message)
		}
	}
}

// shownMetrics are the goal and, beside it, the two that tell how steady a
// machine is.
func shownMetrics(goal hakaru.Metric) []hakaru.Metric {
	shown := []hakaru.Metric{goal}
	for _, m := range []hakaru.Metric{hakaru.Throughput, hakaru.CPUPerRequest} {
		if m != goal {
			shown = append(shown, m)
		}
	}
	return shown
}

func unitOf(r *hakaru.Result, m hakaru.Metric) string {
	for _, x := range r.Measurements {
		if x.Metric == m && x.Of == "" {
			return x.Unit
		}
	}
	return ""
}

// planned says what the calibration showed, before time is spent on it.
func (p *progress) planned(f *hakaru.Frozen) {
	for _, m := range shownMetrics(p.exp.Goal) {
		cv, ok := f.Noise.CV[m]
		if !ok {
			continue
		}
		line := fmt.Sprintf("noise of %s from trial to trial: %s", wording.Metric(m), unit.Share(cv))
		if need, ok := f.Noise.BlocksNeeded[m]; ok && m == p.exp.Goal {
			line += fmt.Sprintf("; to resolve %s takes about %s, %d are planned", unit.Share(f.Matters),
				count(need, "block"), f.Blocks)
			if need > f.Blocks {
				// The blocks needed go with the inverse square of the difference
				// (stats.BlocksNeeded).
				resolved := f.Matters * math.Sqrt(float64(need)/float64(f.Blocks))
				line += fmt.Sprintf(", which resolve about %s: more blocks, longer trials or a steadier metric resolve less", unit.Share(resolved))
			}
		}
		p.say("%s", line)
	}
	if rates := wording.OpenRates(f); rates != "" {
		p.say("%s", strings.ReplaceAll(rates, layout.Nbsp, " "))
	}
	if f.Note != "" {
		p.say("%s", f.Note)
	}
}

// looks tells the verdicts as they fall and, when a block is complete, the
// estimates so far.
func (p *progress) looks() {
	if p.frozen == nil {
		return
	}
	var sofar []string
	for _, c := range compare.SoFar(p.exp, *p.frozen, p.history) {
		key := "so far\x00" + hakaru.AtKey(c.At) + "\x00" + c.Base + "\x00" + c.Other
		if now := fmt.Sprint(c.Blocks); p.said[key] != now {
			p.said[key] = now
			sofar = append(sofar, fmt.Sprintf("%s %s", pairName(c), unit.Change(c.Ratio)))
		}
	}
	if len(sofar) > 0 {
		p.say("  so far, no verdict: %s", strings.Join(sofar, ", "))
	}
	for _, c := range compare.Compare(p.exp, *p.frozen, p.history) {
		if !c.Judged || c.Blocks == 0 {
			continue
		}
		key := hakaru.AtKey(c.At) + "\x00" + c.Base + "\x00" + c.Other
		now := fmt.Sprint(c.Blocks, c.Verdict)
		if p.said[key] == now {
			continue
		}
		p.said[key] = now
		p.say("  after %s: %s %s: %s", count(c.Blocks, "block"), pairName(c), layout.Flat(wording.Change(&c)), layout.Flat(wording.Verdict(&c).Text))
	}
}

// pairName names a pair in its stratum.
func pairName(c hakaru.Comparison) string {
	name := c.Other
	if at := hakaru.AtKey(c.At); at != "" {
		name += " at " + at
	}
	return name + " against " + c.Base
}
