package checkout

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// testEnviron is an environment in which no config of this machine counts.
func testEnviron() []string {
	return []string{
		"PATH=" + os.Getenv("PATH"), "HOME=/nonexistent", "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null",
		"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.com", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@example.com",
	}
}

func git(t *testing.T, dir string, args ...string) string {
	t.Helper()
	cmd := exec.Command("git", append([]string{"-C", dir, "-c", "protocol.file.allow=always"}, args...)...)
	cmd.Env = testEnviron()
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(string(out))
}

// put writes files, those that end in .sh as programs.
func put(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, content := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		mode := fs.FileMode(0o644)
		if strings.HasSuffix(name, ".sh") {
			mode = 0o755
		}
		if err := os.WriteFile(path, []byte(content), mode); err != nil {
			t.Fatal(err)
		}
	}
}

func get(t *testing.T, path ...string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(path...))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// commit writes files and commits them.
func commit(t *testing.T, dir string, files map[string]string) string {
	t.Helper()
	put(t, dir, files)
	git(t, dir, "add", "-A")
	git(t, dir, "commit", "-q", "--allow-empty", "-m", "a commit")
	return git(t, dir, "rev-parse", "HEAD")
}

// newRepo is a repository in a directory with a blank in its name: main has one
// commit, the branch faster another on top, and the tag v1 is the first one.
func newRepo(t *testing.T, files map[string]string) (dir, main, faster string) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "a b", "app")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	git(t, dir, "init", "-q", "-b", "main")
	main = commit(t, dir, files)
	git(t, dir, "tag", "-a", "-m", "first", "v1")
	git(t, dir, "checkout", "-q", "-b", "faster")
	faster = commit(t, dir, map[string]string{"speed": "fast\n"})
	git(t, dir, "checkout", "-q", "main")
	return dir, main, faster
}

