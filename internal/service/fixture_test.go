package service

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"hakaru"
	"hakaru/internal/endpoint"
)

// The programs that the tests start are this test binary with FIXTURE set: what
// they are to do. LISTEN is their address.

func TestMain(m *testing.M) {
	switch mode := os.Getenv("FIXTURE"); mode {
	case "":
		goleak.VerifyTestMain(m)
	case "agent":
		os.Exit(agent())
	default:
		os.Exit(fixture(mode))
	}
}

func fixture(mode string) int {
	terminated := make(chan os.Signal, 1)
	signal.Notify(terminated, syscall.SIGTERM, syscall.SIGINT)
	fmt.Printf("fixture %s begins\n", mode)
	switch mode {
	case "exit":
		fmt.Fprintln(os.Stderr, "cannot open the moon")
		code, _ := strconv.Atoi(os.Getenv("CODE"))
		return code
	case "quiet": // never listens
		<-terminated
		return 0
	case "log":
		fmt.Println("workers: 4, ready to serve")
		<-terminated
		return 0
	case "flood":
		line := make([]byte, 4096)
		for i := range line {
			line[i] = 'x'
		}
		line[len(line)-1] = '\n'
		for range 2000 {
			os.Stdout.Write(line)
		}
		fmt.Println("flood is over")
		<-terminated
		return 0
	case "daemon", "daemon-bare": // the child leaves session and, bare, environment
		child := exec.Command(os.Args[0], os.Args[1:]...)
		child.Env = []string{"FIXTURE=serve", "LISTEN=" + os.Getenv("LISTEN")}
		if mode == "daemon" {
			child.Env = append(os.Environ(), "FIXTURE=serve")
		}
		child.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		child.Stdout, child.Stderr = os.Stdout, os.Stderr
		if err := child.Start(); err != nil {
			return 1
		}
		return 0
	case "helpers": // another program, beside it
		for range 2 {
			if err := exec.Command("sleep", "600").Start(); err != nil {
				return 1
			}
		}
	case "workers": // a master with children, which outlive it
		for range 2 {
			child := exec.Command(os.Args[0])
			child.Env = append(os.Environ(), "FIXTURE=deaf")
			if err := child.Start(); err != nil {
				return 1
			}
		}
	}
	if mode == "undumpable" {
		// As the kernel does with a program that has file capabilities.
		if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
			return 1
		}
	}
	if mode == "deaf" {
		signal.Ignore(syscall.SIGTERM)
		<-make(chan int)
	}
	l, err := listen(os.Getenv("LISTEN"), os.Getenv("BACKLOG"))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	status, body := 200, "fib is 6765\n"
	switch mode {
	case "500":
		status, body = 500, "no such table\n"
	case "wrong":
		body = "It works!\n"
	case "json":
		body = `{"workers": 4, "pool": {"size": "8"}, "list": [1, 2]}`
	}
	server := http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		fmt.Fprint(w, body)
	})}
	served := make(chan error, 1)
	go func() { served <- server.Serve(l) }()
	if mode == "stubborn" {
		signal.Ignore(syscall.SIGTERM)
		terminated = nil
	}
	var after <-chan time.Time
	if mode == "dies" {
		after = time.After(300 * time.Millisecond)
	}
	select {
	case <-terminated:
		fmt.Println("told to end")
		return 0
	case <-after:
		fmt.Println("giving up")
		return 3
	case err := <-served:
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
}

// listen is net.Listen with a backlog of one's own.
func listen(address, backlog string) (net.Listener, error) {
	n, _ := strconv.Atoi(backlog)
	network, addr := endpoint.Address(address)
	if n == 0 || network == "unix" {
		return net.Listen(network, addr)
	}
	lc := net.ListenConfig{}
	l, err := lc.Listen(context.Background(), network, addr)
	if err != nil {
		return nil, err
	}
	raw, err := l.(*net.TCPListener).SyscallConn()
	if err != nil {
		return nil, err
	}
	var again error
	err = raw.Control(func(fd uintptr) { again = unix.Listen(int(fd), n) })
	if err == nil {
		err = again
	}
	return l, err
}

// agent brings a stack up and waits to be killed: the one that Sweep cleans up
// after.
func agent() int {
	bundle := hakaru.Bundle{
		Leases: []hakaru.Lease{{Name: "http"}},
		Units: []hakaru.Unit{
			fixtureUnit("first", cmp.Or(os.Getenv("FIRST"), "workers")), fixtureUnit("second", "serve"),
		},
	}
	bundle.Leases = append(bundle.Leases, hakaru.Lease{Name: "other", Service: "second"})
	other := "{other}"
	bundle.Units[1].Env[1].Value = &other
	bundle.Units[1].Ready.Get = "http://{other}/"
	fmt.Println("begin")
	s, err := Up(context.Background(), bundle, Options{
		StateDir: os.Getenv("STATE"), TempDir: os.Getenv("TEMP"),
		Environ: os.Environ(), NoCgroup: os.Getenv("NOCGROUP") != "",
	})
	if err != nil {
		fmt.Println(err)
		return 1
	}
	fmt.Println("up", s.Place().ID)
	if os.Getenv("FIRST") != "" { // it is what is asked about; nobody kills this agent
		for _, w := range s.Warnings() {
			fmt.Println(w.Code, w.Message)
		}
		s.Down(context.Background())
		return 0
	}
	<-make(chan int)
	return 0
}

// fixtureUnit is a unit of this binary that listens at {http}.
func fixtureUnit(name, mode string) hakaru.Unit {
	exe, err := os.Executable()
	if err != nil {
		panic(err)
	}
	at := "{http}"
	return hakaru.Unit{
		Service: name, Argv: []string{exe, "-test.run=^$"}, Dir: "/",
		Env:   []hakaru.EnvVar{{Name: "FIXTURE", Value: &mode}, {Name: "LISTEN", Value: &at}},
		Ready: hakaru.Ready{Get: "http://{http}/", Body: "6765", Timeout: 20 * time.Second},
		Stop:  hakaru.Stop{Grace: 5 * time.Second},
	}
}

func one(u hakaru.Unit) hakaru.Bundle {
	return hakaru.Bundle{Leases: []hakaru.Lease{{Name: "http"}}, Units: []hakaru.Unit{u}}
}

func setenv(u *hakaru.Unit, name, value string) {
	for i := range u.Env {
		if u.Env[i].Name == name {
			u.Env[i].Value = &value
			return
		}
	}
	u.Env = append(u.Env, hakaru.EnvVar{Name: name, Value: &value})
}
