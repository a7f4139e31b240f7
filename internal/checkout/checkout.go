// Package checkout makes what a service runs from: a commit of the person's
// repository, checked out outside the working tree and built once, or the
// working tree itself, built where that is asked for.
//
// It takes a directory, a commit and the words of a build command; it gives the
// directory that corresponds to it in the version, and the commit for the
// record. Finished versions are kept in a cache that several agents share. The
// repository is read only: no reference, no worktree, no index of it changes,
// nothing is fetched and none of its hooks runs.
//
// It does not choose versions, start services, or say whether a trial counts.
package checkout

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"hakaru"
)

// keep is how many versions stay in the cache.
const keep = 20

// Options is what an agent knows and an Ask does not.
type Options struct {
	Dir     string        // of the cache, absolute
	Environ []string      // the agent's environment, which builds inherit but for HAKARU_…
	Limit   time.Duration // of one build; BuildLimit where 0
	Grace   time.Duration // of a build that is to end, before it is killed; 2 s where 0
	Keep    int           // versions in the cache; 20 where 0
}

// Ask is what a service is to run from.
type Ask struct {
	Service  string
	Dir      string   // where it runs, in the working tree
	Revision string   // a commit, by its whole name; WorkingTree, or empty: what is in Dir
	Build    []string // words of the command that makes its program; none: nothing to make
	Mark     string   // by which processes of the build are found, should this one die
	// User is whom the service runs as, who has to be able to read it; nil: as
	// this process.
	User *syscall.Credential
}

// Version is what a service can run from.
type Version struct {
	Dir      string // to run in
	Commit   string // for the record; empty where the ask names no revision
	Warnings []hakaru.Warning
}

// Versions makes versions for the life of an agent, one at a time. Close it.
type Versions struct {
	opt  Options
	turn chan struct{} // holds one token: who has it may touch what follows

	failed map[string]*BuildError // what was tried and failed, by key: it is not tried again
	held   map[string]*os.File    // shared locks of versions that were given out
	built  map[string]string      // by service and directory of a working tree: the words it was built by last
	seen   map[string]State       // of working trees, when they were first given out
}

// New returns a maker of versions. It touches nothing until it is asked.
func New(opt Options) *Versions {
	if opt.Limit == 0 {
		opt.Limit = BuildLimit
	}
	if opt.Grace == 0 {
		opt.Grace = buildGrace
	}
	if opt.Keep == 0 {
		opt.Keep = keep
	}
	v := &Versions{opt: opt, turn: make(chan struct{}, 1), failed: map[string]*BuildError{}, held: map[string]*os.File{}, built: map[string]string{}, seen: map[string]State{}}
	v.turn <- struct{}{}
	return v
}

// Close gives back what was given out: other agents may remove it then.
func (v *Versions) Close() error {
	<-v.turn
	defer func() { v.turn <- struct{}{} }()
	var errs []error
	for key, lock := range v.held {
		errs = append(errs, lock.Close())
		delete(v.held, key)
	}
	return errors.Join(errs...)
}

// Make returns the version that is asked for, and makes it before where it is
// not there. A *BuildError says that it cannot be made, now and later.
func (v *Versions) Make(ctx context.Context, ask Ask) (Version, error) {
	select {
	case <-v.turn:
		defer func() { v.turn <- struct{}{} }()
	case <-ctx.Done():
		return Version{}, context.Cause(ctx)
	}
	if err := openCache(v.opt.Dir); err != nil {
		return Version{}, err
	}
	if ask.Revision == "" || ask.Revision == WorkingTree {
		return v.workingTree(ctx, ask)
	}
	repo, err := Open(ctx, ask.Dir, v.opt.Environ)
	if err != nil {
		return Version{}, err
	}
	key := v.key(ask, repo.common, repo.Inside)
	if failed := v.failed[key]; failed != nil {
		return Version{}, failed
	}
	a, err := v.hold(ctx, key, ask, repo)
	if err != nil {
		var build *BuildError
		if errors.As(err, &build) {
			v.failed[key] = build
		}
		return Version{}, err
	}
	dir := filepath.Join(v.opt.Dir, key, sourceDir, a.Tree, repo.Inside)
	if err := v.lacking(ask, repo, dir); err != nil {
		return Version{}, err
	}
	return Version{Dir: dir, Commit: ask.Revision, Warnings: a.Warnings}, nil
}

