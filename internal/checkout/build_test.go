package checkout

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"hakaru/internal/watch/kernel"
)

func TestFailedBuild(t *testing.T) {
	dir, main, _ := newRepo(t, map[string]string{"speed": "slow\n", "plain": "", "build.sh": "#!/bin/sh\necho x >> \"$1\"\nfor i in $(seq 1000); do echo line $i; done\necho 'app.c:3: error: expected ;' >&2\nexit 2\n"})
	log := filepath.Join(t.TempDir(), "builds")
	for _, revision := range []string{main, WorkingTree, ""} {
		v := newVersions(t, Options{})
		for range 3 {
			_, err := v.Make(t.Context(), Ask{Service: "app", Dir: dir, Revision: revision, Build: []string{"./build.sh", log}, Mark: "m"})
			b, is := errors.AsType[*BuildError](err)
			if !is {
				t.Fatal(err)
			}
			if want := "build failed (exit 2): ./build.sh " + log; b.Why != want || !strings.HasSuffix(b.Output, "line 999\nline 1000\napp.c:3: error: expected ;") || strings.Count(b.Output, "\n") != lastLines-1 {
				t.Errorf("%+v", b)
			}
			_, whole, _ := strings.Cut(b.Hint(), " is in ")
			if said := get(t, whole); strings.Count(said, "\n") != 1001 {
				t.Errorf("%s has %d lines", whole, strings.Count(said, "\n"))
			}
		}
	}
	if builds := get(t, log); builds != "x\nx\nx\n" {
		t.Errorf("built %q: a build that failed is not to be repeated", builds)
	}
	for _, c := range []struct {
		why   string
		build []string
	}{
		{"build: command not found: nosuch", []string{"nosuch"}},
		{"build: command not found: ./nosuch", []string{"./nosuch", "x"}},
		{"build: ./plain is not executable", []string{"./plain"}},
		{"build failed (signal: killed): sh -c kill -9 $$", []string{"sh", "-c", "kill -9 $$"}},
	} {
		_, err := newVersions(t, Options{}).Make(t.Context(), Ask{Dir: dir, Revision: main, Build: c.build})
		if b, is := errors.AsType[*BuildError](err); !is || b.Why != c.why {
			t.Errorf("%v, want %s", err, c.why)
		}
	}
}

// forked waits until a build has written the number of a process that it has
// started, and returns it.
func forked(t *testing.T, file string) int {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		if b, err := os.ReadFile(file); err == nil && strings.HasSuffix(string(b), "\n") {
			pid, err := strconv.Atoi(strings.TrimSpace(string(b)))
			if err != nil {
				t.Fatal(err)
			}
			return pid
		}
	}
	t.Fatalf("%s was never written", file)
	return 0
}

func alive(pid int) bool {
	s, err := kernel.ReadStat(pid)
	return err == nil && s.Alive()
}

// A build that is interrupted ends with all that it started, and is made again
// from the beginning.
func TestInterruptedBuild(t *testing.T) {
	dir, main, _ := newRepo(t, map[string]string{"speed": "slow\n", "build.sh": `#!/bin/sh
trap '' TERM
if [ -e "$1" ]; then cp speed app; exit; fi
touch half
setsid sleep 1000 &
echo $! > "$1"
sleep 1000
`})
	for _, revision := range []string{main, ""} {
		file := filepath.Join(t.TempDir(), "pid")
		v := newVersions(t, Options{Grace: 50 * time.Millisecond}) // TERM is ignored
		ask := Ask{Service: "app", Dir: dir, Revision: revision, Build: []string{"./build.sh", file}, Mark: "mark-" + revision}
		ctx, cancel := context.WithCancelCause(t.Context())
		stopped := errors.New("stopped")
		done := make(chan error)
		go func() {
			_, err := v.Make(ctx, ask)
			done <- err
		}()
		pid := forked(t, file)
		cancel(stopped)
		if err := <-done; !errors.Is(err, stopped) {
			t.Fatalf("%v", err)
		}
		if alive(pid) {
			t.Errorf("pid %d is still there", pid)
		}
		if revision != "" {
			if left, err := filepath.Glob(filepath.Join(v.opt.Dir, "*", aboutFile)); err != nil || len(left) > 0 {
				t.Errorf("a version that seems finished: %v (%v)", left, err)
			}
		}
		got := make1(t, v, ask)
		_, err := os.Stat(filepath.Join(got.Dir, "half"))
		if get(t, got.Dir, "app") != "slow\n" || revision != "" && !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("built on: %v", err)
		}
	}
}

func TestLimit(t *testing.T) {
	dir, main, _ := newRepo(t, nil)
	v := newVersions(t, Options{Limit: 50 * time.Millisecond})
	_, err := v.Make(t.Context(), Ask{Dir: dir, Revision: main, Build: []string{"sh", "-c", "echo waiting; sleep 1000"}, Mark: "limit"})
	if b, is := errors.AsType[*BuildError](err); !is || b.Why != "build did not end within 50ms: sh -c echo waiting; sleep 1000" {
		t.Errorf("%v", err)
	}
}

// What a build leaves running has ended before a trial begins.
func TestLeftRunning(t *testing.T) {
	dir, main, _ := newRepo(t, nil)
	file := filepath.Join(t.TempDir(), "pid")
	v := newVersions(t, Options{})
	make1(t, v, Ask{Dir: dir, Revision: main, Build: []string{"sh", "-c", "setsid sleep 1000 & echo $! > '" + file + "'"}})
	if pid := forked(t, file); alive(pid) {
		t.Errorf("pid %d is still there", pid)
	}
}

// Builds get the agent's environment without what is hakaru's own or says which
// repository is meant; what is known to decide a build names the version.
func TestBuildEnviron(t *testing.T) {
	dir, main, _ := newRepo(t, nil)
	keys := map[string]bool{}
	for _, extra := range []string{"", "HAKARU_STORE=x", "GIT_DIR=/nonexistent", "TERM=x", "CFLAGS=-O2", "GOFLAGS=-race"} {
		v := newVersions(t, Options{})
		v.opt.Environ = append(v.opt.Environ, extra)
		got := make1(t, v, Ask{Dir: dir, Revision: main, Build: []string{"sh", "-c", "env > environ"}, Mark: "the-mark"})
		said := get(t, got.Dir, "environ")
		own := strings.HasPrefix(extra, "HAKARU_") || strings.HasPrefix(extra, "GIT_DIR")
		if extra != "" && strings.Contains(said, extra+"\n") == own || !strings.Contains(said, kernel.MarkVariable+"=the-mark\n") {
			t.Errorf("%s: the build has\n%s", extra, said)
		}
		keys[filepath.Base(filepath.Join(got.Dir, "..", ".."))] = true
	}
	if len(keys) != 3 {
		t.Errorf("%d versions, want 3", len(keys))
	}
}
