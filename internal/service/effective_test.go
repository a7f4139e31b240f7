package service

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"hakaru"
	"hakaru/internal/watch/kernel"
)

// The proofs against real programs: each kind holds, and fails for the right
// reason where the file, the command line or the environment says one thing and
// the process does another.

// seen is an ask, and what is to come of it.
type seen struct {
	ask    hakaru.Ask
	found  string // a regular expression
	source string // a part
	holds  hakaru.Held
}

func check(t *testing.T, s *Stack, when hakaru.Moment, list ...seen) {
	t.Helper()
	for _, want := range list {
		want.ask.Setting = "x"
		proofs := s.Prove(t.Context(), []hakaru.Ask{want.ask}, when)
		if len(proofs) != 1 {
			t.Errorf("%+v: %d proofs", want.ask, len(proofs))
			continue
		}
		p := proofs[0]
		if !regexp.MustCompile(want.found).MatchString(p.Found) || !strings.Contains(p.Source, want.source) || p.Holds != want.holds {
			t.Errorf("%+v:\n%v: %q from %q\nwant %v: %q from %q", want.ask, p.Holds, p.Found, p.Source, want.holds, want.found, want.source)
		}
	}
}

// program is a unit of a real program that listens at {http}.
func program(name string, argv ...string) hakaru.Unit {
	return hakaru.Unit{
		Service: name, Argv: append([]string{name}, argv...), Dir: "/",
		Ready: hakaru.Ready{Connect: "{http}", Timeout: 20 * time.Second},
		Stop:  hakaru.Stop{Signal: "KILL"}, // some take a second to end, which is not what is tested
	}
}

func memcached(more ...string) hakaru.Unit {
	return program("memcached", append([]string{"-l", "127.0.0.1", "-p", "{http.port}", "-u", "root"}, more...)...)
}

// wrapped makes the unit the child of other words.
func wrapped(u hakaru.Unit, words ...string) hakaru.Unit {
	u.Argv = append(words, u.Argv...)
	return u
}

func jemalloc(t *testing.T) string {
	t.Helper()
	found, err := filepath.Glob("/usr/lib/*/libjemalloc.so.2")
	if err != nil || len(found) == 0 {
		t.Fatalf("libjemalloc2 is not installed: %v", err)
	}
	return found[0]
}

// staticProgram builds a program that no library can be loaded into.
func staticProgram(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	const source = `package main

import (
	"os"
	"os/signal"
	"syscall"
)

func main() {
	end := make(chan os.Signal, 1)
	signal.Notify(end, syscall.SIGTERM)
	os.Stdout.WriteString("ready\n")
	<-end
}
`
	if err := os.WriteFile(filepath.Join(dir, "main.go"), []byte(source), 0o600); err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(dir, "static")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", program, "main.go")
	build.Dir = dir
	build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=", "GOWORK=off")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	return program
}

const yes, no, not = hakaru.Yes, hakaru.No, hakaru.NotProved

