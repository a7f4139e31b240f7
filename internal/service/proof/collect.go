package proof

import (
	"context"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"hakaru"
	"hakaru/internal/watch/kernel"
)

// daemons are the processes of a unit that do its work: not a shell or another
// wrapper around the program, whose settings prove nothing. A wrapper is a
// process with children in the unit, none of which runs the same executable,
// that holds no listening socket (which a master of helpers, such as postfix's,
// does).
func daemons(on Subject) ([]int, error) {
	list, _, err := roles(on)
	return list, err
}

// roles parts the processes of a unit into daemons and the wrappers around them.
func roles(on Subject) (list, wrappers []int, err error) {
	members, err := on.Group.Members()
	if err != nil {
		return nil, nil, err
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
	for _, pid := range members {
		below := children[pid]
		wrapper := len(below) > 0 && !slices.ContainsFunc(below, func(c int) bool { return executables[c] == executables[pid] })
		if wrapper {
			inodes, err := kernel.SocketInodes(pid)
			wrapper = err == nil && !slices.ContainsFunc(inodes, func(i uint64) bool { return listening[i] })
		}
		if wrapper {
			wrappers = append(wrappers, pid)
		} else {
			list = append(list, pid)
		}
	}
	return list, wrappers, nil
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
func eachDaemon(on Subject, ask hakaru.Ask, source string, look func(pid int) (found string, ok bool, err error)) Evidence {
	pids, err := daemons(on)
	if err != nil {
		return unreadable(source, err)
	}
	yes, read := 0, 0
	e := Evidence{Source: source}
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
		if ok && yes == 1 || e.Found == "" {
			e.Found, e.Source = found, fmt.Sprintf("%s of pid %d", source, pid)
		}
	}
	if read == 0 {
		if lastErr == nil {
			lastErr = fmt.Errorf("no process of the service is there")
		}
		return unreadable(source, lastErr)
	}
	e.Holds = held(yes > 0, ask.Absent)
	if read > 1 {
		e.Source += fmt.Sprintf(" (%d of %d processes)", yes, read)
	}
	return e
}

func held(found, absent bool) hakaru.Held {
	if found != absent {
		return hakaru.Yes
	}
	return hakaru.No
}

func cmdlines(_ context.Context, on Subject, ask hakaru.Ask) Evidence {
	return eachDaemon(on, ask, "cmdline", func(pid int) (string, bool, error) {
		words, title, err := commandLine(pid)
		if err != nil {
			return "", false, err
		}
		found, ok := matchCmdline(words, ask)
		if title && !ok {
			return "", false, fmt.Errorf("pid %d has written a title over its words: %s", pid, shorten(strings.Join(words, " ")))
		}
		return found, ok, nil
	})
}

func environs(_ context.Context, on Subject, ask hakaru.Ask) Evidence {
	e := eachDaemon(on, ask, "environ", func(pid int) (string, bool, error) {
		env, err := environment(pid)
		if err != nil {
			return "", false, err
		}
		found, ok := matchEnviron(env, ask)
		return found, ok, nil
	})
	if e.Holds == hakaru.No && !ask.Absent {
		e.Found = join(e.Found, whyNotInEnviron(on, ask))
	}
	return e
}

func mapped(_ context.Context, on Subject, ask hakaru.Ask) Evidence {
	e := eachDaemon(on, ask, "maps", func(pid int) (string, bool, error) {
		b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/maps")
		if err != nil {
			return "", false, err
		}
		found, ok := matchMaps(string(b), ask)
		return found, ok, nil
	})
	switch {
	case ask.Absent || e.Holds == hakaru.NotProved:
	case e.Holds == hakaru.No:
		e.Found = join(e.Found, whyNotMapped(on, ask))
	default:
		e = whichServes(on, ask, e)
	}
	return e
}

func processCount(_ context.Context, on Subject, ask hakaru.Ask) Evidence {
	source := "processes of the service"
	pids, err := daemons(on)
	if err != nil {
		return unreadable(source, err)
	}
	if ask.Offset != 0 {
		source += fmt.Sprintf(" (asked for, and %d)", ask.Offset)
	}
	found, holds := matchCount(len(pids), ask)
	if holds == hakaru.No {
		source += ": " + listed(pids)
	}
	return told(found, source, holds)
}

func threadCount(_ context.Context, on Subject, ask hakaru.Ask) Evidence {
	source := "threads of its processes"
	pids, err := daemons(on)
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
		return told("no process of the service is there", source, hakaru.NotProved)
	}
	found, holds := matchThreads(counts, ask)
	if holds == hakaru.No {
		source += ": " + listed(pids)
	}
	// Those that are too many, of libraries and of the runtime, stay.
	return Evidence{Found: found, Source: source, Holds: holds, lasts: holds == hakaru.NotProved}
}

