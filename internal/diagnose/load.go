package diagnose

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"hakaru"
	"hakaru/internal/latency"
	"hakaru/internal/unit"
)

// The thresholds of a load that is looked at by itself.
const (
	partsApart    = 1.10 // p99 from when due over p99 from the send
	littleSlack   = 0.90 // connections that are busy, of all: below, the generator was late
	delayedFirst  = 38 * time.Millisecond
	delayedLast   = 45 * time.Millisecond
	delayedShare  = 0.005 // of the answers
	delayedFew    = 20
	delayedFactor = 5 // over what lies on both sides
)

// LoadFacts is what is known of a load without anything else.
type LoadFacts struct {
	Tally       *hakaru.Tally
	Connections int
	Open        bool   // requests are due by a law
	Precise     bool   // it spins on purpose: that it uses its CPUs says nothing
	Address     string // as in the URL: a name and a port
}

// Load lists what there is to doubt about a load by itself: no counter of the
// service or of its machine is asked for. The first explains the most.
func Load(f LoadFacts) ([]hakaru.Warning, error) {
	v := loadView{LoadFacts: f}
	for _, part := range []struct {
		what string
		from []byte
		to   **latency.Histogram
	}{
		{"latency", f.Tally.Latency, &v.latency}, {"service time", f.Tally.Service, &v.service},
		{"connect times", f.Tally.Connect, &v.connect}, {"send lag", f.Tally.Lag, &v.lag}, {"latencies without it", f.Tally.Own, &v.own},
	} {
		h, err := latency.Decode(part.from)
		if err != nil {
			return nil, fmt.Errorf("%s of a load: %w", part.what, err)
		}
		*part.to = h
	}
	var warnings []hakaru.Warning
	warn := func(code, format string, args ...any) {
		warnings = append(warnings, hakaru.Warning{Code: code, Message: fmt.Sprintf(format, args...)})
	}
	v.ownErrors(warn)
	v.ownCPU(warn)
	v.ownLag(warn)
	v.lateSends(warn)
	v.lostSyns(warn)
	v.delayedAcks(warn)
	v.queueing(warn)
	v.redirected(warn)
	if all := f.Tally.Resolved; len(all) > 1 {
		warn("several_addresses", "the name of %s stands for %s, and the load went to %s only: name another one with --connect-to, or choose with -4 or -6",
			f.Address, and(all), f.Tally.Address)
	}
	if n := f.Tally.Good; n > 0 && n < fewAnswers {
		warn("few_answers", "only %d good answers: one more or less is %s, and there is no p99 of so few; send for longer", n, unit.Share(1/float64(n)))
	}
	return warnings, nil
}

type loadView struct {
	LoadFacts
	latency, service, connect, lag, own *latency.Histogram
}

type warnFunc func(code, format string, args ...any)

// ownErrors are those that this machine made.
func (v *loadView) ownErrors(warn warnFunc) {
	own := map[string]uint64{}
	for kind, n := range v.Tally.Kinds {
		if hakaru.ErrorKind(kind).Load() {
			own[kind] = n
		}
	}
	if len(own) == 0 {
		return
	}
	what := map[hakaru.ErrorKind]string{
		hakaru.LoadPorts: "it ran out of local ports: keep connections alive, give it several --source addresses, or widen net.ipv4.ip_local_port_range",
		hakaru.LoadFiles: "it ran out of file descriptors: use fewer connections, or raise the limit (ulimit -n)",
		hakaru.LoadOther: "the samples of them say what it lacked",
	}
	var words []string
	for _, kind := range slices.Sorted(maps.Keys(own)) {
		words = append(words, what[hakaru.ErrorKind(kind)])
	}
	warn("load_errors", "%s are this machine's doing and not the service's; %s", kinds(own), strings.Join(words, "; "))
}

// ownCPU is whether the generator itself was what could not go faster.
func (v *loadView) ownCPU(warn warnFunc) {
	t := v.Tally
	cpus, of := t.CPUs, fmt.Sprintf("its %d CPUs", t.CPUs)
	next := "give it more CPUs, or send from another machine"
	if t.CPUs == 1 {
		of = "its CPU"
	}
	// The goroutines go wherever there is a CPU; the other engine's threads are all
	// that it has.
	if t.Engine == "epoll" && t.Threads < t.CPUs {
		cpus, of = t.Threads, fmt.Sprintf("what its %d threads can use", t.Threads)
		if t.Threads == 1 {
			of = "what its thread can use"
		}
		next = fmt.Sprintf("send from more threads: --threads %d", t.CPUs)
	}
	if cpus == 0 || t.Took <= 0 || v.Precise {
		return
	}
	all := float64(cpus) * t.Took.Seconds()
	used, share := t.CPU/all, (t.CPU+t.Waited)/all
	switch {
	case used >= generatorNear:
		warn("generator_busy", "the generator used %s of %s: the figures may be its own limit and not the service's; %s", unit.Share(min(used, 1)), of, next)
	case share >= generatorNear && t.Took >= time.Second:
		// All threads of the process wait, so that the time is no share of anything.
		warn("generator_busy", "the generator used %s of %s and waited for a CPU much of the rest: other programs had them, the service itself where it runs here; give it CPUs of its own, or send from another machine",
			unit.Share(used), of)
	}
}

