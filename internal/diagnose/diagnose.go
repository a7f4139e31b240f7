// Package diagnose reads the counters of one trial and says whether the trial
// counts, and what there is to doubt about it.
//
// It takes a Result with its buckets and counters, and what the two hosts saw
// besides; it gives a Void with the evidence in one sentence, or none, and
// Warnings. It touches no machine: every rule can be tested with figures. (The
// naming of bottlenecks from the same figures will live here too.)
//
// Rules are asked in order of how much they explain: a service that died also
// gave wrong answers, a full accept queue also made the generator wait, and where
// others had the CPU a load program may fail for it. A rule that needs a counter
// which was not read says nothing: what was not watched is not 0.
package diagnose

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"hakaru"
	"hakaru/internal/measure"
	"hakaru/internal/unit"
)

// The thresholds of METHOD §0 and §6.
const (
	generatorLimited = 0.90 // of its CPUs, running or waiting to run
	generatorNear    = 0.80
	serviceAtLimit   = 0.90 // of its CPUs, or of one CPU by its busiest thread
	othersVoid       = 0.50 // of the machine's CPUs
	othersWarn       = 0.10
	fewAnswers       = 100  // one answer is more than 1 %
	agentWarn        = 0.05 // of the machine's CPUs by the agent of the service host
	sharedWarn       = 0.80 // of the machine by service and generator together
	throttledVoid    = 0.01 // of the window, summed over the service's CPUs
	stolenWarn       = 0.05 // of the machine
	cutWarn          = 0.01 // requests that a program was cut in, of its answers
	lateVoid         = 0.10 // the generator's own lag in an open loop, of the latency there
	queuedWarn       = 0.01 // of its requests, which waited for a connection
	answersForP99    = 1000 // ten of them are above it
)

// Facts is what is known of one trial.
type Facts struct {
	Result      *hakaru.Result
	Goal        hakaru.Metric
	Limits      []hakaru.Limit
	Connections int
	Samples     []hakaru.Sample     // the first bad answers
	Ended       []hakaru.Exit       // units that died or were replaced
	Shared      bool                // generator and service may use the same CPUs
	Program     *hakaru.ProgramSpec // that sent the load; nil: hakaru did
	Services    []string            // that took part
	Open        OpenFacts           // of the open loop after the closed one, where there was one
}

// OpenFacts is what is known of the second load of a trial.
type OpenFacts struct {
	Connections int
	Samples     []hakaru.Sample
	Ended       []hakaru.Exit
}

// Void says why the trial does not count, or nil.
func Void(f Facts) *hakaru.Void {
	for _, v := range views(f) {
		for _, rule := range v.rules() {
			if void := rule(v); void != nil {
				if v.after {
					void.Evidence = v.during() + ", " + void.Evidence
				}
				return void
			}
		}
	}
	return nil
}

// rules are those that say something about a load, in the order in which they are
// asked.
func (v view) rules() []func(view) *hakaru.Void {
	first := []func(view) *hakaru.Void{died, proofFailed, loadErrors, wrongAnswers, unwatched, acceptQueue, throttled, others}
	switch {
	case v.Result.Capacity != nil:
		// Rates that are too much are part of the search: statuses by which a service
		// sheds them and a full accept queue are why a step does not hold. Its steps
		// judge the generator, too.
		return []func(view) *hakaru.Void{died, proofFailed, otherAnswers, unwatched, throttled, others, nothingCompleted, searched}
	case v.open != nil:
		return append(first, nothingCompleted, late)
	}
	return append(first, programFailed, nothingCompleted, generator)
}

// Warnings lists what there is to doubt about a trial, void or not.
func Warnings(f Facts) []hakaru.Warning {
	var warnings []hakaru.Warning
	for _, v := range views(f) {
		v.doubts(func(code, format string, args ...any) {
			message := fmt.Sprintf(format, args...)
			if v.after {
				message = v.during() + ", " + message
			}
			warnings = append(warnings, hakaru.Warning{Code: code, Message: message})
		})
	}
	return warnings
}

