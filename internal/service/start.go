package service

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"hakaru"
	"hakaru/internal/service/address"
	"hakaru/internal/service/attach"
	"hakaru/internal/service/output"
	"hakaru/internal/service/registry"
	"hakaru/internal/watch/kernel"
)

// busyTries bounds how often a program that is busy being written is tried,
// registry.LookPause apart.
const busyTries = 50

// unit is one program that was started, or one that something else starts.
type unit struct {
	spec  hakaru.Unit // everything expanded
	group kernel.Group
	cmd   *exec.Cmd
	out   *output.Output

	// attached is set where hakaru did not start it; then cmd, out and ended are
	// not.
	attached *attach.Service
	signs    signs // why it does not come up

	ended chan struct{} // closed when the main process has ended; it is reaped by Down
	state string        // how, once ended is closed
	code  int           // exit status; -1: by a signal
}

func (u *unit) hasEnded() bool {
	select {
	case <-u.ended:
		return true
	default:
		return false
	}
}

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
	credential, err := credentialOf(spec.User)
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
	env := environment(s.opt.Environ, spec.Env, s.record.Units[i].Mark)
	path, err := lookUp(spec.Argv[0], spec.Dir, env)
	if err != nil {
		return fail(err.Error(), "is it installed? A name without a slash is looked for in PATH, a relative one starts at "+spec.Dir)
	}
	u := &unit{spec: spec, ended: make(chan struct{})}
	if u.signs, err = compileSigns(spec.Signs); err != nil {
		return fmt.Errorf("start %s: %w", hakaru.TheService(spec.Service), err)
	}
	began := time.Now()
	if err := s.launchUnit(i, u, path, env, credential); err != nil {
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

// launchUnit forks and executes the program, in a session and a cgroup of its
// own, and begins to read its output and to wait for its end.
func (s *Stack) launchUnit(i int, u *unit, path string, env []string, credential *syscall.Credential) error {
	out, w, err := output.Open(u.spec.Ready.Log, u.signs.hasFatal())
	if err != nil {
		return err
	}
	rec := s.record.Units[i]
	u.group = kernel.Group{Cgroup: rec.Cgroup, Mark: rec.Mark}
	start := func() error {
		u.cmd = &exec.Cmd{
			Path: path, Args: u.spec.Argv, Env: env, Dir: u.spec.Dir,
			Stdout: w, Stderr: w,
			SysProcAttr: &syscall.SysProcAttr{
				Setsid:     true,
				Pdeathsig:  syscall.SIGKILL,
				Credential: credential,
			},
		}
		if u.group.Cgroup == "" {
			return u.cmd.Start()
		}
		dir, err := os.Open(u.group.Cgroup)
		if err != nil {
			return err
		}
		defer dir.Close()
		u.cmd.SysProcAttr.UseCgroupFD = true
		u.cmd.SysProcAttr.CgroupFD = int(dir.Fd())
		return u.cmd.Start()
	}
	s.leases.Release(i)
	err = s.launch.do(u.spec.CPUs, start)
	// A program that was just written can still be open for writing in a child
	// forked meanwhile, until that child executes (go.dev/issue/22315).
	for again := 0; errors.Is(err, unix.ETXTBSY) && again < busyTries; again++ {
		<-time.After(registry.LookPause)
		err = s.launch.do(u.spec.CPUs, start)
	}
	if err != nil && !u.started() && u.group.Cgroup != "" {
		// The kernel may be too old to start into a cgroup, or forbid it.
		dir := u.group.Cgroup
		u.group.Cgroup = ""
		if second := s.launch.do(u.spec.CPUs, start); u.started() {
			s.warn("no_cgroup", fmt.Sprintf("%s could not be started in cgroup %s (%v) and runs without one", hakaru.TheService(u.spec.Service), dir, err))
			err = second
		}
	}
	if err != nil && u.started() {
		// Only what comes after the start went wrong. It runs, so Down has to know it.
		s.warn("launch", fmt.Sprintf("%s was started, but then: %v", hakaru.TheService(u.spec.Service), err))
		err = nil
	}
	// Left open here, the end of the output is not seen, but by giving up on it.
	if closeErr := w.Close(); closeErr != nil {
		s.warn("launch", fmt.Sprintf("close the other end of the output of %s: %v", hakaru.TheService(u.spec.Service), closeErr))
	}
	if err != nil {
		if why := whyNotExecuted(path, err); why != "" {
			err = fmt.Errorf("%w: %s", err, why)
		}
		return errors.Join(fmt.Errorf("execute %s: %w", path, err), out.Finish())
	}
	u.out = out
	u.group.Leader = u.cmd.Process.Pid
	go u.wait()
	if st, err := kernel.ReadStat(u.group.Leader); err == nil {
		u.group.Start = st.Start
	}
	return nil
}

// started reports whether the program was executed, whatever followed.
func (u *unit) started() bool { return u.cmd != nil && u.cmd.Process != nil }

// wait learns how the main process ended and leaves it a zombie: as long as it
// is not reaped, its number cannot name another process, group or session, so
// that signals sent by number reach nobody else. Down reaps it.
func (u *unit) wait() {
	defer close(u.ended)
	var info unix.Siginfo
	for {
		err := unix.Waitid(unix.P_PID, u.group.Leader, &info, unix.WEXITED|unix.WNOWAIT, nil)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			u.state, u.code = fmt.Sprintf("unknown (%v)", err), -1
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
		u.state, u.code = fmt.Sprintf("exit status %d", status), int(status)
	case dumped:
		u.state, u.code = fmt.Sprintf("signal: %s (core dumped)", syscall.Signal(status)), -1
	default:
		u.state, u.code = fmt.Sprintf("signal: %s", syscall.Signal(status)), -1
	}
}

// environment is the agent's own without HAKARU_…, with the unit's changes and
// its mark.
func environment(base []string, changes []hakaru.EnvVar, mark string) []string {
	changed := make(map[string]bool, len(changes))
	for _, c := range changes {
		changed[c.Name] = true
	}
	var env []string
	for _, e := range base {
		name, _, _ := strings.Cut(e, "=")
		if !changed[name] && !strings.HasPrefix(name, "HAKARU_") {
			env = append(env, e)
		}
	}
	for _, c := range changes {
		if c.Value != nil && c.Name != kernel.MarkVariable {
			env = append(env, c.Name+"="+*c.Value)
		}
	}
	return append(env, kernel.MarkVariable+"="+mark)
}

// lookUp finds the program as execvp would with the unit's own PATH and
// directory.
func lookUp(name, dir string, env []string) (string, error) {
	notFound := fmt.Errorf("command not found: %s", name)
	if strings.Contains(name, "/") {
		path := name
		if !filepath.IsAbs(path) {
			path = filepath.Join(dir, name)
		}
		return path, executable(path, notFound)
	}
	search := "/usr/local/bin:/usr/bin:/bin"
	for _, e := range env {
		if value, ok := strings.CutPrefix(e, "PATH="); ok {
			search = value
		}
	}
	err := notFound
	for _, d := range filepath.SplitList(search) {
		if !filepath.IsAbs(d) {
			d = filepath.Join(dir, d) // an empty part is the current directory
		}
		path := filepath.Join(d, name)
		switch e := executable(path, notFound); {
		case e == nil:
			return path, nil
		case errors.Is(e, fs.ErrPermission):
			// A directory of PATH that is not ours to search has it for nobody.
		case !errors.Is(e, notFound):
			err = e
		}
	}
	return "", err
}

func executable(path string, notFound error) error {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
		return notFound
	case err != nil:
		return fmt.Errorf("look at %s: %w", path, err)
	case info.IsDir():
		return fmt.Errorf("%s is a directory", path)
	case info.Mode()&0o111 == 0:
		return fmt.Errorf("%s is not executable", path)
	}
	return nil
}

