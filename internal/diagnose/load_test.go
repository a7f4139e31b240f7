package diagnose

import (
	"strings"
	"testing"
	"time"

	"hakaru"
	"hakaru/internal/latency"
)

// times encodes a histogram: each duration so many times.
func times(t *testing.T, counts map[time.Duration]int) []byte {
	t.Helper()
	var h latency.Histogram
	for d, n := range counts {
		for range n {
			h.Record(d)
		}
	}
	b, err := h.Encode()
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// soundLoad is a closed loop of 8 connections over 10 s, of which there is nothing to
// doubt: 8 requests of 10 ms are under way at any time.
func soundLoad(t *testing.T) LoadFacts {
	return LoadFacts{Connections: 8, Address: "localhost:80", Tally: &hakaru.Tally{
		Took: 10 * time.Second, Good: 8000, Engine: "epoll", Threads: 2, CPUs: 2, CPU: 4,
		Latency: times(t, map[time.Duration]int{10 * ms: 8000}), Service: times(t, map[time.Duration]int{10 * ms: 8000}),
		Connect: times(t, map[time.Duration]int{ms: 8}),
	}}
}

func TestLoad(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(f *LoadFacts)
		code   string // empty: nothing is to be doubted
		words  string
	}{
		{"healthy", func(*LoadFacts) {}, "", ""},
		{"all CPUs", func(f *LoadFacts) { f.Tally.CPU = 19 }, "generator_busy", "used 95 % of its 2 CPUs"},
		{"one thread of it", func(f *LoadFacts) { f.Tally.CPU, f.Tally.Threads = 9.8, 1 }, "generator_busy", "used 98 % of what its thread can use: the figures may be its own limit and not the service's; send from more threads: --threads 2"},
		{"goroutines go anywhere", func(f *LoadFacts) { f.Tally.CPU, f.Tally.Threads, f.Tally.Engine = 9.8, 1, "goroutines" }, "", ""},
		{"kept from the CPU", func(f *LoadFacts) { f.Tally.CPU, f.Tally.Waited = 8, 10 }, "generator_busy", "waited for a CPU much of the rest"},
		{"spins on purpose", func(f *LoadFacts) { f.Tally.CPU, f.Precise = 19, true }, "", ""},
		{"slack of a closed loop", func(f *LoadFacts) { f.Connections = 16 }, "generator_slow", "only 50 % of the connections"},
		{"slack behind errors", func(f *LoadFacts) { f.Connections, f.Tally.Bad = 16, 1 }, "", ""},
		{"own errors", func(f *LoadFacts) { f.Tally.Bad, f.Tally.Kinds = 3, map[string]uint64{"load_ports": 3} }, "load_errors", "3 load ports are this machine's doing and not the service's; it ran out of local ports"},
		{"few", func(f *LoadFacts) { f.Tally.Good = 50 }, "few_answers", "only 50 good answers"},
		{"two addresses", func(f *LoadFacts) {
			f.Tally.Resolved, f.Tally.Address = []string{"[::1]:80", "127.0.0.1:80"}, "127.0.0.1:80"
		}, "several_addresses", "the name of localhost:80 stands for [::1]:80 and 127.0.0.1:80, and the load went to 127.0.0.1:80 only"},
		{"full accept queue", func(f *LoadFacts) {
			f.Tally.Connect = times(t, map[time.Duration]int{ms: 50, 1015 * ms: 9, 3050 * ms: 3, 7080 * ms: 2})
		}, "lost_syns", "14 of 64 connections took just over a whole second"},
		{"slow to connect for another reason", func(f *LoadFacts) {
			f.Tally.Connect = times(t, map[time.Duration]int{ms: 50, 1015 * ms: 2, 1500 * ms: 9, 2700 * ms: 3})
		}, "", ""},
		{"far away", func(f *LoadFacts) { f.Tally.Connect = times(t, map[time.Duration]int{1050 * ms: 64}) }, "", ""},
		{"delayed acknowledgements", func(f *LoadFacts) {
			f.Tally.Service = times(t, map[time.Duration]int{ms: 7000, 41 * ms: 990, 43 * ms: 10})
		}, "delayed_ack", "12.5 % of the answers took between 38 ms and 45 ms"},
		{"a long tail across 40 ms", func(f *LoadFacts) {
			f.Tally.Service = times(t, map[time.Duration]int{ms: 7000, 25 * ms: 300, 30 * ms: 300, 41 * ms: 300, 60 * ms: 100})
		}, "", ""},
		{"a redirect", func(f *LoadFacts) {
			f.Tally.Kinds, f.Tally.Bad, f.Tally.Statuses = map[string]uint64{"wrong_status": 5}, 5, map[int]uint64{301: 5}
		}, "redirect", "--status 301"},
		{"open loop, late by itself", func(f *LoadFacts) { f.Open, f.Tally.Own = true, times(t, map[time.Duration]int{8 * ms: 8000}) },
			"generator_late", "50 % of the answers came within 10 ms of when they were due, and would have within 8 ms had it sent in time"},
		{"open loop, in time", func(f *LoadFacts) {
			f.Open, f.Tally.Own = true, times(t, map[time.Duration]int{10*ms - 50*time.Microsecond: 8000})
		}, "", ""},
		{"open loop, requests wait", func(f *LoadFacts) {
			f.Open, f.Tally.Lag, f.Tally.Queued = true, times(t, map[time.Duration]int{50 * time.Microsecond: 8000}), 800
			f.Tally.Latency = times(t, map[time.Duration]int{10 * ms: 7200, 90 * ms: 800})
		}, "queued", "800 requests (10 % of them) were due when all 8 connections were in use, and waited: p99 is 90 ms from when due and 10 ms from the send"},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := soundLoad(t)
			c.change(&f)
			got, err := Load(f)
			if err != nil {
				t.Fatal(err)
			}
			switch {
			case c.code == "" && len(got) > 0:
				t.Errorf("doubts %v, want none", got)
			case c.code != "" && (len(got) != 1 || got[0].Code != c.code || !strings.Contains(got[0].Message, c.words)):
				t.Errorf("doubts %v, want %s with %q alone", got, c.code, c.words)
			}
		})
	}
}

func TestLoadOfBrokenHistogram(t *testing.T) {
	f := soundLoad(t)
	f.Tally.Connect = []byte("no histogram")
	if _, err := Load(f); err == nil || !strings.Contains(err.Error(), "connect times of a load") {
		t.Errorf("error %v", err)
	}
}
