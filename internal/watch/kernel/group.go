package kernel

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Group says by which signs the processes of one unit are known. A service may
// leave its session (a daemon), write over its environment (a title), or run
// where no cgroup can be made: any one sign is enough, and a child of a member
// is a member.
type Group struct {
	Cgroup string // directory; empty where none could be made
	Mark   string // value of MarkVariable
	Leader int    // pid of the main process, leader of its session; 0: not started
	Start  uint64 // its start time: a session number may be used again
	// Descent leaves the session out: of a service that something else started
	// only the leader and its descendants are members, since others may share
	// its session.
	Descent bool
}

// Members returns the live processes of the group, by every sign there is, in
// rising order. It looks at every process of the machine; Finder is for those
// who look often.
func (g Group) Members() ([]int, error) {
	var f Finder
	f.Group = g
	f.Thorough = true
	return f.Find()
}

// Finder finds the members of a group again and again at little cost: where
// there is a cgroup it reads that alone, otherwise it remembers whom it has
// looked at.
type Finder struct {
	Group
	// Thorough looks at every process of the machine by every sign even where
	// there is a cgroup, since a process may have been moved out of it.
	Thorough bool

	known map[int]bool // processes already looked at → member
	pids  []int
	found []int
}

// Find returns the live members in rising order. The slice is used again by
// the next call.
func (f *Finder) Find() ([]int, error) {
	f.found = f.found[:0]
	if f.Cgroup != "" {
		list, err := CgroupProcs(f.Cgroup, f.found)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		f.found = list
		if !f.Thorough {
			slices.Sort(f.found)
			return f.found, nil
		}
	}
	var err error
	if f.pids, err = PIDs(f.pids); err != nil {
		return nil, fmt.Errorf("list processes: %w", err)
	}
	known := make(map[int]bool, len(f.pids))
	parent := make(map[int]int)
	leaderOurs := true
	stats := make([]Stat, 0, 16)
	for _, pid := range f.pids {
		member, seen := f.known[pid]
		if seen && !member && !slices.Contains(f.found, pid) {
			known[pid] = false
			continue
		}
		s, err := ReadStat(pid)
		if err != nil {
			continue // it ended between the listing and now
		}
		if pid == f.Leader && s.Start != f.Start {
			// The number was used again: its session is not ours.
			leaderOurs = false
		}
		parent[pid] = s.Parent
		known[pid] = member
		stats = append(stats, s)
	}
	for _, s := range stats {
		if known[s.PID] {
			continue
		}
		ours := f.Mark != "" && Marked(s.PID, f.Mark)
		if f.Leader != 0 && leaderOurs {
			ours = ours || s.PID == f.Leader || s.Session == f.Leader && !f.Descent
		}
		known[s.PID] = ours || slices.Contains(f.found, s.PID)
	}
	for changed := true; changed; {
		changed = false
		for pid, of := range parent {
			if !known[pid] && known[of] && of > 1 {
				known[pid], changed = true, true
			}
		}
	}
	f.known = known
	f.found = f.found[:0]
	for _, s := range stats {
		if known[s.PID] && s.Alive() {
			f.found = append(f.found, s.PID)
		}
	}
	slices.Sort(f.found)
	return f.found, nil
}

// CgroupProcs appends the processes in a cgroup and those below it to list.
func CgroupProcs(dir string, list []int) ([]int, error) {
	b, err := os.ReadFile(filepath.Join(dir, "cgroup.procs"))
	if err != nil {
		// A threaded cgroup does not tell its processes; the one above does.
		return list, fmt.Errorf("list processes of cgroup %s: %w", dir, err)
	}
	for line := range strings.FieldsSeq(string(b)) {
		// 0 stands for a process outside of this pid namespace.
		if pid, err := strconv.Atoi(line); err == nil && pid > 0 {
			list = append(list, pid)
		}
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return list, fmt.Errorf("list cgroup %s: %w", dir, err)
	}
	for _, e := range entries {
		if !e.IsDir() {
			continue
		}
		if list, err = CgroupProcs(filepath.Join(dir, e.Name()), list); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return list, err
		}
	}
	return list, nil
}

// CgroupRoot returns where the version 2 hierarchy is mounted, and this
// process's own cgroup in it ("/": the root). It is /sys/fs/cgroup on most
// machines, /sys/fs/cgroup/unified where version 1 is used beside it.
func CgroupRoot() (mount, own string, err error) {
	b, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return "", "", fmt.Errorf("find the cgroup hierarchy: %w", err)
	}
	for line := range strings.Lines(string(b)) {
		// 36 35 98:0 /root /mount/point options [tags] - type source superoptions
		left, right, ok := strings.Cut(line, " - ")
		fields := strings.Fields(left)
		if ok && len(fields) > 4 && strings.HasPrefix(right, "cgroup2 ") {
			mount = unescapeMount(fields[4])
			break
		}
	}
	if mount == "" {
		return "", "", errors.New("find the cgroup hierarchy: version 2 is not mounted")
	}
	return mount, CgroupOf(0, ""), nil
}

// CgroupOf returns the path of a process's cgroup (0: this process) in the
// hierarchy of a version 1 controller, or of version 2 where controller is
// empty; empty where it cannot be told.
func CgroupOf(pid int, controller string) string {
	name := "self"
	if pid != 0 {
		name = strconv.Itoa(pid)
	}
	b, err := os.ReadFile("/proc/" + name + "/cgroup")
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(b)) {
		parts := strings.SplitN(strings.TrimRight(line, "\n"), ":", 3)
		if len(parts) != 3 {
			continue
		}
		if controller == "" && parts[0] == "0" ||
			controller != "" && slices.Contains(strings.Split(parts[1], ","), controller) {
			return parts[2]
		}
	}
	return ""
}

// unescapeMount undoes the octal escapes of mountinfo (blank, tab, newline,
// backslash).
func unescapeMount(s string) string {
	return strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`).Replace(s)
}
