// Package registry keeps note of the stacks that are up on this machine, so that
// what an agent that was killed left behind can be found and ended.
//
// It takes Records, written to a directory of the user's before anything they
// name is there; Sweep ends the processes of dead agents' stacks by cgroup,
// mark, session and leased port, and removes cgroups, private directories and
// records. The same hands end and remove for a stack that is taken down well:
// EndGroup, Dir.RemoveTraces.
//
// It does not start a service, ask one to stop, or wait out its grace.
package registry

import (
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"hakaru/internal/watch/kernel"
)

// Format is that of the records this version writes and reads.
const Format = 1

// Owner names a process for ever: a pid is used again, a pid with its start
// time is not (within one boot).
type Owner struct {
	PID   int    `json:"pid"`
	Start uint64 `json:"start"` // ticks since boot, field 22 of /proc/PID/stat
}

// Self is this process as an Owner.
func Self() (Owner, error) {
	s, err := kernel.ReadStat(os.Getpid())
	if err != nil {
		return Owner{}, fmt.Errorf("read this process's start time: %w", err)
	}
	return Owner{PID: s.PID, Start: s.Start}, nil
}

// alive reports whether the owner still runs.
func (o Owner) alive() bool {
	s, err := kernel.ReadStat(o.PID)
	if err != nil {
		// That it cannot be read, though it is there, must not make it dead.
		return !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ESRCH)
	}
	return s.Start == o.Start && s.Alive()
}

// DefaultDir is the directory in which agents of a user keep note of what is
// up: /run/hakaru for root, else below XDG_RUNTIME_DIR, else below TMPDIR or
// /tmp.
func DefaultDir(getenv func(string) string, uid int) string {
	if uid == 0 {
		return "/run/hakaru"
	}
	if dir := getenv("XDG_RUNTIME_DIR"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "hakaru")
	}
	dir := getenv("TMPDIR")
	if !filepath.IsAbs(dir) {
		dir = "/tmp"
	}
	return filepath.Join(dir, fmt.Sprintf("hakaru-%d", uid))
}

// Record is the trail of one stack: enough to find and end all of it.
type Record struct {
	Format    int      `json:"format"`
	ID        string   `json:"id"`
	Owner     Owner    `json:"owner"`
	Boot      string   `json:"boot"`
	Run       string   `json:"run,omitempty"`
	Dir       string   `json:"dir"`                  // private directory
	CgroupDir string   `json:"cgroup_dir,omitempty"` // parent of the units' cgroups
	Ports     []uint16 `json:"ports,omitempty"`      // leased
	Units     []Unit   `json:"units"`
}

// Unit is the trail of one unit.
type Unit struct {
	Service string `json:"service"`
	Mark    string `json:"mark"`
	Cgroup  string `json:"cgroup,omitempty"`
	PID     int    `json:"pid,omitempty"` // main process, noted after its start
	Start   uint64 `json:"start,omitempty"`
	// Undo is set where something that hakaru did not start has been changed.
	Undo *Undo `json:"undo,omitempty"`
}

// Dir is the directory of records.
type Dir struct{ path string }

// Open makes the directory or checks that nobody else has made it: it may lie
// below /tmp.
func Open(dir string) (Dir, error) {
	if !filepath.IsAbs(dir) {
		return Dir{}, fmt.Errorf("use %q as state directory: it is not an absolute path", dir)
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return Dir{}, fmt.Errorf("make the state directory: %w", err)
	}
	err := os.Mkdir(dir, 0o700)
	if err == nil {
		err = syncDir(filepath.Dir(dir))
	}
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return Dir{}, fmt.Errorf("make the state directory: %w", err)
	}
	return Dir{dir}, checkOwn(dir)
}

// checkOwn refuses a state directory that is not this user's alone: what stands
// in it names processes to kill.
func checkOwn(dir string) error {
	if err := OwnDir(dir); err != nil {
		return fmt.Errorf("use state directory %s: %w", dir, err)
	}
	return nil
}

