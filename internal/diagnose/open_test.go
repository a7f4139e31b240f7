package diagnose

import (
	"strings"
	"testing"
	"time"

	"hakaru"
)

const ms = time.Millisecond

// loops is a trial with a closed loop and an open one of 1000/s after it, in which
// everything is well.
type loops struct {
	closed, open situation
	phase        hakaru.OpenPhase
	took, own    map[time.Duration]int // with and without what the generator was late by; own nil: as took
	goal         hakaru.Metric
	limits       []hakaru.Limit
	facts        OpenFacts
	search       *hakaru.CapacityReport
}

func bothLoops() loops {
	l := loops{closed: healthy(), open: healthy(), phase: hakaru.OpenPhase{Rate: 1000, Share: 0.7, Tally: &hakaru.Tally{Due: 2000, Queued: 3}}}
	l.took = map[time.Duration]int{5 * ms: 95, 50 * ms: 5}
	l.goal = hakaru.P99
	l.facts.Connections = 16
	return l
}

func (l loops) build(t *testing.T) Facts {
	first := l.closed.build()
	second := l.open.build().Result
	for i := range second.Buckets {
		second.Buckets[i].Latency = times(t, l.took)
	}
	o := l.phase
	o.Buckets, o.Counters, o.WarmUp, o.Window = second.Buckets, second.Counters, second.WarmUp, second.Window
	if o.Tally != nil {
		if l.own == nil {
			l.own = l.took
		}
		o.Tally.Own = times(t, l.own)
	}
	if o.Whole {
		first.Result.Buckets, first.Result.Counters, o.Buckets = second.Buckets, second.Counters, nil
	}
	if first.Result.Open = &o; l.search != nil {
		first.Result.Open, first.Result.Capacity = nil, l.search
	}
	first.Open, first.Goal, first.Limits = l.facts, l.goal, l.limits
	return first
}

func TestOpenVoid(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*loops)
		want   hakaru.VoidReason
		says   string
	}{
		{"healthy", func(*loops) {}, "", ""},
		{"the service died in the open loop", func(l *loops) {
			l.facts.Ended = []hakaru.Exit{{Service: "app", State: "signal: killed"}}
		}, hakaru.VoidDied, "in the open loop at 1000/s, service app ended"},
		{"the accept queue overflowed in it", func(l *loops) {
			l.open.counters[[2]string{hakaru.CounterListenOverflow, "app"}] = 5
		}, hakaru.VoidAcceptQueue, "in the open loop at 1000/s, the accept queue of service app"},
		{"and before it, that is said first", func(l *loops) {
			l.open.counters[[2]string{hakaru.CounterListenOverflow, "app"}] = 5
			l.closed.counters[[2]string{hakaru.CounterListenOverflow, "app"}] = 5
		}, hakaru.VoidAcceptQueue, "the accept queue of service app"},
		{"others took the CPU in it", func(l *loops) {
			l.open.counters[[2]string{hakaru.CounterCPU, hakaru.OfHost}] = 0.8
		}, hakaru.VoidOthers, "in the open loop"},
		{"wrong answers in it", func(l *loops) {
			l.open.kinds = map[string]uint64{"wrong_body": 2}
			l.facts.Samples = []hakaru.Sample{{Kind: hakaru.WrongBody, Text: "got oops"}}
		}, hakaru.VoidWrongAnswers, "8 of 2008 answers were wrong (8 wrong body); the first: got oops"},
		{"errors of the load host in it", func(l *loops) {
			l.open.kinds = map[string]uint64{"load_ports": 1}
		}, hakaru.VoidLoadErrors, "in the open loop"},
		{"a generator that fills its CPUs is not late by that", func(l *loops) {
			l.open.counters[[2]string{hakaru.CounterCPU, hakaru.OfGenerator}] = 0.5
			l.open.counters[[2]string{hakaru.CounterCPUs, hakaru.OfGenerator}] = 1
		}, "", ""},
		{"few requests under way at a time are what an open loop has", func(l *loops) {
			l.facts.Connections = 5000
		}, "", ""},
		{"late at the quantile that is compared", func(l *loops) {
			l.own = map[time.Duration]int{5 * ms: 95, 40 * ms: 5}
		}, hakaru.VoidGenerator, "99 % of the answers came within 50 ms of when their requests were due, and would have within 40 ms"},
		{"late at another one", func(l *loops) {
			l.own = map[time.Duration]int{4 * ms: 95, 50 * ms: 5}
		}, "", ""},
		{"late where no latency is asked for", func(l *loops) {
			l.goal, l.own = hakaru.Throughput, map[time.Duration]int{4 * ms: 95, 40 * ms: 5}
		}, "", ""},
		{"late, and within the limit all the same", func(l *loops) {
			l.goal, l.limits = hakaru.Throughput, []hakaru.Limit{{Metric: hakaru.P99, Bound: 0.1}}
			l.own = map[time.Duration]int{4 * ms: 95, 30 * ms: 5}
		}, "", ""},
		{"late, and above the limit without that", func(l *loops) {
			l.goal, l.limits = hakaru.Throughput, []hakaru.Limit{{Metric: hakaru.P99, Bound: 0.02}}
			l.own = map[time.Duration]int{4 * ms: 95, 30 * ms: 5}
		}, "", ""},
		{"above the limit for being late", func(l *loops) {
			l.goal, l.limits = hakaru.Throughput, []hakaru.Limit{{Metric: hakaru.P99, Bound: 0.04}}
			l.own = map[time.Duration]int{4 * ms: 95, 30 * ms: 5}
		}, hakaru.VoidGenerator, "within 50 ms"},
		{"all of the load is an open loop, and late", func(l *loops) {
			l.phase.Whole, l.own = true, map[time.Duration]int{ms: 100}
		}, hakaru.VoidGenerator, "the load generator itself sent late"},
		{"the capacity is that of the generator", func(l *loops) {
			l.search = &hakaru.CapacityReport{Low: 900, Reached: "it used 95 % of its CPUs", Steps: []hakaru.CapacityStep{{Holds: true}}}
		}, hakaru.VoidGenerator, "the capacity is at least 900/s, and what it is is not known: it used 95 % of its CPUs"},
		{"a service that sheds what is too much", func(l *loops) {
			l.closed.kinds = map[string]uint64{"wrong_status": 5, "server_error": 100}
			l.closed.counters[[2]string{hakaru.CounterListenOverflow, "app"}] = 5
			l.search = &hakaru.CapacityReport{Value: 1000, Low: 990, High: 1010, Steps: []hakaru.CapacityStep{{Holds: true}}}
		}, "", ""},
		{"answers that are none in a search", func(l *loops) {
			l.closed.kinds = map[string]uint64{"wrong_body": 5}
			l.search = &hakaru.CapacityReport{Value: 1000, Low: 990, High: 1010, Steps: []hakaru.CapacityStep{{Holds: true}}}
		}, hakaru.VoidWrongAnswers, "wrong body"},
		{"no time for any rate", func(l *loops) {
			l.search = &hakaru.CapacityReport{}
		}, hakaru.VoidGenerator, "before any rate was tried"},
		{"no rate counts", func(l *loops) {
			l.search = &hakaru.CapacityReport{Steps: []hakaru.CapacityStep{{Void: "it ran out of ports"}}}
		}, hakaru.VoidGenerator, "none of the 1 rates that were tried counts: it ran out of ports"},
		{"a generator that was at its limit at one of the rates", func(l *loops) {
			l.closed.counters[[2]string{hakaru.CounterCPU, hakaru.OfGenerator}] = 0.5
			l.closed.counters[[2]string{hakaru.CounterCPUs, hakaru.OfGenerator}] = 1
			l.search = &hakaru.CapacityReport{Value: 1000, Low: 990, High: 1010, Steps: []hakaru.CapacityStep{{Holds: true}}}
		}, "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := bothLoops()
			c.change(&l)
			void := Void(l.build(t))
			var reason hakaru.VoidReason
			evidence := ""
			if void != nil {
				reason, evidence = void.Reason, void.Evidence
				if void.Hint == "" {
					t.Error("no word on what to do about it")
				}
			}
			if reason != c.want || !strings.Contains(evidence, c.says) {
				t.Errorf("%s: %s\nwant %s with %q", reason, evidence, c.want, c.says)
			}
		})
	}
}

