package attach

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"hakaru"
	"hakaru/internal/service/registry"
	"hakaru/internal/watch/kernel"
)

// notes is what was noted, as it was at the time.
type notes struct {
	list   []*registry.Undo
	synced []bool
	first  func() // called at the first note
}

func (n *notes) note(undo *registry.Undo, sync bool) error {
	if len(n.list) == 0 && n.first != nil {
		n.first()
	}
	if undo != nil {
		copied := *undo
		undo = &copied
	}
	n.list, n.synced = append(n.list, undo), append(n.synced, sync)
	return nil
}

func newService(t *testing.T, u hakaru.Unit, n *notes) *Service {
	t.Helper()
	return New(Options{Unit: u, Dir: t.TempDir(), Environ: append(os.Environ(), "HAKARU_MARK=no", "SECRET=of the person"), Note: n.note})
}

func hasWarning(list []hakaru.Warning, code string) bool {
	return slices.ContainsFunc(list, func(w hakaru.Warning) bool { return w.Code == code })
}

func TestApplyRestartUndo(t *testing.T) {
	for _, mode := range []string{"serve", "master"} {
		t.Run(mode, func(t *testing.T) {
			s := newServer(t, mode)
			before := s.pid()
			n := &notes{first: func() {
				if s.read("log") != "" {
					t.Error("apply ran before it was noted how to put back")
				}
			}}
			secret := "x"
			u := s.unit()
			u.Env = []hakaru.EnvVar{{Name: "DB_PASSWORD", Value: &secret}}
			a := newService(t, u, n)
			answers, err := a.Up(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if len(answers) != 1 || answers[0].Got != "200 OK: new" {
				t.Errorf("answers %+v", answers)
			}
			if !n.synced[0] || n.list[0] == nil || n.list[0].Words[0] != "./undo" || !n.list[0].Restarts {
				t.Errorf("the first note is %+v, synced %v", n.list[0], n.synced[0])
			}
			env := strings.Join(n.list[0].Env, "\n")
			if !strings.Contains(env, "PATH=") || !strings.Contains(env, "DB_PASSWORD=x") || strings.Contains(env, "SECRET") || strings.Contains(env, "HAKARU") {
				t.Errorf("noted of the environment: %s", env)
			}
			g := a.Group()
			if g.Leader == before || g.Leader != s.pid() {
				t.Errorf("it is pid %d, was %d, and pid %d was found", s.pid(), before, g.Leader)
			}
			members, err := g.Members()
			if want := map[string]int{"serve": 1, "master": 2}[mode]; err != nil || len(members) != want {
				t.Errorf("members %v, %v; want %d", members, err, want)
			}
			for _, pid := range members {
				if kernel.MarkOf(pid) != "" {
					t.Errorf("pid %d carries a mark", pid)
				}
			}
			if exit, ended := a.Ended(t.Context()); ended {
				t.Errorf("ended: %+v", exit)
			}
			if w := a.Warnings(); len(w) != 0 {
				t.Errorf("warnings %v", w)
			}
			if err := a.Down(t.Context()); err != nil {
				t.Fatal(err)
			}
			if err := a.Down(t.Context()); err != nil {
				t.Fatal(err)
			}
			if got := s.answers(); got != "old" {
				t.Errorf("afterwards it answers %q", got)
			}
			if log := s.read("log"); log != "apply\nundo\n" {
				t.Errorf("commands were %q", log)
			}
			if last := len(n.list) - 1; n.list[last] != nil || !n.synced[last] {
				t.Errorf("the last note is %+v", n.list[last])
			}
			if w := a.Warnings(); len(w) != 0 {
				t.Errorf("warnings %v", w)
			}
		})
	}
}

func TestNotUp(t *testing.T) {
	s := newServer(t, "serve")
	for name, ready := range map[string]hakaru.Ready{
		"connection refused": {Get: "http://127.0.0.1:1/"},
		"status 204":         {Get: s.ready().Get, Status: 204},
		`contains "young"`:   {Get: s.ready().Get, Body: "young"},
	} {
		u := s.unit()
		u.Ready = ready
		u.Ready.Timeout = 300 * time.Millisecond
		n := &notes{}
		a := newService(t, u, n)
		_, err := a.Up(t.Context())
		var failed *Error
		if !errors.As(err, &failed) || !strings.Contains(err.Error(), "it is not up: ") || !strings.Contains(err.Error(), name) || !strings.HasSuffix(err.Error(), "hakaru does not start it") {
			t.Errorf("%s: %v", name, err)
		}
		if err := a.Down(t.Context()); err != nil || len(n.list) != 0 || s.read("log") != "" {
			t.Errorf("%s: down %v, noted %v, ran %q", name, err, n.list, s.read("log"))
		}
	}
}

// Whatever fails, undo is run once, and the service is as before.
func TestFailures(t *testing.T) {
	for _, c := range []struct {
		name  string
		spoil func(*hakaru.Unit)
		why   string
	}{
		{"apply", func(u *hakaru.Unit) {
			u.Attached.Apply = []string{"sh", "-c", "echo half > conf; echo disk is full >&2; exit 3"}
		}, "apply failed (exit status 3)"},
		{"no such command", func(u *hakaru.Unit) { u.Attached.Apply = []string{"no-such-command"} }, "apply: command not found: no-such-command"},
		{"restart", func(u *hakaru.Unit) { u.Attached.Restart = []string{"sh", "-c", "exit 1"} }, "restart failed (exit status 1)"},
		{"takes it down", func(u *hakaru.Unit) { u.Attached.Restart = []string{"sh", "-c", "kill -9 $(cat pid)"} }, "it did not answer rightly within 1s after restart"},
		{"overruns", func(u *hakaru.Unit) { u.Attached.Restart = []string{"sh", "-c", "sleep 100 & wait"} }, "restart was ended: it took longer than 1s"},
		{"no undo", func(u *hakaru.Unit) { u.Attached.Undo = nil }, "apply without undo"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newServer(t, "serve")
			u := s.unit()
			u.Ready.Timeout = time.Second
			c.spoil(&u)
			n := &notes{}
			a := newService(t, u, n)
			_, err := a.Up(t.Context())
			var failed *Error
			if !errors.As(err, &failed) || !strings.Contains(failed.Why, c.why) {
				t.Fatalf("got %v, want %s", err, c.why)
			}
			if c.name == "apply" && failed.Output != "disk is full" {
				t.Errorf("output %q", failed.Output)
			}
			if err := a.Down(t.Context()); err != nil {
				t.Fatal(err)
			}
			if want := map[bool]int{true: 0, false: 1}[c.name == "no undo"]; strings.Count(s.read("log"), "undo") != want {
				t.Errorf("commands were %q", s.read("log"))
			}
			if got := s.answers(); got != "old" {
				t.Errorf("afterwards it answers %q", got)
			}
		})
	}
}

