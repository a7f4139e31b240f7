package checkout

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// WorkingTree is the revision that stands for the working tree as it is,
// uncommitted changes included.
const WorkingTree = "."

// Repository is a git repository with a working tree. Nothing here writes to
// it: no reference, no worktree, no index.
type Repository struct {
	Top    string // of the working tree, links resolved
	Inside string // where in it the directory lies that it was opened by; "." for the top
	common string // the directory with its objects and references
	format string // of object names: sha1, sha256

	environ []string
}

// RepositoryError says why a repository cannot be read.
type RepositoryError struct {
	Dir  string
	Why  string
	Help string
}

func (e *RepositoryError) Error() string {
	return fmt.Sprintf("read the git repository of %s: %s", e.Dir, e.Why)
}

// Hint is what to do about it.
func (e *RepositoryError) Hint() string { return e.Help }

// UnknownRevisionError says that a repository has no such commit.
type UnknownRevisionError struct {
	Revision, Top string
	Known         []string // branches, tags and branches of remotes, the latest first
	Why           string   // what git says of it, where that tells more
}

func (e *UnknownRevisionError) Error() string {
	text := fmt.Sprintf("no branch, tag or commit of %s is called %q", e.Top, e.Revision)
	if e.Why != "" {
		text += ": " + e.Why
	}
	return text
}

// Open finds the repository that a directory lies in. A directory that is not
// there is looked for from the nearest one above it that is.
func Open(ctx context.Context, dir string, environ []string) (*Repository, error) {
	there, rest := dir, "."
	for {
		if info, err := os.Stat(there); err == nil && info.IsDir() || filepath.Dir(there) == there {
			break
		}
		there, rest = filepath.Dir(there), filepath.Join(filepath.Base(there), rest)
	}
	r := &Repository{environ: gitEnviron(environ)}
	out, err := r.git(ctx, there, "rev-parse", "--path-format=absolute",
		"--show-toplevel", "--git-common-dir", "--show-object-format", "--show-prefix")
	if err != nil {
		return nil, unreadable(dir, err)
	}
	lines := strings.Split(string(out), "\n")
	if len(lines) < 4 || lines[0] == "" {
		return nil, &RepositoryError{Dir: dir, Why: fmt.Sprintf("git rev-parse says %q", out)}
	}
	r.Top, r.common, r.format = lines[0], lines[1], lines[2]
	r.Inside = filepath.Join(".", lines[3], rest)
	return r, nil
}

// unreadable makes of git's refusal the error that a person needs.
func unreadable(dir string, err error) error {
	e := &RepositoryError{Dir: dir, Why: err.Error()}
	var refused *gitError
	switch {
	case errors.Is(err, exec.ErrNotFound):
		e.Why, e.Help = "git is not installed", "install it: apt-get install git"
	case errors.As(err, &refused) && strings.Contains(refused.said, "dubious ownership"):
		e.Why = "it belongs to another user than the one hakaru runs as, so git refuses to read it"
		e.Help = "run hakaru as its owner, or say that you trust it: git config --global --add safe.directory " + dir
		for line := range strings.Lines(refused.said) {
			if _, path, found := strings.Cut(line, "--add safe.directory "); found {
				e.Help = "run hakaru as its owner, or say that you trust it: git config --global --add safe.directory " + strings.TrimSpace(path)
			}
		}
	case errors.As(err, &refused) && strings.Contains(refused.said, "not a git repository"):
		e.Why, e.Help = "it is in none", "versions are commits of the repository that holds the experiment file: put the file into it, or begin one with git init"
	case errors.As(err, &refused) && strings.Contains(refused.said, "work tree"):
		e.Why, e.Help = "it has no working tree", "put the experiment file into a clone of it"
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("read the git repository of %s: %w", dir, err)
	}
	return e
}

// Resolve returns the commit that a branch, tag, or other name of one stands
// for, and WorkingTree for itself.
func (r *Repository) Resolve(ctx context.Context, revision string) (string, error) {
	if revision == WorkingTree {
		return WorkingTree, nil
	}
	unknown := &UnknownRevisionError{Revision: revision, Top: r.Top}
	if revision != "" && !strings.HasPrefix(revision, "-") { // no name begins so, and it would be an option
		out, err := r.git(ctx, r.Top, "rev-parse", "--verify", revision+"^{commit}")
		var refused *gitError
		switch {
		case err == nil:
			return strings.TrimSpace(string(out)), nil
		case !errors.As(err, &refused):
			return "", fmt.Errorf("resolve revision %s of %s: %w", revision, r.Top, err)
		case strings.Contains(refused.said, "ambiguous"):
			unknown.Why = "it stands for several, write more of it"
		}
	}
	out, err := r.git(ctx, r.Top, "for-each-ref", "--sort=-creatordate", "--format=%(refname:short)", "refs/heads", "refs/tags", "refs/remotes")
	if err != nil {
		return "", fmt.Errorf("list the branches of %s: %w", r.Top, err)
	}
	unknown.Known = strings.Fields(string(out))
	return "", unknown
}

