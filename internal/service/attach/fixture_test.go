package attach

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"hakaru"
)

// The service of these tests is this test binary with FIXTURE set: it answers
// with the content of CONF as it was at its start. "master" has a child that
// holds the socket too, "deaf" notes a TERM and does not end at it.

func TestMain(m *testing.M) {
	switch os.Getenv("FIXTURE") {
	case "":
		goleak.VerifyTestMain(m)
	case "child":
		<-make(chan int)
	default:
		os.Exit(serve(os.Getenv("FIXTURE")))
	}
}

func serve(mode string) int {
	text, err := os.ReadFile(os.Getenv("CONF"))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	network := "tcp"
	if strings.HasPrefix(os.Getenv("LISTEN"), "/") {
		network = "unix"
	}
	l, err := net.Listen(network, os.Getenv("LISTEN"))
	for range 200 { // the one before it was killed and may not be gone
		if err == nil {
			break
		}
		time.Sleep(10 * time.Millisecond)
		l, err = net.Listen(network, os.Getenv("LISTEN"))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	if mode == "master" {
		file, err := l.(*net.TCPListener).File()
		if err != nil {
			return 1
		}
		child := exec.Command(os.Args[0])
		child.Env = []string{"FIXTURE=child"}
		child.ExtraFiles = []*os.File{file}
		child.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
		if err := child.Start(); err != nil {
			return 1
		}
	}
	if mode == "deaf" {
		signals := make(chan os.Signal, 1)
		signal.Notify(signals, syscall.SIGTERM)
		go func() {
			<-signals
			_ = os.WriteFile(os.Getenv("PIDFILE")+".term", []byte("told"), 0o600) // the test misses it then
		}()
	}
	if err := os.WriteFile(os.Getenv("PIDFILE"), []byte(strconv.Itoa(os.Getpid())), 0o600); err != nil {
		return 1
	}
	err = http.Serve(l, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.Write(text) }))
	fmt.Fprintln(os.Stderr, err)
	return 1
}

// server is a service that is up, with the scripts of its person.
type server struct {
	t       *testing.T
	dir     string
	address string
}

func newServer(t *testing.T, mode string) server {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := server{t, t.TempDir(), l.Addr().String()}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	s.write("conf", "old")
	// start leaves the server in the background of the script's own session.
	s.script("start", fmt.Sprintf(`rm -f pid
FIXTURE=%s CONF=conf LISTEN=%s PIDFILE=pid %s >/dev/null 2>&1 &
i=0
while ! [ -s pid ]; do
  kill -0 $! 2>/dev/null || exit 1
  sleep 0.01
done`, mode, s.address, os.Args[0]))
	s.script("restart", `kill -9 "$(cat pid)"; exec ./start`)
	s.script("undo", `echo undo >> log; echo old > conf; exec ./restart`)
	if out, err := exec.Command(s.path("start")).CombinedOutput(); err != nil {
		t.Fatalf("start: %v\n%s", err, out)
	}
	t.Cleanup(func() {
		if pid := s.pid(); pid != 0 {
			_ = syscall.Kill(pid, syscall.SIGKILL) // it may have ended
		}
	})
	return s
}

func (s server) path(name string) string { return filepath.Join(s.dir, name) }

func (s server) write(name, text string) {
	s.t.Helper()
	if err := os.WriteFile(s.path(name), []byte(text), 0o600); err != nil {
		s.t.Fatal(err)
	}
}

func (s server) script(name, text string) {
	s.t.Helper()
	text = "#!/bin/sh\ncd " + s.dir + " || exit 1\n" + text + "\n"
	if err := os.WriteFile(s.path(name), []byte(text), 0o700); err != nil {
		s.t.Fatal(err)
	}
}

func (s server) read(name string) string {
	text, err := os.ReadFile(s.path(name))
	if err != nil {
		return ""
	}
	return string(text)
}

func (s server) pid() int {
	pid, err := strconv.Atoi(s.read("pid"))
	if err != nil {
		return 0
	}
	return pid
}

// answers is what it says.
func (s server) answers() string {
	s.t.Helper()
	got, err := ask(s.t.Context(), hakaru.Unit{Ready: s.ready()})
	if err != nil {
		return err.Error()
	}
	return strings.TrimPrefix(got[0].Got, "200 OK: ")
}

func (s server) ready() hakaru.Ready {
	return hakaru.Ready{Get: "http://" + s.address + "/", Timeout: 10 * time.Second}
}

// unit applies "new" and restarts.
func (s server) unit() hakaru.Unit {
	return hakaru.Unit{
		Service: "app", Dir: s.dir, Ready: s.ready(),
		Attached: &hakaru.Attached{
			Apply:   []string{"sh", "-c", "echo apply >> log; echo new > conf"},
			Restart: []string{"./restart"}, Undo: []string{"./undo"},
		},
	}
}
