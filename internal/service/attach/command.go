package attach

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"hakaru"
	"hakaru/internal/service/answer"
	"hakaru/internal/service/launch"
	"hakaru/internal/service/registry"
	"hakaru/internal/watch/kernel"
)

const (
	// endGrace is what a command gets to end by itself when nobody needs it any
	// more, and after TERM: a restart that is cut in half is worse than a wait.
	endGrace = 5 * time.Second
	// busyTries bounds how often a program that is busy being written is tried,
	// registry.LookPause apart.
	busyTries = 50
)

// runner runs commands of a person for one service.
//
// A command has a session of its own, writes into a file, and is not tied to the
// agent's life: what a restart starts as a daemon, or leaves in the background,
// is the person's service and goes on. A pipe would have it die of writing into
// nothing when the agent ends. For the same reason only the command itself is
// waited for, and its children are not ended when it ended by itself.
type runner struct {
	dir     string
	env     []string
	limit   time.Duration
	service string
	outputs string       // directory of the files that commands write to
	ready   hakaru.Ready // whoever listens there is spared
}

// run runs a command to its end. note gets what is known of it before it is
// begun, and again when it has a number. An *Error says how it failed; any other
// error is the machine's.
func (r runner) run(ctx context.Context, what string, words []string, note func(*registry.Command) error) (err error) {
	path, err := launch.LookUp(words[0], r.dir, r.env)
	if err != nil {
		return &Error{Why: what + ": " + err.Error(), Hint: "a name without a slash is looked for in PATH, a relative one starts at " + r.dir}
	}
	if info, err := os.Stat(r.dir); r.dir != "" && (err != nil || !info.IsDir()) {
		return &Error{Why: fmt.Sprintf("%s: its directory %s is not there", what, r.dir)}
	}
	out, err := r.openOutput(what)
	if err != nil {
		return fmt.Errorf("%s: make a file for its output: %w", what, err)
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	begun := &registry.Command{What: what, Output: out.Name()}
	if err := note(begun); err != nil {
		return fmt.Errorf("note %s: %w", what, err)
	}
	cmd, err := r.start(path, words, out)
	switch {
	case errors.Is(err, unix.EAGAIN), errors.Is(err, unix.ENOMEM), errors.Is(err, unix.EMFILE), errors.Is(err, unix.ENFILE):
		return fmt.Errorf("%s: %w", what, err) // the machine's, not the command's
	case err != nil:
		return &Error{Why: fmt.Sprintf("%s: %v", what, err)}
	}
	begun.PID = cmd.Process.Pid
	if st, err := kernel.ReadStat(begun.PID); err == nil {
		begun.Start = st.Start
	}
	noteErr := note(begun)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		awaitZombie(begun.PID)
	}()
	over := r.await(ctx, *begun, ended)
	var waitErr error
	if over.service == 0 {
		// Everything of it that had to be ended has been: now its number may go.
		waitErr = cmd.Wait()
		<-ended
	} else {
		// It is the person's service, which may outlive this process: nobody
		// waits for this, whose only purpose is to leave no zombie.
		go func() {
			<-ended
			_ = cmd.Wait()
		}()
	}
	if noteErr != nil {
		return fmt.Errorf("note %s: %w", what, noteErr)
	}
	text := tailOf(out)
	switch {
	case over.service != 0:
		return &Error{
			Why: fmt.Sprintf("%s has not ended: %s, and %s, which listens at the service's address, runs in it",
				what, over.why, registry.DescribeAll([]int{over.service})),
			Output: text,
			Hint:   "a command has to return: start the service in the background, as a daemon or by its service manager",
		}
	case over.why != "":
		why, hint := fmt.Sprintf("%s was ended: %s", what, over.why), "attach: {timeout: …} says how long a command may take"
		if len(over.left) > 0 {
			why += "; left running: " + registry.DescribeAll(over.left)
			hint += "; what is left may be the service, which was not found, or cannot be ended"
		}
		return &Error{Why: why, Output: text, Hint: hint}
	case waitErr != nil:
		return &Error{Why: fmt.Sprintf("%s failed (%v)", what, waitErr), Output: text, Hint: "run it by hand as it is written to see why"}
	}
	return nil
}

func (r runner) start(path string, words []string, out *os.File) (*exec.Cmd, error) {
	for try := 0; ; try++ {
		cmd := &exec.Cmd{
			Path: path, Args: words, Env: r.env, Dir: r.dir, Stdout: out, Stderr: out,
			SysProcAttr: &syscall.SysProcAttr{Setsid: true},
		}
		err := cmd.Start()
		// A script that was just written can still be open for writing in a child
		// forked meanwhile, until that child executes (go.dev/issue/22315).
		if !errors.Is(err, unix.ETXTBSY) || try == busyTries {
			return cmd, err
		}
		<-time.After(registry.LookPause)
	}
}

// openOutput makes the file for a command's output, without a name where the
// private directory is not there any more.
func (r runner) openOutput(what string) (*os.File, error) {
	f, err := os.OpenFile(r.outputFile(what), os.O_RDWR|os.O_CREATE|os.O_TRUNC|os.O_APPEND|unix.O_NOFOLLOW, 0o600)
	if !errors.Is(err, fs.ErrNotExist) {
		return f, err
	}
	if f, err = os.CreateTemp("", "hakaru-"+what+"-"); err != nil {
		return nil, err
	}
	return f, os.Remove(f.Name())
}

// tailOf reads the end of what a command wrote.
func tailOf(out *os.File) string {
	const size = 4096
	info, err := out.Stat()
	if err != nil {
		return ""
	}
	b := make([]byte, min(size, info.Size()))
	n, err := out.ReadAt(b, info.Size()-int64(len(b)))
	if err != nil && !errors.Is(err, io.EOF) {
		return ""
	}
	return lastLines(b[:n])
}

