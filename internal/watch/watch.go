// Package watch samples a stack during a window: what each service and the
// machine used, in the same half-second buckets in which the load is counted.
//
// It takes a place and a window with a common clock; it gives the increase of
// every counter in every bucket, or the value of a gauge at its end, and says
// which figures could not be had and what stands in for them. The figures are
// differences between two samples, never averages since boot.
//
// It starts nothing, changes nothing and does not judge: whether a figure voids
// a trial is for diagnose.
package watch

import (
	"context"
	"errors"
	"fmt"
	"time"

	"hakaru"
)

// lateBy is how far after its boundary a sample may come before it is worth a
// warning: the increase is then put down to the bucket before.
const lateBy = hakaru.BucketWidth / 5

// Watch sleeps until the window starts and samples at every boundary of a
// bucket. begun, which may be nil, is called before that, when the counters that
// count from now on have been read: what overflows an accept queue while
// connections are made, before the window starts, belongs into the first bucket.
// When ctx ends it returns the buckets that are over by then, with the memory as it
// is then in the last one, and ctx's error. A bucket whose sample is late is over
// all the same: a load that ended with it has used what is counted in it.
func Watch(ctx context.Context, place hakaru.Place, w hakaru.Window, begun func()) (_ hakaru.Watched, err error) {
	var seen hakaru.Watched
	if w.Total() <= 0 {
		return seen, fmt.Errorf("watch place %s: the window is empty", place.ID)
	}
	s, err := newSampler(place)
	if err != nil {
		return seen, fmt.Errorf("watch place %s: %w", place.ID, err)
	}
	defer func() { err = errors.Join(err, s.close()) }()
	seen.Counters = s.counters()

	count := int((w.Total() + hakaru.BucketWidth - 1) / hakaru.BucketWidth)
	before, now := make([]float64, len(seen.Counters)), make([]float64, len(seen.Counters))
	early := make([]float64, len(seen.Counters))
	if err := s.sample(early, false); err != nil {
		return seen, fmt.Errorf("watch place %s: %w", place.ID, err)
	}
	if begun != nil {
		begun()
	}
	start := monotonic(w.Start, time.Now())
	// Proportional memory is read at the end of the last bucket that is whole:
	// no other is part of a measured window. From then on it costs nobody.
	whole := max(1, int(w.Total()/hakaru.BucketWidth))
	timer := time.NewTimer(time.Until(start))
	defer timer.Stop()
	var late time.Duration
	for k := 0; k <= count; k++ {
		due := start.Add(min(time.Duration(k)*hakaru.BucketWidth, w.Total()))
		timer.Reset(time.Until(due))
		select {
		case <-ctx.Done():
			if !time.Now().Before(due) {
				break
			}
			// The bucket that was the last one is only known now.
			if n := len(seen.Buckets); n > 0 && s.sample(now, true) == nil {
				for i, c := range seen.Counters {
					if c.Name == hakaru.CounterMemory {
						seen.Buckets[n-1][i] = now[i]
					}
				}
			}
			s.tell(&seen, late)
			return seen, fmt.Errorf("watch place %s: %w", place.ID, ctx.Err())
		case <-timer.C:
		}
		late = max(late, time.Since(due))
		if err := s.sample(now, k >= whole); err != nil {
			s.tell(&seen, late)
			return seen, fmt.Errorf("watch place %s: %w", place.ID, err)
		}
		if k == 0 {
			for i, c := range seen.Counters {
				if c.Name == hakaru.CounterListenOverflow {
					now[i] = early[i]
				}
			}
		}
		if k > 0 {
			bucket := make([]float64, len(now))
			for i, c := range seen.Counters {
				bucket[i] = now[i]
				if !c.Gauge {
					// A counter of the kernel can step back by a rounding.
					bucket[i] = max(0, now[i]-before[i])
				}
			}
			seen.Buckets = append(seen.Buckets, bucket)
		}
		before, now = now, before
	}
	s.tell(&seen, late)
	return seen, nil
}

// tell says what there is to say when the watch is over, however it ended.
func (s *sampler) tell(seen *hakaru.Watched, late time.Duration) {
	if late > lateBy {
		s.warn("watch_late", fmt.Sprintf("a sample came %s after its time: what was used then is counted in the bucket before", late.Round(time.Millisecond)))
	}
	seen.Ended = s.ended()
	seen.Warnings = s.warnings()
}

// monotonic puts a time that came over the link, a reading of the wall clock
// alone, onto this process's monotonic clock, as the load does: when the wall
// clock is set during the window, both go on in step.
func monotonic(at, now time.Time) time.Time { return now.Add(at.Sub(now)) }
