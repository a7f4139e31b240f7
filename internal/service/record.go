package service

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

const recordFormat = 1

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

// record is the trail of one stack: enough to find and end all of it.
type record struct {
	Format    int          `json:"format"`
	ID        string       `json:"id"`
	Owner     Owner        `json:"owner"`
	Boot      string       `json:"boot"`
	Run       string       `json:"run,omitempty"`
	Dir       string       `json:"dir"`                  // private directory
	CgroupDir string       `json:"cgroup_dir,omitempty"` // parent of the units' cgroups
	Ports     []uint16     `json:"ports,omitempty"`      // leased
	Units     []unitRecord `json:"units"`
}

type unitRecord struct {
	Service string `json:"service"`
	Mark    string `json:"mark"`
	Cgroup  string `json:"cgroup,omitempty"`
	PID     int    `json:"pid,omitempty"` // main process, noted after its start
	Start   uint64 `json:"start,omitempty"`
}

// registry is the directory of records.
type registry struct{ dir string }

// openRegistry makes the directory or checks that nobody else has made it: it
// may lie below /tmp.
func openRegistry(dir string) (registry, error) {
	if !filepath.IsAbs(dir) {
		return registry{}, fmt.Errorf("use %q as state directory: it is not an absolute path", dir)
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return registry{}, fmt.Errorf("make the state directory: %w", err)
	}
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return registry{}, fmt.Errorf("make the state directory: %w", err)
	}
	return registry{dir}, checkOwn(dir)
}

// checkOwn refuses a directory that is a link, someone else's, or writable by
// others: what stands in it names processes to kill.
func checkOwn(dir string) error {
	info, err := os.Lstat(dir)
	if err != nil {
		return fmt.Errorf("look at the state directory: %w", err)
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok || !info.IsDir() || int(stat.Uid) != os.Geteuid() || info.Mode().Perm()&0o022 != 0 {
		return fmt.Errorf("use state directory %s: it must be a directory that belongs to uid %d and that nobody else may write to (it is %s)",
			dir, os.Geteuid(), info.Mode())
	}
	return nil
}

func (r registry) path(id string) string { return filepath.Join(r.dir, id+".json") }

// write replaces a record as a whole. With sync it is on the medium before
// write returns: what is started afterwards leaves a trail whatever happens.
func (r registry) write(rec record, sync bool) (err error) {
	b, err := json.MarshalIndent(rec, "", "  ")
	if err != nil {
		return fmt.Errorf("note stack %s: %w", rec.ID, err)
	}
	// The owner stands in the name, so that Sweep can tell a file that was
	// being written from one that was never finished.
	temporary := filepath.Join(r.dir, fmt.Sprintf("%s-%d-%d.new", rec.ID, rec.Owner.PID, rec.Owner.Start))
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
		err = os.Rename(temporary, r.path(rec.ID))
	}
	if err != nil {
		return errors.Join(fmt.Errorf("note stack %s: %w", rec.ID, err), os.Remove(temporary))
	}
	if !sync {
		return nil
	}
	d, err := os.Open(r.dir)
	if err != nil {
		return fmt.Errorf("note stack %s: %w", rec.ID, err)
	}
	if err := errors.Join(d.Sync(), d.Close()); err != nil {
		return fmt.Errorf("note stack %s: %w", rec.ID, err)
	}
	return nil
}

func (r registry) remove(id string) error {
	if err := os.Remove(r.path(id)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove the note of stack %s: %w", id, err)
	}
	return nil
}

// read parses a record and refuses one that names what no stack has.
func (r registry) read(name string) (record, error) {
	var rec record
	path := filepath.Join(r.dir, name)
	b, err := os.ReadFile(path)
	if err != nil {
		return rec, err
	}
	if err := json.Unmarshal(b, &rec); err != nil {
		return rec, fmt.Errorf("read note %s (remove it when nothing of its stack is left): %w", path, err)
	}
	if rec.Format != recordFormat {
		return rec, fmt.Errorf("read note %s: it has format %d, this version knows %d", path, rec.Format, recordFormat)
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

// validID reports whether an ID is one of newID's: directories with it in their
// name are removed.
func validID(id string) bool {
	b, err := hex.DecodeString(id)
	return err == nil && len(b) == 8
}

func newID() (string, error) {
	var b [8]byte
	if _, err := rand.Read(b[:]); err != nil {
		return "", err
	}
	return hex.EncodeToString(b[:]), nil
}