// lacking is the error where a version has no directory to run in.
func (v *Versions) lacking(ask Ask, repo *Repository, dir string) error {
	if info, err := os.Stat(dir); err == nil && info.IsDir() {
		return nil
	}
	return &BuildError{
		Why:  fmt.Sprintf("the directory %s is not in version %.12s", repo.Inside, ask.Revision),
		Help: "the service runs in the directory of the experiment file; dir: names another, such as .. for the one above, which every version has",
	}
}

// hold returns a finished version with its shared lock held, and makes it where
// it is not there. While another agent makes or removes it, it waits.
func (v *Versions) hold(ctx context.Context, key string, ask Ask, repo *Repository) (*about, error) {
	tick := time.NewTicker(lockPause) // flock has no wake-up that ctx could end
	defer tick.Stop()
	for {
		a, err := v.readAbout(key)
		if err != nil {
			return nil, err
		}
		if a != nil && v.held[key] != nil {
			return a, nil
		}
		if v.held[key] != nil { // it was removed by hand
			if err := v.held[key].Close(); err != nil {
				return nil, fmt.Errorf("give back version %s: %w", key, err)
			}
			delete(v.held, key)
		}
		// Either way it is looked at again with the lock held: another agent may
		// have been quicker.
		taken := false
		if a != nil {
			taken, err = v.share(key)
		} else {
			taken, err = v.createLocked(ctx, key, ask, repo)
		}
		if err != nil {
			return nil, err
		}
		if taken {
			continue
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("wait for another agent with version %s: %w", key, context.Cause(ctx))
		case <-tick.C:
		}
	}
}

// share takes the lock of a finished version for the life of the agent; false
// where another has it for itself.
func (v *Versions) share(key string) (bool, error) {
	lock, err := v.lockVersion(key, unix.LOCK_SH)
	if err != nil || lock == nil {
		return false, err
	}
	v.held[key] = lock
	now := time.Now()
	if err := os.Chtimes(filepath.Join(v.opt.Dir, key, aboutFile), now, now); err != nil && !errors.Is(err, os.ErrNotExist) {
		return false, fmt.Errorf("note that version %s is used: %w", key, err)
	}
	return true, nil
}

// createLocked makes a version with its lock held; false where another has it.
func (v *Versions) createLocked(ctx context.Context, key string, ask Ask, repo *Repository) (bool, error) {
	lock, err := v.lockVersion(key, unix.LOCK_EX)
	if err != nil || lock == nil {
		return false, err
	}
	a, err := v.readAbout(key)
	if err == nil && a == nil {
		err = v.create(ctx, key, ask, repo)
	}
	if err = errors.Join(err, lock.Close()); err != nil {
		return false, err
	}
	return true, v.prune()
}

// create checks a version out and builds it. Its lock is held.
func (v *Versions) create(ctx context.Context, key string, ask Ask, repo *Repository) error {
	dir := filepath.Join(v.opt.Dir, key)
	if err := removeTree(dir); err != nil {
		return fmt.Errorf("remove an unfinished version: %w", err)
	}
	// Every user may read it who may read the working tree: services give up
	// root's rights by themselves. Otherwise it is for its user alone, and until
	// that one has it for nobody.
	mode := os.FileMode(0o700)
	if ask.User == nil && os.Geteuid() == 0 && readableByAll(repo.Top) {
		mode = passable
	}
	tree := filepath.Join(dir, sourceDir, filepath.Base(repo.Top))
	for _, d := range []string{dir, filepath.Dir(tree)} {
		if err := os.Mkdir(d, mode); err != nil {
			return fmt.Errorf("make the directory of a version: %w", err)
		}
		if err := os.Chmod(d, mode); err != nil {
			return fmt.Errorf("make the directory of a version: %w", err)
		}
	}
	err := v.fill(ctx, tree, filepath.Join(dir, logFile), ask, repo)
	if err == nil && ask.User != nil {
		err = handOver(dir, tree, ask.User)
	}
	if err != nil { // the output of the build stays
		return errors.Join(err, removeTree(filepath.Dir(tree)))
	}
	warnings, err := repo.notes(ctx, ask.Revision)
	if err != nil {
		return err
	}
	return v.finish(key, about{
		Format: aboutFormat, Repository: repo.Top, Commit: ask.Revision, Build: ask.Build,
		Tree: filepath.Base(tree), Warnings: warnings,
	})
}

