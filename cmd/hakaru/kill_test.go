package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

const killed = `
service:
  kind: serve
  run: hakaru serve --listen {http} --wait 2ms
  ports: [http]
factors: {processes: [1, 2]}
load: {http: {url: "http://{http}/9000", connections: 2, warm_up: 0s, duration: 500ms}}
goal: cpu_per_request
design: {blocks: 2, calibrate: 1}
`

// family finds the processes of one run: conductor, agents, and the service's
// main process, by who started whom.
type family struct {
	conductor, service, load int
	services                 []int
}

func parentOf(pid int) int {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0
	}
	_, rest, _ := bytes.Cut(stat, []byte(") "))
	fields := bytes.Fields(rest)
	if len(fields) < 2 {
		return 0
	}
	ppid, err := strconv.Atoi(string(fields[1]))
	if err != nil {
		return 0
	}
	return ppid
}

func children(pid int) (pids []int) {
	procs, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return nil
	}
	for _, dir := range procs {
		child, err := strconv.Atoi(filepath.Base(dir))
		if err == nil && parentOf(child) == pid {
			pids = append(pids, child)
		}
	}
	return pids
}

func familyOf(conductor int) (f family) {
	f.conductor = conductor
	for _, pid := range children(conductor) {
		cmdline, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		if err != nil {
			continue
		}
		switch words := strings.Split(strings.TrimRight(string(cmdline), "\x00"), "\x00"); words[len(words)-1] {
		case "service":
			f.service = pid
			f.services = children(pid)
		case "load":
			f.load = pid
		}
	}
	return f
}

type shown struct {
	Run struct {
		ID    string
		State string
	}
	Trials []struct {
		Seq     int
		Phase   string
		Block   int
		Attempt int
		Variant string
		Void    json.RawMessage
	}
}

// site is a directory of its own with an experiment and an isolated hakaru.
type site struct {
	t   *testing.T
	dir string
	env []string
}

func newSite(t *testing.T, experiment string) site {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "tmp"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "app.yaml"), []byte(experiment), 0o600); err != nil {
		t.Fatal(err)
	}
	return site{t, dir, append(os.Environ(), isolated(dir)...)}
}

func (s site) command(args ...string) *exec.Cmd {
	cmd := exec.Command(program, args...)
	cmd.Dir, cmd.Env = s.dir, s.env
	return cmd
}

// output runs a command that must succeed.
func (s site) output(args ...string) []byte {
	s.t.Helper()
	cmd := s.command(args...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		s.t.Fatalf("hakaru %s: %v\n%s", strings.Join(args, " "), err, stderr.Bytes())
	}
	return out
}

func (s site) report() (r shown) {
	s.t.Helper()
	if err := json.Unmarshal(s.output("report", "last", "--format", "json"), &r); err != nil {
		s.t.Fatal(err)
	}
	return r
}

// plan is what was run, without attempts, which voids add.
func (r shown) plan() (plan []string) {
	for _, t := range r.Trials {
		if t.Attempt == 1 {
			plan = append(plan, fmt.Sprintf("%s %d %s", t.Phase, t.Block, t.Variant))
		}
	}
	return plan
}

// TestKilledAtAnyMoment kills one of the processes of a run with SIGKILL at a
// random moment, thirty times over the life of runs of one experiment: nothing
// of the service may be left, and the run must be able to go on to the same end
// as one that nobody disturbed, with no finished trial lost or run twice.
func TestKilledAtAnyMoment(t *testing.T) {
	first := newSite(t, killed)
	first.output("run", "--format", "json", "app.yaml")
	undisturbed := first.report()
	if undisturbed.Run.State != "done" || len(undisturbed.plan()) != 5 {
		t.Fatalf("undisturbed run: %+v", undisturbed)
	}
	want := strings.Join(undisturbed.plan(), "; ")

	random := rand.New(rand.NewPCG(1, 30))
	for n := range 30 {
		victim := []string{"conductor", "service agent", "load agent", "service"}[n%4]
		// A run of five trials takes about four seconds.
		after := time.Duration(random.Int64N(int64(4 * time.Second)))
		t.Run(fmt.Sprintf("%d %s after %s", n, victim, after.Round(time.Millisecond)), func(t *testing.T) {
			t.Parallel()
			s := newSite(t, killed)
			state := filepath.Join(s.dir, "state")
			s.killOne(victim, after)

			// Killed with its agent, a service may live until the next command.
			s.output("list")
			if left := leftovers(state); left != "" {
				t.Fatalf("left behind:\n%s", left)
			}
			r := s.report()
			if r.Run.State != "done" {
				before := len(r.Trials)
				s.output("run", "--resume", "last", "--format", "json")
				r = s.report()
				if len(r.Trials) < before {
					t.Errorf("%d trials before the resume, %d after", before, len(r.Trials))
				}
			}
			seen := map[string]bool{}
			for i, trial := range r.Trials {
				if trial.Seq != i+1 {
					t.Errorf("trial %d has number %d", i+1, trial.Seq)
				}
				key := fmt.Sprint(trial.Block, trial.Attempt, trial.Variant)
				if seen[key] {
					t.Errorf("block %d, attempt %d of %s was counted twice", trial.Block, trial.Attempt, trial.Variant)
				}
				seen[key] = true
			}
			if got := strings.Join(r.plan(), "; "); got != want {
				t.Errorf("plan of the disturbed run:\n%s\nundisturbed:\n%s", got, want)
			}
			if left := leftovers(state); left != "" {
				t.Fatalf("left behind:\n%s", left)
			}
		})
	}
}

