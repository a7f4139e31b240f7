// Package attach measures a service that something else starts: it brings
// settings to it by the person's own commands, knows when it answers rightly
// again and which processes it is, and puts everything back.
//
// It takes a hakaru.Unit with everything expanded, and a place to note what is
// about to be changed; it gives the right answers, the group of processes that
// listen, and whether they were replaced. PutBack does for the records of killed
// agents what Down does for the living.
//
// It never signals a process that listens for the service or descends from one,
// puts none into a cgroup and leaves no mark on one: what it ends is a command of
// its own that overruns its time.
package attach

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"hakaru"
	"hakaru/internal/service/launch"
	"hakaru/internal/service/registry"
	"hakaru/internal/watch/kernel"
)

const (
	// DefaultTimeout is for hakaru.Ready.Timeout: how long each of apply, restart
	// and undo may take, and then the first right answer.
	DefaultTimeout = time.Minute
	// upPatience is how long a service may be away before it counts as not up:
	// it may be in the middle of someone else's reload.
	upPatience = 2 * time.Second
)

// Options is what a Service needs.
type Options struct {
	Unit    hakaru.Unit // everything expanded, {file} in its commands too
	Dir     string      // private directory: outputs of commands go there
	Environ []string    // what commands inherit, but for HAKARU_…
	// Note replaces what is noted of the service; nil: nothing is to be put back.
	// With sync it is on the medium before Note returns.
	Note func(undo *registry.Undo, sync bool) error
}

// Service is a service that something else starts. It is for one goroutine, but
// for Group and Ended after Up.
type Service struct {
	opt      Options
	name     string // within a sentence
	limit    time.Duration
	commands runner

	undo     *registry.Undo // what is noted; nil: nothing
	root     process
	warnings []hakaru.Warning
	down     bool // Down was there
	downErr  error
}

// Error says why the service could not be brought to what the unit says.
type Error struct {
	Why    string // "apply failed (exit status 1)"
	Hint   string
	Output string // last lines of the command
}

func (e *Error) Error() string { return e.Why }

// New makes nothing.
func New(opt Options) *Service {
	limit := opt.Unit.Ready.Timeout
	if limit <= 0 {
		limit = DefaultTimeout
	}
	s := &Service{opt: opt, name: hakaru.TheService(opt.Unit.Service), limit: limit}
	// Without a mark: what a command starts as a daemon is the person's, and no sweep
	// is to take it for a leftover.
	s.commands = runner{
		dir: opt.Unit.Dir, env: launch.Environment(opt.Environ, opt.Unit.Env, ""), limit: limit,
		service: opt.Unit.Service, outputs: opt.Dir, ready: opt.Unit.Ready,
	}
	return s
}

// Limit is how long Down may take: undo, and the service's answer after it.
func (s *Service) Limit() time.Duration {
	if len(s.opt.Unit.Attached.Apply) == 0 && len(s.opt.Unit.Attached.Restart) == 0 {
		return 0
	}
	return 2*s.limit + 2*endGrace
}

// Warnings is what was noticed since it was asked last.
func (s *Service) Warnings() []hakaru.Warning {
	noticed := s.warnings
	s.warnings = nil
	return noticed
}

func (s *Service) warn(code, format string, args ...any) {
	s.warnings = append(s.warnings, hakaru.Warning{Code: code, Message: fmt.Sprintf(format, args...)})
}

// Up checks that the service is up, notes how it is put back, applies the
// settings, restarts it, waits until it answers rightly again and finds its
// processes. An *Error is about the service or the person's commands. After an
// error Down is to be called all the same: something may be changed.
func (s *Service) Up(ctx context.Context) ([]hakaru.Answer, error) {
	how := s.opt.Unit.Attached
	if len(how.Apply) > 0 && len(how.Undo) == 0 {
		return nil, &Error{Why: "apply without undo: what it changes could not be put back", Hint: "say under undo: how"}
	}
	answers, err := s.isUp(ctx)
	if err != nil {
		return nil, err
	}
	before, notFound := find(ctx, s.opt.Unit.Ready)
	s.root = before
	if len(how.Apply)+len(how.Restart) > 0 {
		if err := s.change(ctx); err != nil {
			return nil, err
		}
		if answers, err = s.answersAgain(ctx, before); err != nil {
			return nil, err
		}
		s.root, notFound = find(ctx, s.opt.Unit.Ready)
	}
	unseen := ""
	if len(how.Restart) > 0 && before.pid == 0 {
		unseen = "nothing shows that restart replaced it: the answers may be of processes with the settings from before"
	}
	switch {
	case notFound != nil && unseen != "":
		s.warn("not_found", "%s: %v; its CPU time and memory are not measured, and %s", s.name, notFound, unseen)
	case notFound != nil:
		s.warn("not_found", "%s: %v; its CPU time and memory are not measured", s.name, notFound)
	case unseen != "":
		s.warn("not_found", "%s was not found before restart, so %s", s.name, unseen)
	}
	if s.root.more > 0 {
		s.warn("several_listeners", "%s: %d other processes listen at its address too and are not descendants of pid %d: what they use is not measured", s.name, s.root.more, s.root.pid)
	}
	if len(s.opt.Unit.CPUs) > 0 {
		s.warn("not_pinned", "%s runs on the CPUs that it was started on: hakaru pins only what it starts", s.name)
	}
	return answers, nil
}

