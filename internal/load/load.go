// Package load sends requests to a service and reports what came back, bucket
// by bucket.
//
// It takes one rendered request, a number of connections and a window, and gives
// good and bad answers, their kinds and latencies in buckets of half a second,
// the window as a whole (hakaru.Tally), and what the generator itself cost.
// Without an arrival law the loop is closed: each connection sends its next
// request when the last one is answered, so that the figures answer for capacity.
// With one it is open: latency counts from when a request was due, whether a
// connection was free then or not.
//
// It opens connections before the window's start and sends nothing before it
// and nothing after its end. It does not judge the figures, choose the load,
// find leases or pin itself to CPUs.
package load

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"net/url"
	"runtime"
	"time"

	"hakaru"
	"hakaru/internal/arrival"
	"hakaru/internal/endpoint"
	"hakaru/internal/http1"
	"hakaru/internal/latency"
	"hakaru/internal/load/epoll"
	"hakaru/internal/load/goroutines"
	"hakaru/internal/load/job"
	"hakaru/internal/redact"
)

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
// An answer belongs to the bucket in which it was complete. In a closed loop its
// latency runs from the first thing done for it: the send, or the connect where
// it needed a new connection (always without keep-alive); in an open one from
// when it was due. An answer later than req.Timeout is TimedOut. Where the service
// closed a kept connection before the first byte of an answer, an idempotent
// request is sent once more on a new one (RFC 9112 §9.3.1) and counted as retried,
// not as bad. After a connection that could not be opened the next attempt waits
// 5 ms, doubling to 160 ms, so that a dead service does not make a million errors
// a second.
//
// A load that ends by req.Requests, or by its law, is over when the last answer
// is in; then the last bucket is shorter than the others.
//
// emit, where given, is called for each bucket in order, shortly after its end,
// for the last one when the answers that were out are in (up to a second); it
// must not block for long. When ctx ends, the whole buckets so far are
// reported beside the error.
func HTTP(ctx context.Context, req hakaru.HTTPRequest, w hakaru.Window, emit func(hakaru.Bucket)) (hakaru.LoadReport, error) {
	report, err := keep(ctx, req, w, emit, nil, nil)
	return report, named(req, err)
}

// keep is run with the buckets in the report.
func keep(ctx context.Context, req hakaru.HTTPRequest, w hakaru.Window, emit func(hakaru.Bucket), e job.Engine, dial job.DialFunc) (hakaru.LoadReport, error) {
	var buckets []hakaru.Bucket
	report, err := run(ctx, req, w, func(b hakaru.Bucket) {
		buckets = append(buckets, b)
		if emit != nil {
			emit(b)
		}
	}, e, dial)
	report.Buckets = buckets
	return report, err
}

// Stream is HTTP in constant memory: buckets are given to emit and not kept. Where
// w.Start is zero it begins as soon as names are looked up and there was time to
// open the connections.
func Stream(ctx context.Context, req hakaru.HTTPRequest, w hakaru.Window, emit func(hakaru.Bucket)) (hakaru.LoadReport, error) {
	report, err := runIn(ctx, req, func() hakaru.Window {
		if w.Start.IsZero() {
			w.Start = time.Now().Add(lead(req.Connections))
		}
		return w
	}, emit, nil, nil)
	return report, named(req, err)
}

func named(req hakaru.HTTPRequest, err error) error {
	if err == nil {
		return nil
	}
	if _, parseErr := url.Parse(req.URL); parseErr != nil {
		return fmt.Errorf("load: %w", err) // which names the URL, without what may be a password
	}
	return fmt.Errorf("load %s: %w", redact.Text(req.URL), err)
}

// LateError says that the load was asked for when its window had begun and the
// warm-up was over: this process, or the way to it, was held up. It says nothing
// about the service.
type LateError struct{ Late, WarmUp time.Duration }

func (e *LateError) Error() string {
	return fmt.Sprintf("the window began %v ago, its warm-up of %v is over", e.Late.Round(time.Millisecond), e.WarmUp)
}

