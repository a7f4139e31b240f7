package diagnose

import (
	"strings"
	"testing"
	"time"

	"hakaru"
)

// byProgram is a healthy trial whose load ab sent.
func byProgram(change func(*hakaru.Totals, *situation)) Facts {
	s := healthy()
	s.good = 0
	s.counters[[2]string{hakaru.CounterCPUs, hakaru.OfGenerator}] = 1
	t := &hakaru.Totals{Took: 2 * time.Second, Good: 4000}
	s.facts.Program = &hakaru.ProgramSpec{Name: "ab", Connections: 8}
	s.facts.Connections = 8
	if change != nil {
		change(t, &s)
	}
	f := s.build()
	f.Result.Totals = t
	return f
}

func TestVoidProgram(t *testing.T) {
	overflow := func(s *situation) {
		s.counters[[2]string{hakaru.CounterListenOverflow, "app"}] = 300
	}
	died := func(t *hakaru.Totals) {
		*t = hakaru.Totals{Failed: "ab ended with exit status 104: apr_socket_recv: Connection reset by peer (104)", Hint: "see why"}
	}
	for _, c := range []struct {
		name   string
		change func(*hakaru.Totals, *situation)
		want   hakaru.VoidReason
		says   string
	}{
		{"healthy", nil, "", ""},
		{"ab died", func(t *hakaru.Totals, _ *situation) { died(t) }, hakaru.VoidProgram, "Connection reset by peer"},
		{"ab died of a full accept queue", func(t *hakaru.Totals, s *situation) { died(t); overflow(s) }, hakaru.VoidAcceptQueue, "dropped"},
		{"ab died with the service", func(t *hakaru.Totals, s *situation) {
			died(t)
			s.facts.Ended = []hakaru.Exit{{Service: "app", State: "exit status 1"}}
		}, hakaru.VoidDied, "exit status 1"},
		{"Failed requests: 0, and a full accept queue", func(_ *hakaru.Totals, s *situation) { overflow(s) }, hakaru.VoidAcceptQueue, "dropped 1800"},
		{"wrong statuses", func(t *hakaru.Totals, _ *situation) {
			t.Bad, t.Kinds = 5, map[string]uint64{"wrong_status": 5}
		}, hakaru.VoidWrongAnswers, "5 of 4005 answers were wrong (5 wrong status)"},
		{"resets count against the limit", func(t *hakaru.Totals, _ *situation) {
			t.Bad, t.Kinds = 5, map[string]uint64{"reset": 5}
		}, "", ""},
		{"nothing good", func(t *hakaru.Totals, _ *situation) {
			*t = hakaru.Totals{Took: time.Second, Bad: 20, Kinds: map[string]uint64{"closed": 20}}
		}, hakaru.VoidNothingCompleted, "(20 closed)"},
		{"a score counts no answers", func(t *hakaru.Totals, _ *situation) {
			score := 0.0
			*t = hakaru.Totals{Took: time.Second, Score: &score}
		}, "", ""},
		{"ab at its one CPU", func(_ *hakaru.Totals, s *situation) {
			s.counters[[2]string{hakaru.CounterCPU, hakaru.OfGenerator}] = 0.48
		}, hakaru.VoidGenerator, "ab with its one CPU was 98 % busy while the service was not at its limit"},
		{"wrk with two of them", func(_ *hakaru.Totals, s *situation) {
			s.facts.Program.Name = "wrk"
			s.counters[[2]string{hakaru.CounterCPUs, hakaru.OfGenerator}] = 2
			s.counters[[2]string{hakaru.CounterCPU, hakaru.OfGenerator}] = 0.48
		}, "", ""},
		{"a command with one thread, at the limit of one CPU of two", func(_ *hakaru.Totals, s *situation) {
			s.facts.Program.Name = "command"
			s.counters[[2]string{hakaru.CounterCPUs, hakaru.OfGenerator}] = 2
			s.counters[[2]string{hakaru.CounterCPU, hakaru.OfGenerator}] = 0.48
			s.counters[[2]string{hakaru.CounterHotThread, hakaru.OfGenerator}] = 0.48
		}, hakaru.VoidGenerator, "one thread of the load command was 96 % busy"},
		{"a busy thread, and the service fills its CPUs", func(_ *hakaru.Totals, s *situation) {
			s.facts.Program.Name = "command"
			s.counters[[2]string{hakaru.CounterHotThread, hakaru.OfGenerator}] = 0.48
			s.counters[[2]string{hakaru.CounterCPU, "app"}] = 0.92
		}, "", ""},
		{"the load host had no port left", func(t *hakaru.Totals, _ *situation) {
			*t = hakaru.Totals{Failed: "ab ended with exit status 99: Cannot assign requested address (99)", OfLoadHost: true}
		}, hakaru.VoidLoadErrors, "Cannot assign"},
		{"ab waited in vain while others had the CPU", func(t *hakaru.Totals, s *situation) {
			died(t)
			s.counters[[2]string{hakaru.CounterCPU, hakaru.OfHost}] = 0.9
		}, hakaru.VoidOthers, "other programs took"},
		{"the same, and others matter less to the goal", func(t *hakaru.Totals, s *situation) {
			died(t)
			s.counters[[2]string{hakaru.CounterCPU, hakaru.OfHost}] = 0.9
			s.facts.Goal = hakaru.CPUPerRequest
		}, hakaru.VoidProgram, "Connection reset"},
		{"nothing good, and the service was throttled", func(t *hakaru.Totals, s *situation) {
			*t = hakaru.Totals{Took: time.Second}
			s.counters[[2]string{hakaru.CounterThrottled, "app"}] = 0.2
		}, hakaru.VoidThrottled, "throttled"},
		{"too short to tell", func(t *hakaru.Totals, s *situation) {
			t.Took, t.Good = 50*time.Millisecond, 400
			s.counters[[2]string{hakaru.CounterCPU, hakaru.OfGenerator}] = 0.05
		}, "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			void := Void(byProgram(c.change))
			switch {
			case void == nil && c.want != "":
				t.Errorf("it counts, want %s", c.want)
			case void != nil && (void.Reason != c.want || !strings.Contains(void.Evidence, c.says)):
				t.Errorf("%s: %s; want %s with %q", void.Reason, void.Evidence, c.want, c.says)
			}
		})
	}
}

