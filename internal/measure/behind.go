package measure

import (
	"math"

	"hakaru"
)

// behindLeast is the share of the requests due in an open loop that are answered
// where a service keeps up with it.
const behindLeast = 0.99

// FellBehind reports whether the service did not keep up with a trial's open loop:
// fewer than 99 % of the requests due in the window were done with, well or badly,
// and those that are missing are more than were under way when it ended. Its
// latencies then grow with the length of the measurement, and are no figure of the
// service. False where there was no open loop, or it cannot be told.
func FellBehind(r *hakaru.Result) bool {
	o := r.Open
	if o == nil {
		return false
	}
	buckets, warmUp, length := o.Buckets, o.WarmUp, o.Window
	if o.Whole {
		buckets, warmUp, length = r.Buckets, r.WarmUp, r.Window
	}
	window := Cut(buckets, warmUp, length)
	if len(window) == 0 {
		return false
	}
	seconds := float64(len(window)) * hakaru.BucketWidth.Seconds()
	due := o.Rate * seconds
	if o.Tally != nil && o.Tally.Due > 0 {
		due = float64(o.Tally.Due)
	}
	good, bad, _ := count(window)
	p99, ok := r.Measured(hakaru.P99)
	if !ok {
		p99 = math.NaN()
	}
	return Behind(o.Rate, due, float64(good+bad), seconds, p99)
}

// Behind is FellBehind by its figures: the rate (1/s), how many requests were due in
// the window and how many were done with, its length and the p99 latency in seconds;
// NaN where that is not known.
func Behind(rate, due, done, seconds, p99 float64) bool {
	missing := due - done
	if missing <= (1-behindLeast)*due {
		return false
	}
	if math.IsNaN(p99) {
		return missing >= 2
	}
	// Of a service that keeps up not more are out than come within the time in which
	// nearly all are answered; one that does not takes longer and longer.
	const short = 0.1 // of the window
	return missing > 1+rate*p99 || p99 >= short*seconds
}
