package measure

import (
	"time"

	"hakaru"
	"hakaru/internal/latency"
)

// MeanLatency is the mean latency of the good answers in the measured window;
// false where there is none.
func MeanLatency(buckets []hakaru.Bucket, warmUp, length time.Duration) (time.Duration, bool) {
	all := merged(Cut(buckets, warmUp, length))
	if all == nil || all.Count() == 0 {
		return 0, false
	}
	return all.Mean(), true
}

// Latencies are those of the good answers in the measured window, as a whole; false
// where there is none.
func Latencies(buckets []hakaru.Bucket, warmUp, length time.Duration) (*latency.Histogram, bool) {
	all := merged(Cut(buckets, warmUp, length))
	return all, all != nil && all.Count() > 0
}
