package checkout

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"hakaru/internal/service/registry"
	"hakaru/internal/watch/kernel"
)

const (
	// BuildLimit is how long a build may take; it is there for one that waits
	// for ever.
	BuildLimit = 10 * time.Minute
	// buildGrace is what a build that is to end gets before it is killed.
	buildGrace = 2 * time.Second
	// lastLines of a build's output are told, and at most lastBytes.
	lastLines = 25
	lastBytes = 4 << 10
)

// BuildError says that a version could not be made, for a reason that lies in
// it: the build failed, or the version lacks the directory to run in.
type BuildError struct {
	Why    string // "build failed (exit 2): make app"
	Output string // its last lines
	Help   string
}

func (e *BuildError) Error() string { return e.Why }

// Hint is what to do about it.
func (e *BuildError) Hint() string { return e.Help }

// build runs the words in a directory, without a shell, and waits for the end of
// it and of everything it started. Its output goes to a file: a process that it
// leaves behind keeps nobody waiting.
func (v *Versions) build(ctx context.Context, ask Ask, dir, log string) (err error) {
	said := strings.Join(ask.Build, " ")
	fail := func(err error) error { return fmt.Errorf("build %q in %s: %w", said, dir, err) }
	out, err := os.OpenFile(log, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return fail(err)
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	cmd := exec.Command(ask.Build[0], ask.Build[1:]...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, out, out
	cmd.Env = buildEnviron(v.opt.Environ, ask.Mark)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL}

	started, ended := make(chan error, 1), make(chan error, 1)
	go func() {
		// The parent-death signal is sent when the thread that forked ends.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			ended <- cmd.Wait()
		}
	}()
	switch err := <-started; {
	case errors.Is(err, exec.ErrNotFound), errors.Is(err, fs.ErrNotExist):
		return &BuildError{Why: "build: command not found: " + ask.Build[0],
			Help: "build is run without a shell, in " + dir + "; for more than one command write build: sh -c '…'"}
	case errors.Is(err, fs.ErrPermission):
		return &BuildError{Why: "build: " + ask.Build[0] + " is not executable", Help: "chmod +x it, and commit that: git update-index --chmod=+x"}
	case err != nil:
		return fail(err)
	}
	group := kernel.Group{Mark: ask.Mark, Leader: cmd.Process.Pid}
	if s, err := kernel.ReadStat(group.Leader); err == nil {
		group.Start = s.Start
	}
	limit := time.NewTimer(v.opt.Limit)
	defer limit.Stop()
	var state error
	why := ""
	select {
	case state = <-ended:
	case <-ctx.Done():
		state = endBuild(group, ended, v.opt.Grace)
		why = "interrupted"
	case <-limit.C:
		state = endBuild(group, ended, v.opt.Grace)
		why = fmt.Sprintf("build did not end within %s: %s", v.opt.Limit, said)
	}
	// What a build leaves running would run beside the trials.
	if err := registry.EndGroup(group, registry.KillLimit); err != nil {
		return fail(fmt.Errorf("end what it left running: %w", err))
	}
	if ctx.Err() != nil && why == "interrupted" {
		return fail(context.Cause(ctx))
	}
	if state == nil && why == "" {
		return nil
	}
	if why == "" {
		var exit *exec.ExitError
		if !errors.As(state, &exit) {
			return fail(state)
		}
		how := exit.ProcessState.String()
		if code := exit.ExitCode(); code >= 0 {
			how = fmt.Sprintf("exit %d", code)
		}
		why = fmt.Sprintf("build failed (%s): %s", how, said)
	}
	return &BuildError{Why: why, Output: tailOf(out), Help: "its whole output is in " + log}
}

// endBuild asks a build to end, then makes it.
func endBuild(group kernel.Group, ended <-chan error, limit time.Duration) error {
	grace := time.NewTimer(limit)
	defer grace.Stop()
	_ = unix.Kill(-group.Leader, unix.SIGTERM) // it may just have ended
	select {
	case state := <-ended:
		return state
	case <-grace.C:
	}
	_ = unix.Kill(-group.Leader, unix.SIGKILL)
	return <-ended
}

// tailOf returns the last lines of a file.
func tailOf(f *os.File) string {
	size, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return ""
	}
	text := make([]byte, min(size, lastBytes))
	n, err := f.ReadAt(text, size-int64(len(text)))
	if err != nil && !errors.Is(err, io.EOF) {
		return ""
	}
	lines := strings.Split(strings.TrimRight(string(text[:n]), "\n"), "\n")
	if size > lastBytes && len(lines) > 1 {
		lines = lines[1:] // cut in the middle
	}
	return strings.Join(lines[max(0, len(lines)-lastLines):], "\n")
}

// buildEnviron is the agent's own environment: not the service's, in which a
// variable may be what is varied.
func buildEnviron(environ []string, mark string) []string {
	var env []string
	for _, e := range environ {
		name, _, _ := strings.Cut(e, "=")
		if !strings.HasPrefix(name, "HAKARU_") && !isLocal(name) {
			env = append(env, e)
		}
	}
	if mark != "" {
		env = append(env, kernel.MarkVariable+"="+mark)
	}
	return env
}

// steers reports whether a variable of the environment is known to decide what a
// build makes: a version that was built with other flags is another version.
func steers(name string) bool {
	switch name {
	case "PATH", "CC", "CXX", "LD", "AR", "CFLAGS", "NODE_ENV", "LIBRARY_PATH", "CPATH":
		return true
	}
	if strings.HasSuffix(name, "FLAGS") {
		return true
	}
	for _, prefix := range []string{"GO", "CGO_", "CARGO", "RUST", "JAVA", "PYTHON", "npm_config_"} {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return false
}