// doubts warns of what is to doubt about one load.
func (v view) doubts(warn func(code, format string, args ...any)) {
	// In an open loop the lag says how late the generator was, and a precise one
	// waits on its CPU.
	if share, _ := v.generatorShare(); share >= generatorNear && v.closed() {
		unknown := ""
		if !v.watched {
			unknown = ", and whether the service was at its own is not known"
		}
		warn("generator_busy", "%s was %s busy: near its own limit%s", v.busy(share), unit.Share(share), unknown)
	}
	if share := v.othersShare(); share > othersWarn {
		warn("others_busy", "other programs took %s of the machine's CPUs", unit.Share(share))
	}
	if share := v.machineShare(v.cpu(hakaru.OfAgent)); share > agentWarn {
		warn("agent_busy", "hakaru's agent took %s of the machine's CPUs, most of it to read what the service writes: let it write less, or to a file", unit.Share(share))
	}
	if v.good > 0 && v.good < fewAnswers {
		// They are counted whole: with so few, two variants can differ by one
		// answer in every trial, which no spread between trials tells of.
		warn("few_answers", "only %d answers came in the measured window, so that one more or less is %s: measure longer", v.good, unit.Share(1/float64(v.good)))
	}
	if v.Shared {
		if share := v.machineShare(v.service().cpu + v.cpu(hakaru.OfGenerator)); share > sharedWarn {
			warn("shared_cpus", "service and load generator shared CPUs that were %s busy with them: they slowed each other down (pin them apart with hosts: or measure CPU time per request)", unit.Share(share))
		}
	}
	if share := v.machineShare(v.total(hakaru.CounterStolen, hakaru.OfHost)); share > stolenWarn {
		warn("stolen_cpu", "the hypervisor took %s of the CPU time", unit.Share(share))
	}
	if bad := v.serviceErrors(); bad > 0 && v.Result.Capacity == nil {
		which := ""
		if len(v.kinds) > 0 {
			which = " (" + kinds(v.kinds) + ")"
		}
		warn("errors", "%d of %d answers were errors of the service%s", bad, bad+v.good, which)
	}
	v.programDoubts(warn)
	if little, ok := v.little(); ok && little < 0.9 {
		warn("generator_slow", "only %s of the connections had a request under way at a time (Little's law): the generator was late in sending", unit.Share(little))
	}
	v.openDoubts(warn)
	v.searchDoubts(warn)
}

// view is Facts with the sums over the measured window that rules ask for.
type view struct {
	Facts
	seconds  float64 // of the window, in whole buckets
	sending  float64 // of it, in which requests were sent
	good     uint64
	unnamed  uint64 // bad ones of no kind, as a load program of one's own counts them
	kinds    map[hakaru.ErrorKind]uint64
	services []string
	watched  bool    // the CPU time of every service was read
	cpus     float64 // of the machine
	open     *hakaru.OpenPhase
	after    bool // a closed one
}

// closed reports whether the load was a closed loop at one load.
func (v view) closed() bool { return v.open == nil && v.Result.Capacity == nil }

// views are the loads of a trial: the first, and the open loop after it.
func views(f Facts) []view {
	first := see(f)
	o := f.Result.Open
	if o == nil {
		return []view{first}
	}
	if o.Whole {
		first.open = o
		return []view{first}
	}
	r := *f.Result
	r.Buckets, r.Counters, r.WarmUp, r.Window, r.Totals = o.Buckets, o.Counters, o.WarmUp, o.Window, nil
	f.Result, f.Connections, f.Samples, f.Ended = &r, f.Open.Connections, f.Open.Samples, f.Open.Ended
	second := see(f)
	second.open, second.after = o, true
	return []view{first, second}
}

func see(f Facts) view {
	v := view{Facts: f, kinds: map[hakaru.ErrorKind]uint64{}}
	for _, b := range measure.Cut(f.Result.Buckets, f.Result.WarmUp, f.Result.Window) {
		v.seconds += hakaru.BucketWidth.Seconds()
		v.good += b.Good
		for kind, n := range b.Kinds {
			v.kinds[hakaru.ErrorKind(kind)] += n
		}
	}
	v.sending = v.seconds
	if t := f.Result.Totals; t != nil {
		v.good, v.unnamed = t.Good, t.Bad
		for kind, n := range t.Kinds {
			v.kinds[hakaru.ErrorKind(kind)] += n
			v.unnamed -= min(n, v.unnamed)
		}
		// A run of few requests is over before its last bucket is.
		if took := t.Took.Seconds(); took > 0 {
			v.sending = min(v.sending, took)
		}
	}
	for _, c := range f.Result.Counters {
		if c.Name == hakaru.CounterCPU && !slices.Contains([]string{hakaru.OfGenerator, hakaru.OfHost, hakaru.OfAgent}, c.Of) {
			v.services = append(v.services, c.Of)
		}
	}
	v.watched = !slices.ContainsFunc(f.Services, func(s string) bool { return !slices.Contains(v.services, s) })
	v.cpus = v.total(hakaru.CounterCPUs, hakaru.OfHost)
	return v
}