func TestOpenWarnings(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*loops)
		want   string // codes
		says   string
	}{
		{"healthy", func(*loops) {}, "", ""},
		{"the rate was too much", func(l *loops) {
			l.phase.Rate, l.phase.Tally.Due = 1500, 3000
			l.took = map[time.Duration]int{time.Second: 100}
		}, "rate_not_reached", "only 1000/s of the offered 1500/s were answered"},
		{"a stall at the end of the window", func(l *loops) {
			l.phase.Tally.Due = 2045
		}, "", ""},
		{"more is missing than a stall makes", func(l *loops) {
			l.phase.Tally.Due = 2200
		}, "rate_not_reached", ""},
		{"chance made fewer requests", func(l *loops) {
			l.phase.Rate, l.phase.Tally.Due = 1100, 2000
		}, "", ""},
		{"answers that were errors are answers", func(l *loops) {
			l.open.good, l.open.kinds = 400, map[string]uint64{"timeout": 100}
		}, "errors", "in the open loop at 1000/s, 400 of 2000 answers were errors"},
		{"many waited for a connection", func(l *loops) {
			l.phase.Tally.Queued = 500
		}, "queued", "25 % of the requests waited until one of 16 connections was free"},
		{"late at a quantile that is not judged", func(l *loops) {
			l.own = map[time.Duration]int{4 * ms: 95, 50 * ms: 5}
		}, "generator_late", "50 % of the answers came within 5 ms, and would have within 4 ms"},
		{"few answers for a quantile of 99 %", func(l *loops) {
			l.open.good, l.phase.Rate, l.phase.Tally = 100, 200, nil
		}, "few_answers", "only 400 answers"},
		{"others were busy in both", func(l *loops) {
			l.closed.counters[[2]string{hakaru.CounterCPU, hakaru.OfHost}] = 0.45
			l.open.counters[[2]string{hakaru.CounterCPU, hakaru.OfHost}] = 0.55
		}, "others_busy others_busy", "in the open loop at 1000/s, other programs took 30 %"},
		{"a search that ended early", func(l *loops) {
			l.search = &hakaru.CapacityReport{Value: 1000, Low: 800, High: 1100, Steps: []hakaru.CapacityStep{{Holds: true}}}
		}, "wide_capacity", "between 800/s and 1100/s"},
		{"nothing holds", func(l *loops) {
			l.search = &hakaru.CapacityReport{Steps: []hakaru.CapacityStep{{}}}
		}, "no_capacity", "no rate that was tried"},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := bothLoops()
			c.change(&l)
			f := l.build(t)
			var codes, messages []string
			for _, w := range Warnings(f) {
				codes, messages = append(codes, w.Code), append(messages, w.Message)
			}
			if got := strings.Join(codes, " "); got != c.want || !strings.Contains(strings.Join(messages, "\n"), c.says) {
				t.Errorf("%s: %s\nwant %s with %q", got, strings.Join(messages, "\n"), c.want, c.says)
			}
			if void := Void(f); void != nil {
				t.Errorf("void: %+v", void)
			}
		})
	}
}
