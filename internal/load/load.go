// Package load sends requests to a service and reports what came back, bucket
// by bucket.
//
// It takes one rendered request, a number of connections and a window, and
// gives good and bad answers, their kinds and their service times in buckets of
// half a second, with what the generator itself cost in CPU. The loop is
// closed: each connection sends its next request when the last one is answered,
// so that the figures answer for capacity, and the latency is the service time
// of that loop, not what a visitor at a fixed rate would see.
//
// It opens connections before the window's start and sends nothing before it
// and nothing after its end. It does not judge the figures, choose the load,
// find leases or pin itself to CPUs, and speaks HTTP/1.1 without TLS only.
package load

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"time"

	"hakaru"
	"hakaru/internal/endpoint"
	"hakaru/internal/latency"
)

// DefaultTimeout is how long one request may take where nothing else is said.
const DefaultTimeout = 10 * time.Second

const (
	// lastAnswers is how long requests that are out at the end of the window
	// may take before their connections are closed. They count in no bucket.
	lastAnswers = time.Second
	// grace is how long after a bucket's end it is drained: a connection that
	// was stopped between its clock and its counter has come on by then.
	grace = 10 * time.Millisecond
	// lateness is how far past the start a load without warm-up may begin.
	lateness = hakaru.BucketWidth / 10
)

// HTTP sends the request over req.Connections connections, from w.Start (now
// where it is zero) for w.Total(). Names in req are already replaced; for the
// forms of its URL see package endpoint.
//
// An answer belongs to the bucket in which it was complete. Its service time
// runs from the first thing done for it: the send, or the connect where it
// needed a new connection (always without keep-alive). An answer later than
// req.Timeout is TimedOut. Where the service closed a kept connection before
// the first byte of an answer, an idempotent request is sent once more on a new
// one (RFC 9112 §9.3.1) and counted as retried, not as bad. After a connection
// that could not be opened the next attempt waits 5 ms, doubling to 160 ms, so
// that a dead service does not make a million errors a second.
//
// emit, where given, is called for each bucket in order, shortly after its end,
// for the last one when the answers that were out are in (up to a second); it
// must not block for long. When ctx ends, the whole buckets so far are
// reported beside the error.
func HTTP(ctx context.Context, req hakaru.HTTPRequest, w hakaru.Window, emit func(hakaru.Bucket)) (hakaru.LoadReport, error) {
	report, err := runHTTP(ctx, req, w, emit, goroutines{}, nil)
	if err != nil {
		return report, fmt.Errorf("load %s: %w", redacted(req.URL), err)
	}
	return report, nil
}

// redacted hides a password in a URL.
func redacted(text string) string {
	if u, err := url.Parse(text); err == nil && u.User != nil {
		return u.Redacted()
	}
	return text
}

// LateError says that the load was asked for when its window had begun and the
// warm-up was over: this process, or the way to it, was held up. It says nothing
// about the service.
type LateError struct{ Late, WarmUp time.Duration }

func (e *LateError) Error() string {
	return fmt.Sprintf("the window began %v ago, its warm-up of %v is over", e.Late.Round(time.Millisecond), e.WarmUp)
}

// engine is a way to send. All engines share the request's bytes, the parser,
// the recorder and the schedule; they differ in how they wait.
type engine interface {
	// run opens j's connections at once, sends from j.start until j.total, and
	// returns when nothing is out any more or ctx is done, with the number of
	// connections that were open at some time.
	run(ctx context.Context, j *job) int
}

// job is what an engine is given.
type job struct {
	request
	schedule
	connections int
	dial        dialFunc
	rec         *recorder
}

// schedule is the clock of a load: time 0 is the window's start. In a closed
// loop a request is due when the one before it is answered, so that there is
// nothing else in it.
type schedule struct {
	start time.Time // with a monotonic reading
	total time.Duration
}

func (s schedule) now() time.Duration { return time.Since(s.start) }

// newSchedule puts the window on this process's monotonic clock, so that a
// step of the wall clock moves nothing.
func newSchedule(w hakaru.Window) (schedule, error) {
	if w.WarmUp < 0 || w.Length <= 0 {
		return schedule{}, fmt.Errorf("a window of %v after %v warm-up: want a length above 0", w.Length, w.WarmUp)
	}
	now := time.Now()
	start := now
	if !w.Start.IsZero() {
		start = now.Add(w.Start.Sub(now))
	}
	s := schedule{start, w.Total()}
	if late := now.Sub(start); late > w.WarmUp+lateness {
		return schedule{}, &LateError{Late: late, WarmUp: w.WarmUp}
	}
	return s, nil
}