// total is the increase of a counter over the window, or a gauge's last value;
// 0 where it was not counted.
func (v view) total(name, of string) float64 {
	read := measure.Sum
	for _, c := range v.Result.Counters {
		if c.Name == name && c.Of == of && c.Gauge {
			read = measure.Last
		}
	}
	value, _ := read(v.Result.Buckets, v.Result.Counters, v.Result.WarmUp, v.Result.Window, name, of)
	return value
}

// whole is the increase of a counter from the first bucket on, warm-up included.
func (v view) whole(name, of string) (float64, bool) {
	return measure.Sum(v.Result.Buckets, v.Result.Counters, 0, v.Result.WarmUp+v.Result.Window, name, of)
}

func (v view) cpu(of string) float64 { return v.total(hakaru.CounterCPU, of) }

// load is how much CPU somebody wanted: what they used and what they waited for.
type load struct{ cpu, wait, hot float64 }

func (v view) service() load {
	var l load
	for _, s := range v.services {
		l.cpu += v.cpu(s)
		l.wait += v.total(hakaru.CounterWait, s)
		l.hot = max(l.hot, v.total(hakaru.CounterHotThread, s))
	}
	return l
}

// machineShare is CPU seconds as a share of the machine.
func (v view) machineShare(cpuSeconds float64) float64 {
	if v.cpus == 0 || v.seconds == 0 {
		return 0
	}
	return cpuSeconds / (v.cpus * v.seconds)
}

// othersShare is what is neither the services' nor hakaru's: its agents are
// taken off; the conductor, which handles two small messages every half second,
// is not measured and in here. 0 where a service was not watched, which cannot be
// taken off.
func (v view) othersShare() float64 {
	if !v.watched {
		return 0
	}
	return v.machineShare(v.cpu(hakaru.OfHost) - v.service().cpu - v.cpu(hakaru.OfGenerator) - v.cpu(hakaru.OfAgent))
}

// generatorShare is the share of its CPUs in which the generator ran or wanted
// to: a generator that another program keeps from the CPU is as limited as one
// that fills it. waited is the part of it that it spent waiting. Of a program
// whose busiest thread filled more of one CPU, that is the share: a command with
// one thread is at its limit, however many CPUs it may use. (hakaru's own load
// has no such thread: Go moves its work from one to another.)
func (v view) generatorShare() (share, waited float64) {
	cpus, sent := v.total(hakaru.CounterCPUs, hakaru.OfGenerator), v.sentBuckets().Seconds()
	if cpus == 0 || sent == 0 { // of less than a bucket, start and end of a program are most
		return 0, 0
	}
	used, wait := v.whileSending(hakaru.CounterCPU), v.whileSending(hakaru.CounterWait)
	share, waited = (used+wait)/(cpus*sent), wait/(cpus*sent)
	if hot := v.hotThread(); hot > share {
		share = hot
	}
	return min(share, 1), min(waited, 1)
}

// serviceLimited reports whether the service itself was at a limit of the CPU:
// it used up its CPUs, or a single thread filled one, or it wanted to and what
// it lacked was in use by others.
//
// Waiting is summed over threads: when a burst of requests wakes many of them
// they all wait for the first, on a CPU that is idle soon after. So waiting
// counts only where generator and service share CPUs, and all were busy.
func (v view) serviceLimited() bool {
	l := v.service()
	cpus := v.cpus
	for _, s := range v.services {
		if own := v.total(hakaru.CounterCPUs, s); own > 0 {
			cpus = min(cpus, own)
		}
	}
	if cpus == 0 || v.sending == 0 {
		return false
	}
	full := serviceAtLimit * cpus * v.sending
	return l.cpu >= full || l.hot >= serviceAtLimit*v.sending ||
		v.Shared && l.cpu+l.wait >= full && v.machineShare(v.cpu(hakaru.OfHost)) >= serviceAtLimit
}

func (v view) serviceErrors() uint64 {
	n := v.unnamed
	for kind, count := range v.kinds {
		if !kind.Load() && !kind.Wrong() {
			n += count
		}
	}
	return n
}

// little is the mean number of requests under way, over the connections
// (Little's law, L = λ·W); 1 in a closed loop that never waits to send.
func (v view) little() (float64, bool) {
	if !v.closed() {
		return 0, false
	}
	mean, ok := measure.MeanLatency(v.Result.Buckets, v.Result.WarmUp, v.Result.Window)
	if !ok || v.Connections == 0 || v.seconds == 0 || v.serviceErrors() > 0 {
		return 0, false
	}
	return float64(v.good) / v.seconds * mean.Seconds() / float64(v.Connections), true
}

