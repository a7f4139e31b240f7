package host

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"hakaru/internal/link"
)

// BusyError says that another run has the machine.
type BusyError struct{ Holder Holder }

func (e *BusyError) Error() string {
	if e.Holder.PID == 0 {
		return "another hakaru has this machine"
	}
	return fmt.Sprintf("this machine is taken by %s (pid %d, since %s): two runs at once would measure each other",
		e.Holder.What, e.Holder.PID, e.Holder.Since.Format("15:04:05"))
}

const codeBusy = "busy"

// LinkError lets the holder cross a link.
func (e *BusyError) LinkError() link.Error {
	raw, err := json.Marshal(e.Holder)
	if err != nil { // a Holder always encodes
		raw = nil
	}
	return link.Error{Code: codeBusy, Hint: "wait for it to end, or let hakaru wait: --wait", Output: string(raw)}
}

// takeLock takes the machine's lock file, waiting for it if asked to. The lock
// belongs to the open file: it is free again when this process ends, however it
// ends. The holder's name inside is for people, and only read while it is held.
func takeLock(ctx context.Context, path string, ask LockAsk) (*os.File, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, fmt.Errorf("make the directory of the lock: %w", err)
	}
	file, err := openLock(path)
	if err != nil {
		return nil, fmt.Errorf("open the lock: %w", err)
	}
	for {
		err := unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err == nil {
			break
		}
		if !errors.Is(err, unix.EWOULDBLOCK) {
			file.Close()
			return nil, fmt.Errorf("lock %s: %w", path, err)
		}
		if !ask.Wait {
			defer file.Close()
			return nil, &BusyError{Holder: readHolder(file)}
		}
		select {
		case <-ctx.Done():
			file.Close()
			return nil, ctx.Err()
		case <-time.After(200 * time.Millisecond): // flock has no wake-up that ctx could end
		}
	}
	raw, err := json.Marshal(ask.Holder)
	if err == nil {
		if err = file.Truncate(0); err == nil {
			_, err = file.WriteAt(raw, 0)
		}
	}
	if err != nil {
		file.Close()
		return nil, fmt.Errorf("write the holder into %s: %w", path, err)
	}
	return file, nil
}

// openLock opens the lock file, which any user may have made: it lies where all
// may write (/run/lock, /tmp), so it can be anything. A link is not followed,
// and only a file without other names is written to. It is not opened with
// O_CREATE where it is there: the kernel refuses that for another user's file in
// such a directory, even to root (fs.protected_regular).
func openLock(path string) (*os.File, error) {
	const flags = os.O_RDWR | unix.O_NOFOLLOW | unix.O_NONBLOCK
	for {
		file, err := os.OpenFile(path, flags, 0)
		if errors.Is(err, fs.ErrNotExist) {
			file, err = os.OpenFile(path, flags|os.O_CREATE|os.O_EXCL, 0o666)
			if errors.Is(err, fs.ErrExist) {
				continue // someone made it in between
			}
			if err == nil {
				// Every user of the machine must be able to take it, so the mode
				// ignores the umask; it holds no secret.
				err = file.Chmod(0o666)
			}
		}
		if errors.Is(err, unix.ELOOP) {
			return nil, fmt.Errorf("%s is a symbolic link", path)
		}
		if err != nil {
			return nil, errors.Join(err, closeIfOpen(file))
		}
		info, err := file.Stat()
		if err == nil {
			stat, ok := info.Sys().(*syscall.Stat_t)
			if !info.Mode().IsRegular() || !ok || stat.Nlink > 1 {
				err = fmt.Errorf("%s is not a file of its own (%s)", path, info.Mode())
			}
		}
		if err != nil {
			return nil, errors.Join(err, file.Close())
		}
		return file, nil
	}
}

func closeIfOpen(file *os.File) error {
	if file == nil {
		return nil
	}
	return file.Close()
}

// readHolder reads who has the lock; a half-written file names nobody.
func readHolder(file *os.File) Holder {
	var h Holder
	raw := make([]byte, 4096)
	n, _ := file.ReadAt(raw, 0)
	if json.Unmarshal(raw[:n], &h) != nil {
		return Holder{}
	}
	return h
}
