// Package kernel reads what Linux says about processes, control groups and
// listening sockets, for the two rooms that need the same facts: service, which
// has to find everything it started, and watch, which counts what it used.
//
// It takes pids, directories and marks; it gives plain values and never changes
// anything. It does not decide: whether a process may be killed or a trial
// counts is said elsewhere. What cannot be read, because the process has gone
// or belongs to someone else, is an error or absent, never a zero that looks
// like a figure.
package kernel

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"
)

// MarkVariable is the environment variable by which processes of a unit are
// known where there is no cgroup, or where they left it.
const MarkVariable = "HAKARU_MARK"

// Mark is the value of MarkVariable for the unit at index i of a place.
func Mark(placeID string, i int) string { return placeID + "." + strconv.Itoa(i+1) }

// tick is the unit of times in /proc: USER_HZ, which is 100 on every
// architecture Go runs Linux on (proc_pid_stat(5), sysconf(_SC_CLK_TCK)).
const tick = time.Second / 100

// Stat is /proc/PID/stat as far as it is needed here.
type Stat struct {
	PID, Parent, Group, Session int
	State                       byte
	CPU                         time.Duration // user and system time of all its threads, dead ones included
	ChildCPU                    time.Duration // of children it has waited for
	Threads                     int
	Start                       uint64 // in ticks since boot; with the pid it names one process for ever
	RSS                         uint64 // bytes
	Comm                        string
}

// Alive reports whether the process can still do anything.
func (s Stat) Alive() bool { return s.State != 'Z' && s.State != 'X' && s.State != 'x' }

// ReadStat reads /proc/PID/stat.
func ReadStat(pid int) (Stat, error) {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return Stat{}, err
	}
	return ParseStat(b)
}

var errShortStat = errors.New("too few fields")

// ParseStat parses the text of /proc/PID/stat. The command stands in
// parentheses and may hold blanks and parentheses itself, so the last closing
// one ends it.
func ParseStat(b []byte) (Stat, error) {
	var s Stat
	open, end := bytes.IndexByte(b, '('), bytes.LastIndexByte(b, ')')
	if open < 1 || end < open {
		return s, fmt.Errorf("read process stat %q: no command in parentheses", b)
	}
	pid, err := strconv.Atoi(string(bytes.TrimSpace(b[:open])))
	if err != nil {
		return s, fmt.Errorf("read process stat: %w", err)
	}
	s.PID, s.Comm = pid, string(b[open+1:end])
	rest := b[end+1:]
	// Field numbers are those of proc_pid_stat(5); the state is number 3.
	for field := 3; field <= 24; field++ {
		rest = bytes.TrimLeft(rest, " ")
		if len(rest) == 0 {
			return s, fmt.Errorf("read stat of process %d: %w", pid, errShortStat)
		}
		word := rest
		if i := bytes.IndexAny(rest, " \n"); i >= 0 {
			word, rest = rest[:i], rest[i+1:]
		} else {
			rest = nil
		}
		if field == 3 {
			s.State = word[0]
			continue
		}
		if field >= 8 && field <= 13 || field == 18 || field == 19 || field == 21 || field == 23 {
			continue
		}
		n, err := parseInt(word)
		if err != nil {
			return s, fmt.Errorf("read stat of process %d, field %d: %w", pid, field, err)
		}
		switch field {
		case 4:
			s.Parent = int(n)
		case 5:
			s.Group = int(n)
		case 6:
			s.Session = int(n)
		case 14, 15:
			s.CPU += time.Duration(n) * tick
		case 16, 17:
			s.ChildCPU += time.Duration(n) * tick
		case 20:
			s.Threads = int(n)
		case 22:
			s.Start = uint64(n)
		case 24:
			s.RSS = uint64(n) * uint64(os.Getpagesize())
		}
	}
	return s, nil
}

// parseInt is strconv.ParseInt without turning the bytes into a string.
func parseInt(b []byte) (int64, error) {
	var n int64
	digits := b
	if len(b) > 0 && b[0] == '-' {
		digits = b[1:]
	}
	if len(digits) == 0 || len(digits) > 18 {
		return strconv.ParseInt(string(b), 10, 64)
	}
	for _, c := range digits {
		if c < '0' || c > '9' {
			return strconv.ParseInt(string(b), 10, 64)
		}
		n = n*10 + int64(c-'0')
	}
	if len(digits) != len(b) {
		n = -n
	}
	return n, nil
}

// PIDs appends the numbers of all processes to list[:0].
func PIDs(list []int) ([]int, error) { return numbers("/proc", list[:0]) }

// Threads appends the numbers of a process's threads to list[:0].
func Threads(pid int, list []int) ([]int, error) {
	return numbers("/proc/"+strconv.Itoa(pid)+"/task", list[:0])
}

func numbers(dir string, list []int) ([]int, error) {
	d, err := os.Open(dir)
	if err != nil {
		return list, err
	}
	defer d.Close()
	for {
		names, err := d.Readdirnames(512)
		for _, name := range names {
			if n, err := strconv.Atoi(name); err == nil {
				list = append(list, n)
			}
		}
		if errors.Is(err, io.EOF) {
			return list, nil
		}
		if err != nil {
			return list, err
		}
	}
}

// Cmdline returns the words a process was started with, or what it has written
// over them.
func Cmdline(pid int) ([]string, error) {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/cmdline")
	if err != nil {
		return nil, err
	}
	text := strings.TrimRight(string(b), "\x00")
	if text == "" {
		return nil, nil
	}
	return strings.Split(text, "\x00"), nil
}

// Marked reports whether a process carries the mark.
func Marked(pid int, mark string) bool { return MarkOf(pid) == mark && mark != "" }

// MarkOf returns the mark a process carries; empty where it has none or may
// not be looked at.
func MarkOf(pid int) string {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/environ")
	if err != nil {
		return ""
	}
	for entry := range bytes.SplitSeq(b, []byte{0}) {
		if value, ok := bytes.CutPrefix(entry, []byte(MarkVariable+"=")); ok {
			return string(value)
		}
	}
	return ""
}

// Describe names a process for a person: its command line, cut short, or its
// command where it has none.
func Describe(pid int) string {
	words, err := Cmdline(pid)
	text := strings.Join(words, " ")
	if err != nil || strings.TrimSpace(text) == "" {
		s, err := ReadStat(pid)
		if err != nil {
			return "it has ended"
		}
		return s.Comm
	}
	text = strings.Map(func(r rune) rune {
		if r < ' ' {
			return ' '
		}
		return r
	}, strings.TrimSpace(text))
	if runes := []rune(text); len(runes) > 100 {
		text = string(runes[:99]) + "…"
	}
	return text
}

// BootID changes with every boot: pids and start times of another boot name
// nothing any more.
func BootID() (string, error) {
	b, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return "", fmt.Errorf("read the boot id: %w", err)
	}
	return strings.TrimSpace(string(b)), nil
}
