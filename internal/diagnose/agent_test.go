package diagnose

import (
	"slices"
	"testing"

	"hakaru"
)

// What hakaru's own agent uses is not other programs' doing: a service that
// writes much must not void its own trials.
func TestAgentIsNotOthers(t *testing.T) {
	for _, c := range []struct {
		name          string
		agent, others float64 // CPU seconds in each bucket, of 1 there is
		void          bool
		warned        []string
	}{
		{"quiet", 0.01, 0.02, false, nil},
		{"agent reads much", 0.6, 0.02, false, []string{"agent_busy"}},
		{"others", 0.01, 0.6, true, []string{"others_busy"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := healthy()
			s.counters[[2]string{hakaru.CounterCPU, hakaru.OfAgent}] = c.agent
			s.counters[[2]string{hakaru.CounterCPU, hakaru.OfHost}] = 0.25 + c.agent + c.others
			f := s.build()
			v := Void(f)
			if (v != nil) != c.void || v != nil && v.Reason != hakaru.VoidOthers {
				t.Errorf("void %+v, want %v", v, c.void)
			}
			var warned []string
			for _, w := range Warnings(f) {
				if w.Code == "agent_busy" || w.Code == "others_busy" {
					warned = append(warned, w.Code)
				}
			}
			if !slices.Equal(warned, c.warned) {
				t.Errorf("warned of %v, want %v", warned, c.warned)
			}
		})
	}
}

// A window with few answers cannot tell small differences, however alike the
// trials are.
func TestFewAnswers(t *testing.T) {
	for good, want := range map[uint64]bool{5: true, 24: true, 25: false, 500: false} { // in each of four buckets
		s := healthy()
		s.good = good
		got := slices.ContainsFunc(Warnings(s.build()), func(w hakaru.Warning) bool { return w.Code == "few_answers" })
		if got != want {
			t.Errorf("%d answers: warned %v", 4*good, got)
		}
	}
}

// The hint of a service that died names a run only where there is one.
func TestDiedHint(t *testing.T) {
	s := healthy()
	s.facts.Ended = []hakaru.Exit{{Service: "app", State: "exit status 3"}}
	f := s.build()
	if v := Void(f); v == nil || v.Hint != "look at its last lines: hakaru show k3f9a 7" {
		t.Errorf("%+v", v)
	}
	f.Result.Run = "" // hakaru try
	if v := Void(f); v == nil || v.Hint != "" {
		t.Errorf("%+v", v)
	}
}
