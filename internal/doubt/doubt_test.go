package doubt_test

import (
	"io/fs"
	"path"
	"strings"
	"testing"

	"hakaru"
	"hakaru/internal/doubt"
	"hakaru/internal/experiment"
)

// files are the config files of these tests.
var files = map[string]string{
	"uwsgi-plain.ini": "[uwsgi]\nwsgi-file = app.py\n",
	"stray.ini":       "[uwsgi]\nwsgi-file = app.py\nzzyzx-road = 1\n",
	"production.ini":  "[uwsgi]\nsocket = /run/app.sock\nhttp = :8080\nwsgi-file = app.py\nthreads = 1\n",
	"nginx.conf":      "http {\n  access_log off;\n  proxy_cache_path /var/cache/nginx keys_zone=a:1m;\n  server { listen 80; access_log syslog:server=127.0.0.1; }\n}\n",
	"tuning.cnf":      "[mysqld]\nmax_connections = 200\n",
}

func parse(t *testing.T, src string) *hakaru.Experiment {
	t.Helper()
	exp, err := experiment.Parse("a.yaml", []byte(src), experiment.Options{
		Dir: "/srv/test",
		Read: func(name string) ([]byte, error) {
			content, found := files[path.Base(name)]
			if !found {
				return nil, fs.ErrNotExist
			}
			return []byte(content), nil
		},
		// A repository in which names of one length are of one commit.
		Revision: func(_, revision string) (string, error) {
			if revision == "." {
				return ".", nil
			}
			return strings.Repeat("a", 8+len(revision)), nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return exp
}

func TestDoubts(t *testing.T) {
	const load = "load: {http: {url: \"http://127.0.0.1:8000/\", connections: 4, duration: 1s}}\n"
	tests := map[string]struct {
		src  string
		want []string // code, then what the message holds
	}{
		"nothing to doubt": {"service: {kind: command, run: \"./app {http.port} {http} {n} {n.name}\", ports: [http]}\nfactors: {n: [1, 2]}\n", nil},
		"one variant":      {"service: {kind: command, run: ./app}\n", []string{doubt.NothingToCompare, "second variant"}},
		"port undeclared":  {"service: {kind: command, run: \"./app {web.port} {n}\"}\nfactors: {n: [1, 2]}\n", []string{doubt.BraceStays, "ports: [web]"}},
		"another name":     {"service: {kind: command, run: \"./app {port} {n}\", ports: [http]}\nfactors: {n: [1, 2]}\n", []string{doubt.BraceStays, "{http.port} the port alone"}},
		"mistyped":         {"service: {kind: command, run: \"./app {htpp} {n}\", ports: [http]}\nfactors: {n: [1, 2]}\n", []string{doubt.BraceStays, "did you mean {http}?"}},
		"in a value":       {"service: {kind: command, run: \"./app {http} {n}\", ports: [http]}\nfactors: {n: [\"{web}\", 2]}\n", []string{doubt.BraceStays, "a value of n holds {web}, nothing is called so"}},
		"in a command": {"service: {settings: tuning.cnf, attach: {connect: \"127.0.0.1:3306\"}, apply: \"sh -c 'sed s/{this}/${THAT}/{n} {file} > /etc/x'\", undo: rm -f /etc/x}\nfactors: {n: [1, 2]}\n",
			[]string{doubt.BraceStays, "apply of service holds {this}, nothing is called so"}},
		"in a build":         {"service: {kind: command, run: \"./app {n}\", build: \"make {web}\"}\nfactors: {n: [1, 2]}\n", []string{doubt.BraceStays, "build of service holds {web}"}},
		"of a program's own": {"service: {kind: command, run: \"./app {} {a b} {n}\"}\nfactors: {n: [1, 2]}\n", nil},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got := doubt.Of(parse(t, tt.src+load))
			if len(tt.want) == 0 {
				if len(got) != 0 {
					t.Errorf("doubts %v, want none", got)
				}
				return
			}
			if len(got) != 1 || got[0].Code != tt.want[0] || !strings.Contains(got[0].Message, tt.want[1]) {
				t.Errorf("doubts %v, want one %s with %q", got, tt.want[0], tt.want[1])
			}
		})
	}
}

// What settings will do, or not do, is said before time is spent on it.
func TestEffects(t *testing.T) {
	const uwsgi = "service: {kind: uwsgi, run: uwsgi --ini uwsgi-plain.ini, settings: uwsgi-plain.ini, ports: [http]}\n"
	for name, c := range map[string]struct {
		src  string
		want []string // code, then what the message holds
	}{
		"too late": {uwsgi + "base: {http: \"{http}\", master: true}\nvariants: {one: {}, life: {max-worker-lifetime: 30}}\n" + loadFor("10s"),
			[]string{doubt.CannotAct, "max-worker-lifetime needs 30s", "after 11s", "-d 35s would do"}},
		"in time":            {uwsgi + "base: {http: \"{http}\", master: true}\nvariants: {one: {}, life: {max-worker-lifetime: 30}}\n" + loadFor("35s"), nil},
		"said to act sooner": {uwsgi + "base: {http: \"{http}\", master: true}\nvariants: {one: {}, life: {max-worker-lifetime: 30}}\nacts_after: {max-worker-lifetime: 5s}\n" + loadFor("10s"), nil},
		"the longest level": {uwsgi + "base: {http: \"{http}\", master: true}\nfactors: {max-worker-lifetime: [5, 60, 120]}\n" + loadFor("10s"),
			[]string{doubt.CannotAct, "needs 2m", "-d 2m20s would do"}},
		"idle": {uwsgi + "base: {http: \"{http}\", master: false}\nvariants: {one: {}, life: {max-worker-lifetime: 3}}\n" + loadFor("10s"),
			[]string{doubt.IdleSetting, "max-worker-lifetime needs master, which is switched off"}},
		"idle is not late too": {uwsgi + "base: {http: \"{http}\", master: false}\nvariants: {one: {}, life: {max-worker-lifetime: 30}}\n" + loadFor("10s"),
			[]string{doubt.IdleSetting, "max-worker-lifetime"}},
		"an observer": {uwsgi + "base: {http: \"{http}\"}\nvariants: {one: {}, watched: {stats: \"127.0.0.1:1717\"}}\n" + loadFor("10s"),
			[]string{doubt.AlsoSwitched, "stats switches master on in variant watched", "write master under base"}},
		"threads": {uwsgi + "base: {http: \"{http}\"}\nvariants: {one: {}, two: {threads: 2}}\n" + loadFor("10s"),
			[]string{doubt.AlsoSwitched, "threads switches enable-threads on in variant two"}},
		"an observer everywhere":      {uwsgi + "base: {http: \"{http}\", stats: \"127.0.0.1:1717\"}\nvariants: {one: {}, two: {processes: 2}}\n" + loadFor("10s"), nil},
		"an observer, and the master": {uwsgi + "base: {http: \"{http}\", master: true}\nvariants: {one: {}, watched: {stats: \"127.0.0.1:1717\"}}\n" + loadFor("10s"), nil},
		"a key that is nothing": {"service: {kind: uwsgi, run: uwsgi --ini stray.ini, settings: stray.ini, ports: [http]}\nbase: {http: \"{http}\"}\nvariants: {one: {}, two: {processes: 2}}\n" + loadFor("10s"),
			[]string{doubt.UnknownKey, `stray.ini:3:1: uwsgi has no setting called "zzyzx-road"`, "ignored"}},
		"a socket that is in use": {"service: {kind: uwsgi, settings: production.ini, ports: [http]}\nbase: {http: \"{http}\"}\nvariants: {one: {}, two: {processes: 2}}\n" + loadFor("10s"),
			[]string{doubt.TakesOver, "socket = /run/app.sock", "{hakaru.dir}/sock"}},
		"a socket of its own": {"service: {kind: uwsgi, settings: production.ini, ports: [http]}\nbase: {http: \"{http}\", socket: \"{hakaru.dir}/sock\"}\nvariants: {one: {}, two: {processes: 2}}\n" + loadFor("10s"), nil},
		"a live server's cache": {"service: {kind: nginx, settings: nginx.conf, ports: [http]}\nbase: {listen: \"{http}\"}\nvariants: {one: {}, two: {worker_processes: 2}}\n" + loadFor("10s"),
			[]string{doubt.SharesFiles, "says proxy_cache_path /var/cache/nginx, and a trial writes there"}},
		"a cache of its own": {"service: {kind: nginx, settings: nginx.conf, ports: [http]}\nbase: {listen: \"{http}\", proxy_cache_path: \"{hakaru.dir}/cache keys_zone=a:1m\"}\nvariants: {one: {}, two: {worker_processes: 2}}\n" + loadFor("10s"), nil},
		"in the background": {"service: {run: \"gunicorn -D app:app\", ports: [http]}\nbase: {bind: \"{http}\"}\nvariants: {one: {}, two: {workers: 2}}\n" + loadFor("10s"),
			[]string{doubt.LeavesForeground, "daemon sends the service to the background", "base: {daemon: null}"}},
	} {
		t.Run(name, func(t *testing.T) {
			got := doubt.Of(parse(t, c.src))
			if len(c.want) == 0 {
				if len(got) > 0 {
					t.Errorf("doubts %v, want none", got)
				}
				return
			}
			if len(got) != 1 || got[0].Code != c.want[0] {
				t.Fatalf("doubts %v, want one %s", got, c.want[0])
			}
			for _, text := range c.want[1:] {
				if !strings.Contains(got[0].Message, text) {
					t.Errorf("%q does not hold %q", got[0].Message, text)
				}
			}
		})
	}
}

func loadFor(duration string) string {
	return "load: {http: {url: \"http://{http}/\", duration: " + duration + "}}\n"
}

// Two names of one commit are said to be that, once, wherever they are written.
func TestSameVersion(t *testing.T) {
	for name, c := range map[string]struct{ src, want string }{
		"factor":     {"factors: {git: [main, test, faster, .]}", "main and test are the same commit aaaaaaaaaaaa"},
		"variants":   {"variants: {a: {git: main}, b: {from: a}, c: {git: test}, d: {git: faster}}", "main and test are the same commit aaaaaaaaaaaa"},
		"one twice":  {"variants: {a: {git: main}, b: {git: main}, c: {git: faster}}", ""},
		"the tree":   {"variants: {a: {git: .}, b: {git: .}, c: {git: faster}}", ""},
		"three of 1": {"factors: {git: [main, test, next]}", "main and test are the same commit aaaaaaaaaaaa; main and next are the same commit aaaaaaaaaaaa"},
	} {
		t.Run(name, func(t *testing.T) {
			var said []string
			for _, w := range doubt.Of(parse(t, "service: {run: ./app}\n"+c.src+"\nload: {http: {url: \"http://127.0.0.1:1/\"}}\n")) {
				if w.Code == doubt.SameVersion {
					message, _, _ := strings.Cut(w.Message, ":")
					said = append(said, message)
				}
			}
			if got := strings.Join(said, "; "); got != c.want {
				t.Errorf("said %q, want %q", got, c.want)
			}
		})
	}
}