// newSchedule puts the window on this process's monotonic clock, so that a
// step of the wall clock moves nothing.
// The warm-up is rounded up to whole buckets.
func newSchedule(w hakaru.Window) (job.Schedule, error) {
	if w.WarmUp < 0 || w.Length <= 0 {
		return job.Schedule{}, fmt.Errorf("a window of %v after %v warm-up: want a length above 0", w.Length, w.WarmUp)
	}
	// The window begins with a bucket: one that is in it in part would be counted
	// in neither or both.
	w.WarmUp = (w.WarmUp + hakaru.BucketWidth - 1).Truncate(hakaru.BucketWidth)
	now := time.Now()
	start := now
	if !w.Start.IsZero() {
		start = now.Add(w.Start.Sub(now))
	}
	if late := now.Sub(start); late > w.WarmUp+lateness {
		return job.Schedule{}, &LateError{Late: late, WarmUp: w.WarmUp}
	}
	return job.Schedule{Start: start, WarmUp: w.WarmUp, Total: w.Total()}, nil
}

// run is HTTP on a given engine, or the one that fits; dial is nil but in tests.
func run(ctx context.Context, req hakaru.HTTPRequest, w hakaru.Window, emit func(hakaru.Bucket), e job.Engine, dial job.DialFunc) (hakaru.LoadReport, error) {
	return runIn(ctx, req, func() hakaru.Window { return w }, emit, e, dial)
}

// runIn is run in a window that is asked for when all is ready for it.
func runIn(ctx context.Context, req hakaru.HTTPRequest, window func() hakaru.Window, emit func(hakaru.Bucket), e job.Engine, dial job.DialFunc) (hakaru.LoadReport, error) {
	to, err := endpoint.Parse(req.URL)
	if err != nil {
		return hakaru.LoadReport{}, err
	}
	r, err := http1.Build(req, to)
	if err != nil {
		return hakaru.LoadReport{}, err
	}
	law, err := lawOf(req.Arrival)
	if err != nil {
		return hakaru.LoadReport{}, err
	}
	if err := ensureDescriptors(req.Connections); err != nil {
		return hakaru.LoadReport{}, err
	}
	target := &job.Target{Network: to.Network, Address: to.Address, Dial: dial}
	var resolved []string
	if dial == nil {
		if target, resolved, err = resolve(ctx, req, to); err != nil {
			return hakaru.LoadReport{}, err
		}
	}
	s, err := newSchedule(window())
	if err != nil {
		return hakaru.LoadReport{}, err
	}
	name := ""
	if e == nil {
		if e, name, err = engineFor(req, target); err != nil {
			return hakaru.LoadReport{}, err
		}
	}
	defer collectLess()()
	threads := threadsFor(req, runtime.GOMAXPROCS(0))
	cost, err := newUsage()
	if err != nil {
		return hakaru.LoadReport{}, err
	}
	j := &job.Job{
		Request: r, Schedule: s, Connections: req.Connections, Threads: threads, Law: law, Precise: req.Precise,
		To: target, Rec: job.NewRecorder(threads, s.WarmUp, s.Total),
	}
	if req.Requests > 0 {
		j.Budget = job.NewBudget(req.Requests)
	}

	// What it took to come here is late as well.
	if late := s.Now(); late > s.WarmUp+lateness {
		return hakaru.LoadReport{}, &LateError{Late: late, WarmUp: s.WarmUp}
	}
	sending, cancel := context.WithDeadline(ctx, s.Start.Add(s.Total+lastAnswers))
	opened := make(chan int, 1)
	go func() { opened <- e.Run(sending, j) }()
	c := collector{Job: j, emit: emit, cost: cost, requests: req.Requests}
	err = c.collect(ctx, opened)
	cancel() // where collecting ended early; otherwise the engine is done
	if !c.engineDone {
		c.opened = <-opened
	}
	if ctx.Err() != nil {
		err = errors.Join(err, c.cutShort())
	}
	report, reportErr := c.report()
	report.Warnings = append(report.Warnings, c.heldUp()...)
	if t := report.Tally; t != nil {
		t.Engine, t.Threads, t.Address, t.Resolved = name, threads, target.Address, resolved
	}
	return report, errors.Join(err, reportErr)
}

// engineFor chooses the engine for a request: the one that was asked for, or epoll
// where it fits, since it costs least.
func engineFor(req hakaru.HTTPRequest, to *job.Target) (job.Engine, string, error) {
	unfit := epoll.Fits(to)
	switch {
	case req.Engine == "epoll" && unfit != nil:
		return nil, "", fmt.Errorf("engine epoll: %w: want goroutines", unfit)
	case req.Engine == "epoll", req.Engine == "" && unfit == nil:
		return epoll.Engine{}, "epoll", nil
	case req.Engine == "", req.Engine == "goroutines":
		return goroutines.Engine{}, "goroutines", nil
	}
	return nil, "", fmt.Errorf("engine %q is none: want epoll or goroutines", req.Engine)
}

