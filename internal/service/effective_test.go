package service

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
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

func TestGunicornInForce(t *testing.T) {
	t.Parallel()
	u := gunicorn("-w", "2")
	s := mustUp(t, one(u), options(t))
	booted := hakaru.Ask{Kind: "log", Argument: `Booting worker with pid: (\d+)`, Count: true}
	with := func(a hakaru.Ask, asked string) hakaru.Ask { a.Asked = asked; return a }
	check(t, s, hakaru.AtReady, // its workers come up after the arbiter listens
		seen{hakaru.Ask{Kind: "processes", Asked: "2", Offset: 1}, "^3$", "", yes},
		seen{with(booted, "2"), "^2$", "output of the service", yes},
	)
	check(t, s, hakaru.UnderLoad,
		seen{hakaru.Ask{Kind: "processes", Asked: "3", Offset: 1}, "^3$", "(asked for, and 1): pids ", no},
		seen{with(booted, "3"), "^2$", "output of the service", no},
		seen{hakaru.Ask{Kind: "log", Argument: `Using worker: (\S+)$`, Asked: "gthread"}, "^Using worker: sync$", "output of the service", no},
		seen{hakaru.Ask{Kind: "threads", Asked: "4"}, "^1$", "threads of its processes: pids ", no},
		seen{hakaru.Ask{Kind: "log", Argument: `Shutting down`, Absent: true}, "^not there$", "output", yes},
		seen{hakaru.Ask{Kind: "log", Argument: `^.*Listening at: http`, Absent: true}, "Listening at: http", "output", no},
	)
	// What cannot be seen yet is not asked.
	late := []hakaru.Ask{with(booted, "2"), {Kind: "log", Argument: "Booting", From: hakaru.UnderLoad}, {Kind: "log", Argument: "Booting", From: hakaru.AtEnd}}
	for when, want := range map[hakaru.Moment]int{hakaru.AtReady: 1, hakaru.UnderLoad: 2, hakaru.AtEnd: 3} {
		if proofs := s.Prove(t.Context(), late, when); len(proofs) != want {
			t.Errorf("at %s: %+v", when, proofs)
		}
	}
	down(t, s)
}

func gunicorn(more ...string) hakaru.Unit {
	u := program("gunicorn", append([]string{"-b", "{http}", "--chdir", "{hakaru.dir}"}, append(more, "app:app")...)...)
	u.Files = []hakaru.File{{Path: "app.py", Content: wsgiApp}}
	return u
}

const wsgiApp = `def app(environ, start_response):
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [b"fib is 6765\n"]
`

func uwsgi(lines ...string) hakaru.Unit {
	u := program("uwsgi", "--ini", "{hakaru.dir}/uwsgi.ini")
	u.Files = []hakaru.File{
		{Path: "app.py", Content: wsgiApp},
		{Path: "uwsgi.ini", Content: "[uwsgi]\nchdir = {hakaru.dir}\n" + strings.Join(lines, "\n") + "\n"},
	}
	u.Ready = hakaru.Ready{Get: "http://{http}/", Body: "6765", Timeout: 20 * time.Second}
	return u
}

var uwsgiApp = []string{"plugins = http,python3", "http-socket = {http}", "module = app", "callable = app"}

// A mistyped name is ignored without a word; the number of workers tells.
func TestUWSGIInForce(t *testing.T) {
	t.Parallel()
	workers := hakaru.Ask{Kind: "log", Argument: `spawned uWSGI worker (\d+) `, Count: true, Asked: "4"}
	for _, tt := range []struct {
		name, line, count string
		holds             hakaru.Held
	}{
		{"right", "processes = 4", "4", yes},
		{"mistyped", "proceses = 4", "1", no},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := mustUp(t, one(uwsgi(append(uwsgiApp, tt.line, "master = true", "stats = {hakaru.dir}/stats")...)), options(t))
			count := "^" + tt.count + "$"
			when := hakaru.UnderLoad
			if tt.holds == yes {
				when = hakaru.AtReady // the last worker may come up after the first answer
			}
			check(t, s, when,
				seen{workers, count, "output of the service", tt.holds},
				seen{hakaru.Ask{Kind: "processes", Asked: "4", Offset: 1}, "", "processes", tt.holds},
				seen{hakaru.Ask{Kind: "http", Argument: "unix:{hakaru.dir}/stats", Field: "workers.length", Asked: "4"}, count, "what unix:/", tt.holds},
				seen{hakaru.Ask{Kind: "http", Argument: "unix:{hakaru.dir}/stats", Field: "workers.0.accepting", Asked: "on"}, "^1$", "workers.0.accepting", yes},
				seen{hakaru.Ask{Kind: "log", Argument: `bound to TCP address {http} fd`, Asked: "{http}"}, "^bound to TCP address 127.0.0.1:", "output", yes},
				seen{hakaru.Ask{Kind: "backlog", Asked: "100"}, "^100 on 127.0.0.1:", "(uwsgi --ini ", yes},
			)
			// Request lines, one a request, of which there was one at least.
			check(t, s, hakaru.AtReady, // it is written after the answer
				seen{hakaru.Ask{Kind: "log", Argument: `^\[pid: `, Asked: "false"}, `^\[pid: $`, "output", yes},
			)
			check(t, s, hakaru.AtEnd,
				seen{hakaru.Ask{Kind: "log", Argument: `^\[pid: `, Asked: "true", Absent: true, From: hakaru.AtEnd}, `^\[pid: $`, "output", no},
			)
			down(t, s)
		})
	}
}

