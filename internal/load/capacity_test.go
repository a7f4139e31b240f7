package load

import (
	"context"
	"errors"
	"math"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"hakaru"
	"hakaru/internal/condition"
	"hakaru/internal/latency"
	"hakaru/internal/load/goroutines"
)

// law is a service on paper: requests take each, of good ones most come a second,
// and what is more than that waits. Loads of it take the bubble's time.
type law struct {
	most float64
	each time.Duration
	// backlog is what requests that are not answered yet add to the next one.
	backlog time.Duration
	cpu     float64 // CPU seconds of the generator, a second at the highest rate
	loads   []string
	windows []hakaru.Window
	fails   func(n int) error
}

func (l *law) send(ctx context.Context, req hakaru.HTTPRequest, w hakaru.Window, emit func(hakaru.Bucket)) (hakaru.LoadReport, error) {
	n := len(l.loads)
	name := "closed"
	rate := l.most
	switch {
	case req.Requests == 1:
		name = "probe"
	case req.Arrival != nil:
		name, rate = "open", req.Arrival.Rate
	}
	l.loads, l.windows = append(l.loads, name), append(l.windows, w)
	if l.fails != nil {
		if err := l.fails(n); err != nil {
			return hakaru.LoadReport{}, err
		}
	}
	if name == "probe" {
		took := l.each + l.backlog
		time.Sleep(took)
		l.backlog = max(0, l.backlog-took-100*time.Millisecond)
		return hakaru.LoadReport{Tally: &hakaru.Tally{Took: took, Good: 1, Latency: encoded(took)}}, nil
	}
	time.Sleep(time.Until(w.Start))
	counters := []hakaru.Counter{{Name: hakaru.CounterCPU, Of: hakaru.OfGenerator}}
	done := min(rate, l.most)
	for at := time.Duration(0); at < w.Total(); at += hakaru.BucketWidth {
		time.Sleep(hakaru.BucketWidth)
		emit(hakaru.Bucket{At: at, Good: uint64(done * hakaru.BucketWidth.Seconds())})
	}
	seconds := w.Length.Seconds()
	took := l.each
	if rate > l.most {
		l.backlog = time.Duration((rate/l.most - 1) * float64(w.Total()))
		took += l.backlog
	}
	t := &hakaru.Tally{
		Took: w.Length, Good: uint64(done * seconds), Due: uint64(rate * seconds),
		Latency: encoded(took), Service: encoded(l.each), CPU: l.cpu * rate / l.most * seconds, CPUs: 1,
	}
	if rate > l.most {
		t.Queued = t.Due
	}
	return hakaru.LoadReport{Counters: counters, Connections: req.Connections, Tally: t}, nil
}

func encoded(d time.Duration) []byte {
	var h latency.Histogram
	h.Record(d)
	b, err := h.Encode()
	if err != nil {
		panic(err)
	}
	return b
}

func searchFor(t *testing.T, text string, steps int) hakaru.CapacitySpec {
	t.Helper()
	holds, err := condition.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return hakaru.CapacitySpec{Holds: holds, Steps: steps, Settle: 500 * time.Millisecond, Step: time.Second}
}

// contiguous checks that buckets follow one another without a gap.
func contiguous(t *testing.T, buckets []hakaru.Bucket) {
	t.Helper()
	for i, b := range buckets {
		if b.At != time.Duration(i)*hakaru.BucketWidth {
			t.Fatalf("bucket %d is at %v", i, b.At)
		}
	}
}

