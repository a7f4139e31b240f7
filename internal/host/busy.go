package host

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
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
	// Every user of the machine must be able to take it, so the mode ignores
	// the umask; it holds no secret.
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o666)
	if err != nil {
		return nil, fmt.Errorf("open the lock: %w", err)
	}
	_ = file.Chmod(0o666) // not ours: whoever made it has done so
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