// ownLag is whether the generator's own lateness is in an open loop's latencies:
// whether they would be less by a tenth had each request been sent in time.
func (v *loadView) ownLag(warn warnFunc) {
	if !v.Open || v.latency.Count() < fewAnswers || v.own.Count() == 0 {
		return
	}
	for _, q := range []float64{0.50, 0.99} {
		took, own := v.latency.Quantile(q), v.own.Quantile(q)
		if float64(took) <= (1+lateVoid)*float64(own) {
			continue
		}
		next := "a lower rate, more CPUs or another machine makes it less"
		if !v.Precise {
			next = "--precise waits on the CPU and makes it less"
		}
		warn("generator_late", "the generator was late by itself: %s of the answers came within %s of when they were due, and would have within %s had it sent in time; %s",
			unit.Share(q), unit.Duration(took), unit.Duration(own), next)
		return
	}
}

// lateSends is Little's law (L = λ·W) in a closed loop, in which every connection
// has a request under way at all times.
func (v *loadView) lateSends(warn warnFunc) {
	t := v.Tally
	if v.Open || t.Bad > 0 || t.Good < fewAnswers || t.Took < time.Second || v.Connections == 0 {
		return
	}
	busy := float64(t.Good) / t.Took.Seconds() * v.latency.Mean().Seconds() / float64(v.Connections)
	if busy < littleSlack {
		warn("generator_slow", "only %s of the connections had a request under way at a time (Little's law): the generator was late in sending, and throughput is lower by that", unit.Share(busy))
	}
}

// lostSyns sees connection attempts that were dropped: the kernel tries again
// after whole seconds (after 1, 3 and 7 s; where net.ipv4.tcp_syn_linear_timeouts
// is set, after each of the first few seconds), so that the connects of a full
// accept queue take just over one.
func (v *loadView) lostSyns(warn warnFunc) {
	const before, after = 20 * time.Millisecond, 250 * time.Millisecond
	slow := v.connect.CountBetween(time.Second-before, time.Hour)
	if slow < 2 || v.connect.Quantile(0.5) > time.Second/2 {
		return
	}
	var near uint64
	for second := time.Second; second <= 7*time.Second; second += time.Second {
		near += v.connect.CountBetween(second-before, second+after)
	}
	if float64(near) < 0.8*float64(slow) {
		return
	}
	warn("lost_syns", "%d of %d connections took just over a whole second to be made (the longest %s), which is TCP trying again: the service's accept queue was full; raise its listen backlog and net.core.somaxconn, or open fewer connections at once",
		near, v.connect.Count(), unit.Duration(v.connect.Max()))
}

// delayedAcks sees answers that came in two pieces, of which the second waited for
// the first one's acknowledgement, which the receiver puts off for 40 ms: Nagle's
// algorithm at the service and delayed acknowledgement here.
func (v *loadView) delayedAcks(warn warnFunc) {
	all := v.service.Count()
	in := v.service.CountBetween(delayedFirst, delayedLast)
	beside := v.service.CountBetween(20*time.Millisecond, delayedFirst) + v.service.CountBetween(delayedLast, 80*time.Millisecond)
	if in < delayedFew || float64(in) < delayedShare*float64(all) || in < delayedFactor*beside {
		return
	}
	warn("delayed_ack", "%s of the answers took between %s and %s and hardly any a little less or more: either the service waits so long, or it writes an answer in two pieces and lacks TCP_NODELAY, so that the second waits for a delayed acknowledgement",
		unit.Share(float64(in)/float64(all)), unit.Duration(delayedFirst), unit.Duration(delayedLast))
}

// queueing is where latency from when due and from the send part.
func (v *loadView) queueing(warn warnFunc) {
	if !v.Open || v.latency.Count() == 0 || v.service.Count() == 0 {
		return
	}
	total, service := v.latency.Quantile(0.99), v.service.Quantile(0.99)
	if float64(total) <= partsApart*float64(service) || v.Tally.Queued == 0 {
		return // without a wait for a connection it is the send lag
	}
	sent := v.lag.Count()
	share := ""
	if sent > 0 {
		share = fmt.Sprintf(" (%s of them)", unit.Share(float64(v.Tally.Queued)/float64(sent)))
	}
	warn("queued", "%d requests%s were due when all %d connections were in use, and waited: p99 is %s from when due and %s from the send. The first is what a client without a fixed number of connections sees; with more connections (-c) fewer wait here and more in the service",
		v.Tally.Queued, share, v.Connections, unit.Duration(total), unit.Duration(service))
}

// redirected is for answers that only say where the page is.
func (v *loadView) redirected(warn warnFunc) {
	if v.Tally.Kinds[string(hakaru.WrongStatus)] == 0 {
		return
	}
	for _, status := range slices.Sorted(maps.Keys(v.Tally.Statuses)) {
		if status/100 == 3 && status != 304 {
			warn("redirect", "the service answers with a redirect (%d), which is not followed: load the URL that it leads to, or say --status %d if the redirect is what is to be measured", status, status)
			return
		}
	}
}

func and(words []string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:len(words)-1], ", ") + " and " + words[len(words)-1]
}
