package kind_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"hakaru"
)

// Settings reach each program in its own way, under the name that counts there.
func TestPut(t *testing.T) {
	for name, c := range map[string]struct {
		kind, content string
		settings      []hakaru.Setting
		want          string
	}{
		"uwsgi: a synonym takes the place of the other": {"uwsgi", "[uwsgi]\nprocesses = 2\n", []hakaru.Setting{set("workers", "4")}, "[uwsgi]\nworkers = 4\n"},
		"gunicorn: the file has other names than the flags": {"gunicorn", "workers = 2\n", []hakaru.Setting{set("worker-class", "gthread"), set("preload", "true")},
			"workers = 2\n# Set by hakaru:\nworker_class = \"gthread\"\npreload_app = True\n"},
		"gunicorn: sendfile": {"gunicorn", "sendfile = True\n", []hakaru.Setting{set("sendfile", "false")}, "# Set by hakaru:\nsendfile = False\n"},
		"gunicorn: on is no word of Python": {"gunicorn", "", []hakaru.Setting{set("preload", "on"), set("reload", "0")},
			"# Set by hakaru:\npreload_app = True\nreload = False\n"},
		"nginx: an upstream's is its own": {"nginx", "http { upstream u { server a; keepalive_timeout 60; }\nkeepalive_timeout 75; }\n",
			[]hakaru.Setting{set("keepalive_timeout", "5")}, "http { upstream u { server a; keepalive_timeout 60; }\nkeepalive_timeout 5; }\n"},
		"nginx: so is what only an upstream has": {"nginx", "http { upstream u { server a; keepalive_requests 60; } }\n",
			[]hakaru.Setting{set("keepalive_requests", "5")}, "http { upstream u { server a; keepalive_requests 5; } }\n"},
		"nginx: stream listens by itself": {"nginx", "stream { server { listen 53 udp; } }\nhttp { server { listen 80; } }\n",
			[]hakaru.Setting{set("listen", "81")}, "stream { server { listen 53 udp; } }\nhttp { server { listen 81; } }\n"},
		"nginx: where the directive is usual": {"nginx", "events {}\nhttp {\n    server { listen 80; }\n}\n",
			[]hakaru.Setting{set("worker_processes", "2"), set("worker_connections", "64"), set("keepalive_timeout", "5"), set("listen", "{http}")},
			"worker_processes 2;\nevents {\n    worker_connections 64;\n}\nhttp {\n    keepalive_timeout 5;\n    server { listen {http}; }\n}\n"},
		"nginx: where it stands, since an inner block counts more": {"nginx", "events {}\nhttp { server { listen {http}; location / { gzip on; } } }\n",
			[]hakaru.Setting{set("gzip", "off")}, "events {}\nhttp { server { listen {http}; location / { gzip off; } } }\n"},
		"mariadb: - and _ are the same":       {"mariadb", "[mysqld]\nmax_connections = 5\n", []hakaru.Setting{set("max-connections", "9")}, "[mysqld]\nmax_connections = 9\n"},
		"mariadb: what is the client's stays": {"mariadb", "[client]\nport = 1\n", []hakaru.Setting{set("port", "2")}, "[client]\nport = 1\n[mysqld]\nport = 2\n"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := load(t, c.kind).EditFile(c.content, c.settings)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// What nginx says of a line of the copy is true of the person's own file.
func TestEditCopyKeepsLines(t *testing.T) {
	const content = "# mine\nevents {}\nhttp {\n    sendfil on;\n}\n"
	got, err := load(t, "nginx").EditCopy(content, []hakaru.Setting{set("worker_processes", "2"), set("gzip", "on"), set("pid", "{hakaru.dir}/n")})
	if err != nil {
		t.Fatal(err)
	}
	if lines := strings.Split(got, "\n"); len(lines) < 4 || !strings.Contains(lines[3], "sendfil on;") {
		t.Errorf("line 4 is another one in\n%s", got)
	}
}

func TestPutWords(t *testing.T) {
	for name, c := range map[string]struct {
		kind, line string
		settings   []hakaru.Setting
		want       string
	}{
		"gunicorn: a short flag in place":          {"gunicorn", "gunicorn -w 2 app:app", []hakaru.Setting{set("workers", "4")}, "gunicorn --workers=4 app:app"},
		"gunicorn: the file's name for a flag":     {"gunicorn", "gunicorn app:app", []hakaru.Setting{set("worker_class", "sync"), set("accesslog", "-")}, "gunicorn app:app --worker-class=sync --access-logfile=-"},
		"gunicorn: a switch on":                    {"gunicorn", "gunicorn app:app", []hakaru.Setting{set("preload", "yes")}, "gunicorn app:app --preload"},
		"gunicorn: a switch off":                   {"gunicorn", "gunicorn --preload app:app", []hakaru.Setting{set("preload", "off")}, "gunicorn app:app"},
		"gunicorn: what switches off":              {"gunicorn", "gunicorn app:app", []hakaru.Setting{set("no-sendfile", "true")}, "gunicorn app:app --no-sendfile"},
		"gunicorn: a switch takes no word":         {"gunicorn", "gunicorn --preload app:app", []hakaru.Setting{set("preload", "true")}, "gunicorn --preload app:app"},
		"memcached: a number behind a letter":      {"memcached", "memcached -t4 -u nobody", []hakaru.Setting{set("threads", "2")}, "memcached --threads=2 -u nobody"},
		"memcached: null":                          {"memcached", "memcached -m 64", []hakaru.Setting{set("memory-limit")}, "memcached"},
		"puma: two values":                         {"puma", "puma -t 1:5 config.ru", []hakaru.Setting{set("threads", "2:4")}, "puma --threads=2:4 config.ru"},
		"mariadb: after what has to be first":      {"mariadb", "mariadbd --defaults-file=my.cnf", []hakaru.Setting{set("max_connections", "9")}, "mariadbd --defaults-file=my.cnf --max_connections=9"},
		"mariadb: in place, - for _":               {"mariadb", "mariadbd --max-connections=5", []hakaru.Setting{set("max_connections", "9")}, "mariadbd --max_connections=9"},
		"uwsgi: a switch that only a list knows":   {"uwsgi", "uwsgi --http-socket :1", []hakaru.Setting{set("thunder-lock", "true"), set("log-date", "true")}, "uwsgi --http-socket :1 --thunder-lock --log-date=true"},
		"uwsgi: a short flag among the synonyms":   {"uwsgi", "uwsgi -p 2 -M", []hakaru.Setting{set("workers", "3")}, "uwsgi --workers=3 -M"},
		"serve: in place, what is behind it stays": {"serve", "hakaru serve --threads 1 --log off", []hakaru.Setting{set("threads", "2")}, "hakaru serve --threads=2 --log off"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := load(t, c.kind).EditWords(strings.Fields(c.line), c.settings)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, strings.Join(got, " ")); diff != "" {
				t.Error(diff)
			}
		})
	}
	if _, err := load(t, "gunicorn").EditWords([]string{"gunicorn"}, []hakaru.Setting{set("on_starting", "x")}); err == nil {
		t.Error("a setting of gunicorn.conf.py alone became a flag")
	}
	if _, err := load(t, "gunicorn").EditWords([]string{"gunicorn"}, []hakaru.Setting{set("sendfile", "false")}); err == nil {
		t.Error("sendfile became a flag, and there is only no-sendfile")
	}
	if got, err := load(t, "gunicorn").EditFile("", []hakaru.Setting{set("no-sendfile", "true")}); err == nil {
		t.Errorf("a flag became a name of gunicorn.conf.py: %s", got)
	}
	if _, err := load(t, "nginx").EditWords([]string{"nginx"}, []hakaru.Setting{set("gzip", "on")}); err == nil {
		t.Error("nginx took a flag")
	}
}

// Taking a flag away does not switch off what a config file switches on.
func TestOffBy(t *testing.T) {
	for name, c := range map[string]struct{ kind, line, content, setting, value, want string }{
		"a file that is not seen":       {"uwsgi", "uwsgi --ini app.ini", "", "master", "false", "app.ini"},
		"on is a flag":                  {"uwsgi", "uwsgi --ini app.ini", "", "master", "true", ""},
		"of a value":                    {"uwsgi", "uwsgi --ini app.ini", "", "processes", "0", ""},
		"no file":                       {"uwsgi", "uwsgi --http :1", "", "master", "off", ""},
		"a config by another name":      {"gunicorn", "gunicorn -c conf a:a", "", "preload", "no", "conf"},
		"Ruby that has it":              {"puma", "puma -C puma.rb", "threads 1, 2\npreload_app!\n", "preload", "false", "FILE"},
		"Ruby that has it in a comment": {"puma", "puma -C puma.rb", "# preload_app!\n", "preload", "false", ""},
		"Python that computes it":       {"gunicorn", "gunicorn -c c.py a:a", "import os\npreload_app = bool(os.environ.get('X'))\n", "preload", "false", "FILE"},
		"a value that can be written":   {"mariadb", "mariadbd --defaults-file=my.cnf", "", "skip-name-resolve", "off", ""},
	} {
		k, words := load(t, c.kind), strings.Fields(c.line)
		if got := k.OffBy(c.content, "FILE", k.Unseen(words, c.content), set(c.setting, c.value)); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// A setting for an address does not leave another, or make one of several, unsaid.
func TestOverwritten(t *testing.T) {
	for name, c := range map[string]struct {
		kind, content string
		settings      []hakaru.Setting
		want          string
	}{
		"in its place":          {"uwsgi", "[uwsgi]\nhttp = :80\n", []hakaru.Setting{set("http", "{http}")}, ""},
		"beside another":        {"uwsgi", "[uwsgi]\nhttp-socket = :80\n", []hakaru.Setting{set("http", "{http}")}, "http is put in, and the config file listens with http-socket = :80, which stays; http-socket: null takes it out"},
		"in place of another":   {"uwsgi", "[uwsgi]\nhttp-socket = :80\n", []hakaru.Setting{set("http", "{http}"), set("http-socket")}, ""},
		"nginx with one server": {"nginx", "http { server { listen 80; } }\n", []hakaru.Setting{set("listen", "{http}")}, ""},
		"nginx with a stream":   {"nginx", "stream { server { listen 53 udp; } }\nhttp { server { listen 80; } }\n", []hakaru.Setting{set("listen", "{http}")}, ""},
		"nginx with two": {"nginx", "http { server { listen 80; }\nserver { listen 443 ssl; } }\n", []hakaru.Setting{set("listen", "{http}")},
			"listen stands in 2 lines of the config file, and all of them become this one, without what else they say; with {listen} written in the line that is meant, only that changes"},
	} {
		k := load(t, c.kind)
		after, err := k.EditFile(c.content, c.settings)
		if err != nil {
			t.Fatal(err)
		}
		setting, what := k.Overwritten(c.content, after, c.settings)
		if got := strings.TrimSpace(setting + " " + what); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// A key of the person's own file that the program ignores is found, but not one
// that the file uses itself.
func TestStrays(t *testing.T) {
	for name, c := range map[string]struct {
		kind, content string
		want          []string // name:line:column near sure
	}{
		"uwsgi: mistyped":          {"uwsgi", "[uwsgi]\nproceses = 4\n", []string{"proceses 2:1 processes sure"}},
		"uwsgi: a variable":        {"uwsgi", "[uwsgi]\nprocesess = 4\nprocesses = %(processes)\nbase = /srv\nchdir = %(base)/app\nlog = $(base)\n", []string{"procesess 2:1 processes sure", "log 6:1  "}},
		"uwsgi: another section":   {"uwsgi", "[other]\nproceses = 4\n", nil},
		"uwsgi: nothing like it":   {"uwsgi", "[uwsgi]\n  whatever-it-is = 1\n", []string{"whatever-it-is 2:3  "}},
		"uwsgi: of other plugins":  {"uwsgi", "[uwsgi]\npsgi = app.pl\nphp-docroot = /srv\nrack = config.ru\ngevent = 100\n", nil},
		"uwsgi: options":           {"uwsgi", "[uwsgi]\nplugins = http\nenv = A=1\nenv = B=2\nset-ph = x=1\nif-env = X\nendif =\nstrict = true\n", nil},
		"uwsgi: from elsewhere":    {"uwsgi", "[uwsgi]\nworker_processes = 4\n", []string{"worker_processes 2:1 processes sure"}},
		"gunicorn: like a setting": {"gunicorn", "import os\nwokers = 3\nhelper = 7\nworkers = 2\n", []string{"wokers 2:1 workers "}},
		"nginx refuses it itself":  {"nginx", "workr_processes 2;\n", nil},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, s := range load(t, c.kind).Strays(c.content) {
				text := s.Name + " " + itoa(s.Line) + ":" + itoa(s.Column) + " " + s.Near + " "
				if s.Sure {
					text += "sure"
				}
				got = append(got, text)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// A program that is loud about unknown names is given the benefit of the doubt,
// one that is not is not.
func TestRefuses(t *testing.T) {
	for _, c := range []struct{ kind, name, want string }{
		{"uwsgi", "proceses", `did you mean "processes"?`}, {"uwsgi", "harakiri-verbose", ""}, {"uwsgi", "nothing-of-the-kind", "known are "},
		{"nginx", "workers", `nginx calls it "worker_processes"`}, {"nginx", "worker_proceses", `did you mean "worker_processes"?`}, {"nginx", "brotli_comp_level", ""},
		{"mariadb", "max_conections", `did you mean "max-connections"?`}, {"mariadb", "innodb_read_io_threads", ""}, {"mariadb", "rocksdb_block_cache_size", ""},
		{"gunicorn", "processes", `gunicorn calls it "workers"`}, {"gunicorn", "worker_class", ""}, {"gunicorn", "worker-class", ""}, {"gunicorn", "pidfile", ""},
		{"memcached", "maxbytes", `memcached calls it "memory-limit"`}, {"memcached", "thread", `did you mean "threads"?`}, {"puma", "max-threads", `puma calls it "threads"`},
	} {
		fix, refused := load(t, c.kind).Refuses(c.name)
		if refused != (c.want != "") || !strings.HasPrefix(fix, c.want) {
			t.Errorf("%s.%s: %v, %q, want %q", c.kind, c.name, refused, fix, c.want)
		}
	}
}