func TestCommandInForce(t *testing.T) {
	t.Parallel()
	u := memcached()
	setenv(&u, "POOL", "8 of them")
	u.Dir = "/usr"
	s := mustUp(t, one(u), options(t))
	command := func(line, asked string) hakaru.Ask { return hakaru.Ask{Kind: "command", Argument: line, Asked: asked} }
	port := s.Place().Names["http.port"]
	check(t, s, hakaru.UnderLoad,
		seen{command("cat /proc/{pid}/comm", "memcached"), "^memcached$", "command: cat /proc/{pid}/comm", yes},
		seen{command("cat /proc/{pid}/comm", "redis"), "^memcached$", "command: ", no},
		seen{command("printenv POOL", "8 of them"), "^8 of them$", "command: ", yes},
		seen{command("printenv HAKARU_MARK", "x"), "^exit status 1$", "command: ", not},
		seen{command("pwd", "/usr"), "^/usr$", "command: ", yes},
		seen{command("echo port {http.port}", "port "+port), "^port " + port + "$", "command: ", yes},
		seen{hakaru.Ask{Kind: "command", Argument: `printf 'a\nthreads: 4\nb\n'`, Contains: "threads: 4"}, "^threads: 4$", "command: ", yes},
		seen{hakaru.Ask{Kind: "command", Argument: `echo '{"pool": {"size": 3}}'`, Field: "pool.size", Asked: "4"}, "^3$", "command: ", no},
		seen{command(`sh -c 'echo 4; echo one >&2; echo cannot open the moon >&2; exit 3'`, "4"), "^exit status 3: cannot open the moon$", "command: ", not},
		seen{command("no-such-program", "4"), "^command not found: no-such-program$", "command: ", not},
		seen{command("echo 4 | cat", "4"), "^the command line is more than one plain command$", "command: ", not},
		seen{command(`sh -c 'sleep 611.25 & exec sleep 611.25'`, "4"), "^it did not end within ", "command: ", not},
		seen{command(`sh -c 'sleep 611.25 & echo 4'`, "4"), "^4$", "command: ", yes},
	)
	for _, pid := range processes(t) {
		if words, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/cmdline"); err == nil && string(words) == "sleep\x00611.25\x00" {
			t.Errorf("pid %d of a command is left", pid)
		}
	}
	down(t, s)
}

