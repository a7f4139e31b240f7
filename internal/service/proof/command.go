package proof

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"hakaru"
	"hakaru/internal/grammar"
	"hakaru/internal/redact"
)

// outputKept is what is kept of each stream of a command.
const outputKept = 64 << 10

// commandOutput runs a command as the unit would run it and compares what it
// prints. No shell reads its words; names are replaced after it was split, so
// that a value never makes two of them.
func commandOutput(ctx context.Context, on Subject, ask hakaru.Ask) Evidence {
	source := "command: " + redact.Text(shorten(ask.Argument))
	words, err := grammar.Split(ask.Argument)
	if err != nil {
		return never(fmt.Sprintf("the command line %v", err), source)
	}
	if len(words) == 0 || on.Command == nil {
		return never("there is no command to run", source)
	}
	names := maps.Clone(on.Names)
	if names == nil {
		names = hakaru.Names{}
	}
	if on.PID != 0 {
		names["pid"] = strconv.Itoa(on.PID)
	}
	for i := range words {
		words[i] = names.Expand(words[i])
	}
	cmd, err := on.Command(words)
	if err != nil {
		return unreadable(source, err)
	}
	out, problem, err := runCommand(ctx, cmd)
	if err != nil {
		if line := lastLine(problem.text()); line != "" {
			err = fmt.Errorf("%w: %s", err, redact.Text(line))
		}
		return unreadable(source, err)
	}
	found, holds := matchOutput(out.text(), out.cut, ask)
	return told(found, source, holds)
}

// runCommand runs cmd in a session of its own until it ends or ctx does, and
// ends what it leaves of its process group.
func runCommand(ctx context.Context, cmd *exec.Cmd) (out, problem *kept, err error) {
	out, problem = &kept{}, &kept{}
	cmd.Stdout, cmd.Stderr = out, problem
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Setsid = true
	// It dies with this process; the signal is sent when the thread that forked
	// it ends (prctl(2)), so this one is kept until it has.
	cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	cmd.WaitDelay = 100 * time.Millisecond // a process that left the group may hold the pipes
	if err := cmd.Start(); err != nil {
		return out, problem, err
	}
	pid := cmd.Process.Pid
	end := func() {
		// Until it is reaped its number names nobody else, nor a group.
		_ = unix.Kill(-pid, unix.SIGKILL) // ESRCH: nobody is left
	}
	killed := make(chan struct{})
	stop := context.AfterFunc(ctx, func() { defer close(killed); end() })
	for {
		err = unix.Waitid(unix.P_PID, pid, nil, unix.WEXITED|unix.WNOWAIT, nil)
		if !errors.Is(err, unix.EINTR) {
			break
		}
	}
	if !stop() {
		<-killed // it must not outlive the number
	}
	end()
	waited := cmd.Wait()
	switch {
	case ctx.Err() != nil:
		return out, problem, fmt.Errorf("it did not end within %s", Limit)
	case err != nil:
		return out, problem, fmt.Errorf("wait for it: %w", err)
	case errors.Is(waited, exec.ErrWaitDelay):
		return out, problem, nil // it ended well and left the pipe to another
	}
	return out, problem, waited
}

// kept is the beginning of what was written. A writer is never held up.
type kept struct {
	b   bytes.Buffer
	cut bool
}

func (k *kept) Write(p []byte) (int, error) {
	n := min(len(p), outputKept-k.b.Len())
	k.b.Write(p[:n])
	k.cut = k.cut || n < len(p)
	return len(p), nil
}

func (k *kept) text() string { return strings.ToValidUTF8(k.b.String(), "\uFFFD") }

func lastLine(text string) string {
	text = strings.TrimSpace(text)
	return shorten(strings.TrimSpace(text[strings.LastIndexByte(text, '\n')+1:]))
}
