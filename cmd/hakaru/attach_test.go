package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"hakaru"
	"hakaru/internal/watch/kernel"
)

// A real nginx and a real MariaDB stand for services that something else starts:
// daemons of the test, in directories of their own. Whatever happens to a run,
// they are afterwards as they were before it.

// clean checks that nothing of hakaru is left.
func (s site) clean() {
	s.t.Helper()
	if left := leftovers(filepath.Join(s.dir, "state")); left != "" {
		s.t.Errorf("left behind:\n%s", left)
	}
}

// gone waits until an agent whose conductor was killed has put back what it
// changed and has ended.
func (s site) gone() {
	s.t.Helper()
	eventually(s.t, "what the agent of a killed conductor leaves", func() error {
		if left := look(filepath.Join(s.dir, "state")); left != "" {
			return fmt.Errorf("left behind:\n%s", left)
		}
		return nil
	})
}

// failed runs a command that is to end with a code, and returns what it said.
func (s site) failed(code int, args ...string) string {
	s.t.Helper()
	out, err := s.command(args...).CombinedOutput()
	exit, _ := err.(*exec.ExitError)
	if exit == nil && code != 0 || exit != nil && exit.ExitCode() != code {
		s.t.Fatalf("hakaru %s: %v, want exit code %d\n%s", strings.Join(args, " "), err, code, out)
	}
	return string(out)
}

func contains(t *testing.T, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("%q is not said in:\n%s", part, text)
		}
	}
}

// fine checks that a run came to its end, and that no trial of it is void for a
// reason of the service's: other programs on the machine are no matter here.
func (r shown) fine(t *testing.T) {
	t.Helper()
	if r.Run.State != "done" || len(r.plan()) != 5 {
		t.Errorf("the run is %s with %v", r.Run.State, r.plan())
	}
	for _, trial := range r.Trials {
		var void *hakaru.Void
		if len(trial.Void) > 0 {
			if err := json.Unmarshal(trial.Void, &void); err != nil {
				t.Fatal(err)
			}
		}
		if void != nil && void.Reason.Own() {
			t.Errorf("trial %d is void (%s): %s", trial.Seq, void.Reason, void.Evidence)
		}
	}
}

// TestAttachedNginx measures an nginx that hakaru did not start, restarted as a
// whole and reloaded: the settings are in force, proved by the answers of both
// variants, and afterwards it is as before, and is nobody's but its own.
func TestAttachedNginx(t *testing.T) {
	for _, restart := range []string{"replace", "reload"} {
		// One after the other: beside another load the generator would be starved,
		// and the trials void.
		t.Run(restart, func(t *testing.T) {
			n := startNginx(t)
			s := newSite(t, n.experiment(restart))
			s.output("run", "--format", "json", "app.yaml")
			n.same(t)
			s.clean()
			s.report().fine(t)
			// The one that runs now was started by undo.
			master := pidIn(filepath.Join(n.dir, "nginx.pid"))
			environ, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", master))
			if err != nil {
				t.Fatal(err)
			}
			if bytes.Contains(environ, []byte("HAKARU_")) {
				t.Errorf("nginx carries a mark of hakaru's: %q", environ)
			}
			cgroup, err := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", master))
			if err != nil {
				t.Fatal(err)
			}
			if bytes.Contains(cgroup, []byte("hakaru")) {
				t.Errorf("nginx is in a cgroup of hakaru's: %s", cgroup)
			}
			// A sweep does not take it for a leftover.
			s.output("list")
			if now := pidIn(filepath.Join(n.dir, "nginx.pid")); now != master {
				t.Errorf("nginx was pid %d and is %d after a sweep", master, now)
			}
			n.same(t)
		})
	}
}

