package diagnose

import (
	"strings"
	"testing"
	"time"

	"hakaru"
)

// situation is a trial of 1 s warm-up and 2 s window on a machine of 2 CPUs, in
// which everything is well; each test changes one thing.
type situation struct {
	counters map[[2]string]float64 // name, of → increase per bucket, or value
	good     uint64
	kinds    map[string]uint64
	proofs   []hakaru.Proof
	facts    Facts
}

func healthy() situation {
	return situation{
		good: 500,
		counters: map[[2]string]float64{
			{hakaru.CounterCPU, hakaru.OfGenerator}:       0.05,
			{hakaru.CounterWait, hakaru.OfGenerator}:      0.01,
			{hakaru.CounterCPUs, hakaru.OfGenerator}:      2,
			{hakaru.CounterCPU, "app"}:                    0.2,
			{hakaru.CounterWait, "app"}:                   0.01,
			{hakaru.CounterHotThread, "app"}:              0.1,
			{hakaru.CounterListenOverflow, "app"}:         0,
			{hakaru.CounterThrottled, "app"}:              0,
			{hakaru.CounterCPU, hakaru.OfHost}:            0.3,
			{hakaru.CounterCPUs, hakaru.OfHost}:           2,
			{hakaru.CounterStolen, hakaru.OfHost}:         0,
			{hakaru.CounterListenOverflow, hakaru.OfHost}: 0,
		},
		facts: Facts{Goal: hakaru.Throughput},
	}
}

func (s situation) build() Facts {
	r := &hakaru.Result{
		Trial:  hakaru.Trial{Run: "k3f9a", Seq: 7, Variant: "base"},
		WarmUp: time.Second, Window: 2 * time.Second, Proofs: s.proofs,
	}
	var values []float64
	for key, v := range s.counters {
		r.Counters = append(r.Counters, hakaru.Counter{Name: key[0], Of: key[1], Gauge: key[0] == hakaru.CounterCPUs})
		values = append(values, v)
	}
	for i := range 6 {
		r.Buckets = append(r.Buckets, hakaru.Bucket{
			At: time.Duration(i) * hakaru.BucketWidth, Good: s.good, Kinds: s.kinds, Counters: values,
		})
	}
	s.facts.Result = r
	return s.facts
}

