package diagnose

import (
	"slices"
	"strings"
	"testing"

	"hakaru"
)

// What was not watched is not 0: a trial whose last bucket the watch did not see
// does not count, and no rule takes an overflow for none.
func TestUnwatched(t *testing.T) {
	s := healthy()
	s.counters[[2]string{hakaru.CounterListenOverflow, "app"}] = 5
	f := s.build()
	last := &f.Result.Buckets[len(f.Result.Buckets)-1]
	last.Counters = last.Counters[:2]
	void := Void(f)
	if void == nil || void.Reason != hakaru.VoidAgent || void.Own() || !strings.Contains(void.Evidence, "2.5 s only of the 3 s") {
		t.Errorf("%+v", void)
	}
}

// Of a service that runs where it cannot be watched the CPU time is among that of
// other programs, and whether it was at its limit is not known.
func TestServiceOutOfSight(t *testing.T) {
	s := healthy()
	for key := range s.counters {
		if key[1] == "app" {
			delete(s.counters, key)
		}
	}
	s.counters[[2]string{hakaru.CounterCPU, hakaru.OfHost}] = 0.95
	s.counters[[2]string{hakaru.CounterCPU, hakaru.OfGenerator}] = 0.48
	s.counters[[2]string{hakaru.CounterCPUs, hakaru.OfGenerator}] = 1
	s.facts.Services = []string{"app"}
	f := s.build()
	if void := Void(f); void != nil {
		t.Errorf("%+v", void)
	}
	warnings := Warnings(f)
	if !slices.ContainsFunc(warnings, func(w hakaru.Warning) bool {
		return w.Code == "generator_busy" && strings.Contains(w.Message, "is not known")
	}) || slices.ContainsFunc(warnings, func(w hakaru.Warning) bool { return w.Code == "others_busy" }) {
		t.Errorf("%+v", warnings)
	}
}

// The machine's count of full accept queues accuses no variant.
func TestForeignOverflow(t *testing.T) {
	s := healthy()
	delete(s.counters, [2]string{hakaru.CounterListenOverflow, "app"})
	s.counters[[2]string{hakaru.CounterListenOverflow, hakaru.OfHost}] = 5
	if void := Void(s.build()); void == nil || void.Own() {
		t.Errorf("%+v", void)
	}
	s = healthy()
	s.counters[[2]string{hakaru.CounterListenOverflow, "app"}] = 5
	if void := Void(s.build()); void == nil || !void.Own() {
		t.Errorf("%+v", void)
	}
}

// The hint of a generator that was the limit is one that can help.
func TestMoreLoad(t *testing.T) {
	for name, want := range map[string]string{
		"ab": "ab has one thread", "command": "more threads, if it can", "wrk": "load.wrk.threads", "": "hosts: {load: {cpus",
	} {
		s := healthy()
		s.counters[[2]string{hakaru.CounterCPU, hakaru.OfGenerator}] = 0.96
		if name != "" {
			s.facts.Program = &hakaru.ProgramSpec{Name: name}
		}
		void := Void(s.build())
		if void == nil || void.Reason != hakaru.VoidGenerator || !strings.Contains(void.Hint, want) {
			t.Errorf("%s: %+v", name, void)
		}
	}
}