func TestLibraryInForce(t *testing.T) {
	t.Parallel()
	library := jemalloc(t)
	maps := hakaru.Ask{Kind: "maps", Asked: "libjemalloc.so.2"}
	environ := hakaru.Ask{Kind: "environ", Argument: "LD_PRELOAD", Contains: "jemalloc"}
	static := program("static")
	static.Argv = []string{staticProgram(t)}
	static.Ready = hakaru.Ready{Log: "ready", Timeout: 20 * time.Second}
	gone := memcached()
	// A second allocator: the same library by another name.
	other := filepath.Join(t.TempDir(), "libtcmalloc.so.4")
	content, err := os.ReadFile(library)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(other, content, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name    string
		unit    hakaru.Unit
		preload string
		want    []seen
	}{
		{"preloaded", memcached(), library, []seen{
			{maps, `/libjemalloc\.so\.2$`, "maps of pid ", yes},
			{environ, "^LD_PRELOAD=", "environ of pid ", yes},
			{hakaru.Ask{Kind: "maps", Contains: "libjemalloc", Absent: true}, "libjemalloc", "maps of pid ", no},
		}},
		{"not asked for", memcached(), "", []seen{
			{maps, "^not mapped: LD_PRELOAD is not in the environment of pid [0-9]+$", "maps of pid ", no},
			{hakaru.Ask{Kind: "maps", Contains: "libjemalloc", Absent: true}, "^not mapped$", "maps of pid ", yes},
			{hakaru.Ask{Kind: "maps", Asked: "libevent"}, "libevent", "maps of pid ", yes},
			{hakaru.Ask{Kind: "maps", Asked: "mod_http"}, "^not mapped$", "maps of pid ", no}, // nothing that is preloaded
		}},
		{"wrong path", memcached(), "/usr/lib/jemalloc/libjemalloc.so.2", []seen{
			{maps, "^not mapped: LD_PRELOAD names /usr/lib/jemalloc/libjemalloc.so.2, which does not exist$", "maps of pid ", no},
			{environ, "^LD_PRELOAD=", "environ of pid ", yes},
		}},
		{"wrong name", memcached(), "libjemaloc.so.2", []seen{
			{maps, "^not mapped: ERROR: ld.so: object 'libjemaloc.so.2' from LD_PRELOAD cannot be preloaded", "maps of pid ", no},
		}},
		{"environment cleared", wrapped(gone, "env", "-i"), library, []seen{
			{maps, "^not mapped: LD_PRELOAD was given to the command and is not in the environment of pid [0-9]+: env -i, sudo", "maps of pid ", no},
			{environ, "^not set: LD_PRELOAD was given to the command and taken away on the way: env -i", "environ of pid ", no},
		}},
		{"wrapper has it", wrapped(gone, "sh", "-c", `env -i "$@"; exit $?`, "sh"), library, []seen{
			{maps, "^not mapped: LD_PRELOAD is in the environment of its wrapper, pid [0-9]+ \\(sh -c .*, and not in its own", "maps of pid ", no},
			{environ, "^not set: its wrapper, pid [0-9]+ \\(sh -c .* has LD_PRELOAD, and did not hand it on$", "environ of pid ", no},
		}},
		{"another allocator before it", memcached(), other + ":" + library, []seen{
			{maps, `/libjemalloc\.so\.2; libtcmalloc\.so\.4 is mapped too, and comes before it in search order \(LD_PRELOAD\): tcmalloc serves$`, "maps of pid ", no},
		}},
		{"another allocator after it", memcached(), library + " " + other, []seen{
			{maps, `/libjemalloc\.so\.2; libtcmalloc\.so\.4 is mapped too, and comes after it in search order: jemalloc serves$`, "maps of pid ", yes},
		}},
		{"static program", static, library, []seen{
			{maps, "^not mapped: it can never be loaded: /.*/static is statically linked$", "maps of pid ", no},
			{environ, "^LD_PRELOAD=", "environ of pid ", yes},
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			u := tt.unit
			u.Env = nil
			if tt.preload != "" {
				setenv(&u, "LD_PRELOAD", tt.preload)
			} else {
				u.Env = []hakaru.EnvVar{{Name: "LD_PRELOAD"}}
			}
			s := mustUp(t, one(u), options(t))
			check(t, s, hakaru.UnderLoad, tt.want...)
			down(t, s)
		})
	}
}

