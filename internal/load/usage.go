package load

import (
	"fmt"
	"os"
	"runtime/debug"
	"time"

	"golang.org/x/sys/unix"

	"hakaru"
	"hakaru/internal/watch/kernel"
)

// usage reads what this process, the generator, costs: CPU from getrusage, and
// from /proc/self/task/*/schedstat (nanoseconds on a CPU, nanoseconds waiting
// for one, number of slices) the time in which its threads wanted a CPU and had
// none. Where the kernel keeps no schedstat those two columns are left out. Beside
// the columns it sees the collections of its memory.
type usage struct {
	schedstat bool
	cpu       float64
	threads   kernel.ThreadTimes
	gc        debug.GCStats
	gcs       int64         // collections since the reading before
	gcPause   time.Duration // the longest of them: all that stood still for it
}

// newUsage takes the first reading; figures are increases from then on.
func newUsage() (*usage, error) {
	u := &usage{schedstat: kernel.HasSchedstat()}
	if _, err := u.read(nil); err != nil {
		return nil, err
	}
	return u, nil
}

// counters names the columns in the order in which read appends them.
func (u *usage) counters() []hakaru.Counter {
	columns := []hakaru.Counter{
		{Name: hakaru.CounterCPU, Of: hakaru.OfGenerator},
		{Name: hakaru.CounterCPUs, Of: hakaru.OfGenerator, Gauge: true},
	}
	if u.schedstat {
		columns = append(columns,
			hakaru.Counter{Name: hakaru.CounterWait, Of: hakaru.OfGenerator},
			hakaru.Counter{Name: hakaru.CounterHotThread, Of: hakaru.OfGenerator})
	}
	return columns
}

// read appends the increases since the reading before.
func (u *usage) read(to []float64) ([]float64, error) {
	var r unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &r); err != nil {
		return nil, fmt.Errorf("read the generator's CPU time: %w", err)
	}
	cpu := float64(r.Utime.Nano()+r.Stime.Nano()) / 1e9
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(os.Getpid(), &set); err != nil {
		return nil, fmt.Errorf("read the generator's CPUs: %w", err)
	}
	to = append(to, cpu-u.cpu, float64(set.Count()))
	u.cpu = cpu
	u.readGC()
	if !u.schedstat {
		return to, nil
	}
	waited, hottest := u.threads.Look(os.Getpid())
	return append(to, waited, hottest), nil
}

// readGC sees how often and how long this process stood still for its memory to
// be collected.
func (u *usage) readGC() {
	before := u.gc.NumGC
	debug.ReadGCStats(&u.gc) // the last 256 pauses, the newest first
	u.gcs, u.gcPause = u.gc.NumGC-before, 0
	for _, pause := range u.gc.Pause[:min(int64(len(u.gc.Pause)), u.gcs)] {
		u.gcPause = max(u.gcPause, pause)
	}
}

// tally adds a bucket's figures to a load's as a whole.
func (u *usage) tally(t *hakaru.Tally, values []float64) {
	t.CPU += values[0]
	t.CPUs = int(values[1])
	t.GCs += uint32(u.gcs)
	t.GCPause = max(t.GCPause, u.gcPause)
	if u.schedstat {
		t.Waited += values[2]
	}
	t.Connects += uint64(values[len(values)-2])
	t.Retried += uint64(values[len(values)-1])
}
