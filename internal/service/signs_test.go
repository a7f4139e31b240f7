package service

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"hakaru"
)

// Real programs that cannot start, each in the way people meet.
func TestSabotage(t *testing.T) {
	t.Parallel()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := taken.Close(); err != nil {
			t.Error(err)
		}
	})
	held := fmt.Sprintf("%s is held by pid %d (", taken.Addr(), os.Getpid())
	broken := func(u hakaru.Unit) hakaru.Unit {
		u.Files[0].Content = "import flask_that_is_not_there\n"
		return u
	}
	dynamic := hakaru.Sign{Pattern: "no app loaded. going in full dynamic mode", Hint: "look at the Traceback; need-app = true makes uWSGI stop", Fatal: true}
	noApp := hakaru.Sign{Pattern: "^ModuleNotFoundError: ", Hint: "install the module"}
	atTaken := strings.Replace(nginxConfig, "listen {http} backlog=100000", "listen "+taken.Addr().String(), 1)
	wrongData := hakaru.Unit{
		Service: "mariadbd", Dir: "/", Argv: []string{"mariadbd", "--no-defaults", "--datadir={hakaru.dir}/nothing", "--socket={hakaru.dir}/sock", "--skip-networking", "--user=root"},
		Ready: hakaru.Ready{Log: "ready for connections", Timeout: 20 * time.Second},
	}
	for _, tt := range []struct {
		name   string
		unit   hakaru.Unit
		signs  []hakaru.Sign
		why    []string // parts, in order
		exit   string
		output string
		hint   string
	}{
		{name: "uwsgi without its plugins", unit: uwsgi("http = {http}", "module = app"),
			signs: []hakaru.Sign{{Pattern: `The -s/--socket option is missing`, Hint: "on Debian: plugins = http,python3"}},
			why:   []string{"it ended before it was ready (exit status 1)", "; it says: The -s/--socket option is missing and stdin is not a socket."}, exit: "exit status 1", hint: "plugins = http,python3"},
		{name: "uwsgi without its Python", unit: uwsgi(uwsgiApp[1:]...),
			signs: []hakaru.Sign{{Pattern: `^-- unavailable modifier requested`, Hint: "plugins = python3", Fatal: true}},
			why:   []string{"it will not become ready: -- unavailable modifier requested: 0 --"}, hint: "plugins = python3"},
		{name: "uwsgi app raises", unit: broken(uwsgi(append(uwsgiApp, "need-app = true")...)),
			signs: []hakaru.Sign{noApp, dynamic},
			why:   []string{"it ended before it was ready (exit status 22)", "; it says: ModuleNotFoundError: No module named 'flask_that_is_not_there'"}, exit: "exit status 22", hint: "install the module", output: "unable to load app 0"},
		{name: "uwsgi app raises and it goes on", unit: broken(uwsgi(uwsgiApp...)),
			signs: []hakaru.Sign{noApp, dynamic},
			why:   []string{"it will not become ready: *** no app loaded. going in full dynamic mode ***", "; it says: ModuleNotFoundError: "}, hint: "install the module"},
		{name: "gunicorn with a bad worker class", unit: gunicorn("-k", "gthreads"),
			signs: []hakaru.Sign{{Pattern: `Error: class uri .* invalid or not found`, Hint: "name a worker class that is installed"}},
			why:   []string{"it ended before it was ready (exit status 1)", "; it says: Error: class uri 'gthreads' invalid or not found"}, exit: "exit status 1", hint: "name a worker class", output: "gthreads"},
		{name: "nginx with a syntax error", unit: nginx(strings.Replace(nginxConfig, "access_log off;", "acess_log off;", 1)),
			signs: []hakaru.Sign{{Pattern: `\[emerg\].* unknown directive`, Hint: "look at that line"}, {Pattern: `\[emerg\]`, Hint: "another"}},
			why:   []string{"it ended before it was ready (exit status 1)", `; it says: `, `[emerg]`, `unknown directive "acess_log" in /`, "nginx.conf:8"}, exit: "exit status 1", hint: "look at that line"},
		{name: "nginx at a port that is taken", unit: nginx(atTaken),
			signs: []hakaru.Sign{{Pattern: `\[emerg\] .*bind\(\) to .* failed`, Hint: "another", Fatal: true}}, // it tries for 2.5 s
			why:   []string{"it will not become ready: ", "; " + held, "which hakaru did not start"}, hint: "end that process, or let hakaru choose the port", output: "Address already in use"},
		{name: "gunicorn at a port that is taken", unit: gunicornAt(taken.Addr().String()),
			signs: []hakaru.Sign{{Pattern: `Connection in use: `, Fatal: true}},
			why:   []string{"it will not become ready: ", "Connection in use: ", "; " + held}, hint: "end that process", output: "Connection in use"},
		{name: "mariadbd without its data", unit: wrongData,
			signs: []hakaru.Sign{{Pattern: `Can't change dir to`, Hint: "mariadb-install-db makes a data directory"}},
			why:   []string{"it ended before it was ready (exit status 1)", "; it says: ", "Can't change dir to '/"}, exit: "exit status 1", hint: "mariadb-install-db"},
		{name: "memcached in the background", unit: memcached("-d"),
			why: []string{"the command ended (exit 0) and left pid", "hakaru needs it in the foreground"}, exit: "exit status 0", hint: "switch off its daemon mode"},
		{name: "script whose interpreter is not there", unit: script(t, "#!/opt/perl5/bin/perl -w\n"),
			why: []string{"its first line names /opt/perl5/bin/perl, which is not there"}},
		{name: "program of no kind", unit: script(t, "echo a\n"),
			why: []string{"it is neither a program for this machine nor a script that begins with #!"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			tt.unit.Signs = tt.signs
			opt := options(t)
			s, err := Up(t.Context(), one(tt.unit), opt)
			if err == nil {
				down(t, s)
				t.Fatal("it started")
			}
			start, ok := errors.AsType[*StartError](err)
			if !ok {
				t.Fatalf("%T: %v", err, err)
			}
			rest := start.Why
			for _, part := range tt.why {
				_, after, found := strings.Cut(rest, part)
				if !found {
					t.Errorf("why: %s\nlacks: %s", start.Why, part)
				}
				rest = after
			}
			if start.Exit != tt.exit || !strings.Contains(start.Output, tt.output) || !strings.Contains(start.Hint, tt.hint) || (start.Hint == "") != (tt.hint == "") {
				t.Errorf("exit %q, hint %q, output:\n%s\nwant exit %q, hint %q, output %q", start.Exit, start.Hint, start.Output, tt.exit, tt.hint, tt.output)
			}
			nothingIn(t, opt.StateDir)
			nothingIn(t, opt.TempDir)
		})
	}
}