// A run that ends in the middle of a command gives it time to end, and puts back
// although its context has ended.
func TestCancelled(t *testing.T) {
	s := newServer(t, "serve")
	u := s.unit()
	u.Attached.Apply = []string{"sh", "-c", "echo new > conf; touch begun; while ! [ -e go ]; do sleep 0.01; done; echo apply >> log"}
	ctx, cancel := context.WithCancel(t.Context())
	a := newService(t, u, &notes{})
	done := make(chan error)
	go func() {
		_, err := a.Up(ctx)
		done <- err
	}()
	for s.read("begun") == "" {
		if _, err := os.Stat(s.path("begun")); err == nil {
			break
		}
		time.Sleep(firstPause) // there is no event for what another program does
	}
	cancel()
	s.write("go", "")
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if err := a.Down(ctx); err != nil {
		t.Fatal(err)
	}
	if got, log := s.answers(), s.read("log"); got != "old" || log != "apply\nundo\n" {
		t.Errorf("afterwards it answers %q, commands were %q", got, log)
	}
}

func TestNotRestarted(t *testing.T) {
	s := newServer(t, "serve")
	u := s.unit()
	u.Ready.Timeout = 400 * time.Millisecond // half of it is what a reload may take
	u.Attached.Restart = []string{"true"}
	u.Attached.Undo = []string{"true"}
	a := newService(t, u, &notes{})
	if _, err := a.Up(t.Context()); err != nil {
		t.Fatal(err)
	}
	if w := a.Warnings(); !hasWarning(w, "not_restarted") || !strings.Contains(w[0].Message, "restart did not restart service app") {
		t.Errorf("warnings %v", w)
	}
	if err := a.Down(t.Context()); err != nil {
		t.Fatal(err)
	}
	if w := a.Warnings(); !hasWarning(w, "not_restarted") || !strings.Contains(w[0].Message, "undo did not restart service app") {
		t.Errorf("warnings %v", w)
	}
}

