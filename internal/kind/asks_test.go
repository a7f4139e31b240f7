package kind_test

import (
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"hakaru"
)

func itoa(n int) string { return strconv.Itoa(n) }

// Where a service listens, and is asked by SQL, as its command line and config
// file say.
func TestListens(t *testing.T) {
	for name, c := range map[string]struct{ kind, line, file, want, sql string }{
		"uwsgi: http-socket before http": {"uwsgi", "uwsgi", "[uwsgi]\nhttp = :80\nhttp-socket = 127.0.0.1:81\n", "127.0.0.1:81", ""},
		"uwsgi: everywhere":              {"uwsgi", "uwsgi", "[uwsgi]\nhttp = 0.0.0.0:80\n", "127.0.0.1:80", ""},
		"uwsgi: a bare port":             {"uwsgi", "uwsgi --http 8080", "", "127.0.0.1:8080", ""},
		"uwsgi: leased":                  {"uwsgi", "uwsgi --http={http}", "[uwsgi]\nhttp = :80\n", "{http}", ""},
		"uwsgi: a path":                  {"uwsgi", "uwsgi", "[uwsgi]\nsocket = /run/app.sock\n", "unix:/run/app.sock", ""},
		"uwsgi: nothing":                 {"uwsgi", "uwsgi", "[uwsgi]\n", "", ""},
		"uwsgi: the one of the trial":    {"uwsgi", "uwsgi", "[uwsgi]\nhttp-socket = :80\nhttp = {http}\n", "{http}", ""},
		"uwsgi: a variable":              {"uwsgi", "uwsgi", "[uwsgi]\nport = 80\nhttp = :%(port)\n", "", ""},
		"uwsgi: of the environment":      {"uwsgi", "uwsgi", "[uwsgi]\nhttp = 127.0.0.1:$(PORT)\n", "", ""},
		"uwsgi: a path that is relative": {"uwsgi", "uwsgi", "[uwsgi]\nsocket = app.sock\n", "unix:app.sock", ""},
		"uwsgi: a path in its directory": {"uwsgi", "uwsgi", "[uwsgi]\nchdir = /srv\nsocket = app.sock\n", "unix:/srv/app.sock", ""},
		"uwsgi: with certificates":       {"uwsgi", "uwsgi", "[uwsgi]\nhttps = :8443,a.crt,a.key\n", "127.0.0.1:8443", ""},
		"gunicorn: computed":             {"gunicorn", "gunicorn app:app", "import os\nbind = os.environ.get('BIND', '127.0.0.1:80')\n", "", ""},
		"gunicorn: with a name in it":    {"gunicorn", "gunicorn app:app", "port = 80\nbind = f'0.0.0.0:{port}'\n", "", ""},
		"gunicorn: a socket handed over": {"gunicorn", "gunicorn -b fd://3 app:app", "", "", ""},
		"gunicorn: its default":          {"gunicorn", "gunicorn app:app", "", "127.0.0.1:8000", ""},
		"gunicorn: the first of a list":  {"gunicorn", "gunicorn app:app", "bind = ['127.0.0.1:81', '127.0.0.1:82']\n", "127.0.0.1:81", ""},
		"gunicorn: unix":                 {"gunicorn", "gunicorn -b unix:/run/g.sock app:app", "", "unix:/run/g.sock", ""},
		"nginx: with options":            {"nginx", "nginx -c x", "http { server { listen *:81 default_server; } }", "127.0.0.1:81", ""},
		"nginx: of http":                 {"nginx", "nginx -c x", "stream { server { listen 53 udp; } } http { server { listen {http}; } }", "{http}", ""},
		"nginx: a part of a file":        {"nginx", "nginx -c x", "server { listen 82; }", "127.0.0.1:82", ""},
		"nginx: leased":                  {"nginx", "nginx -c x", "http { server { listen {http} backlog=5; } }", "{http}", ""},
		"nginx: IPv6":                    {"nginx", "nginx -c x", "http { server { listen [::]:81; } }", "[::1]:81", ""},
		"mariadb: its default":           {"mariadb", "mariadbd", "", "127.0.0.1:3306", "root@tcp(127.0.0.1:3306)/"},
		"mariadb: port and socket":       {"mariadb", "mariadbd --port={sql.port}", "[mysqld]\nsocket = /run/m.sock\n", "127.0.0.1:{sql.port}", "root@unix(/run/m.sock)/"},
		"mariadb: no network":            {"mariadb", "mariadbd --port=5", "[mysqld]\nsocket = /run/m.sock\nskip-networking\n", "unix:/run/m.sock", "root@unix(/run/m.sock)/"},
		"mariadb: socket in its datadir": {"mariadb", "mariadbd --datadir=/data", "[mysqld]\nsocket = m.sock\n", "unix:/data/m.sock", "root@unix(/data/m.sock)/"},
		"mariadb: the client's port":     {"mariadb", "mariadbd", "[client]\nport = 5\n", "127.0.0.1:3306", "root@tcp(127.0.0.1:3306)/"},
		"mysql: as mariadb":              {"mysql", "mysqld --port=5", "", "127.0.0.1:5", "root@tcp(127.0.0.1:5)/"},
		"memcached: host and port":       {"memcached", "memcached -l 127.0.0.2 -p 5", "", "127.0.0.2:5", ""},
		"memcached: port with the host":  {"memcached", "memcached -l 127.0.0.2:7,127.0.0.3:7 -p 5", "", "127.0.0.2:7", ""},
		"memcached: host alone":          {"memcached", "memcached -l 127.0.0.2", "", "127.0.0.2:11211", ""},
		"memcached: a socket":            {"memcached", "memcached -s /run/mc", "", "unix:/run/mc", ""},
		"puma: a URL":                    {"puma", "puma -b tcp://127.0.0.1:81?backlog=5", "", "127.0.0.1:81", ""},
		"puma: unix with options":        {"puma", "puma -b unix:///run/p.sock?umask=0111", "", "unix:/run/p.sock", ""},
		"puma: a port":                   {"puma", "puma -p 81", "", "127.0.0.1:81", ""},
	} {
		t.Run(name, func(t *testing.T) {
			k := load(t, c.kind)
			words := strings.Fields(c.line)
			if got := k.Address(words, c.file); got != c.want {
				t.Errorf("listens on %q, want %q", got, c.want)
			}
			if got := k.DataSource(words, c.file); got != c.sql {
				t.Errorf("asked by SQL at %q, want %q", got, c.sql)
			}
		})
	}
}

