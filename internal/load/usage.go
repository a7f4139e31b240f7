package load

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"hakaru"
)

// usage reads what this process, the generator, costs: CPU from getrusage, and
// from /proc/self/task/*/schedstat (nanoseconds on a CPU, nanoseconds waiting
// for one, number of slices) the time in which its threads wanted a CPU and had
// none. Where the kernel keeps no schedstat those two columns are left out.
type usage struct {
	schedstat bool
	cpu       float64
	threads   map[string]thread // by thread id
}

// thread is seconds on a CPU and seconds waiting for one.
type thread struct{ ran, waited float64 }

// newUsage takes the first reading; figures are increases from then on.
func newUsage() (*usage, error) {
	u := &usage{threads: map[string]thread{}}
	_, err := os.Stat("/proc/self/schedstat")
	u.schedstat = err == nil
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
	if !u.schedstat {
		return to, nil
	}
	waited, hottest, err := u.readThreads()
	if err != nil {
		return nil, err
	}
	return append(to, waited, hottest), nil
}

// readThreads returns how long all threads waited for a CPU, and how long the
// busiest one ran and waited, since the reading before. What a thread that has
// ended did since then is lost.
func (u *usage) readThreads() (waited, hottest float64, err error) {
	const tasks = "/proc/self/task"
	entries, err := os.ReadDir(tasks)
	if err != nil {
		return 0, 0, fmt.Errorf("read the generator's threads: %w", err)
	}
	now := make(map[string]thread, len(entries))
	for _, e := range entries {
		text, err := os.ReadFile(tasks + "/" + e.Name() + "/schedstat")
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ESRCH) {
			continue // it ended in between
		}
		if err != nil {
			return 0, 0, fmt.Errorf("read the generator's threads: %w", err)
		}
		t, err := parseSchedstat(string(text))
		if err != nil {
			return 0, 0, fmt.Errorf("thread %s: %w", e.Name(), err)
		}
		before := u.threads[e.Name()]
		if t.ran < before.ran {
			before = thread{} // the number was given to another thread
		}
		waited += t.waited - before.waited
		hottest = max(hottest, t.ran-before.ran+t.waited-before.waited)
		now[e.Name()] = t
	}
	u.threads = now
	return waited, hottest, nil
}

// parseSchedstat reads "ran waited slices", the first two in nanoseconds
// (Documentation/scheduler/sched-stats.rst of the kernel).
func parseSchedstat(text string) (thread, error) {
	fields := strings.Fields(text)
	if len(fields) < 2 {
		return thread{}, fmt.Errorf("schedstat %q: want three numbers", text)
	}
	ran, err1 := strconv.ParseUint(fields[0], 10, 64)
	waited, err2 := strconv.ParseUint(fields[1], 10, 64)
	if err := errors.Join(err1, err2); err != nil {
		return thread{}, fmt.Errorf("schedstat %q: %w", text, err)
	}
	return thread{float64(ran) / 1e9, float64(waited) / 1e9}, nil
}
