package goroutines

import (
	"context"
	"net"
	"sync"
	"testing"
	"time"

	"hakaru"
	"hakaru/internal/arrival"
	"hakaru/internal/endpoint"
	"hakaru/internal/http1"
	"hakaru/internal/load/job"
)

// canned answers every request with the same bytes, out of memory.
type canned struct {
	net.Conn
	answer []byte
}

func (c *canned) Write(b []byte) (int, error) { return len(b), nil }
func (c *canned) Read(b []byte) (int, error)  { return copy(b, c.answer), nil }
func (c *canned) Close() error                { return nil }

func cannedWorker(tb testing.TB, req hakaru.HTTPRequest, answer string) *worker {
	tb.Helper()
	req.Connections, req.KeepAlive = 1, true
	r, err := http1.Build(req, endpoint.Endpoint{Host: "service.test", URI: "/"})
	if err != nil {
		tb.Fatal(err)
	}
	return newWorker(&job.Job{
		Request:  r,
		Schedule: job.Schedule{Start: time.Now(), Total: time.Hour},
		To:       &job.Target{Dial: func(context.Context) (net.Conn, error) { return &canned{answer: []byte(answer)}, nil }},
		Rec:      job.NewRecorder(1, 0, time.Hour),
	}, 0, nil)
}

func TestARequestDoesNotAllocate(t *testing.T) {
	for _, c := range []struct {
		name   string
		req    hakaru.HTTPRequest
		answer string
	}{
		{"plain", hakaru.HTTPRequest{}, hello},
		{"text expected", hakaru.HTTPRequest{Expect: "ell"}, hello},
		{"chunked", hakaru.HTTPRequest{Expect: "ell"}, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhe\r\n3\r\nllo\r\n0\r\n\r\n"},
	} {
		w := cannedWorker(t, c.req, c.answer)
		began, again := w.Now(), true
		request := func() {
			w.since.Store(int64(began))
			began, _, again = w.once(t.Context(), began, began)
		}
		request() // connects
		if n := testing.AllocsPerRun(1000, request); n != 0 || !again {
			t.Errorf("%s: %g allocations per request (going on: %v), want 0", c.name, n, again)
		}
		var d job.Drained
		if w.Rec.DrainAll(&d); d.Bad != 0 || d.Latency().Count() < 1000 {
			t.Errorf("%s: %d recorded, bad ones %v", c.name, d.Latency().Count(), d.Kinds)
		}
	}
}

func BenchmarkWorker(b *testing.B) {
	w := cannedWorker(b, hakaru.HTTPRequest{}, hello)
	began := w.Now()
	b.ReportAllocs()
	for b.Loop() {
		w.since.Store(int64(began))
		began, _, _ = w.once(b.Context(), began, began)
	}
}

// Neither does one of an open loop, whether it is due when it is taken or has to be
// waited for, in memory (by the runtime's timer) or not (by the kernel's).
func TestARequestOfAnOpenLoopDoesNotAllocate(t *testing.T) {
	for _, c := range []struct {
		name string
		rate float64
		dial bool // the alarm is of a load in memory
	}{
		{"all are late", 1e12, true},
		{"the runtime's timer", 50_000, true},
		{"the kernel's timer", 50_000, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := cannedWorker(t, hakaru.HTTPRequest{}, hello)
			w.Connections = 1
			w.Law = func() arrival.Law {
				law, err := arrival.Constant(c.rate)
				if err != nil {
					t.Fatal(err)
				}
				return law
			}
			w = newWorker(w.Job, 0, newSchedule(w.Job))
			ctx, cancel := context.WithCancel(t.Context())
			alarmFor := w.To
			if !c.dial {
				alarmFor = &job.Target{}
			}
			var pacing sync.WaitGroup
			pacing.Go(func() { w.shared.pace(ctx, newAlarm(alarmFor)) })
			defer pacing.Wait()
			defer cancel()
			free, again := time.Duration(0), true
			request := func() {
				due, began, more := w.next(ctx, free)
				w.since.Store(int64(began))
				free, _, again = w.once(ctx, due, began)
				again = again && more
			}
			for range 100 { // connects, and the poller learns of the timer
				request()
			}
			if n := testing.AllocsPerRun(1000, request); n != 0 || !again {
				t.Errorf("%g allocations per request (going on: %v), want 0", n, again)
			}
			rest := w.Rec.Rest()
			if n := rest.Lag.Count(); n != 1101 {
				t.Errorf("%d send lags, want one for each of 1101 requests", n)
			}
		})
	}
}
