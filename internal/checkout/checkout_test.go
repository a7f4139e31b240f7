package checkout

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// counted is a build that notes how often it ran, outside of what it builds.
const counted = `#!/bin/sh
echo x >> "$1"
echo "made of $(cat speed) by git $(git describe --always --tags)"
cp speed app
`

func newVersions(t *testing.T, opt Options) *Versions {
	t.Helper()
	if opt.Dir == "" {
		opt.Dir = filepath.Join(t.TempDir(), "cache", "versions")
	}
	opt.Environ = testEnviron()
	v := New(opt)
	t.Cleanup(func() {
		if err := v.Close(); err != nil {
			t.Error(err)
		}
	})
	return v
}

func make1(t *testing.T, v *Versions, ask Ask) Version {
	t.Helper()
	if ask.Mark == "" {
		ask.Mark = "test-" + t.Name()
	}
	got, err := v.Make(t.Context(), ask)
	if err != nil {
		t.Fatalf("%v\n%v", err, func() string {
			b, _ := errors.AsType[*BuildError](err)
			if b == nil {
				return ""
			}
			return b.Output
		}())
	}
	return got
}

// snapshot is all that is in a directory, with its times and contents.
func snapshot(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		content := ""
		if info.Mode().IsRegular() {
			content = get(t, path)
		}
		all[path] = fmt.Sprint(info.Mode(), info.ModTime(), content)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// A version is what the commit has, the person's repository is as it was, and a
// second one costs nothing.
func TestVersion(t *testing.T) {
	dir, main, faster := newRepo(t, map[string]string{"speed": "slow\n", "build.sh": counted, "sub/deep/file": "here\n"})
	put(t, dir, map[string]string{"speed": "not committed\n"})
	before := snapshot(t, dir)
	log := filepath.Join(t.TempDir(), "builds")
	v := newVersions(t, Options{})
	ask := func(commit string) Ask {
		return Ask{Service: "app", Dir: dir, Revision: commit, Build: []string{"./build.sh", log}}
	}
	for range 2 {
		for commit, want := range map[string]string{main: "slow\n", faster: "fast\n"} {
			got := make1(t, v, ask(commit))
			if app := get(t, got.Dir, "app"); got.Commit != commit || app != want || len(got.Warnings) > 0 || filepath.Base(got.Dir) != "app" {
				t.Errorf("%+v, its app is %q, want %q", got, app, want)
			}
			if strings.HasPrefix(got.Dir, dir) {
				t.Errorf("%s is within the working tree", got.Dir)
			}
			if said := get(t, got.Dir, "..", "..", logFile); commit == main && !strings.Contains(said, "by git v1") {
				t.Errorf("the build wrote %q", said)
			}
		}
	}
	if builds := get(t, log); builds != "x\nx\n" {
		t.Errorf("built %q", builds)
	}
	if diff := cmp.Diff(before, snapshot(t, dir)); diff != "" {
		t.Errorf("the repository has changed:\n%s", diff)
	}

	// A service further down runs further down; another agent finds it all there.
	other := newVersions(t, Options{Dir: v.opt.Dir})
	deep := ask(main)
	deep.Dir, deep.Build = filepath.Join(dir, "sub", "deep"), nil
	if got := make1(t, other, deep); get(t, got.Dir, "file") != "here\n" {
		t.Errorf("%+v", got)
	}
	make1(t, other, ask(main))
	if builds := get(t, log); builds != "x\nx\n" {
		t.Errorf("another agent has built again: %q", builds)
	}
	// Another command is another version.
	again := ask(main)
	again.Build = append(again.Build, "again")
	make1(t, other, again)
	if builds := get(t, log); builds != "x\nx\nx\n" {
		t.Errorf("built %q", builds)
	}
	deep.Dir = filepath.Join(dir, "nowhere")
	_, err := other.Make(t.Context(), deep)
	if b, is := errors.AsType[*BuildError](err); !is || !strings.Contains(b.Why, "nowhere is not in version") {
		t.Errorf("a directory that the version lacks: %v", err)
	}
}

// A commit that no branch leads to any more is there as long as git keeps it,
// and its finished version longer.
func TestMovedBranch(t *testing.T) {
	dir, main, _ := newRepo(t, map[string]string{"speed": "slow\n"})
	v := newVersions(t, Options{})
	git(t, dir, "tag", "-d", "v1")
	git(t, dir, "commit", "-q", "--amend", "-m", "another")
	git(t, dir, "checkout", "-q", "--orphan", "new")
	git(t, dir, "commit", "-q", "--allow-empty", "-m", "new")
	git(t, dir, "branch", "-q", "-D", "main", "faster")
	if got := make1(t, v, Ask{Dir: dir, Revision: main}); get(t, got.Dir, "speed") != "slow\n" {
		t.Errorf("%+v", got)
	}
	git(t, dir, "reflog", "expire", "--expire=now", "--all")
	git(t, dir, "gc", "-q", "--prune=now")
	if got := make1(t, newVersions(t, Options{Dir: v.opt.Dir}), Ask{Dir: dir, Revision: main}); get(t, got.Dir, "speed") != "slow\n" {
		t.Errorf("%+v", got)
	}
	_, err := newVersions(t, Options{}).Make(t.Context(), Ask{Dir: dir, Revision: main})
	if _, is := errors.AsType[*UnknownRevisionError](err); !is {
		t.Errorf("a commit that is gone: %v", err)
	}
}

// Repositories that are not the plain case.
func TestOtherRepositories(t *testing.T) {
	dir, main, faster := newRepo(t, map[string]string{"speed": "slow\n"})
	t.Run("linked working tree", func(t *testing.T) {
		linked := filepath.Join(t.TempDir(), "linked")
		git(t, dir, "worktree", "add", "-q", "--detach", linked, "main")
		if got := make1(t, newVersions(t, Options{}), Ask{Dir: linked, Revision: faster}); get(t, got.Dir, "speed") != "fast\n" {
			t.Errorf("%+v", got)
		}
	})
	t.Run("shallow", func(t *testing.T) {
		shallow := filepath.Join(t.TempDir(), "shallow")
		git(t, t.TempDir(), "clone", "-q", "--depth=1", "--branch=faster", "file://"+dir, shallow)
		ask := Ask{Dir: shallow, Revision: faster, Build: []string{"git", "log", "--oneline"}}
		if got := make1(t, newVersions(t, Options{}), ask); get(t, got.Dir, "speed") != "fast\n" {
			t.Errorf("%+v", got)
		}
	})
	t.Run("sha256", func(t *testing.T) {
		dir := t.TempDir()
		git(t, dir, "init", "-q", "--object-format=sha256")
		id := commit(t, dir, map[string]string{"a": "b"})
		if got := make1(t, newVersions(t, Options{}), Ask{Dir: dir, Revision: id}); get(t, got.Dir, "a") != "b" {
			t.Errorf("%+v", got)
		}
	})
	t.Run("submodule and large files", func(t *testing.T) {
		git(t, dir, "submodule", "--quiet", "add", dir, "lib/dep")
		id := commit(t, dir, map[string]string{"assets/.gitattributes": "*.bin filter=lfs diff=lfs\n"})
		got := make1(t, newVersions(t, Options{}), Ask{Dir: dir, Revision: id})
		var codes []string
		for _, w := range got.Warnings {
			codes = append(codes, w.Code)
			if w.Code == submodulesEmpty && !strings.Contains(w.Message, "(lib/dep)") {
				t.Errorf("%s", w.Message)
			}
		}
		if !slices.Equal(codes, []string{submodulesEmpty, largeFilesMissing}) {
			t.Errorf("warnings %v", got.Warnings)
		}
		git(t, dir, "reset", "-q", "--hard", main)
	})
	// What a repository says is to be run when it is checked out is not.
	t.Run("hooks", func(t *testing.T) {
		ran := filepath.Join(t.TempDir(), "ran")
		hook := "#!/bin/sh\ntouch '" + ran + "'\n"
		put(t, dir, map[string]string{".git/hooks/post-checkout": hook, ".git/hooks/mon.sh": hook})
		if err := os.Chmod(filepath.Join(dir, ".git/hooks/post-checkout"), 0o755); err != nil {
			t.Fatal(err)
		}
		git(t, dir, "config", "core.fsmonitor", filepath.Join(dir, ".git/hooks/mon.sh"))
		v := newVersions(t, Options{})
		make1(t, v, Ask{Dir: dir, Revision: faster})
		make1(t, v, Ask{Dir: dir, Revision: WorkingTree})
		if _, err := os.Stat(ran); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("a hook ran (%v)", err)
		}
	})
}

