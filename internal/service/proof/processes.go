package proof

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"hakaru"
	"hakaru/internal/watch/kernel"
)

// cast parts the processes of a unit by what they are to it.
type cast struct {
	members  []int
	daemons  []int          // do its work
	wrappers []int          // a shell or another program around a daemon, whose settings prove nothing
	program  map[int]string // of each member its executable; "" where it may not be looked at
}

// castOf takes for a wrapper a process with children in the unit, none of which
// runs the same executable, that holds no listening socket (which a master of
// helpers, such as postfix's, does).
func castOf(on Subject) (cast, error) {
	all, err := on.Group.Members()
	if err != nil {
		return cast{}, err
	}
	c := cast{program: make(map[int]string, len(all))}
	children := make(map[int][]int)
	for _, pid := range all {
		exe, err := os.Readlink(processPath(pid, "exe"))
		if ended(err) {
			continue
		}
		c.members = append(c.members, pid)
		c.program[pid] = exe
		if st, err := kernel.ReadStat(pid); err == nil {
			children[st.Parent] = append(children[st.Parent], pid)
		}
	}
	listening := listeningInodes()
	for _, pid := range c.members {
		below := children[pid]
		wrapper := len(below) > 0 && !slices.ContainsFunc(below, func(b int) bool { return c.program[b] == c.program[pid] })
		if wrapper {
			inodes, err := kernel.SocketInodes(pid)
			wrapper = err == nil && !slices.ContainsFunc(inodes, func(i uint64) bool { return listening[i] })
		}
		if wrapper {
			c.wrappers = append(c.wrappers, pid)
		} else {
			c.daemons = append(c.daemons, pid)
		}
	}
	return c, nil
}

// ended reports whether an error in looking at a process says that it is gone.
func ended(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ESRCH)
}

// own parts those that run a program of the service itself from the helpers that
// it runs: a program for one request, a pipe for its log. Its own is what a
// daemon that listens runs; where none is seen to listen, what the oldest does.
func (c cast) own() (own, helpers []int) {
	programs := make(map[string]bool)
	for _, pid := range c.daemons {
		programs[c.program[pid]] = true
	}
	if len(programs) > 1 {
		clear(programs)
		listening := listeningInodes()
		for _, pid := range c.daemons {
			inodes, err := kernel.SocketInodes(pid)
			if err == nil && slices.ContainsFunc(inodes, func(i uint64) bool { return listening[i] }) {
				programs[c.program[pid]] = true
			}
		}
		if len(programs) == 0 {
			programs[c.program[oldest(c.daemons)]] = true
		}
	}
	// A worker that waits for its helper looks like a wrapper, and is a worker.
	for _, pid := range c.members {
		switch {
		case programs[c.program[pid]]:
			own = append(own, pid)
		case slices.Contains(c.daemons, pid):
			helpers = append(helpers, pid)
		}
	}
	return own, helpers
}

// blind reports whether some of the processes may not be looked at: what they
// are, a sudo around the program perhaps, is not known.
func (c cast) blind() bool {
	return slices.ContainsFunc(c.members, func(pid int) bool { return c.program[pid] == "" })
}

