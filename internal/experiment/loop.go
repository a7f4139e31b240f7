package experiment

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"hakaru"
	"hakaru/internal/grammar"
	"hakaru/internal/mistake"
	"hakaru/internal/render"
	"hakaru/internal/unit"
)

// Which loops a trial has (METHOD.md, 0): a closed one answers for throughput and
// CPU time, an open one for latency, and a capacity is searched for by several.

func latency(m hakaru.Metric) bool { return m == hakaru.P50 || m == hakaru.P99 }

// buildLoop settles whether there is an open loop, from the goal and the limits,
// and says where these and the load do not go together.
func (b *builder) buildLoop() {
	h := b.exp.Load.HTTP
	judged := slices.ContainsFunc(b.exp.Limits, func(l hakaru.Limit) bool { return latency(l.Metric) })
	if b.exp.Goal == hakaru.Capacity {
		b.checkCapacity(judged)
		return
	}
	if b.doc.Limits.Has("capacity") {
		fix := "write goal: capacity; or a rate: 1000/s in load.http, so that the limits say whether they hold there"
		b.Mistake(b.limitAt(hakaru.Capacity), "no-figure", "limits.capacity: a search for the capacity is all of the load of a trial, and it is made where it is the goal", fix)
	}
	if p := b.exp.Load.Program; p != nil && latency(b.exp.Goal) && grammar.Runs(p.Name) && b.notTold(b.exp.Goal) == "" {
		b.Mistake(b.doc.Goal.At, "closed-loop", fmt.Sprintf("goal: %s: %s sends a closed loop, in which a slow service slows its own load down, so that its latencies are no evidence", b.exp.Goal, p.Name), "use load.http")
	}
	if h == nil {
		return
	}
	if h.Rate == "" && (judged || latency(b.exp.Goal)) {
		h.Rate = unit.Value(render.DefaultShare*100, "1") + "%"
	}
	if h.Rate != "" {
		return
	}
	for _, key := range []string{"arrival", "precise"} {
		if b.written("load.http." + key) {
			b.Mistake(b.loadAt("load.http."+key), "not-used", "load.http."+key+" is about an open loop, and this one is closed", "write rate: 2000/s, or rate: 70% for an open loop after the closed one")
		}
	}
}

// checkCapacity looks whether a capacity can be searched for.
func (b *builder) checkCapacity(judged bool) {
	at := b.doc.Goal.At
	if p := b.exp.Load.Program; p != nil {
		if grammar.Runs(p.Name) {
			b.Mistake(at, "no-figure", "goal: capacity: hakaru sends the rates that are tried itself, and the load is "+p.Name, "use load.http")
		}
		return
	}
	if !judged {
		b.Mistake(at, "no-condition", "goal: capacity is the highest rate that holds the limits, and no latency has one", "write limits: {p99: 50ms}")
	}
	for i, name := range b.doc.Limits.Keys {
		place := b.doc.Limits.Places[i]
		switch m := hakaru.Metric(name); m {
		case hakaru.Throughput, hakaru.CPUPerRequest:
			b.Mistake(place, "no-figure", fmt.Sprintf("limits.%s: with goal: capacity many rates are tried, and over all of them there is no %s", name, name), "write limits: {capacity: …}, or another goal")
		case hakaru.P50, hakaru.P99, hakaru.Errors:
			if slices.ContainsFunc(b.exp.Limits, func(l hakaru.Limit) bool { return l.Metric == m && l.AtLeast }) {
				b.Mistake(b.doc.Limits.Values[i].At, "bad-limit", fmt.Sprintf("limits.%s is a lower bound, and a capacity is the highest rate that holds it: none would be the highest", name), "")
			}
		}
	}
	if b.written("load.http.rate") {
		b.Mistake(b.loadAt("load.http.rate"), "not-used", "load.http.rate: with goal: capacity it is the rate that is searched for", "leave it out")
	}
}

