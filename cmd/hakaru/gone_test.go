package main

import (
	"bufio"
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// forking has a child that no signal to the main process reaches.
const forking = `
service:
  run: ./start.sh --listen {http} --processes {processes}
  ports: [http]
  ready: {get: "http://{http}/20"}
factors: {processes: [1, 2]}
load: {http: {url: "http://{http}/20", connections: 2, warm_up: 0s, duration: 60s}}
goal: cpu_per_request
design: {blocks: 2, calibrate: 0}
`

// TestConductorGone: nothing is left when the conductor cannot tell the agents
// to stop, and without another hakaru command that would sweep. The agents'
// answers go to a pipe that nobody reads any more.
func TestConductorGone(t *testing.T) {
	s := newSite(t, forking)
	script := "#!/bin/sh\nsleep 600 &\nexec hakaru serve \"$@\"\n"
	if err := os.WriteFile(filepath.Join(s.dir, "start.sh"), []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	cmd := s.command("run", "app.yaml")
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	awaitService(t, cmd.Process.Pid)
	if err := kill9(cmd.Process.Pid); err != nil {
		t.Fatal(err)
	}
	stderr.Close()
	_ = cmd.Wait() // it was killed
	if left := leftovers(filepath.Join(s.dir, "state")); left != "" {
		t.Fatalf("left behind:\n%s", left)
	}
}

// TestTryLosesItsAgent: that one trial could not be made is no answer.
func TestTryLosesItsAgent(t *testing.T) {
	s := newSite(t, strings.Replace(killed, "duration: 500ms", "duration: 60s", 1))
	cmd := s.command("try", "app.yaml")
	var said bytes.Buffer
	cmd.Stderr = &said
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for lines := bufio.NewScanner(stdout); lines.Scan(); {
		if strings.Contains(lines.Text(), "measuring") {
			if err := kill9(familyOf(cmd.Process.Pid).service); err != nil {
				t.Error(err)
			}
		}
	}
	_ = cmd.Wait() // its code is looked at below
	if code := cmd.ProcessState.ExitCode(); code != 1 || !strings.Contains(said.String(), "service agent") {
		t.Errorf("exit code %d, want 1\n%s", code, said.String())
	}
	s.output("list") // what the agent left is ended by the next command
	if left := leftovers(filepath.Join(s.dir, "state")); left != "" {
		t.Errorf("left behind:\n%s", left)
	}
}

// TestNobodyReads: a run whose progress nobody reads any more is interrupted in
// order, and says so in the store.
func TestNobodyReads(t *testing.T) {
	s := newSite(t, killed)
	cmd := s.command("run", "app.yaml")
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := bufio.NewReader(stderr).ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	stderr.Close() // as | head does
	_ = cmd.Wait() // its code is looked at below
	if code := cmd.ProcessState.ExitCode(); code != 143 {
		t.Errorf("exit code %d, want 143", code)
	}
	if left := leftovers(filepath.Join(s.dir, "state")); left != "" {
		t.Errorf("left behind:\n%s", left)
	}
	if r := s.report(); r.Run.State != "interrupted" {
		t.Errorf("the run is %s", r.Run.State)
	}
}

// TestUnreadableNote: a note of a killed agent that cannot be read (a power cut)
// keeps nobody from the results, and a run from beginning.
func TestUnreadableNote(t *testing.T) {
	s := newSite(t, killed)
	note := filepath.Join(s.dir, "state", "0123456789abcdef.json")
	if err := os.Mkdir(filepath.Dir(note), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(note, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args []string
		code int
	}{{[]string{"list"}, 0}, {[]string{"validate", "app.yaml"}, 0}, {[]string{"run", "app.yaml"}, 1}} {
		said, err := s.command(c.args...).CombinedOutput()
		code := 0
		if exit := new(exec.ExitError); errors.As(err, &exit) {
			code = exit.ExitCode()
		}
		if code != c.code || !strings.Contains(string(said), note) {
			t.Errorf("hakaru %s: exit code %d, want %d and the name of the note\n%s", strings.Join(c.args, " "), code, c.code, said)
		}
	}
}

// TestClosedTerminal: a terminal that goes away sends SIGHUP more than once,
// from the kernel and from the shell.
func TestClosedTerminal(t *testing.T) {
	s := newSite(t, killed)
	cmd := s.command("run", "app.yaml")
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(stderr)
	for lines.Scan() {
		if strings.Contains(lines.Text(), "trial 1 ") {
			for range 3 {
				if err := cmd.Process.Signal(syscall.SIGHUP); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	_ = cmd.Wait() // its code is looked at below
	if code := cmd.ProcessState.ExitCode(); code != 143 {
		t.Errorf("exit code %d, want 143", code)
	}
	if left := leftovers(filepath.Join(s.dir, "state")); left != "" {
		t.Errorf("left behind:\n%s", left)
	}
	if r := s.report(); r.Run.State != "interrupted" {
		t.Errorf("the run is %s", r.Run.State)
	}
}

// awaitService returns when the run's service has started a worker: it is under
// load, or about to be.
func awaitService(t *testing.T, conductor int) {
	t.Helper()
	deadline := time.Now().Add(20 * time.Second)
	for time.Now().Before(deadline) {
		for _, pid := range familyOf(conductor).services {
			if len(children(pid)) > 1 {
				return
			}
		}
		// There is no event for "a process of another process has started".
		time.Sleep(20 * time.Millisecond)
	}
	t.Fatal("the service did not start")
}

// TestNohup: a run that was told from the start to ignore that its terminal is
// closed goes on, and Ctrl-C still ends it.
func TestNohup(t *testing.T) {
	s := newSite(t, killed)
	cmd := s.command("run", "app.yaml")
	cmd.Args = append([]string{"sh", "-c", `trap "" HUP; exec "$0" "$@"`, cmd.Path}, cmd.Args[1:]...)
	cmd.Path = "/bin/sh"
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(stderr)
	var said []string
	for lines.Scan() {
		said = append(said, lines.Text())
		switch {
		case len(said) == 1:
			err = cmd.Process.Signal(syscall.SIGHUP)
		case strings.HasPrefix(lines.Text(), "hakaru: trial 2 "):
			err = cmd.Process.Signal(syscall.SIGINT)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	_ = cmd.Wait() // its code is looked at below
	if code := cmd.ProcessState.ExitCode(); code != 130 {
		t.Errorf("exit code %d, want 130, after\n%s", code, strings.Join(said, "\n"))
	}
	if left := leftovers(filepath.Join(s.dir, "state")); left != "" {
		t.Errorf("left behind:\n%s", left)
	}
}

// A pipe is unread when its reader is gone, and a file never is.
func TestUnread(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = w.Close() }()
	file, err := os.Create(filepath.Join(t.TempDir(), "out"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	if unread(int(w.Fd())) || unread(int(file.Fd())) {
		t.Error("a pipe with a reader, or a file, passes for unread")
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	if !unread(int(w.Fd())) {
		t.Error("a pipe without a reader passes for read")
	}
}
