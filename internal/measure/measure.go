// Package measure turns the buckets of one trial into its figures.
//
// It takes half-second buckets with their columns, the names of the services,
// and which part of the trial is the measured window; it gives Measurements:
// throughput, CPU time per request, share of errors, quantiles, memory, and
// where the CPUs went. Every figure is a sum over whole buckets, so that
// another warm-up can be cut from stored buckets later with the same code.
//
// It does not judge (internal/diagnose says what voids a trial, internal/compare
// compares trials), reads no clock, and gives no figure that the buckets do not
// hold: what was not watched is left out, never 0.
package measure

import (
	"time"

	"hakaru"
	"hakaru/internal/latency"
)

// Metrics beside those of package hakaru: shown, never a goal.
const (
	CPU hakaru.Metric = "cpu" // CPUs in use: CPU seconds per second
	Bad hakaru.Metric = "bad" // answers that were not good, of every kind
)

// Cut returns the buckets of the measured window: those that lie wholly within
// warmUp..warmUp+length. A warm-up that is no multiple of a bucket is thereby
// rounded up, and a window that ends within a bucket ends before it.
func Cut(buckets []hakaru.Bucket, warmUp, length time.Duration) []hakaru.Bucket {
	first, last := len(buckets), len(buckets)
	for i, b := range buckets {
		if b.At >= warmUp && i < first {
			first = i
		}
		if b.At+hakaru.BucketWidth > warmUp+length {
			last = i
			break
		}
	}
	return buckets[min(first, last):last]
}

// Sum is the total of a counter over the measured window. False where there is
// no such column, where it is a gauge, where a bucket lacks it, or where the
// window holds no whole bucket. Of two columns with the same name the first
// counts.
func Sum(buckets []hakaru.Bucket, counters []hakaru.Counter, warmUp, length time.Duration, name, of string) (float64, bool) {
	return sum(Cut(buckets, warmUp, length), counters, name, of)
}

// Last is the value of a gauge in the last bucket of the measured window that
// has it. False where there is none.
func Last(buckets []hakaru.Bucket, counters []hakaru.Counter, warmUp, length time.Duration, name, of string) (float64, bool) {
	return last(Cut(buckets, warmUp, length), counters, name, of)
}

func sum(window []hakaru.Bucket, counters []hakaru.Counter, name, of string) (float64, bool) {
	column := columnOf(counters, name, of)
	if column < 0 || counters[column].Gauge || len(window) == 0 {
		return 0, false
	}
	total := 0.0
	for _, b := range window {
		if column >= len(b.Counters) {
			return 0, false
		}
		total += b.Counters[column]
	}
	return total, true
}

func last(window []hakaru.Bucket, counters []hakaru.Counter, name, of string) (float64, bool) {
	column := columnOf(counters, name, of)
	if column < 0 || !counters[column].Gauge {
		return 0, false
	}
	for i := len(window) - 1; i >= 0; i-- {
		if column < len(window[i].Counters) {
			return window[i].Counters[column], true
		}
	}
	return 0, false
}

func columnOf(counters []hakaru.Counter, name, of string) int {
	for i, c := range counters {
		if c.Name == name && c.Of == of {
			return i
		}
	}
	return -1
}

// Window returns the figures of the measured window. With n whole buckets in
// it, T = n·BucketWidth its length, and sums over those buckets:
//
//	throughput       good / T                                   1/s
//	cpu_per_request  cpu of the services / good                 s    whole and per service
//	errors           bad' / (good + bad')                       ratio
//	                 bad' = bad without what the load host did wrong (ErrorKind.Load)
//	p50, p99         quantiles of the merged histograms         s    service time of a closed loop
//	memory           of the last bucket                         B    whole and per service
//	cpu              cpu / T of each service, the generator,    cpus
//	                 the host, and the others:
//	                 host − services − generator − agent, at least 0
//	bad              bad, of every kind                         1
//
// cpu_per_request divides the services' CPU time of a window by the answers of
// the same window, and the two are counted by two processes. What that costs:
//
//   - The edges. Both sample at the same boundaries on their own timers, and one
//     that is late by e counts e too much at one end and too little at the other:
//     e/T of the figure, at most, whatever the rate; 1 ms in 10 s is 0.01 %.
//     Samples later than a fifth of a bucket are warned of (watch_late).
//   - Requests under way. CPU time is counted when it is used, a request when it
//     is answered. At each edge every connection has one request that is partly
//     on either side, so that a figure of N answers over c connections is off by
//     √(c/6)/N (standard deviation, for shares that are uniform and independent):
//     with 16 connections and 10 s, 0.016 % at 1000/s and 1.6 % at 10/s, where the
//     window must be longer. It has no direction after a warm-up: as much is
//     carried in as out. Without one, nothing is carried in. (Where a load program
//     sends, see Result.)
//   - Without a cgroup, CPU time is counted in steps of 10 ms per process.
//
// All of it is noise from trial to trial, and so within the intervals.
//
// A figure of the whole is given only where every service has its part. p50 and
// p99 are left out where a histogram cannot be read: half a distribution would
// be another one. Without a whole bucket there is no figure.
func Window(buckets []hakaru.Bucket, counters []hakaru.Counter, services []string, warmUp, length time.Duration) []hakaru.Measurement {
	return Result(&hakaru.Result{Buckets: buckets, Counters: counters, WarmUp: warmUp, Window: length}, services)
}

