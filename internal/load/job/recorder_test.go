package job

import (
	"sync"
	"testing"
	"time"

	"hakaru/internal/latency"
)

const ms = time.Millisecond

// A plain answer is in one place, and the figures that it has beside are put
// together from there; what is not plain is told apart.
func TestRecorder(t *testing.T) {
	r := NewRecorder(1, 500*ms, time.Second)
	s := r.Shard(0)
	answers := []Answer{
		{Due: 100 * ms, Sent: 100 * ms, First: 110 * ms, Done: 110 * ms, Status: 200, Bytes: 7}, // warm-up
		{Due: 600 * ms, Sent: 600 * ms, First: 610 * ms, Done: 610 * ms, Status: 200, Bytes: 10},
		{Due: 600 * ms, Sent: 620 * ms, First: 625 * ms, Done: 640 * ms, Status: 204, Bytes: 20},
	}
	for i := range answers {
		s.Good(&answers[i])
	}
	s.Wrong(&Answer{Due: 700 * ms, Sent: 700 * ms, First: 703 * ms, Done: 703 * ms, Status: 404, Bytes: 5}, WrongStatus)
	s.Failed(700*ms, 750*ms, Reset)
	s.Failed(100*ms, 400*ms, TimedOut) // warm-up
	s.Sent(600*ms, 550*ms, 602*ms)     // due when a connection was free
	s.Sent(600*ms, 615*ms, 616*ms)     // had to wait for one
	s.Connected(2 * ms)

	var first, second Drained
	r.Drain(0, &first)
	r.Drain(1, &second)
	if first.Latency().Count() != 1 || first.Bad != 1 || first.Kinds["timeout"] != 1 {
		t.Errorf("first bucket: %d good, %v", first.Latency().Count(), first.Kinds)
	}
	if second.Plain.Count() != 1 || second.Other.Count() != 1 || second.Bad != 2 || second.Kinds["reset"] != 1 || second.Kinds["wrong_status"] != 1 {
		t.Errorf("second bucket: %d plain, %d other, %v", second.Plain.Count(), second.Other.Count(), second.Kinds)
	}
	var again Drained
	if r.DrainAll(&again); again.Latency().Count() != 0 || again.Bad != 0 {
		t.Errorf("drained twice: %d, %d", again.Latency().Count(), again.Bad)
	}

	rest := r.Rest()
	for name, c := range map[string]struct {
		h         *latency.Histogram
		count     uint64
		low, high time.Duration
	}{
		"latency": {second.Latency(), 2, 10 * ms, 40 * ms},
		"service": {&rest.Service, 1, 20 * ms, 20 * ms},
		"waiting": {&rest.Waiting, 1, 5 * ms, 5 * ms},
		"bad":     {&rest.Bad, 2, 3 * ms, 50 * ms},
		"lag":     {&rest.Lag, 2, 1 * ms, 2 * ms},
		"connect": {&rest.Connect, 1, 2 * ms, 2 * ms},
	} {
		near := func(got, want time.Duration) bool { return (got - want).Abs() <= want/1000 }
		if c.h.Count() != c.count || !near(c.h.Quantile(0), c.low) || !near(c.h.Max(), c.high) {
			t.Errorf("%s: %d from %v to %v, want %d from %v to %v", name, c.h.Count(), c.h.Quantile(0), c.h.Max(), c.count, c.low, c.high)
		}
	}
	if rest.Bytes != 35 || rest.Statuses[200] != 1 || rest.Statuses[204] != 1 || rest.Statuses[404] != 1 || rest.Queued != 1 || rest.Begun != 2 {
		t.Errorf("rest %+v", rest)
	}
}

// Nothing is lost or counted twice while several record and one drains.
func TestRecorderConserves(t *testing.T) {
	const threads, each = 3, 20_000
	r := NewRecorder(threads, 0, time.Hour)
	var recording sync.WaitGroup
	for i := range threads {
		recording.Go(func() {
			s := r.Shard(i)
			for n := range each {
				at := time.Duration(n) * 10 * time.Microsecond // less than a bucket in all
				s.Good(&Answer{Due: at, Sent: at, First: at + ms, Done: at + ms, Status: 200, Bytes: 1})
			}
		})
	}
	var d Drained
	for range 20 {
		r.Drain(0, &d)
	}
	recording.Wait()
	r.DrainAll(&d)
	if got := d.Latency().Count(); got != threads*each {
		t.Errorf("%d answers, want %d", got, threads*each)
	}
	if rest := r.Rest(); rest.Bytes != threads*each || rest.Statuses[200] != threads*each {
		t.Errorf("%d bytes, %d of status 200", rest.Bytes, rest.Statuses[200])
	}
}

func TestRecordingDoesNotAllocate(t *testing.T) {
	r := NewRecorder(1, 0, time.Hour)
	s := r.Shard(0)
	if n := testing.AllocsPerRun(1000, func() {
		s.Sent(ms, 0, 2*ms)
		s.Good(&Answer{Due: ms, Sent: 2 * ms, First: 3 * ms, Done: 4 * ms, Status: 200, Bytes: 100})
		s.Good(&Answer{Due: ms, Sent: ms, First: 4 * ms, Done: 4 * ms, Status: 200, Bytes: 100})
		s.Failed(ms, 2*ms, Reset)
		s.Connected(ms)
	}); n != 0 {
		t.Errorf("%g allocations, want 0", n)
	}
}

func TestBudget(t *testing.T) {
	b := NewBudget(3)
	taken := 0
	for range 10 {
		if b.Take() {
			taken++
		}
	}
	if taken != 3 || !(*Budget)(nil).Take() {
		t.Errorf("%d taken of 3; a budget that is none: %v", taken, (*Budget)(nil).Take())
	}
}
