package measure

import (
	"time"

	"hakaru"
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
