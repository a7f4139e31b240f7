package store

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"syscall"

	"modernc.org/sqlite"
	lib "modernc.org/sqlite/lib"
)

var (
	// ErrNotFound says that no run, or no trial of a run, has that name.
	ErrNotFound = errors.New("not in the store")
	// ErrDuplicate says that a trial is stored already. A finished trial is never
	// replaced: a resumed run that meets this has lost count.
	ErrDuplicate = errors.New("this trial is stored already")
	// ErrNewer says that a newer hakaru wrote the store.
	ErrNewer = errors.New("the store is of a newer format")
	// ErrForeign says that the file is a database of another program.
	ErrForeign = errors.New("the file is the database of another program, not a store of hakaru")
)

// AmbiguousError says that the beginning of an id fits several runs.
type AmbiguousError struct {
	Prefix     string
	Candidates []string // ids, newest first
}

func (e *AmbiguousError) Error() string {
	return fmt.Sprintf("find run %s: several runs begin so: %s", e.Prefix, strings.Join(e.Candidates, ", "))
}

// Hint says what to do.
func (e *AmbiguousError) Hint() string { return "give more letters of the run's name" }

// Error is trouble with the file: what was being done to which file, and what
// may be done about it.
type Error struct {
	Doing  string // "open the store"
	Path   string
	Advice string // may be empty
	Err    error
}

func (e *Error) Error() string { return e.Doing + " " + e.Path + ": " + e.Err.Error() }
func (e *Error) Unwrap() error { return e.Err }

// Hint says what to do; empty where nothing is known.
func (e *Error) Hint() string { return e.Advice }

const (
	adviceFull    = "free space on that file system; what was stored before is intact and the run can be resumed"
	adviceAccess  = "make the file and its directory writable for this user, or choose another path for the store"
	adviceBusy    = "another process is writing to the store; try again when it has ended"
	adviceDamaged = "keep a copy and move it away, or choose another path for the store; `sqlite3 FILE .recover` saves what can be read"
	adviceDevice  = "look at the disk and its free space (dmesg, df), or choose another path for the store"
)

// explain wraps an error of SQLite or of the file system with the file and
// with what to do. An error that is explained already stays as it is.
func explain(doing, path string, err error) error {
	var known *Error
	if err == nil || errors.As(err, &known) {
		return err
	}
	e := &Error{Doing: doing, Path: path, Err: err}
	var sq *sqlite.Error
	switch {
	case errors.As(err, &sq):
		switch sq.Code() & 0xff { // the primary result code
		case lib.SQLITE_FULL:
			e.Advice = adviceFull
		case lib.SQLITE_BUSY, lib.SQLITE_LOCKED:
			e.Advice = adviceBusy
		case lib.SQLITE_CORRUPT, lib.SQLITE_NOTADB:
			e.Advice = adviceDamaged
		case lib.SQLITE_READONLY, lib.SQLITE_CANTOPEN, lib.SQLITE_PERM, lib.SQLITE_AUTH:
			e.Advice = adviceAccess
		case lib.SQLITE_IOERR:
			e.Advice = adviceDevice
		}
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		e.Advice = adviceFull
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EROFS), errors.Is(err, syscall.ENOTDIR), errors.Is(err, syscall.EISDIR):
		e.Advice = adviceAccess
	case errors.Is(err, syscall.EIO):
		e.Advice = adviceDevice
	}
	// An os error names its own path; once is enough.
	var pe *fs.PathError
	if errors.As(err, &pe) && pe.Path == path {
		e.Err = pe.Err
	}
	return e
}

// duplicate reports whether a UNIQUE or PRIMARY KEY refused a row.
func duplicate(err error) bool {
	var sq *sqlite.Error
	return errors.As(err, &sq) &&
		(sq.Code() == lib.SQLITE_CONSTRAINT_UNIQUE || sq.Code() == lib.SQLITE_CONSTRAINT_PRIMARYKEY)
}
