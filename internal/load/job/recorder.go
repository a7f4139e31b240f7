package job

import (
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
	// maxShards bounds the memory for recorders on different CPUs.
	maxShards = 8
	// SamplesPerKind bounds how many bad answers of each kind are told in words.
	SamplesPerKind = 3
	// statuses are those of HTTP's three digits.
	statuses = 1000
)

// Recorder collects what the connections of every engine see, by the bucket in
// which it happened. Recording takes a few atomic additions, no lock and no
// allocation. Several may record at once; one drains.
type Recorder struct {
	shards   []Shard
	from, to time.Duration // the measured window

	Connects, Retried atomic.Uint64 // since the last drain

	telling sync.Mutex // bad answers only, and only the first of each kind
	told    [kindCount]atomic.Int32
	samples []hakaru.Sample
}

// Shard is a part of a Recorder, for one thread or a few, so that recorders on
// different CPUs keep off each other's cache lines.
type Shard struct {
	slots    [ring]slot
	from, to time.Duration
	// Of the measured window only. What a plain answer would put here (one that
	// was sent when it was due and came in one piece) is in slot.plain already.
	service, waiting, bad latency.Recorder
	lag, own              latency.Recorder // own: latencies less the lag
	connect               latency.Recorder // of all connections, those before the start too

	status [statuses]atomic.Uint64
	bytes  atomic.Uint64
	queued atomic.Uint64
	begun  atomic.Uint64
	_      [64]byte
}

type slot struct {
	plain, other latency.Recorder // latencies of good answers
	bad          [kindCount]atomic.Uint64
}

// Answer is one complete answer: times since the start.
type Answer struct {
	Due   time.Duration // when it was due: latency begins here
	Sent  time.Duration // when its first byte was handed to the kernel: service time begins here
	First time.Duration // when its first byte came
	Done  time.Duration // when it was complete
	// Lag is what the generator itself was late by with it, in an open loop.
	Lag time.Duration
	// Status and Bytes are those of the answer; Bytes counts the head too.
	Status int
	Bytes  int
}

// NewRecorder makes a recorder for so many threads (at least 1), whose measured
// window lies between two times since the start.
func NewRecorder(threads int, from, to time.Duration) *Recorder {
	r := &Recorder{shards: make([]Shard, min(max(threads, 1), maxShards)), from: from, to: to}
	for i := range r.shards {
		r.shards[i].from, r.shards[i].to = from, to
	}
	return r
}

// Shard returns where thread or connection i records.
func (r *Recorder) Shard(i int) *Shard { return &r.shards[i%len(r.shards)] }

// slotAt returns the slot of the bucket that holds the time since the start.
func (s *Shard) slotAt(at time.Duration) *slot {
	return &s.slots[int(max(at, 0)/hakaru.BucketWidth)%ring]
}

func (s *Shard) measured(at time.Duration) bool { return at >= s.from && at < s.to }

// Good records an answer that was as expected. It belongs to the bucket in which
// it was complete.
func (s *Shard) Good(a *Answer) {
	slot, measured := s.slotAt(a.Done), s.measured(a.Done)
	if a.First == a.Done && a.Sent == a.Due {
		slot.plain.Record(a.Done - a.Due)
	} else {
		slot.other.Record(a.Done - a.Due)
		if measured {
			s.service.Record(a.Done - a.Sent)
			s.waiting.Record(a.First - a.Sent)
			s.own.Record(a.Done - a.Due - a.Lag)
		}
	}
	if measured {
		s.answered(a)
	}
}

// answered counts what good and bad answers have in common.
func (s *Shard) answered(a *Answer) {
	s.status[max(min(a.Status, statuses-1), 0)].Add(1)
	s.bytes.Add(uint64(a.Bytes))
}

// Wrong records a complete answer that was not as expected.
func (s *Shard) Wrong(a *Answer, kind int) {
	if s.measured(a.Done) {
		s.answered(a)
	}
	s.Failed(a.Due, a.Done, kind)
}

