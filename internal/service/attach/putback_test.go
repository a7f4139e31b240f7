package attach

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"hakaru"
	"hakaru/internal/service/registry"
	"hakaru/internal/watch/kernel"
)

// abandoned writes the record of an agent that was killed after it had applied.
func (s server) abandoned(state string, change func(*registry.Record)) {
	s.t.Helper()
	files, err := registry.Open(state)
	if err != nil {
		s.t.Fatal(err)
	}
	id, err := registry.NewID()
	if err != nil {
		s.t.Fatal(err)
	}
	boot, err := kernel.BootID()
	if err != nil {
		s.t.Fatal(err)
	}
	rec := registry.Record{
		Format: registry.Format, ID: id, Boot: boot, Dir: filepath.Join(s.dir, "hakaru-"+id),
		Owner: registry.Owner{PID: 1 << 22, Start: 1}, // above the kernel's largest
		Units: []registry.Unit{{Service: "app", Undo: &registry.Undo{
			Words: []string{"./undo"}, Dir: s.dir, Env: []string{"PATH=" + os.Getenv("PATH")},
			Timeout: 10 * time.Second, Ready: s.ready(), Restarts: true,
		}}},
	}
	if err := os.Mkdir(rec.Dir, 0o700); err != nil {
		s.t.Fatal(err)
	}
	if change != nil {
		change(&rec)
	}
	if err := files.Write(rec, true); err != nil {
		s.t.Fatal(err)
	}
	s.write("conf", "new")
	if out, err := exec.Command(s.path("restart")).CombinedOutput(); err != nil {
		s.t.Fatalf("restart: %v\n%s", err, out)
	}
}

func left(t *testing.T, state string) int {
	t.Helper()
	entries, err := os.ReadDir(state)
	if err != nil {
		t.Fatal(err)
	}
	return len(entries)
}

func TestPutBack(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*registry.Record)
	}{
		{"killed", nil},
		{"reboot", func(r *registry.Record) { r.Boot = "another"; r.Owner.PID = os.Getpid() }},
		{"private directory is gone", func(r *registry.Record) {
			if err := os.Remove(r.Dir); err != nil {
				t.Fatal(err)
			}
		}},
		{"environment of the sweeper has no PATH", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newServer(t, "serve")
			state := filepath.Join(t.TempDir(), "state")
			s.abandoned(state, c.change)
			if _, err := registry.Sweep(t.Context(), state); err != nil || left(t, state) != 1 {
				t.Errorf("a sweep alone: %v, %d notes; it must keep what is not put back", err, left(t, state))
			}
			environ := os.Environ()
			if strings.HasPrefix(c.name, "environment") {
				environ = []string{"PATH=/nowhere"}
			}
			w, err := PutBack(t.Context(), state, environ)
			if err != nil || len(w) != 1 || w[0].Code != "put_back" || !strings.Contains(w[0].Message, "service app had been changed") {
				t.Errorf("put back: %v, %v", w, err)
			}
			if got := s.answers(); got != "old" {
				t.Errorf("afterwards it answers %q", got)
			}
			server := s.pid()
			if w, err := registry.Sweep(t.Context(), state); err != nil || len(w) != 0 || left(t, state) != 0 {
				t.Errorf("sweep afterwards: %v, %v, %d notes", w, err, left(t, state))
			}
			if st, err := kernel.ReadStat(server); err != nil || !st.Alive() {
				t.Errorf("the sweep ended the service: %v", err)
			}
			if w, err := PutBack(t.Context(), state, environ); err != nil || len(w) != 0 {
				t.Errorf("again: %v, %v", w, err)
			}
			if log := s.read("log"); log != "undo\n" {
				t.Errorf("commands were %q", log)
			}
		})
	}
}

// Several commands of a person at once run undo once.
func TestPutBackOnce(t *testing.T) {
	s := newServer(t, "serve")
	state := filepath.Join(t.TempDir(), "state")
	s.abandoned(state, nil)
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			if _, err := PutBack(t.Context(), state, os.Environ()); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	if log := s.read("log"); log != "undo\n" {
		t.Errorf("commands were %q", log)
	}
}

