package service

import (
	"errors"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"hakaru"
	"hakaru/internal/service/registry"
)

// TestStartErrors: each way not to come up, in words, and nothing is left.
func TestStartErrors(t *testing.T) {
	missing := func(u *hakaru.Unit) { u.Argv[0] = "no-such-program-here" }
	tests := []struct {
		name   string
		mode   string
		change func(*hakaru.Unit)
		why    string
		output string
		hint   string
		exit   string
	}{
		{name: "answers 500", mode: "500", change: brief, why: "it did not become ready within 2s: GET http://ADDR/ answered 500 Internal Server Error: no such table; a status of 2xx is wanted", output: "fixture 500 begins", hint: "timeout"},
		{name: "never listens", mode: "quiet", change: func(u *hakaru.Unit) { u.Ready.Timeout = 300 * time.Millisecond }, why: "connection refused"},
		{name: "exits", mode: "exit", change: func(u *hakaru.Unit) { setenv(u, "CODE", "7") }, why: "it ended before it was ready (exit status 7)", output: "cannot open the moon", exit: "exit status 7"},
		{name: "exits at once, nothing asked", mode: "exit", change: func(u *hakaru.Unit) { setenv(u, "CODE", "1"); u.Ready.Get = "" }, why: "it ended before it was ready (exit status 1)"},
		{name: "exits well", mode: "exit", why: "it ended before it was ready (exit status 0)"},
		{name: "daemon", mode: "daemon", change: func(u *hakaru.Unit) { u.Ready.Body = "never" }, why: "the command ended (exit 0) and left pid ", hint: "daemon"},
		{name: "no such program", mode: "serve", change: missing, why: "command not found: no-such-program-here", hint: "PATH"},
		{name: "no such relative program", mode: "serve", change: func(u *hakaru.Unit) { u.Argv[0] = "./app" }, why: "command not found: ./app"},
		{name: "not executable", mode: "serve", change: func(u *hakaru.Unit) { u.Argv[0] = "/etc/passwd" }, why: "/etc/passwd is not executable"},
		{name: "no directory", mode: "serve", change: func(u *hakaru.Unit) { u.Dir = "/no/such" }, why: "its directory /no/such is not there"},
		{name: "file outside", mode: "serve", change: func(u *hakaru.Unit) { u.Files = []hakaru.File{{Path: "../x"}} }, why: "must lie inside the private directory"},
		{name: "no such user", mode: "serve", change: func(u *hakaru.Unit) { u.User = "nosuchuser" }, why: "run as user nosuchuser", hint: "name a user"},
		{name: "CPU that is not there", mode: "serve", change: func(u *hakaru.Unit) { u.CPUs = []int{1000} }, why: "CPU 1000 is not among those"},
		{name: "not a program", mode: "serve", change: func(u *hakaru.Unit) {
			u.Files = []hakaru.File{{Path: "x", Content: "\x00\x01", Mode: 0o700}}
			u.Argv[0] = "{hakaru.dir}/x"
		}, why: "exec format error"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			run := both
			if strings.Contains(tt.why, "did not become ready") {
				run = func(t *testing.T, f func(*testing.T, Options)) { t.Parallel(); f(t, options(t)) }
			}
			run(t, func(t *testing.T, opt Options) {
				u := fixtureUnit("app", tt.mode)
				if tt.change != nil {
					tt.change(&u)
				}
				_, err := Up(t.Context(), one(u), opt)
				var start *StartError
				if !errors.As(err, &start) {
					t.Fatalf("error %v", err)
				}
				why := start.Why
				if i := strings.Index(why, "127.0.0.1:"); i >= 0 {
					if j := strings.IndexAny(why[i:], "/ "); j > 0 {
						why = strings.ReplaceAll(why, why[i:i+j], "ADDR")
					}
				}
				if !strings.Contains(why, tt.why) {
					t.Errorf("why %q\nwant %q", why, tt.why)
				}
				if !strings.Contains(start.Output, tt.output) || !strings.Contains(start.Hint, tt.hint) || tt.exit != "" && start.Exit != tt.exit {
					t.Errorf("output %q, hint %q, exit %q", start.Output, start.Hint, start.Exit)
				}
				if tt.output != "" && !strings.Contains(err.Error(), tt.output) {
					t.Errorf("the error does not show the output: %v", err)
				}
			})
		})
	}
}

