package proof

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"hakaru"
	"hakaru/internal/watch/kernel"
)

// fileSize is what is read of a file at most.
const fileSize = 4 << 20

// startSlack is by how much a file may seem to be newer than a process that was
// started after it: a start is told in ticks of 10 ms, rounded down, and the
// clock of a file system lags by as much (CONFIG_HZ is 100 at least).
const startSlack = 20 * time.Millisecond

// Copied is why the file that hakaru wrote for a service that something else
// started shows nothing, whatever it holds.
const Copied = "only hakaru's copy is known, not whether the service reads what apply made of it"

// fileHolds looks into the files that were written for the unit, or at a path of
// the machine. A file shows a setting to be in force only if the process can
// have read it: it started after the file was last changed.
func fileHolds(_ context.Context, on Subject, ask hakaru.Ask) Evidence {
	wantedPath := on.Names.Expand(ask.Argument)
	inside := on.Dir != "" && strings.HasPrefix(filepath.Clean(wantedPath), filepath.Clean(on.Dir)+"/")
	if on.Attached && (!filepath.IsAbs(wantedPath) || inside) {
		return never(Copied+": {file: PATH} asks the file that it reads", "files written for the service")
	}
	var files []hakaru.File
	for _, f := range on.Files {
		if wantedPath == "" || f.Path == wantedPath || f.Path == filepath.Join(on.Dir, wantedPath) {
			files = append(files, f)
		}
	}
	written := len(files) > 0
	if !written && filepath.IsAbs(wantedPath) {
		files = []hakaru.File{{Path: wantedPath}}
	}
	if len(files) == 0 {
		return never("no such file was written", "files written for the service")
	}
	var names []string
	for _, f := range files {
		content, err := readFile(f.Path)
		source := "file " + f.Path
		if err != nil {
			return unreadable(source, err)
		}
		if written && content == f.Content {
			source += " as written"
		}
		found, there := matchText(content, ask)
		ok := there == hakaru.Yes
		if there == hakaru.NotProved {
			return told(found, source, there)
		}
		if ok && ask.Absent {
			return told(found, source, hakaru.No)
		}
		if ok || ask.Absent {
			if why, holds := readSince(on, f.Path); holds != hakaru.Yes {
				return Evidence{Found: why, Source: source, Holds: holds, lasts: true}
			}
		}
		if ok {
			return told(found, source, hakaru.Yes)
		}
		names = append(names, strings.TrimPrefix(source, "file "))
	}
	return told("not there", "file "+strings.Join(names, ", "), held(false, ask.Absent))
}

func readFile(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, fileSize+1))
	if err != nil {
		return "", err
	}
	if len(b) > fileSize {
		return "", fmt.Errorf("%s has more than %d bytes", path, fileSize)
	}
	return string(b), nil
}

// readSince tells whether the oldest daemon of the unit started after the file
// was last changed.
func readSince(on Subject, path string) (why string, holds hakaru.Held) {
	var st unix.Stat_t
	if err := unix.Stat(path, &st); err != nil {
		return fmt.Sprintf("look at %s: %v", path, err), hakaru.NotProved
	}
	c, err := castOf(on)
	if err != nil {
		return err.Error(), hakaru.NotProved
	}
	var starts []time.Time
	for _, pid := range c.daemons {
		if at, err := startOf(pid); err == nil {
			starts = append(starts, at)
		}
	}
	return matchAge(time.Unix(st.Mtim.Unix()), time.Unix(st.Ctim.Unix()), starts)
}

// startOf is when a process started, by the clock of now: where the clock was
// set since, it is off by as much.
func startOf(pid int) (time.Time, error) {
	st, err := kernel.ReadStat(pid)
	if err != nil {
		return time.Time{}, err
	}
	var since unix.Timespec // since boot, suspended time included, as the start is
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &since); err != nil {
		return time.Time{}, fmt.Errorf("read the clock of pid %s: %w", strconv.Itoa(pid), err)
	}
	boot := time.Now().Add(-time.Duration(since.Nano()))
	return boot.Add(time.Duration(st.Start) * (time.Second / 100)), nil
}

// matchAge compares when a file was written, and when anything of it (name,
// owner) was last changed, with the starts of the processes.
func matchAge(written, changed time.Time, starts []time.Time) (string, hakaru.Held) {
	if len(starts) == 0 {
		return "no process of the service is there", hakaru.NotProved
	}
	oldest, youngest := starts[0], starts[0]
	for _, s := range starts {
		if s.Before(oldest) {
			oldest = s
		}
		if s.After(youngest) {
			youngest = s
		}
	}
	layout := time.TimeOnly
	if written.Sub(oldest).Abs() < time.Second {
		layout = "15:04:05.000"
	}
	at := func(t time.Time) string { return t.Format(layout) }
	switch {
	case written.After(youngest.Add(startSlack)):
		return fmt.Sprintf("written at %s, the process is older (%s): the file is newer than the process", at(written), at(oldest)), hakaru.No
	case written.After(oldest.Add(startSlack)):
		// nginx and others read it again on a signal, and begin new workers.
		return fmt.Sprintf("written at %s; the main process is older (%s), others are younger: it may have been read again, or not", at(written), at(oldest)), hakaru.NotProved
	case changed.After(youngest.Add(startSlack)):
		return fmt.Sprintf("the process is older (%s) than the last change of its name or mode (%s): it may have been put there since", at(oldest), at(changed)), hakaru.NotProved
	}
	return "", hakaru.Yes
}
