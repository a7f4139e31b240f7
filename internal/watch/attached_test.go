package watch

import (
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"hakaru"
	"hakaru/internal/watch/kernel"
)

// Of a service that something else started the process that listens and its
// descendants are counted, and nobody else of its session; of one that is on
// another machine there are no figures, which is said.
func TestAttached(t *testing.T) {
	t.Parallel()
	var place hakaru.Place
	forks, _ := startService(t, &place, "forks", false)
	place.Units[0].Attached = true
	place.Units = append(place.Units, hakaru.RunningUnit{Service: "far", Attached: true})
	startService(t, &place, "idle", false) // its mark is that of the third unit

	// A shell in a session of its own, with two services in it.
	other := exec.Command("setsid", "sh", "-c", os.Args[0]+" & "+os.Args[0]+" & wait")
	other.Env = []string{"FIXTURE=idle", "PATH=" + os.Getenv("PATH")}
	out, err := other.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := other.Start(); err != nil {
		t.Fatal(err)
	}
	said := make([]byte, 64)
	for lines := 0; lines < 2; {
		n, err := out.Read(said)
		if err != nil {
			t.Fatal(err)
		}
		lines += strings.Count(string(said[:n]), "ready")
	}
	shell, err := kernel.ReadStat(other.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	all, err := kernel.Group{Leader: shell.PID, Start: shell.Start, Descent: true}.Members()
	if err != nil || len(all) != 3 {
		t.Fatalf("the shell and its children: %v, %v", all, err)
	}
	t.Cleanup(func() {
		for _, pid := range all {
			if p, err := os.FindProcess(pid); err == nil {
				_ = p.Kill() // it may have ended with the shell
			}
		}
		_ = other.Wait() // it was killed
	})
	one := all[1]
	if one == shell.PID {
		one = all[0]
	}
	place.Units = append(place.Units, hakaru.RunningUnit{Service: "one", PID: one, Attached: true})

	w, err := Watch(t.Context(), place, window(time.Second), nil)
	if err != nil {
		t.Fatal(err)
	}
	if cpu := sum(column(t, w, hakaru.CounterCPU, "forks0")); cpu <= 0 {
		t.Errorf("children of pid %d used %v", forks.Process.Pid, cpu)
	}
	if n := column(t, w, hakaru.CounterProcesses, "one"); n[0] != 1 || n[1] != 1 {
		t.Errorf("processes %v: others of its session are counted", n)
	}
	if n := column(t, w, hakaru.CounterProcesses, "idle2"); n[0] != 1 {
		t.Errorf("processes beside attached ones: %v", n)
	}
	for _, c := range w.Counters {
		if c.Of == "far" {
			t.Errorf("there is a figure of what cannot be seen: %+v", c)
		}
	}
	warned := false
	for _, x := range w.Warnings {
		warned = warned || x.Code == "not_watched" && strings.Contains(x.Message, "service far")
	}
	if !warned || len(w.Ended) != 0 {
		t.Errorf("warnings %v, ended %v", w.Warnings, w.Ended)
	}
}
