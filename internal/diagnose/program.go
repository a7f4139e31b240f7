package diagnose

import (
	"fmt"
	"time"

	"hakaru"
	"hakaru/internal/measure"
	"hakaru/internal/unit"
)

// programFailed is a load program that ended without figures. It comes after a
// service that died and an accept queue that overflowed, which make programs
// fail.
func programFailed(v view) *hakaru.Void {
	t := v.Result.Totals
	if t == nil || t.Failed == "" {
		return nil
	}
	reason := hakaru.VoidProgram
	if t.OfLoadHost {
		reason = hakaru.VoidLoadErrors
	}
	return &hakaru.Void{Reason: reason, Evidence: t.Failed, Hint: t.Hint}
}

// sentBuckets is the time in which requests were sent, in buckets that lie wholly
// in it: ab sorts its latencies afterwards, at 100 % of its CPU, and that limits
// nothing.
func (v view) sentBuckets() time.Duration { return seconds(v.sending).Truncate(hakaru.BucketWidth) }

// whileSending is the increase of a counter of the generator over those buckets.
func (v view) whileSending(name string) float64 {
	value, _ := measure.Sum(v.Result.Buckets, v.Result.Counters, v.Result.WarmUp, v.sentBuckets(), name, hakaru.OfGenerator)
	return value
}

// hotThread is the share of that time in which the busiest thread of a load
// program ran or wanted to.
func (v view) hotThread() float64 {
	sent := v.sentBuckets().Seconds()
	if v.Program == nil || sent == 0 {
		return 0
	}
	return v.whileSending(hakaru.CounterHotThread) / sent
}

// programDoubts are the warnings that only a load program gives cause for.
func (v view) programDoubts(warn func(code, format string, args ...any)) {
	t := v.Result.Totals
	if t == nil || t.Failed != "" {
		return
	}
	// Up to a request of each connection was under way when it ended by its time
	// (measure.Result).
	if p := v.Program; p != nil && !p.Counted && v.good > 0 {
		if cut := float64(p.Connections) / float64(v.good); cut > cutWarn {
			warn("cut_requests", "%s ended in the middle of up to %d requests, which are no answers: CPU time per request may be too high by up to %s (measure longer, or give it a number of requests)",
				p.Name, p.Connections, unit.Share(cut))
		}
	}
	if took := t.Took; took > 0 && took < time.Second {
		warn("short_run", "the measured run took %s: what a service and a program do at first weighs in it", unit.Duration(took))
	}
}

// program names the load program within a sentence.
func (v view) program() string {
	if v.Program.Name == "command" {
		return "the load command"
	}
	return v.Program.Name
}

// sender names what sends the load within a sentence, with how many CPUs it can
// use where these are fewer than the machine's.
func (v view) sender() string {
	if v.Program == nil {
		return "the load generator"
	}
	name := v.program()
	switch cpus := v.total(hakaru.CounterCPUs, hakaru.OfGenerator); {
	case cpus == 1:
		return name + " with its one CPU"
	case cpus > 0:
		return fmt.Sprintf("%s with its %.0f CPUs", name, cpus)
	}
	return name
}

// busy names who was as busy as that share: the sender, or one thread of it.
func (v view) busy(share float64) string {
	if v.Program != nil && v.hotThread() >= share && v.total(hakaru.CounterCPUs, hakaru.OfGenerator) > 1 {
		return "one thread of " + v.program()
	}
	return v.sender()
}

// moreLoad says how a load that was the limit can be more.
func (v view) moreLoad() string {
	const elsewhere = "or send it from another machine"
	one := v.total(hakaru.CounterCPUs, hakaru.OfGenerator) == 1
	switch {
	case v.Program == nil:
	case v.Program.Name == "ab":
		return "ab has one thread, for which more CPUs do nothing: use load.wrk or load.http, " + elsewhere
	case v.Program.Name == "wrk" && !one:
		return "give wrk more threads (load.wrk.threads) and CPUs, " + elsewhere
	case v.Program.Name == "command":
		return "let the load command use more threads, if it can, " + elsewhere
	}
	return "send the load from more CPUs (hosts: {load: {cpus: …}}) or from another machine"
}

// where asks whether the load goes where the service is.
func (v view) where() string {
	if v.Program != nil && v.Program.Name == "command" {
		return "does the load command ask where the service listens, and count its answers (load.command.good)?"
	}
	return "is " + v.loadKey() + ".url where the service listens?"
}

// loadKey is where the load stands in an experiment file.
func (v view) loadKey() string {
	if v.Program != nil {
		return "load." + v.Program.Name
	}
	return "load.http"
}

// right says how wrong answers may be put right.
func (v view) right() string {
	switch {
	case v.Program == nil:
		return "mend load.http.url or the service, or say in load.http what the right answer is (status, expect)"
	case v.Program.Name == "ab" && v.kinds[hakaru.WrongBody] > 0:
		return "ab calls an answer wrong whose length is not that of the first; where lengths may differ, write any_length: true in load.ab"
	}
	return "mend " + v.loadKey() + ".url or the service"
}
