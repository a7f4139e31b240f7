package service

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"hakaru"
	"hakaru/internal/service/output"
	"hakaru/internal/watch/kernel"
)

// both runs a test with cgroups, where the machine lets one make them, and
// without.
func both(t *testing.T, f func(t *testing.T, opt Options)) {
	t.Helper()
	for name, without := range map[string]bool{"cgroup": false, "no-cgroup": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // they wait more than they work
			opt := options(t)
			opt.NoCgroup = without
			f(t, opt)
			nothingIn(t, opt.StateDir)
			nothingIn(t, opt.TempDir)
		})
	}
}

func options(t *testing.T) Options {
	t.Helper()
	dir, err := os.MkdirTemp("", "hk") // short: socket paths are
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	// Users other than root must be able to pass through.
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	temp := filepath.Join(dir, "t")
	if err := os.Mkdir(temp, 0o755); err != nil {
		t.Fatal(err)
	}
	return Options{StateDir: filepath.Join(dir, "s"), TempDir: temp, Exe: "/opt/hakaru", Environ: os.Environ()}
}

func nothingIn(t *testing.T, dir string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	for _, e := range entries {
		t.Errorf("left behind: %s", filepath.Join(dir, e.Name()))
	}
}

// nobodyMarked checks that no process carries a mark of the place.
func nobodyMarked(t *testing.T, id string) {
	t.Helper()
	pids, err := kernel.PIDs(nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, pid := range pids {
		if strings.HasPrefix(kernel.MarkOf(pid), id+".") {
			t.Errorf("pid %d (%s) is left", pid, kernel.Describe(pid))
		}
	}
}

func mustUp(t *testing.T, b hakaru.Bundle, opt Options) *Stack {
	t.Helper()
	s, err := Up(t.Context(), b, opt)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Down(context.Background()) })
	return s
}

func down(t *testing.T, s *Stack) hakaru.Leftovers {
	t.Helper()
	left := s.Down(context.Background())
	nobodyMarked(t, s.Place().ID)
	return left
}

func TestUpAndDown(t *testing.T) {
	both(t, func(t *testing.T, opt Options) {
		u := fixtureUnit("app", "serve")
		u.Argv = append(u.Argv, "{http.port}", "{hakaru.exe}", "{other}")
		u.Files = []hakaru.File{
			{Path: "conf/app.ini", Content: "listen = {http}\ndir = {hakaru.dir}\n"},
			{Path: "run.sh", Content: "#!/bin/sh\n", Mode: 0o700},
		}
		s := mustUp(t, one(u), opt)
		place := s.Place()
		if len(place.Units) != 1 || len(place.Answers) != 1 || !strings.Contains(place.Answers[0].Got, "200 OK: fib is 6765") {
			t.Fatalf("place: %+v", place)
		}
		unit := place.Units[0]
		if (unit.Cgroup == "") != (opt.NoCgroup || hasWarning(s.Warnings(), "no_cgroup")) {
			t.Errorf("cgroup %q, warnings %v", unit.Cgroup, s.Warnings())
		}
		port := place.Names["http.port"]
		if got := unit.Argv[2:]; !slices.Equal(got, []string{port, "/opt/hakaru", "{other}"}) {
			t.Errorf("argv %q", got)
		}
		words, err := kernel.Cmdline(unit.PID)
		if err != nil || !slices.Equal(words, unit.Argv) {
			t.Errorf("cmdline %q, %v", words, err)
		}
		want := "listen = 127.0.0.1:" + port + "\ndir = " + place.Dir + "\n"
		got, err := os.ReadFile(filepath.Join(place.Dir, "conf/app.ini"))
		if err != nil || string(got) != want || unit.Files[0].Content != want {
			t.Errorf("file %q, %v; want %q", got, err, want)
		}
		for name, mode := range map[string]fs.FileMode{"": 0o700, "conf": 0o700, "conf/app.ini": 0o600, "run.sh": 0o700} {
			info, err := os.Stat(filepath.Join(place.Dir, name))
			if err != nil || info.Mode().Perm() != mode {
				t.Errorf("%s: mode %v, %v; want %v", name, info.Mode(), err, mode)
			}
		}
		info, err := os.Stat(filepath.Join(opt.StateDir, place.ID+".json"))
		if err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("record: %v, %v", info, err)
		}
		if e := s.Ended(); len(e) != 0 {
			t.Errorf("ended: %v", e)
		}
		left := down(t, s)
		if len(left.Warnings) != 0 || len(left.Exits) != 1 || left.Exits[0].State != "exit status 0" || left.Exits[0].Forced {
			t.Errorf("leftovers: %+v", left)
		}
		if !strings.Contains(left.Outputs[0].Text, "told to end") {
			t.Errorf("output %q", left.Outputs[0].Text)
		}
		if again := s.Down(context.Background()); len(again.Exits) != 1 {
			t.Errorf("second Down: %+v", again)
		}
	})
}

