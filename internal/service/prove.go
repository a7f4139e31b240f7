package service

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"hakaru"
	"hakaru/internal/watch/kernel"
)

// proofTime is what one question may take. Until it is over, an answer that
// does not hold is asked for again: workers and threads come up after the first
// right answer.
const (
	proofTime  = 2 * time.Second
	proofPause = 100 * time.Millisecond
)

// Prove answers whether settings are in force, by what the running processes,
// the kernel and the service itself say. Every ask gets one proof, in order.
func (s *Stack) Prove(ctx context.Context, asks []hakaru.Ask, when hakaru.Moment) []hakaru.Proof {
	proofs := make([]hakaru.Proof, 0, len(asks))
	for _, ask := range asks {
		// Only at readiness is there time to ask again: under load every look
		// costs the CPU that is being measured.
		proofs = append(proofs, s.proveOne(ctx, ask, when, when == hakaru.AtReady && !ask.Absent))
	}
	return proofs
}

func (s *Stack) proveOne(ctx context.Context, ask hakaru.Ask, when hakaru.Moment, again bool) hakaru.Proof {
	proof := hakaru.Proof{Service: ask.Service, Setting: ask.Setting, Asked: ask.Asked, When: when}
	notProved := func(why string) hakaru.Proof {
		proof.Found, proof.Holds = why, hakaru.NotProved
		return proof
	}
	if ask.NotProof != "" {
		return notProved(ask.NotProof)
	}
	u := s.unitOf(ask.Service)
	if u == nil {
		return notProved(fmt.Sprintf("no service %q is up", ask.Service))
	}
	proof.Service = u.spec.Service
	collect := map[string]func(context.Context, *unit, hakaru.Ask) evidence{
		"cmdline": s.cmdlines, "environ": s.environs, "maps": s.mapped,
		"processes": s.processCount, "threads": s.threadCount, "backlog": s.backlogs,
		"http": s.httpAnswer, "log": s.logged, "file": s.fileWritten,
	}[ask.Kind]
	if collect == nil {
		return notProved(fmt.Sprintf("proof by %s is not built yet", ask.Kind))
	}
	ctx, cancel := context.WithTimeout(ctx, proofTime)
	defer cancel()
	tick := time.NewTicker(proofPause)
	defer tick.Stop()
	for {
		e := collect(ctx, u, ask)
		if ctx.Err() == nil || proof.Source == "" {
			// An answer cut off by the time limit does not replace a whole one.
			proof.Found, proof.Source, proof.Holds = e.found, e.source, e.holds
		}
		if !again || e.holds == hakaru.Yes {
			return proof
		}
		select {
		case <-ctx.Done():
			return proof
		case <-tick.C:
		}
	}
}

// evidence is what one look found.
type evidence struct {
	found, source string
	holds         hakaru.Held
}

func unreadable(source string, err error) evidence {
	return evidence{found: err.Error(), source: source}
}

func (s *Stack) unitOf(service string) *unit {
	for _, u := range s.units {
		if u.spec.Service == service || service == "" && len(s.units) == 1 {
			return u
		}
	}
	return nil
}

// daemons are the processes of a unit that do its work: not a shell or another
// wrapper around the program, whose settings prove nothing. A wrapper is a
// process with children in the unit, none of which runs the same executable,
// that holds no listening socket (which a master of helpers, such as postfix's,
// does).
func daemons(u *unit) ([]int, error) {
	members, err := u.group.Members()
	if err != nil {
		return nil, err
	}
	executables := make(map[int]string, len(members))
	children := make(map[int][]int)
	for _, pid := range members {
		exe, err := os.Readlink("/proc/" + strconv.Itoa(pid) + "/exe")
		if err != nil {
			continue
		}
		executables[pid] = exe
		if st, err := kernel.ReadStat(pid); err == nil {
			children[st.Parent] = append(children[st.Parent], pid)
		}
	}
	listening := listeningInodes()
	var list []int
	for _, pid := range members {
		below := children[pid]
		wrapper := len(below) > 0 && !slices.ContainsFunc(below, func(c int) bool { return executables[c] == executables[pid] })
		if wrapper {
			inodes, err := kernel.SocketInodes(pid)
			wrapper = err == nil && !slices.ContainsFunc(inodes, func(i uint64) bool { return listening[i] })
		}
		if !wrapper {
			list = append(list, pid)
		}
	}
	return list, nil
}

// listeningInodes is empty where the kernel cannot be asked: then a parent of
// other programs counts as a wrapper.
func listeningInodes() map[uint64]bool {
	set := make(map[uint64]bool)
	d, err := kernel.OpenDiag()
	if err != nil {
		return set
	}
	defer func() { _ = d.Close() }()
	list, _ := d.TCP(nil)
	list, _ = d.Unix(list)
	for _, l := range list {
		set[l.Inode] = true
	}
	return set
}

// eachDaemon puts one question to every daemon of the unit: it holds when any
// says yes, or for an absence when none does.
func eachDaemon(u *unit, ask hakaru.Ask, source string, look func(pid int) (found string, ok bool, err error)) evidence {
	pids, err := daemons(u)
	if err != nil {
		return unreadable(source, err)
	}
	yes, read := 0, 0
	e := evidence{source: source}
	var lastErr error
	for _, pid := range pids {
		found, ok, err := look(pid)
		if err != nil {
			lastErr = err
			continue
		}
		read++
		if ok {
			yes++
		}
		if ok && yes == 1 || e.found == "" {
			e.found, e.source = found, fmt.Sprintf("%s of pid %d", source, pid)
		}
	}
	if read == 0 {
		if lastErr == nil {
			lastErr = fmt.Errorf("no process of the service is there")
		}
		return unreadable(source, lastErr)
	}
	e.holds = held(yes > 0, ask.Absent)
	if read > 1 {
		e.source += fmt.Sprintf(" (%d of %d processes)", yes, read)
	}
	return e
}