// listed names a few processes, so that a person can look at them.
func listed(pids []int) string {
	const most = 8
	var b strings.Builder
	for i, pid := range pids {
		if i == most {
			fmt.Fprintf(&b, " and %d more", len(pids)-most)
			break
		}
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(strconv.Itoa(pid))
	}
	if len(pids) == 1 {
		return "pid " + b.String()
	}
	return "pids " + b.String()
}

func backlogs(_ context.Context, on Subject, ask hakaru.Ask) Evidence {
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
	members, err := on.Group.Members()
	if err != nil {
		return unreadable(source, err)
	}
	ours := make(map[uint64]int) // → the first that has it open: of a prefork server the master
	for _, pid := range members {
		inodes, err := kernel.SocketInodes(pid)
		if err != nil {
			continue
		}
		for _, i := range inodes {
			if ours[i] == 0 {
				ours[i] = pid
			}
		}
	}
	all = slices.DeleteFunc(all, func(l kernel.Listener) bool { return ours[l.Inode] == 0 })
	// What the load goes to is what matters: a status port beside it is not.
	if on.Leased != nil {
		if leased := slices.DeleteFunc(slices.Clone(all), func(l kernel.Listener) bool { return !on.Leased(l) }); len(leased) > 0 {
			all = leased
		}
	}
	var owners []int
	for _, l := range all {
		if pid := ours[l.Inode]; !slices.Contains(owners, pid) {
			owners = append(owners, pid)
		}
	}
	slices.Sort(owners)
	if len(owners) == 1 {
		source += fmt.Sprintf(", to pid %d (%s)", owners[0], kernel.Describe(owners[0]))
	} else if len(owners) > 1 {
		source += ", to " + listed(owners)
	}
	found, holds := matchBacklog(all, somaxconn(), ask)
	return told(found, source, holds)
}

// somaxconn is what the kernel cuts every backlog to; 0 where it cannot be read.
// It belongs to the network namespace, which is that of the sockets seen here.
func somaxconn() int {
	b, err := os.ReadFile("/proc/sys/net/core/somaxconn")
	if err != nil {
		return 0
	}
	n, err := strconv.Atoi(strings.TrimSpace(string(b)))
	if err != nil {
		return 0
	}
	return n
}

func logged(_ context.Context, on Subject, ask hakaru.Ask) Evidence {
	const source = "output of the service"
	if on.Output == nil {
		return never("hakaru does not start it and does not see its output", source)
	}
	text, cut := on.Output()
	if strings.Contains(ask.Argument, "{") {
		names := make(hakaru.Names, len(on.Names))
		for name, value := range on.Names {
			names[name] = regexp.QuoteMeta(value)
		}
		ask.Argument = names.Expand(ask.Argument)
	}
	found, holds := matchLog(text, cut, ask)
	return told(found, source, holds)
}

func revision(_ context.Context, on Subject, ask hakaru.Ask) Evidence {
	const source = "checked out and built from git"
	if on.Commit == "" {
		return never("the commit that runs is not known", source)
	}
	return Evidence{Found: on.Commit, Source: source, Holds: matchRevision(on.Commit, ask), lasts: true}
}
