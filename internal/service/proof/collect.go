package proof

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
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
	members, err := on.Group.Members()
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
		words, err := kernel.Cmdline(pid)
		if err != nil {
			return "", false, err
		}
		found, ok := matchCmdline(words, ask)
		return found, ok, nil
	})
}

func environs(_ context.Context, on Subject, ask hakaru.Ask) Evidence {
	return eachDaemon(on, ask, "environ", func(pid int) (string, bool, error) {
		env, err := kernel.Environ(pid)
		if err != nil {
			return "", false, err
		}
		found, ok := matchEnviron(env, ask)
		return found, ok, nil
	})
}

func mapped(_ context.Context, on Subject, ask hakaru.Ask) Evidence {
	return eachDaemon(on, ask, "maps", func(pid int) (string, bool, error) {
		b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/maps")
		if err != nil {
			return "", false, err
		}
		found, ok := matchMaps(string(b), ask)
		return found, ok, nil
	})
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
	return Evidence{found, source, holds}
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
		return Evidence{"no process of the service is there", source, hakaru.NotProved}
	}
	found, holds := matchThreads(counts, ask)
	return Evidence{found, source, holds}
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
	if leased := slices.DeleteFunc(slices.Clone(all), func(l kernel.Listener) bool { return !on.Leased(l) }); len(leased) > 0 {
		all = leased
	}
	found, holds := matchBacklog(all, ask)
	return Evidence{found, source, holds}
}

func httpAnswer(ctx context.Context, on Subject, ask hakaru.Ask) Evidence {
	address := on.Names.Expand(ask.Argument)
	source := "GET " + address
	status, body, err := Get(ctx, address, Limit)
	if err != nil {
		return unreadable(source, err)
	}
	if status < 200 || status > 299 {
		return Evidence{fmt.Sprintf("status %d: %s", status, Beginning(body)), source, hakaru.NotProved}
	}
	if ask.Field != "" {
		source += ", " + ask.Field
	}
	found, holds := matchHTTP(body, ask)
	return Evidence{found, source, holds}
}

func logged(_ context.Context, on Subject, ask hakaru.Ask) Evidence {
	text, cut := on.Output()
	found, holds := matchLog(text, cut, ask)
	return Evidence{found, "output of the service", holds}
}

func fileWritten(_ context.Context, on Subject, ask hakaru.Ask) Evidence {
	var files []hakaru.File
	for _, f := range on.Files {
		if ask.Argument == "" || f.Path == ask.Argument || f.Path == filepath.Join(on.Dir, ask.Argument) {
			files = append(files, f)
		}
	}
	if len(files) == 0 {
		return Evidence{"no such file was written", "files written for the service", hakaru.NotProved}
	}
	var names []string
	for _, f := range files {
		if found, ok := matchText(f.Content, ask); ok {
			return Evidence{found, "file " + f.Path + " as written", held(true, ask.Absent)}
		}
		names = append(names, f.Path)
	}
	return Evidence{"not there", "file " + strings.Join(names, ", ") + " as written", held(false, ask.Absent)}
}
