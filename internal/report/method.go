package report

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"hakaru"
	"hakaru/internal/compare"
	"hakaru/internal/layout"
	"hakaru/internal/unit"
	"hakaru/internal/wording"
)

// method says what was measured and how: enough to do it again, or to doubt it.
func (x *index) method() []layout.Part {
	var f layout.Facts
	say := func(name, value string) {
		if value != "" {
			f = append(f, [2]string{name, value})
		}
	}
	say("load", wording.Load(x.exp))
	say("open loop", wording.OpenRates(x.Run.Frozen))
	say("as run", x.command())
	if w := x.windows(); w != "" {
		say("window", w)
	}
	o := x.Outcome
	blocks := wording.Count(o.Complete, "block") + " complete"
	if o.Dropped > 0 {
		blocks += fmt.Sprintf(", %d left out", o.Dropped)
	}
	say("trials", fmt.Sprintf("%d in all, %d void; %s; order drawn anew in each block, seed %d", len(x.History), o.VoidTrials, blocks, x.exp.Design.Seed))
	if z := x.Run.Frozen; z != nil {
		looks := make([]string, len(z.Looks))
		for i, l := range z.Looks {
			looks[i] = strconv.Itoa(l)
		}
		say("looks", fmt.Sprintf("planned after %s blocks; %s of false claims over %s and %s, so %s at each", wording.List(looks),
			layout.Whole(unit.Share(z.Alpha)), wording.Count(z.Comparison, "comparison"), wording.Count(len(z.Looks), "look"), layout.Whole(unit.Share(z.Level))))
		say("blocks", z.Note)
	}
	say("design", string(x.exp.Design.Method))
	say("service on", environment(x.Run.Service, x.exp.ServiceHost))
	if x.Run.Loader.Hostname != "" {
		same := x.Run.Loader.Hostname == x.Run.Service.Hostname
		text := "the same machine" + pinned(x.exp.LoadHost)
		if !same {
			text = environment(x.Run.Loader, x.exp.LoadHost)
		}
		say("load from", text)
	}
	for _, p := range slices.Sorted(maps.Keys(x.Run.Service.Programs)) {
		say("program", p+": "+x.Run.Service.Programs[p])
	}
	if x.exp.Load.Program != nil {
		for _, p := range slices.Sorted(maps.Keys(x.Run.Loader.Programs)) {
			say("sent by", p+": "+x.Run.Loader.Programs[p])
		}
	}
	say("hakaru", x.Run.Service.Hakaru)
	run := fmt.Sprintf("%s (%s), begun %s", x.Run.ID, x.Run.Name, x.Run.Started.Format("2006-01-02 15:04:05 MST"))
	switch end := x.Run.Ended; {
	case end != nil:
		run += ", took " + layout.Whole(unit.Duration(end.Sub(x.Run.Started)))
	case !x.Now.IsZero():
		run += ", " + layout.Whole(unit.Duration(x.Now.Sub(x.Run.Started))) + " ago"
	}
	say("run", run)
	return []layout.Part{f}
}

// command is the command line of a load program, as it was run in the last trial
// that has one.
func (x *index) command() string {
	for i := len(x.History) - 1; i >= 0; i-- {
		if t := x.History[i].Totals; t != nil && t.Command != "" {
			return t.Command
		}
	}
	return ""
}

// windows says how long trials measured, as they did, not as was written.
func (x *index) windows() string {
	var warm, window, took []time.Duration
	for i := range x.History {
		r := &x.History[i]
		if r.Void == nil && r.Window > 0 {
			measured := r.Window
			if r.Totals != nil && r.Totals.Took > 0 {
				// A program's figures are of the time in which it sent; the window has
				// whole buckets around it.
				measured = r.Totals.Took
			}
			warm, window, took = append(warm, r.WarmUp), append(window, measured), append(took, r.Took)
		}
	}
	if len(window) == 0 {
		return ""
	}
	span := func(d []time.Duration) string {
		least, most := slices.Min(d), slices.Max(d)
		if unit.Duration(least) == unit.Duration(most) {
			return layout.Whole(unit.Duration(least))
		}
		return layout.Whole(unit.Duration(least) + " to " + unit.Duration(most))
	}
	slices.Sort(took)
	text := span(window) + " measured after " + span(warm) + " of warm-up"
	if t := took[len(took)/2]; t > 0 {
		text += "; a trial takes " + layout.Whole(unit.Duration(t)) + " with start and stop"
	}
	return text
}

func pinned(h hakaru.HostSpec) string {
	if len(h.CPUs) == 0 {
		return ""
	}
	cpus := make([]string, len(h.CPUs))
	for i, c := range h.CPUs {
		cpus[i] = strconv.Itoa(c)
	}
	return ", pinned to CPU " + wording.List(cpus)
}

func environment(e hakaru.Environment, h hakaru.HostSpec) string {
	var words []string
	for _, w := range []string{e.Hostname, e.Kernel} {
		if w != "" {
			words = append(words, w)
		}
	}
	if e.CPUs > 0 {
		words = append(words, strings.TrimSpace(wording.Count(e.CPUs, "CPU")+" "+e.CPUModel))
	}
	if e.Memory > 0 {
		words = append(words, layout.Whole(unit.Bytes(float64(e.Memory))))
	}
	for _, name := range slices.Sorted(maps.Keys(e.Limits)) {
		words = append(words, name+" "+e.Limits[name])
	}
	return strings.Join(words, ", ") + pinned(h)
}

// change shows, for each variant that is recommended, what it changes.
func (x *index) change() []layout.Part {
	var parts []layout.Part
	seen := map[string]bool{x.exp.Baseline: true}
	for _, s := range x.strata {
		if s.State != compare.StateBetter || seen[s.Winner] {
			continue
		}
		seen[s.Winner] = true
		v, known := x.exp.Variant(s.Winner)
		if known && len(v.Settings) > 0 {
			var set []string
			for _, s := range v.Settings {
				set = append(set, wording.Setting(s))
			}
			parts = append(parts, &layout.Paragraph{Text: v.Name + ": " + strings.Join(set, ", ")})
		}
		if d := x.Diff[s.Winner]; d != "" {
			parts = append(parts, &layout.Block{Language: "diff", Text: d})
		}
	}
	return parts
}
