package capacity

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"hakaru"
	"hakaru/internal/condition"
	"hakaru/internal/latency"
	"hakaru/internal/unit"
)

const (
	// reached is how much of the offered rate must be answered.
	reached = 0.99
	// mistaken is the share of errors that holds where no condition says one.
	mistaken = 0.01
	// busy is the share of its CPUs from which the generator may be the bound.
	busy = 0.90
	// late is what the generator itself was late by, of the latency without it, from
	// which a step may fail by that.
	late = 0.10
)

// Valid says what keeps conditions from having a capacity. A lower bound does: it is
// held by high rates or by none.
func Valid(spec hakaru.CapacitySpec) error {
	if len(spec.Holds) == 0 {
		return fmt.Errorf("a capacity is the highest rate that holds conditions, and there are none: write such as p99<50ms")
	}
	for _, c := range spec.Holds {
		if c.AtLeast || c.Metric == hakaru.Throughput {
			return fmt.Errorf("%s: a capacity is the highest rate that holds upper bounds of latencies or errors", condition.String(c))
		}
	}
	if spec.Steps <= 0 || spec.Step <= 0 || spec.Settle < 0 || spec.From < 0 || math.IsNaN(spec.From) || math.IsInf(spec.From, 1) {
		return fmt.Errorf("%d steps of %v after %v from %v/s: want steps of some time and a rate of 0 or more", spec.Steps, spec.Step, spec.Settle, spec.From)
	}
	return nil
}

// Judge says of a rate that was offered for a time whether it holds: the conditions
// on the tally, at most 1 % of errors where they say nothing of errors, and 99 % of
// the requests that were due answered.
//
// A step that fails by what may be the generator's doing is void: where it used 90 %
// of its CPUs (spins says that it does so always), or sent so late that the latency
// which is too high is higher by a tenth than it would be, and would hold without
// that. One that holds in spite of that holds. A step with errors that the load host
// made is void.
func Judge(rate float64, holds []hakaru.Condition, t *hakaru.Tally, spins bool) hakaru.CapacityStep {
	step := hakaru.CapacityStep{Rate: rate, Latency: t.Latency, Values: map[string]float64{}}
	if t.Took <= 0 {
		step.Void = "it was not measured for any time"
		return step
	}
	if t.Good+t.Bad == 0 && t.Due == 0 && rate*t.Took.Seconds() < 1 {
		step.Void = "no request was due in it: longer steps have some"
		return step
	}
	step.Achieved = float64(t.Good) / t.Took.Seconds()
	step.Errors, _ = condition.Errors(t)
	if own := condition.Own(t); own > 0 {
		step.Void = fmt.Sprintf("%d requests went wrong by the load host's own doing: %s", own, kinds(t))
		return step
	}
	own, err := latency.Decode(t.Own)
	took, err2 := latency.Decode(t.Latency)
	if err != nil || err2 != nil {
		step.Void = "its latencies cannot be read"
		return step
	}

	outcomes := condition.Check(holds, t)
	for _, o := range outcomes {
		if !math.IsNaN(o.Value) {
			step.Values[condition.String(o.Condition)] = o.Value
		}
	}
	if !slices.ContainsFunc(holds, func(c hakaru.Condition) bool { return c.Metric == hakaru.Errors }) {
		outcomes = append(outcomes, condition.Check([]hakaru.Condition{{Metric: hakaru.Errors, Bound: mistaken}}, t)...)
	}
	step.Holds, step.Why = condition.All(outcomes)
	// What the generator may have done, for each thing that does not hold.
	lateness := func(q float64) (seconds float64, much bool) {
		if own.Count() == 0 {
			return 0, false
		}
		l := took.Quantile(q) - own.Quantile(q)
		return l.Seconds(), float64(l) > late*float64(own.Quantile(q))
	}
	itself := true
	for _, o := range outcomes {
		if o.Holds {
			continue
		}
		l, much := lateness(o.Condition.Quantile)
		itself = itself && o.Condition.Metric != hakaru.Errors && much && o.Value-l <= o.Condition.Bound
	}
	if due, answered := due(rate, t), float64(t.Good+t.Bad); answered < reached*due-edges(rate, t) {
		words := fmt.Sprintf("%s of %s were answered", unit.Rate(answered/t.Took.Seconds()), unit.Rate(due/t.Took.Seconds()))
		if !step.Holds {
			words = step.Why + "; " + words
		}
		step.Holds, step.Why = false, words
		_, much := lateness(0.5)
		itself = itself && much
	}
	if step.Holds {
		return step
	}
	share, cpus := used(t)
	switch mistakes := step.Errors > mistaken; {
	case mistakes:
	case share >= busy && !spins:
		step.Void = fmt.Sprintf("the load generator used %s of its %s", unit.Share(share), cpus)
	case itself:
		l, _ := lateness(0.99)
		step.Void = fmt.Sprintf("the load generator itself sent %s late at p99", unit.Seconds(l))
	}
	return step
}

// due is how many requests were due in the step's measured time.
func due(rate float64, t *hakaru.Tally) float64 {
	if t.Due > 0 {
		return float64(t.Due)
	}
	return rate * t.Took.Seconds()
}

// edges is how many fewer answers than were due say nothing. At either end of the
// step rate × service time requests are out (Little), in a number that differs by
// its root where they are independent of each other; twice that is allowed, and two
// for counting.
func edges(rate float64, t *hakaru.Tally) float64 {
	service, err := latency.Decode(t.Service)
	if err != nil {
		return 2
	}
	return 2 + 2*math.Sqrt(rate*service.Mean().Seconds())
}

// used is how much of the CPUs that it could use the generator used. An engine with
// threads of its own uses no more CPUs than threads.
func used(t *hakaru.Tally) (share float64, words string) {
	cpus, what := t.CPUs, "CPUs"
	if t.Engine == "epoll" && t.Threads > 0 && t.Threads < cpus {
		cpus, what = t.Threads, "threads"
	}
	if cpus <= 0 || t.Took <= 0 {
		return 0, ""
	}
	if cpus == 1 {
		what = strings.TrimSuffix(what, "s")
	}
	return t.CPU / float64(cpus) / t.Took.Seconds(), fmt.Sprintf("%d %s", cpus, what)
}

// kinds names what went wrong by the load host's own doing.
func kinds(t *hakaru.Tally) string {
	var names []string
	for kind, n := range t.Kinds {
		if hakaru.ErrorKind(kind).Load() && n > 0 {
			names = append(names, kind)
		}
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}