// TestAttachedFails breaks each part: nothing but the message is left of it.
func TestAttachedFails(t *testing.T) {
	for _, c := range []struct {
		name     string
		from, to string // of the experiment
		said     []string
	}{
		{"apply", `apply: sh -c 'cat "$1" > DIR/nginx.conf' sh {file}`, `apply: sh -c 'cat "$1" > DIR/nginx.conf; echo no room for it; exit 7' sh {file}`,
			[]string{"apply failed (exit status 7)", "no room for it"}},
		{"apply is not there", "apply: sh ", "apply: no-such-command ", []string{"apply: command not found: no-such-command"}},
		{"restart", "restart: DIR/replace", "restart: sh -c 'echo worker_processes many; >> DIR/nginx.conf; sed -i s/worker_processes/worker_proceses/ DIR/nginx.conf; exec DIR/reload'",
			[]string{"restart failed (exit status 1)", `unknown directive "worker_proceses"`}},
		{"restart takes it down", "restart: DIR/replace", "restart: sh -c 'sed -i s/worker_processes/worker_proceses/ DIR/nginx.conf; exec DIR/replace'",
			[]string{"restart failed (exit status 1)", `unknown directive "worker_proceses"`}},
		{"does not come up", "restart: DIR/replace", "restart: sh -c 'kill -QUIT $(cat DIR/nginx.pid)'",
			[]string{"did not answer rightly within 4s after restart", "connection refused", "its own log tells why"}},
		{"overruns", "restart: DIR/replace", "restart: sleep 1000", []string{"restart was ended: it took longer than 4s"}},
		{"wrong answer", `body: "workers="`, `body: "workers=1"`, []string{"did not answer rightly", "workers=2", `"workers=1" is wanted`}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			n := startNginx(t)
			in := strings.NewReplacer("DIR", n.dir)
			text := strings.Replace(n.experiment("replace"), in.Replace(c.from), in.Replace(c.to), 1)
			text = strings.Replace(text, "timeout: 20s", "timeout: 4s", 1)
			if c.name == "restart" || c.name == "restart takes it down" {
				text = strings.Replace(text, "timeout: 4s", "timeout: 20s", 1)
			}
			s := newSite(t, text)
			contains(t, s.failed(1, "try", "app.yaml"), c.said...)
			n.same(t)
			s.clean()
		})
	}
}

// TestAttachedIsNotUp: nothing is changed for a service that does not answer.
func TestAttachedIsNotUp(t *testing.T) {
	n := startNginx(t)
	elsewhere := freeAddress(t)
	text := strings.Replace(n.experiment("replace"), `attach: {get: "http://`+n.address, `attach: {get: "http://`+elsewhere, 1)
	text = strings.Replace(text, "apply: sh -c '", "apply: sh -c 'touch "+n.dir+"/applied; ", 1)
	s := newSite(t, text)
	contains(t, s.failed(1, "try", "app.yaml"), "it is not up", "connection refused", "hakaru does not start it")
	if _, err := os.Stat(filepath.Join(n.dir, "applied")); err == nil {
		t.Error("apply was run")
	}
	n.same(t)
	s.clean()
}

// TestAttachedUndoFails: it is said with the command to run by hand, again by
// every command, until it can be put back; and no other trial is measured.
func TestAttachedUndoFails(t *testing.T) {
	n := startNginx(t)
	write(t, filepath.Join(n.dir, "locked"), "", 0o644)
	undo := filepath.Join(n.dir, "careful")
	write(t, undo, "#!/bin/sh\nif [ -e "+n.dir+"/locked ]; then echo it is locked >&2; exit 5; fi\nexec "+n.dir+"/undo\n", 0o755)
	text := strings.Replace(n.experiment("replace"), "undo: "+n.dir+"/undo", "undo: "+undo, 1)
	s := newSite(t, text)
	said := s.failed(1, "run", "app.yaml")
	contains(t, said, "NOT put back", "undo failed (exit status 5)", "it is locked", "run by hand: cd "+s.dir+" && "+undo)
	if strings.Contains(said, "trial 2 ") {
		t.Errorf("a second trial was run on what the first one left:\n%s", said)
	}
	if n.state(t) == n.before {
		t.Fatal("the config is as before: nothing was to be put back")
	}
	contains(t, s.failed(0, "list"), "NOT put back", "run by hand: cd "+s.dir+" && "+undo)
	contains(t, s.failed(1, "run", "app.yaml"), "NOT put back")
	if err := os.Remove(filepath.Join(n.dir, "locked")); err != nil {
		t.Fatal(err)
	}
	said = s.failed(0, "list")
	contains(t, said, "hakaru has tried 3 times", "rm -r /tmp/hakaru-")
	// As the message says.
	if out, err := exec.Command("sh", "-c", "cd "+s.dir+" && "+undo).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	_, remove, _ := strings.Cut(said, "remove what hakaru kept of it: ")
	remove, _, _ = strings.Cut(remove, "\n")
	if out, err := exec.Command("sh", "-c", remove).CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", remove, err, out)
	}
	n.same(t)
	s.clean()
	s.output("run", "--format", "json", "app.yaml")
	n.same(t)
}