// File returns a file as it is in a commit, by its absolute path in the working
// tree. The error wraps fs.ErrNotExist where the commit does not have it.
func (r *Repository) File(ctx context.Context, commit, path string) ([]byte, error) {
	inside, err := r.within(path)
	if err != nil {
		return nil, err
	}
	out, err := r.git(ctx, r.Top, "cat-file", "blob", commit+":"+inside)
	var refused *gitError
	if errors.As(err, &refused) {
		return nil, fmt.Errorf("%s is not in commit %.12s: %w", inside, commit, os.ErrNotExist)
	}
	return out, err
}

// within is a path of the working tree as commits have it.
func (r *Repository) within(path string) (string, error) {
	dir, err := filepath.EvalSymlinks(filepath.Dir(path))
	if err != nil {
		return "", fmt.Errorf("find %s in the repository %s: %w", path, r.Top, err)
	}
	inside, err := filepath.Rel(r.Top, filepath.Join(dir, filepath.Base(path)))
	if err != nil || !filepath.IsLocal(inside) {
		return "", fmt.Errorf("find %s in the repository %s: it lies outside", path, r.Top)
	}
	return filepath.ToSlash(inside), nil
}

// State is what a working tree holds at one moment.
type State struct {
	Commit  string // checked out; empty before the first commit
	Changed bool   // it differs from the commit, be it by a file that is not known to git
	print   string // of the commit and the changes to files that git knows
}

// Name is the state as it is recorded: the commit, marked where there is more.
func (s State) Name() string {
	if s.Changed {
		return s.Commit + "+changes"
	}
	return s.Commit
}

// State looks at the working tree.
func (r *Repository) State(ctx context.Context) (State, error) {
	var s State
	fail := func(err error) (State, error) {
		return State{}, fmt.Errorf("look at the working tree %s: %w", r.Top, err)
	}
	var refused *gitError
	out, err := r.git(ctx, r.Top, "rev-parse", "--verify", "--quiet", "HEAD^{commit}")
	if err != nil && !errors.As(err, &refused) {
		return fail(err)
	}
	s.Commit = strings.TrimSpace(string(out))
	if out, err = r.git(ctx, r.Top, "status", "--porcelain", "-z", "--untracked-files=normal"); err != nil {
		return fail(err)
	}
	s.Changed = len(out) > 0
	if s.Commit == "" {
		return s, nil
	}
	if out, err = r.git(ctx, r.Top, "diff", "--no-ext-diff", "--no-textconv", "--no-color", "--full-index", "--binary", "HEAD", "--"); err != nil {
		return fail(err)
	}
	s.print = fmt.Sprintf("%s %x", s.Commit, sha256.Sum256(out))
	return s, nil
}

// gitError is git's refusal, in its own words.
type gitError struct {
	command string
	state   string
	said    string
}

func (e *gitError) Error() string {
	text := "git " + e.command + ": " + e.state
	if said := strings.TrimSpace(e.said); said != "" {
		text = "git " + e.command + ": " + strings.TrimPrefix(said, "fatal: ")
	}
	return text
}

// git runs git in a directory and returns what it wrote. Hooks and the file
// system monitor are programs that a repository names, and do not run.
func (r *Repository) git(ctx context.Context, dir string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, "git", append([]string{
		"-C", dir, "-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false", "-c", "advice.detachedHead=false",
	}, args...)...)
	cmd.Env = r.environ
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return nil, &gitError{command: args[0], state: exit.String(), said: stderr.String()}
	}
	return stdout.Bytes(), err
}

// localVariables say which repository git is to work on; hakaru may be run by a
// hook, which has them set (git rev-parse --local-env-vars).
var localVariables = []string{
	"GIT_ALTERNATE_OBJECT_DIRECTORIES", "GIT_OBJECT_DIRECTORY", "GIT_DIR", "GIT_WORK_TREE", "GIT_IMPLICIT_WORK_TREE",
	"GIT_GRAFT_FILE", "GIT_INDEX_FILE", "GIT_NO_REPLACE_OBJECTS", "GIT_REPLACE_REF_BASE", "GIT_PREFIX",
	"GIT_SHALLOW_FILE", "GIT_COMMON_DIR", "GIT_NAMESPACE",
}

// gitEnviron is an environment in which git asks nobody, takes no lock it can do
// without, fetches nothing, and speaks English.
func gitEnviron(environ []string) []string {
	env := slices.DeleteFunc(slices.Clone(environ), func(e string) bool {
		name, _, _ := strings.Cut(e, "=")
		return isLocal(name) || name == "LC_ALL" || name == "LANGUAGE"
	})
	return append(env, "LC_ALL=C", "GIT_TERMINAL_PROMPT=0", "GIT_ASKPASS=true", "GIT_OPTIONAL_LOCKS=0",
		"GIT_ALLOW_PROTOCOL=none", "GIT_NO_LAZY_FETCH=1", "GIT_LFS_SKIP_SMUDGE=1",
		"GIT_DEFAULT_REF_FORMAT=files") // of the checkout, where tags are written as packed-refs
}

func isLocal(name string) bool { return slices.Contains(localVariables, name) }