// awaitZombie waits until a child has ended and leaves it unreaped, so that its
// number, and that of its session, names nobody else.
func awaitZombie(pid int) {
	for {
		err := unix.Waitid(unix.P_PID, pid, nil, unix.WEXITED|unix.WNOWAIT, nil)
		if !errors.Is(err, unix.EINTR) {
			return
		}
	}
}

// overrun is what became of a command whose time was over.
type overrun struct {
	why     string // "it took longer than 1m"; empty: it ended by itself
	service int    // who listens, where the command is the service: it goes on
	left    []int  // of its session: the service may be among them, or it cannot be ended
}

// await waits until the command has ended, and ends it when its time is over or,
// a little later, when ctx is.
func (r runner) await(ctx context.Context, c registry.Command, ended <-chan struct{}) (over overrun) {
	limit := time.NewTimer(r.limit)
	defer limit.Stop()
	select {
	case <-ended:
		return overrun{}
	case <-limit.C:
		over.why = fmt.Sprintf("it took longer than %s", r.limit)
	case <-ctx.Done():
		grace := time.NewTimer(endGrace)
		defer grace.Stop()
		select {
		case <-ended:
			return overrun{}
		case <-limit.C:
			over.why = fmt.Sprintf("it took longer than %s", r.limit)
		case <-grace.C:
			over.why = "the run was interrupted"
		}
	}
	// A server that was started in the foreground takes TERM for a wish of its
	// person's (uWSGI reloads), and a wrapper such as sudo passes it on.
	if now, err := r.listener(ctx); err == nil && now.runsIn(c.PID) {
		over.service = now.pid
		return over
	}
	_ = unix.Kill(c.PID, unix.SIGTERM) // unreaped: it reaches our child or nobody
	grace := time.NewTimer(endGrace)
	defer grace.Stop()
	select {
	case <-ended:
	case <-grace.C:
	}
	over.left, over.service = r.endRest(ctx, c.PID)
	if over.service == 0 {
		<-ended
	}
	return over
}

// listener is find with a limit of its own: whoever it spares is to be spared
// also when the run was interrupted.
func (r runner) listener(ctx context.Context) (process, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), answer.Limit)
	defer cancel()
	return find(ctx, r.ready)
}

// endRest kills a command and what is in its session: what it waits for. Whoever
// listens at the service's address is spared, with its descendants: a restart may
// have left the service in its session. Where the command itself is that, nothing
// is signalled, and service is the process that listens. Where nobody is found
// who listens, only the command is ended, and left is what is still there: the
// service may be among them, out of sight or slow to come up, and a database is
// not killed in its recovery. The process group would not tell them apart: what a
// script starts in the background is in it.
func (r runner) endRest(ctx context.Context, session int) (left []int, service int) {
	spared, err := r.listener(ctx)
	switch {
	case err != nil:
		_ = unix.Kill(session, unix.SIGKILL)
		for _, st := range inSession(session) {
			if st.PID != session {
				left = append(left, st.PID)
			}
		}
		return left, 0
	case spared.runsIn(session):
		return nil, spared.pid
	}
	deadline := time.NewTimer(registry.KillLimit)
	defer deadline.Stop()
	tick := time.NewTicker(registry.LookPause)
	defer tick.Stop()
	for { // a fork can be ahead of a list, and what is killed is not gone yet
		left = nil
		for _, st := range inSession(session) {
			if start, ok := spared.members[st.PID]; !ok || start != st.Start {
				_ = unix.Kill(st.PID, unix.SIGKILL)
				left = append(left, st.PID)
			}
		}
		if len(left) == 0 {
			return nil, 0
		}
		select {
		case <-tick.C:
		case <-deadline.C:
			return left, 0
		}
	}
}

// inSession lists the living processes of a session.
func inSession(session int) []kernel.Stat {
	pids, err := kernel.PIDs(nil)
	if err != nil {
		return nil // without /proc nothing can be told of any process
	}
	var list []kernel.Stat
	for _, pid := range pids {
		if st, err := kernel.ReadStat(pid); err == nil && st.Session == session && st.Alive() {
			list = append(list, st)
		}
	}
	return list
}

// orphaned waits for a command of an agent that was killed, which goes on
// without it, and ends it when its time is over.
func (r runner) orphaned(ctx context.Context, c registry.Command) error {
	noted := c.PID != 0
	if !noted {
		// The agent died between starting it and noting its number. The file it
		// writes to tells it; a daemon may have that too, so nothing found in
		// this way is ever ended.
		c.PID, c.Start = writerTo(c.Output)
	}
	if c.PID == 0 || !alive(c.PID, c.Start) {
		return nil
	}
	waiting, cancel := context.WithTimeout(ctx, r.limit)
	defer cancel()
	err := await(waiting, func() error {
		if alive(c.PID, c.Start) {
			return fmt.Errorf("%s of the killed agent still runs (pid %d)", c.What, c.PID)
		}
		return nil
	})
	switch {
	case err == nil, !noted:
		return nil
	case ctx.Err() != nil:
		return ctx.Err()
	}
	// What it leaves, undo has to cope with, as with any state of the service.
	r.endRest(ctx, c.PID)
	return nil
}

// writerTo finds the leader of a session whose standard output is the file.
func writerTo(path string) (pid int, start uint64) {
	pids, err := kernel.PIDs(nil)
	if err != nil || path == "" {
		return 0, 0
	}
	for _, pid := range pids {
		st, err := kernel.ReadStat(pid)
		if err != nil || st.Session != pid {
			continue
		}
		if target, err := os.Readlink(fmt.Sprintf("/proc/%d/fd/1", pid)); err == nil && target == path {
			return pid, st.Start
		}
	}
	return 0, 0
}
