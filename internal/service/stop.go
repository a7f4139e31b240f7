package service

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"hakaru"
	"hakaru/internal/endpoint"
	"hakaru/internal/service/registry"
	"hakaru/internal/watch/kernel"
)

// restGrace is what the main process's end gives its children.
const restGrace = time.Second

// Down stops the units, the last started first: the signal that was given to
// the main process, its grace, then the whole group, then by force. When ctx
// ends, the grace ends; force is used all the same. A second call returns what
// the first one did.
func (s *Stack) Down(ctx context.Context) hakaru.Leftovers {
	s.down.Do(func() {
		began := time.Now()
		for _, u := range slices.Backward(s.units) {
			if u.attached != nil {
				s.detach(ctx, u)
			} else {
				s.stopUnit(ctx, u)
			}
		}
		for _, u := range s.units {
			if u.attached != nil {
				continue // what it writes hakaru does not see
			}
			if err := u.out.Finish(); err != nil {
				s.leave("output", fmt.Sprintf("read the output of %s: %v", hakaru.TheService(u.spec.Service), err))
			}
			s.left.Outputs = append(s.left.Outputs, u.out.Result(u.spec.Service))
		}
		s.leases.Close()
		if err := s.closePrivateDir(); err != nil {
			s.leave("not_closed", err.Error())
		}
		if s.nothingLeft() {
			if err := s.removeTraces(); err != nil {
				s.leave("not_removed", err.Error())
			}
		}
		s.launch.Close()
		s.left.Took = time.Since(began)
	})
	return s.left
}

// Grace is how long the units together may take to end when they are asked to, or
// to be put back.
func (s *Stack) Grace() time.Duration {
	var sum time.Duration
	for _, u := range s.units {
		if u.attached != nil {
			sum += u.attached.Limit()
		} else {
			sum += graceOf(u.spec)
		}
	}
	return sum
}

// graceOf is what a unit was given, or the default.
func graceOf(u hakaru.Unit) time.Duration {
	if u.Stop.Grace > 0 {
		return u.Stop.Grace
	}
	return DefaultGrace
}

func (s *Stack) leave(code, message string) {
	s.left.Warnings = append(s.left.Warnings, hakaru.Warning{Code: code, Message: message})
}

func (s *Stack) stopUnit(ctx context.Context, u *unit) {
	name := u.spec.Service
	alreadyEnded := u.hasEnded()
	forced := false
	if !alreadyEnded {
		signal, err := signalByName(u.spec.Stop.Signal)
		if err != nil {
			s.leave("stop_signal", fmt.Sprintf("stop %s: %v; TERM was sent", hakaru.TheService(name), err))
		}
		forced = !s.askToEnd(ctx, u, signal)
		if forced {
			s.leave("killed", fmt.Sprintf("%s did not end within its grace after %s and was killed", hakaru.TheService(name), unix.SignalName(signal)))
		}
	}
	rest, err := u.group.Members()
	if err != nil {
		s.leave("processes", fmt.Sprintf("stop %s: %v", hakaru.TheService(name), err))
	}
	if len(rest) > 0 && !forced {
		// Children of a main process that ended well get a moment to follow it,
		// then the group is asked, and those that left the group one by one.
		what := registry.DescribeAll(rest)
		if !u.awaitEmpty(ctx, restGrace/4) {
			signalGroup(u.group, unix.SIGTERM)
			forcedRest := !u.awaitEmpty(ctx, restGrace)
			how := "ended after TERM"
			if forcedRest {
				how = "had to be killed"
			}
			s.leave("left_behind", fmt.Sprintf("the main process of %s ended and left %s, which %s", hakaru.TheService(name), what, how))
		}
	}
	if err := registry.EndGroup(u.group, registry.KillLimit); err != nil {
		s.leave("not_ended", fmt.Sprintf("stop %s: %v", hakaru.TheService(name), err))
	}
	// The main process cannot be alive after EndGroup but in an uninterruptible
	// sleep, which Wait must not share.
	timer := time.NewTimer(registry.KillLimit)
	defer timer.Stop()
	select {
	case <-u.process.Ended():
		state, _ := u.process.State()
		u.process.Reap()
		s.left.Exits = append(s.left.Exits, hakaru.Exit{Service: name, State: state, Forced: forced})
	case <-timer.C:
		s.left.Exits = append(s.left.Exits, hakaru.Exit{Service: name, State: "does not end", Forced: true})
	}
}

