package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"
)

// built is an experiment whose program is built; its arguments and its factors
// are put in.
const built = `
service:
  build: sh build.sh
  run: ./app --listen {http}%s
  ports: [http]
  ready: {get: "http://{http}/"}
load: {http: {url: "http://{http}/10", connections: 1, warm_up: 0s, duration: 500ms}}
goal: cpu_per_request
design: {blocks: 1, calibrate: 0}
factors: %s
`

// slowBuild does not end the first time, and has a process in a session of its
// own, which no signal to a process group reaches.
const slowBuild = `
if [ -e "$ONCE" ]; then
	printf '#!/bin/sh\nexec hakaru serve "$@"\n' > app
	chmod +x app
	exit
fi
touch half
setsid sleep 1000 &
echo $! > "$ONCE"
sleep 1000
`

// TestKilledBuild kills what carries out a build, in the middle of it: nothing of
// the build goes on, and the run does, with a build from the beginning.
func TestKilledBuild(t *testing.T) {
	for _, versions := range []bool{false, true} {
		for _, victims := range [][]string{{"conductor"}, {"service agent"}, {"service agent", "conductor"}} {
			t.Run(fmt.Sprintf("versions %t, %v", versions, victims), func(t *testing.T) {
				t.Parallel()
				experiment := []any{" --threads {threads}", "{threads: [1, 2]}"}
				if versions {
					experiment = []any{"", "{git: [main, other]}"}
				}
				s := newSite(t, fmt.Sprintf(built, experiment...))
				once := filepath.Join(s.dir, "once")
				s.env = append(s.env, "ONCE="+once, "GIT_CONFIG_GLOBAL=/dev/null")
				if err := os.WriteFile(filepath.Join(s.dir, "build.sh"), []byte(slowBuild), 0o644); err != nil {
					t.Fatal(err)
				}
				s.git("init", "-q", "-b", "main")
				s.git("add", "build.sh", "app.yaml")
				s.git("commit", "-q", "-m", "one")
				s.git("commit", "-q", "--allow-empty", "-m", "two")
				s.git("branch", "other", "HEAD~1")

				cmd := s.command("run", "app.yaml")
				if err := cmd.Start(); err != nil {
					t.Fatal(err)
				}
				ended := make(chan error, 1)
				go func() { ended <- cmd.Wait() }()
				for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(10 * time.Millisecond) {
					if b, err := os.ReadFile(once); err == nil && len(b) > 0 {
						break
					}
					if time.Now().After(deadline) {
						t.Error("the build never began")
						break
					}
				}
				f := familyOf(cmd.Process.Pid)
				for _, v := range victims {
					if err := kill9(map[string]int{"conductor": f.conductor, "service agent": f.service}[v]); err != nil && err != syscall.ESRCH {
						t.Error(err)
					}
				}
				err := <-ended
				if killed := slices.Contains(victims, "conductor"); !killed && err != nil {
					t.Errorf("the run does not go on: %v", err)
				}
				s.output("list")
				if left := leftovers(filepath.Join(s.dir, "state")); left != "" {
					t.Fatalf("left behind:\n%s", left)
				}
				if r := s.report(); r.Run.State != "done" {
					s.output("run", "--resume", "last")
				}
				if r := s.report(); r.Run.State != "done" || len(r.Trials) < 2 {
					t.Errorf("%+v", r)
				}
				if halves, err := filepath.Glob(filepath.Join(s.dir, "cache", "versions", "*", "src", "*", "half")); err != nil || len(halves) > 0 {
					t.Errorf("built on from half: %v (%v)", halves, err)
				}
			})
		}
	}
}

func (s site) git(args ...string) {
	s.t.Helper()
	cmd := exec.Command("git", append([]string{"-c", "user.name=a", "-c", "user.email=a@example.com"}, args...)...)
	cmd.Dir, cmd.Env = s.dir, s.env
	if out, err := cmd.CombinedOutput(); err != nil {
		s.t.Fatalf("git %v: %v\n%s", args, err, out)
	}
}