// isUp asks until the answer is right, for a short time.
func (s *Service) isUp(ctx context.Context) ([]hakaru.Answer, error) {
	began := time.Now()
	var answers []hakaru.Answer
	var last error
	err := await(ctx, func() error {
		answers, last = ask(ctx, s.opt.Unit)
		if last != nil && time.Since(began) < min(upPatience, s.limit) {
			return last
		}
		return nil // an answer, or the last word
	})
	switch {
	case err != nil || ctx.Err() != nil:
		return nil, fmt.Errorf("ask %s: %w", s.name, ctx.Err())
	case last == nil:
		return answers, nil
	}
	return nil, &Error{
		Why:  fmt.Sprintf("it is not up: %v; hakaru does not start it", last),
		Hint: "start it as you always do; attach: {get: …, status: …} says what is asked and the right answer",
	}
}

// change notes how to put back, then applies and restarts.
func (s *Service) change(ctx context.Context) error {
	how := s.opt.Unit.Attached
	undo := &registry.Undo{
		Words: how.Undo, Dir: s.opt.Unit.Dir, Env: s.commands.keep(s.opt.Unit.Env),
		Timeout: s.limit, Ready: s.opt.Unit.Ready, Restarts: len(how.Restart) > 0,
	}
	for _, v := range s.opt.Unit.Env {
		if v.Value != nil {
			undo.Set = append(undo.Set, v.Name)
		}
	}
	if err := s.opt.Note(undo, true); err != nil {
		return fmt.Errorf("note how to put %s back: %w", s.name, err)
	}
	s.undo = undo
	for _, c := range []struct {
		what  string
		words []string
	}{{"apply", how.Apply}, {"restart", how.Restart}} {
		if len(c.words) == 0 {
			continue
		}
		if err := s.run(ctx, c.what, c.words); err != nil {
			if ctx.Err() != nil {
				return fmt.Errorf("%s %s: %w", c.what, s.name, ctx.Err())
			}
			return err
		}
	}
	return nil
}

// run runs one command and keeps note of it.
func (s *Service) run(ctx context.Context, what string, words []string) error {
	return s.commands.run(ctx, what, words, func(c *registry.Command) error {
		s.undo.Running = c
		return s.opt.Note(s.undo, false)
	})
}

// answersAgain waits for the right answer after what was changed.
func (s *Service) answersAgain(ctx context.Context, before process) ([]hakaru.Answer, error) {
	after := "apply"
	if len(s.opt.Unit.Attached.Restart) > 0 {
		after = "restart"
	}
	w := wait{unit: s.opt.Unit, before: before, after: after, restarts: after == "restart", limit: s.limit}
	answers, err := w.forAnswer(ctx)
	s.warnings = append(s.warnings, w.warnings...)
	switch {
	case err == nil:
		return answers, nil
	case ctx.Err() != nil:
		return nil, fmt.Errorf("wait for %s: %w", s.name, ctx.Err())
	}
	return nil, &Error{
		Why:    fmt.Sprintf("it did not answer rightly within %s after %s: %v", s.limit, after, err),
		Hint:   "its own log tells why, which hakaru does not see; attach: {timeout: …} says how long it may take",
		Output: s.commands.said(after),
	}
}

// Group is by what the processes of the service are known; its Leader is 0 where
// none was found.
func (s *Service) Group() kernel.Group {
	return kernel.Group{Leader: s.root.pid, Start: s.root.members[s.root.pid], Descent: true}
}

// Ended tells whether the process that listened has gone since Up, or does not
// listen any more. It does so also when ctx has ended: that is how a load tells a
// watch that it is over, and a name in the address is still to be looked up.
func (s *Service) Ended(ctx context.Context) (hakaru.Exit, bool) {
	if s.root.pid == 0 {
		return hakaru.Exit{}, false
	}
	exit := hakaru.Exit{Service: s.opt.Unit.Service}
	now, err := s.commands.listener(ctx)
	gone := !alive(s.root.pid, s.root.members[s.root.pid])
	// One that is killed this moment may still have been found to listen.
	other := err == nil && (now.pid != s.root.pid || now.members[now.pid] != s.root.members[s.root.pid])
	switch {
	case gone && other:
		exit.State = fmt.Sprintf("pid %d ended, and pid %d listens in its place", s.root.pid, now.pid)
	case gone:
		exit.State = fmt.Sprintf("pid %d ended", s.root.pid)
	case other:
		exit.State = fmt.Sprintf("pid %d listens in the place of pid %d", now.pid, s.root.pid)
	default:
		return hakaru.Exit{}, false
	}
	return exit, true
}

