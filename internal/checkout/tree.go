package checkout

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"hakaru"
)

// Codes of warnings about a version.
const (
	submodulesEmpty   = "submodules_empty"
	largeFilesMissing = "large_files_missing"
	treeChanged       = "working_tree_changed"
)

// checkOut puts a commit into a directory that is not there yet. The directory
// becomes a repository of its own that reads the objects of the person's, by
// way of objects/info/alternates (gitrepository-layout(5)), so that a build may
// ask for the commit it is of, and nothing is noted in the person's repository:
// git worktree would, and git clone would need the commit to be on a branch.
func (r *Repository) checkOut(ctx context.Context, commit, dir string) error {
	fail := func(err error) error {
		return fmt.Errorf("check out commit %.12s of %s: %w", commit, r.Top, err)
	}
	if err := os.Mkdir(dir, 0o755); err != nil {
		return fail(err)
	}
	if _, err := r.git(ctx, dir, "init", "--quiet", "--template=", "--initial-branch=hakaru", "--object-format="+r.format); err != nil {
		return fail(err)
	}
	own := filepath.Join(dir, ".git")
	info := filepath.Join(own, "objects", "info")
	if err := os.MkdirAll(info, 0o755); err != nil {
		return fail(err)
	}
	objects := filepath.Join(r.common, "objects")
	if strings.ContainsAny(objects, "\n\"") {
		return fail(fmt.Errorf("its path %q cannot be written into objects/info/alternates", r.common))
	}
	if err := os.WriteFile(filepath.Join(info, "alternates"), []byte(objects+"\n"), 0o644); err != nil {
		return fail(err)
	}
	// Where history is cut off, the cut has to be known here too.
	shallow, err := os.ReadFile(filepath.Join(r.common, "shallow"))
	if err == nil {
		err = os.WriteFile(filepath.Join(own, "shallow"), shallow, 0o644)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fail(err)
	}
	// Tags, for git describe.
	tags, err := r.git(ctx, r.Top, "for-each-ref", "--format=%(objectname) %(refname)", "refs/tags")
	if err != nil {
		return fail(err)
	}
	if err := os.WriteFile(filepath.Join(own, "packed-refs"), tags, 0o644); err != nil {
		return fail(err)
	}
	if _, err := r.git(ctx, dir, "checkout", "--quiet", "--detach", "--force", commit, "--"); err != nil {
		return fail(err)
	}
	return nil
}

// notes are what a commit has that a checkout does not bring.
func (r *Repository) notes(ctx context.Context, commit string) ([]hakaru.Warning, error) {
	fail := func(err error) ([]hakaru.Warning, error) {
		return nil, fmt.Errorf("look through commit %.12s of %s: %w", commit, r.Top, err)
	}
	out, err := r.git(ctx, r.Top, "ls-tree", "-r", "-z", "--full-tree", commit)
	if err != nil {
		return fail(err)
	}
	var submodules, attributes []string
	for entry := range strings.SplitSeq(string(out), "\x00") {
		what, path, _ := strings.Cut(entry, "\t")
		switch {
		case strings.HasPrefix(what, "160000 "):
			submodules = append(submodules, path)
		case path == ".gitattributes" || strings.HasSuffix(path, "/.gitattributes"):
			attributes = append(attributes, path)
		}
	}
	var warnings []hakaru.Warning
	if len(submodules) > 0 {
		warnings = append(warnings, hakaru.Warning{Code: submodulesEmpty, Message: fmt.Sprintf(
			"version %.12s has submodules (%s), and they are empty in its checkout: fetch them in build, with git submodule update --init",
			commit, strings.Join(submodules, ", "))})
	}
	for _, path := range attributes {
		text, err := r.git(ctx, r.Top, "cat-file", "blob", commit+":"+path)
		if err != nil {
			return fail(err)
		}
		if strings.Contains(string(text), "filter=lfs") {
			warnings = append(warnings, hakaru.Warning{Code: largeFilesMissing, Message: fmt.Sprintf(
				"version %.12s keeps files in Git LFS (%s), and its checkout has the pointers only: fetch them in build, with git lfs pull", commit, path)})
			break
		}
	}
	return warnings, nil
}

// readableByAll reports whether every user of the machine can read a directory,
// so that a copy of it discloses nothing.
func readableByAll(dir string) bool {
	for at, want := dir, fs.FileMode(0o005); ; at, want = filepath.Dir(at), 0o001 {
		info, err := os.Stat(at)
		if err != nil || info.Mode().Perm()&want != want {
			return false
		}
		if filepath.Dir(at) == at {
			return true
		}
	}
}

// give makes a tree the property of a user, links themselves included.
func give(dir string, to *syscall.Credential) error {
	err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return os.Lchown(path, int(to.Uid), int(to.Gid))
	})
	if err != nil {
		return fmt.Errorf("give the version to the user that the service runs as: %w", err)
	}
	return nil
}

// reachable returns the first directory on the way to path that a user may not
// pass through; "" where there is none.
func reachable(path string, by *syscall.Credential) string {
	for at := path; ; at = filepath.Dir(at) {
		info, err := os.Stat(at)
		if err != nil {
			return at
		}
		stat, ok := info.Sys().(*syscall.Stat_t)
		mode := info.Mode().Perm()
		switch {
		case !ok, mode&0o001 != 0:
		case stat.Uid == by.Uid && mode&0o100 != 0:
		case stat.Gid == by.Gid && mode&0o010 != 0:
		default:
			return at
		}
		if filepath.Dir(at) == at {
			return ""
		}
	}
}

// removeTree removes a directory, and what is in it though it may not be written
// to: Go's module cache makes its directories so.
func removeTree(dir string) error {
	first := os.RemoveAll(dir)
	if first == nil {
		return nil
	}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if d != nil && d.IsDir() {
			return os.Chmod(path, 0o700)
		}
		return err
	})
	return errors.Join(err, os.RemoveAll(dir))
}

// settle writes what is still in memory of a file system to its medium: a
// version that is said to be finished is there after a power cut, and the first
// trial does not share the disk with the build before it.
func settle(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(unix.Syncfs(int(f.Fd())), f.Close())
}
