package service

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// A service that took the right to write from its own directories must not
// leave something that no later command can remove. (As root everything can.)
func TestRemovePrivateDir(t *testing.T) {
	top := t.TempDir()
	outside := filepath.Join(top, "outside")
	dir := filepath.Join(top, "hakaru-0123456789abcdef")
	for _, d := range []string{outside, filepath.Join(dir, "a", "b")} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(d, "file"), nil, 0o400); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(outside, filepath.Join(dir, "a", "link")); err != nil {
		t.Fatal(err)
	}
	for d, mode := range map[string]fs.FileMode{"a/b": 0, "a": 0o500} {
		if err := os.Chmod(filepath.Join(dir, d), mode); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(outside, 0o500); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.Chmod(outside, 0o700); err != nil {
			t.Error(err)
		}
	})
	if err := removePrivateDir(dir); err != nil {
		t.Error(err)
	}
	if _, err := os.Lstat(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("it is still there (%v)", err)
	}
	if info, err := os.Stat(outside); err != nil || info.Mode().Perm() != 0o500 {
		t.Errorf("what a link in it points to was changed: %v %v", info, err)
	}
	if _, err := os.Stat(filepath.Join(outside, "file")); err != nil {
		t.Error(err)
	}
}

// A full disk is no fault of the variant that meets it; a path that leads out of
// the private directory is.
func TestOfMachine(t *testing.T) {
	for err, want := range map[error]bool{
		fmt.Errorf("write file my.cnf: %w", &fs.PathError{Op: "write", Path: "my.cnf", Err: unix.ENOSPC}): true,
		fmt.Errorf("execute uwsgi: %w", &os.SyscallError{Syscall: "fork/exec", Err: unix.EAGAIN}):         true,
		fmt.Errorf("execute uwsgi: %w", &fs.PathError{Op: "fork/exec", Path: "uwsgi", Err: unix.ENOEXEC}): false,
		errors.New("write file ../my.cnf: its path must lie inside the private directory"):                false,
	} {
		if got := ofMachine(err); got != want {
			t.Errorf("%v: %v", err, got)
		}
	}
}
