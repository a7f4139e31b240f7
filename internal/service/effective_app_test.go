package service

import (
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"hakaru"
)

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
	u.Files = []hakaru.File{{Path: "my.cnf", Content: "[mariadbd]\nmax_connections = 200000\nslow_query_log = ON\nkey_buffer_size = 16M\nconcurrent_insert = 2\nquery_cache_type = 2\ncharacter_set_server = utf8\nsql_mode = ANSI\noptimizer_switch = mrr=on\nlog_bin = mysql-bin\nthread_handling = one-thread-per-connection\nsocket = {hakaru.dir}/sock\n[client]\nthread_cache_size = 7\n"}}
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
	runsAs := u.User
	if runsAs == "" {
		me, err := user.Current()
		if err != nil {
			t.Fatal(err)
		}
		runsAs = me.Username
	}
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
		// In force, and told in other words: no contradiction.
		seen{ask("mariadbd", global+"concurrent_insert", "2"), "^ALWAYS; it may be the server's word for it$", "sql: ", not},
		seen{ask("mariadbd", global+"query_cache_type", "2"), "^DEMAND; it may be the server's word for it$", "sql: ", not},
		seen{ask("mariadbd", global+"character_set_server", "utf8"), "^utf8mb3; it may be", "sql: ", not},
		seen{ask("mariadbd", global+"sql_mode", "ANSI"), "ANSI_QUOTES,.*; it may be", "sql: ", not},
		seen{ask("mariadbd", global+"optimizer_switch", "mrr=on"), "^index_merge=on,.*; it may be", "sql: ", not},
		seen{ask("mariadbd", global+"log_bin", "mysql-bin"), "^1; it may be", "sql: ", not},
		seen{hakaru.Ask{Service: "mariadbd", Kind: "sql", Argument: global + "thread_handling", Asked: "pool-of-threads", Exact: true}, "^one-thread-per-connection$", "sql: ", no},
		seen{hakaru.Ask{Service: "mariadbd", Kind: "sql", Argument: "select @@sql_mode", Contains: "ANSI_QUOTES"}, "ANSI_QUOTES", "sql: ", yes},
		seen{ask("mariadbd", "show variables like 'max_connection'", "1"), "the statement gives no row$", "sql: ", not},
		seen{ask("mariadbd", global+"max_connection", "1"), "^the server has no such variable: Unknown system variable 'max_connection'$", "sql: ", not},
		seen{ask("mariadbd", "selec 1", "1"), "^the server says: You have an error in your SQL syntax", "sql: ", not},
		seen{ask("mariadbd", "select 1, 2, 3", "1"), "the statement gives 3 columns; one value is wanted$", "sql: ", not},
		seen{ask("mariadbd", "select sleep(30)", "0"), "^unix.*sock.* did not answer within 2s$", "sql: ", not},
		seen{hakaru.Ask{Service: "mariadbd", Kind: "command", Argument: "id -un", Asked: runsAs}, "^" + runsAs + "$", "command: id -un", yes},
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
