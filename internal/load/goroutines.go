package load

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// firstBuffer is what a connection reads into; it grows to bodyBuffer for
	// a body that does not fit, since a read is dearer than its bytes.
	firstBuffer = 16 << 10
	bodyBuffer  = 64 << 10

	// The wait after a connection that could not be opened.
	firstPause = 5 * time.Millisecond
	longPause  = 160 * time.Millisecond
)

// goroutines is the engine of one goroutine for each connection, over net.Conn.
// It runs wherever Go does and costs about what wrk costs at 8 connections and
// more, twice that at one, where parking a goroutine weighs most.
type goroutines struct{}

// States of worker.since beside the time at which the request began.
const (
	idle    = -1 - iota // nothing is out
	overdue             // the watch has closed the connection
)

// worker is one connection's goroutine.
type worker struct {
	*job
	shard  *shard
	parser parser
	buffer []byte

	// since is when the request that is out began, in nanoseconds since the
	// start. The watch changes it to overdue and only then closes the
	// connection, and the worker changes it from the same value to the next;
	// so that no request is closed that is not the one which took too long.
	since atomic.Int64

	changing sync.Mutex // conn is written by the worker under it, closed by the watch under it
	conn     net.Conn
	ended    bool // under changing: no new connection is wanted

	waited bool // conn has lain idle: the service may have closed it meanwhile
	opened bool // a connection stood at some time
}

func (goroutines) run(ctx context.Context, j *job) int {
	sending, cancel := context.WithDeadline(ctx, j.start.Add(j.total))
	defer cancel()
	started := make(chan struct{})
	timer := time.AfterFunc(-j.now(), func() { close(started) })
	defer timer.Stop()

	workers := make([]*worker, j.connections)
	var working, watching sync.WaitGroup
	for i := range workers {
		w := newWorker(j, i)
		workers[i] = w
		working.Go(func() { w.run(sending, started) })
	}
	finished := make(chan struct{})
	watching.Go(func() { watch(ctx, j, workers, finished) })
	working.Wait()
	close(finished)
	watching.Wait()

	opened := 0
	for _, w := range workers {
		if w.opened {
			opened++
		}
	}
	return opened
}

func newWorker(j *job, i int) *worker {
	w := &worker{job: j, shard: j.rec.shardOf(i), buffer: make([]byte, firstBuffer)}
	w.parser.head, w.parser.want, w.parser.expect = j.head, j.status, j.expect
	w.since.Store(idle)
	return w
}