func TestVoid(t *testing.T) {
	cases := []struct {
		name   string
		change func(*situation)
		want   hakaru.VoidReason // empty: the trial counts
		says   string            // in the evidence
	}{
		{"healthy", func(*situation) {}, "", ""},
		{"service died", func(s *situation) {
			s.facts.Ended = []hakaru.Exit{{Service: "app", State: "exit status 1"}}
		}, hakaru.VoidDied, "exit status 1"},
		{"a service that died also answers wrongly", func(s *situation) {
			s.facts.Ended = []hakaru.Exit{{Service: "app", State: "signal: killed"}}
			s.kinds = map[string]uint64{"wrong_status": 3}
		}, hakaru.VoidDied, "killed"},
		{"wrong body", func(s *situation) {
			s.kinds = map[string]uint64{"wrong_body": 2}
			s.facts.Samples = []hakaru.Sample{{Kind: hakaru.WrongBody, Text: `got "oops"`}}
		}, hakaru.VoidWrongAnswers, `8 of 2008 answers were wrong (8 wrong body); the first: got "oops"`},
		{"errors of the service count against the limit", func(s *situation) {
			s.kinds = map[string]uint64{"server_error": 100, "timeout": 1}
		}, "", ""},
		{"nothing but errors of the service", func(s *situation) {
			s.good = 0
			s.kinds = map[string]uint64{"server_error": 100}
		}, hakaru.VoidNothingCompleted, "400 server error"},
		{"load host out of ports", func(s *situation) {
			s.kinds = map[string]uint64{"load_ports": 1}
		}, hakaru.VoidLoadErrors, "4 errors the load host made (4 load ports)"},
		{"accept queue, by listener, from the first connection on", func(s *situation) {
			s.counters[[2]string{hakaru.CounterListenOverflow, "app"}] = 5
		}, hakaru.VoidAcceptQueue, "accept queue of service app overflowed: the kernel dropped 30"},
		{"overflow of another program's queue is not ours", func(s *situation) {
			s.counters[[2]string{hakaru.CounterListenOverflow, hakaru.OfHost}] = 5
		}, "", ""},
		{"overflow on the host where listeners have no counter", func(s *situation) {
			delete(s.counters, [2]string{hakaru.CounterListenOverflow, "app"})
			s.counters[[2]string{hakaru.CounterListenOverflow, hakaru.OfHost}] = 5
		}, hakaru.VoidAcceptQueue, "may have been another program's"},
		{"generator at its limit", func(s *situation) {
			s.counters[[2]string{hakaru.CounterCPU, hakaru.OfGenerator}] = 0.46
			s.counters[[2]string{hakaru.CounterCPUs, hakaru.OfGenerator}] = 1
		}, hakaru.VoidGenerator, "94 % busy"},
		{"generator kept from the CPU", func(s *situation) {
			s.counters[[2]string{hakaru.CounterCPU, hakaru.OfGenerator}] = 0.25
			s.counters[[2]string{hakaru.CounterWait, hakaru.OfGenerator}] = 0.24
			s.counters[[2]string{hakaru.CounterCPUs, hakaru.OfGenerator}] = 1
		}, hakaru.VoidGenerator, "had to wait for it for 48 %"},
		{"generator busy, but so is one thread of the service", func(s *situation) {
			s.counters[[2]string{hakaru.CounterCPU, hakaru.OfGenerator}] = 0.48
			s.counters[[2]string{hakaru.CounterCPUs, hakaru.OfGenerator}] = 1
			s.counters[[2]string{hakaru.CounterHotThread, "app"}] = 0.47
		}, "", ""},
		{"generator busy, but the service fills its CPUs", func(s *situation) {
			s.counters[[2]string{hakaru.CounterCPU, hakaru.OfGenerator}] = 0.48
			s.counters[[2]string{hakaru.CounterCPUs, hakaru.OfGenerator}] = 1
			s.counters[[2]string{hakaru.CounterCPU, "app"}] = 0.92
		}, "", ""},
		{"generator busy, but the service wanted the CPUs that they share", func(s *situation) {
			s.counters[[2]string{hakaru.CounterCPU, hakaru.OfGenerator}] = 0.4
			s.counters[[2]string{hakaru.CounterWait, hakaru.OfGenerator}] = 0.6
			s.counters[[2]string{hakaru.CounterCPU, "app"}] = 0.5
			s.counters[[2]string{hakaru.CounterWait, "app"}] = 0.5
			s.counters[[2]string{hakaru.CounterCPU, hakaru.OfHost}] = 0.95
			s.facts.Shared = true
		}, "", ""},
		{"threads of the service that wait for each other on an idle CPU are no limit", func(s *situation) {
			s.counters[[2]string{hakaru.CounterCPU, hakaru.OfGenerator}] = 0.1
			s.counters[[2]string{hakaru.CounterWait, hakaru.OfGenerator}] = 0.5
			s.counters[[2]string{hakaru.CounterCPUs, hakaru.OfGenerator}] = 1
			s.counters[[2]string{hakaru.CounterCPU, "app"}] = 0.2
			s.counters[[2]string{hakaru.CounterWait, "app"}] = 1.3
			s.counters[[2]string{hakaru.CounterCPUs, "app"}] = 1
			s.counters[[2]string{hakaru.CounterCPU, hakaru.OfHost}] = 0.7
		}, hakaru.VoidGenerator, "had to wait"},
		{"others took over half", func(s *situation) {
			s.counters[[2]string{hakaru.CounterCPU, hakaru.OfHost}] = 0.8
		}, hakaru.VoidOthers, "55 %"},
		{"others took half, but CPU per request is the goal", func(s *situation) {
			s.counters[[2]string{hakaru.CounterCPU, hakaru.OfHost}] = 0.8
			s.facts.Goal = hakaru.CPUPerRequest
		}, "", ""},
		{"throttled", func(s *situation) {
			s.counters[[2]string{hakaru.CounterThrottled, "app"}] = 0.05
		}, hakaru.VoidThrottled, "200 ms of 2 s"},
		{"a setting was not in force", func(s *situation) {
			s.proofs = []hakaru.Proof{{Setting: "processes", Asked: "4", Found: "1", Source: "GET /-/status", When: hakaru.AtReady, Holds: hakaru.No}}
		}, hakaru.VoidProof, "processes was not in force: asked for 4, found 1"},
		{"not proved is no failure", func(s *situation) {
			s.proofs = []hakaru.Proof{{Setting: "processes", Asked: "4", Holds: hakaru.NotProved}}
		}, "", ""},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			s := healthy()
			c.change(&s)
			void := Void(s.build())
			switch {
			case c.want == "" && void != nil:
				t.Fatalf("void: %+v", void)
			case c.want == "":
				return
			case void == nil:
				t.Fatalf("counts, want void for %s", c.want)
			}
			if void.Reason != c.want || !strings.Contains(void.Evidence, c.says) {
				t.Errorf("got %s: %s\nwant %s with %q", void.Reason, void.Evidence, c.want, c.says)
			}
			if void.Hint == "" {
				t.Error("no word on what to do about it")
			}
		})
	}
}

func TestWarnings(t *testing.T) {
	cases := []struct {
		name   string
		change func(*situation)
		want   []string // codes
	}{
		{"healthy", func(*situation) {}, nil},
		{"generator near its limit", func(s *situation) {
			s.counters[[2]string{hakaru.CounterCPU, hakaru.OfGenerator}] = 0.41
			s.counters[[2]string{hakaru.CounterCPUs, hakaru.OfGenerator}] = 1
			s.counters[[2]string{hakaru.CounterCPU, hakaru.OfHost}] = 0.65
		}, []string{"generator_busy"}},
		{"others took a fifth, CPU per request is the goal", func(s *situation) {
			s.counters[[2]string{hakaru.CounterCPU, hakaru.OfHost}] = 0.45
			s.facts.Goal = hakaru.CPUPerRequest
		}, []string{"others_busy"}},
		{"shared and full", func(s *situation) {
			s.facts.Shared = true
			s.counters[[2]string{hakaru.CounterCPU, "app"}] = 0.8
			s.counters[[2]string{hakaru.CounterCPU, hakaru.OfHost}] = 0.9
		}, []string{"shared_cpus"}},
		{"shared and idle", func(s *situation) { s.facts.Shared = true }, nil},
		{"stolen", func(s *situation) {
			s.counters[[2]string{hakaru.CounterStolen, hakaru.OfHost}] = 0.1
		}, []string{"stolen_cpu"}},
		{"errors of the service", func(s *situation) {
			s.kinds = map[string]uint64{"server_error": 1}
		}, []string{"errors"}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			s := healthy()
			c.change(&s)
			var codes []string
			for _, w := range Warnings(s.build()) {
				codes = append(codes, w.Code)
			}
			if strings.Join(codes, " ") != strings.Join(c.want, " ") {
				t.Errorf("got %v, want %v", codes, c.want)
			}
		})
	}
}
