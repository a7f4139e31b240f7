// Package goroutines is the engine of one goroutine for each connection, over
// net.Conn. It runs wherever Go does, and speaks TLS; it costs about what wrk costs
// at 8 connections and more, twice that at one, where parking a goroutine weighs
// most. Job.Threads is nothing to it: the runtime's threads are used as they are.
package goroutines

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"hakaru/internal/http1"
	"hakaru/internal/load/job"
)

const (
	// firstBuffer is what a connection reads into; it grows to bodyBuffer for
	// a body that does not fit, since a read is dearer than its bytes.
	firstBuffer = 16 << 10
	bodyBuffer  = 64 << 10
	// openAtOnce connections are opened every openEvery before the start: accept
	// queues are a few hundred long, and what does not fit in waits for a second.
	openAtOnce = 64
	openEvery  = time.Millisecond
)

// Engine is a job.Engine.
type Engine struct{}

// States of worker.since beside the time at which the request began.
const (
	idle    = -1 - iota // nothing is out
	overdue             // the watch has closed the connection
)

// worker is one connection's goroutine.
type worker struct {
	*job.Job
	shard  *job.Shard
	parser http1.Parser
	buffer []byte
	dial   job.DialFunc
	after  time.Duration // how long after the others it begins to open its first connection

	shared *schedule     // of an open loop; nil: the loop is closed
	turn   chan struct{} // the worker's request in shared is due

	// since is when the request that is out began, in nanoseconds since the
	// start. The watch changes it to overdue and only then closes the
	// connection, and the worker changes it from the same value to the next;
	// so that no request is closed that is not the one which took too long.
	since atomic.Int64

	changing sync.Mutex // conn is written by the worker under it, closed by the watch under it
	conn     net.Conn
	ended    bool // under changing: no new connection is wanted

	sent, first time.Duration // of the request that is out; first 0: it came with the last
	size        int           // of the answer
	lag         time.Duration // of an open loop: what it was sent late by, with this worker free

	waited bool // conn has lain idle: the service may have closed it meanwhile
	ahead  bool // it stood before the start
	opened bool // a connection stood at some time
}

// Run implements job.Engine.
func (Engine) Run(ctx context.Context, j *job.Job) int {
	sending, cancel := context.WithDeadline(ctx, j.Start.Add(j.Total))
	defer cancel()
	started := make(chan struct{})
	timer := time.AfterFunc(-j.Now(), func() { close(started) })
	defer timer.Stop()

	workers := make([]*worker, j.Connections)
	var working, watching sync.WaitGroup
	var shared *schedule
	if j.Law != nil {
		shared = newSchedule(j)
		watching.Go(func() { shared.pace(sending, newAlarm(j.To)) })
	}
	for i := range workers {
		w := newWorker(j, i, shared)
		workers[i] = w
		working.Go(func() { w.run(sending, started) })
	}
	finished := make(chan struct{})
	watching.Go(func() { watch(ctx, j, workers, finished) })
	working.Wait()
	close(finished)
	cancel()
	watching.Wait()

	opened := 0
	for _, w := range workers {
		if w.opened {
			opened++
		}
	}
	return opened
}

func newWorker(j *job.Job, i int, shared *schedule) *worker {
	w := &worker{Job: j, shard: j.Rec.Shard(i), after: time.Duration(i/openAtOnce) * openEvery, buffer: make([]byte, firstBuffer), dial: j.To.Dialer(j.Timeout), shared: shared}
	if shared != nil {
		w.turn = make(chan struct{}, 1)
	}
	w.parser.Head, w.parser.Want, w.parser.Expect = j.Head, j.Status, j.Expect
	w.since.Store(idle)
	return w
}

// watch closes connections whose request has taken too long, and all of them
// when ctx ends. One look at all of them every twentieth of the timeout is
// cheaper than a deadline for each request, which costs a timer each.
func watch(ctx context.Context, j *job.Job, workers []*worker, finished <-chan struct{}) {
	tick := time.NewTicker(min(max(j.Timeout/20, 5*time.Millisecond), time.Second))
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			now := j.Now()
			for _, w := range workers {
				if since := w.since.Load(); since >= 0 && now-time.Duration(since) > j.Timeout {
					w.expire(since)
				}
			}
		case <-ctx.Done():
			for _, w := range workers {
				w.end()
			}
			return
		case <-finished:
			return
		}
	}
}