func brief(u *hakaru.Unit) { u.Ready.Timeout = 2 * time.Second }

// A daemon that wiped its environment and left its session is still found by
// its cgroup; without one it is found as long as its parent was seen with it,
// which nobody can promise: so only the first is held to it.
func TestBareDaemonInCgroup(t *testing.T) {
	t.Parallel()
	opt := options(t)
	u := fixtureUnit("app", "daemon-bare")
	u.Ready.Body = "never"
	if _, err := registry.CgroupParent(); err != nil {
		// Without a writable cgroup there is nothing to hold; the warning is.
		s, err := Up(t.Context(), one(fixtureUnit("app", "serve")), opt)
		if err != nil {
			t.Fatal(err)
		}
		down(t, s)
		if !hasWarning(s.Warnings(), "no_cgroup") {
			t.Error("no warning about the missing cgroup")
		}
		return
	}
	_, err := Up(t.Context(), one(u), opt)
	var start *StartError
	if !errors.As(err, &start) || !strings.Contains(start.Why, "needs it in the foreground") {
		t.Fatalf("error %v", err)
	}
	nothingIn(t, opt.StateDir)
}

func TestHeldAddress(t *testing.T) {
	both(t, func(t *testing.T, opt Options) {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		server := http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write([]byte("6765"))
		})}
		served := make(chan error, 1)
		go func() { served <- server.Serve(l) }()
		defer func() {
			if err := server.Close(); err != nil {
				t.Error(err)
			}
			<-served
		}()
		want := l.Addr().String() + " is held by pid " + strconv.Itoa(os.Getpid())
		for _, mode := range []string{"get", "connect", "localhost"} {
			u := fixtureUnit("app", "quiet")
			switch mode {
			case "get":
				u.Ready.Get = "http://" + l.Addr().String() + "/"
			case "connect":
				u.Ready = hakaru.Ready{Connect: l.Addr().String()}
			case "localhost":
				u.Ready.Get = "http://localhost:" + strconv.Itoa(l.Addr().(*net.TCPAddr).Port) + "/x"
			}
			_, err := Up(t.Context(), one(u), opt)
			if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "which hakaru did not start") {
				t.Errorf("%s: error %v", mode, err)
			}
			// The variant that wanted the address is not to blame.
			var start *StartError
			if !errors.As(err, &start) || !start.Foreign {
				t.Errorf("%s: %+v", mode, start)
			}
		}
	})
}

func TestUnixSocketHeld(t *testing.T) {
	t.Parallel()
	opt := options(t)
	path := filepath.Join(opt.TempDir, "held.sock")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	u := fixtureUnit("app", "quiet")
	u.Ready = hakaru.Ready{Connect: "unix:" + path}
	if _, err := Up(t.Context(), one(u), opt); err == nil || !strings.Contains(err.Error(), path+" is held by pid") {
		t.Errorf("error %v", err)
	}
}

// An ordinary user cannot see what a program with file capabilities has open: its
// own socket is not taken for somebody else's.
func TestHiddenHolder(t *testing.T) {
	t.Parallel()
	opt := options(t)
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	// Where the go command puts it, nobody else may pass.
	dir := filepath.Dir(opt.TempDir)
	own := filepath.Join(dir, "service.test")
	b, err := os.ReadFile(exe)
	if err == nil {
		err = os.WriteFile(own, b, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(own)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "FIXTURE=agent", "FIRST=undumpable", "STATE="+opt.StateDir, "TEMP="+opt.TempDir)
	if os.Geteuid() == 0 {
		const nobody = 65534
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
		for _, d := range []string{dir, opt.TempDir} {
			if err := os.Chown(d, nobody, nobody); err != nil {
				t.Fatal(err)
			}
		}
	}
	out, err := cmd.CombinedOutput()
	if said := string(out); err != nil || !strings.Contains(said, "\nup ") || !strings.Contains(said, "\nholder_unknown whether pid ") {
		t.Errorf("%v:\n%s", err, said)
	}
}