// credentialOf looks a user up, its supplementary groups included; nil for the
// agent's own.
func credentialOf(name string) (*syscall.Credential, error) {
	if name == "" {
		return nil, nil
	}
	u, err := user.Lookup(name)
	if err != nil {
		if _, convErr := strconv.Atoi(name); convErr == nil {
			u, err = user.LookupId(name)
		}
		if err != nil {
			return nil, fmt.Errorf("run as user %s: %w", name, err)
		}
	}
	uid, err := strconv.ParseUint(u.Uid, 10, 32)
	if err != nil {
		return nil, fmt.Errorf("run as user %s: uid %w", name, err)
	}
	if int(uid) == os.Geteuid() {
		return nil, nil
	}
	if os.Geteuid() != 0 {
		return nil, fmt.Errorf("run as user %s: only root may start a program as someone else", name)
	}
	gid, err := strconv.ParseUint(u.Gid, 10, 32)
	if err != nil {
		return nil, fmt.Errorf("run as user %s: gid %w", name, err)
	}
	ids, err := u.GroupIds()
	if err != nil {
		return nil, fmt.Errorf("run as user %s: %w", name, err)
	}
	c := &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
	for _, id := range ids {
		n, err := strconv.ParseUint(id, 10, 32)
		if err != nil {
			return nil, fmt.Errorf("run as user %s: group %w", name, err)
		}
		c.Groups = append(c.Groups, uint32(n))
	}
	return c, nil
}