func TestSearchOfALaw(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &law{most: 1000, each: 10 * time.Millisecond}
		spec := searchFor(t, "p99<50ms", 20)
		start := time.Now().Add(time.Second)
		w := hakaru.Window{Start: start, WarmUp: 2 * time.Second, Length: 2 * time.Minute}
		var told []hakaru.CapacityStep
		var emitted int
		report, err := findCapacity(t.Context(), plainRequest(64), spec, w, func(b hakaru.Bucket) {
			emitted++
			if late := time.Since(start) - b.At - hakaru.BucketWidth; late < -lead(64) || late > 4*time.Second {
				t.Errorf("bucket at %v was emitted %v after its end", b.At, late)
			}
		}, func(s hakaru.CapacityStep) { told = append(told, s) }, l.send)
		if err != nil {
			t.Fatal(err)
		}
		c := report.Capacity
		if c.Low > 1000 || c.High < 1000 || math.Abs(c.Value-1000) > 40 || c.Reached != "" {
			t.Errorf("%g in %g to %g (%s), want 1000", c.Value, c.Low, c.High, c.Reached)
		}
		if len(told) != len(c.Steps) || len(told) < 5 || told[0].Rate != 700 {
			t.Errorf("%d steps told, the first at %g, %d reported", len(told), told[0].Rate, len(c.Steps))
		}
		contiguous(t, report.Buckets)
		if emitted != len(report.Buckets) || len(report.Buckets) > int(w.Total()/hakaru.BucketWidth) {
			t.Errorf("%d buckets emitted, %d reported", emitted, len(report.Buckets))
		}
		if got := l.windows[0]; l.loads[0] != "closed" || !got.Start.Equal(start) || got.WarmUp != 2*time.Second {
			t.Errorf("the first load is %s in %+v, want a closed one at the start with the whole warm-up", l.loads[0], got)
		}
		var good uint64
		for i, w := range l.windows {
			if l.loads[i] == "open" && (w.Start.Sub(start)%hakaru.BucketWidth != 0 || w.WarmUp != spec.Settle || w.Length != spec.Step) {
				t.Errorf("load %d in %+v, %v after the start: want it on a boundary", i, w, w.Start.Sub(start))
			}
		}
		for _, b := range report.Buckets {
			good += b.Good
		}
		if good == 0 || report.Tally == nil || report.Connections != 64 {
			t.Errorf("%d good answers, tally %v, %d connections", good, report.Tally, report.Connections)
		}
		if rate := float64(report.Tally.Due); rate > c.Value*1.001 || rate < c.Value*0.9 {
			t.Errorf("the tally is of %g/s, want the highest that held below %g", rate, c.Value)
		}
		// All were queued, and the service took as long as ever.
		if len(report.Warnings) != 1 || report.Warnings[0].Code != "connections_in_use" {
			t.Errorf("warnings %v", report.Warnings)
		}
		if n := strings.Count(strings.Join(l.loads, " "), "probe"); n < 2 {
			t.Errorf("%d single requests, want one before the first step and some after rates that were too high", n)
		}
	})
}