// Failed records a request that was due and, at another time, had failed.
func (s *Shard) Failed(due, at time.Duration, kind int) {
	s.slotAt(at).bad[kind].Add(1)
	if s.measured(at) {
		s.bad.Record(at - due)
	}
}

// Sent records of an open loop's request how much later it was sent than it could
// have been: than it was due, or, where all connections were in use then, than
// one was free; which says what the generator itself was late by.
func (s *Shard) Sent(due, free, sent time.Duration) {
	if s.measured(due) {
		s.begun.Add(1)
	}
	if !s.measured(sent) {
		return
	}
	s.lag.Record(sent - max(due, free))
	if free > due {
		s.queued.Add(1)
	}
}

// Connected records how long a connection took to be made.
func (s *Shard) Connected(took time.Duration) { s.connect.Record(took) }

// Tell keeps the words for a bad answer if it is among the first of its kind.
// The words are made only then: a service that fails fast must not make the
// generator busy with texts.
func (r *Recorder) Tell(kind int, words func() string) {
	if r.told[kind].Load() >= SamplesPerKind || r.told[kind].Add(1) > SamplesPerKind {
		return
	}
	text := words()
	r.telling.Lock()
	defer r.telling.Unlock()
	r.samples = append(r.samples, hakaru.Sample{Kind: kindNames[kind], Text: text})
}

// Samples returns what was told so far.
func (r *Recorder) Samples() []hakaru.Sample {
	r.telling.Lock()
	defer r.telling.Unlock()
	return append([]hakaru.Sample(nil), r.samples...)
}

// Drained is what one bucket's slots held.
type Drained struct {
	Plain, Other latency.Histogram // latencies of good answers
	Bad          uint64
	Kinds        map[string]uint64
}

// Latency is the latencies of all good answers.
func (d *Drained) Latency() *latency.Histogram {
	var all latency.Histogram
	all.Merge(&d.Plain)
	all.Merge(&d.Other)
	return &all
}

// Drain moves what slot number n holds into d, adding to what is there.
func (r *Recorder) Drain(n int, d *Drained) {
	for i := range r.shards {
		s := &r.shards[i].slots[n%ring]
		s.plain.Drain(&d.Plain)
		s.other.Drain(&d.Other)
		for kind := range s.bad {
			count := s.bad[kind].Swap(0)
			if count == 0 {
				continue
			}
			if d.Kinds == nil {
				d.Kinds = map[string]uint64{}
			}
			d.Kinds[string(kindNames[kind])] += count
			d.Bad += count
		}
	}
}

// DrainAll drains every slot: for the last bucket, when nobody records any more.
func (r *Recorder) DrainAll(d *Drained) {
	for n := range ring {
		r.Drain(n, d)
	}
}

// Rest is what a recorder holds beside its buckets: of the measured window, but
// for Connect.
type Rest struct {
	// Service, Waiting and Own lack the plain answers (Drained.Plain), whose service
	// time and wait for the first byte are their latency, and that were not late.
	Service, Waiting, Own, Bad, Lag, Connect latency.Histogram
	Statuses                                 map[int]uint64
	Bytes, Queued                            uint64
	Begun                                    uint64 // requests of an open loop that were due in the window and begun
}

// Rest gives what is held beside the buckets; for when nobody records any more.
func (r *Recorder) Rest() *Rest {
	rest := &Rest{Statuses: map[int]uint64{}}
	for i := range r.shards {
		s := &r.shards[i]
		s.service.Drain(&rest.Service)
		s.waiting.Drain(&rest.Waiting)
		s.own.Drain(&rest.Own)
		s.bad.Drain(&rest.Bad)
		s.lag.Drain(&rest.Lag)
		s.connect.Drain(&rest.Connect)
		for status := range s.status {
			if n := s.status[status].Load(); n > 0 {
				rest.Statuses[status] += n
			}
		}
		rest.Bytes += s.bytes.Load()
		rest.Queued += s.queued.Load()
		rest.Begun += s.begun.Load()
	}
	return rest
}