// OwnDir refuses a directory that is a link, someone else's, or writable by
// others. The error does not name it.
func OwnDir(dir string) error {
	info, err := os.Lstat(dir)
	if err != nil {
		return err
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok || !info.IsDir() || int(stat.Uid) != os.Geteuid() || info.Mode().Perm()&0o022 != 0 {
		return fmt.Errorf("it must be a directory that belongs to uid %d and that nobody else may write to (it is %s)", os.Geteuid(), info.Mode())
	}
	return nil
}

func (d Dir) file(id string) string { return filepath.Join(d.path, id+".json") }

// Write replaces a record as a whole. With sync it is on the medium before
// Write returns: what is started afterwards leaves a trail whatever happens.
func (d Dir) Write(rec Record, sync bool) error { return d.WriteAs(rec, rec.Owner, sync) }

// WriteAs is Write by another process than the record's owner.
func (d Dir) WriteAs(rec Record, writer Owner, sync bool) (err error) {
	// A file that was replaced and not synced can be empty after a power failure,
	// and then how to put something back would be lost with it.
	sync = sync || len(rec.Changed()) > 0
	b, err := json.MarshalIndent(rec, "", "  ")
	if err != nil {
		return fmt.Errorf("note stack %s: %w", rec.ID, err)
	}
	// The writer stands in the name, so that Sweep can tell a file that was
	// being written from one that was never finished.
	temporary := filepath.Join(d.path, fmt.Sprintf("%s-%d-%d.new", rec.ID, writer.PID, writer.Start))
	f, err := os.OpenFile(temporary, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return fmt.Errorf("note stack %s: %w", rec.ID, err)
	}
	_, err = f.Write(b)
	if err == nil && sync {
		err = f.Sync()
	}
	err = errors.Join(err, f.Close())
	if err == nil {
		err = os.Rename(temporary, d.file(rec.ID))
	}
	if err != nil {
		return errors.Join(fmt.Errorf("note stack %s: %w", rec.ID, err), os.Remove(temporary))
	}
	if !sync {
		return nil
	}
	if err := syncDir(d.path); err != nil {
		return fmt.Errorf("note stack %s: %w", rec.ID, err)
	}
	return nil
}

// syncDir puts the names in a directory on the medium.
func syncDir(path string) error {
	dir, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}

func (d Dir) remove(id string) error {
	if err := os.Remove(d.file(id)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove the note of stack %s: %w", id, err)
	}
	return nil
}

// Read parses a record and refuses one that names what no stack has.
func (d Dir) Read(name string) (Record, error) {
	var rec Record
	path := filepath.Join(d.path, name)
	b, err := os.ReadFile(path)
	if err != nil {
		return rec, err
	}
	if err := json.Unmarshal(b, &rec); err != nil {
		return rec, fmt.Errorf("read note %s (remove it when nothing of its stack is left): %w", path, err)
	}
	if rec.Format != Format {
		return rec, fmt.Errorf("read note %s: it has format %d, this version knows %d", path, rec.Format, Format)
	}
	if !validID(rec.ID) || rec.ID != strings.TrimSuffix(name, ".json") ||
		filepath.Base(rec.Dir) != "hakaru-"+rec.ID || !filepath.IsAbs(rec.Dir) ||
		rec.CgroupDir != "" && !strings.HasSuffix(filepath.Clean(rec.CgroupDir), "/hakaru/"+rec.ID) {
		return rec, fmt.Errorf("read note %s: it does not describe a stack", path)
	}
	for _, u := range rec.Units {
		if u.Cgroup != "" && filepath.Dir(u.Cgroup) != rec.CgroupDir {
			return rec, fmt.Errorf("read note %s: cgroup %s is outside of %s", path, u.Cgroup, rec.CgroupDir)
		}
	}
	return rec, nil
}

// validID reports whether an ID is one of NewID's: directories with it in their
// name are removed.
func validID(id string) bool {
	b, err := hex.DecodeString(id)
	return err == nil && len(b) == 8
}

// NewID makes a name that no other stack has.
func NewID() (string, error) {
	var b [8]byte
	if _, err := rand.Read(b[:]); err != nil {
		return "", err
	}
	return hex.EncodeToString(b[:]), nil
}
