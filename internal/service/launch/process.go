package launch

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// A program that is busy being written is tried busyTries times, busyPause apart.
const (
	busyTries = 50
	busyPause = 10 * time.Millisecond
)

// Program is what to start.
type Program struct {
	Path       string // of the file
	Argv       []string
	Env        []string
	Dir        string
	Credential *syscall.Credential // nil: as this process
	CPUs       []int               // empty: those of this process
	Cgroup     string              // a directory; empty: this process's
	Output     *os.File            // standard output and error
}

// Process is the main process of a program that was started.
type Process struct {
	PID int
	// NoCgroup is why it is not in the cgroup that was asked for.
	NoCgroup error
	// After is what went wrong when it ran already.
	After error

	cmd   *exec.Cmd
	ended chan struct{} // closed when it has ended
	state string        // how, once ended is closed
	code  int           // exit status; -1: by a signal
}

// Start forks and executes the program and begins to wait for its end. An error
// says that it does not run.
func (l *Launcher) Start(p Program) (*Process, error) {
	cmd, err := l.try(p)
	// A program that was just written can still be open for writing in a child
	// forked meanwhile, until that child executes (go.dev/issue/22315).
	for again := 0; errors.Is(err, unix.ETXTBSY) && again < busyTries; again++ {
		<-time.After(busyPause)
		cmd, err = l.try(p)
	}
	out := &Process{ended: make(chan struct{})}
	if err != nil && cmd.Process == nil && p.Cgroup != "" {
		// The kernel may be too old to start into a cgroup, or forbid it.
		p.Cgroup = ""
		if second, secondErr := l.try(p); second.Process != nil {
			out.NoCgroup = err
			cmd, err = second, secondErr
		}
	}
	if cmd.Process == nil {
		if why := whyNotExecuted(p.Path, err); why != "" {
			err = fmt.Errorf("%w: %s", err, why)
		}
		return nil, fmt.Errorf("execute %s: %w", p.Path, err)
	}
	// An error now is of what comes after the start: whoever stops the program has
	// to know it all the same.
	out.PID, out.cmd, out.After = cmd.Process.Pid, cmd, err
	go out.wait()
	return out, nil
}

// try starts it once. It did start where the command has a process, whatever the
// error says.
func (l *Launcher) try(p Program) (*exec.Cmd, error) {
	cmd := &exec.Cmd{
		Path: p.Path, Args: p.Argv, Env: p.Env, Dir: p.Dir,
		Stdout: p.Output, Stderr: p.Output,
		SysProcAttr: &syscall.SysProcAttr{
			Setsid:     true,
			Pdeathsig:  syscall.SIGKILL,
			Credential: p.Credential,
		},
	}
	return cmd, l.do(p.CPUs, func() error {
		if p.Cgroup == "" {
			return cmd.Start()
		}
		dir, err := os.Open(p.Cgroup)
		if err != nil {
			return err
		}
		defer dir.Close()
		cmd.SysProcAttr.UseCgroupFD = true
		cmd.SysProcAttr.CgroupFD = int(dir.Fd())
		return cmd.Start()
	})
}

// Ended is closed when the process has ended; it is a zombie until Reap.
func (p *Process) Ended() <-chan struct{} { return p.ended }

// HasEnded reports whether it has.
func (p *Process) HasEnded() bool {
	select {
	case <-p.ended:
		return true
	default:
		return false
	}
}

// State is how it ended, and its exit status, -1 for a signal; only once it has.
func (p *Process) State() (how string, code int) { return p.state, p.code }

// Reap gives the number of a process that has ended back to the kernel.
func (p *Process) Reap() {
	_ = p.cmd.Wait() // how it ended is known since it ended
}

// wait learns how the main process ended and leaves it a zombie: as long as it
// is not reaped, its number cannot name another process, group or session, so
// that signals sent by number reach nobody else. Reap reaps it.
func (p *Process) wait() {
	defer close(p.ended)
	var info unix.Siginfo
	for {
		err := unix.Waitid(unix.P_PID, p.PID, &info, unix.WEXITED|unix.WNOWAIT, nil)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			p.state, p.code = fmt.Sprintf("unknown (%v)", err), -1
			return
		}
		break
	}
	// siginfo_t of SIGCHLD: three ints, a word's alignment, then pid, uid and
	// status (sigaction(2)); x/sys has no accessor.
	const word = unsafe.Sizeof(uintptr(0))
	status := *(*int32)(unsafe.Add(unsafe.Pointer(&info), 12+(word-4)+8))
	const exited, dumped = 1, 3 // CLD_EXITED, CLD_DUMPED
	switch info.Code {
	case exited:
		p.state, p.code = fmt.Sprintf("exit status %d", status), int(status)
	case dumped:
		p.state, p.code = fmt.Sprintf("signal: %s (core dumped)", syscall.Signal(status)), -1
	default:
		p.state, p.code = fmt.Sprintf("signal: %s", syscall.Signal(status)), -1
	}
}

// whyNotExecuted says more than the kernel does of a program that is there and
// cannot be executed.
func whyNotExecuted(path string, err error) string {
	switch {
	case errors.Is(err, unix.ENOENT):
		f, err := os.Open(path)
		if err != nil {
			return ""
		}
		defer f.Close()
		line, err := bufio.NewReader(io.LimitReader(f, 256)).ReadString('\n')
		if err != nil && !errors.Is(err, io.EOF) {
			return ""
		}
		if interpreter, ok := strings.CutPrefix(line, "#!"); ok {
			if words := strings.Fields(interpreter); len(words) > 0 {
				return fmt.Sprintf("its first line names %s, which is not there", words[0])
			}
		}
		return "the loader or the interpreter that it names is not there"
	case errors.Is(err, unix.ENOEXEC):
		return "it is neither a program for this machine nor a script that begins with #!"
	}
	return ""
}