// threadsFor is how many threads a load is sent from: as asked for, else one for
// each CPU, as long as each has connections enough that several of their answers
// come at a time: those cost less together.
func threadsFor(req hakaru.HTTPRequest, cpus int) int {
	const each = 16
	threads := req.Threads
	if threads <= 0 {
		threads = min(cpus, (req.Connections+each-1)/each)
	}
	return max(1, min(threads, req.Connections))
}

// lawOf turns words into a law; nil stands for a closed loop.
func lawOf(a *hakaru.Arrival) (func() arrival.Law, error) {
	if a == nil {
		return nil, nil
	}
	var err error
	make := func() (law arrival.Law) {
		switch a.Law {
		case hakaru.ConstantRate:
			law, err = arrival.Constant(a.Rate)
		case hakaru.PoissonRate:
			law, err = arrival.Poisson(a.Rate, a.Seed)
		case hakaru.RampRate:
			law, err = arrival.Ramp(a.Rate, a.To, a.Over)
		case hakaru.StepRates:
			list := []arrival.Step(nil)
			for _, s := range a.Steps {
				list = append(list, arrival.Step{Rate: s.Rate, For: s.For})
			}
			law, err = arrival.Steps(list...)
		default:
			err = fmt.Errorf("arrival law %q is none: want constant, poisson, ramp or steps", a.Law)
		}
		return law
	}
	make() // what is wrong with it shows the first time
	return make, err
}

// collector turns what the recorder holds into buckets as time goes on.
type collector struct {
	*job.Job
	emit     func(hakaru.Bucket)
	cost     *usage
	requests uint64 // that the load is to end with; 0: any number

	whole      int               // buckets so far
	measured   latency.Histogram // of the measured window's buckets
	plain      latency.Histogram // the part of it that is plain
	tally      hakaru.Tally
	opened     int
	engineDone bool
	early      bool          // the engine was done before the end
	behind     time.Duration // the most that this process was late by for a bucket's end
	unspent    []float64     // what was read for a bucket that is not in the tally yet
	over       time.Duration // when the engine was done, where that was before the end
}

// collect returns when the last bucket is done or ctx has ended. A bucket that
// was cut short by ctx is left out: it would be taken for a whole one.
func (c *collector) collect(ctx context.Context, opened <-chan int) error {
	if _, err := c.waitUntil(ctx, opened, 0); err != nil {
		return err
	}
	if _, err := c.readCost(); err != nil { // what went before the start
		return err
	}
	for n := 0; ; n++ {
		begin, end := time.Duration(n)*hakaru.BucketWidth, time.Duration(n+1)*hakaru.BucketWidth
		over, err := c.waitUntil(ctx, opened, min(end, c.Total))
		if err != nil {
			return err
		}
		last := over || end >= c.Total
		b := hakaru.Bucket{At: begin}
		if b.Counters, err = c.readCost(); err != nil {
			return err
		}
		c.unspent = b.Counters
		var d job.Drained
		if !last {
			if last, err = c.waitUntil(ctx, opened, end+grace); err != nil {
				return err
			}
		}
		if last {
			// Nobody records any more, so that nothing is left behind.
			if !c.engineDone {
				c.opened, c.engineDone = <-opened, true
			}
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			c.Rec.DrainAll(&d)
		} else {
			c.Rec.Drain(n, &d)
		}
		if err := c.add(b, &d); err != nil || last {
			return err
		}
	}
}

// add seals a bucket and takes it into the tally where it is measured.
func (c *collector) add(b hakaru.Bucket, d *job.Drained) error {
	took := d.Latency()
	encoded, err := took.Encode()
	if err != nil {
		return fmt.Errorf("bucket at %v: %w", b.At, err)
	}
	b.Good, b.Bad, b.Kinds, b.Latency = took.Count(), d.Bad, d.Kinds, encoded
	c.whole++
	c.unspent = nil
	if b.At >= c.WarmUp {
		c.measured.Merge(took)
		c.plain.Merge(&d.Plain)
		t := &c.tally
		t.Good += b.Good
		t.Bad += b.Bad
		for kind, n := range b.Kinds {
			if t.Kinds == nil {
				t.Kinds = map[string]uint64{}
			}
			t.Kinds[kind] += n
		}
		c.cost.tally(t, b.Counters)
	}
	if c.emit != nil {
		c.emit(b)
	}
	return nil
}

