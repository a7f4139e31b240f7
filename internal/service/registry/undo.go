package registry

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"hakaru"
)

// Undo is how what was changed for a service that hakaru does not start is put
// back. It is on the medium before the change is begun, and goes when it is put
// back: as long as it is there, something may be changed. Its words and
// environment may hold passwords; records are the user's own (0600).
type Undo struct {
	Words    []string      `json:"words"` // everything expanded
	Dir      string        `json:"dir,omitempty"`
	Env      []string      `json:"env,omitempty"` // NAME=value: what the command needs of the environment at the time
	Set      []string      `json:"set,omitempty"` // names of those that the experiment sets
	Timeout  time.Duration `json:"timeout"`
	Restarts bool          `json:"restarts,omitempty"` // applying restarts the service, and so must undo
	Ready    hakaru.Ready  `json:"ready"`              // how the service answers when it is back
	Running  *Command      `json:"running,omitempty"`  // the command that was begun last
	Failed   string        `json:"failed,omitempty"`   // why undoing did not work the last time
	Tries    int           `json:"tries,omitempty"`    // how often it did not
	Ran      bool          `json:"ran,omitempty"`      // the command ended well, and only the right answer is missing
}

// Command is a command that was begun, so that one whose agent was killed can be
// waited for: it goes on without its agent.
type Command struct {
	What   string `json:"what"`            // "apply", "restart", "undo"
	PID    int    `json:"pid,omitempty"`   // noted after its start, leader of its session
	Start  uint64 `json:"start,omitempty"` // its start time
	Output string `json:"output"`          // the file that it writes to
}

// Undone says in a record that nothing of unit i is changed any more.
func (r *Record) Undone(i int) { r.Units[i].Undo = nil }

// Changed lists the units for which something is still to be put back.
func (r Record) Changed() []int {
	var list []int
	for i, u := range r.Units {
		if u.Undo != nil {
			list = append(list, i)
		}
	}
	return list
}

// ByHand is the command for a person who has to put back what hakaru could not.
func (u Undo) ByHand() string {
	quoted := make([]string, len(u.Words))
	for i, w := range u.Words {
		quoted[i] = ShellWord(w)
	}
	text := strings.Join(quoted, " ")
	if u.Dir != "" {
		text = "cd " + ShellWord(u.Dir) + " && " + text
	}
	return text
}

// ShellWord quotes a word for a shell, where it needs that.
func ShellWord(word string) string {
	if word != "" && !strings.ContainsAny(word, " \t\n\"'`$&|;<>()*?[]#~=%!{}\\") {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// Path is the file of a record, for a person who has to remove it.
func (d Dir) Path(id string) string { return d.file(id) }

// Exclusive runs f while no other process does something exclusive in the
// directory. The lock is that of the open directory: it leaves no file, and is
// free again when this process ends, however it ends.
func Exclusive(ctx context.Context, stateDir string, f func() error) (err error) {
	dir, err := os.Open(stateDir)
	if err != nil {
		return fmt.Errorf("lock the registry: %w", err)
	}
	defer func() { err = errors.Join(err, dir.Close()) }()
	tick := time.NewTicker(10 * LookPause) // flock has no wake-up that ctx could end
	defer tick.Stop()
	for {
		err := unix.Flock(int(dir.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err == nil || errors.Is(err, unix.EBADF) || errors.Is(err, unix.ENOLCK) || errors.Is(err, unix.EOPNOTSUPP) {
			// A file system that cannot lock a directory (NFS, flock(2)) must not
			// keep things from being put back: undo is safe to run twice.
			return f()
		}
		if !errors.Is(err, unix.EWOULDBLOCK) && !errors.Is(err, unix.EINTR) {
			return fmt.Errorf("lock the registry %s: %w", stateDir, err)
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait for another hakaru that puts things back: %w", ctx.Err())
		case <-tick.C:
		}
	}
}

// Orphan is a record of a dead agent.
type Orphan struct {
	Record
	SameBoot bool // its processes may still be there
}

// Orphan reads a record and reports whether its agent is dead; a record that was
// taken away in between is nobody's.
func (d Dir) Orphan(name, boot string) (o Orphan, orphaned bool, err error) {
	if !strings.HasSuffix(name, ".json") {
		return o, false, nil
	}
	rec, err := d.Read(name)
	if errors.Is(err, os.ErrNotExist) {
		return o, false, nil
	}
	if err != nil {
		return o, false, err
	}
	o = Orphan{Record: rec, SameBoot: rec.Boot == boot}
	return o, !o.SameBoot || !rec.Owner.alive(), nil
}

// DurableDir is the directory for records that have something to put back: what
// was changed in files outlives a reboot, and so must the note of it, which
// DefaultDir may not. It is /var/lib/hakaru for root, else below XDG_STATE_HOME
// or ~/.local/state; where there is none of these, DefaultDir.
func DurableDir(getenv func(string) string, uid int) string {
	if uid == 0 {
		return "/var/lib/hakaru"
	}
	if dir := getenv("XDG_STATE_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "hakaru")
	}
	if home := getenv("HOME"); filepath.IsAbs(home) {
		return filepath.Join(home, ".local", "state", "hakaru")
	}
	return DefaultDir(getenv, uid)
}
