package compare

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"hakaru"
	"hakaru/internal/measure"
	"hakaru/internal/stats"
)

// exactFrom is the number of blocks from which signed ranks are used; below it
// they have no interval at the levels of a look, and t is used.
const exactFrom = 10

// Codes of the warnings that a comparison may carry.
const (
	WarnNoLook     = "no_look"     // no planned look is reached
	WarnNoInterval = "no_interval" // too few values for an interval at this level
	WarnNoSpread   = "no_spread"   // the values are the same in every block, as figures that are printed coarsely are
	WarnMissing    = "missing"     // blocks that lack the metric were left out
	WarnCannotAct  = "cannot_act"  // the settings that differ need longer than a trial is, or do nothing
	WarnDrift      = "drift"       // the machine's speed moved between blocks
	WarnUnusable   = "unusable"    // one of the two could not be run
	WarnZero       = "zero"        // the goal was 0 of one of the two only, in some blocks: nothing to divide, and no block to leave out
	WarnBehind     = "behind"      // both fell behind their open loop, so that its latencies are made by its length
)

// Refused is the warning that says why a pair is not judged, however many blocks
// there are; false where there is none.
func Refused(c *hakaru.Comparison) (hakaru.Warning, bool) {
	for _, w := range c.Warnings {
		switch w.Code {
		case WarnCannotAct, WarnZero, WarnBehind:
			return w, true
		}
	}
	return hakaru.Warning{}, false
}

// shown are the metrics given beside the goal, in this order.
var shown = [...]hakaru.Metric{
	hakaru.Score, hakaru.Throughput, hakaru.CPUPerRequest, hakaru.P50, hakaru.P99, hakaru.Errors, hakaru.Memory,
}

// Compare gives, for each stratum and pair, the goal judged at the last planned
// look reached, and the other metrics over the same blocks, unjudged. Before the
// first look a pair has Blocks 0, no interval, and the warning no_look. A metric
// that was zero in a trial (no errors at all) has no logarithm and is left out.
func Compare(exp *hakaru.Experiment, frozen hakaru.Frozen, history []hakaru.Result) []hakaru.Comparison {
	l := read(exp, frozen, history)
	var all []hakaru.Comparison
	for _, s := range l.strata {
		for _, p := range s.pairs {
			if p.judged == nil {
				all = append(all, s.unjudged(p))
				continue
			}
			all = append(all, *p.judged)
			for _, metric := range shown {
				if metric == exp.Goal || metric == hakaru.Throughput && s.rateGiven() {
					continue
				}
				if v := s.values(metric, p.Pair, p.judged.Blocks); v.zero == 0 && len(v.d) > 1 {
					all = append(all, s.measure(v, p.Pair))
				}
			}
		}
	}
	return all
}

// rateGiven reports whether the load of the stratum is an open loop as a whole, whose
// throughput is the rate that was written.
func (s *Stratum) rateGiven() bool {
	for _, r := range s.blocks[0] {
		if r.Open != nil && r.Open.Whole {
			return true
		}
	}
	return false
}

// unjudged is the comparison of a pair before its first look.
func (s *Stratum) unjudged(p *standing) hakaru.Comparison {
	c := hakaru.Comparison{
		Metric: s.ledger.exp.Goal, At: s.At, Base: p.Base, Other: p.Other, Judged: true, Level: s.ledger.frozen.Level,
	}
	for _, v := range []string{p.Base, p.Other} {
		if u, lost := s.unusable[v]; lost {
			c.Warnings = append(c.Warnings, hakaru.Warning{Code: WarnUnusable,
				Message: fmt.Sprintf("%s could not be run (%s): %s", v, u.Reason, u.Evidence)})
		}
	}
	message := "not compared yet"
	if looks := s.ledger.frozen.Looks; len(looks) > 0 && c.Warnings == nil {
		message = fmt.Sprintf("not compared yet: %d of the %d blocks before the first comparison are complete", len(s.blocks), looks[0])
		c.MoreBlocks = max(looks[0], s.ledger.frozen.Noise.BlocksNeeded[c.Metric]) - len(s.blocks)
	}
	c.Warnings = append(c.Warnings, hakaru.Warning{Code: WarnNoLook, Message: message})
	return c
}

