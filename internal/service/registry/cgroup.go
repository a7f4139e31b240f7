package registry

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"hakaru/internal/watch/kernel"
)

// CgroupParent returns a writable directory in the version 2 hierarchy for the
// cgroups of stacks: below its root, or for an ordinary user below the cgroup
// this process is in, where that was delegated.
func CgroupParent() (string, error) {
	mount, own, err := kernel.CgroupRoot()
	if err != nil {
		return "", err
	}
	candidates := []string{filepath.Join(mount, "hakaru")}
	if own != "" && own != "/" {
		candidates = append(candidates, filepath.Join(mount, own, "hakaru"))
	}
	var errs []error
	for _, dir := range candidates {
		err := os.Mkdir(dir, 0o755)
		if err == nil || errors.Is(err, fs.ErrExist) {
			err = unix.Access(dir, unix.W_OK)
		}
		if err == nil {
			return dir, nil
		}
		errs = append(errs, fmt.Errorf("%s: %w", dir, err))
	}
	return "", errors.Join(errs...)
}

// MakeCgroup makes a unit's cgroup and those above it. Another agent that takes
// its last stack down may remove the shared one in between.
func MakeCgroup(dir string) error {
	var err error
	for range 10 {
		if err = os.MkdirAll(dir, 0o755); !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return err
}

// killCgroup ends every process in a cgroup at once, where the kernel can
// (5.14); a fork cannot get away from it.
func killCgroup(dir string) error {
	err := os.WriteFile(filepath.Join(dir, "cgroup.kill"), []byte("1"), 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // the cgroup is gone, or the kernel older: members are killed one by one
	}
	return err
}

// removeCgroup removes a cgroup and those a service has made below it.
func removeCgroup(dir string) error {
	var fsys unix.Statfs_t
	if err := unix.Statfs(dir, &fsys); errors.Is(err, unix.ENOENT) {
		return nil
	} else if err != nil || fsys.Type != unix.CGROUP2_SUPER_MAGIC {
		return fmt.Errorf("remove cgroup %s: it is no cgroup (%v)", dir, err)
	}
	var below []string
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			if errors.Is(err, fs.ErrNotExist) {
				return nil
			}
			return err
		}
		if d.IsDir() {
			below = append(below, path)
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("remove cgroup %s: %w", dir, err)
	}
	for _, path := range slices.Backward(below) {
		if err := removeEmptied(path); err != nil && !errors.Is(err, unix.ENOENT) {
			return fmt.Errorf("remove cgroup %s: %w", path, err)
		}
	}
	return nil
}

// removeEmptied removes a cgroup whose processes are dead. Some kernels count
// one until it has been reaped, which for orphans is another process's work.
func removeEmptied(path string) error {
	deadline := time.NewTimer(KillLimit)
	defer deadline.Stop()
	tick := time.NewTicker(LookPause)
	defer tick.Stop()
	for {
		err := unix.Rmdir(path)
		if !errors.Is(err, unix.EBUSY) {
			return err
		}
		select {
		case <-tick.C:
		case <-deadline.C:
			return err
		}
	}
}