// Result returns the figures of a trial's measured window. Where a load program
// sent the load, what is about answers is the program's own (Totals), and only
// what is about machine and services comes from the buckets:
//
//	throughput       the program's, or good / the time that the program took
//	cpu_per_request  cpu of the services, summed over the buckets of the window,
//	                 / good. The window holds the whole run of the program.
//	errors           as above, of the program's counts
//	p50, p99         the program's, where it told them
//	score            the program's
//	cpu              as above; left out where the program took less than a second,
//	                 of which whole buckets are too many
//
// Here requests under way have a direction. Each run opens its connections anew, and
// it begins when the service has done with the warm-up's (program.Run), so that
// nothing is carried in. A run that ends by its time walks away from up to one
// request of each of its c connections, which cost CPU time and are no answers:
// cpu_per_request of N answers is too high by up to c/N, for a slow variant by more
// than for a fast one. diagnose warns where that is much (cut_requests). A run
// that counts its requests ends with the last answer.
//
// A program that failed has no figures of answers.
//
// Where there was an open loop (Result.Open), p50 and p99 are of it and count from
// when a request was due; those of a closed loop before it are closed_p50 and
// closed_p99. errors and bad are of the answers of both; all else is of the closed
// loop, which answers for throughput and what a request costs.
//
// Where the load was a search for the capacity (Result.Capacity), many rates and an
// overload are in the window: only the capacity and memory are figures then.
func Result(r *hakaru.Result, services []string) []hakaru.Measurement {
	counters := r.Counters
	window := Cut(r.Buckets, r.WarmUp, r.Window)
	if len(window) == 0 {
		return nil
	}
	seconds := (time.Duration(len(window)) * hakaru.BucketWidth).Seconds()

	good, _, _ := Answers(r)
	allGood, bad, own := AllAnswers(r)

	var out []hakaru.Measurement
	add := func(m hakaru.Metric, of string, value float64, unit string) {
		out = append(out, hakaru.Measurement{Metric: m, Of: of, Value: value, Unit: unit})
	}
	if c := r.Capacity; c != nil {
		add(hakaru.Capacity, "", c.Value, "1/s")
		addMemory(window, counters, services, add)
		return out
	}

	t := r.Totals
	switch {
	case t == nil:
		add(hakaru.Throughput, "", float64(good)/seconds, "1/s")
	case t.Failed != "":
	case t.Throughput > 0:
		add(hakaru.Throughput, "", t.Throughput, "1/s")
	case good > 0 && t.Took > 0:
		add(hakaru.Throughput, "", float64(good)/t.Took.Seconds(), "1/s")
	}
	if t != nil && t.Score != nil {
		add(hakaru.Score, "", *t.Score, "1")
	}

	if good > 0 {
		each, whole, all := perService(services, func(s string) (float64, bool) {
			return sum(window, counters, hakaru.CounterCPU, s)
		})
		if all {
			add(hakaru.CPUPerRequest, "", whole/float64(good), "s")
		}
		for _, s := range each {
			add(hakaru.CPUPerRequest, s.of, s.value/float64(good), "s")
		}
	}

	theirs, told := bad-min(own, bad), t == nil || !t.BadUnknown
	if told && allGood+theirs > 0 {
		add(hakaru.Errors, "", float64(theirs)/float64(allGood+theirs), "ratio")
	}

	switch {
	case t != nil:
		for _, m := range []hakaru.Metric{hakaru.P50, hakaru.P99} {
			if value, told := t.Quantiles[m]; told {
				add(m, "", value, "s")
			}
		}
	case r.Open == nil:
		quantiles(window, hakaru.P50, hakaru.P99, add)
	default:
		open := func(m hakaru.Metric, of string, value float64, unit string) {
			out = append(out, hakaru.Measurement{Metric: m, Of: of, Value: value, Unit: unit, Open: true})
		}
		if r.Open.Whole {
			quantiles(window, hakaru.P50, hakaru.P99, open)
		} else {
			quantiles(Cut(r.Open.Buckets, r.Open.WarmUp, r.Open.Window), hakaru.P50, hakaru.P99, open)
			quantiles(window, hakaru.ClosedP50, hakaru.ClosedP99, add)
		}
	}

	addMemory(window, counters, services, add)
	if t == nil || t.Took <= 0 || t.Took >= leastForCPU {
		addCPUs(window, counters, services, seconds, add)
	}
	if told && (t == nil || t.Failed == "") {
		add(Bad, "", float64(bad), "1")
	}
	return out
}