// askToEnd signals the main process and reports whether it ended in its grace.
// The signal is sent once more at half of the time: one that arrives before a
// program has its handler can be lost.
func (s *Stack) askToEnd(ctx context.Context, u *unit, signal syscall.Signal) bool {
	grace := graceOf(u.spec)
	half := time.NewTimer(grace / 2)
	defer half.Stop()
	end := time.NewTimer(grace)
	defer end.Stop()
	// The zombie keeps the number: this reaches our process or nobody.
	_ = unix.Kill(u.group.Leader, signal)
	for {
		select {
		case <-u.process.Ended():
			return true
		case <-half.C:
			_ = unix.Kill(u.group.Leader, signal)
		case <-end.C:
			return false
		case <-ctx.Done():
			return u.hasEnded()
		}
	}
}

func (u *unit) awaitEmpty(ctx context.Context, limit time.Duration) bool {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	tick := time.NewTicker(registry.LookPause)
	defer tick.Stop()
	finder := kernel.Finder{Group: u.group, Thorough: true}
	for {
		if rest, err := finder.Find(); err == nil && len(rest) == 0 {
			return true
		}
		select {
		case <-ctx.Done():
			return false
		case <-tick.C:
		}
	}
}

// signalGroup sends a signal to every member. One that has ended since it was
// listed is no error.
func signalGroup(g kernel.Group, signal syscall.Signal) {
	members, err := g.Members()
	if err != nil {
		return
	}
	for _, pid := range members {
		_ = unix.Kill(pid, signal)
	}
}

// nothingLeft looks once more for everything that could have outlived the
// units; what is found is reported, and the record stays for Sweep.
func (s *Stack) nothingLeft() bool {
	clean := true
	rest, err := s.members()
	if err != nil || len(rest) > 0 {
		s.leave("not_ended", fmt.Sprintf("processes are left after stopping: %s %v", registry.DescribeAll(rest), err))
		clean = false
	}
	if len(s.record.Ports) > 0 {
		listeners, err := s.strangers().Listeners(false)
		if err != nil {
			return clean
		}
		for _, l := range listeners {
			if l.Addr.Addr().IsLoopback() && slices.Contains(s.record.Ports, l.Addr.Port()) {
				message := fmt.Sprintf("someone still listens on %s, which was leased to this stack", l.Addr)
				if held := s.strangers().Holding(l.Addr.String(), []uint64{l.Inode}); held != nil {
					message = held.Error() + " or does not know any more: the port was leased to this stack"
				}
				s.leave("port_open", message)
			}
		}
	}
	for _, u := range s.units {
		network, path := endpoint.Address(u.spec.Ready.Connect)
		if u.attached != nil || network != "unix" || strings.HasPrefix(path, "@") || strings.HasPrefix(path, s.place.Dir+"/") {
			continue
		}
		if info, err := os.Lstat(path); err == nil && info.Mode()&fs.ModeSocket != 0 {
			s.leave("socket_file", fmt.Sprintf("%s left its socket %s behind", hakaru.TheService(u.spec.Service), path))
		}
	}
	return clean
}

// removeTraces removes cgroups, the private directory and, last, the record:
// as long as anything is there, the record is.
func (s *Stack) removeTraces() error { return s.files.RemoveTraces(s.record) }

// signalByName takes "TERM", "SIGTERM" or a number; TERM where empty.
func signalByName(name string) (syscall.Signal, error) {
	if name == "" {
		return unix.SIGTERM, nil
	}
	if n, err := strconv.Atoi(name); err == nil && n > 0 && n < 65 {
		return syscall.Signal(n), nil
	}
	upper := strings.ToUpper(name)
	if !strings.HasPrefix(upper, "SIG") {
		upper = "SIG" + upper
	}
	if signal := unix.SignalNum(upper); signal != 0 {
		return signal, nil
	}
	return unix.SIGTERM, fmt.Errorf("there is no signal %q", name)
}