// The file says one port and the process has another; what answers at the
// first is somebody else's, or nobody.
func TestMemcachedInForce(t *testing.T) {
	t.Parallel()
	other, otherPort := foreignMemcached(t)
	b := one(memcached("-m", "64", "-t", "3", "-c", "200"))
	b.Leases = append(b.Leases, hakaru.Lease{Name: "nobody", Service: "nothing"})
	s := mustUp(t, b, options(t))
	port := s.Place().Names["http.port"]
	stats := func(field, asked string) hakaru.Ask {
		return hakaru.Ask{Kind: "stats", Argument: "{http}", Field: field, Asked: asked}
	}
	check(t, s, hakaru.UnderLoad,
		seen{stats("tcpport", otherPort), "^" + port + "$", "stats settings of 127.0.0.1:", no},
		seen{stats("tcpport", port), "^" + port + "$", "stats settings of 127.0.0.1:", yes},
		seen{hakaru.Ask{Kind: "cmdline", Argument: "-p", Asked: otherPort}, "^-p " + port + "$", "cmdline of pid ", no},
		seen{stats("tcpport", "{http.port}"), "^" + port + "$", "tcpport", yes}, // a name is compared as what it stands for
		seen{hakaru.Ask{Kind: "cmdline", Argument: "-p", Equals: "{http.port}"}, "^-p " + port + "$", "cmdline of pid ", yes},
		seen{stats("maxbytes", "64M"), "^67108864$", "stats settings", yes},
		seen{stats("maxbytes", "1024M"), "^67108864$", "stats settings", no},
		seen{stats("limit_maxbytes", "67108864"), "^67108864$", "stats of 127.0.0.1:", yes},
		seen{stats("num_threads", "3"), "^3$", "num_threads", yes},
		seen{stats("num_threds", "3"), `^neither "stats settings" nor "stats" of 127.0.0.1:\d+ has num_threds$`, "", not},
		seen{stats("", "3"), "^which key of the answer is not said", "", not},
		seen{hakaru.Ask{Kind: "stats", Argument: "{nobody}", Field: "tcpport", Asked: port}, "connection refused", "stats settings", not},
		seen{hakaru.Ask{Kind: "stats", Argument: "127.0.0.1:" + otherPort, Field: "tcpport", Asked: otherPort},
			fmt.Sprintf(`^127.0.0.1:%s is held by pid %d \(memcached .*which hakaru did not start$`, otherPort, other), "", not},
		seen{hakaru.Ask{Kind: "backlog", Asked: "1024"}, "^1024 on 127.0.0.1:" + port + "$", " (memcached -l ", yes},
		seen{hakaru.Ask{Kind: "http", Argument: "tcp://127.0.0.1:" + otherPort, Asked: "1"}, "which hakaru did not start$", "", not},
	)
	down(t, s)
}

// foreignMemcached is one that hakaru did not start.
func foreignMemcached(t *testing.T) (pid int, port string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	_, port, _ = net.SplitHostPort(addr)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("memcached", "-l", "127.0.0.1", "-p", port, "-u", "root")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := cmd.Process.Kill(); err != nil {
			t.Error(err)
		}
		_ = cmd.Wait() // killed
	})
	dial(t, addr)
	return cmd.Process.Pid, port
}

// dial waits until the address accepts.
func dial(t *testing.T, addr string) {
	t.Helper()
	end := time.NewTimer(20 * time.Second)
	defer end.Stop()
	again := time.NewTicker(10 * time.Millisecond)
	defer again.Stop()
	for {
		c, err := net.Dial("tcp", addr)
		if err == nil {
			if err := c.Close(); err != nil {
				t.Fatal(err)
			}
			return
		}
		select {
		case <-end.C:
			t.Fatal(err)
		case <-again.C:
		}
	}
}

// nginx is a unit with its config in the private directory.
func nginx(config string) hakaru.Unit {
	u := program("nginx", "-c", "{hakaru.dir}/nginx.conf", "-e", "stderr")
	u.Files = []hakaru.File{{Path: "nginx.conf", Content: config}}
	return u
}

const nginxConfig = `daemon off;
user root;
worker_processes 2;
pid {hakaru.dir}/nginx.pid;
error_log stderr;
events { worker_connections 64; }
http {
	access_log off;
	server {
		listen {http} backlog=100000;
		location / { return 200 "workers: 2\n"; }
		location /status { default_type application/json; return 200 '{"workers": 2}'; }
	}
}
`