// expire closes the connection if the request that began at since is still out.
func (w *worker) expire(since int64) {
	w.changing.Lock()
	defer w.changing.Unlock()
	if w.since.CompareAndSwap(since, overdue) && w.conn != nil {
		cut(w.conn) // the worker sees the error of its read
	}
}

// cut closes a connection without another word: where it is TLS, to say that it ends
// could take seconds with a service that does not read any more.
func cut(c net.Conn) {
	if secured, ok := c.(interface{ NetConn() net.Conn }); ok {
		c = secured.NetConn()
	}
	c.Close()
}

// end closes the connection for good.
func (w *worker) end() {
	w.changing.Lock()
	defer w.changing.Unlock()
	w.ended = true
	if w.conn != nil {
		cut(w.conn)
	}
}

var errEnded = errors.New("the load has ended")

// connect opens the connection.
func (w *worker) connect(ctx context.Context) error {
	began := time.Now()
	conn, err := w.dial(ctx)
	if err != nil {
		return err
	}
	w.shard.Connected(time.Since(began))
	w.changing.Lock()
	defer w.changing.Unlock()
	if w.ended {
		conn.Close()
		return errEnded
	}
	w.conn, w.waited, w.opened = conn, false, true
	w.Rec.Connects.Add(1)
	return nil
}

// drop closes the connection. An error of closing says nothing about an answer
// that has come or failed already.
func (w *worker) drop() {
	w.changing.Lock()
	defer w.changing.Unlock()
	if w.conn != nil {
		w.conn.Close()
		w.conn = nil
	}
}

// run is the connection's life.
func (w *worker) run(ctx context.Context, started <-chan struct{}) {
	defer w.drop()
	if !w.Close {
		w.connectEarly(ctx)
	}
	select {
	case <-started:
	case <-ctx.Done():
		return
	}
	pause := job.FirstPause
	free := time.Duration(0) // since when nothing is out
	if w.shared == nil || !w.Close && !w.ahead {
		free = w.Now()
	}
	for {
		due, began, more := w.next(ctx, free)
		if !more {
			break
		}
		w.since.Store(int64(began))
		now, connected, again := w.once(ctx, due, began)
		if !again {
			break
		}
		if free = now; connected {
			pause = job.FirstPause
			continue
		}
		w.since.Store(idle)
		if job.Wait(ctx, pause) != nil {
			break
		}
		pause = min(2*pause, job.LongPause)
		free = w.Now()
	}
	w.since.Store(idle)
}

// next is the next request: when it was due, and when it begins, which is now. In
// a closed loop that is the moment when the one before was done with.
func (w *worker) next(ctx context.Context, free time.Duration) (due, began time.Duration, more bool) {
	if w.shared == nil {
		return free, free, free < w.Total && w.Budget.Take()
	}
	if due, more = w.shared.take(ctx, w.turn); !more {
		return 0, 0, false
	}
	if began = w.Now(); began >= w.Total {
		return 0, 0, false
	}
	w.shard.Sent(due, free, began)
	w.lag = began - max(due, free)
	return due, began, true
}

// connectEarly opens the connection before the start. What goes wrong before it
// is not counted: the service is not under load yet, and what is still wrong at
// the start shows then. An attempt that ends in vain after the start counts.
func (w *worker) connectEarly(ctx context.Context) {
	if job.Wait(ctx, w.after) != nil {
		return
	}
	for pause := job.FirstPause; ; pause = min(2*pause, job.LongPause) {
		err := w.connect(ctx)
		if err == nil {
			w.waited, w.ahead = true, w.Now() <= 0
			return
		}
		if now := w.Now(); now >= 0 {
			// In an open loop no request was due on this connection.
			if w.shared == nil && ctx.Err() == nil && now < w.Total && !errors.Is(err, errEnded) && w.Budget.Take() {
				w.fail(now, now, job.ConnectKind(err), err)
			}
			return
		}
		if job.Wait(ctx, pause) != nil {
			return
		}
	}
}