// The working tree is built in place, when the words are not those of the last
// time.
func TestWorkingTree(t *testing.T) {
	dir, main, _ := newRepo(t, map[string]string{"speed": "slow\n", ".gitignore": "app\n", "build.sh": counted})
	put(t, dir, map[string]string{"speed": "changed\n"})
	log := filepath.Join(t.TempDir(), "builds")
	v := newVersions(t, Options{})
	for _, c := range []struct{ revision, commit string }{{"", ""}, {WorkingTree, main + "+changes"}} {
		ask := Ask{Service: "app", Dir: dir, Revision: c.revision, Build: []string{"./build.sh", log, c.revision}}
		if got := make1(t, v, ask); got.Dir != dir || got.Commit != c.commit || get(t, dir, "app") != "changed\n" {
			t.Errorf("%+v", got)
		}
		make1(t, v, ask)
		ask.Build = append(ask.Build, "tag")
		make1(t, v, ask)
		ask.Build = ask.Build[:3]
		make1(t, v, ask)
	}
	if builds := get(t, log); strings.Count(builds, "x") != 6 {
		t.Errorf("built %q, want three times each", builds)
	}
	ask := Ask{Service: "app", Dir: dir, Revision: WorkingTree}
	if got := make1(t, v, ask); len(got.Warnings) > 0 {
		t.Errorf("%+v", got)
	}
	put(t, dir, map[string]string{"speed": "changed again\n"})
	if got := make1(t, v, ask); len(got.Warnings) != 1 || got.Warnings[0].Code != treeChanged {
		t.Errorf("after an edit: %+v", got)
	}
}