// quantiles gives median and 99 % quantile of a window under their names.
func quantiles(window []hakaru.Bucket, p50, p99 hakaru.Metric, add func(hakaru.Metric, string, float64, string)) {
	if h := merged(window); h != nil && h.Count() > 0 {
		add(p50, "", h.Quantile(0.50).Seconds(), "s")
		add(p99, "", h.Quantile(0.99).Seconds(), "s")
	}
}

// addMemory says what the services had at the end of the window.
func addMemory(window []hakaru.Bucket, counters []hakaru.Counter, services []string,
	add func(hakaru.Metric, string, float64, string)) {

	each, whole, all := perService(services, func(s string) (float64, bool) {
		return last(window[len(window)-1:], counters, hakaru.CounterMemory, s)
	})
	if all {
		add(hakaru.Memory, "", whole, "B")
	}
	for _, s := range each {
		add(hakaru.Memory, s.of, s.value, "B")
	}
}

// leastForCPU is how long a load program must have sent for the CPUs in use over
// whole buckets to be about that.
const leastForCPU = time.Second

// Answers counts, in the measured window or of the load program's own run, good
// answers, bad ones, and of those what the load host did wrong.
func Answers(r *hakaru.Result) (good, bad, own uint64) {
	if t := r.Totals; t != nil {
		return t.Good, t.Bad, ownOf(t.Kinds)
	}
	return count(Cut(r.Buckets, r.WarmUp, r.Window))
}

// AllAnswers is Answers with those of an open loop after the closed one.
func AllAnswers(r *hakaru.Result) (good, bad, own uint64) {
	good, bad, own = Answers(r)
	if o := r.Open; o != nil && !o.Whole {
		g, b, w := count(Cut(o.Buckets, o.WarmUp, o.Window))
		good, bad, own = good+g, bad+b, own+w
	}
	return good, bad, own
}

func count(window []hakaru.Bucket) (good, bad, own uint64) {
	for _, b := range window {
		good += b.Good
		bad += b.Bad
		own += ownOf(b.Kinds)
	}
	return good, bad, own
}

// ownOf counts the bad answers that are the load host's own doing.
func ownOf(kinds map[string]uint64) (own uint64) {
	for kind, n := range kinds {
		if hakaru.ErrorKind(kind).Load() {
			own += n
		}
	}
	return own
}

// addCPUs says where the machine's CPUs went.
func addCPUs(window []hakaru.Bucket, counters []hakaru.Counter, services []string, seconds float64,
	add func(hakaru.Metric, string, float64, string)) {

	each, used, all := perService(services, func(s string) (float64, bool) {
		return sum(window, counters, hakaru.CounterCPU, s)
	})
	for _, s := range each {
		add(CPU, s.of, s.value/seconds, "cpus")
	}
	generator, haveGenerator := sum(window, counters, hakaru.CounterCPU, hakaru.OfGenerator)
	if haveGenerator {
		add(CPU, hakaru.OfGenerator, generator/seconds, "cpus")
	}
	// 0 where it was not watched: results from before it was.
	agent, haveAgent := sum(window, counters, hakaru.CounterCPU, hakaru.OfAgent)
	if haveAgent {
		add(CPU, hakaru.OfAgent, agent/seconds, "cpus")
	}
	host, haveHost := sum(window, counters, hakaru.CounterCPU, hakaru.OfHost)
	if !haveHost {
		return
	}
	if all && haveGenerator {
		// The host's figure is counted in ticks and read at another moment than
		// the processes' own, so that the rest can come out a little below 0.
		add(CPU, hakaru.OfOthers, max(host-used-generator-agent, 0)/seconds, "cpus")
	}
	add(CPU, hakaru.OfHost, host/seconds, "cpus")
}

type part struct {
	of    string
	value float64
}

// perService returns each service's part, their sum, and whether every service
// has one. Of no services there is no whole.
func perService(services []string, value func(string) (float64, bool)) (each []part, whole float64, all bool) {
	all = len(services) > 0
	for _, s := range services {
		v, ok := value(s)
		if !ok {
			all = false
			continue
		}
		each = append(each, part{s, v})
		whole += v
	}
	return each, whole, all
}

// merged is the histogram of all buckets, nil where one cannot be read.
func merged(window []hakaru.Bucket) *latency.Histogram {
	var all latency.Histogram
	for _, b := range window {
		h, err := latency.Decode(b.Latency)
		if err != nil {
			return nil
		}
		all.Merge(h)
	}
	return &all
}
