package refserver

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"hakaru/internal/refserver/config"

	"golang.org/x/sys/unix"
)

func TestStatus(t *testing.T) {
	s := start(t, config.Config{Processes: 3, Threads: 2, Backlog: 7, MaxLifetime: time.Hour, Wait: time.Millisecond}, nil)
	if code, body := get(t, s.address, "/"); code != 200 || body != "hakaru serve\n" {
		t.Errorf("GET /: %d %q", code, body)
	}
	got := status(t, s.address)
	if got.PID != os.Getpid() || got.Processes != 3 || got.AskedProcesses != 3 || got.Threads != 2 || got.Log != "off" ||
		got.Backlog != 7 || got.MaxLifetime != 3600 || got.Wait != 0.001 || got.Settings["max-lifetime"] != "1h" || got.Generation != 1 {
		t.Errorf("%+v", got)
	}
	total, pids := uint64(0), map[int]bool{}
	for _, w := range got.Workers {
		total += w.Requests
		pids[w.PID] = true
		children, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", w.PID))
		if err != nil || !strings.Contains(string(children), fmt.Sprintf(") S %d ", os.Getpid())) && !strings.Contains(string(children), fmt.Sprintf(") R %d ", os.Getpid())) {
			t.Errorf("worker %d is no child of the master: %s, %v", w.PID, children, err)
		}
	}
	if total != 1 || len(pids) != 3 || pids[got.PID] || !pids[got.AnsweredBy] {
		t.Errorf("%d requests, workers %v; status requests do not count, and the master does not serve", total, pids)
	}
	if err := s.stop(); err != nil {
		t.Error(err)
	}
	for pid := range pids {
		awaitEnd(t, pid)
	}
}

// All threads are taken, and the status is answered.
func TestStatusNeedsNoThread(t *testing.T) {
	s := start(t, config.Config{Wait: time.Hour, Grace: time.Millisecond}, nil)
	slow := s.client()
	if err := slow.send("/"); err != nil {
		t.Fatal(err)
	}
	awaitStatus(t, s.address, "busy", func(s Status) bool { return s.Workers[0].Busy == 1 })
	if err := s.stop(); err != nil {
		t.Error(err)
	}
	if said := s.stderr.String(); !strings.Contains(said, "1 requests were cut off") {
		t.Errorf("nothing about the request that was cut off:\n%s", said)
	}
}

func TestConnectionsAreSpread(t *testing.T) {
	s := start(t, config.Config{Processes: 4, Threads: 2}, nil)
	var clients []*client
	for range 15 {
		c := s.client()
		clients = append(clients, c)
	}
	for _, c := range clients { // an answer shows that it was accepted
		if _, _, err := c.get("/"); err != nil {
			t.Fatal(err)
		}
	}
	got := status(t, s.address) // on the 16th
	low, high := uint64(99), uint64(0)
	for _, w := range got.Workers {
		low, high = min(low, w.Connections), max(high, w.Connections)
	}
	if low != 4 || high != 4 {
		t.Errorf("between %d and %d connections, want 4 on each of 4: %+v", low, high, got.Workers)
	}
}

// A worker that hangs does not keep the connections whose turn was its own.
func TestHangingWorkerIsPassedOver(t *testing.T) {
	s := start(t, config.Config{Processes: 2}, nil)
	victim := status(t, s.address).Workers[0].PID
	if err := syscall.Kill(victim, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := syscall.Kill(victim, syscall.SIGCONT); err != nil {
			t.Error(err)
		}
	}()
	// Its other threads run on until the one that takes the signal is
	// scheduled, and could accept what comes next.
	for {
		err := unix.Waitid(unix.P_PID, victim, nil, unix.WSTOPPED|unix.WNOWAIT, nil)
		if err == nil {
			break
		}
		if !errors.Is(err, unix.EINTR) {
			t.Fatal(err)
		}
	}
	for range 2 { // the first is the other's turn, the second is not
		c := s.client()
		if code, _, err := c.get("/"); err != nil || code != 200 {
			t.Fatal(code, err)
		}
	}
}