// limitAt is where a limit was written.
func (b *builder) limitAt(m hakaru.Metric) mistake.Place {
	if i := slices.Index(b.doc.Limits.Keys, string(m)); i >= 0 {
		return b.doc.Limits.Places[i]
	}
	return b.at("limits")
}

// openRate tells the loops of loads apart: the written rate of the open one, or its
// share of the capacity, and the law by which its requests come.
type openRate struct {
	rate, share float64
	law         hakaru.ArrivalLaw
}

func rate(l hakaru.LoadSpec) openRate {
	var r openRate
	if l.HTTP != nil && l.HTTP.Arrival != nil {
		r.rate, r.law = l.HTTP.Arrival.Rate, l.HTTP.Arrival.Law
	}
	if l.Open != nil {
		r.share, r.law = l.Open.Share, l.Open.Arrival.Law
	}
	return r
}

const (
	// calibrateOthers is how many trials of the baseline settle the rate in each
	// stratum but the first, whose trials show the noise as well.
	calibrateOthers = 3
	// betweenLoops is what lies between the closed and the open loop of a trial.
	betweenLoops = 500 * time.Millisecond
)

// buildOpen settles which strata have an open loop whose rate calibration is to
// show, and what that costs.
func (b *builder) buildOpen() {
	var open hakaru.OpenDesign
	d := &b.exp.Design
	for i, load := range b.loads {
		if load.HTTP != nil && load.HTTP.Arrival != nil {
			if b.exp.Goal == hakaru.Throughput {
				b.fixedThroughput()
				return
			}
			if b.doc.Limits.Has(string(hakaru.Throughput)) {
				b.Mistake(b.limitAt(hakaru.Throughput), "fixed-rate", "limits.throughput: load.http is an open loop at "+b.givenRate()+" for every variant, and a fixed rate measures no throughput",
					"leave it out; or write rate: 70%, an open loop at that share of the capacity after the closed one")
				return
			}
		}
		if load.Open == nil {
			continue
		}
		share := hakaru.OpenShare{Share: load.Open.Share}
		if at := b.exp.Strata[i]; len(at) > 0 {
			share.At = at
		}
		open.Shares = append(open.Shares, share)
		open.Takes = max(open.Takes, load.Open.WarmUp+load.Open.Window+betweenLoops)
		if i > 0 {
			open.Calibrate = min(calibrateOthers, d.Calibrate)
		}
	}
	if open.Shares == nil {
		return
	}
	if d.Calibrate == 0 {
		at := b.at("design.calibrate")
		if b.opt.Calibrate != nil {
			at = mistake.Place{Flag: "--calibrate"}
		}
		text := b.exp.Load.HTTP.Rate
		why := "the rate of the open loop"
		if !b.written("load.http.rate") {
			why += ", by which latencies are judged,"
		}
		b.Mistake(at, "no-calibration", fmt.Sprintf("%s is %s of what the trials of the calibration show of the baseline, and there are none", why, text), "write a rate: 2000/s in load.http, or leave calibrate: 0 out")
		return
	}
	d.Open = &open
}

// fixedThroughput says that a rate that is given is no throughput.
func (b *builder) fixedThroughput() {
	at, what := b.loadAt("load.http.rate"), "goal: throughput"
	if b.doc.Goal.Set {
		at = b.doc.Goal.At
	} else {
		what += ", which it is where none is written"
	}
	b.Mistake(at, "fixed-rate", fmt.Sprintf("%s: load.http is an open loop at %s for every variant, and a fixed rate measures no throughput", what, b.givenRate()),
		"choose goal: cpu_per_request or p99; or write rate: 70%, an open loop at that share of the capacity after the closed one")
}

// givenRate is the rate as it was written, in a sentence.
func (b *builder) givenRate() string {
	if text := b.exp.Load.HTTP.Rate; !strings.Contains(text, "{") {
		return text
	}
	return "its rate"
}
