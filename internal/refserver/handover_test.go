package refserver

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"hakaru/internal/refserver/config"

	"github.com/google/go-cmp/cmp"
)

// A queue of one still serves, and so do two listeners at once.
func TestSmallBacklog(t *testing.T) {
	s := start(t, config.Config{Backlog: 1}, nil)
	for range 5 {
		if code, _ := get(t, s.address, "/"); code != 200 {
			t.Error(code)
		}
	}
}

// process is a master in a process of its own.
type process struct {
	cmd       *exec.Cmd
	addresses []string
	stderr    *text
}

func startProcess(t *testing.T, cfg config.Config, env []string, files ...*os.File) *process {
	t.Helper()
	data, err := json.Marshal(cfg)
	if err != nil {
		t.Fatal(err)
	}
	p := &process{stderr: &text{}}
	p.cmd = exec.Command("/proc/self/exe")
	p.cmd.Env = append(append(workerEnv(os.Environ(), "master"), masterVariable+"="+string(data)), env...)
	p.cmd.ExtraFiles = files
	p.cmd.Stderr = p.stderr
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if p.cmd.ProcessState == nil {
			_ = p.cmd.Process.Kill()
			_ = p.cmd.Wait()
		}
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	words := strings.Fields(line)
	if err != nil || len(words) < 2 || words[0] != "ready" {
		t.Fatalf("not ready: %q, %v\n%s", line, err, p.stderr)
	}
	p.addresses = words[1:]
	return p
}

func TestWorkersEndWithTheMaster(t *testing.T) {
	p := startProcess(t, config.Config{Listen: "127.0.0.1:0", Processes: 3, Wait: time.Hour}, nil)
	busy, err := dial(p.addresses[0])
	if err != nil {
		t.Fatal(err)
	}
	defer busy.conn.Close()
	if err := busy.send("/"); err != nil {
		t.Fatal(err)
	}
	workers := awaitStatus(t, p.addresses[0], "busy", func(s Status) bool {
		for _, w := range s.Workers {
			if w.Busy > 0 {
				return true
			}
		}
		return false
	}).Workers
	if err := p.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	for _, w := range workers {
		awaitEnd(t, w.PID)
	}
	_ = p.cmd.Wait() // it was killed
}

func listening(t *testing.T, network, address string) (net.Listener, *os.File) {
	t.Helper()
	l, err := net.Listen(network, address)
	if err != nil {
		t.Fatal(err)
	}
	f, err := l.(interface{ File() (*os.File, error) }).File()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close(); l.Close() })
	return l, f
}

func TestSystemdActivation(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	tcp, a := listening(t, "tcp", "127.0.0.1:0")
	_, b := listening(t, "unix", path)
	p := startProcess(t, config.Config{Processes: 2, Backlog: 9, Grace: time.Second}, []string{"LISTEN_FDS=2", "LISTEN_PID=self", "LISTEN_FDNAMES=web:local"}, a, b)
	if d := cmp.Diff([]string{tcp.Addr().String(), "unix:" + path}, p.addresses); d != "" {
		t.Error(d)
	}
	for _, address := range p.addresses {
		if got := status(t, address); len(got.Listen) != 2 || got.Backlog != 9 {
			t.Errorf("%+v", got)
		}
	}
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Wait(); err != nil {
		t.Errorf("%v\n%s", err, p.stderr)
	}
	if _, err := os.Stat(path); err != nil {
		t.Errorf("the socket file is systemd's: %v", err)
	}
}

// start_server's way of a restart: the new service is started on the same
// socket, and when it is up the old one gets SIGTERM.
func TestServerStarterHandover(t *testing.T) {
	l, f := listening(t, "tcp", "127.0.0.1:0")
	address := l.Addr().String()
	env := func(generation int) []string {
		return []string{"SERVER_STARTER_PORT=" + address + "=3", fmt.Sprintf("SERVER_STARTER_GENERATION=%d", generation)}
	}
	cfg := config.Config{Processes: 2, Wait: time.Millisecond, Grace: 10 * time.Second}
	old := startProcess(t, cfg, env(1), f)
	ctx, cancel := context.WithCancel(context.Background())
	type outcome struct {
		answers int
		err     error
	}
	ended := make(chan outcome, 1)
	go func() {
		n, err := load{address, "/9000", 6, 200}.until(ctx)
		ended <- outcome{n, err}
	}()
	fresh := startProcess(t, cfg, env(2), f)
	if err := old.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := old.cmd.Wait(); err != nil {
		t.Errorf("the old one: %v\n%s", err, old.stderr)
	}
	if got := status(t, address); got.PID != fresh.cmd.Process.Pid {
		t.Errorf("%d serves, want %d", got.PID, fresh.cmd.Process.Pid)
	}
	cancel()
	if o := <-ended; o.err != nil || o.answers == 0 {
		t.Errorf("%d answers, then a request was lost: %v", o.answers, o.err)
	}
	if err := fresh.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := fresh.cmd.Wait(); err != nil {
		t.Errorf("%v\n%s", err, fresh.stderr)
	}
}
