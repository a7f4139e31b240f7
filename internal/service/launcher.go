package service

import (
	"errors"
	"fmt"
	"runtime"
	"slices"

	"golang.org/x/sys/unix"
)

// launcher runs functions on one thread of the kernel, which lives as long as
// the stack. Two things hang on the thread: the parent-death signal of a child
// is sent when the thread that forked it ends, not when the process does
// (prctl(2), PR_SET_PDEATHSIG), so the thread must not end before the child; and
// a child inherits the CPU affinity of the thread that forked it.
type launcher struct {
	work chan func()
	done chan struct{}
}

// newLauncher starts the thread; close ends it and waits.
func newLauncher() *launcher {
	l := &launcher{work: make(chan func()), done: make(chan struct{})}
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
func (l *launcher) do(cpus []int, f func() error) error {
	answer := make(chan error)
	l.work <- func() { answer <- pinned(cpus, f) }
	return <-answer
}

func (l *launcher) close() {
	close(l.work)
	<-l.done
}

func pinned(cpus []int, f func() error) error {
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
	if err := unix.SchedSetaffinity(0, &set); err != nil {
		return fmt.Errorf("pin to CPUs %v: %w", cpus, err)
	}
	err := f()
	if back := unix.SchedSetaffinity(0, &before); back != nil {
		return errors.Join(err, fmt.Errorf("put this thread's CPUs back: %w", back))
	}
	return err
}
