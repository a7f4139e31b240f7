package service

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"hakaru"
	"hakaru/internal/checkout"
)

// app is a repository with a program that is made of this test binary. The branch
// slow takes its time to build, broken does not build.
func app(t *testing.T) (dir string, commits map[string]string) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "app")
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	git := func(args ...string) string {
		t.Helper()
		cmd := exec.Command("git", append([]string{"-C", dir, "-c", "user.name=a", "-c", "user.email=a@example.com"}, args...)...)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
		return strings.TrimSpace(string(out))
	}
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	git("init", "-q", "-b", "main")
	commits = map[string]string{}
	for _, c := range []struct{ branch, build string }{
		{"main", "ln -s '" + exe + "' app"},
		{"slow", "sleep 0.5; ln -s '" + exe + "' app"},
		{"broken", "echo 'app.c:1: error'; exit 2"},
	} {
		if c.branch != "main" {
			git("checkout", "-q", "-b", c.branch)
		}
		if err := os.WriteFile(filepath.Join(dir, "build.sh"), []byte(c.build+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		git("add", "-A")
		git("commit", "-q", "-m", c.branch)
		commits[c.branch] = git("rev-parse", "HEAD")
	}
	return dir, commits
}

// versionUnit runs the program of a version.
func versionUnit(dir, commit string) hakaru.Unit {
	u := fixtureUnit("app", "serve")
	u.Argv[0], u.Dir, u.Revision, u.Build = "./app", dir, commit, []string{"sh", "build.sh"}
	return u
}

func versionOptions(t *testing.T) Options {
	t.Helper()
	v := checkout.New(checkout.Options{Dir: filepath.Join(t.TempDir(), "versions"), Environ: os.Environ()})
	t.Cleanup(func() {
		if err := v.Close(); err != nil {
			t.Error(err)
		}
	})
	return Options{StateDir: filepath.Join(t.TempDir(), "state"), TempDir: t.TempDir(), Environ: os.Environ(), Versions: v}
}

// A unit runs from its version; the time of the build is no part of its start;
// the commit is proved.
func TestVersion(t *testing.T) {
	dir, commits := app(t)
	opt := versionOptions(t)
	for range 2 {
		s, err := Up(t.Context(), one(versionUnit(dir, commits["slow"])), opt)
		if err != nil {
			t.Fatal(err)
		}
		place := s.Place()
		proofs := s.Prove(t.Context(), []hakaru.Ask{
			{Service: "app", Setting: "git", Asked: "slow", Kind: "revision", Equals: commits["slow"]},
			{Service: "app", Setting: "git", Asked: "main", Kind: "revision", Equals: commits["main"]},
		}, hakaru.AtReady)
		cwd, linkErr := os.Readlink("/proc/" + strconv.Itoa(place.Units[0].PID) + "/cwd")
		s.Down(t.Context())
		if linkErr != nil || strings.HasPrefix(cwd, dir) || filepath.Base(cwd) != "app" {
			t.Errorf("it runs in %s (%v)", cwd, linkErr)
		}
		if place.Units[0].Commit != commits["slow"] || proofs[0].Holds != hakaru.Yes || proofs[1].Holds != hakaru.No {
			t.Errorf("commit %s, proofs %+v", place.Units[0].Commit, proofs)
		}
		// The first time it is built, which takes half a second and more.
		if built := place.Built >= 500*time.Millisecond; built && place.Took >= place.Built {
			t.Errorf("start took %s, with a build of %s", place.Took, place.Built)
		}
	}
	if left, err := os.ReadDir(opt.TempDir); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v (%v)", left, err)
	}
}

func TestVersionNotBuilt(t *testing.T) {
	dir, commits := app(t)
	opt := versionOptions(t)
	_, err := Up(t.Context(), one(versionUnit(dir, commits["broken"])), opt)
	start, is := errors.AsType[*StartError](err)
	if !is || start.Why != "build failed (exit 2): sh build.sh" || start.Output != "app.c:1: error" || !strings.Contains(start.Hint, "build.log") {
		t.Errorf("%+v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err = Up(ctx, one(versionUnit(dir, commits["main"])), opt); !errors.Is(err, context.Canceled) {
		t.Errorf("interrupted: %v", err)
	}
	opt.Versions = nil
	if _, err = Up(t.Context(), one(versionUnit(dir, commits["main"])), opt); err == nil || !strings.Contains(err.Error(), "no place to build in") {
		t.Errorf("without a place: %v", err)
	}
	for _, d := range []string{opt.TempDir, opt.StateDir} {
		if left, err := os.ReadDir(d); err != nil || len(left) > 0 {
			t.Errorf("left behind: %v (%v)", left, err)
		}
	}
}