// look judges every pair that is still open at the number of blocks now
// complete. A pair that gets a verdict keeps it: its variant leaves the blocks.
func (s *Stratum) look() {
	exp := s.ledger.exp
	for _, p := range s.pairs {
		if p.settled {
			continue
		}
		v := s.values(exp.Goal, p.Pair, len(s.blocks))
		c := s.measure(v, p.Pair)
		c.Judged = true
		if missing := v.missing + v.zero; missing > 0 {
			c.Warnings = append(c.Warnings, hakaru.Warning{Code: WarnMissing,
				Message: fmt.Sprintf("%d of %d blocks have no %s above zero of both and were left out", missing, len(s.blocks), exp.Goal)})
		}
		if why, refused := s.refuse(p.Pair, &v); refused {
			c.Warnings = append(c.Warnings, why)
			p.settled = true
		} else {
			c.Verdict = s.verdict(&c)
			p.settled = c.Verdict != hakaru.Unclear
			if !p.settled {
				c.MoreBlocks = s.more(v, &c)
			}
		}
		// Drift that is small against what matters is no news.
		if moved, chance := v.arms.Drift(); chance < 0.01 && moved > s.ledger.frozen.Matters/3 {
			c.Warnings = append(c.Warnings, hakaru.Warning{Code: WarnDrift,
				Message: fmt.Sprintf("the machine drifted by %.2g %% between blocks; comparisons are made within blocks", 100*math.Expm1(moved))})
		}
		p.judged = &c
	}
}

// refuse says why a pair is never judged, if it is not. A figure of 0 is the worst
// of a rate: left out on one side only, it leaves the blocks in which that side did
// well, and they alone may not judge. Latencies of two services that both fell
// behind differ by how long they were measured.
func (s *Stratum) refuse(pair hakaru.Pair, v *values) (hakaru.Warning, bool) {
	if why := s.cannotAct(pair); why != nil {
		return hakaru.Warning{Code: WarnCannotAct,
			Message: fmt.Sprintf("%s and %s differ only in %s, so no verdict is given", pair.Base, pair.Other, strings.Join(why, ", and in "))}, true
	}
	if v.zeroBase+v.zeroOther > 0 {
		var which []string
		for _, x := range []struct {
			name string
			n    int
		}{{pair.Base, v.zeroBase}, {pair.Other, v.zeroOther}} {
			if x.n > 0 {
				which = append(which, fmt.Sprintf("that of %s in %d of %d blocks", x.name, x.n, v.n))
			}
		}
		return hakaru.Warning{Code: WarnZero,
			Message: fmt.Sprintf("the %s of one of the two alone was 0, %s: there is no ratio to judge by", v.metric, strings.Join(which, " and "))}, true
	}
	if Latency(v.metric) {
		base, other := s.behind(pair.Base, v.n), s.behind(pair.Other, v.n)
		if 2*base > v.n && 2*other > v.n {
			return hakaru.Warning{Code: WarnBehind,
				Message: fmt.Sprintf("both services fell behind the rate, %s in %d and %s in %d of %d blocks, and how long answers take is then made by how long is measured: a lower rate in load.http can be judged",
					pair.Base, base, pair.Other, other, v.n)}, true
		}
	}
	return hakaru.Warning{}, false
}

// behind counts those of the first n complete blocks in which a variant fell behind
// its open loop.
func (s *Stratum) behind(variant string, n int) int {
	count := 0
	for _, block := range s.blocks[:n] {
		if measure.FellBehind(block[variant]) {
			count++
		}
	}
	return count
}

// values are one metric of one pair over the first n complete blocks, as
// logarithms: noise multiplies, so ratios become differences.
type values struct {
	metric      hakaru.Metric
	n           int
	arms        stats.Blocks // every arm that is in all of the blocks used
	base, other int          // indices into arms
	d           []float64    // other minus base, by block
	missing     int          // blocks left out: one of the two lacks the metric
	zero        int          // … or has it at zero or below, where no logarithm is
	zeroBase    int          // … of them only the base
	zeroOther   int          // … of them only the other
	told        bool         // a load program printed it, in as many digits as it does
}

func (s *Stratum) values(metric hakaru.Metric, pair hakaru.Pair, n int) values {
	v := values{metric: metric, n: n}
	var used []map[string]*hakaru.Result
	for _, block := range s.blocks[:n] {
		base, hasBase := s.figure(block[pair.Base], metric)
		other, hasOther := s.figure(block[pair.Other], metric)
		switch {
		case !hasBase || !hasOther:
			v.missing++
		case !(base > 0 && other > 0):
			v.zero++
			if base > 0 {
				v.zeroOther++
			} else if other > 0 {
				v.zeroBase++
			}
		default:
			used = append(used, block)
			t := block[pair.Other].Totals
			v.told = v.told || metric == hakaru.Score || metric == hakaru.Throughput && t != nil && t.Throughput > 0
			v.d = append(v.d, math.Log(other)-math.Log(base))
		}
	}
	for _, variant := range s.ledger.exp.Variants {
		arm := make([]float64, 0, len(used))
		for _, block := range used {
			if r := block[variant.Name]; r != nil {
				if x, has := s.figure(r, metric); has && x > 0 {
					arm = append(arm, math.Log(x))
				}
			}
		}
		if len(arm) < len(used) || len(arm) == 0 {
			continue
		}
		switch variant.Name {
		case pair.Base:
			v.base = len(v.arms)
		case pair.Other:
			v.other = len(v.arms)
		}
		v.arms = append(v.arms, arm)
	}
	return v
}