// TestAttachedInterrupt sends Ctrl-C in the middle of a trial: everything is put
// back, and where it cannot be, the interrupt does not hide it.
func TestAttachedInterrupt(t *testing.T) {
	for _, fails := range []bool{false, true} {
		t.Run(fmt.Sprintf("undo fails %v", fails), func(t *testing.T) {
			n := startNginx(t)
			text := strings.Replace(n.experiment("replace"), "duration: 500ms", "duration: 20s", 1)
			if fails { // the first time
				once := filepath.Join(n.dir, "once")
				write(t, once, "#!/bin/sh\ntest -e "+n.dir+"/failed && exec "+n.dir+"/undo\ntouch "+n.dir+"/failed\nexit 1\n", 0o755)
				text = strings.Replace(text, "undo: "+n.dir+"/undo", "undo: "+once, 1)
			}
			s := newSite(t, text)
			cmd := s.command("run", "app.yaml")
			var said bytes.Buffer
			cmd.Stderr = &said
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			n.changed(t)
			if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
				t.Fatal(err)
			}
			_ = cmd.Wait() // its code is looked at below
			if code := cmd.ProcessState.ExitCode(); code != 130 {
				t.Errorf("exit code %d, want 130\n%s", code, said.String())
			}
			contains(t, said.String(), "interrupted by SIGINT")
			if fails {
				contains(t, said.String(), "NOT put back", "run by hand: ")
				contains(t, s.failed(0, "list"), "has been put back")
			}
			n.same(t)
			s.clean()
		})
	}
}

// TestAttachedSweepIsKilled kills the command that puts back, too, in the middle
// of undo: the one after it does it.
func TestAttachedSweepIsKilled(t *testing.T) {
	n := startNginx(t)
	slow := filepath.Join(n.dir, "slow")
	write(t, slow, "#!/bin/sh\ntouch "+n.dir+"/undoing\nsleep 0.5\nexec "+n.dir+"/undo\n", 0o755)
	text := strings.Replace(n.experiment("replace"), "undo: "+n.dir+"/undo", "undo: "+slow, 1)
	text = strings.Replace(text, "duration: 500ms", "duration: 20s", 1)
	s := newSite(t, text)
	run := s.command("run", "app.yaml")
	if err := run.Start(); err != nil {
		t.Fatal(err)
	}
	n.changed(t)
	agent := familyOf(run.Process.Pid).service
	if err := errors.Join(kill9(run.Process.Pid), kill9(agent)); err != nil {
		t.Fatal(err)
	}
	_ = run.Wait() // it was killed
	list := s.command("list")
	if err := list.Start(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "undo begins", func() error {
		_, err := os.Stat(filepath.Join(n.dir, "undoing"))
		return err
	})
	for _, pid := range append(children(list.Process.Pid), list.Process.Pid) {
		if err := kill9(pid); err != nil && err != syscall.ESRCH {
			t.Fatal(err)
		}
	}
	_ = list.Wait() // it was killed
	contains(t, s.failed(0, "list"), "has been put back")
	n.same(t)
	s.clean()
}

