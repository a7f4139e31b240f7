package program

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"hakaru/internal/watch/kernel"
)

const (
	// grace is how long a program that is told to end may take before it is killed.
	grace = 2 * time.Second
	// outputs that something which left the group keeps open are not waited for.
	outputGrace = time.Second
	// mostOutput is how much is kept of each end of what a program writes.
	mostOutput = 128 << 10
)

// child is a program that was started: in a session of its own, ended with all
// of it, and with this process. What leaves the session (a daemon) goes on.
type child struct {
	cmd            *exec.Cmd
	started        time.Time
	birth          uint64 // with its pid it names the process, and its session
	stdout, stderr *ends
	both           *ends
	files          []*os.File

	ended chan struct{} // closed when it has been waited for and its session is empty
	// Set before ended is closed.
	took   time.Duration
	rusage syscall.Rusage
	after  []string // the files as they were at its end
	err    error    // what could not be read of it
}

// launch starts the program. The calling thread must outlive it.
func (r *running) launch(call Call) (_ *child, err error) {
	if len(call.Argv) == 0 {
		return nil, errNoProgram
	}
	path, err := Locate(call.Argv[0], r.spec.Dir)
	if err != nil {
		return nil, &MissingError{Name: r.spec.Name, Install: r.program.Install(), Err: err}
	}
	if err := passOnDescriptors(r.spec.Connections); err != nil {
		return nil, err
	}
	c := &child{ended: make(chan struct{}), stdout: &ends{}, stderr: &ends{}, both: &ends{}}
	defer func() {
		if err != nil {
			c.closeFiles()
		}
	}()
	for i, content := range call.Files {
		f, err := inMemory(fmt.Sprintf("hakaru-%s-%d", r.spec.Name, i), content)
		if err != nil {
			return nil, err
		}
		c.files = append(c.files, f)
	}
	c.cmd = &exec.Cmd{
		Path: path, Args: call.Argv, Env: r.environ, Dir: r.spec.Dir,
		Stdout: io.MultiWriter(c.stdout, c.both), Stderr: io.MultiWriter(c.stderr, c.both),
		ExtraFiles: c.files, WaitDelay: outputGrace,
		SysProcAttr: &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL},
	}
	c.started = time.Now()
	if err := c.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", call.Argv[0], err)
	}
	if s, err := kernel.ReadStat(c.cmd.Process.Pid); err == nil { // nobody has reaped it yet
		c.birth = s.Start
	}
	go c.wait()
	return c, nil
}

// passOnDescriptors lets the program open a file for each connection. The Go
// runtime raises this process's own soft limit, and gives the one it found to
// children, unless the limit was set by hand (syscall.Setrlimit): so it is set, to
// what it is.
func passOnDescriptors(connections int) error {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		return fmt.Errorf("read the limit of open files: %w", err)
	}
	const spare = 64
	if need := uint64(connections) + spare; need > limit.Max {
		return fmt.Errorf("%d connections need %d open files and the hard limit is %d: raise it (ulimit -Hn, LimitNOFILE=)", connections, need, limit.Max)
	}
	limit.Cur = limit.Max
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		return fmt.Errorf("raise the limit of open files: %w", err)
	}
	return nil
}

// wait ends what the program left in its session, reaps it, and reads its files.
func (c *child) wait() {
	defer close(c.ended)
	// Left a zombie, it keeps its number, and so that of its group and session,
	// from being given to another.
	for {
		err := unix.Waitid(unix.P_PID, c.cmd.Process.Pid, nil, unix.WEXITED|unix.WNOWAIT, nil)
		if !errors.Is(err, unix.EINTR) {
			break
		}
	}
	c.took = time.Since(c.started)
	c.endSession()
	err := c.cmd.Wait()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) && !errors.Is(err, exec.ErrWaitDelay) {
		c.err = errors.Join(c.err, fmt.Errorf("wait for %s: %w", c.cmd.Args[0], err))
	}
	if u, ok := c.cmd.ProcessState.SysUsage().(*syscall.Rusage); ok {
		c.rusage = *u
	}
	for _, f := range c.files {
		content, err := io.ReadAll(io.NewSectionReader(f, 0, 1<<20))
		if err != nil {
			c.err = errors.Join(c.err, fmt.Errorf("read what %s wrote: %w", c.cmd.Args[0], err))
		}
		c.after = append(c.after, string(content))
	}
	c.closeFiles()
}