// figure is a metric of a trial as far as it may be judged: a latency only of an
// open loop. In a closed one a slow service slows its own load down.
func figure(r *hakaru.Result, m hakaru.Metric) (float64, bool) {
	if Latency(m) && !openLatency(r, m) {
		return 0, false
	}
	return r.Measured(m)
}

// figure is that of the goal; other metrics are shown as they are.
func (s *Stratum) figure(r *hakaru.Result, m hakaru.Metric) (float64, bool) {
	if m == s.ledger.exp.Goal {
		return figure(r, m)
	}
	return r.Measured(m)
}

// Latency tells the metrics that are judged in an open loop only.
func Latency(m hakaru.Metric) bool { return m == hakaru.P50 || m == hakaru.P99 }

func openLatency(r *hakaru.Result, m hakaru.Metric) bool {
	return slices.ContainsFunc(r.Measurements, func(x hakaru.Measurement) bool { return x.Metric == m && x.Of == "" && x.Open })
}

// interval is the pooled t interval below ten blocks and the exact signed-rank
// interval from then on (METHOD.md §5 (a) 2).
func (v *values) interval(level float64) (stats.Interval, bool) {
	if len(v.d) >= exactFrom {
		return stats.HodgesLehmann(v.d, level)
	}
	return v.arms.Difference(v.base, v.other, level)
}

func (s *Stratum) measure(v values, pair hakaru.Pair) hakaru.Comparison {
	level := s.ledger.frozen.Level
	c := hakaru.Comparison{
		Metric: v.metric, At: s.At, Base: pair.Base, Other: pair.Other,
		Blocks: v.n, Trials: 2 * len(v.d), Level: level,
	}
	if v.n > len(v.d) && v.metric != s.ledger.exp.Goal {
		c.Blocks = len(v.d)
	}
	at, ok := v.interval(level)
	same, okSame := v.interval(2 * level)
	if !ok || !okSame {
		c.Warnings = append(c.Warnings, hakaru.Warning{Code: WarnNoInterval,
			Message: fmt.Sprintf("too few values (%d) for an interval at level %.2g", len(v.d), level)})
		if len(v.d) > 0 {
			c.Ratio = math.Exp(stats.Median(v.d))
		}
		return c
	}
	c.Ratio, c.Low, c.High = math.Exp(at.Estimate), math.Exp(at.Low), math.Exp(at.High)
	c.SameLow, c.SameHigh = math.Exp(same.Low), math.Exp(same.High)
	if v.told && noSpread(&c) {
		c.Warnings = append(c.Warnings, hakaru.Warning{Code: WarnNoSpread,
			Message: fmt.Sprintf("%s is told so coarsely that it is the same in every block: how sure a difference is cannot be said; have it printed with more digits", v.metric)})
	}
	return c
}

// noSpread reports whether an interval has no width. No two trials are ever the
// same: where they seem to be, a load program told its figure in few digits, and
// the true values may lie anywhere within the last one. The spread that every
// interval stands on (METHOD.md §5 (a) 2) is not in them.
func noSpread(c *hakaru.Comparison) bool {
	const width = 1e-9
	return c.Low > 0 && c.High < c.Low*(1+width)
}

// verdict is METHOD.md §5 (e). "Same" comes first: a difference that is real
// and too small to matter is no reason to change anything.
func (s *Stratum) verdict(c *hakaru.Comparison) hakaru.Verdict {
	matters := 1 + s.ledger.frozen.Matters
	switch {
	case c.Low == 0: // no interval
		return hakaru.Unclear
	case slices.ContainsFunc(c.Warnings, func(w hakaru.Warning) bool { return w.Code == WarnNoSpread }):
		return hakaru.Unclear
	case c.SameLow > 1/matters && c.SameHigh < matters:
		return hakaru.Same
	case c.Low > 1:
		return direction(c.Metric.HigherIsBetter())
	case c.High < 1:
		return direction(!c.Metric.HigherIsBetter())
	}
	return hakaru.Unclear
}