func died(v view) *hakaru.Void {
	if len(v.Ended) == 0 {
		return nil
	}
	parts := make([]string, len(v.Ended))
	for i, e := range v.Ended {
		parts[i] = fmt.Sprintf("%s ended during the trial (%s)", hakaru.TheService(e.Service), e.State)
	}
	hint := ""
	if v.Result.Run != "" { // of hakaru try, they follow
		hint = fmt.Sprintf("look at its last lines: hakaru show %s %d", v.Result.Run, v.Result.Seq)
	}
	return &hakaru.Void{Reason: hakaru.VoidDied, Evidence: strings.Join(parts, "; "), Hint: hint}
}

func (v view) firstSample(match func(hakaru.ErrorKind) bool) string {
	for _, s := range v.Samples {
		if match(s.Kind) {
			return "; the first: " + s.Text
		}
	}
	return ""
}

func (v view) count(match func(hakaru.ErrorKind) bool) (n uint64, which map[hakaru.ErrorKind]uint64) {
	which = map[hakaru.ErrorKind]uint64{}
	for kind, count := range v.kinds {
		if match(kind) {
			n += count
			which[kind] += count
		}
	}
	return n, which
}

func loadErrors(v view) *hakaru.Void {
	n, which := v.count(hakaru.ErrorKind.Load)
	if n == 0 {
		return nil
	}
	hint := "give the load host more of it: ulimit -n, net.ipv4.ip_local_port_range, keep-alive connections"
	return &hakaru.Void{
		Reason:   hakaru.VoidLoadErrors,
		Evidence: fmt.Sprintf("%d errors the load host made (%s)%s", n, kinds(which), v.firstSample(hakaru.ErrorKind.Load)),
		Hint:     hint,
	}
}

func wrongAnswers(v view) *hakaru.Void { return v.wrong(hakaru.ErrorKind.Wrong) }

// otherAnswers are wrong ones that no overload explains.
func otherAnswers(v view) *hakaru.Void {
	return v.wrong(func(k hakaru.ErrorKind) bool { return k == hakaru.WrongBody || k == hakaru.BadAnswer })
}

func (v view) wrong(match func(hakaru.ErrorKind) bool) *hakaru.Void {
	n, which := v.count(match)
	if n == 0 {
		return nil
	}
	return &hakaru.Void{
		Reason:   hakaru.VoidWrongAnswers,
		Evidence: fmt.Sprintf("%d of %d answers were wrong (%s)%s", n, n+v.good, kinds(which), v.firstSample(match)),
		Hint:     "a fast wrong answer is no measurement: " + v.right(),
	}
}

func acceptQueue(v view) *hakaru.Void {
	for _, s := range v.services {
		// From the first connection on: the queue overflows when connections
		// are made, which for kept connections is before the window.
		dropped, counted := v.whole(hakaru.CounterListenOverflow, s)
		if counted && dropped > 0 {
			return &hakaru.Void{
				Reason:   hakaru.VoidAcceptQueue,
				Evidence: fmt.Sprintf("the accept queue of %s%s overflowed: the kernel dropped %.0f connection attempts at its listener", hakaru.TheService(s), v.backlog(s), dropped),
				Hint:     "such a trial measures TCP's back-off, not the service: raise its listen backlog (and net.core.somaxconn), or use fewer connections",
			}
		}
	}
	if v.counts(hakaru.CounterListenOverflow) {
		return nil // per listener, which is exact
	}
	dropped, counted := v.whole(hakaru.CounterListenOverflow, hakaru.OfHost)
	if counted && dropped > 0 {
		return &hakaru.Void{
			Reason:   hakaru.VoidAcceptQueue,
			Foreign:  true,
			Evidence: fmt.Sprintf("an accept queue overflowed: %.0f connection attempts dropped on this host (no counter per listener here, so it may have been another program's)", dropped),
			Hint:     "raise the listen backlog of the service, or use fewer connections",
		}
	}
	return nil
}

// backlog says in a sentence how long a service's accept queue may get; empty
// where that was not seen.
func (v view) backlog(service string) string {
	if n := v.total(hakaru.CounterBacklog, service); n > 0 {
		return fmt.Sprintf(" (a backlog of %.0f)", n)
	}
	return ""
}

// counts reports whether a counter was read for any service.
func (v view) counts(name string) bool {
	return slices.ContainsFunc(v.Result.Counters, func(c hakaru.Counter) bool {
		return c.Name == name && slices.Contains(v.services, c.Of)
	})
}