// MariaDB takes a value that is too high, or a setting in a section that is not
// its own, without an error.
func TestMariaDBInForce(t *testing.T) {
	t.Parallel()
	u := mariadb(t)
	u.Files = []hakaru.File{{Path: "my.cnf", Content: "[mariadbd]\nmax_connections = 200000\nslow_query_log = ON\nkey_buffer_size = 16M\nsocket = {hakaru.dir}/sock\n[client]\nthread_cache_size = 7\n"}}
	u.SQL = "root@unix({hakaru.dir}/sock)/"
	// The same server under other data sources.
	source := func(service, sql string) hakaru.Unit {
		v := hakaru.Unit{Service: service, Argv: []string{"sleep", "600"}, Dir: "/", SQL: sql, Ready: hakaru.Ready{Timeout: 20 * time.Second}}
		return v
	}
	b := hakaru.Bundle{Units: []hakaru.Unit{u,
		source("password", "root:hunter2@unix({hakaru.dir}/sock)/"),
		source("socket", "root@unix({hakaru.dir}/sick)"),
		source("port", "root@tcp(127.0.0.1:1)/"),
		source("garbled", "root:hun/ter2@{hakaru.dir}"),
		source("none", ""),
	}}
	s := mustUp(t, b, options(t))
	ask := func(service, statement, asked string) hakaru.Ask {
		return hakaru.Ask{Service: service, Kind: "sql", Argument: statement, Asked: asked}
	}
	const global = "select @@global."
	check(t, s, hakaru.UnderLoad,
		// Cut to 100000, and further to what the limit of open files allows.
		seen{ask("mariadbd", global+"max_connections", "200000"), `^\d{3,6}$`, "sql: select @@global.max_connections", no},
		seen{ask("mariadbd", global+"thread_cache_size", "7"), `^\d+$`, "sql: ", no},
		seen{ask("mariadbd", global+"slow_query_log", "ON"), "^1$", "sql: ", yes},
		seen{ask("mariadbd", "show variables like 'slow_query_log'", "1"), "^ON$", "sql: ", yes},
		seen{ask("mariadbd", global+"key_buffer_size", "16M"), "^16777216$", "sql: ", yes},
		seen{ask("mariadbd", global+"key_buffer_size", "8M"), "^16777216$", "sql: ", no},
		seen{hakaru.Ask{Service: "mariadbd", Kind: "sql", Argument: "select @@sql_mode", Contains: "STRICT_TRANS_TABLES"}, "STRICT_TRANS_TABLES", "sql: ", yes},
		seen{ask("mariadbd", "show variables like 'max_connection'", "1"), "the statement gives no row$", "sql: ", not},
		seen{ask("mariadbd", global+"max_connection", "1"), "^the server has no such variable: Unknown system variable 'max_connection'$", "sql: ", not},
		seen{ask("mariadbd", "selec 1", "1"), "^the server says: You have an error in your SQL syntax", "sql: ", not},
		seen{ask("mariadbd", "select 1, 2, 3", "1"), "the statement gives 3 columns; one value is wanted$", "sql: ", not},
		seen{ask("mariadbd", "select sleep(30)", "0"), "deadline exceeded|i/o timeout", "sql: ", not},
		seen{ask("password", global+"max_connections", "1"), `^access denied for user root \(with the password given\): under the service write sql: user:password@unix\(/.*/sock\)/$`, "sql: ", not},
		seen{ask("socket", global+"max_connections", "1"), `^no server answers at unix\(/.*/sick\): connect: no such file or directory; under the service sql: `, "sql: ", not},
		seen{ask("port", global+"max_connections", "1"), `^no server answers at tcp\(127.0.0.1:1\): connect: connection refused; under the service sql: `, "sql: ", not},
		seen{ask("garbled", global+"max_connections", "1"), `^the data source cannot be read: write sql: user:password@tcp\(host:port\)/ or user@unix\(/path\)/$`, "sql: ", not},
		seen{ask("none", global+"max_connections", "1"), "^it is not known where to ask; under the service write sql: ", "sql: ", not},
	)
	down(t, s)
}

// mariadb is a unit with a data directory of its own; it reads my.cnf of the
// private directory, and listens at no port.
func mariadb(t *testing.T) hakaru.Unit {
	t.Helper()
	dir, err := os.MkdirTemp("", "hkdb")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	data := filepath.Join(dir, "data")
	install := exec.CommandContext(t.Context(), "mariadb-install-db", "--no-defaults", "--datadir="+data, "--auth-root-authentication-method=normal", "--skip-test-db")
	u := hakaru.Unit{
		Service: "mariadbd", Dir: dir, Stop: hakaru.Stop{Grace: 10 * time.Second},
		Argv:  []string{"mariadbd", "--defaults-file={hakaru.dir}/my.cnf", "--datadir=" + data, "--pid-file={hakaru.dir}/pid", "--skip-networking"},
		Ready: hakaru.Ready{Log: "ready for connections", Timeout: 60 * time.Second},
	}
	if os.Geteuid() == 0 {
		u.User = "mysql" // it does not run as root
		install.Args = append(install.Args, "--user=mysql")
	}
	if out, err := install.CombinedOutput(); err != nil {
		t.Fatalf("mariadb-install-db: %v\n%s", err, out)
	}
	return u
}

func processes(t *testing.T) []int {
	t.Helper()
	list, err := kernel.PIDs(nil)
	if err != nil {
		t.Fatal(err)
	}
	return list
}