// A service that runs as another user can read its version, and nobody else can.
func TestUser(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root, to run something as somebody else")
	}
	dir, main, _ := newRepo(t, map[string]string{"speed": "slow\n"})
	nobody := &syscall.Credential{Uid: 65534, Gid: 65534}
	// t.TempDir is closed to others; hakaru's own place is not.
	cache, err := os.MkdirTemp("/var/tmp", "hakaru-checkout-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(cache); err != nil {
			t.Error(err)
		}
	})
	if err := os.Chmod(cache, 0o711); err != nil {
		t.Fatal(err)
	}
	v := newVersions(t, Options{Dir: filepath.Join(cache, "versions")})
	// A build that fills the tree with hard links to a store, and looks at who may
	// look at it.
	store := filepath.Join(cache, "store")
	if err := os.WriteFile(store, []byte("the store's\n"), 0o640); err != nil {
		t.Fatal(err)
	}
	build := []string{"sh", "-c", "touch app; ln '" + store + "' a; ln a b; echo own > c; ln c d; stat -c %a . .. ../.. > modes"}
	got := make1(t, v, Ask{Dir: dir, Revision: main, User: nobody, Build: build})
	if modes := get(t, got.Dir, "modes"); !strings.HasSuffix(modes, "\n700\n700\n") {
		t.Errorf("while it was built others could pass: modes\n%s", modes)
	}
	owner := func(path string) (uid uint32, mode fs.FileMode, inode uint64) {
		t.Helper()
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		stat := info.Sys().(*syscall.Stat_t)
		return stat.Uid, info.Mode().Perm(), stat.Ino
	}
	if uid, _, _ := owner(store); uid != 0 || get(t, store) != "the store's\n" {
		t.Errorf("the store belongs to uid %d now", uid)
	}
	for _, names := range []string{"ab", "cd"} {
		uid, mode, first := owner(filepath.Join(got.Dir, names[:1]))
		_, _, second := owner(filepath.Join(got.Dir, names[1:]))
		if uid != nobody.Uid || first != second || names == "ab" && (mode != 0o640 || get(t, got.Dir, "b") != "the store's\n") {
			t.Errorf("%s: uid %d, mode %o, inodes %d and %d", names, uid, mode, first, second)
		}
	}
	if left, err := filepath.Glob(filepath.Join(got.Dir, "*.hakaru-copy")); err != nil || len(left) > 0 {
		t.Errorf("left %v (%v)", left, err)
	}
	read := func(as *syscall.Credential) error {
		cmd := exec.Command("sh", "-c", "cat speed && touch written")
		cmd.Dir = "/"
		cmd.Args[2] = "cd '" + got.Dir + "' && " + cmd.Args[2]
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: as}
		return cmd.Run()
	}
	if err := read(nobody); err != nil {
		t.Errorf("as its user: %v", err)
	}
	if err := read(&syscall.Credential{Uid: 65533, Gid: 65533}); err == nil {
		t.Error("somebody else can read it")
	}
	if plain := make1(t, v, Ask{Dir: dir, Revision: main, Build: build}); plain.Dir == got.Dir {
		t.Error("two users share a version")
	}

	shut := filepath.Join(cache, "shut")
	if err := os.Mkdir(shut, 0o700); err != nil {
		t.Fatal(err)
	}
	_, err = newVersions(t, Options{Dir: filepath.Join(shut, "versions")}).Make(t.Context(), Ask{Dir: dir, Revision: main, User: nobody})
	if err == nil || !strings.Contains(err.Error(), "may not pass through "+shut+";") || !strings.Contains(err.Error(), "HAKARU_CACHE") {
		t.Errorf("where it cannot be reached: %v", err)
	}
}

// What everybody can read in the working tree, everybody can in the version:
// a service may give up root's rights by itself. What is private stays so.
func TestAsOpenAsTheTree(t *testing.T) {
	dir, main, _ := newRepo(t, nil)
	v := newVersions(t, Options{})
	got := make1(t, v, Ask{Dir: dir, Revision: main})
	info, err := os.Stat(filepath.Join(got.Dir, "..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	want := fs.FileMode(0o700)
	if os.Geteuid() == 0 && readableByAll(dir) {
		want = 0o711
	}
	if info.Mode().Perm() != want {
		t.Errorf("mode %o, want %o", info.Mode().Perm(), want)
	}
}