func (c *collector) readCost() ([]float64, error) {
	values, err := c.cost.read(nil)
	if err != nil {
		return nil, err
	}
	return append(values, float64(c.Rec.Connects.Swap(0)), float64(c.Rec.Retried.Swap(0))), nil
}

// waitUntil waits for a time since the start; over where the engine was done
// before.
func (c *collector) waitUntil(ctx context.Context, opened <-chan int, at time.Duration) (over bool, err error) {
	if ctx.Err() != nil {
		return false, context.Cause(ctx)
	}
	if c.engineDone { // where it was done after the end, this process was held up
		return c.early, nil
	}
	timer := time.NewTimer(max(at-c.Now(), 0))
	defer timer.Stop()
	select {
	case <-timer.C:
		c.behind = max(c.behind, c.Now()-at)
		return false, nil
	case c.opened = <-opened:
		c.engineDone = true
		if now := c.Now(); now < c.Total {
			c.early, c.over = true, now
		}
		if ctx.Err() != nil {
			return false, context.Cause(ctx)
		}
		return c.early, nil
	case <-ctx.Done():
		return false, context.Cause(ctx)
	}
}

// heldUp tells of a process that got no CPU for so long that what it saw, or did not
// see, says little of the service.
func (c *collector) heldUp() []hakaru.Warning {
	const least, share = 100 * time.Millisecond, 0.05
	if c.behind < least || float64(c.behind) < share*float64(c.tally.Took) {
		return nil
	}
	return []hakaru.Warning{{Code: "held_up", Message: fmt.Sprintf(
		"the load generator itself was held up for %v: what came of the load meanwhile is its own doing, not the service's",
		c.behind.Round(time.Millisecond))}}
}

// cutShort takes what came since the last whole bucket into the figures of a load
// that was interrupted; for when the engine is done.
func (c *collector) cutShort() error {
	begin := time.Duration(c.whole) * hakaru.BucketWidth
	c.over = min(c.Now(), c.Total)
	if c.over <= begin {
		return nil
	}
	b := hakaru.Bucket{At: begin}
	var err error
	if b.Counters, err = c.readCost(); err != nil {
		return err
	}
	if c.unspent != nil && begin >= c.WarmUp { // of this bucket, up to its end
		c.cost.tally(&c.tally, c.unspent)
	}
	var d job.Drained
	c.Rec.DrainAll(&d)
	c.emit = nil // it would be taken for a whole one
	return c.add(b, &d)
}

// report is for when the engine is done.
func (c *collector) report() (hakaru.LoadReport, error) {
	t := &c.tally
	rest := c.Rec.Rest()
	rest.Service.Merge(&c.plain)
	rest.Waiting.Merge(&c.plain)
	end := c.Total
	if c.over > 0 {
		end = min(end, c.over)
	}
	if whole := time.Duration(c.whole) * hakaru.BucketWidth; end > whole { // interrupted
		end = whole
	}
	t.Took = max(end-c.WarmUp, 0)
	t.Statuses, t.Bytes, t.Queued = rest.Statuses, rest.Bytes, rest.Queued
	if c.Law != nil {
		law, most := c.Law(), cmp.Or(c.requests, math.MaxUint64)
		due, exact := arrival.Before(law, end)
		before, _ := arrival.Before(law, c.WarmUp)
		t.Due = min(due, most) - min(before, most)
		if !exact && float64(rest.Begun) > float64(t.Due)-5*math.Sqrt(float64(due)) {
			t.Due = rest.Begun // as many as can be expected: all
		}
		t.Unsent = t.Due - min(t.Due, rest.Begun)
	}
	var errs []error
	encode := func(h *latency.Histogram) []byte {
		b, err := h.Encode()
		errs = append(errs, err)
		return b
	}
	t.Latency, t.Service, t.Waiting = encode(&c.measured), encode(&rest.Service), encode(&rest.Waiting)
	if c.Law != nil {
		rest.Own.Merge(&c.plain)
		t.Own = encode(&rest.Own)
	}
	t.Failed, t.Connect, t.Lag = encode(&rest.Bad), encode(&rest.Connect), encode(&rest.Lag)
	return hakaru.LoadReport{
		Counters: append(c.cost.counters(),
			hakaru.Counter{Name: hakaru.CounterConnects, Of: hakaru.OfGenerator},
			hakaru.Counter{Name: hakaru.CounterRetried, Of: hakaru.OfGenerator}),
		Samples:     c.Rec.Samples(),
		Latency:     t.Latency,
		Connections: c.opened,
		Tally:       t,
	}, errors.Join(errs...)
}