// runHTTP is HTTP on a given engine; dial is nil but in tests.
func runHTTP(ctx context.Context, req hakaru.HTTPRequest, w hakaru.Window, emit func(hakaru.Bucket), e engine, dial dialFunc) (hakaru.LoadReport, error) {
	to, err := endpoint.Parse(req.URL)
	if err != nil {
		return hakaru.LoadReport{}, err
	}
	r, err := buildRequest(req, to)
	if err != nil {
		return hakaru.LoadReport{}, err
	}
	if err := ensureDescriptors(req.Connections); err != nil {
		return hakaru.LoadReport{}, err
	}
	s, err := newSchedule(w)
	if err != nil {
		return hakaru.LoadReport{}, err
	}
	if dial == nil {
		dial = newDialer(to, r.timeout)
	}
	cost, err := newUsage()
	if err != nil {
		return hakaru.LoadReport{}, err
	}
	j := &job{request: r, schedule: s, connections: req.Connections, dial: dial, rec: newRecorder()}

	sending, cancel := context.WithDeadline(ctx, s.start.Add(s.total+lastAnswers))
	opened := make(chan int, 1)
	go func() { opened <- e.run(sending, j) }()
	c := collector{job: j, window: w, emit: emit, cost: cost}
	err = c.collect(ctx, opened)
	cancel() // where collecting ended early; otherwise the engine is done
	if !c.engineDone {
		c.opened = <-opened
	}
	report, reportErr := c.report()
	return report, errors.Join(err, reportErr)
}

// collector turns what the recorder holds into buckets as time goes on.
type collector struct {
	*job
	window hakaru.Window
	emit   func(hakaru.Bucket)
	cost   *usage

	buckets    []hakaru.Bucket
	measured   latency.Histogram // of the measured window's whole buckets
	opened     int
	engineDone bool
}

// collect returns when the last bucket is done or ctx has ended. A bucket that
// was cut short by ctx is left out: it would be taken for a whole one.
func (c *collector) collect(ctx context.Context, opened <-chan int) error {
	if err := c.waitUntil(ctx, 0); err != nil {
		return err
	}
	if _, err := c.readCost(); err != nil { // what went before the start
		return err
	}
	count := int((c.total + hakaru.BucketWidth - 1) / hakaru.BucketWidth)
	for n := range count {
		end := time.Duration(n+1) * hakaru.BucketWidth
		if err := c.waitUntil(ctx, min(end, c.total)); err != nil {
			return err
		}
		b := hakaru.Bucket{At: end - hakaru.BucketWidth}
		var err error
		if b.Counters, err = c.readCost(); err != nil {
			return err
		}
		var latencies latency.Histogram
		if n < count-1 {
			if err := c.waitUntil(ctx, end+grace); err != nil {
				return err
			}
			c.rec.drain(n, &b, &latencies)
		} else {
			// Nobody records any more, so that nothing is left behind.
			c.opened, c.engineDone = <-opened, true
			if err := ctx.Err(); err != nil {
				return context.Cause(ctx)
			}
			c.rec.drainAll(&b, &latencies)
		}
		if err := seal(&b, &latencies); err != nil {
			return err
		}
		if b.At >= c.window.WarmUp && end <= c.total {
			c.measured.Merge(&latencies)
		}
		c.buckets = append(c.buckets, b)
		if c.emit != nil {
			c.emit(b)
		}
	}
	return nil
}

func (c *collector) readCost() ([]float64, error) {
	values, err := c.cost.read(nil)
	if err != nil {
		return nil, err
	}
	return append(values, float64(c.rec.connects.Swap(0)), float64(c.rec.retried.Swap(0))), nil
}

// waitUntil waits for a time since the start.
func (c *collector) waitUntil(ctx context.Context, at time.Duration) error {
	return wait(ctx, at-c.now())
}

// wait returns after d, or with ctx's cause when ctx ends before.
func wait(ctx context.Context, d time.Duration) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if d <= 0 {
		return nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (c *collector) report() (hakaru.LoadReport, error) {
	encoded, err := c.measured.Encode()
	return hakaru.LoadReport{
		Buckets: c.buckets,
		Counters: append(c.cost.counters(),
			hakaru.Counter{Name: hakaru.CounterConnects, Of: hakaru.OfGenerator},
			hakaru.Counter{Name: hakaru.CounterRetried, Of: hakaru.OfGenerator}),
		Samples:     c.rec.taken(),
		Latency:     encoded,
		Connections: c.opened,
	}, err
}