// fill makes the content of a version.
func (v *Versions) fill(ctx context.Context, tree, log string, ask Ask, repo *Repository) error {
	if _, err := repo.Resolve(ctx, ask.Revision); err != nil {
		return err
	}
	if err := repo.checkOut(ctx, ask.Revision, tree); err != nil {
		return err
	}
	if len(ask.Build) == 0 {
		return nil
	}
	dir := filepath.Join(tree, repo.Inside)
	if err := v.lacking(ask, repo, dir); err != nil {
		return err
	}
	return v.build(ctx, ask, dir, log)
}

// passable is the mode of directories on the way to what others may use.
const passable = 0o711

// handOver gives the tree of a version to the user that the service runs as, and
// to no other, and opens the way to it, from the version's directory on.
func handOver(version, tree string, to *syscall.Credential) error {
	if err := give(tree, to); err != nil {
		return err
	}
	if err := os.Chmod(tree, 0o700); err != nil {
		return fmt.Errorf("close the version to others: %w", err)
	}
	for _, d := range []string{filepath.Dir(tree), version} {
		if err := os.Chmod(d, passable); err != nil {
			return fmt.Errorf("open the way to the version: %w", err)
		}
	}
	if shut := reachable(tree, to); shut != "" {
		return fmt.Errorf("let uid %d read its version: it may not pass through %s; HAKARU_CACHE names another place for versions", to.Uid, shut)
	}
	return nil
}

// workingTree builds in place, where the words are not those of the last time.
func (v *Versions) workingTree(ctx context.Context, ask Ask) (Version, error) {
	out := Version{Dir: ask.Dir}
	var repo *Repository
	// Looked at before the build, which may leave its products beside the sources.
	if ask.Revision == WorkingTree {
		var err error
		if repo, err = Open(ctx, ask.Dir, v.opt.Environ); err != nil {
			return Version{}, err
		}
		now, err := repo.State(ctx)
		if err != nil {
			return Version{}, err
		}
		first, again := v.seen[repo.Top]
		switch {
		case !again:
			v.seen[repo.Top] = now
			out.Commit = now.Name()
		case first.print == now.print:
			out.Commit = first.Name()
		default:
			out.Commit = now.Name()
			out.Warnings = append(out.Warnings, hakaru.Warning{Code: treeChanged, Message: fmt.Sprintf(
				"the working tree %s is not what it was when the run began: trials of %q may be of different programs", repo.Top, WorkingTree)})
		}
	}
	if len(ask.Build) == 0 {
		return out, nil
	}
	words := strings.Join(ask.Build, "\x00")
	place := ask.Service + "\x00" + ask.Dir
	key := v.key(ask, ask.Dir, ".")
	if failed := v.failed[key]; failed != nil {
		return Version{}, failed
	}
	if last, done := v.built[place]; done && last == words {
		return out, nil
	}
	delete(v.built, place) // a build that fails may have left neither
	dir := filepath.Join(v.opt.Dir, key)
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, os.ErrExist) {
		return Version{}, fmt.Errorf("make a directory for the build's output: %w", err)
	}
	err := v.build(ctx, ask, ask.Dir, filepath.Join(dir, logFile))
	if err == nil {
		err = settle(ask.Dir)
	}
	var failed *BuildError
	if errors.As(err, &failed) {
		v.failed[key] = failed
	}
	if err != nil {
		return Version{}, err
	}
	v.built[place] = words
	if repo != nil { // a build may write files that git knows
		after, err := repo.State(ctx)
		if err != nil {
			return Version{}, err
		}
		first := v.seen[repo.Top]
		first.print = after.print
		v.seen[repo.Top] = first
	}
	return out, v.prune()
}

// keyLength is that of a version's name in the cache.
const keyLength = 32

// key names a version: what was checked out, where it is built and by what, and
// for whom.
func (v *Versions) key(ask Ask, place, inside string) string {
	parts := []string{place, ask.Revision}
	if len(ask.Build) > 0 {
		parts = append(parts, inside)
		parts = append(parts, ask.Build...)
		for _, e := range slices.Sorted(slices.Values(v.opt.Environ)) {
			if name, _, _ := strings.Cut(e, "="); steers(name) {
				parts = append(parts, e)
			}
		}
	}
	if ask.User != nil {
		parts = append(parts, fmt.Sprint("uid ", ask.User.Uid))
	}
	sum := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	return fmt.Sprintf("%x", sum)[:keyLength]
}