func TestSearchEnds(t *testing.T) {
	for _, c := range []struct {
		name    string
		law     law
		holds   string
		from    float64
		steps   int
		length  time.Duration
		value   [2]float64
		reached string // contains
		most    int    // steps run
	}{
		{"steps used up", law{most: 1000, each: time.Millisecond}, "p99<50ms", 0, 3, time.Hour, [2]float64{700, 1300}, "", 3},
		{"time used up", law{most: 1000, each: time.Millisecond}, "p99<50ms", 0, 30, 12 * time.Second, [2]float64{700, 1300}, "", 5},
		{"no time for a step", law{most: 1000, each: time.Millisecond}, "p99<50ms", 0, 30, 3 * time.Second, [2]float64{0, 0}, "", 0},
		{"no end", law{most: 1000, each: time.Millisecond}, "p99<50ms", 0, 20, 0, [2]float64{960, 1040}, "", 20},
		{"nothing holds", law{most: 1000, each: 60 * time.Millisecond}, "p99<50ms", 0, 20, time.Hour, [2]float64{0, 0}, "", 5},
		{"from a rate", law{most: 1000, each: time.Millisecond}, "p99<50ms", 100, 30, time.Hour, [2]float64{960, 1040}, "", 30},
		{"all that is offered holds", law{most: 1e9, each: time.Millisecond}, "p99<50ms", 100, 4, time.Hour, [2]float64{800, 800}, "no rate that was offered was too high", 4},
		{"a generator at its limit", law{most: 1000, each: time.Millisecond, cpu: 0.99}, "p99<50ms", 0, 30, time.Hour, [2]float64{900, 1010}, "its limit: the load generator used", 30},
		{"a service that is not there", law{most: 0, each: time.Millisecond}, "p99<50ms", 0, 30, time.Hour, [2]float64{0, 0}, "", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				spec := searchFor(t, c.holds, c.steps)
				spec.From = c.from
				w := hakaru.Window{Length: c.length}
				began := time.Now()
				report, err := findCapacity(t.Context(), plainRequest(4), spec, w, nil, nil, c.law.send)
				if err != nil {
					t.Fatal(err)
				}
				got := report.Capacity
				if got.Value < c.value[0] || got.Value > c.value[1] || !strings.Contains(got.Reached, c.reached) || (got.Reached == "") != (c.reached == "") {
					t.Errorf("%g in %g to %g (%s), want %v (%s)", got.Value, got.Low, got.High, got.Reached, c.value, c.reached)
				}
				if len(got.Steps) > c.most {
					t.Errorf("%d steps, want at most %d", len(got.Steps), c.most)
				}
				if took := time.Since(began); c.length > 0 && took > c.length {
					t.Errorf("it took %v, want at most %v", took, c.length)
				}
				contiguous(t, report.Buckets)
			})
		})
	}
}

func TestSearchIsCutOff(t *testing.T) {
	gone := errors.New("the network is gone")
	for _, c := range []struct {
		name  string
		fails func(n int) error
		err   string // empty: none
		void  int    // steps that do not count
	}{
		{"at once", func(int) error { return gone }, "the network is gone", 0},
		{"later", func(n int) error {
			if n == 6 {
				return gone
			}
			return nil
		}, "the network is gone", 0},
		{"late at once", func(int) error { return &LateError{Late: time.Second} }, "the window began", 0},
		{"late once", func(n int) error {
			if n == 3 {
				return &LateError{Late: time.Second}
			}
			return nil
		}, "", 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := &law{most: 1000, each: time.Millisecond, fails: c.fails}
				report, err := findCapacity(t.Context(), plainRequest(4), searchFor(t, "p99<50ms", 20), hakaru.Window{}, nil, nil, l.send)
				if (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
					t.Errorf("error %v, want %q", err, c.err)
				}
				void := 0
				for _, s := range report.Capacity.Steps {
					if s.Void != "" {
						void++
					}
				}
				if void != c.void {
					t.Errorf("%d steps do not count, want %d", void, c.void)
				}
				contiguous(t, report.Buckets)
			})
		})
	}
	t.Run("by its context", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancelCause(t.Context())
			l := &law{most: 1000, each: time.Millisecond}
			steps := 0
			report, err := findCapacity(ctx, plainRequest(4), searchFor(t, "p99<50ms", 20), hakaru.Window{}, nil, func(hakaru.CapacityStep) {
				if steps++; steps == 3 {
					cancel(gone)
				}
			}, l.send)
			if !errors.Is(err, gone) || len(report.Capacity.Steps) != 3 || report.Capacity.Value == 0 {
				t.Errorf("error %v after %d steps, capacity %g", err, len(report.Capacity.Steps), report.Capacity.Value)
			}
		})
	})
	if _, err := FindCapacity(t.Context(), plainRequest(1), hakaru.CapacitySpec{}, hakaru.Window{}, nil, nil); err == nil {
		t.Error("no conditions: no error")
	}
}