// unwatched is a trial of which a part of the window was not watched: its figures
// and the rules after this one would take what is missing for 0.
func unwatched(v view) *hakaru.Void {
	end, missing, all := v.Result.WarmUp+v.Result.Window, 0, 0
	for _, b := range v.Result.Buckets {
		if b.At+hakaru.BucketWidth > end {
			break
		}
		all++
		if len(b.Counters) < len(v.Result.Counters) {
			missing++
		}
	}
	if missing == 0 {
		return nil
	}
	return &hakaru.Void{
		Reason:   hakaru.VoidAgent,
		Evidence: fmt.Sprintf("the agent of the service host watched %s only of the %s that the load took", unit.Duration(time.Duration(all-missing)*hakaru.BucketWidth), unit.Duration(time.Duration(all)*hakaru.BucketWidth)),
		Hint:     "the machine was too busy, or the clocks of the two hosts differ",
	}
}

func nothingCompleted(v view) *hakaru.Void {
	if v.good > 0 {
		return nil
	}
	if t := v.Result.Totals; t != nil && (t.Score != nil || t.Throughput > 0) {
		return nil // a load program that counts something else than answers
	}
	evidence := "not one good answer in the measured window"
	if len(v.kinds) > 0 {
		evidence += " (" + kinds(v.kinds) + ")"
	}
	return &hakaru.Void{
		Reason:   hakaru.VoidNothingCompleted,
		Evidence: evidence + v.firstSample(func(hakaru.ErrorKind) bool { return true }),
		Hint:     v.where() + " see the first bad answers: hakaru try FILE --variant " + v.Result.Variant,
	}
}

func proofFailed(v view) *hakaru.Void {
	for _, p := range v.Result.Proofs {
		if p.Holds == hakaru.No {
			return &hakaru.Void{
				Reason:   hakaru.VoidProof,
				Evidence: fmt.Sprintf("%s was not in force: asked for %s, found %s (%s, at %s)", p.Setting, p.Asked, p.Found, p.Source, p.When),
				Hint:     "it did not reach the service (hakaru try shows the command line and the files it was given), or the service changed it itself: a limit, a rounding",
			}
		}
	}
	return nil
}

func throttled(v view) *hakaru.Void {
	for _, s := range append(slices.Clone(v.services), hakaru.OfGenerator) {
		if t := v.total(hakaru.CounterThrottled, s); v.seconds > 0 && t/v.seconds > throttledVoid {
			return &hakaru.Void{
				Reason:   hakaru.VoidThrottled,
				Evidence: fmt.Sprintf("%s was throttled for %s of %s by a CPU quota that the experiment did not set", who(s), unit.Duration(seconds(t)), unit.Duration(seconds(v.seconds))),
				Hint:     "measure outside of the quota, or make it part of the experiment",
			}
		}
	}
	return nil
}

func generator(v view) *hakaru.Void {
	share, waited := v.generatorShare()
	if share < generatorLimited || !v.watched || v.serviceLimited() {
		return nil
	}
	who := v.busy(share)
	evidence := fmt.Sprintf("%s was %s busy while the service was not at its limit", who, unit.Share(share))
	hint := v.moreLoad()
	if waited > share/4 {
		evidence = fmt.Sprintf("%s wanted the CPU for %s of the time and had to wait for it for %s, while the service was not at its limit", who, unit.Share(share), unit.Share(waited))
		hint = "another program was using the generator's CPUs: " + hint
	}
	return &hakaru.Void{Reason: hakaru.VoidGenerator, Evidence: evidence, Hint: hint}
}

func others(v view) *hakaru.Void {
	share := v.othersShare()
	if share <= othersVoid || v.Goal == hakaru.CPUPerRequest || v.Goal == hakaru.Memory {
		return nil
	}
	return &hakaru.Void{
		Reason:   hakaru.VoidOthers,
		Evidence: fmt.Sprintf("other programs took %s of the machine's CPUs", unit.Share(share)),
		Hint:     "wait for a quieter machine, or make cpu_per_request the goal, which suffers less",
	}
}

// who names the owner of a counter within a sentence.
func who(of string) string {
	if of == hakaru.OfGenerator {
		return "the load generator"
	}
	return hakaru.TheService(of)
}

// kinds lists error counts, the most frequent first.
func kinds[K ~string](counts map[K]uint64) string {
	names := slices.SortedFunc(maps.Keys(counts), func(a, b K) int {
		if counts[a] != counts[b] {
			if counts[a] > counts[b] {
				return -1
			}
			return 1
		}
		return strings.Compare(string(a), string(b))
	})
	parts := make([]string, len(names))
	for i, name := range names {
		parts[i] = fmt.Sprintf("%d %s", counts[name], strings.ReplaceAll(string(name), "_", " "))
	}
	return strings.Join(parts, ", ")
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
