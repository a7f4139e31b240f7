package goroutines

import (
	"context"
	"net"
	"testing"
	"time"

	"hakaru"
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
	}, 0)
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
			began, _, again = w.once(t.Context(), began)
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
		began, _, _ = w.once(b.Context(), began)
	}
}
