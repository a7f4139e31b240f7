package checkout

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"hakaru"
	"hakaru/internal/service/registry"
)

// The cache has for each version a directory KEY with
//
//	src/NAME      the checkout, by the name of the working tree's directory
//	build.log     what the build wrote
//	about.json    written last: without it, the version is not finished
//
// and beside it KEY.lock: held exclusively by who makes or removes the version,
// shared by agents that may have something of it running.
const (
	aboutFile  = "about.json"
	logFile    = "build.log"
	sourceDir  = "src"
	lockSuffix = ".lock"
	lockPause  = 100 * time.Millisecond
)

// about is what is noted of a finished version. Its time of change is when it
// was last used.
type about struct {
	Format     int              `json:"format"`
	Repository string           `json:"repository"`
	Commit     string           `json:"commit"`
	Build      []string         `json:"build,omitempty"`
	Tree       string           `json:"tree"` // name of the directory below src
	Warnings   []hakaru.Warning `json:"warnings,omitempty"`
}

const aboutFormat = 1

// openCache makes the directory or checks that it is ours: programs are started
// from it. Others may pass through where services can run as others.
func openCache(dir string) error {
	if !filepath.IsAbs(dir) {
		return fmt.Errorf("keep versions in %q: it is not an absolute path", dir)
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return fmt.Errorf("make the directory of versions: %w", err)
	}
	mode := fs.FileMode(0o700)
	if os.Geteuid() == 0 {
		mode = 0o711
	}
	err := os.Mkdir(dir, mode)
	if err == nil {
		err = os.Chmod(dir, mode) // whatever the umask
	}
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("make the directory of versions: %w", err)
	}
	if err := registry.OwnDir(dir); err != nil {
		return fmt.Errorf("keep versions in %s: %w; HAKARU_CACHE names another", dir, err)
	}
	return nil
}

// lockVersion takes a version's lock, or nil where another has it.
func (v *Versions) lockVersion(key string, how int) (*os.File, error) {
	path := filepath.Join(v.opt.Dir, key+lockSuffix)
	fail := func(err error) (*os.File, error) { return nil, fmt.Errorf("lock version %s: %w", path, err) }
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return fail(err)
	}
	err = unix.Flock(int(f.Fd()), how|unix.LOCK_NB)
	if err == nil {
		// It may have been removed, with its version, in between.
		opened, openErr := f.Stat()
		there, err := os.Stat(path)
		if openErr == nil && err == nil && os.SameFile(opened, there) {
			return f, nil
		}
	}
	if closeErr := f.Close(); closeErr != nil {
		return fail(closeErr)
	}
	if err != nil && !errors.Is(err, unix.EWOULDBLOCK) {
		return fail(err)
	}
	return nil, nil
}

// readAbout returns the note of a finished version; nil where it is not.
func (v *Versions) readAbout(key string) (*about, error) {
	path := filepath.Join(v.opt.Dir, key, aboutFile)
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read about a version: %w", err)
	}
	var a about
	if json.Unmarshal(b, &a) != nil || a.Format != aboutFormat || filepath.Base(a.Tree) != a.Tree {
		return nil, nil // it is made again
	}
	if info, err := os.Stat(filepath.Join(v.opt.Dir, key, sourceDir, a.Tree)); err != nil || !info.IsDir() {
		return nil, nil
	}
	return &a, nil
}

// finish notes that a version is whole.
func (v *Versions) finish(key string, a about) (err error) {
	dir := filepath.Join(v.opt.Dir, key)
	if err := settle(dir); err != nil {
		return fmt.Errorf("write version %s to its medium: %w", dir, err)
	}
	b, err := json.MarshalIndent(a, "", "  ")
	if err != nil {
		return fmt.Errorf("note that version %s is finished: %w", dir, err)
	}
	unfinished := filepath.Join(dir, aboutFile+".new")
	if err = os.WriteFile(unfinished, b, 0o600); err == nil {
		err = os.Rename(unfinished, filepath.Join(dir, aboutFile))
	}
	if err != nil {
		return fmt.Errorf("note that version %s is finished: %w", dir, err)
	}
	return nil
}

// prune removes the versions that were used longest ago, but for those that are
// in use and the newest.
func (v *Versions) prune() error {
	entries, err := os.ReadDir(v.opt.Dir)
	if err != nil {
		return fmt.Errorf("look for old versions: %w", err)
	}
	type kept struct {
		key  string
		used time.Time
	}
	var all []kept
	for _, e := range entries {
		if !e.IsDir() || len(e.Name()) != keyLength {
			continue
		}
		info, err := os.Stat(filepath.Join(v.opt.Dir, e.Name(), aboutFile))
		if err != nil { // never finished, or its build failed
			if info, err = e.Info(); err != nil {
				continue
			}
		}
		all = append(all, kept{e.Name(), info.ModTime()})
	}
	slices.SortFunc(all, func(a, b kept) int { return cmp.Or(b.used.Compare(a.used), strings.Compare(a.key, b.key)) })
	var errs []error
	for _, old := range all[min(len(all), v.opt.Keep):] {
		lock, err := v.lockVersion(old.key, unix.LOCK_EX)
		if err != nil || lock == nil {
			errs = append(errs, err)
			continue
		}
		dir := filepath.Join(v.opt.Dir, old.key)
		// The note goes first: a removal that is cut off leaves no version that
		// seems whole.
		if err := os.Remove(filepath.Join(dir, aboutFile)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
		errs = append(errs, removeTree(dir), os.Remove(lock.Name()), lock.Close())
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("remove old versions: %w", err)
	}
	return nil
}