func gunicornAt(addr string) hakaru.Unit {
	u := gunicorn()
	u.Argv[2] = addr
	return u
}

func script(t *testing.T, text string) hakaru.Unit {
	t.Helper()
	path := filepath.Join(t.TempDir(), "app")
	if err := os.WriteFile(path, []byte(text), 0o700); err != nil {
		t.Fatal(err)
	}
	u := program("app")
	u.Argv[0] = path
	return u
}

// A right answer proves more than a line that says there will be none; that
// something listens does not.
func TestFatalSignAndAnswer(t *testing.T) {
	t.Parallel()
	sign := []hakaru.Sign{{Pattern: "^fixture serve begins", Hint: "mend it", Fatal: true}}
	for name, ready := range map[string]hakaru.Ready{
		"connect": {Connect: "{http}"},
		"log":     {Log: "fixture serve begins"},
		"nothing": {},
		"get":     {Get: "http://{http}/", Status: 404},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			u := fixtureUnit("app", "serve")
			u.Signs, u.Ready = sign, ready
			_, err := Up(t.Context(), one(u), options(t))
			start, ok := errors.AsType[*StartError](err)
			if !ok || start.Why != "it will not become ready: fixture serve begins" || start.Hint != "mend it" || start.Exit != "" {
				t.Errorf("%+v", err)
			}
		})
	}
}