func TestNginxInForce(t *testing.T) {
	t.Parallel()
	b, err := os.ReadFile("/proc/sys/net/core/somaxconn")
	if err != nil {
		t.Fatal(err)
	}
	most := strings.TrimSpace(string(b))
	opt := options(t)
	outside := filepath.Join(opt.TempDir, "outside.conf")
	if err := os.WriteFile(outside, []byte("worker_processes 2;\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	old := time.Now().Add(-time.Hour)
	if err := os.Chtimes(outside, old, old); err != nil {
		t.Fatal(err)
	}
	u := nginx(nginxConfig)
	setenv(&u, "LD_PRELOAD", jemalloc(t))
	s := mustUp(t, one(u), opt)
	file := func(path, text string) hakaru.Ask {
		return hakaru.Ask{Kind: "file", Argument: path, Contains: text}
	}
	check(t, s, hakaru.AtReady, // its workers may come up a moment later
		seen{hakaru.Ask{Kind: "processes", Asked: "2", Offset: 1}, "^3$", "processes of the service (asked for, and 1)", yes},
	)
	check(t, s, hakaru.UnderLoad,
		seen{hakaru.Ask{Kind: "backlog", Asked: "100000"}, "^" + most + ` on 127\.0\.0\.1:\d+, cut by net\.core\.somaxconn$`, "to pid ", no},
		seen{hakaru.Ask{Kind: "backlog", Asked: most}, "^" + most + ` on 127\.0\.0\.1:\d+$`, "(nginx: master process ", yes},
		// Its title lies over its words and its environment; its maps are whole.
		seen{hakaru.Ask{Kind: "environ", Argument: "LD_PRELOAD", Contains: "jemalloc"}, "^pid [0-9]+ has written its title over its environment$", "environ", not},
		seen{hakaru.Ask{Kind: "environ", Argument: "LD_PRELOAD", Absent: true}, "^pid [0-9]+ has written its title over its environment$", "environ", not},
		seen{hakaru.Ask{Kind: "maps", Asked: "libjemalloc.so.2"}, "/libjemalloc.so.2$", "maps of pid ", yes},
		seen{hakaru.Ask{Kind: "cmdline", Argument: "-e", Asked: "stderr"}, "^-e stderr$", "cmdline of pid ", yes},
		seen{hakaru.Ask{Kind: "cmdline", Argument: "-g", Asked: "x"}, "^pid [0-9]+ has written a title over its words: nginx: ", "cmdline", not},
		seen{hakaru.Ask{Kind: "http", Argument: "http://{http}/status", Field: "workers", Asked: "4"}, "^2$", ", workers", no},
		seen{hakaru.Ask{Kind: "http", Argument: "http://{http}/", Contains: "workers: 2"}, "^workers: 2$", "GET http://127.0.0.1:", yes},
		seen{hakaru.Ask{Kind: "http", Argument: "tcp://{http}", Asked: "2"}, "nothing was sent; if HTTP is spoken there, write the path too$", "what tcp://", not},
		seen{file("nginx.conf", "worker_connections 64;"), "worker_connections 64;", "nginx.conf as written", yes},
		seen{file("nginx.conf", "worker_connections 128;"), "^not there$", "nginx.conf as written", no},
		seen{file(outside, "worker_processes 2;"), "worker_processes 2;", "file " + outside, yes},
		seen{file(outside+".d", "x"), "no such file or directory", "outside.conf.d", not},
	)
	edited := filepath.Join(s.Place().Dir, "nginx.conf")
	content := strings.Replace(s.Place().Units[0].Files[0].Content, "worker_connections 64", "worker_connections 128", 1)
	if err := os.WriteFile(edited, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	later := time.Now().Add(time.Second)
	for _, path := range []string{edited, outside} {
		if err := os.Chtimes(path, later, later); err != nil {
			t.Fatal(err)
		}
	}
	const newer = `^written at [0-9:.]+, the process is older \([0-9:.]+\): the file is newer than the process$`
	check(t, s, hakaru.UnderLoad,
		seen{file("nginx.conf", "worker_connections 128;"), newer, "nginx.conf", no},
		seen{file("nginx.conf", "worker_connections 64;"), "^not there$", "nginx.conf", no},
		seen{file(outside, "worker_processes 2;"), newer, "outside.conf", no},
	)
	down(t, s)
}

func processes(t *testing.T) []int {
	t.Helper()
	list, err := kernel.PIDs(nil)
	if err != nil {
		t.Fatal(err)
	}
	return list
}
