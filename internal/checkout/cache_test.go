package checkout

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// An agent that was killed while it built leaves no version that seems finished.
func TestUnfinished(t *testing.T) {
	dir, main, _ := newRepo(t, map[string]string{"speed": "slow\n"})
	v := newVersions(t, Options{})
	got := make1(t, v, Ask{Dir: dir, Revision: main})
	key := filepath.Base(filepath.Join(got.Dir, "..", ".."))
	for name, spoil := range map[string]func() error{
		"no note":     func() error { return os.Remove(filepath.Join(v.opt.Dir, key, aboutFile)) },
		"half a note": func() error { return os.Truncate(filepath.Join(v.opt.Dir, key, aboutFile), 10) },
		"no tree":     func() error { return os.RemoveAll(got.Dir) },
		"nothing":     func() error { return os.RemoveAll(v.opt.Dir) },
	} {
		if _, err := os.Stat(got.Dir); err == nil {
			put(t, got.Dir, map[string]string{"half": ""})
		}
		if err := spoil(); err != nil {
			t.Fatal(err)
		}
		other := New(Options{Dir: v.opt.Dir, Environ: testEnviron()})
		for _, agent := range []*Versions{v, other} {
			again := make1(t, agent, Ask{Dir: dir, Revision: main})
			if _, err := os.Stat(filepath.Join(again.Dir, "half")); again.Dir != got.Dir || !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("%s: %+v, %v", name, again, err)
			}
		}
		if err := other.Close(); err != nil { // what somebody holds is not made anew
			t.Fatal(err)
		}
	}
}

// Agents that want the same version at once make it once.
func TestConcurrent(t *testing.T) {
	dir, main, faster := newRepo(t, map[string]string{"speed": "slow\n", "build.sh": counted})
	log := filepath.Join(t.TempDir(), "builds")
	cache := filepath.Join(t.TempDir(), "versions")
	var group sync.WaitGroup
	errs := make([]error, 8)
	for i := range errs {
		v := newVersions(t, Options{Dir: cache})
		group.Go(func() {
			ask := Ask{Dir: dir, Revision: []string{main, faster}[i%2], Build: []string{"./build.sh", log}, Mark: fmt.Sprint("agent", i)}
			got, err := v.Make(t.Context(), ask)
			if err == nil {
				_, err = os.Stat(filepath.Join(got.Dir, "app"))
			}
			errs[i] = err
		})
	}
	group.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Error(err)
	}
	if builds := get(t, log); builds != "x\nx\n" {
		t.Errorf("built %q", builds)
	}
}

// Whoever waits for another's build can be interrupted.
func TestInterruptedWait(t *testing.T) {
	dir, main, _ := newRepo(t, nil)
	v, other := newVersions(t, Options{}), (*Versions)(nil)
	other = newVersions(t, Options{Dir: v.opt.Dir})
	file := filepath.Join(t.TempDir(), "pid")
	ask := Ask{Dir: dir, Revision: main, Build: []string{"sh", "-c", "echo $$ > '" + file + "'; sleep 1000"}, Mark: "wait"}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() {
		_, err := v.Make(ctx, ask)
		done <- err
	}()
	forked(t, file)
	short, end := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer end()
	if _, err := other.Make(short, ask); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v", err)
	}
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}

// The versions used last stay, and those that an agent holds.
func TestPrune(t *testing.T) {
	dir, main, _ := newRepo(t, map[string]string{"n": "0"})
	holder := newVersions(t, Options{Keep: 2})
	held := make1(t, holder, Ask{Dir: dir, Revision: main})
	old := time.Now().Add(-time.Hour)
	age := func(d string) {
		t.Helper()
		if err := os.Chtimes(filepath.Join(d, "..", "..", aboutFile), old, old); err != nil {
			t.Fatal(err)
		}
		old = old.Add(time.Minute)
	}
	age(held.Dir)
	var dirs []string
	for i := range 4 {
		v := New(Options{Dir: holder.opt.Dir, Environ: testEnviron(), Keep: 2})
		// Directories that may not be written to are removed as well.
		got := make1(t, v, Ask{Dir: dir, Revision: main, Build: []string{"sh", "-c", fmt.Sprintf("mkdir -p a/b && touch a/b/%d && chmod -R a-w a", i)}})
		age(got.Dir)
		dirs = append(dirs, got.Dir)
		if err := v.Close(); err != nil {
			t.Fatal(err)
		}
	}
	for i, want := range []bool{false, false, true, true} {
		if _, err := os.Stat(dirs[i]); (err == nil) != want {
			t.Errorf("version %d: %v", i, err)
		}
	}
	if _, err := os.Stat(held.Dir); err != nil {
		t.Errorf("the one that is held: %v", err)
	}
	if locks, err := filepath.Glob(filepath.Join(holder.opt.Dir, "*"+lockSuffix)); err != nil || len(locks) != 3 {
		t.Errorf("locks: %v, %v", locks, err)
	}
}

// The cache is refused where somebody else could put a program into it.
func TestForeignCache(t *testing.T) {
	dir, main, _ := newRepo(t, nil)
	open := filepath.Join(t.TempDir(), "open")
	if err := os.Mkdir(open, 0o700); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(open, link); err != nil {
		t.Fatal(err)
	}
	if _, err := newVersions(t, Options{Dir: link}).Make(t.Context(), Ask{Dir: dir, Revision: main}); err == nil {
		t.Error("a link is followed")
	}
	if err := os.Chmod(open, 0o777); err != nil {
		t.Fatal(err)
	}
	if _, err := newVersions(t, Options{Dir: open}).Make(t.Context(), Ask{Dir: dir, Revision: main}); err == nil || !strings.Contains(err.Error(), "nobody else may write") {
		t.Errorf("open to all: %v", err)
	}
	if _, err := newVersions(t, Options{Dir: "here"}).Make(t.Context(), Ask{Dir: dir, Revision: main}); err == nil {
		t.Error("a relative path is taken")
	}
}

func TestAbout(t *testing.T) {
	dir, main, _ := newRepo(t, nil)
	v := newVersions(t, Options{})
	got := make1(t, v, Ask{Dir: dir, Revision: main, Build: []string{"true", "x y"}})
	var a about
	if err := json.Unmarshal([]byte(get(t, got.Dir, "..", "..", aboutFile)), &a); err != nil {
		t.Fatal(err)
	}
	want := about{Format: aboutFormat, Repository: dir, Commit: main, Build: []string{"true", "x y"}, Tree: "app"}
	if diff := cmp.Diff(want, a); diff != "" {
		t.Error(diff)
	}
}
