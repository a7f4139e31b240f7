package service

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

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
	limit := time.NewTimer(killLimit)
	defer limit.Stop()
	tick := time.NewTicker(lookPause)
	defer tick.Stop()
	for {
		left := processesOf(t, opt)
		if len(left) == 0 {
			return
		}
		select {
		case <-tick.C:
		case <-limit.C:
			t.Errorf("left %s", describeAll(left))
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
			if _, err := Sweep(t.Context(), opt.StateDir); err != nil {
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
		rec, err := registry{opt.StateDir}.read(id + ".json")
		if err != nil {
			t.Fatal(err)
		}
		if w, err := Sweep(t.Context(), opt.StateDir); err != nil || len(w) != 0 {
			t.Errorf("sweep beside two living agents: %v, %v", w, err)
		}
		if left, err := Abandoned(opt.StateDir); err != nil || len(left) != 0 {
			t.Errorf("abandoned beside two living agents: %v, %v", left, err)
		}
		kill(t, cmd)
		if left, err := Abandoned(opt.StateDir); err != nil || len(left) != 1 || left[0] != id+".json" {
			t.Errorf("abandoned: %v, %v; want that of %s", left, err, id)
		}
		warnings, err := Sweep(t.Context(), opt.StateDir)
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

// What a record may not do: name a directory or a cgroup that is no stack's.
func TestSweepRefusesForeignRecords(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "s")
	if _, err := openRegistry(dir); err != nil {
		t.Fatal(err)
	}
	precious := filepath.Join(t.TempDir(), "precious")
	if err := os.WriteFile(precious, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	refuse := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Sweep(t.Context(), dir); err == nil || !strings.Contains(err.Error(), "note "+filepath.Join(dir, name)) {
			t.Errorf("%s: error %v", name, err)
		}
		if err := os.Remove(filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	const id = "0123456789abcdef"
	for name, text := range map[string]string{
		"torn.json":        `{"format": 1, "id": "to`,
		id + ".json":       `{"format": 1, "id": "` + id + `", "dir": "` + precious + `"}`,
		"123.json":         `{"format": 1, "id": "123", "dir": "/tmp/hakaru-123"}`,
		"0" + id + ".json": `{"format": 1, "id": "` + id + `", "dir": "/tmp/hakaru-` + id + `"}`,
	} {
		refuse(name, text)
	}
	dirOf := `", "dir": "/tmp/hakaru-` + id + `"`
	refuse(id+".json", `{"format": 1, "id": "`+id+dirOf+`, "cgroup_dir": "/no/such/cgroup"}`)
	refuse(id+".json", `{"format": 1, "id": "`+id+dirOf+`, "cgroup_dir": "/no/hakaru/`+id+`", "units": [{"cgroup": "/no/such/cgroup"}]}`)
	refuse(id+".json", `{"format": 99, "id": "`+id+dirOf+`}`)
	if _, err := os.Stat(precious); err != nil {
		t.Error(err)
	}
	if w, err := Sweep(context.Background(), filepath.Join(dir, "none")); err != nil || w != nil {
		t.Errorf("no directory: %v, %v", w, err)
	}
}

func TestUnfinishedRecords(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "s")
	files, err := openRegistry(dir)
	if err != nil {
		t.Fatal(err)
	}
	self, err := Self()
	if err != nil {
		t.Fatal(err)
	}
	mine := fmt.Sprintf("aa-%d-%d.new", self.PID, self.Start)
	dead := fmt.Sprintf("bb-%d-%d.new", self.PID, self.Start+1)
	for _, name := range []string{mine, dead} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("{"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := Sweep(t.Context(), dir); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, mine)); err != nil {
		t.Errorf("a living agent's file: %v", err)
	}
	if _, err := os.Stat(filepath.Join(dir, dead)); !os.IsNotExist(err) {
		t.Errorf("a dead agent's file: %v", err)
	}
	rec := record{Format: recordFormat, ID: "00112233445566cc", Owner: self, Dir: "/tmp/hakaru-00112233445566cc", Units: []unitRecord{{Service: "x", Mark: "cc.1"}}}
	if err := files.write(rec, true); err != nil {
		t.Fatal(err)
	}
	got, err := files.read(rec.ID + ".json")
	if err != nil || got.ID != rec.ID || got.Owner != self || got.Units[0] != rec.Units[0] {
		t.Errorf("record %+v, %v", got, err)
	}
}
