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

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

func TestInheritedSockets(t *testing.T) {
	for _, test := range []struct {
		name  string
		env   []string
		want  []inherited
		wrong string
	}{
		{"nothing", []string{"A=b"}, nil, ""},
		{"Server::Starter", []string{"SERVER_STARTER_PORT=127.0.0.1:8080=3;8081=4;/a=b.sock=5", "SERVER_STARTER_GENERATION=2"},
			[]inherited{{3, "127.0.0.1:8080", "Server::Starter"}, {4, "8081", "Server::Starter"}, {5, "/a=b.sock", "Server::Starter"}}, ""},
		{"without a descriptor", []string{"SERVER_STARTER_PORT=8080"}, nil, "is not ADDRESS=FD"},
		{"no number", []string{"SERVER_STARTER_PORT=8080=x"}, nil, "is not a descriptor"},
		{"systemd", []string{"LISTEN_FDS=2", "LISTEN_PID=77", "LISTEN_FDNAMES=web"}, []inherited{{3, "web", "systemd"}, {4, "", "systemd"}}, ""},
		{"for another process", []string{"LISTEN_FDS=2", "LISTEN_PID=78"}, nil, ""},
		{"no count", []string{"LISTEN_FDS=x", "LISTEN_PID=77"}, nil, "not a number of descriptors"},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, err := inheritedSockets(test.env, 77)
			if d := cmp.Diff(test.want, got, cmp.AllowUnexported(inherited{})); d != "" {
				t.Error(d)
			}
			if (test.wrong == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), test.wrong) {
				t.Errorf("%v, want %q", err, test.wrong)
			}
			if rest := handedOn(append(test.env, "KEPT=1")); rest[len(rest)-1] != "KEPT=1" || strings.Contains(strings.Join(rest, " "), "LISTEN") || strings.Contains(strings.Join(rest, " "), "STARTER") {
				t.Errorf("the workers get %q", rest)
			}
		})
	}
}

func TestAddressInUse(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	address := l.Addr().String()
	_, err = bind(address, 1)
	if want := fmt.Sprintf("listen %s: address in use by pid %d (", address, os.Getpid()); err == nil || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("%v, want %s", err, want)
	}
}

func TestHexAddress(t *testing.T) {
	for _, test := range []struct{ text, want string }{
		{"0100007F:1F90", "127.0.0.1 8080"},
		{"00000000000000000000000001000000:0050", "::1 80"},
		{"0100007F", ""},
		{"01007F:1F90", ""},
		{"x:1", ""},
	} {
		ip, port, ok := hexAddress(test.text)
		got := ""
		if ok {
			got = fmt.Sprint(ip, " ", port)
		}
		if got != test.want {
			t.Errorf("%s: %q, want %q", test.text, got, test.want)
		}
	}
}

func TestUnixSocketFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	first, err := bindUnix(path, 1)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := bindUnix(path, 1); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("address in use by pid %d", os.Getpid())) {
		t.Errorf("while somebody listens: %v", err)
	}
	if err := first.file.Close(); err != nil { // as after kill -9
		t.Fatal(err)
	}
	second, err := bindUnix(path, 1)
	if err != nil {
		t.Fatalf("a stale socket: %v", err)
	}
	if err := first.close(); err == nil || second.made == "" {
		t.Errorf("closing twice: %v", err)
	}
	if _, err := os.Stat(path); err != nil {
		t.Errorf("the socket of the second was taken away by the first: %v", err)
	}
	if err := second.close(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); !os.IsNotExist(err) {
		t.Errorf("left behind: %v", err)
	}
	if err := os.WriteFile(path, []byte("precious"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := bindUnix(path, 1); err == nil || !strings.Contains(err.Error(), "is no socket") {
		t.Errorf("a file in the way: %v", err)
	}
}

func TestBacklogInForce(t *testing.T) {
	l, err := bind("127.0.0.1:0", 1)
	if err != nil {
		t.Fatal(err)
	}
	defer l.close()
	if got := queueLength(l.fd, 1); got != 1 {
		t.Errorf("backlog %d", got)
	}
	if err := unix.Listen(l.fd, 1<<30); err != nil {
		t.Fatal(err)
	}
	if got := queueLength(l.fd, 1<<30); got == 1<<30 || got < 2 {
		t.Errorf("backlog %d: the kernel's limit does not show", got)
	}
}

// A queue of one still serves, and so do two listeners at once.
func TestSmallBacklog(t *testing.T) {
	s := start(t, Config{Backlog: 1}, nil)
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

func startProcess(t *testing.T, cfg Config, env []string, files ...*os.File) *process {
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
	p := startProcess(t, Config{Listen: "127.0.0.1:0", Processes: 3, Wait: time.Hour}, nil)
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
	p := startProcess(t, Config{Processes: 2, Backlog: 9, Grace: time.Second}, []string{"LISTEN_FDS=2", "LISTEN_PID=self", "LISTEN_FDNAMES=web:local"}, a, b)
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
	cfg := Config{Processes: 2, Wait: time.Millisecond, Grace: 10 * time.Second}
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

func TestNotAListeningSocket(t *testing.T) {
	f, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	_, err = openListeners(Default(), []string{fmt.Sprintf("SERVER_STARTER_PORT=8080=%d", f.Fd())})
	if err == nil || !strings.Contains(err.Error(), "take over descriptor") {
		t.Errorf("%v", err)
	}
}
