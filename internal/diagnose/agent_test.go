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
