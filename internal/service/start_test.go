package service

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

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
