package registry

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"

	"hakaru"
	"hakaru/internal/watch/kernel"
)

// Sweep ends what agents that are dead have left: their services' processes,
// cgroups, private directories and records. What a living agent has started is
// not touched, nor is a service that hakaru did not start: a record that still
// has something to put back for one stays (attach.PutBack comes before). The
// warnings say what had to be ended.
func Sweep(ctx context.Context, stateDir string) ([]hakaru.Warning, error) {
	entries, err := os.ReadDir(stateDir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("sweep leftovers: %w", err)
	}
	if err := checkOwn(stateDir); err != nil {
		return nil, fmt.Errorf("sweep leftovers: %w", err)
	}
	boot, err := kernel.BootID()
	if err != nil {
		return nil, fmt.Errorf("sweep leftovers: %w", err)
	}
	files := Dir{stateDir}
	var warnings []hakaru.Warning
	var errs []error
	for _, e := range entries {
		if err := ctx.Err(); err != nil {
			return warnings, errors.Join(append(errs, err)...)
		}
		switch name := e.Name(); {
		case strings.HasSuffix(name, ".new"):
			errs = append(errs, files.removeUnfinished(name))
		case strings.HasSuffix(name, ".json"):
			found, err := sweepOne(files, name, boot)
			warnings = append(warnings, found...)
			errs = append(errs, err)
		}
	}
	return warnings, errors.Join(errs...)
}

// removeUnfinished removes a record that a dead agent was writing: nothing had
// been started under it, or the finished one stands beside it.
func (d Dir) removeUnfinished(name string) error {
	parts := strings.Split(strings.TrimSuffix(name, ".new"), "-")
	if len(parts) != 3 {
		return nil // not ours
	}
	pid, err1 := strconv.Atoi(parts[1])
	start, err2 := strconv.ParseUint(parts[2], 10, 64)
	if err1 != nil || err2 != nil || (Owner{pid, start}).alive() {
		return nil
	}
	if err := os.Remove(d.path + "/" + name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("sweep leftovers: %w", err)
	}
	return nil
}

func sweepOne(files Dir, name, boot string) ([]hakaru.Warning, error) {
	orphan, orphaned, err := files.Orphan(name, boot)
	if err != nil {
		return nil, fmt.Errorf("sweep leftovers: %w", err)
	}
	if !orphaned {
		return nil, nil
	}
	rec := orphan.Record
	if !orphan.SameBoot {
		rec.Ports = nil // no process of another boot is there
		for i := range rec.Units {
			rec.Units[i].PID = 0
		}
	}
	var warnings []hakaru.Warning
	for _, u := range rec.Units {
		if u.Mark == "" {
			continue // hakaru did not start it: nothing of it is ended
		}
		g := kernel.Group{Cgroup: u.Cgroup, Mark: u.Mark}
		// The session counts only while its leader is there to prove that the
		// number was not used again.
		if s, err := kernel.ReadStat(u.PID); u.PID != 0 && err == nil && s.Start == u.Start {
			g.Leader, g.Start = u.PID, u.Start
		}
		members, err := g.Members()
		if err != nil {
			return warnings, fmt.Errorf("sweep leftovers of %s: %w", hakaru.TheService(u.Service), err)
		}
		if len(members) > 0 {
			warnings = append(warnings, hakaru.Warning{Code: "swept", Message: fmt.Sprintf(
				"%s of an agent that was killed (pid %d) was still running and has been ended: %s", hakaru.TheService(u.Service), rec.Owner.PID, DescribeAll(members))})
		}
		if err := EndGroup(g, KillLimit); err != nil {
			return warnings, fmt.Errorf("sweep leftovers of %s: %w", hakaru.TheService(u.Service), err)
		}
	}
	w, err := sweepPorts(rec)
	warnings = append(warnings, w...)
	if err != nil {
		return warnings, fmt.Errorf("sweep leftovers: %w", err)
	}
	if err := files.RemoveTraces(rec); err != nil {
		return warnings, fmt.Errorf("sweep leftovers: %w", err)
	}
	return warnings, nil
}

// sweepPorts ends processes that wrote over their environment, left their
// session and have no cgroup, where they still hold a leased port: such a
// process is in a session that no agent's process leads, and its session is
// one of the record's.
func sweepPorts(rec Record) ([]hakaru.Warning, error) {
	if len(rec.Ports) == 0 {
		return nil, nil
	}
	d, err := kernel.OpenDiag()
	if err != nil {
		return nil, nil // who listens cannot be told here; the marks had to do
	}
	listeners, err := d.TCP(nil)
	if err = errors.Join(err, d.Close()); err != nil {
		return nil, err
	}
	var inodes []uint64
	for _, l := range listeners {
		if slices.Contains(rec.Ports, l.Addr.Port()) {
			inodes = append(inodes, l.Inode)
		}
	}
	if len(inodes) == 0 {
		return nil, nil
	}
	pids, err := kernel.PIDs(nil)
	if err != nil {
		return nil, err
	}
	var warnings []hakaru.Warning
	for _, pid := range pids {
		s, err := kernel.ReadStat(pid)
		if err != nil || !slices.ContainsFunc(rec.Units, func(u Unit) bool { return u.PID != 0 && u.PID == s.Session && s.Start >= u.Start }) {
			continue
		}
		held, err := kernel.SocketInodes(pid)
		if err != nil || !slices.ContainsFunc(held, func(i uint64) bool { return slices.Contains(inodes, i) }) {
			continue
		}
		what := kernel.Describe(pid)
		// Its session is the recorded one, whose other members are like it.
		if err := EndGroup(kernel.Group{Leader: s.Session, Start: sessionStart(rec, s.Session)}, KillLimit); err != nil {
			return warnings, err
		}
		warnings = append(warnings, hakaru.Warning{Code: "swept", Message: fmt.Sprintf(
			"pid %d (%s) still held a port leased by an agent that was killed (pid %d) and has been ended", pid, what, rec.Owner.PID)})
	}
	return warnings, nil
}

func sessionStart(rec Record, session int) uint64 {
	for _, u := range rec.Units {
		if u.PID == session {
			return u.Start
		}
	}
	return 0
}
