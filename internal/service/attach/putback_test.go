package attach

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

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