// runFor starts a run and returns when it is so old, with what it will have said
// once it has ended.
func (s site) runFor(after time.Duration) (*exec.Cmd, <-chan string) {
	s.t.Helper()
	cmd := s.command("run", "--format", "json", "app.yaml")
	stderr, err := cmd.StderrPipe()
	if err != nil {
		s.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	said, begun := make(chan string, 1), make(chan struct{})
	go func() {
		r := bufio.NewReader(stderr)
		first, _ := r.ReadString('\n') // "run … of app": it is in the store now
		close(begun)
		rest, _ := io.ReadAll(r)
		said <- first + string(rest)
	}()
	<-begun
	time.Sleep(after) // the moment is what is tested
	return cmd, said
}

// killOne starts a run, kills the victim when the run is so old, and waits until
// the run has ended, which it does by itself or because it was the victim.
func (s site) killOne(victim string, after time.Duration) {
	s.t.Helper()
	cmd, said := s.runFor(after)
	f := familyOf(cmd.Process.Pid)
	pid := map[string]int{"conductor": f.conductor, "service agent": f.service, "load agent": f.load}[victim]
	if victim == "service" && len(f.services) > 0 {
		pid = f.services[0]
	}
	if pid != 0 { // between two trials there is no service to kill
		if err := kill9(pid); err != nil && err != syscall.ESRCH {
			s.t.Fatal(err)
		}
	}
	text := <-said
	err := cmd.Wait()
	if victim != "conductor" && err != nil {
		s.t.Logf("the run ended with %v:\n%s", err, text)
	}
	if victim != "conductor" && strings.Contains(text, "interrupted") {
		s.t.Errorf("the death of the %s passes for a wish to end:\n%s", victim, text)
	}
}

// TestInterrupt sends Ctrl-C in the middle: the partial report is printed, the
// exit code is 130, nothing is left, and the run can go on.
func TestInterrupt(t *testing.T) {
	for _, c := range []struct {
		signal syscall.Signal
		code   int
	}{{syscall.SIGINT, 130}, {syscall.SIGTERM, 143}} {
		t.Run(c.signal.String(), func(t *testing.T) {
			t.Parallel()
			s := newSite(t, killed)
			cmd := s.command("run", "app.yaml")
			var stdout bytes.Buffer
			cmd.Stdout = &stdout
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
				if strings.Contains(lines.Text(), "trial 2 ") { // ended; the third is under way
					if err := cmd.Process.Signal(c.signal); err != nil {
						t.Fatal(err)
					}
				}
			}
			_ = cmd.Wait() // its code is looked at below
			if code := cmd.ProcessState.ExitCode(); code != c.code {
				t.Errorf("exit code %d, want %d\n%s", code, c.code, strings.Join(said, "\n"))
			}
			if left := leftovers(filepath.Join(s.dir, "state")); left != "" {
				t.Errorf("left behind:\n%s", left)
			}
			if !strings.Contains(strings.Join(said, "\n"), "--resume") {
				t.Errorf("no word on how to go on:\n%s", strings.Join(said, "\n"))
			}
			if !strings.Contains(stdout.String(), "nterrupted") {
				t.Errorf("the partial report does not say that it is one:\n%s", stdout.String())
			}
			if r := s.report(); r.Run.State != "interrupted" || len(r.Trials) != 2 {
				t.Errorf("stored: %+v", r)
			}
			s.output("run", "--resume", "last")
			if r := s.report(); r.Run.State != "done" || len(r.Trials) != 5 {
				t.Errorf("after the resume: %+v", r)
			}
		})
	}
}