func direction(better bool) hakaru.Verdict {
	if better {
		return hakaru.Better
	}
	return hakaru.Worse
}

// more is about how many further blocks would decide, if the ratio is what it
// seems to be: either clear of no difference, or inside what does not matter,
// whichever is nearer.
func (s *Stratum) more(v values, c *hakaru.Comparison) int {
	if c.Low == 0 || v.told && noSpread(c) {
		return 0
	}
	level, n := c.Level, float64(len(v.d))
	var sd float64
	if len(v.d) >= exactFrom {
		// The rank interval's width, so that outliers count as little as they
		// do in the interval itself.
		sd = math.Log(c.High/c.Low) / 2 * math.Sqrt(n) / stats.NormalQuantile(1-level/2)
	} else {
		s, _ := v.arms.Residual()
		sd = math.Sqrt2 * s
	}
	moved, matters := math.Abs(math.Log(c.Ratio)), math.Log1p(s.ledger.frozen.Matters)
	need := math.MaxInt
	if moved > 0 {
		need = stats.BlocksToReach(sd, moved, level)
	}
	if moved < matters {
		need = min(need, stats.BlocksToReach(sd, matters-moved, 2*level))
	}
	return max(1, need-v.n)
}

// cannotAct returns the settings in which a pair differs, each with the reason,
// when none of them can make a difference: it needs longer than any trial of the
// pair lasts, or does nothing in either variant.
func (s *Stratum) cannotAct(pair hakaru.Pair) (why []string) {
	exp := s.ledger.exp
	var lasts time.Duration
	for _, block := range s.blocks {
		for _, v := range []string{pair.Base, pair.Other} {
			lasts = max(lasts, block[v].WarmUp+block[v].Window)
		}
	}
	for _, name := range differing(exp, pair) {
		reason := idle(exp, pair, name)
		after, known := actsAfter(exp, pair, name)
		switch {
		case reason != "":
			why = append(why, fmt.Sprintf("%s, which does nothing there (%s)", name, reason))
		case known && after > lasts:
			why = append(why, fmt.Sprintf("%s, which needs %v to act, longer than a trial lasts", name, after))
		default:
			return nil
		}
	}
	return why
}

// actsAfter is how long a setting in which a pair differs needs until it can
// show: the time of whichever of the two acts sooner, among those that have it.
func actsAfter(exp *hakaru.Experiment, pair hakaru.Pair, name string) (soonest time.Duration, known bool) {
	shortest, some := exp.ActsAfter[name]
	if _, bare, qualified := strings.Cut(name, "."); !some && qualified {
		shortest, some = exp.ActsAfter[bare]
	}
	for _, variant := range []string{pair.Base, pair.Other} {
		if _, has := settings(exp, variant)[name]; !has {
			continue
		}
		v, _ := exp.Variant(variant)
		after, own := v.ActsAfter[name]
		if !own {
			after = shortest
		}
		if (own || some) && (!known || after < soonest) {
			soonest, known = after, true
		}
	}
	return soonest, known
}

// idle returns why a setting does nothing in whichever variant of a pair has it;
// empty where it may do something in one.
func idle(exp *hakaru.Experiment, pair hakaru.Pair, name string) (reason string) {
	for _, variant := range []string{pair.Base, pair.Other} {
		if _, has := settings(exp, variant)[name]; !has {
			continue
		}
		v, _ := exp.Variant(variant)
		if v.Idle[name] == "" {
			return ""
		}
		reason = v.Idle[name]
	}
	return reason
}

// differing names the settings whose values differ between the variants of a
// pair: "service.name" where the setting says whose it is.
func differing(exp *hakaru.Experiment, pair hakaru.Pair) []string {
	base, other := settings(exp, pair.Base), settings(exp, pair.Other)
	var names []string
	for _, from := range []map[string]string{base, other} {
		for name := range from {
			a, inBase := base[name]
			b, inOther := other[name]
			if inBase != inOther || a != b {
				names = append(names, name)
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// settings are the values in force under a variant; a null one is not there.
func settings(exp *hakaru.Experiment, variant string) map[string]string {
	values := map[string]string{}
	put := func(owner string, list []hakaru.Setting) {
		for _, x := range list {
			name, service := x.Name, owner
			if x.Service != "" {
				service = x.Service
			}
			if service != "" && len(exp.Services) > 1 {
				name = service + "." + name
			}
			if x.Value == nil {
				delete(values, name)
			} else {
				values[name] = *x.Value
			}
		}
	}
	for _, service := range exp.Services {
		put(service.Name, service.Base)
	}
	if v, ok := exp.Variant(variant); ok {
		put("", v.Settings)
	}
	return values
}
