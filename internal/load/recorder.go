package load

import (
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"hakaru"
	"hakaru/internal/latency"
)

const (
	// ring is how many buckets are open at a time: one that is recorded into,
	// one that is being drained, and two more in which a stalled machine may
	// fall behind without a figure going into another bucket.
	ring = 4
	// shards keep recorders on different CPUs off each other's cache lines.
	maxShards = 8
	// samplesPerKind bounds how many bad answers of each kind are told in words.
	samplesPerKind = 3
)

// recorder collects what the connections of every engine see, by the bucket in
// which it happened. Recording is one atomic addition for a good answer, no
// lock and no allocation. Several may record at once; one drains.
type recorder struct {
	shards []shard

	connects, retried atomic.Uint64 // since the last drain

	telling sync.Mutex // bad answers only, and only the first of each kind
	told    [kindCount]atomic.Int32
	samples []hakaru.Sample
}

type shard struct {
	slots [ring]slot
	_     [64]byte
}

type slot struct {
	good latency.Recorder
	bad  [kindCount]atomic.Uint64
}

func newRecorder() *recorder {
	return &recorder{shards: make([]shard, min(runtime.GOMAXPROCS(0), maxShards))}
}

// shardOf returns where connection i records.
func (r *recorder) shardOf(i int) *shard { return &r.shards[i%len(r.shards)] }

// slotAt returns the slot of the bucket that holds the time since the start.
func (s *shard) slotAt(at time.Duration) *slot {
	return &s.slots[int(max(at, 0)/hakaru.BucketWidth)%ring]
}

// good records an answer that came at a time since the start.
func (s *shard) good(at, took time.Duration) { s.slotAt(at).good.Record(took) }

// bad records one that failed.
func (s *shard) bad(at time.Duration, kind int) { s.slotAt(at).bad[kind].Add(1) }

// tell keeps the words for a bad answer if it is among the first of its kind.
// The words are made only then: a service that fails fast must not make the
// generator busy with texts.
func (r *recorder) tell(kind int, words func() string) {
	if r.told[kind].Load() >= samplesPerKind || r.told[kind].Add(1) > samplesPerKind {
		return
	}
	text := words()
	r.telling.Lock()
	defer r.telling.Unlock()
	r.samples = append(r.samples, hakaru.Sample{Kind: kindNames[kind], Text: text})
}

// taken returns the samples so far.
func (r *recorder) taken() []hakaru.Sample {
	r.telling.Lock()
	defer r.telling.Unlock()
	return append([]hakaru.Sample(nil), r.samples...)
}

// drain moves what slot number n holds into the bucket, adding to what is
// there, and into latencies.
func (r *recorder) drain(n int, b *hakaru.Bucket, latencies *latency.Histogram) {
	for i := range r.shards {
		s := &r.shards[i].slots[n%ring]
		s.good.Drain(latencies)
		for kind := range s.bad {
			count := s.bad[kind].Swap(0)
			if count == 0 {
				continue
			}
			if b.Kinds == nil {
				b.Kinds = map[string]uint64{}
			}
			b.Kinds[string(kindNames[kind])] += count
			b.Bad += count
		}
	}
}

// drainAll drains every slot: for the last bucket, when nobody records any more.
func (r *recorder) drainAll(b *hakaru.Bucket, latencies *latency.Histogram) {
	for n := range ring {
		r.drain(n, b, latencies)
	}
}

// seal puts the latencies of a bucket into it.
func seal(b *hakaru.Bucket, latencies *latency.Histogram) error {
	encoded, err := latencies.Encode()
	if err != nil {
		return fmt.Errorf("bucket at %v: %w", b.At, err)
	}
	b.Good, b.Latency = latencies.Count(), encoded
	return nil
}
