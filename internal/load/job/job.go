// Package job is what the load engines have in common: what is to be sent, where
// to and when (Job), the kinds of failure, and the recorder that counts what came.
//
// An engine takes a Job and sends it; how it waits is its own business. Package
// load makes the Job, chooses the engine and turns what was recorded into
// buckets and figures.
package job

import (
	"context"
	"sync/atomic"
	"time"

	"hakaru/internal/arrival"
	"hakaru/internal/http1"
)

// The wait after a connection that could not be opened doubles from one to the
// other, so that a dead service does not make a million errors a second.
const (
	FirstPause = 5 * time.Millisecond
	LongPause  = 160 * time.Millisecond
)

// Engine is a way to send. All engines share request bytes, parser, recorder and
// schedule; they differ in how they wait.
type Engine interface {
	// Run opens the job's connections at once (but those of one request each),
	// sends from its start until its total, its budget or its law is used up, and
	// returns when nothing is out any more or ctx is done, with the number of
	// connections that were open at some time.
	Run(ctx context.Context, j *Job) (opened int)
}

// Job is what an engine is given.
type Job struct {
	http1.Request
	Schedule
	Connections int
	Threads     int // of an engine that has threads of its own; at least 1
	// Law makes, where the loop is open, a law from its first request on; each
	// result is for one goroutine. Request n is due at its At(n). Nil: the loop is
	// closed, a request is due when the connection's one before is answered.
	Law func() arrival.Law
	// Budget is how many requests may be begun; nil: as many as there is time for.
	Budget *Budget
	// Precise makes an open loop spin for the last part of a wait.
	Precise bool
	To      *Target
	Rec     *Recorder
}

// Schedule is the clock of a load: time 0 is the window's start.
type Schedule struct {
	Start  time.Time // with a monotonic reading
	WarmUp time.Duration
	Total  time.Duration // warm-up and window
}

// Now is the time since the start.
func (s *Schedule) Now() time.Duration { return time.Since(s.Start) }

// Budget is a number of requests that several senders share.
type Budget struct{ left atomic.Int64 }

// NewBudget allows n requests.
func NewBudget(n uint64) *Budget {
	b := &Budget{}
	b.left.Store(int64(min(n, 1<<62)))
	return b
}

// Take takes one request out of the budget; false where none is left. A nil
// budget has no end.
func (b *Budget) Take() bool { return b == nil || b.left.Add(-1) >= 0 }