// watch closes connections whose request has taken too long, and all of them
// when ctx ends. One look at all of them every twentieth of the timeout is
// cheaper than a deadline for each request, which costs a timer each.
func watch(ctx context.Context, j *job, workers []*worker, finished <-chan struct{}) {
	tick := time.NewTicker(min(max(j.timeout/20, 5*time.Millisecond), time.Second))
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			now := j.now()
			for _, w := range workers {
				if since := w.since.Load(); since >= 0 && now-time.Duration(since) > j.timeout {
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
		w.conn.Close() // the worker sees the error of its read
	}
}

// end closes the connection for good.
func (w *worker) end() {
	w.changing.Lock()
	defer w.changing.Unlock()
	w.ended = true
	if w.conn != nil {
		w.conn.Close()
	}
}

var errEnded = errors.New("the load has ended")

// connect opens the connection.
func (w *worker) connect(ctx context.Context) error {
	conn, err := w.dial(ctx)
	if err != nil {
		return err
	}
	w.changing.Lock()
	defer w.changing.Unlock()
	if w.ended {
		conn.Close()
		return errEnded
	}
	w.conn, w.waited, w.opened = conn, false, true
	w.rec.connects.Add(1)
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
	if !w.close {
		w.connectEarly(ctx)
	}
	select {
	case <-started:
	case <-ctx.Done():
		return
	}
	pause := firstPause
	for began := w.now(); began < w.total; {
		w.since.Store(int64(began))
		next, connected, again := w.once(ctx, began)
		if !again {
			break
		}
		began = next
		if connected {
			pause = firstPause
			continue
		}
		w.since.Store(idle)
		if wait(ctx, pause) != nil {
			break
		}
		pause = min(2*pause, longPause)
		began = w.now()
	}
	w.since.Store(idle)
}

// connectEarly opens the connection before the start. What goes wrong before it
// is not counted: the service is not under load yet, and what is still wrong at
// the start shows then. An attempt that ends in vain after the start counts.
func (w *worker) connectEarly(ctx context.Context) {
	for pause := firstPause; ; pause = min(2*pause, longPause) {
		err := w.connect(ctx)
		if err == nil {
			w.waited = true
			return
		}
		if now := w.now(); now >= 0 {
			if ctx.Err() == nil && now < w.total && !errors.Is(err, errEnded) {
				w.fail(now, connectKind(err), err)
			}
			return
		}
		if wait(ctx, pause) != nil {
			return
		}
	}
}

// once sends the request and records its answer. It returns when it was
// complete, which is when the next one begins, whether there was a connection,
// and whether to go on.
func (w *worker) once(ctx context.Context, began time.Duration) (now time.Duration, connected, again bool) {
	retried := false
	for {
		if w.conn == nil {
			if err := w.connect(ctx); err != nil {
				now = w.now()
				if ctx.Err() != nil || errors.Is(err, errEnded) || now >= w.total {
					return now, false, false
				}
				w.fail(now, connectKind(err), err)
				return now, false, true
			}
			if w.since.Load() == overdue { // while there was nothing to close
				now = w.now()
				w.drop()
				w.fail(now, timedOut, nil)
				return now, true, true
			}
		}
		err := w.exchange()
		now = w.now()
		inTime := now-began <= w.timeout && w.since.CompareAndSwap(int64(began), int64(now))
		if now >= w.total || err != nil && ctx.Err() != nil {
			return now, true, false // counts in no bucket
		}
		if !inTime {
			w.drop()
			w.fail(now, timedOut, nil)
			return now, true, true
		}
		if err == nil {
			w.answered(now, now-began)
			return now, true, true
		}
		lay := w.waited
		w.drop()
		kind := brokenKind(err)
		if w.again && lay && !retried && !w.parser.got && (kind == closed || kind == reset) {
			retried = true
			w.rec.retried.Add(1)
			w.since.Store(int64(began))
			continue
		}
		w.fail(now, kind, err)
		return now, true, true
	}
}

// exchange sends the request and reads its answer into the parser.
func (w *worker) exchange() error {
	w.parser.reset()
	_, sendErr := w.conn.Write(w.bytes)
	// A service may answer and close before it has read a long body, so that
	// an answer may be there although the send broke.
	for {
		n, err := w.conn.Read(w.buffer)
		if n > 0 {
			used, done, parseErr := w.parser.feed(w.buffer[:n])
			switch {
			case parseErr != nil:
				return parseErr
			case done && used < n:
				return fmt.Errorf("%w: %d bytes after its end", errNotHTTP, n-used)
			case done:
				w.parser.close = w.parser.close || sendErr != nil
				return nil
			}
			w.grow()
		}
		if err == nil {
			continue
		}
		if sendErr != nil && !w.parser.got {
			return sendErr
		}
		if !errors.Is(err, io.EOF) {
			return err
		}
		_, err = w.parser.eof()
		return err
	}
}

// grow makes room for a body that does not fit.
func (w *worker) grow() {
	if len(w.buffer) < bodyBuffer && w.parser.remaining > uint64(len(w.buffer)) {
		w.buffer = make([]byte, bodyBuffer)
	}
}

// answered judges a complete answer and records it.
func (w *worker) answered(now, took time.Duration) {
	w.waited = true
	if w.close || w.parser.close {
		w.drop()
	}
	kind := w.judge(&w.parser)
	if kind < 0 {
		w.shard.good(now, took)
		return
	}
	w.shard.bad(now, kind)
	w.rec.tell(kind, func() string { return w.words(kind, &w.parser) })
}

// fail records a request without a usable answer.
func (w *worker) fail(now time.Duration, kind int, err error) {
	w.shard.bad(now, kind)
	w.rec.tell(kind, func() string {
		if err == nil {
			return fmt.Sprintf("no answer within %v", w.timeout)
		}
		return err.Error()
	})
}
