package checkout

import (
	"context"
	"errors"
	"fmt"
	"io"
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

// give makes a tree the property of a user, links themselves included. What has
// another name outside of the tree belongs to somebody else there: package
// managers (pnpm, uv, cargo) and cp -l fill a tree with hard links to their store.
// It gets a copy of its own first.
func give(dir string, to *syscall.Credential) error {
	type file struct{ device, inode uint64 }
	names := map[file][]string{} // in the tree, of what has several
	links := map[file]uint64{}
	each := func(do func(path string, info fs.FileInfo, stat *syscall.Stat_t) error) error {
		return filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			info, err := d.Info()
			if err != nil {
				return err
			}
			stat, ok := info.Sys().(*syscall.Stat_t)
			if !ok {
				return fmt.Errorf("look at %s: its owner and links are not told", path)
			}
			return do(path, info, stat)
		})
	}
	err := each(func(path string, info fs.FileInfo, stat *syscall.Stat_t) error {
		if !info.IsDir() && stat.Nlink > 1 {
			id := file{stat.Dev, stat.Ino}
			names[id], links[id] = append(names[id], path), uint64(stat.Nlink)
		}
		return nil
	})
	for id, paths := range names {
		if err == nil && uint64(len(paths)) < links[id] {
			err = separate(paths)
		}
	}
	if err == nil {
		err = each(func(path string, _ fs.FileInfo, _ *syscall.Stat_t) error {
			return os.Lchown(path, int(to.Uid), int(to.Gid))
		})
	}
	if err != nil {
		return fmt.Errorf("give the version to the user that the service runs as: %w", err)
	}
	return nil
}

// separate puts one copy of a file, or of a link, in the place of all these names
// of it.
func separate(paths []string) (err error) {
	temporary := paths[0] + ".hakaru-copy"
	defer func() {
		if err != nil {
			err = fmt.Errorf("copy %s, which has names outside of the version: %w", paths[0], err)
		}
	}()
	info, err := os.Lstat(paths[0])
	if err != nil {
		return err
	}
	switch {
	case info.Mode()&fs.ModeSymlink != 0:
		to, err := os.Readlink(paths[0])
		if err != nil {
			return err
		}
		if err := os.Symlink(to, temporary); err != nil {
			return err
		}
	case info.Mode().IsRegular():
		if err := copyFile(temporary, paths[0], info); err != nil {
			return errors.Join(err, os.Remove(temporary))
		}
	default:
		return fmt.Errorf("it is no file (%s)", info.Mode())
	}
	for _, path := range paths[1:] {
		again := path + ".hakaru-copy"
		if err := os.Link(temporary, again); err != nil {
			return err
		}
		if err := os.Rename(again, path); err != nil {
			return err
		}
	}
	return os.Rename(temporary, paths[0])
}

// copyFile copies content, mode and times: a build that looks at those sees the
// same.
func copyFile(to, from string, info fs.FileInfo) (err error) {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close() // read only: nothing is lost
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	if err == nil {
		err = out.Chmod(info.Mode().Perm())
	}
	if err = errors.Join(err, out.Close()); err != nil {
		return err
	}
	return os.Chtimes(to, info.ModTime(), info.ModTime())
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