// TestAttachedDies kills nginx while it is measured: the trial is void, and undo
// brings it up again.
func TestAttachedDies(t *testing.T) {
	n := startNginx(t)
	s := newSite(t, strings.Replace(n.experiment("replace"), "duration: 500ms", "duration: 3s", 1))
	try := s.command("try", "app.yaml")
	var out bytes.Buffer
	try.Stderr = &out
	stdout, err := try.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := try.Start(); err != nil {
		t.Fatal(err)
	}
	var said strings.Builder
	for lines := bufio.NewScanner(stdout); lines.Scan(); {
		fmt.Fprintln(&said, lines.Text())
		if strings.Contains(lines.Text(), "measuring") {
			master := pidIn(filepath.Join(n.dir, "nginx.pid"))
			for _, pid := range append([]int{master}, children(master)...) { // the master first: it would start others
				if err := kill9(pid); err != nil {
					t.Error(err)
				}
			}
		}
	}
	_ = try.Wait() // its code is looked at below
	if code := try.ProcessState.ExitCode(); code != 3 {
		t.Errorf("exit code %d, want 3\n%s", code, out.String())
	}
	contains(t, said.String(), "would be void (died)", "ended")
	n.same(t)
	s.clean()
}

// killSome starts a run, kills the conductor, its service agent or both with
// SIGKILL when the run is so old, and waits until what is left has ended.
func (s site) killSome(victims string, after time.Duration) {
	s.t.Helper()
	cmd, said := s.runFor(after)
	f := familyOf(cmd.Process.Pid)
	var dying []int
	for name, pid := range map[string]int{"conductor": f.conductor, "agent": f.service} {
		if strings.Contains(victims, name) && pid != 0 {
			if err := kill9(pid); err != nil && err != syscall.ESRCH {
				s.t.Fatal(err)
			}
			dying = append(dying, pid)
		}
	}
	// On a machine under load one that was killed lives on for a moment, and a
	// living agent is left alone.
	eventually(s.t, "the end of what was killed", func() error {
		for _, pid := range dying {
			if st, err := kernel.ReadStat(pid); err == nil && st.Alive() {
				return fmt.Errorf("pid %d is still there", pid)
			}
		}
		return nil
	})
	text := <-said
	if err := cmd.Wait(); err != nil && !strings.Contains(victims, "conductor") {
		s.t.Logf("the run ended with %v:\n%s", err, text)
	}
}

// TestAttachedKilledAtAnyMoment kills at twenty moments spread over the life of
// a run: one `hakaru list` puts everything back.
func TestAttachedKilledAtAnyMoment(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 20))
	var swept atomic.Int32
	t.Cleanup(func() {
		if swept.Load() == 0 {
			t.Error("no kill left anything to put back: nothing was tested")
		}
	})
	for i := range 20 {
		victims := []string{"conductor", "agent", "conductor and agent"}[i%3]
		// A run takes about five seconds.
		after := time.Duration(random.Int64N(int64(5 * time.Second)))
		restart := []string{"replace", "reload"}[random.IntN(2)]
		t.Run(fmt.Sprintf("%d %s after %s, %s", i, victims, after.Round(time.Millisecond), restart), func(t *testing.T) {
			t.Parallel()
			n := startNginx(t)
			s := newSite(t, n.experiment(restart))
			s.killSome(victims, after)
			if victims == "conductor" {
				s.gone()
			}
			said := s.failed(0, "list")
			if strings.Contains(said, "has been put back") {
				swept.Add(1)
			}
			t.Cleanup(func() {
				if t.Failed() {
					t.Logf("hakaru list said:\n%s", said)
				}
			})
			n.same(t)
			s.clean()
			// And the lock is free, and the next run finds things as they were. That
			// the machine is too busy to measure on, with twenty of these at once,
			// is no matter here.
			next := s.command("run", "--blocks", "1", "--format", "json", "app.yaml")
			if out, err := next.CombinedOutput(); err != nil && next.ProcessState.ExitCode() != 3 {
				t.Fatalf("the next run: %v\n%s", err, out)
			}
			n.same(t)
			s.clean()
		})
	}
}