// oldest is the process that started first; of those that have ended none is
// known to have.
func oldest(pids []int) int {
	return slices.MinFunc(pids, func(a, b int) int {
		x, errX := kernel.ReadStat(a)
		y, errY := kernel.ReadStat(b)
		switch {
		case errX != nil && errY == nil:
			return 1
		case errX == nil && errY != nil:
			return -1
		}
		return cmp.Or(cmp.Compare(x.Start, y.Start), cmp.Compare(a, b))
	})
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

const nobody = "no process of the service can be looked at"

// eachDaemon puts one question to every daemon of the unit: it holds when any
// says yes, or for an absence when none does. That only a helper says yes shows
// nothing, nor does a no where one of its own could not be asked.
func eachDaemon(on Subject, ask hakaru.Ask, source string, look func(pid int) (found string, ok bool, err error)) Evidence {
	c, err := castOf(on)
	if err != nil {
		return unreadable(source, err)
	}
	own, helpers := c.own()
	yes, read := 0, 0
	e := Evidence{Source: source}
	var unasked error
	for _, pid := range own {
		if slices.Contains(c.wrappers, pid) {
			continue
		}
		found, ok, err := look(pid)
		if err != nil {
			if !ended(err) {
				unasked = err
			}
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
	if yes == 0 {
		switch {
		case unasked != nil:
			return unreadable(source, unasked)
		case read == 0:
			return unreadable(source, errors.New(nobody))
		}
		for _, pid := range helpers {
			if found, ok, err := look(pid); err == nil && ok {
				why := fmt.Sprintf("%s: in pid %d (%s) only, which is not the program of the service", found, pid, kernel.Describe(pid))
				return told(why, fmt.Sprintf("%s of pid %d", source, pid), hakaru.NotProved)
			}
		}
	}
	e.Holds = held(yes > 0, ask.Absent)
	if read > 1 {
		e.Source += fmt.Sprintf(" (%d of %d processes)", yes, read)
	}
	return e
}

// attendance counts the processes of a unit as often as one question is put.
type attendance struct {
	looked bool
	stay   []int // were there at every look
}

func (a *attendance) count(_ context.Context, on Subject, ask hakaru.Ask) Evidence {
	source := "processes of the service"
	c, err := castOf(on)
	if err != nil {
		return unreadable(source, err)
	}
	if len(c.daemons) == 0 {
		return told(nobody, source, hakaru.NotProved)
	}
	if ask.Offset != 0 {
		source += fmt.Sprintf(" (asked for, and %d)", ask.Offset)
	}
	own, helpers := c.own()
	if ask.Argument != "" {
		// By their titles they are told apart, whatever else there is.
		own, helpers = titled(own, ask.Argument), nil
		if source += " called " + ask.Argument; len(own) == 0 {
			return told("no process is called so", source, hakaru.NotProved)
		}
	}
	if !a.looked {
		a.looked, a.stay = true, slices.Clone(own)
	}
	a.stay = slices.DeleteFunc(a.stay, func(pid int) bool { return !slices.Contains(own, pid) })
	found, holds := matchProcesses(seen{own: len(own), stay: len(a.stay), helpers: len(helpers), blind: c.blind()}, ask)
	if holds != hakaru.Yes {
		source += ": " + listed(own)
	}
	return told(found, source, holds)
}

// titled are those of the processes whose title has the text.
func titled(pids []int, text string) []int {
	return slices.DeleteFunc(slices.Clone(pids), func(pid int) bool {
		words, _, err := commandLine(pid)
		return err != nil || !strings.Contains(strings.Join(words, " "), text)
	})
}

// seen are the processes of a service in numbers.
type seen struct {
	own, stay int // that run its program; of these those that were always there
	helpers   int // that run another
	blind     bool
}

// matchProcesses compares how many processes there are. It says no only where no
// reading of what is there gives the number asked for: an app may run a program,
// or itself, for a request, and those come and go.
func matchProcesses(s seen, ask hakaru.Ask) (string, hakaru.Held) {
	want, err := askedNumber(ask)
	if err != nil {
		return fmt.Sprintf("%d; %v", s.own, err), hakaru.NotProved
	}
	found, total := strconv.Itoa(s.own), s.own+s.helpers
	if s.helpers > 0 {
		found += fmt.Sprintf(", and %d of other programs", s.helpers)
	}
	switch {
	case s.own == want:
		return found, held(true, ask.Absent)
	case s.own < want && want <= total:
		return found + "; whether those count is not known", hakaru.NotProved
	case s.blind && want < s.own:
		return found + "; what they run may not be looked at", hakaru.NotProved
	case s.stay <= want && want < s.own:
		return found + fmt.Sprintf("; %d of them stay, the others come and go", s.stay), hakaru.NotProved
	}
	return found, held(false, ask.Absent)
}

func threadCount(_ context.Context, on Subject, ask hakaru.Ask) Evidence {
	source := "threads of its processes"
	c, err := castOf(on)
	if err != nil {
		return unreadable(source, err)
	}
	own, _ := c.own()
	var counts []int
	for _, pid := range own {
		if st, err := kernel.ReadStat(pid); err == nil {
			counts = append(counts, st.Threads)
		}
	}
	if len(counts) == 0 {
		return told(nobody, source, hakaru.NotProved)
	}
	found, holds := matchThreads(counts, ask)
	if holds == hakaru.No {
		source += ": " + listed(own)
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