// alive reports whether a process is there and can do anything.
func alive(pid int, start uint64) bool {
	st, err := kernel.ReadStat(pid)
	return err == nil && st.Start == start && st.Alive()
}

// Down puts back what Up changed, whatever happened since, also when ctx has
// ended: it has limits of its own. An error says that it is not put back; the
// note of it stays. A second call returns what the first one did.
func (s *Service) Down(ctx context.Context) error {
	if s.down || s.undo == nil {
		return s.downErr
	}
	s.down = true
	ctx = context.WithoutCancel(ctx)
	warnings, err := putBack(ctx, s.commands, s.opt.Unit.Service, s.undo, func(sync bool) error { return s.opt.Note(s.undo, sync) })
	s.warnings = append(s.warnings, warnings...)
	if err == nil {
		s.undo = nil
		err = s.opt.Note(nil, true)
	}
	s.downErr = err
	return err
}

// putBack runs undo and waits until the service answers rightly, where restart
// restarts it from a process that was not there before. It changes the note; save
// puts it on disk.
func putBack(ctx context.Context, commands runner, service string, undo *registry.Undo, save func(sync bool) error) ([]hakaru.Warning, error) {
	name := hakaru.TheService(service)
	before, err := find(ctx, undo.Ready)
	if err != nil {
		before = process{} // it is not up, or not here
	}
	failed := func(why error) error {
		undo.Running = nil
		undo.Failed = why.Error()
		undo.Tries++
		return errors.Join(notPutBack(name, why, undo), save(true))
	}
	undo.Ran = false
	if len(undo.Words) > 0 {
		err := commands.run(ctx, "undo", undo.Words, func(c *registry.Command) error {
			undo.Running = c
			return save(false)
		})
		if err != nil {
			return nil, failed(err)
		}
	}
	undo.Ran = true
	undo.Running = nil
	w := wait{
		unit: hakaru.Unit{Service: service, Ready: undo.Ready}, before: before, after: "undo",
		restarts: undo.Restarts && len(undo.Words) > 0, limit: commands.limit,
	}
	if _, err := w.forAnswer(ctx); err != nil {
		return w.warnings, failed(fmt.Errorf("it does not answer rightly within %s: %w", commands.limit, err))
	}
	return w.warnings, nil
}

// notPutBack is for the person who now has to do it.
func notPutBack(name string, why error, undo *registry.Undo) error {
	text := why.Error()
	var failed *Error
	if errors.As(why, &failed) && failed.Output != "" {
		text += "\n    " + strings.ReplaceAll(failed.Output, "\n", "\n    ")
	}
	if len(undo.Words) == 0 {
		return fmt.Errorf("%s was restarted for a trial and is NOT as before: %s\nbring it up as you always do", name, text)
	}
	if undo.Ran {
		text = "undo ended well, and " + text
	}
	text = fmt.Sprintf("%s was changed for a trial and is NOT put back: %s\nrun by hand: %s", name, text, undo.ByHand())
	if len(undo.Set) > 0 {
		text += "\nwith these variables set as env sets them: " + strings.Join(undo.Set, ", ")
	}
	return errors.New(text)
}

// kept are the variables by which commands find programs, their user's files and
// the service managers they talk to.
func kept(name string) bool {
	switch name {
	case "PATH", "HOME", "USER", "LOGNAME", "LANG", "TZ", "XDG_RUNTIME_DIR", "DBUS_SESSION_BUS_ADDRESS",
		"SSH_AUTH_SOCK", "DOCKER_HOST", "KUBECONFIG":
		return true
	}
	return strings.HasPrefix(name, "LC_")
}

// keep is what is noted of the environment for an undo by another process: what
// commands usually need, and all that the experiment sets. The rest, in which
// secrets of the person may be, is not put on disk.
func (r runner) keep(set []hakaru.EnvVar) []string {
	var list []string
	for _, e := range r.env {
		name, _, _ := strings.Cut(e, "=")
		if kept(name) || slices.ContainsFunc(set, func(v hakaru.EnvVar) bool { return v.Name == name }) {
			list = append(list, e)
		}
	}
	return list
}

// outputFile is where a command writes to.
func (r runner) outputFile(what string) string {
	return filepath.Join(r.outputs, r.service+"."+what+".out")
}

// said is the end of what a command wrote.
func (r runner) said(what string) string {
	b, err := os.ReadFile(r.outputFile(what))
	if err != nil {
		return ""
	}
	return lastLines(b)
}

func lastLines(b []byte) string {
	const most, size = 12, 2000
	if len(b) > size {
		b = b[len(b)-size:]
	}
	lines := strings.Split(strings.TrimRight(string(b), "\n "), "\n")
	return strings.ToValidUTF8(strings.Join(lines[max(0, len(lines)-most):], "\n"), "\uFFFD")
}
