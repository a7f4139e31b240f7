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
	return &hakaru.Void{Reason: hakaru.VoidProgram, Evidence: t.Failed, Hint: t.Hint}
}

// whileSending is the increase of a counter of the generator over the buckets in
// which requests were sent: ab sorts its latencies afterwards, at 100 % of its
// CPU, and that limits nothing.
func (v view) whileSending(name string) float64 {
	const width = hakaru.BucketWidth
	length := (seconds(v.sending) + width - 1).Truncate(width)
	value, _ := measure.Sum(v.Result.Buckets, v.Result.Counters, v.Result.WarmUp, length, name, hakaru.OfGenerator)
	return value
}

// programDoubts are the warnings that only a load program gives cause for.
func (v view) programDoubts(warn func(code, format string, args ...any)) {
	t := v.Result.Totals
	if t == nil || t.Failed != "" {
		return
	}
	if took := t.Took; took > 0 && took < time.Second {
		warn("short_run", "the measured run took %s: what a service and a program do at first weighs in it", unit.Duration(took))
	}
}

// sender names what sends the load within a sentence, with how many CPUs it can
// use where these are fewer than the machine's.
func (v view) sender() string {
	if v.Program == nil {
		return "the load generator"
	}
	name := v.Program.Name
	if name == "command" {
		name = "the load command"
	}
	switch cpus := v.total(hakaru.CounterCPUs, hakaru.OfGenerator); {
	case cpus == 1:
		return name + " with its one CPU"
	case cpus > 0:
		return fmt.Sprintf("%s with its %.0f CPUs", name, cpus)
	}
	return name
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
