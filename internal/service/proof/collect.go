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

func held(found, absent bool) hakaru.Held {
	if found != absent {
		return hakaru.Yes
	}
	return hakaru.No
}

// unless turns an answer round where it is the absence that is asked for.
func unless(absent bool, there hakaru.Held) hakaru.Held {
	if there == hakaru.NotProved {
		return there
	}
	return held(there == hakaru.Yes, absent)
}

func cmdlines(_ context.Context, on Subject, ask hakaru.Ask) Evidence {
	return eachDaemon(on, ask, "cmdline", func(pid int) (string, bool, error) {
		words, title, err := commandLine(pid)
		if err != nil {
			return "", false, err
		}
		found, ok, err := matchCmdline(words, title, ask)
		if err != nil {
			return "", false, fmt.Errorf("pid %d %w", pid, err)
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
		found, ok, err := matchEnviron(env, ask)
		if err != nil {
			return "", false, fmt.Errorf("pid %d %w", pid, err)
		}
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
	if on.Serving != nil {
		all = on.Serving(all)
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
