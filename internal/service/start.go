package service

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/user"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"hakaru"
	"hakaru/internal/service/address"
	"hakaru/internal/service/attach"
	"hakaru/internal/service/launch"
	"hakaru/internal/service/output"
	"hakaru/internal/watch/kernel"
)

// unit is one program that was started, or one that something else starts.
type unit struct {
	spec  hakaru.Unit // everything expanded
	group kernel.Group
	env   []string // what it was given
	out   *output.Output

	process *launch.Process

	// attached is set where hakaru did not start it; then env, out and process are
	// not.
	attached *attach.Service
	signs    signs // why it does not come up
}

func (u *unit) hasEnded() bool { return u.process.HasEnded() }

// expand replaces leased names and the like in everything of a unit.
func expand(u hakaru.Unit, names hakaru.Names) hakaru.Unit {
	u.Argv = append([]string(nil), u.Argv...)
	for i := range u.Argv {
		u.Argv[i] = names.Expand(u.Argv[i])
	}
	u.Env = append([]hakaru.EnvVar(nil), u.Env...)
	for i, e := range u.Env {
		if e.Value != nil {
			value := names.Expand(*e.Value)
			u.Env[i].Value = &value
		}
	}
	u.Files = append([]hakaru.File(nil), u.Files...)
	for i := range u.Files {
		u.Files[i].Content = names.Expand(u.Files[i].Content)
		u.Files[i].Path = names.Expand(u.Files[i].Path)
	}
	u.Dir = names.Expand(u.Dir)
	u.Ready.Get = names.Expand(u.Ready.Get)
	u.Ready.Connect = names.Expand(u.Ready.Connect)
	u.Ready.Body = names.Expand(u.Ready.Body)
	u.Ready.Log = names.Expand(u.Ready.Log)
	return u
}

// startUnit starts unit i and waits until it is ready.
func (s *Stack) startUnit(ctx context.Context, i int, given hakaru.Unit) error {
	spec := expand(given, s.place.Names)
	if spec.Attached != nil {
		return s.attachUnit(ctx, i, spec)
	}
	fail := func(why, hint string) error {
		return &StartError{Service: spec.Service, Why: why, Hint: hint}
	}
	blame := func(err error) error {
		if ofMachine(err) {
			return fmt.Errorf("start %s: %w", hakaru.TheService(spec.Service), err)
		}
		return fail(err.Error(), "")
	}
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("start %s: %w", hakaru.TheService(spec.Service), err)
	}
	if len(spec.Argv) == 0 || spec.Argv[0] == "" {
		return fail("it has no command", "")
	}
	if info, err := os.Stat(spec.Dir); spec.Dir != "" && (err != nil || !info.IsDir()) {
		return fail(fmt.Sprintf("its directory %s is not there", spec.Dir), "")
	}
	if err := s.checkFree(ctx, spec); err != nil {
		_, held := errors.AsType[*address.HeldError](err)
		return &StartError{Service: spec.Service, Why: err.Error(), Foreign: held,
			Hint: "end that process, or write {name} with ports: [name] and let hakaru choose a free port"}
	}
	credential, err := launch.Credential(spec.User)
	if err != nil {
		hint := "run hakaru as root, or leave `user:` out"
		_, noName := errors.AsType[user.UnknownUserError](err)
		_, noNumber := errors.AsType[user.UnknownUserIdError](err)
		if noName || noNumber {
			hint = "name a user of this machine under `user:`: getent passwd lists them"
		}
		return fail(err.Error(), hint)
	}
	written, err := s.writeFiles(spec, credential)
	if err != nil {
		return blame(err)
	}
	env := launch.Environment(s.opt.Environ, spec.Env, s.record.Units[i].Mark)
	path, err := launch.LookUp(spec.Argv[0], spec.Dir, env)
	if err != nil {
		return fail(err.Error(), "is it installed? A name without a slash is looked for in PATH, a relative one starts at "+spec.Dir)
	}
	u := &unit{spec: spec, env: env}
	if u.signs, err = compileSigns(spec.Signs); err != nil {
		return fmt.Errorf("start %s: %w", hakaru.TheService(spec.Service), err)
	}
	began := time.Now()
	if err := s.launchUnit(i, u, path, credential); err != nil {
		return blame(err)
	}
	s.units = append(s.units, u)
	s.place.Units = append(s.place.Units, hakaru.RunningUnit{
		Service: spec.Service, PID: u.group.Leader, Argv: spec.Argv,
		Cgroup: u.group.Cgroup, Files: written, Commit: s.commits[i],
	})
	r := &s.record.Units[i]
	r.PID, r.Start, r.Cgroup = u.group.Leader, u.group.Start, u.group.Cgroup
	if err := s.files.Write(s.record, false); err != nil {
		return blame(err)
	}
	answers, err := s.awaitReady(ctx, u)
	if err != nil {
		return err
	}
	s.place.Answers = append(s.place.Answers, answers...)
	s.place.Units[len(s.place.Units)-1].Ready = time.Since(began)
	return nil
}

// ofMachine reports whether an error says that the machine is out of something,
// which tells nothing of the service: no variant is to be called unusable for it.
func ofMachine(err error) bool {
	for _, e := range []syscall.Errno{
		unix.ENOSPC, unix.EDQUOT, unix.EROFS, unix.EIO, unix.EMFILE, unix.ENFILE, unix.EAGAIN, unix.ENOMEM,
	} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// launchUnit starts the program, in a session and a cgroup of its own, and begins to
// read its output.
func (s *Stack) launchUnit(i int, u *unit, path string, credential *syscall.Credential) error {
	out, w, err := output.Open(u.spec.Ready.Log, u.signs.hasFatal())
	if err != nil {
		return err
	}
	rec := s.record.Units[i]
	u.group = kernel.Group{Cgroup: rec.Cgroup, Mark: rec.Mark}
	s.leases.Release(i)
	u.process, err = s.launch.Start(launch.Program{
		Path: path, Argv: u.spec.Argv, Env: u.env, Dir: u.spec.Dir,
		Credential: credential, CPUs: u.spec.CPUs, Cgroup: u.group.Cgroup, Output: w,
	})
	// Left open here, the end of the output is not seen, but by giving up on it.
	if closeErr := w.Close(); closeErr != nil {
		s.warn("launch", fmt.Sprintf("close the other end of the output of %s: %v", hakaru.TheService(u.spec.Service), closeErr))
	}
	if err != nil {
		return errors.Join(err, out.Finish())
	}
	u.out = out
	if why := u.process.NoCgroup; why != nil {
		s.warn("no_cgroup", fmt.Sprintf("%s could not be started in cgroup %s (%v) and runs without one", hakaru.TheService(u.spec.Service), u.group.Cgroup, why))
		u.group.Cgroup = ""
	}
	if after := u.process.After; after != nil {
		s.warn("launch", fmt.Sprintf("%s was started, but then: %v", hakaru.TheService(u.spec.Service), after))
	}
	u.group.Leader = u.process.PID
	if st, err := kernel.ReadStat(u.group.Leader); err == nil {
		u.group.Start = st.Start
	}
	return nil
}
