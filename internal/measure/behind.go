package measure

import "hakaru"

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
	missing := due - float64(good+bad)
	if missing <= (1-behindLeast)*due {
		return false
	}
	p99, ok := r.Measured(hakaru.P99)
	if !ok {
		return missing >= 2
	}
	// Of a service that keeps up not more are out than come within the time in which
	// nearly all are answered; one that does not takes longer and longer.
	const short = 0.1 // of the window
	return missing > 1+o.Rate*p99 || p99 >= short*seconds
}
