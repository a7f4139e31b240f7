package kernel

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
)

// ThreadTimes are those of the threads of processes, looked at again and again: how long they waited
// for a CPU, and how long the busiest one ran or wanted to. What a thread did
// between the last look and its end is lost. The zero value has looked at nothing
// yet: what a thread did before it is seen first counts for the first look.
type ThreadTimes struct {
	seen map[string]schedstat // by process and thread
	tids []int
}

// schedstat is seconds on a CPU and seconds waiting for one.
type schedstat struct{ ran, waited float64 }

// HasSchedstat reports whether this kernel counts such times.
func HasSchedstat() bool {
	_, err := os.Stat("/proc/self/schedstat")
	return err == nil
}

// Look returns, in seconds since the look before, how long all threads of the
// processes waited for a CPU, and how long the busiest one ran and waited.
func (t *ThreadTimes) Look(pids ...int) (waited, hottest float64) {
	now := make(map[string]schedstat, len(t.seen))
	for _, pid := range pids {
		var err error
		if t.tids, err = Threads(pid, t.tids); err != nil {
			continue // it has ended
		}
		for _, tid := range t.tids {
			key := strconv.Itoa(pid) + "/task/" + strconv.Itoa(tid)
			text, err := os.ReadFile("/proc/" + key + "/schedstat")
			if err != nil {
				continue // so has it
			}
			s, err := parseSchedstat(string(text))
			if err != nil {
				continue
			}
			before := t.seen[key]
			if s.ran < before.ran {
				before = schedstat{} // the number was given to another thread
			}
			waited += s.waited - before.waited
			hottest = max(hottest, s.ran-before.ran+s.waited-before.waited)
			now[key] = s
		}
	}
	t.seen = now
	return waited, hottest
}

// parseSchedstat reads "ran waited slices", the first two in nanoseconds
// (Documentation/scheduler/sched-stats.rst of the kernel).
func parseSchedstat(text string) (schedstat, error) {
	fields := strings.Fields(text)
	if len(fields) < 2 {
		return schedstat{}, fmt.Errorf("schedstat %q: want three numbers", text)
	}
	ran, err1 := strconv.ParseUint(fields[0], 10, 64)
	waited, err2 := strconv.ParseUint(fields[1], 10, 64)
	if err := errors.Join(err1, err2); err != nil {
		return schedstat{}, fmt.Errorf("schedstat %q: %w", text, err)
	}
	return schedstat{float64(ran) / 1e9, float64(waited) / 1e9}, nil
}
