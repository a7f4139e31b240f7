package diagnose

import (
	"fmt"

	"hakaru"
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