// Workers that each take so long for a request answer workers/each a second, and that
// is what the search finds, through the engine: constant arrivals to constant service
// times have no queue below it and a growing one above.
func TestSearchOfAService(t *testing.T) {
	const workers, each = 4, 10 * time.Millisecond
	for _, c := range []struct {
		name        string
		connections int
		text        string
		truth       float64
		warning     string
	}{
		{"latency", 32, "p99<100ms", workers / each.Seconds(), ""},
		{"few connections", 3, "p99<100ms", 3 / each.Seconds(), "connections_in_use"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				slots := make(chan struct{}, workers)
				p := &pipes{serve: func(n int, conn net.Conn) {
					eachRequest(conn, func() bool {
						slots <- struct{}{}
						time.Sleep(each)
						<-slots
						return say(conn, hello)
					})
				}}
				spec := searchFor(t, c.text, 14)
				spec.Step = 4 * time.Second
				report, err := findCapacity(t.Context(), plainRequest(c.connections), spec, hakaru.Window{}, nil, nil,
					func(ctx context.Context, req hakaru.HTTPRequest, w hakaru.Window, emit func(hakaru.Bucket)) (hakaru.LoadReport, error) {
						return run(ctx, req, w, emit, goroutines.Engine{}, p.dial)
					})
				if err != nil {
					t.Fatal(err)
				}
				p.serving.Wait()
				found := report.Capacity
				if found.Low > c.truth*1.03 || found.High < c.truth || math.Abs(found.Value/c.truth-1) > 0.03 {
					t.Errorf("%g in %g to %g, want %g", found.Value, found.Low, found.High, c.truth)
					for _, s := range found.Steps {
						t.Logf("%g/s: %g/s, holds %v %s%s", s.Rate, s.Achieved, s.Holds, s.Why, s.Void)
					}
				}
				warned := ""
				for _, w := range report.Warnings {
					warned = w.Code
				}
				if warned != c.warning {
					t.Errorf("warnings %v, want %q", report.Warnings, c.warning)
				}
				contiguous(t, report.Buckets)
			})
		})
	}
}

// A service of so many workers, over sockets, with the engine that fits: sleeps are never shorter than they
// are asked for, so that the law is the most there can be on any machine.
func TestSearchOverSockets(t *testing.T) {
	const workers, each = 2, 20 * time.Millisecond
	const most = workers / 0.020
	slots := make(chan struct{}, workers)
	l := listen(t, "tcp", "127.0.0.1:0", func(_ int, c net.Conn) {
		eachRequest(c, func() bool {
			slots <- struct{}{}
			time.Sleep(each)
			<-slots
			return say(c, hello)
		})
	})
	spec := searchFor(t, "p99<400ms", 5)
	spec.Settle, spec.Step = 0, hakaru.BucketWidth
	req := plainRequest(8)
	req.URL = "http://" + l.Addr().String() + "/"
	steps := 0
	report, err := FindCapacity(t.Context(), req, spec, hakaru.Window{Length: time.Minute}, nil, func(hakaru.CapacityStep) { steps++ })
	if err != nil {
		t.Fatal(err)
	}
	found := report.Capacity
	if found.Value <= 0 || found.Low > most*1.02 || steps != len(found.Steps) || steps == 0 {
		t.Errorf("%g in %g to %g after %d steps, want at most %g", found.Value, found.Low, found.High, steps, most)
		for _, s := range found.Steps {
			t.Logf("%g/s: %g/s, holds %v %s%s", s.Rate, s.Achieved, s.Holds, s.Why, s.Void)
		}
	}
	for _, s := range found.Steps {
		if s.Holds && s.Rate > most*1.1 {
			t.Errorf("%g/s held, which is beyond the law's %g/s", s.Rate, float64(most))
		}
	}
	contiguous(t, report.Buckets)
	if len(report.Counters) == 0 || len(report.Buckets[0].Counters) != len(report.Counters) || len(report.Samples) > 0 {
		t.Errorf("columns %v, samples %v", report.Counters, report.Samples)
	}
	for i, b := range report.Buckets {
		if len(b.Counters) != len(report.Counters) {
			t.Errorf("bucket %d has %d counters of %d", i, len(b.Counters), len(report.Counters))
		}
	}
}
