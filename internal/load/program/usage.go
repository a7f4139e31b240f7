package program

import (
	"time"

	"golang.org/x/sys/unix"

	"hakaru"
	"hakaru/internal/watch/kernel"
)

// usage reads what the programs cost: CPU time of the child and of its session
// from /proc/PID/stat (in steps of 10 ms, made whole by the rusage of wait4 at its
// end), and from the schedstat of their threads the time in which one wanted a CPU
// and had none, and that of the busiest thread. Of a thread that has ended, what
// it did since the last look is lost to the latter two, and with the program the
// bucket in which it ended: no rule asks for that one (diagnose).
//
// It is asked by the one goroutine that counts buckets.
type usage struct {
	cpus float64 // that the program can use

	child   *child
	finder  kernel.Finder
	counted time.Duration // of this child, in buckets so far
	threads kernel.ThreadTimes
}

// allowed is how many CPUs a program that can use most of them has here.
func allowed(most int) float64 {
	var set unix.CPUSet
	n := 1
	if err := unix.SchedGetaffinity(0, &set); err == nil {
		n = set.Count()
	}
	if most > 0 {
		n = min(n, most)
	}
	return float64(n)
}

func (*usage) counters() []hakaru.Counter {
	return []hakaru.Counter{
		{Name: hakaru.CounterCPU, Of: hakaru.OfGenerator},
		{Name: hakaru.CounterCPUs, Of: hakaru.OfGenerator, Gauge: true},
		{Name: hakaru.CounterWait, Of: hakaru.OfGenerator},
		{Name: hakaru.CounterHotThread, Of: hakaru.OfGenerator},
	}
}

// follow turns to a new child.
func (u *usage) follow(c *child) {
	pid := c.cmd.Process.Pid
	u.child, u.counted, u.threads = c, 0, kernel.ThreadTimes{}
	u.finder = kernel.Finder{Group: kernel.Group{Leader: pid}}
	if s, err := kernel.ReadStat(pid); err == nil {
		u.finder.Start = s.Start
	}
}

// read returns the columns: increases since the reading before.
func (u *usage) read() []float64 {
	values := []float64{0, u.cpus, 0, 0}
	if u.child == nil {
		return values
	}
	select {
	case <-u.child.ended:
		r := u.child.rusage
		total := time.Duration(r.Utime.Nano() + r.Stime.Nano())
		values[0] = max(0, total-u.counted).Seconds()
		u.child = nil
		return values
	default:
	}
	members, err := u.finder.Find()
	if err != nil {
		return values // what is missing now is in the sum at the end
	}
	var total time.Duration
	for _, pid := range members {
		if s, err := kernel.ReadStat(pid); err == nil {
			total += s.CPU + s.ChildCPU
		}
	}
	if total > u.counted {
		values[0] = (total - u.counted).Seconds()
		u.counted = total
	}
	values[2], values[3] = u.threads.Look(members...)
	return values
}