func hasWarning(list []hakaru.Warning, code string) bool {
	return slices.ContainsFunc(list, func(w hakaru.Warning) bool { return w.Code == code })
}

func TestLeasedUnixSocket(t *testing.T) {
	both(t, func(t *testing.T, opt Options) {
		u := fixtureUnit("app", "serve")
		setenv(&u, "LISTEN", "{http.url}")
		u.Ready = hakaru.Ready{Connect: "{http}", Timeout: 20 * time.Second}
		b := one(u)
		b.Leases[0].Unix = true
		s := mustUp(t, b, opt)
		if path := s.Place().Names["http"]; filepath.Dir(path) != s.Place().Dir {
			t.Errorf("socket at %s", path)
		}
		if left := down(t, s); len(left.Warnings) != 0 {
			t.Errorf("warnings %v", left.Warnings)
		}
	})
}

func TestStopHarder(t *testing.T) {
	tests := []struct {
		mode, code, state string
		forced            bool
	}{
		{"stubborn", "killed", "signal: killed", true},
		{"workers", "left_behind", "exit status 0", false},
	}
	for _, tt := range tests {
		t.Run(tt.mode, func(t *testing.T) {
			both(t, func(t *testing.T, opt Options) {
				u := fixtureUnit("app", tt.mode)
				u.Stop.Grace = 300 * time.Millisecond
				if tt.mode == "workers" {
					u.Stop.Grace = 5 * time.Second
				}
				s := mustUp(t, one(u), opt)
				left := down(t, s)
				if !hasWarning(left.Warnings, tt.code) || left.Exits[0].State != tt.state || left.Exits[0].Forced != tt.forced {
					t.Errorf("leftovers %+v", left)
				}
			})
		})
	}
}

// A cancelled Down does not wait out the grace, and still leaves nothing.
func TestDownCancelled(t *testing.T) {
	both(t, func(t *testing.T, opt Options) {
		u := fixtureUnit("app", "stubborn")
		u.Stop.Grace = time.Hour
		s := mustUp(t, one(u), opt)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if left := s.Down(ctx); !left.Exits[0].Forced {
			t.Errorf("leftovers %+v", left)
		}
		nobodyMarked(t, s.Place().ID)
	})
}

func TestUpCancelled(t *testing.T) {
	both(t, func(t *testing.T, opt Options) {
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		defer cancel()
		if _, err := Up(ctx, one(fixtureUnit("app", "quiet")), opt); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("error %v", err)
		}
	})
}

// The second unit fails: the first, which was up, is stopped.
func TestSecondUnitFails(t *testing.T) {
	both(t, func(t *testing.T, opt Options) {
		b := one(fixtureUnit("app", "serve"))
		b.Units = append(b.Units, fixtureUnit("front", "exit"))
		b.Units[1].Ready.Get = "http://{front}/"
		b.Leases = append(b.Leases, hakaru.Lease{Name: "front"})
		_, err := Up(t.Context(), b, opt)
		var start *StartError
		if !errors.As(err, &start) || start.Service != "front" || len(start.Left.Exits) != 2 {
			t.Fatalf("error %v, %+v", err, start)
		}
	})
}