func held(found, absent bool) hakaru.Held {
	if found != absent {
		return hakaru.Yes
	}
	return hakaru.No
}

func (s *Stack) cmdlines(_ context.Context, u *unit, ask hakaru.Ask) evidence {
	return eachDaemon(u, ask, "cmdline", func(pid int) (string, bool, error) {
		words, err := kernel.Cmdline(pid)
		if err != nil {
			return "", false, err
		}
		found, ok := matchCmdline(words, ask)
		return found, ok, nil
	})
}

func (s *Stack) environs(_ context.Context, u *unit, ask hakaru.Ask) evidence {
	return eachDaemon(u, ask, "environ", func(pid int) (string, bool, error) {
		env, err := kernel.Environ(pid)
		if err != nil {
			return "", false, err
		}
		found, ok := matchEnviron(env, ask)
		return found, ok, nil
	})
}

func (s *Stack) mapped(_ context.Context, u *unit, ask hakaru.Ask) evidence {
	return eachDaemon(u, ask, "maps", func(pid int) (string, bool, error) {
		b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/maps")
		if err != nil {
			return "", false, err
		}
		found, ok := matchMaps(string(b), ask)
		return found, ok, nil
	})
}

func (s *Stack) processCount(_ context.Context, u *unit, ask hakaru.Ask) evidence {
	source := "processes of the service"
	pids, err := daemons(u)
	if err != nil {
		return unreadable(source, err)
	}
	if ask.Offset != 0 {
		source += fmt.Sprintf(" (asked for, and %d)", ask.Offset)
	}
	found, holds := matchCount(len(pids), ask)
	return evidence{found, source, holds}
}

func (s *Stack) threadCount(_ context.Context, u *unit, ask hakaru.Ask) evidence {
	source := "threads of its processes"
	pids, err := daemons(u)
	if err != nil {
		return unreadable(source, err)
	}
	var counts []int
	for _, pid := range pids {
		if st, err := kernel.ReadStat(pid); err == nil {
			counts = append(counts, st.Threads)
		}
	}
	if len(counts) == 0 {
		return evidence{"no process of the service is there", source, hakaru.NotProved}
	}
	found, holds := matchThreads(counts, ask)
	return evidence{found, source, holds}
}

func (s *Stack) backlogs(_ context.Context, u *unit, ask hakaru.Ask) evidence {
	source := "backlog granted by the kernel (socket diagnostics)"
	d, err := kernel.OpenDiag()
	if err != nil {
		return unreadable(source, err)
	}
	defer func() { _ = d.Close() }()
	all, err := d.TCP(nil)
	if err == nil {
		all, err = d.Unix(all)
	}
	if err != nil {
		return unreadable(source, err)
	}
	members, err := u.group.Members()
	if err != nil {
		return unreadable(source, err)
	}
	ours := make(map[uint64]bool)
	for _, pid := range members {
		inodes, err := kernel.SocketInodes(pid)
		if err != nil {
			continue
		}
		for _, i := range inodes {
			ours[i] = true
		}
	}
	all = slices.DeleteFunc(all, func(l kernel.Listener) bool { return !ours[l.Inode] })
	// What the load goes to is what matters: a status port beside it is not.
	if leased := slices.DeleteFunc(slices.Clone(all), func(l kernel.Listener) bool { return !s.isLease(l) }); len(leased) > 0 {
		all = leased
	}
	found, holds := matchBacklog(all, ask)
	return evidence{found, source, holds}
}

func (s *Stack) isLease(l kernel.Listener) bool {
	return slices.ContainsFunc(s.leases, func(x *lease) bool {
		return x.port != 0 && l.Addr.Port() == x.port || x.path != "" && l.Path == x.path
	})
}

func (s *Stack) httpAnswer(ctx context.Context, _ *unit, ask hakaru.Ask) evidence {
	address := s.place.Names.Expand(ask.Argument)
	source := "GET " + address
	status, body, err := fetch(ctx, address, proofTime)
	if err != nil {
		return unreadable(source, err)
	}
	if status < 200 || status > 299 {
		return evidence{fmt.Sprintf("status %d: %s", status, beginning(body)), source, hakaru.NotProved}
	}
	if ask.Field != "" {
		source += ", " + ask.Field
	}
	found, holds := matchHTTP(body, ask)
	return evidence{found, source, holds}
}

func (s *Stack) logged(_ context.Context, u *unit, ask hakaru.Ask) evidence {
	head, tail, cut := u.out.text()
	found, holds := matchLog(head+tail, cut > 0, ask)
	return evidence{found, "output of the service", holds}
}

func (s *Stack) fileWritten(_ context.Context, u *unit, ask hakaru.Ask) evidence {
	var files []hakaru.File
	for i := range s.place.Units {
		if s.place.Units[i].Service != u.spec.Service {
			continue
		}
		for _, f := range s.place.Units[i].Files {
			if ask.Argument == "" || f.Path == ask.Argument || f.Path == filepath.Join(s.place.Dir, ask.Argument) {
				files = append(files, f)
			}
		}
	}
	if len(files) == 0 {
		return evidence{"no such file was written", "files written for the service", hakaru.NotProved}
	}
	var names []string
	for _, f := range files {
		if found, ok := matchText(f.Content, ask); ok {
			return evidence{found, "file " + f.Path + " as written", held(true, ask.Absent)}
		}
		names = append(names, f.Path)
	}
	return evidence{"not there", "file " + strings.Join(names, ", ") + " as written", held(false, ask.Absent)}
}