// underLoad runs what is to happen while clients with keep-alive connections
// send without pause, and fails when one of them loses a request.
func (s *server) underLoad(connections int, happens func()) int {
	s.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	answers, err := 0, error(nil)
	wg.Go(func() { answers, err = load{s.address, "/9000", connections, 200}.until(ctx) })
	happens()
	cancel()
	wg.Wait()
	if err != nil {
		s.t.Errorf("a request was lost: %v", err)
	}
	return answers
}

func TestRestartLosesNothing(t *testing.T) {
	processes := 1
	s := start(t, config.Config{Processes: 1, Threads: 2, Wait: time.Millisecond, Backlog: 64}, func(o *Options) {
		o.Reload = func() (config.Config, error) {
			processes++
			return config.Config{Listen: "127.0.0.1:0", Processes: processes, Threads: 2, Wait: time.Millisecond, Backlog: 32, Grace: 5 * time.Second}, nil
		}
	})
	first := status(t, s.address)
	idle := s.client() // stays open through the first restart
	if _, _, err := idle.get("/"); err != nil {
		t.Fatal(err)
	}
	answers := s.underLoad(6, func() {
		for n := 2; n <= 4; n++ {
			s.signals <- syscall.SIGHUP
			s.stderr.await(t, fmt.Sprintf("generation %d serves", n))
			if n == 2 {
				if code, _, err := idle.get("/"); err != nil || code != 200 || !idle.last {
					t.Errorf("the idle connection: %d, %v, last: %v", code, err, idle.last)
				}
			}
		}
	})
	now := awaitStatus(t, s.address, "the new generation alone", func(s Status) bool { return len(s.Workers) == 4 })
	if now.Generation != 4 || now.Processes != 4 || now.AskedProcesses != 4 || now.Started != 1+2+3+4 || now.Backlog != 32 {
		t.Errorf("%+v", now)
	}
	if answers == 0 {
		t.Error("no answers")
	}
	awaitEnd(t, first.Workers[0].PID)
}

func TestBrokenRestartKeepsTheOldGeneration(t *testing.T) {
	var reloaded config.Config
	var broken error
	s := start(t, config.Config{Processes: 2}, func(o *Options) {
		o.Reload = func() (config.Config, error) { return reloaded, broken }
	})
	before := status(t, s.address)
	for _, test := range []struct {
		cfg  config.Config
		err  error
		says string
	}{
		{err: config.Mistake("x.ini:3:1: unknown setting proceses", ""), says: "generation 1 serves on: x.ini:3:1: unknown setting proceses"},
		{cfg: config.Config{Listen: "127.0.0.1:1"}, says: "the address can not change"},
		{cfg: config.Config{Listen: "127.0.0.1:0", Handler: config.HandlerWait}, says: "handler wait: set wait too"},
		{cfg: config.Config{Listen: "127.0.0.1:0", Log: "/nowhere/log"}, says: "open the request log"},
	} {
		reloaded, broken = test.cfg, test.err
		s.signals <- syscall.SIGHUP
		s.stderr.await(t, test.says)
	}
	after := status(t, s.address)
	if after.Started != 2 || after.Workers[0].PID != before.Workers[0].PID {
		t.Errorf("%+v", after)
	}
}

func TestWorkersAreReplaced(t *testing.T) {
	for _, test := range []struct {
		name string
		cfg  config.Config
	}{
		{"max-requests", config.Config{Processes: 2, MaxRequests: 20, Jitter: 0.5}},
		{"max-requests of one", config.Config{MaxRequests: 1, Wait: time.Millisecond}},
		{"max-lifetime", config.Config{Processes: 2, MaxLifetime: 50 * time.Millisecond, Jitter: 0.5, Wait: time.Millisecond}},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := start(t, test.cfg, nil)
			answers := s.underLoad(4, func() {
				awaitStatus(t, s.address, "8 workers", func(s Status) bool { return s.Started >= 8 })
			})
			if answers == 0 {
				t.Error("no answers")
			}
			if said := s.stderr.String(); strings.Contains(said, "ended unasked") {
				t.Error(said)
			}
		})
	}
}