// What ab does after its last answer limits nothing, the rest of the bucket in
// which that came included.
func TestGeneratorAfterTheEnd(t *testing.T) {
	for _, took := range []time.Duration{time.Second, 1010 * time.Millisecond, 1490 * time.Millisecond} {
		f := afterTheEnd()
		f.Result.Totals.Took = took
		if void := Void(f); void != nil {
			t.Errorf("%v: %v", took, void)
		}
		for _, w := range Warnings(f) {
			t.Errorf("%v: %v", took, w)
		}
	}
}

// afterTheEnd is a trial in which ab is busy from the third bucket of the window
// on.
func afterTheEnd() Facts {
	f := byProgram(nil)
	for i, c := range f.Result.Counters {
		if c.Of == hakaru.OfGenerator && c.Name == hakaru.CounterCPU {
			for j := range f.Result.Buckets {
				values := append([]float64(nil), f.Result.Buckets[j].Counters...)
				if j >= 4 { // warm-up 2, sending 2
					values[i] = 0.5
				}
				f.Result.Buckets[j].Counters = values
			}
		}
	}
	return f
}

func TestWarningsProgram(t *testing.T) {
	codes := func(f Facts) string {
		var list []string
		for _, w := range Warnings(f) {
			list = append(list, w.Code)
		}
		return strings.Join(list, " ")
	}
	for _, c := range []struct {
		name, want string
		change     func(*hakaru.Totals, *situation)
	}{
		{"healthy", "", nil},
		{"few answers", "few_answers cut_requests short_run", func(t *hakaru.Totals, _ *situation) { t.Good, t.Took = 50, 300*time.Millisecond }},
		{"errors of no kind", "errors", func(t *hakaru.Totals, _ *situation) { t.Bad = 7 }},
		{"near its limit", "generator_busy", func(_ *hakaru.Totals, s *situation) {
			s.counters[[2]string{hakaru.CounterCPU, hakaru.OfGenerator}] = 0.42
		}},
		{"many connections for its answers", "cut_requests", func(t *hakaru.Totals, s *situation) {
			s.facts.Program.Connections = 500
		}},
		{"the same, and it counted to the end", "", func(t *hakaru.Totals, s *situation) {
			s.facts.Program.Connections, s.facts.Program.Counted = 500, true
		}},
		{"one thread near its limit", "generator_busy", func(_ *hakaru.Totals, s *situation) {
			s.facts.Program.Name = "command"
			s.counters[[2]string{hakaru.CounterCPUs, hakaru.OfGenerator}] = 2
			s.counters[[2]string{hakaru.CounterHotThread, hakaru.OfGenerator}] = 0.42
		}},
		{"a program that failed", "", func(t *hakaru.Totals, _ *situation) { *t = hakaru.Totals{Failed: "no"} }},
	} {
		if got := codes(byProgram(c.change)); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}