// once sends the request, which was due at some time and begins now, and records
// its answer. It returns when it was complete, which is when the next one of a
// closed loop begins, whether there was a connection, and whether to go on. The
// timeout runs from the beginning, the latency from when it was due.
func (w *worker) once(ctx context.Context, due, began time.Duration) (now time.Duration, connected, again bool) {
	retried := false
	for {
		connecting := w.conn == nil
		if connecting {
			if err := w.connect(ctx); err != nil {
				now = w.Now()
				if ctx.Err() != nil || errors.Is(err, errEnded) || now >= w.Total {
					return now, false, false
				}
				w.fail(due, now, job.ConnectKind(err), err)
				return now, false, true
			}
			if w.since.Load() == overdue { // while there was nothing to close
				now = w.Now()
				w.drop()
				w.fail(due, now, job.TimedOut, nil)
				return now, true, true
			}
		}
		w.sent, w.first = began, 0
		if connecting { // otherwise it is sent at once
			w.sent = w.Now()
		}
		err := w.exchange()
		now = w.Now()
		next := int64(now) // the next one begins at once, or when it is due
		if w.shared != nil {
			next = idle
		}
		inTime := now-began <= w.Timeout && w.since.CompareAndSwap(int64(began), next)
		if now >= w.Total || err != nil && ctx.Err() != nil {
			return now, true, false // counts in no bucket
		}
		if !inTime {
			w.drop()
			w.fail(due, now, job.TimedOut, nil)
			return now, true, true
		}
		if err == nil {
			w.answered(due, now)
			return now, true, true
		}
		lay := w.waited
		w.drop()
		kind := job.BrokenKind(err)
		if w.Again && lay && !retried && !w.parser.Got && (kind == job.Closed || kind == job.Reset) {
			retried = true
			w.Rec.Retried.Add(1)
			w.since.Store(int64(began))
			continue
		}
		w.fail(due, now, kind, err)
		return now, true, true
	}
}

// exchange sends the request and reads its answer into the parser.
func (w *worker) exchange() error {
	w.parser.Reset()
	_, sendErr := w.conn.Write(w.Bytes)
	// A service may answer and close before it has read a long body, so that
	// an answer may be there although the send broke.
	total := 0
	for {
		n, err := w.conn.Read(w.buffer)
		if total += n; n > 0 {
			used, done, parseErr := w.parser.Feed(w.buffer[:n])
			switch {
			case parseErr != nil:
				return parseErr
			case done && used < n:
				return fmt.Errorf("%w: %d bytes after its end", http1.ErrNotHTTP, n-used)
			case done:
				w.parser.Close = w.parser.Close || sendErr != nil
				w.size = total
				return nil
			}
			if w.first == 0 {
				w.first = w.Now()
			}
			w.grow()
		}
		if err == nil {
			continue
		}
		if sendErr != nil && !w.parser.Got {
			return sendErr
		}
		if !errors.Is(err, io.EOF) {
			return err
		}
		w.size = total
		_, err = w.parser.EOF()
		return err
	}
}

// grow makes room for a body that does not fit.
func (w *worker) grow() {
	if len(w.buffer) < bodyBuffer && w.parser.Remaining() > uint64(len(w.buffer)) {
		w.buffer = make([]byte, bodyBuffer)
	}
}

// answered judges a complete answer and records it.
func (w *worker) answered(due, now time.Duration) {
	w.waited = true
	if w.Close || w.parser.Close {
		w.drop()
	}
	a := job.Answer{Due: due, Sent: w.sent, First: w.first, Done: now, Status: w.parser.Status, Bytes: w.size, Lag: w.lag}
	if a.First == 0 {
		a.First = now
	}
	kind := job.Judge(&w.Request, &w.parser)
	if kind < 0 {
		w.shard.Good(&a)
		return
	}
	w.shard.Wrong(&a, kind)
	w.Rec.Tell(kind, func() string { return job.Words(&w.Request, kind, &w.parser) })
}

// fail records a request without a usable answer.
func (w *worker) fail(due, now time.Duration, kind int, err error) {
	w.shard.Failed(due, now, kind)
	w.Rec.Tell(kind, func() string {
		if err == nil {
			return fmt.Sprintf("no answer within %v", w.Timeout)
		}
		return err.Error()
	})
}
