//go:build linux

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// launcher starts processes on a CPU, in the real-time class where it is wanted
// and permitted: it keeps what else runs on the machine off the measured CPUs.
// Round robin, so that threads of one program (wrk's main one, which ends the
// run) get their turn.
//
// taskset and chrt become the program, so that about two milliseconds of theirs
// are in everybody's CPU time. This program never enters the class itself, not
// even to start something: while threads of its own were in it, one was seen to
// spin in the kernel for a quarter of an hour, over everything else on its CPU. It
// gets its turn, to end what overruns, from the kernel's reserve for the ordinary
// class.
type launcher struct {
	realTime bool
	cpus     unix.CPUSet // this program's
}

// newLauncher tries whether the class is permitted; refused says why it is not.
func newLauncher(ctx context.Context, realTime bool) (l *launcher, refused, err error) {
	runtime.LockOSThread() // never unlocked: parent-death signals are the thread's
	l = &launcher{realTime: realTime}
	if err := unix.SchedGetaffinity(0, &l.cpus); err != nil {
		return nil, nil, fmt.Errorf("read the CPUs of this process: %w", err)
	}
	if _, err := exec.LookPath("taskset"); err != nil {
		return nil, nil, fmt.Errorf("find taskset: %w (of util-linux)", err)
	}
	if l.realTime {
		if out, err := exec.CommandContext(ctx, "chrt", "-r", "1", "true").CombinedOutput(); err != nil {
			l.realTime, refused = false, fmt.Errorf("%w: %s", err, strings.TrimSpace(string(out)))
		}
	}
	return l, refused, nil
}

// class is what processes are started in.
func (l *launcher) class() string {
	if l.realTime {
		return "SCHED_RR, priority 1"
	}
	return "SCHED_OTHER"
}

// inOrdinary is the same without the real-time class.
func (l *launcher) inOrdinary() *launcher { return &launcher{cpus: l.cpus} }

// words are those of a program on a CPU.
func (l *launcher) words(cpu int, argv []string) []string {
	words := []string{"taskset", "-c", strconv.Itoa(cpu)}
	if l.realTime {
		words = append(words, "chrt", "-r", "1")
	}
	return append(words, argv...)
}

// dying is for children that are to die with this program.
func dying(signal syscall.Signal) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: signal}
}

// cost is what one process took.
type cost struct {
	cpu, wall time.Duration
	cut       bool // ended by force: it ran beyond its bound
}

// command is a program to be run once.
type command struct {
	argv  []string
	env   []string // besides the usual
	stdin string
}

// run runs a program to its end, by force after bound, and reads its CPU time
// (user and system) where the kernel hands it over. stdout may be nil.
func (l *launcher) run(ctx context.Context, c command, cpu int, bound time.Duration, stdout io.Writer) (cost, error) {
	ctx, cancel := context.WithTimeout(ctx, bound)
	defer cancel()
	words := l.words(cpu, c.argv)
	cmd := exec.CommandContext(ctx, words[0], words[1:]...)
	cmd.SysProcAttr = dying(syscall.SIGKILL)
	cmd.WaitDelay = time.Second // a grandchild that holds the output
	cmd.Env = append(os.Environ(), c.env...)
	if c.stdin != "" {
		cmd.Stdin = strings.NewReader(c.stdin)
	}
	last := &tail{room: 400}
	cmd.Stdout, cmd.Stderr = stdout, last
	if stdout == nil {
		cmd.Stdout = last
	}
	began := time.Now()
	if err := cmd.Start(); err != nil {
		return cost{}, fmt.Errorf("start %s: %w", c.argv[0], err)
	}
	err := cmd.Wait()
	took := cost{wall: time.Since(began)}
	if s := cmd.ProcessState; s != nil {
		took.cpu = s.UserTime() + s.SystemTime()
	}
	if err != nil && errors.Is(ctx.Err(), context.DeadlineExceeded) {
		took.cut = true
		return took, nil
	}
	if err != nil {
		return took, fmt.Errorf("%s: %w: %s", c.argv[0], err, strings.Join(strings.Fields(last.String()), " "))
	}
	return took, nil
}

// tail keeps the end of what is written.
type tail struct {
	bytes.Buffer
	room int
}

func (t *tail) Write(p []byte) (int, error) {
	t.Buffer.Write(p)
	if more := t.Len() - t.room; more > 0 {
		t.Next(more)
	}
	return len(p), nil
}