func TestTermToAWorkerReplacesIt(t *testing.T) {
	s := start(t, config.Config{Processes: 2}, nil)
	victim := status(t, s.address).Workers[0].PID
	s.underLoad(4, func() {
		if err := syscall.Kill(victim, syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		awaitEnd(t, victim)
	})
	awaitStatus(t, s.address, "two workers", func(s Status) bool { return s.Processes == 2 && s.Started == 3 })
}

func TestKilledWorkerIsReplaced(t *testing.T) {
	s := start(t, config.Config{Processes: 2}, nil)
	victim := status(t, s.address).Workers[0].PID
	if err := syscall.Kill(victim, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	s.stderr.await(t, fmt.Sprintf("worker %d ended unasked: signal: killed", victim))
	awaitStatus(t, s.address, "replaced", func(s Status) bool {
		return s.Processes == 2 && !slices.ContainsFunc(s.Workers, func(w WorkerStatus) bool { return w.PID == victim })
	})
}

func TestWorkersThatDieAtOnce(t *testing.T) {
	said := &text{}
	err := Run(context.Background(), config.Config{Listen: "127.0.0.1:0"}, Options{
		Args: []string{"worker"}, Env: workerEnv(os.Environ(), "dies"), Stderr: said,
	})
	if err == nil || !strings.Contains(err.Error(), "5 in a row") || !strings.Contains(err.Error(), "exit status 1") {
		t.Errorf("%v", err)
	}
	if !strings.Contains(said.String(), "dies at once") {
		t.Errorf("what they said is lost:\n%s", said)
	}
}

// What is in work is answered, an idle connection does not hold it up.
func TestStop(t *testing.T) {
	dir := t.TempDir()
	s := start(t, config.Config{Listen: "unix:" + filepath.Join(dir, "s"), Wait: 200 * time.Millisecond, Grace: time.Hour}, nil)
	idle, busy := s.client(), s.client()
	if _, _, err := idle.get(statusPath); err != nil {
		t.Fatal(err)
	}
	if err := busy.send("/9000"); err != nil {
		t.Fatal(err)
	}
	awaitStatus(t, s.address, "busy", func(s Status) bool { return s.Workers[0].Busy == 1 })
	err := s.stop()
	if code, body, lost := busy.receive(); lost != nil || code != 200 || !strings.Contains(body, "6765") {
		t.Errorf("the request in work: %d %s %v", code, body, lost)
	}
	if err != nil {
		t.Error(err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}

func TestSecondSignalStopsAtOnce(t *testing.T) {
	s := start(t, config.Config{Wait: time.Hour, Grace: time.Hour}, nil)
	if err := s.client().send("/"); err != nil {
		t.Fatal(err)
	}
	awaitStatus(t, s.address, "busy", func(s Status) bool { return s.Workers[0].Busy == 1 })
	s.signals <- syscall.SIGINT
	s.signals <- syscall.SIGINT
	if err := s.wait(); err == nil || !strings.Contains(err.Error(), "1 requests were cut off") {
		t.Errorf("%v", err)
	}
}

func TestLog(t *testing.T) {
	file := filepath.Join(t.TempDir(), "requests")
	s := start(t, config.Config{Processes: 2, Log: file}, nil)
	n, err := (load{s.address, "/9000", 4, 200}).during(50 * time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.stop(); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Count(string(data), "] \"GET /9000 HTTP/1.1\" 200 97 "); got != n {
		t.Errorf("%d lines for %d requests", got, n)
	}
	info, err := os.Stat(file)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	loud := start(t, config.Config{Log: config.LogOn}, nil)
	get(t, loud.address, "/7")
	loud.stderr.await(t, `"GET /7 HTTP/1.1" 200`)
}

func TestMistakesOfTheCaller(t *testing.T) {
	var usage *config.UsageError
	if err := Run(context.Background(), config.Config{Handler: config.HandlerCPU}, Options{Args: []string{"x"}}); !errors.As(err, &usage) {
		t.Errorf("%v", err)
	}
}
