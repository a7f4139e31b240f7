package host

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"hakaru/internal/link"
)

// Agent is a child process that serves a Host over its standard input and
// output.
type Agent struct {
	*Remote
	Role string

	cmd    *exec.Cmd
	stdin  io.Closer
	stderr *tail
	ended  chan struct{} // closed when the process has been waited for
	err    error         // how it ended; set before ended is closed
	link   *link.Client
}

// SpawnSpec says how to start an agent.
type SpawnSpec struct {
	Exe  string
	Args []string // up to the role
	Role string   // "service" or "load": for people who read ps
	CPUs []int    // pinned to these; empty: as this process
	Env  []string // nil: as this process
}

// Spawn starts an agent. It lives in a process group of its own, so that a
// Ctrl-C at the terminal reaches the conductor only, which then ends it in
// order. Close it.
func Spawn(spec SpawnSpec) (*Agent, error) {
	cmd := exec.Command(spec.Exe, append(spec.Args[:len(spec.Args):len(spec.Args)], spec.Role)...)
	cmd.Env = spec.Env
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("start the %s agent: %w", spec.Role, err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("start the %s agent: %w", spec.Role, err)
	}
	a := &Agent{Role: spec.Role, cmd: cmd, stdin: stdin, stderr: &tail{}, ended: make(chan struct{})}
	cmd.Stderr = a.stderr
	if err := startPinned(cmd, spec.CPUs); err != nil {
		return nil, fmt.Errorf("start the %s agent: %w", spec.Role, err)
	}
	a.link = link.NewClient(link.NewPipe(stdout, stdin))
	a.Remote = NewRemote(a.link)
	// The reader ends with the process, which Close waits for.
	go func() {
		a.link.Receive()
		a.err = cmd.Wait()
		close(a.ended)
	}()
	return a, nil
}

// startPinned starts cmd on the given CPUs. A child inherits the affinity of
// the thread that forks it, so the thread takes it on for that moment.
func startPinned(cmd *exec.Cmd, cpus []int) error {
	if len(cpus) == 0 {
		return cmd.Start()
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var before, set unix.CPUSet
	if err := unix.SchedGetaffinity(0, &before); err != nil {
		return fmt.Errorf("read CPU affinity: %w", err)
	}
	for _, cpu := range cpus {
		set.Set(cpu)
	}
	if err := unix.SchedSetaffinity(0, &set); err != nil {
		return fmt.Errorf("pin to CPUs %v: %w", cpus, err)
	}
	startErr := cmd.Start()
	if err := unix.SchedSetaffinity(0, &before); err != nil {
		return errors.Join(startErr, fmt.Errorf("take back the pinning to CPUs %v: %w", cpus, err))
	}
	return startErr
}

// PID returns the agent's process id.
func (a *Agent) PID() int { return a.cmd.Process.Pid }

// Lost is closed when the agent, or the link to it, is gone.
func (a *Agent) Lost() <-chan struct{} { return a.link.Lost() }

// Close hangs up, whereupon the agent ends what it started, and waits for it
// until ctx ends; then it is killed.
func (a *Agent) Close(ctx context.Context) error {
	a.stdin.Close()
	select {
	case <-a.ended:
	case <-ctx.Done():
		_ = a.cmd.Process.Kill() // it may just have ended
		select {
		case <-a.ended:
		case <-time.After(5 * time.Second): // a child of the agent still has its output open
			return fmt.Errorf("the %s agent (pid %d) did not end", a.Role, a.PID())
		}
	}
	if a.err != nil {
		return fmt.Errorf("%s agent: %w%s", a.Role, a.err, a.Said())
	}
	return nil
}

// Said returns the last lines the agent wrote to standard error, for an error
// message, or nothing.
func (a *Agent) Said() string {
	if text := strings.TrimSpace(a.stderr.String()); text != "" {
		return "\n" + text
	}
	return ""
}

// tail keeps the last few kilobytes written to it.
type tail struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

const tailSize = 8 << 10

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.buf.Write(p)
	if extra := t.buf.Len() - tailSize; extra > 0 {
		t.buf.Next(extra)
	}
	return len(p), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.buf.String()
}
