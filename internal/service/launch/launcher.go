// Package launch starts a program as a service host does: in a session and a cgroup
// of its own, as a user, on some CPUs, so that it dies with this process and its
// number stays its own until it is reaped.
//
// It takes a Program, everything decided, and gives a Process. It also finds what
// is needed to decide: the program in the PATH of its own environment, and the
// user's groups. It does not read what the program writes, wait until it is ready,
// or stop it.
package launch

import (
	"errors"
	"fmt"
	"runtime"
	"slices"

	"golang.org/x/sys/unix"
)

// Launcher runs functions on one thread of the kernel, which lives as long as
// the stack. Two things hang on the thread: the parent-death signal of a child
// is sent when the thread that forked it ends, not when the process does
// (prctl(2), PR_SET_PDEATHSIG), so the thread must not end before the child; and
// a child inherits the CPU affinity of the thread that forked it.
type Launcher struct {
	work chan func()
	done chan struct{}
	// setCPUs is sched_setaffinity(2) of the calling thread.
	setCPUs func(*unix.CPUSet) error
}

// New starts the thread; Close ends it and waits.
func New() *Launcher {
	l := &Launcher{work: make(chan func()), done: make(chan struct{}),
		setCPUs: func(set *unix.CPUSet) error { return unix.SchedSetaffinity(0, set) }}
	go func() {
		defer close(l.done)
		runtime.LockOSThread()
		// Every function puts the affinity back, so the thread can be given back.
		defer runtime.UnlockOSThread()
		for f := range l.work {
			f()
		}
	}()
	return l
}

// do runs f on the thread, pinned to cpus while it runs (empty: as it is).
func (l *Launcher) do(cpus []int, f func() error) error {
	answer := make(chan error)
	l.work <- func() { answer <- l.pinned(cpus, f) }
	return <-answer
}

// Close ends the thread, and with it every program that still runs.
func (l *Launcher) Close() {
	close(l.work)
	<-l.done
}

func (l *Launcher) pinned(cpus []int, f func() error) error {
	if len(cpus) == 0 {
		return f()
	}
	var before, set unix.CPUSet
	if err := unix.SchedGetaffinity(0, &before); err != nil {
		return fmt.Errorf("read the CPUs this thread may use: %w", err)
	}
	for _, cpu := range slices.Sorted(slices.Values(cpus)) {
		if !before.IsSet(cpu) {
			return fmt.Errorf("pin to CPUs %v: CPU %d is not among those this process may use", cpus, cpu)
		}
		set.Set(cpu)
	}
	if err := l.setCPUs(&set); err != nil {
		return fmt.Errorf("pin to CPUs %v: %w", cpus, err)
	}
	err := f()
	if back := l.setCPUs(&before); back != nil {
		return errors.Join(err, fmt.Errorf("put this thread's CPUs back: %w", back))
	}
	return err
}
