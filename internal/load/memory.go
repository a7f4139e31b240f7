package load

import (
	"runtime/debug"
	"runtime/metrics"
)

// quiet is how much garbage may lie around before it is collected while a load is
// sent. Sending allocates nothing, and what the buckets leave is a few kilobytes
// each, so that most loads end before. A collection is cheap; but on few CPUs its
// threads stand in the way of the sender's, for a slice of the kernel's scheduler
// at worst, and that is the latency that a load would then tell of the service.
const quiet = 64 << 20

// collectLess makes collections rare until the function that it gives is called.
func collectLess() (restore func()) {
	live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(live)
	const least = 4 << 20 // of the runtime, below which it never collects
	heap := max(live[0].Value.Uint64(), least)
	before := debug.SetGCPercent(max(int(quiet*100/heap), 100))
	return func() { debug.SetGCPercent(before) }
}