func open(t *testing.T, dir string) *Repository {
	t.Helper()
	r, err := Open(t.Context(), dir, testEnviron())
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestResolve(t *testing.T) {
	dir, main, faster := newRepo(t, map[string]string{"speed": "slow\n"})
	git(t, dir, "update-ref", "refs/remotes/origin/far", faster)
	r := open(t, dir)
	for name, want := range map[string]string{
		"main": main, "faster": faster, "v1": main, "HEAD": main, faster: faster, faster[:8]: faster,
		"faster~1": main, "origin/far": faster, ".": ".",
	} {
		if got, err := r.Resolve(t.Context(), name); err != nil || got != want {
			t.Errorf("%s: %q, %v; want %s", name, got, err, want)
		}
	}
	for _, name := range []string{"", "fastre", "--all", "-h", "HEAD^{tree}", "main:speed", "main..faster", "far", "0000000", strings.Repeat("0", 40)} {
		_, err := r.Resolve(t.Context(), name)
		unknown, is := errors.AsType[*UnknownRevisionError](err)
		if !is {
			t.Errorf("%q: %v", name, err)
			continue
		}
		for _, known := range []string{"main", "faster", "v1", "origin/far"} {
			if !slices.Contains(unknown.Known, known) {
				t.Errorf("%q: known are %v, without %s", name, unknown.Known, known)
			}
		}
	}
}

func TestOpen(t *testing.T) {
	dir, _, _ := newRepo(t, map[string]string{"bench/hakaru.yaml": "", "speed": ""})
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(filepath.Join(dir, "bench"), link); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ name, dir, inside string }{
		{"the top", dir, "."},
		{"below", filepath.Join(dir, "bench"), "bench"},
		{"by a link", link, "bench"},
		{"not there yet", filepath.Join(dir, "bench", "new", "one"), "bench/new/one"},
	} {
		r := open(t, c.dir)
		if top, err := filepath.EvalSymlinks(dir); err != nil || r.Top != top || r.Inside != c.inside {
			t.Errorf("%s: top %s, inside %s (%v)", c.name, r.Top, r.Inside, err)
		}
	}
	other := filepath.Join(t.TempDir(), "linked")
	git(t, dir, "worktree", "add", "-q", "--detach", other, "faster")
	if r := open(t, other); r.common != filepath.Join(dir, ".git") || filepath.Base(r.Top) != "linked" {
		t.Errorf("a linked working tree: %+v", r)
	}
	bare := t.TempDir()
	git(t, bare, "init", "-q", "--bare")
	for _, c := range []struct{ name, dir, why, help string }{
		{"no repository", t.TempDir(), "it is in none", "git init"},
		{"bare", bare, "no working tree", "clone"},
	} {
		_, err := Open(t.Context(), c.dir, testEnviron())
		e, is := errors.AsType[*RepositoryError](err)
		if !is || !strings.Contains(e.Error(), c.why) || !strings.Contains(e.Hint(), c.help) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

// A variable that a hook has set leads nowhere else.
func TestOpenInHook(t *testing.T) {
	dir, main, _ := newRepo(t, nil)
	other, _, _ := newRepo(t, map[string]string{"other": ""})
	r, err := Open(t.Context(), dir, append(testEnviron(), "GIT_DIR="+filepath.Join(other, ".git"), "GIT_INDEX_FILE=/nonexistent"))
	if err != nil {
		t.Fatal(err)
	}
	if got, err := r.Resolve(t.Context(), "main"); err != nil || got != main {
		t.Errorf("%s, %v; want %s", got, err, main)
	}
}

func TestSomebodyElses(t *testing.T) {
	if os.Geteuid() != 0 {
		// git looks at who owns the directory; only root can make that another.
		t.Skip("needs root")
	}
	dir, _, _ := newRepo(t, nil)
	if err := give(dir, &syscall.Credential{Uid: 65534, Gid: 65534}); err != nil {
		t.Fatal(err)
	}
	_, err := Open(t.Context(), dir, testEnviron())
	e, is := errors.AsType[*RepositoryError](err)
	if !is || !strings.Contains(e.Why, "another user") || !strings.Contains(e.Hint(), "safe.directory '"+dir+"'") {
		t.Errorf("%v", err)
	}
}

func TestFile(t *testing.T) {
	dir, main, faster := newRepo(t, map[string]string{"speed": "slow\n", "conf/a.ini": "x = 1\n"})
	r := open(t, dir)
	for _, c := range []struct{ commit, path, want string }{
		{main, "speed", "slow\n"}, {faster, "speed", "fast\n"}, {faster, "conf/a.ini", "x = 1\n"},
	} {
		if got, err := r.File(t.Context(), c.commit, filepath.Join(dir, c.path)); err != nil || string(got) != c.want {
			t.Errorf("%s: %q, %v", c.path, got, err)
		}
	}
	if _, err := r.File(t.Context(), main, filepath.Join(dir, "none")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a file that is not there: %v", err)
	}
	if _, err := r.File(t.Context(), main, "/etc/passwd"); err == nil || errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a file outside: %v", err)
	}
}

func TestState(t *testing.T) {
	dir, main, _ := newRepo(t, map[string]string{"speed": "slow\n", ".gitignore": "app\n"})
	r := open(t, dir)
	state := func() State {
		t.Helper()
		s, err := r.State(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	clean := state()
	if clean.Name() != main {
		t.Errorf("clean: %s, want %s", clean.Name(), main)
	}
	put(t, dir, map[string]string{"app": "binary"})
	if s := state(); s != clean {
		t.Errorf("an ignored file makes %+v", s)
	}
	put(t, dir, map[string]string{"new": ""})
	if s := state(); s.Name() != main+"+changes" || s.print != clean.print {
		t.Errorf("a file that git does not know: %+v", s)
	}
	put(t, dir, map[string]string{"speed": "faster\n"})
	first := state()
	put(t, dir, map[string]string{"speed": "fastest\n"})
	if second := state(); first.Name() != main+"+changes" || first.print == clean.print || first.print == second.print {
		t.Errorf("changes: %+v, then %+v", first, second)
	}
	empty := t.TempDir()
	git(t, empty, "init", "-q")
	r = open(t, empty)
	if s := state(); s.Commit != "" || s.Changed {
		t.Errorf("before the first commit: %+v", s)
	}
}

// An end of the context is no opinion of git's.
func TestInterruptedGit(t *testing.T) {
	dir, _, _ := newRepo(t, nil)
	ctx, cancel := context.WithCancel(t.Context())
	r := open(t, dir)
	cancel()
	if _, err := r.Resolve(ctx, "main"); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}
