package program

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"hakaru"
	"hakaru/internal/grammar"
)

// versionTime is what a program may take to say its version.
const versionTime = 2 * time.Second

// MissingError says that a load program is not on this machine.
type MissingError struct {
	Name    string
	Install string // how to get it
	Err     error
}

func (e *MissingError) Error() string { return fmt.Sprintf("load.%s: %v", e.Name, e.Err) }

func (e *MissingError) Unwrap() error { return e.Err }

// Version finds the program of a spec and asks it for its version. A program
// that is not there is a *MissingError; one that does not say has an empty
// version.
func Version(ctx context.Context, spec hakaru.ProgramSpec) (path, version string, err error) {
	p, known := Find(spec.Name)
	if !known {
		return "", "", fmt.Errorf("there is no load program %q", spec.Name)
	}
	name := firstWord(spec.Options["program"], spec.Name)
	if spec.Name == "command" {
		words, err := grammar.Split(spec.Options["run"])
		switch {
		case err != nil:
			return "", "", fmt.Errorf("split load.command.run into words: %w", err)
		case len(words) == 0:
			return "", "", errors.New("load.command.run names no program")
		}
		name = words[0]
	}
	if path, err = Locate(name, spec.Dir); err != nil {
		return "", "", &MissingError{Name: spec.Name, Install: p.Install(), Err: err}
	}
	words := p.Version()
	if len(words) == 0 {
		return path, "", nil
	}
	ctx, cancel := context.WithTimeout(ctx, versionTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, path, words...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	cmd.WaitDelay = outputGrace
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	var exit *exec.ExitError // wrk says its version with exit status 1
	if err := cmd.Run(); err != nil && !errors.As(err, &exit) {
		return path, "", nil
	}
	return path, versionLine(out.String()), nil
}

// versionLine is the first line that is not empty, without what it is followed
// by: "wrk debian/4.1.0-3+b2 [epoll] Copyright …", and without the words around it.
func versionLine(text string) string {
	for l := range strings.Lines(text) {
		l, _, _ = strings.Cut(strings.TrimSpace(l), " Copyright")
		if l = strings.TrimPrefix(strings.TrimSuffix(l, " <$Revision$>"), "This is "); l != "" {
			return l
		}
	}
	return ""
}