// What a living agent has changed is its own business.
func TestPutBackSparesTheLiving(t *testing.T) {
	s := newServer(t, "serve")
	state := filepath.Join(t.TempDir(), "state")
	s.abandoned(state, func(r *registry.Record) {
		self, err := registry.Self()
		if err != nil {
			t.Fatal(err)
		}
		r.Owner = self
	})
	if w, err := PutBack(t.Context(), state, os.Environ()); err != nil || len(w) != 0 || s.read("log") != "" {
		t.Errorf("%v, %v, ran %q", w, err, s.read("log"))
	}
}

// An undo that fails is told each time with what to do, tried a few times, and
// never forgotten.
func TestPutBackFails(t *testing.T) {
	s := newServer(t, "serve")
	state := filepath.Join(t.TempDir(), "state")
	s.abandoned(state, nil)
	s.script("undo", "echo undo >> log; echo read-only file system >&2; exit 9")
	for i := range mostTries + 2 {
		_, err := PutBack(t.Context(), state, os.Environ())
		if err == nil {
			t.Fatalf("try %d: no error", i+1)
		}
		for _, part := range []string{"service app was changed", "NOT put back", "undo failed (exit status 9)", "run by hand: cd " + s.dir + " && ./undo"} {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("try %d: %q is not said in: %v", i+1, part, err)
			}
		}
		if told := strings.Contains(err.Error(), "does not try again"); told != (i >= mostTries) {
			t.Errorf("try %d: %v", i+1, err)
		}
		if left(t, state) != 1 {
			t.Errorf("try %d: the note is gone", i+1)
		}
	}
	if n := strings.Count(s.read("log"), "undo"); n != mostTries {
		t.Errorf("undo was run %d times", n)
	}
}

// An undo that ends well and leaves the service down is tried again; where a
// person has brought the service up, nothing is left to do.
func TestPutBackLeavesItDown(t *testing.T) {
	for _, tries := range []int{1, mostTries} {
		s := newServer(t, "serve")
		state := filepath.Join(t.TempDir(), "state")
		s.abandoned(state, func(r *registry.Record) { r.Units[0].Undo.Timeout = 300 * time.Millisecond })
		s.script("undo", `echo undo >> log; echo old > conf; kill -9 "$(cat pid)"; exit 0`)
		for range tries {
			_, err := PutBack(t.Context(), state, os.Environ())
			if err == nil || !strings.Contains(err.Error(), "undo ended well, and it does not answer rightly") || left(t, state) != 1 {
				t.Errorf("%v, %d notes", err, left(t, state))
			}
		}
		if out, err := exec.Command(s.path("start")).CombinedOutput(); err != nil {
			t.Fatalf("start: %v\n%s", err, out)
		}
		w, err := PutBack(t.Context(), state, os.Environ())
		if err != nil || len(w) != 1 || w[0].Code != "put_back" || !strings.Contains(w[0].Message, "service app answers rightly again") {
			t.Errorf("put back: %v, %v", w, err)
		}
		if _, err := registry.Sweep(t.Context(), state); err != nil || left(t, state) != 0 {
			t.Errorf("sweep afterwards: %v, %d notes", err, left(t, state))
		}
		if n := strings.Count(s.read("log"), "undo"); n != tries {
			t.Errorf("undo was run %d times", n)
		}
	}
}

// A person's Ctrl-C does not cut an undo in half: it is carried through, and what
// comes after it is left for the next command.
func TestPutBackInterrupted(t *testing.T) {
	first, second := newServer(t, "serve"), newServer(t, "serve")
	state := filepath.Join(t.TempDir(), "state")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	for _, s := range []server{first, second} {
		s.abandoned(state, nil)
		s.script("undo", "touch begun; while ! [ -e go ]; do sleep 0.01; done; echo undo >> log; echo old > conf; exec ./restart")
	}
	type result struct {
		warnings []hakaru.Warning
		err      error
	}
	done := make(chan result)
	go func() {
		w, err := PutBack(ctx, state, os.Environ())
		done <- result{w, err}
	}()
	begun := func(s server) bool {
		_, err := os.Stat(s.path("begun"))
		return err == nil
	}
	for !begun(first) && !begun(second) {
		time.Sleep(firstPause) // there is no event for what another program does
	}
	cancel()
	for _, s := range []server{first, second} {
		s.write("go", "")
	}
	if got := <-done; !errors.Is(got.err, context.Canceled) || len(got.warnings) != 1 || got.warnings[0].Code != "put_back" {
		t.Errorf("interrupted: %v, %v", got.warnings, got.err)
	}
	if log := first.read("log") + second.read("log"); log != "undo\n" {
		t.Errorf("commands were %q", log)
	}
	if w, err := PutBack(t.Context(), state, os.Environ()); err != nil || len(w) != 1 {
		t.Errorf("the next command: %v, %v", w, err)
	}
	if got := first.answers() + " " + second.answers(); got != "old old" {
		t.Errorf("afterwards they answer %q", got)
	}
}

