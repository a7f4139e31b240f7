package goroutines

import (
	"context"
	"runtime"
	"sync"
	"time"

	"hakaru/internal/arrival"
	"hakaru/internal/load/job"
)

// spin is how long before a request is due a precise load begins to wait for it on
// the CPU.
const spin = 50 * time.Microsecond

// schedule gives the requests of an open loop to the workers, one after the other:
// each that is free takes the next one, and where it is not due yet waits for it.
// So a request is sent late only where all workers are busy, and then by the first
// that is free.
//
// Taking one is a critical section of a few dozen nanoseconds, which also
// asks the law. Laws do not decrease, so that the workers who wait stand in the
// order in which they are to be woken, and one timer is enough for all: one for
// each would be a timer to set and to lose for every request, and those of Go's
// runtime are up to a millisecond late besides.
type schedule struct {
	*job.Job

	mu      sync.Mutex
	law     arrival.Law
	number  uint64  // of the next request
	over    bool    // there are no more
	waiting []place // ring of those who wait, in the order in which they came
	head    int
	length  int

	stirred chan struct{} // somebody waits, where nobody did
}

// place is a worker who waits for its request.
type place struct {
	turn chan<- struct{}
	due  time.Duration
}

func newSchedule(j *job.Job) *schedule {
	return &schedule{Job: j, law: j.Law(), waiting: make([]place, j.Connections), stirred: make(chan struct{}, 1)}
}

// take waits until the next request is due, if it is not. more is false where
// there is none for this worker any more. turn, of capacity 1, is the worker's own.
func (s *schedule) take(ctx context.Context, turn chan struct{}) (due time.Duration, more bool) {
	due, wait, more := s.next(turn)
	if !more {
		return 0, false
	}
	if wait {
		select {
		case <-turn:
		case <-ctx.Done():
			return 0, false
		}
	}
	return due, true
}

// next is the next request, for which the worker has to wait where it stands in the
// line. Where the law goes on after the end, nobody is to leave before it: the
// load lasts as long as was asked for.
func (s *schedule) next(turn chan<- struct{}) (due time.Duration, wait, more bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over {
		return 0, false, false
	}
	due, more = s.law.At(s.number)
	if more && due < s.Total {
		more = s.Budget.Take()
	}
	if !more {
		s.over = true
		return 0, false, false
	}
	if due < s.Total {
		s.number++
		if due <= s.Now() {
			return due, false, true
		}
	}
	at := s.head + s.length
	if at >= len(s.waiting) {
		at -= len(s.waiting)
	}
	s.waiting[at] = place{turn, due}
	if s.length++; s.length == 1 {
		select {
		case s.stirred <- struct{}{}:
		default:
		}
	}
	return due, true, true
}

// pace wakes those who wait when their requests are due, until ctx ends.
func (s *schedule) pace(ctx context.Context, a *alarm) {
	closed := make(chan struct{})
	stop := context.AfterFunc(ctx, func() { a.close(); close(closed) })
	defer func() {
		if stop() {
			a.close()
		} else {
			<-closed
		}
	}()
	for {
		turn, due, any := s.first()
		if !any {
			select {
			case <-s.stirred:
				continue
			case <-ctx.Done():
				return
			}
		}
		if turn != nil {
			turn <- struct{}{}
			continue
		}
		if due >= s.Total {
			<-ctx.Done()
			return
		}
		left := due - s.Now()
		if s.Precise {
			left -= spin
		}
		if !a.wait(ctx, left) {
			return
		}
		if s.Precise && due-s.Now() <= spin {
			for s.Now() < due && ctx.Err() == nil {
				runtime.Gosched() // whoever was woken may be waiting for this thread
			}
		}
	}
}

// first is when the first of those who wait is due, and its turn where that is now;
// then it leaves the line.
func (s *schedule) first() (turn chan<- struct{}, due time.Duration, any bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.length == 0 {
		return nil, 0, false
	}
	p := s.waiting[s.head]
	if p.due > s.Now() || p.due >= s.Total {
		return nil, p.due, true
	}
	if s.head++; s.head == len(s.waiting) {
		s.head = 0
	}
	s.length--
	return p.turn, p.due, true
}