func TestEnded(t *testing.T) {
	both(t, func(t *testing.T, opt Options) {
		s := mustUp(t, one(fixtureUnit("app", "dies")), opt)
		<-s.units[0].process.Ended()
		ended := s.Ended()
		if len(ended) != 1 || ended[0].State != "exit status 3" {
			t.Errorf("ended %+v", ended)
		}
		if left := down(t, s); left.Exits[0].State != "exit status 3" || left.Exits[0].Forced {
			t.Errorf("leftovers %+v", left)
		}
	})
}

func TestOutputIsBounded(t *testing.T) {
	t.Parallel()
	u := fixtureUnit("app", "flood")
	u.Ready = hakaru.Ready{Log: "flood is over", Timeout: 20 * time.Second}
	s := mustUp(t, one(u), options(t))
	out := down(t, s).Outputs[0]
	if len(out.Text) > output.Kept+100 || out.Cut < 7<<20 {
		t.Errorf("kept %d, cut %d", len(out.Text), out.Cut)
	}
	if !strings.HasPrefix(out.Text, "fixture flood begins\n") || !strings.HasSuffix(out.Text, "flood is over\n") {
		t.Errorf("output begins %q and ends %q", out.Text[:40], out.Text[len(out.Text)-40:])
	}
}

func TestUserAndCPUs(t *testing.T) {
	if _, err := user.Lookup("nobody"); err != nil {
		t.Logf("this machine has no user nobody (%v); the error for that is in TestStartErrors", err)
		return
	}
	both(t, func(t *testing.T, opt Options) {
		u := fixtureUnit("app", "serve")
		u.User, u.CPUs = "nobody", []int{0}
		u.Argv = []string{"/bin/sh", "-c", "grep -E '^(Uid|Groups|Cpus_allowed_list)' /proc/self/status; id -u; cat \"$1\"; exec sleep 600", "sh", "{hakaru.dir}/conf"}
		u.Files = []hakaru.File{{Path: "conf", Content: "secret of nobody\n"}}
		u.Ready = hakaru.Ready{Log: "secret of nobody"}
		if me, err := user.Current(); err != nil || me.Username != "nobody" && os.Geteuid() != 0 {
			if _, err := Up(t.Context(), one(u), opt); err == nil || !strings.Contains(err.Error(), "only root may start") {
				t.Errorf("error %v", err)
			}
			return
		}
		s := mustUp(t, one(u), opt)
		out := down(t, s).Outputs[0].Text
		if !strings.Contains(out, "Cpus_allowed_list:\t0\n") || strings.Contains(out, "Uid:\t0") {
			t.Errorf("output %q", out)
		}
	})
}

func TestSignals(t *testing.T) {
	for name, want := range map[string]int{"": 15, "TERM": 15, "SIGINT": 2, "quit": 3, "USR1": 10, "9": 9} {
		if got, err := signalByName(name); err != nil || int(got) != want {
			t.Errorf("%q: %v, %v", name, got, err)
		}
	}
	if got, err := signalByName("STOPPIT"); err == nil || int(got) != 15 {
		t.Errorf("unknown signal: %v, %v", got, err)
	}
}

func TestStateDirOfOthersRefused(t *testing.T) {
	opt := options(t)
	if err := os.Mkdir(opt.StateDir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(opt.StateDir, 0o777); err != nil {
		t.Fatal(err)
	}
	if _, err := Up(t.Context(), one(fixtureUnit("app", "serve")), opt); err == nil || !strings.Contains(err.Error(), "nobody else may write") {
		t.Errorf("error %v", err)
	}
}