// What a setting needs is there, is off, or is not written at all.
func TestLacks(t *testing.T) {
	for name, c := range map[string]struct{ kind, line, file, setting, needs, off string }{
		"on":                     {"uwsgi", "uwsgi", "[uwsgi]\nmaster = true\n", "max-worker-lifetime", "", ""},
		"on without a value":     {"uwsgi", "uwsgi --master", "", "max-worker-lifetime", "", ""},
		"off":                    {"uwsgi", "uwsgi", "[uwsgi]\nmaster = false\n", "max-worker-lifetime", "master", "master"},
		"off by a number":        {"uwsgi", "uwsgi", "[uwsgi]\nmaster = 0\n", "max-worker-lifetime", "master", "master"},
		"not there":              {"uwsgi", "uwsgi", "[uwsgi]\n", "max-worker-lifetime", "master", ""},
		"implied":                {"uwsgi", "uwsgi", "[uwsgi]\nstats = 127.0.0.1:1\n", "max-worker-lifetime", "", ""},
		"off above what implies": {"uwsgi", "uwsgi", "[uwsgi]\nmaster = no\nstats = 127.0.0.1:1\n", "max-worker-lifetime", "master", "master"},
		"the file is not read":   {"puma", "puma -C puma.rb", "workers 4\n", "fork-worker", "", ""},
		"the file has a section": {"uwsgi", "uwsgi --ini app.ini:prod", "", "max-worker-lifetime", "", ""},
		"implied, and off":       {"uwsgi", "uwsgi", "[uwsgi]\nstats = 127.0.0.1:1\nmaster = no\n", "max-worker-lifetime", "master", "master"},
		"the need has needs too": {"uwsgi", "uwsgi", "[uwsgi]\nmax-worker-lifetime = 0\n", "max-worker-lifetime-delta", "max-worker-lifetime", "max-worker-lifetime"},
		"needs nothing":          {"uwsgi", "uwsgi", "", "threads", "", ""},
		"the file is not known":  {"uwsgi", "uwsgi --ini app.ini", "", "max-worker-lifetime", "", ""},
		"one of two":             {"uwsgi", "uwsgi --http :1", "", "http-keepalive", "", ""},
		"gunicorn's jitter":      {"gunicorn", "gunicorn --max-requests 0 a:a", "", "max-requests-jitter", "max-requests", "max-requests"},
	} {
		t.Run(name, func(t *testing.T) {
			k, words := load(t, c.kind), strings.Fields(c.line)
			needs, off := k.Lacks(words, c.file, k.Unseen(words, c.file), c.setting)
			if got := strings.Join(needs, " "); got != c.needs || off != c.off {
				t.Errorf("needs %q, off %q; want %q, %q", got, off, c.needs, c.off)
			}
		})
	}
	if by := load(t, "uwsgi").ImpliedBy(nil, "[uwsgi]\ncheaper = 2\n", "master"); by != "cheaper" {
		t.Errorf("the master is switched on by %q", by)
	}
	if by := load(t, "uwsgi").ImpliedBy(nil, "[uwsgi]\nthreads = 2\n", "enable-threads"); by != "threads" {
		t.Errorf("Python's threads are switched on by %q", by)
	}
}