// A note that cannot be read keeps nothing else from being put back.
func TestPutBackBesideUnreadable(t *testing.T) {
	s := newServer(t, "serve")
	state := filepath.Join(t.TempDir(), "state")
	s.abandoned(state, nil)
	bad := filepath.Join(state, "0000000000000000.json") // before the good one
	if err := os.WriteFile(bad, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if found, err := registry.Abandoned(state); err == nil || !strings.Contains(err.Error(), bad) || len(found) != 1 {
		t.Errorf("abandoned: %v, %v", found, err)
	}
	w, err := PutBack(t.Context(), state, os.Environ())
	if err == nil || !strings.Contains(err.Error(), bad) || len(w) != 1 || w[0].Code != "put_back" {
		t.Errorf("put back: %v, %v", w, err)
	}
	if got := s.answers(); got != "old" {
		t.Errorf("afterwards it answers %q", got)
	}
}

// A command of the killed agent that still runs is waited for: undo must not
// come before the end of apply.
func TestPutBackWaits(t *testing.T) {
	for _, noted := range []bool{true, false} {
		s := newServer(t, "serve")
		state := filepath.Join(t.TempDir(), "state")
		s.script("slow", "sleep 0.3; echo slow >> log")
		out, err := os.Create(s.path("slow.out"))
		if err != nil {
			t.Fatal(err)
		}
		slow := exec.Command(s.path("slow"))
		slow.Stdout, slow.SysProcAttr = out, &syscall.SysProcAttr{Setsid: true}
		var waited sync.WaitGroup
		s.abandoned(state, func(r *registry.Record) {
			if err := slow.Start(); err != nil {
				t.Fatal(err)
			}
			waited.Go(func() { _ = slow.Wait() })
			c := &registry.Command{What: "apply", Output: out.Name()}
			if noted {
				st, err := kernel.ReadStat(slow.Process.Pid)
				if err != nil {
					t.Fatal(err)
				}
				c.PID, c.Start = st.PID, st.Start
			}
			r.Units[0].Undo.Running = c
		})
		if _, err := PutBack(t.Context(), state, os.Environ()); err != nil {
			t.Fatal(err)
		}
		waited.Wait()
		if err := out.Close(); err != nil {
			t.Error(err)
		}
		if log := s.read("log"); log != "slow\nundo\n" {
			t.Errorf("noted %v: commands were %q", noted, log)
		}
	}
}

// A command that overruns is ended with what it waits for; the service that it
// left in its own session is not.
func TestOverrunSparesTheService(t *testing.T) {
	s := newServer(t, "serve")
	before := s.pid()
	r := runner{dir: s.dir, env: os.Environ(), limit: time.Second, outputs: t.TempDir(), ready: s.ready()}
	var c registry.Command
	err := r.run(t.Context(), "restart", []string{"sh", "-c", "./restart; sleep 1000 & wait"}, func(noted *registry.Command) error {
		c = *noted
		return nil
	})
	if err == nil || !strings.Contains(err.Error(), "it took longer than 1s") {
		t.Fatalf("got %v", err)
	}
	now := s.pid()
	st, err := kernel.ReadStat(now)
	if err != nil || now == before || !st.Alive() || st.Session != c.PID {
		t.Fatalf("the service is pid %d (before %d): %+v, %v; want it alive in session %d", now, before, st, err, c.PID)
	}
	pids, err := kernel.PIDs(nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, pid := range pids {
		if st, err := kernel.ReadStat(pid); err == nil && st.Session == c.PID && pid != now && st.Alive() {
			t.Errorf("left in the session: %s", kernel.Describe(pid))
		}
	}
}