// Where no process of the service is found, the first right answer counts, and
// that nothing shows a restart is told.
func TestNotFound(t *testing.T) {
	s := newServer(t, "serve")
	// By its name it is one that holds the socket for others.
	proxy := filepath.Join(t.TempDir(), "docker-proxy")
	if err := os.Symlink(os.Args[0], proxy); err != nil {
		t.Fatal(err)
	}
	s.write("start", strings.ReplaceAll(s.read("start"), os.Args[0], proxy))
	if out, err := exec.Command(s.path("restart")).CombinedOutput(); err != nil {
		t.Fatalf("restart: %v\n%s", err, out)
	}
	a := newService(t, s.unit(), &notes{})
	if _, err := a.Up(t.Context()); err != nil {
		t.Fatal(err)
	}
	w := a.Warnings()
	if len(w) != 1 || w[0].Code != "not_found" || !strings.Contains(w[0].Message, "are not measured, and nothing shows that restart replaced it") {
		t.Errorf("warnings %v", w)
	}
	if err := a.Down(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// An undo that ends well and leaves the service down has put nothing back: the
// note stays, and the run is to stop.
func TestDownLeavesItDown(t *testing.T) {
	for _, undo := range [][]string{{"sh", "-c", `kill -9 "$(cat pid)"`}, nil} {
		s := newServer(t, "serve")
		secret := "x"
		u := s.unit()
		u.Ready.Timeout = time.Second
		u.Env = []hakaru.EnvVar{{Name: "DB_PASSWORD", Value: &secret}, {Name: "TERM"}}
		u.Attached.Undo = undo
		said := []string{"service app was changed for a trial and is NOT put back", "undo ended well, and it does not answer rightly within 1s", "connection refused",
			"run by hand: cd " + s.dir + " && sh -c ", "with these variables set as env sets them: DB_PASSWORD"}
		if undo == nil {
			u.Attached.Apply, u.Attached.Restart = nil, []string{"sh", "-c", `kill -9 "$(cat pid)"`}
			said = []string{"service app was restarted for a trial and is NOT as before", "does not answer rightly within 1s", "bring it up as you always do"}
		}
		n := &notes{}
		a := newService(t, u, n)
		if _, err := a.Up(t.Context()); (err == nil) != (undo != nil) {
			t.Fatal(err)
		}
		err := a.Down(t.Context())
		for _, part := range said {
			if err == nil || !strings.Contains(err.Error(), part) {
				t.Errorf("undo %q: %q is not said in: %v", undo, part, err)
			}
		}
		last := n.list[len(n.list)-1]
		if last == nil || !last.Ran || last.Tries != 1 || last.Failed == "" || !n.synced[len(n.list)-1] {
			t.Errorf("undo %q: the last note is %+v", undo, last)
		}
		if again := a.Down(t.Context()); again != err {
			t.Errorf("undo %q: a second Down: %v", undo, again)
		}
	}
}

// With neither apply nor restart nothing is noted and nothing is run.
func TestAsItIs(t *testing.T) {
	s := newServer(t, "serve")
	u := s.unit()
	u.Attached = &hakaru.Attached{}
	n := &notes{}
	a := newService(t, u, n)
	if _, err := a.Up(t.Context()); err != nil {
		t.Fatal(err)
	}
	if a.Group().Leader != s.pid() || a.Limit() != 0 {
		t.Errorf("found pid %d of %d, limit %s", a.Group().Leader, s.pid(), a.Limit())
	}
	if err := a.Down(t.Context()); err != nil || len(n.list) != 0 || s.read("log") != "" {
		t.Errorf("down %v, noted %v, ran %q", err, n.list, s.read("log"))
	}
}

func TestEnded(t *testing.T) {
	s := newServer(t, "serve")
	u := s.unit()
	u.Attached = &hakaru.Attached{}
	u.Ready.Get = strings.Replace(u.Ready.Get, "127.0.0.1", "localhost", 1) // to be looked up
	a := newService(t, u, &notes{})
	if _, err := a.Up(t.Context()); err != nil {
		t.Fatal(err)
	}
	old := s.pid()
	n := &notes{}
	other := newService(t, s.unit(), n)
	// A load that has ended ends the watch that asks.
	over, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := other.Up(t.Context()); err != nil { // replaces it
		t.Fatal(err)
	}
	exit, ended := a.Ended(over)
	if !ended || exit.Service != "app" || !strings.Contains(exit.State, "listens in its place") {
		t.Errorf("pid %d became %d: %+v, %v", old, s.pid(), exit, ended)
	}
	if err := unix.Kill(s.pid(), unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if exit, ended = other.Ended(t.Context()); !ended {
		for range 100 { // killed is not yet gone
			time.Sleep(firstPause)
			if exit, ended = other.Ended(t.Context()); ended {
				break
			}
		}
	}
	if !ended || !strings.HasSuffix(exit.State, "ended") {
		t.Errorf("killed: %+v, %v", exit, ended)
	}
	if err := other.Down(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func TestOverlaid(t *testing.T) {
	if got := overlaid([]string{"A=a", "B=b"}, []string{"B=c", "C=d"}); !slices.Equal(got, []string{"A=a", "B=c", "C=d"}) {
		t.Errorf("overlaid %v", got)
	}
}

func TestLastLines(t *testing.T) {
	for text, want := range map[string]string{
		"":                        "",
		"one\ntwo\n\n":            "one\ntwo",
		"bad \xff byte":           "bad \uFFFD byte",
		strings.Repeat("x\n", 50): strings.TrimSuffix(strings.Repeat("x\n", 12), "\n"),
	} {
		if got := lastLines([]byte(text)); got != want {
			t.Errorf("of %q: %q", text, got)
		}
	}
}
