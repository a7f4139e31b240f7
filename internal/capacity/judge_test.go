package capacity

import (
	"math"
	"strings"
	"testing"
	"time"

	"hakaru"
	"hakaru/internal/condition"
	"hakaru/internal/latency"
)

func histogram(t *testing.T, of ...time.Duration) []byte {
	t.Helper()
	var h latency.Histogram
	for _, d := range of {
		h.Record(d)
	}
	encoded, err := h.Encode()
	if err != nil {
		t.Fatal(err)
	}
	return encoded
}

func TestJudge(t *testing.T) {
	const ms = time.Millisecond
	fast, slow := histogram(t, 10*ms), histogram(t, 80*ms)
	ports := map[string]uint64{string(hakaru.LoadPorts): 5}
	for _, c := range []struct {
		name  string
		holds string
		tally hakaru.Tally // of 2 s at 1000/s, 2 CPUs
		spins bool
		want  bool
		why   string // contains; of Why or Void
		void  bool
	}{
		{"holds", "p99<50ms", hakaru.Tally{Good: 2000, Due: 2000, Latency: fast}, false, true, "", false},
		{"too slow", "p99<50ms", hakaru.Tally{Good: 2000, Due: 2000, Latency: slow}, false, false, "p99 80 ms, want below 50 ms", false},
		{"not reached", "p99<50ms", hakaru.Tally{Good: 1900, Due: 2000, Latency: fast, Service: fast}, false, false, "950/s of 1000/s were answered", false},
		{"nearly reached", "p99<50ms", hakaru.Tally{Good: 1985, Due: 2000, Latency: fast, Service: fast}, false, true, "", false},
		{"both", "p99<50ms", hakaru.Tally{Good: 1900, Due: 2000, Latency: slow}, false, false, "below 50 ms; 950/s of", false},
		{"many are out at once", "p99<5s", hakaru.Tally{Good: 1930, Due: 2000, Latency: histogram(t, time.Second), Service: histogram(t, time.Second)}, false, true, "", false},
		{"few requests", "p99<50ms", hakaru.Tally{Good: 9, Due: 11, Latency: fast}, false, true, "", false},
		{"errors though none was said", "p99<50ms", hakaru.Tally{Good: 1950, Bad: 50, Due: 2000, Latency: fast}, false, false, "errors 2.5 %, want below 1 %", false},
		{"as many errors as said", "p99<50ms,errors<5%", hakaru.Tally{Good: 1950, Bad: 50, Due: 2000, Latency: fast}, false, true, "", false},
		{"nothing is answered", "p99<50ms", hakaru.Tally{Due: 2000}, false, false, "no good answer", false},
		{"the load host's errors", "p99<50ms", hakaru.Tally{Good: 1995, Bad: 5, Kinds: ports, Due: 2000, Latency: fast}, false, false, "5 requests went wrong by the load host's own doing: load_ports", true},
		{"holds in spite of it", "p99<50ms", hakaru.Tally{Good: 2000, Due: 2000, Latency: fast, CPU: 3.9}, false, true, "", false},
		{"a busy generator", "p99<50ms", hakaru.Tally{Good: 1500, Due: 2000, Latency: slow, CPU: 3.7}, false, false, "used 92.5 % of its 2 CPUs", true},
		{"that is always busy", "p99<50ms", hakaru.Tally{Good: 1500, Due: 2000, Latency: slow, CPU: 3.7}, true, false, "750/s of 1000/s", false},
		{"of one thread", "p99<50ms", hakaru.Tally{Good: 1500, Due: 2000, Latency: slow, CPU: 1.9, Engine: "epoll", Threads: 1}, false, false, "used 95 % of its 1 thread", true},
		{"busy, and errors of the service", "p99<50ms", hakaru.Tally{Good: 1500, Bad: 500, Due: 2000, Latency: slow, CPU: 3.7}, false, false, "errors 25 %", false},
		{"late by what is too much", "p99<75ms", hakaru.Tally{Good: 2000, Due: 2000, Latency: slow, Own: histogram(t, 71*ms)}, false, false, "itself sent 8.98", true},
		{"late, and too slow without that", "p99<50ms", hakaru.Tally{Good: 2000, Due: 2000, Latency: slow, Own: histogram(t, 71*ms)}, false, false, "p99 80 ms", false},
		{"late, and so not reached", "p99<500ms", hakaru.Tally{Good: 1500, Due: 2000, Latency: slow, Own: histogram(t, 20*ms)}, false, false, "itself sent 60", true},
		{"not late, and not reached", "p99<500ms", hakaru.Tally{Good: 1500, Due: 2000, Latency: slow, Own: histogram(t, 79*ms)}, false, false, "750/s of", false},
	} {
		holds, err := condition.Parse(c.holds)
		if err != nil {
			t.Fatal(err)
		}
		c.tally.Took, c.tally.CPUs = 2*time.Second, 2
		got := Judge(1000, holds, &c.tally, c.spins)
		if got.Holds != c.want || (got.Void != "") != c.void {
			t.Errorf("%s: holds %v (%s), void %q", c.name, got.Holds, got.Why, got.Void)
		}
		words := got.Why
		if c.void {
			words = got.Void
		}
		if !strings.Contains(words, c.why) || (words == "") != (c.why == "") {
			t.Errorf("%s: %q, want %q", c.name, words, c.why)
		}
		for text, v := range got.Values {
			if math.IsNaN(v) || !strings.Contains(c.holds, text) {
				t.Errorf("%s: %s is %g", c.name, text, v)
			}
		}
	}
	if got := Judge(0.4, nil, &hakaru.Tally{Took: 2 * time.Second}, false); !strings.Contains(got.Void, "longer steps") {
		t.Errorf("a step without requests: %+v, want void", got)
	}
	if got := Judge(1000, nil, &hakaru.Tally{}, false); got.Void == "" {
		t.Errorf("a step of no time: %+v, want void", got)
	}
}

func TestValid(t *testing.T) {
	for _, c := range []struct {
		name string
		text string
		spec hakaru.CapacitySpec
		err  string
	}{
		{"right", "p99<50ms,errors<1%", hakaru.CapacitySpec{Steps: 5, Step: time.Second}, ""},
		{"no condition", "", hakaru.CapacitySpec{Steps: 5, Step: time.Second}, "there are none"},
		{"a lower bound", "p99>50ms", hakaru.CapacitySpec{Steps: 5, Step: time.Second}, "p99>50ms: a capacity is"},
		{"throughput", "throughput>5/s", hakaru.CapacitySpec{Steps: 5, Step: time.Second}, "throughput>5/s: a capacity is"},
		{"no step", "p99<50ms", hakaru.CapacitySpec{Step: time.Second}, "0 steps of 1s"},
		{"no time", "p99<50ms", hakaru.CapacitySpec{Steps: 5}, "5 steps of 0s"},
	} {
		if c.text != "" {
			var err error
			if c.spec.Holds, err = condition.Parse(c.text); err != nil {
				t.Fatal(err)
			}
		}
		err := Valid(c.spec)
		if (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%s: %v, want %q", c.name, err, c.err)
		}
	}
}
