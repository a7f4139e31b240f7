package registry

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"hakaru/internal/watch/kernel"
)

const (
	// KillLimit is how long killed processes may take to be gone.
	KillLimit = 5 * time.Second
	// LookPause lies between two looks at whether they are.
	LookPause = 10 * time.Millisecond
)

// EndGroup kills every member until there is none, since a process that forks
// can be ahead of a list.
func EndGroup(g kernel.Group, limit time.Duration) error {
	deadline := time.NewTimer(limit)
	defer deadline.Stop()
	tick := time.NewTicker(LookPause)
	defer tick.Stop()
	var killErr error
	finder := kernel.Finder{Group: g, Thorough: true}
	for {
		members, err := finder.Find()
		if err == nil && len(members) == 0 {
			return nil
		}
		if g.Cgroup != "" {
			killErr = killCgroup(g.Cgroup)
		}
		for _, pid := range members {
			if e := unix.Kill(pid, unix.SIGKILL); e != nil && !errors.Is(e, unix.ESRCH) {
				killErr = fmt.Errorf("kill pid %d: %w", pid, e)
			}
		}
		select {
		case <-tick.C:
		case <-deadline.C:
			if err != nil {
				return errors.Join(err, killErr)
			}
			return errors.Join(fmt.Errorf("%s still there", DescribeAll(members)), killErr)
		}
	}
}

// DescribeAll names processes to a person, the first few of them.
func DescribeAll(pids []int) string {
	const shown = 3
	var parts []string
	for _, pid := range pids[:min(len(pids), shown)] {
		parts = append(parts, fmt.Sprintf("pid %d (%s)", pid, kernel.Describe(pid)))
	}
	if more := len(pids) - shown; more > 0 {
		parts = append(parts, fmt.Sprintf("%d more", more))
	}
	return strings.Join(parts, ", ")
}

// RemoveTraces removes cgroups, the private directory and, last, the record: as
// long as anything is there, the record is. Where something is still to be put
// back, the record stays, and the private directory with the files for it.
func (d Dir) RemoveTraces(rec Record) error {
	var errs []error
	if rec.CgroupDir != "" {
		errs = append(errs, removeCgroup(rec.CgroupDir))
		// The directory above goes with its last stack; others may be in it.
		_ = unix.Rmdir(filepath.Dir(rec.CgroupDir))
	}
	if len(rec.Changed()) > 0 {
		return errors.Join(errs...)
	}
	if err := removePrivateDir(rec.Dir); err != nil {
		errs = append(errs, fmt.Errorf("remove the private directory: %w", err))
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	return d.remove(rec.ID)
}

// removePrivateDir removes a directory and, where a service took the right to
// write from directories of its own in it, gives that back first. It goes
// through os.Root: no link leads out of it, and none is followed to it, since its
// user may have put one in its place.
func removePrivateDir(dir string) error {
	err := os.RemoveAll(dir)
	if !errors.Is(err, fs.ErrPermission) {
		return err
	}
	root, rootErr := openDir(dir)
	if rootErr != nil {
		return errors.Join(err, rootErr)
	}
	defer root.Close() // read only: nothing is lost
	walkErr := fs.WalkDir(root.FS(), ".", func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			return root.Chmod(path, 0o700) // before it is listed
		}
		return err
	})
	if err := os.RemoveAll(dir); err != nil {
		return errors.Join(err, walkErr)
	}
	return nil
}

// openDir opens a directory that is not reached by a link.
func openDir(dir string) (*os.Root, error) {
	there, err := os.Lstat(dir)
	if err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	// What was looked at may have been replaced before it was opened.
	opened, err := root.Stat(".")
	if err == nil && (!there.IsDir() || !os.SameFile(there, opened)) {
		err = fmt.Errorf("%s is a link, or was replaced by one", dir)
	}
	if err != nil {
		return nil, errors.Join(err, root.Close())
	}
	return root, nil
}