// endSession kills what a program that has ended left behind: its group, and
// those of its session that have a group of their own, as the jobs of a shell do.
func (c *child) endSession() {
	_ = syscall.Kill(-c.cmd.Process.Pid, syscall.SIGKILL) // there may be nobody any more
	session := kernel.Group{Leader: c.cmd.Process.Pid, Start: c.birth}
	for range 3 { // one may start another while it is being looked for
		members, err := session.Members()
		if err != nil {
			c.err = fmt.Errorf("look for what %s left behind: %w", c.cmd.Args[0], err)
			return
		}
		if len(members) == 0 {
			return
		}
		for _, pid := range members {
			_ = syscall.Kill(pid, syscall.SIGKILL) // it may just have ended
		}
	}
}

func (c *child) closeFiles() {
	for _, f := range c.files {
		f.Close()
	}
}

// end tells the program to end, kills it where it does not, and returns when it
// has. Where it has ended already it does nothing.
func (c *child) end() {
	for _, how := range []struct {
		signal syscall.Signal
		wait   time.Duration
	}{{0, 0}, {syscall.SIGTERM, grace}, {syscall.SIGKILL, 0}} {
		select {
		case <-c.ended:
			return
		default:
		}
		if how.signal == 0 {
			continue
		}
		_ = syscall.Kill(-c.cmd.Process.Pid, how.signal) // it may just have ended
		if how.wait == 0 {
			break
		}
		timer := time.NewTimer(how.wait)
		select {
		case <-c.ended:
		case <-timer.C:
		}
		timer.Stop()
	}
	<-c.ended
}

// written is what an ended program wrote.
func (c *child) written() Written {
	w := Written{Stdout: c.stdout.text(), Stderr: c.stderr.text(), Files: c.after, Took: c.took}
	if s := c.cmd.ProcessState; !s.Success() {
		w.State = s.String()
	}
	return w
}

func (c *child) output() string { return c.both.text() }

// ends keeps the beginning and the end of what is written to it.
type ends struct {
	mu          sync.Mutex
	first, last []byte
	cut         int
}

func (e *ends) Write(p []byte) (int, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	n := min(len(p), mostOutput-len(e.first))
	e.first = append(e.first, p[:n]...)
	e.last = append(e.last, p[n:]...)
	if extra := len(e.last) - mostOutput; extra > 0 {
		e.cut += extra
		e.last = append(e.last[:0], e.last[extra:]...)
	}
	return len(p), nil
}

func (e *ends) text() string {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.cut == 0 {
		return string(e.first) + string(e.last)
	}
	return fmt.Sprintf("%s\n… %d bytes left out …\n%s", e.first, e.cut, e.last)
}

// inMemory is a file without a name.
func inMemory(name, content string) (*os.File, error) {
	fd, err := unix.MemfdCreate(name, unix.MFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("make a file in memory: %w", err)
	}
	f := os.NewFile(uintptr(fd), name)
	if _, err := f.WriteAt([]byte(content), 0); err != nil {
		f.Close()
		return nil, fmt.Errorf("write a file in memory: %w", err)
	}
	return f, nil
}

// Locate finds a program as a shell would; a path that is not absolute begins at
// dir.
func Locate(name, dir string) (string, error) {
	if strings.Contains(name, "/") {
		if name[0] != '/' && dir != "" {
			name = filepath.Join(dir, name)
		}
	}
	path, err := exec.LookPath(name)
	if err != nil {
		return "", fmt.Errorf("find the load program: %w", err)
	}
	return path, nil
}