// A pattern that cannot be compiled is hakaru's mistake, not the variant's.
func TestBadSign(t *testing.T) {
	t.Parallel()
	u := fixtureUnit("app", "serve")
	u.Signs = []hakaru.Sign{{Pattern: "("}}
	_, err := Up(t.Context(), one(u), options(t))
	if start, ok := errors.AsType[*StartError](err); err == nil || ok {
		t.Errorf("%v, %v", err, start)
	}
}

func TestExplain(t *testing.T) {
	list, err := compileSigns([]hakaru.Sign{
		{Pattern: "^ModuleNotFoundError", Hint: "install it"},
		{Pattern: "unable to load app"},
		{Pattern: "Address already in use", Hint: "end the other"},
		{Pattern: "load", Hint: "general"},
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ name, text, lines, hint string }{
		{"nothing", "all is well\n", "", ""},
		{"order of the signs", "unable to load app 0\r\nModuleNotFoundError: x\nModuleNotFoundError: y\n", "ModuleNotFoundError: x | unable to load app 0", "install it"},
		{"the first with a hint", "unable to load app 0\n", "unable to load app 0", "general"},
		{"a line without an end", "bind(): Address already in use", "bind(): Address already in use", "end the other"},
		{"long", "load " + strings.Repeat("ä", 400), "load " + strings.Repeat("ä", 294) + "…", "general"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			lines, hint := list.explain(tt.text)
			if got := strings.Join(lines, " | "); got != tt.lines || hint != tt.hint {
				t.Errorf("%q, %q; want %q, %q", got, hint, tt.lines, tt.hint)
			}
		})
	}
}

// What programs say of a port that somebody has, as seen.
func TestTakenAddress(t *testing.T) {
	for _, tt := range []struct{ name, text, want string }{
		{"nginx", "2026/11/30 20:00:00 [emerg] 12#12: bind() to 127.0.0.1:8080 failed (98: Address already in use)", "127.0.0.1:8080"},
		{"nginx everywhere", "nginx: [emerg] bind() to 0.0.0.0:80 failed (98: Address already in use)", "127.0.0.1:80"},
		{"nginx over IPv6", "nginx: [emerg] bind() to [::1]:80 failed (98: Address already in use)", "[::1]:80"},
		{"gunicorn", "[2026-11-30 20:00:00 +0000] [12] [ERROR] Connection in use: ('127.0.0.1', 8000)", "127.0.0.1:8000"},
		{"uwsgi", "probably another instance of uWSGI is running on the same address (127.0.0.1:9090).\nbind(): Address already in use [core/socket.c line 769]", "127.0.0.1:9090"},
		{"memcached", "bind(): Address already in use\nfailed to listen on TCP port 11211: Address already in use", "127.0.0.1:11211"},
		{"mariadbd", "[ERROR] Can't start server: Bind on TCP/IP port. Got error: 98: Address already in use\n[ERROR] Do you already have another server running on port: 3306 ?", "127.0.0.1:3306"},
		{"puma", `bind': Address already in use - bind(2) for "127.0.0.1" port 9292 (Errno::EADDRINUSE)`, "127.0.0.1:9292"},
		{"go", "listen tcp :8080: bind: address already in use", "127.0.0.1:8080"},
		{"node", "Error: listen EADDRINUSE: address already in use :::3000", "127.0.0.1:3000"},
		{"python without one", "OSError: [Errno 98] Address already in use", ""},
		{"of a socket", "bind() to unix:/run/a.sock failed (98: Address already in use)", ""},
		{"another error", "connect to 127.0.0.1:3306 failed", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			addr, ok := takenAddress(tt.text)
			if got := addr.String(); ok != (tt.want != "") || ok && got != tt.want {
				t.Errorf("%s, %v; want %q", got, ok, tt.want)
			}
		})
	}
}
