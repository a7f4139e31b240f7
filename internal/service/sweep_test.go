package service

import (
	"bufio"
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"hakaru/internal/service/registry"
	"hakaru/internal/watch/kernel"
)

// startAgent starts a process that brings a stack up. Its output says "begin"
// and "up ID".
func startAgent(t *testing.T, opt Options) (*exec.Cmd, *bufio.Reader) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "FIXTURE=agent", "STATE="+opt.StateDir, "TEMP="+opt.TempDir)
	if opt.NoCgroup {
		cmd.Env = append(cmd.Env, "NOCGROUP=1")
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	r := bufio.NewReader(out)
	if line, err := r.ReadString('\n'); err != nil || line != "begin\n" {
		t.Fatalf("the agent says %q, %v", line, err)
	}
	return cmd, r
}

func kill(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err == nil {
		t.Fatal("the killed agent ended well")
	}
}

// processesOf finds what carries the temporary directory's name anywhere in its
// environment, which the agent's services inherit.
func processesOf(t *testing.T, opt Options) []int {
	t.Helper()
	pids, err := kernel.PIDs(nil)
	if err != nil {
		t.Fatal(err)
	}
	var found []int
	for _, pid := range pids {
		b, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
		if err == nil && bytes.Contains(b, []byte("TEMP="+opt.TempDir)) {
			found = append(found, pid)
		}
	}
	return found
}

// awaitNobody gives the dying a moment: a child that its agent had forked and not
// yet executed ends itself when it sees that its parent is gone, and a process in
// the middle of its exit is in no cgroup any more.
func awaitNobody(t *testing.T, opt Options) {
	t.Helper()
	limit := time.NewTimer(registry.KillLimit)
	defer limit.Stop()
	tick := time.NewTicker(registry.LookPause)
	defer tick.Stop()
	for {
		left := processesOf(t, opt)
		if len(left) == 0 {
			return
		}
		select {
		case <-tick.C:
		case <-limit.C:
			t.Errorf("left %s", registry.DescribeAll(left))
			return
		}
	}
}

// An agent is killed at random moments of bringing a stack up; Sweep leaves no
// process, file or cgroup of it.
func TestSweepAfterKill(t *testing.T) {
	const rounds = 8
	both(t, func(t *testing.T, opt Options) {
		random := rand.New(rand.NewPCG(20, 26))
		for round := range rounds {
			cmd, _ := startAgent(t, opt)
			// The moment itself is what is tested: it is spread over the start.
			moment := time.NewTimer(time.Duration(random.IntN(150)) * time.Millisecond)
			<-moment.C
			kill(t, cmd)
			if _, err := registry.Sweep(t.Context(), opt.StateDir); err != nil {
				t.Fatalf("round %d: %v", round, err)
			}
			awaitNobody(t, opt)
			nothingIn(t, opt.StateDir)
			nothingIn(t, opt.TempDir)
		}
	})
}

// A stack that is up when its agent is killed: main processes die with the
// agent, their children by Sweep, which says so. A stack of a living agent
// beside it is not touched.
func TestSweepSparesTheLiving(t *testing.T) {
	both(t, func(t *testing.T, opt Options) {
		living := mustUp(t, one(fixtureUnit("app", "serve")), opt)
		cmd, out := startAgent(t, opt)
		line, err := out.ReadString('\n')
		id, ok := strings.CutPrefix(strings.TrimSpace(line), "up ")
		if err != nil || !ok {
			t.Fatalf("the agent says %q, %v", line, err)
		}
		files, err := registry.Open(opt.StateDir)
		if err != nil {
			t.Fatal(err)
		}
		rec, err := files.Read(id + ".json")
		if err != nil {
			t.Fatal(err)
		}
		if w, err := registry.Sweep(t.Context(), opt.StateDir); err != nil || len(w) != 0 {
			t.Errorf("sweep beside two living agents: %v, %v", w, err)
		}
		if left, err := registry.Abandoned(opt.StateDir); err != nil || len(left) != 0 {
			t.Errorf("abandoned beside two living agents: %v, %v", left, err)
		}
		kill(t, cmd)
		if left, err := registry.Abandoned(opt.StateDir); err != nil || len(left) != 1 || left[0] != id+".json" {
			t.Errorf("abandoned: %v, %v; want that of %s", left, err, id)
		}
		warnings, err := registry.Sweep(t.Context(), opt.StateDir)
		if err != nil {
			t.Fatal(err)
		}
		if !hasWarning(warnings, "swept") {
			t.Errorf("warnings %v: the workers outlive their master and must be named", warnings)
		}
		nobodyMarked(t, id)
		if rec.CgroupDir != "" {
			if _, err := os.Stat(rec.CgroupDir); !os.IsNotExist(err) {
				t.Errorf("cgroup %s: %v", rec.CgroupDir, err)
			}
		}
		if e := living.Ended(); len(e) != 0 {
			t.Errorf("the living stack has ended: %v", e)
		}
		if left := down(t, living); len(left.Warnings) != 0 {
			t.Errorf("the living stack: %v", left.Warnings)
		}
	})
}