const bound = `log Listening at: (?:https?://)?(?:unix:)?(\S+)`

// What is asked depends on the value and on the settings beside it.
func TestAsks(t *testing.T) {
	for name, c := range map[string]struct {
		kind, line, file, setting, value string
		want                             []string
		why                              string
	}{
		"uwsgi: workers, master and router": {"uwsgi", "uwsgi", "[uwsgi]\nmaster = true\nhttp = :1\n", "processes", "4", []string{`log (?m)^spawned uWSGI worker \d+  count`, "processes +2"}, ""},
		"uwsgi: no master, mules":           {"uwsgi", "uwsgi", "[uwsgi]\nhttp-socket = :1\nmules = 3\nmaster = false\n", "processes", "4", []string{`log (?m)^spawned uWSGI worker \d+  count`, "processes +3"}, ""},
		"uwsgi: one router for both":        {"uwsgi", "uwsgi", "[uwsgi]\nhttp = :1\nhttps = :2,c,k\nhttp-to-https = :3\nmule = a.py\nmule = b.py\nspooler = s\n", "processes", "4", []string{`log (?m)^spawned uWSGI worker \d+  count`, "processes +5"}, ""},
		"uwsgi: some requests have lines":   {"uwsgi", "uwsgi", "[uwsgi]\nlog-5xx = true\n", "disable-logging", "true", nil, "what would show it says nothing together with log-5xx"},
		"uwsgi: its file is not known": {"uwsgi", "uwsgi --ini app.ini --http :1", "", "processes", "4", nil,
			"what would show it depends on a config file that hakaru does not see: name it with settings:, and write what it draws in into it"},
		"uwsgi: its file draws in another": {"uwsgi", "uwsgi", "[uwsgi]\nini = base.ini\n", "master", "true", nil,
			"where its log goes is in a config file that hakaru does not see: name it with settings:, and write what it draws in into it"},
		"uwsgi: workers that are replaced": {"uwsgi", "uwsgi", "[uwsgi]\nmax-requests = 5\n", "processes", "4", []string{`log (?m)^spawned uWSGI worker \d+  count`}, "what would show it says nothing together with max-requests"},
		"uwsgi: its log is elsewhere":      {"uwsgi", "uwsgi", "[uwsgi]\nlogto = /var/log/u\n", "master", "true", nil, "its log goes elsewhere (logto), so hakaru does not see it"},
		"uwsgi: master on":                 {"uwsgi", "uwsgi", "", "master", "true", []string{"log spawned uWSGI master process"}, ""},
		"uwsgi: master off":                {"uwsgi", "uwsgi", "", "master", "false", []string{"log spawned uWSGI master process absent"}, ""},
		"uwsgi: its file draws in one": {"uwsgi", "uwsgi", "[uwsgi]\nini = base.ini\n", "processes", "4", nil,
			"what would show it depends on a config file that hakaru does not see: name it with settings:, and write what it draws in into it"},
		"uwsgi: no request lines":            {"uwsgi", "uwsgi", "", "disable-logging", "true", []string{`log \[pid: \d+\|app:  absent from load`}, ""},
		"uwsgi: request lines":               {"uwsgi", "uwsgi", "", "disable-logging", "false", []string{`log \[pid: \d+\|app:  from load`}, ""},
		"uwsgi: nothing is known":            {"uwsgi", "uwsgi", "", "harakiri", "30", nil, ""},
		"gunicorn: sync":                     {"gunicorn", "gunicorn", "", "worker-class", "sync", []string{`log Using worker: (\S+)`}, ""},
		"gunicorn: sync with threads":        {"gunicorn", "gunicorn", "threads = 2\n", "worker-class", "sync", nil, "what would show it says nothing together with threads>1"},
		"gunicorn: its log is elsewhere":     {"gunicorn", "gunicorn --error-logfile=/x", "", "worker-class", "sync", nil, "its log goes elsewhere (error-logfile!=-), so hakaru does not see it"},
		"gunicorn: a level in capitals":      {"gunicorn", "gunicorn", "loglevel = 'WARNING'\n", "worker-class", "sync", nil, "its log goes elsewhere (log-level!=info|debug), so hakaru does not see it"},
		"gunicorn: a level that is computed": {"gunicorn", "gunicorn", "import os\nloglevel = os.environ.get('L', 'info')\n", "worker-class", "sync", nil, "its log goes elsewhere (log-level!=info|debug), so hakaru does not see it"},
		"gunicorn: a level that tells":       {"gunicorn", "gunicorn", "loglevel = 'Debug'\n", "worker-class", "sync", []string{`log Using worker: (\S+)`}, ""},
		"gunicorn: loggers of its own":       {"gunicorn", "gunicorn", "logconfig_dict = {}\n", "worker-class", "sync", nil, "its log goes elsewhere (logconfig_dict), so hakaru does not see it"},
		"gunicorn: a module as config": {"gunicorn", "gunicorn -c python:conf app:app", "", "workers", "4", nil,
			"what would show it depends on a config file that hakaru does not see: name it with settings:, and write what it draws in into it"},
		"gunicorn: bound to an address":       {"gunicorn", "gunicorn", "", "bind", "127.0.0.1:81", []string{bound}, ""},
		"gunicorn: bound to a path":           {"gunicorn", "gunicorn", "", "bind", "unix:/run/g.sock", []string{bound + " equals /run/g.sock"}, ""},
		"gunicorn: bound to a leased one":     {"gunicorn", "gunicorn", "", "bind", "tcp://127.0.0.1:{http.port}", []string{bound + " equals 127.0.0.1:{http.port}"}, ""},
		"gunicorn: bound to a name":           {"gunicorn", "gunicorn", "", "bind", "localhost:81", nil, "gunicorn may tell it in other words than localhost:81"},
		"gunicorn: bound to several":          {"gunicorn", "gunicorn", "", "bind", "127.0.0.1:81,127.0.0.1:82", nil, "gunicorn may tell it in other words than 127.0.0.1:81,127.0.0.1:82"},
		"gunicorn: its log is here":           {"gunicorn", "gunicorn --error-logfile=-", "", "worker-class", "sync", []string{`log Using worker: (\S+)`}, ""},
		"nginx: a number":                     {"nginx", "nginx", "worker_processes 2; pid x;\n", "worker_processes", "2", []string{"file contains worker_processes 2;", "processes nginx: worker process"}, ""},
		"nginx: auto":                         {"nginx", "nginx", "worker_processes auto;\n", "worker_processes", "auto", []string{"file contains worker_processes auto;"}, "auto is not a number, and how many it stands for is known to nginx only"},
		"nginx: with files that are not read": {"nginx", "nginx", "worker_processes 2;\nhttp { include conf.d/*.conf; }\n", "worker_processes", "2", []string{"file contains worker_processes 2;", "processes nginx: worker process"}, ""},
		"nginx: not an upstream's":            {"nginx", "nginx", "http { keepalive_timeout 5; upstream u { server a; keepalive_timeout 60; } }\n", "keepalive_timeout", "5", []string{"file contains keepalive_timeout 5;"}, ""},
		"nginx: any directive":                {"nginx", "nginx", "http { gzip  on; }\n", "gzip", "on", []string{"file contains gzip  on;"}, ""},
		"nginx: a backlog":                    {"nginx", "nginx", "http { server { listen 81 backlog=9; } }\n", "listen", "81 backlog=9", []string{"file contains listen 81 backlog=9;", "backlog equals 9"}, ""},
		"mariadb: any variable":               {"mariadb", "mariadbd", "", "innodb_read_io_threads", "4", []string{"sql select @@global.innodb_read_io_threads"}, ""},
		"mariadb: a size":                     {"mariadb", "mariadbd", "", "innodb-buffer-pool-size", "1G", []string{"sql select @@global.innodb_buffer_pool_size equals 1073741824"}, ""},
		"mariadb: a word that ends like one":  {"mariadb", "mariadbd", "", "default-storage-engine", "ROCKSDBK", []string{"sql select @@global.default_storage_engine"}, ""},
		"mariadb: no variable":                {"mariadb", "mariadbd", "", "user", "mysql", nil, ""},
		"memcached: megabytes":                {"memcached", "memcached -m 65", "", "memory-limit", "65", []string{"stats 127.0.0.1:5 maxbytes equals 68157440"}, ""},
		"memcached: on the command line":      {"memcached", "memcached --lock-memory", "", "lock-memory", "true", []string{"cmdline --lock-memory"}, ""},
		"memcached: a switch that is off":     {"memcached", "memcached", "", "lock-memory", "false", []string{"cmdline --lock-memory absent"}, ""},
		"puma: two numbers":                   {"puma", "puma", "", "threads", "1:5", []string{`log \*\s+Max threads: (\d+) equals 5`, `log \*\s+Min threads: (\d+) equals 1`}, ""},
		"puma: one number for both":           {"puma", "puma", "", "threads", "3", []string{`log \*\s+Max threads: (\d+)`, `log \*\s+Min threads: (\d+)`}, ""},
		"puma: its file sends the log away": {"puma", "puma -C puma.rb", "stdout_redirect '/var/log/puma'\n", "environment", "production", nil,
			"its log goes elsewhere (stdout_redirect), so hakaru does not see it"},
		"puma: bound to a name":    {"puma", "puma", "", "bind", "tcp://localhost:81", nil, "puma may tell it in other words than tcp://localhost:81"},
		"puma: bound with options": {"puma", "puma", "", "bind", "tcp://127.0.0.1:81?backlog=5", []string{`log Listening on (?:http://)?(\S+) equals 127.0.0.1:81`}, ""},
		"puma: bound to a path":    {"puma", "puma", "", "bind", "unix:///run/p?umask=0111", []string{`log Listening on (?:http://)?(\S+)`}, ""},
		"puma: no workers":         {"puma", "puma -w 0", "", "workers", "0", []string{"log Puma starting in single mode"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			k, words := load(t, c.kind), strings.Fields(c.line)
			asks, why := k.Asks(words, c.file, k.Unseen(words, c.file), "127.0.0.1:5", c.setting, c.value)
			var got []string
			for _, a := range asks {
				got = append(got, inWords(a))
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
			if why != c.why {
				t.Errorf("why %q, want %q", why, c.why)
			}
		})
	}
}

func inWords(a hakaru.Ask) string {
	text := a.Kind
	for _, part := range []string{a.Argument, a.Field} {
		if part != "" {
			text += " " + part
		}
	}
	if a.Contains != "" {
		text += " contains " + a.Contains
	}
	if a.Equals != "" {
		text += " equals " + a.Equals
	}
	if a.Offset != 0 {
		text += " +" + itoa(a.Offset)
	}
	if a.Count {
		text += " count"
	}
	if a.Absent {
		text += " absent"
	}
	if a.From != "" {
		text += " from " + string(a.From)
	}
	return text
}

// A socket file that a live server may have is told, a relative one too: the trial
// runs in the same directory.
func TestTakenOver(t *testing.T) {
	for content, want := range map[string]string{
		"socket = /run/app.sock": "socket /run/app.sock", "socket = app.sock": "socket app.sock", "http-socket = run/x": "http-socket run/x",
		"socket = {hakaru.dir}/s": "", "socket = @abstract": "", "http = :8080": "", "socket = 127.0.0.1:%(port)": "",
	} {
		setting, file := load(t, "uwsgi").TakenOver("[uwsgi]\n" + content + "\n")
		if got := strings.TrimSpace(setting + " " + file); got != want {
			t.Errorf("%s: %q, want %q", content, got, want)
		}
	}
}
