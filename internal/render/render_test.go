package render_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"hakaru"
	"hakaru/internal/render"
)

func value(s string) *string { return &s }

func set(name, v string) hakaru.Setting {
	if v == "null" {
		return hakaru.Setting{Name: name, Level: v}
	}
	return hakaru.Setting{Name: name, Level: v, Value: &v}
}

func version(level, commit string) hakaru.Setting {
	return hakaru.Setting{Name: render.Versions, Level: level, Value: &commit}
}

// pair is an experiment with two variants, of a service with these words.
func pair(service hakaru.Service, base, other []hakaru.Setting, sources ...hakaru.File) *hakaru.Experiment {
	service.Name = hakaru.OnlyService
	return &hakaru.Experiment{
		Dir: "/srv", Sources: sources, Services: []hakaru.Service{service}, Baseline: "base", Strata: []map[string]string{{}},
		Variants: []hakaru.Variant{{Name: "base", Settings: base}, {Name: "other", Settings: other}},
		Load:     hakaru.Load{HTTP: &hakaru.HTTPLoad{URL: "http://127.0.0.1:1/"}},
	}
}

func TestDiff(t *testing.T) {
	for name, c := range map[string]struct {
		exp  *hakaru.Experiment
		want string
	}{
		"nothing changes": {pair(hakaru.Service{Kind: "command", Run: []string{"app", "{x}"}}, []hakaru.Setting{set("x", "1")}, []hakaru.Setting{set("x", "1")}), ""},
		"a word": {pair(hakaru.Service{Kind: "command", Run: []string{"app", "--x={x}", "a b"}}, []hakaru.Setting{set("x", "1")}, []hakaru.Setting{set("x", "null")}),
			"--- service: run\n+++ service: run\n@@ -1,1 +1,1 @@\n-app --x=1 'a b'\n+app 'a b'\n"},
		"a variable": {pair(hakaru.Service{Kind: "command", Run: []string{"app"}, Env: []hakaru.EnvVar{{Name: "X", Value: value("{x}")}}}, []hakaru.Setting{set("x", "null")}, []hakaru.Setting{set("x", "1")}),
			"--- service: env\n+++ service: env\n@@ -0,0 +1,1 @@\n+X=1\n"},
		"the person's file, against what it is now": {pair(hakaru.Service{Kind: "serve", Run: []string{"hakaru", "serve", "--config", "conf/a.ini"}, Settings: "conf/a.ini"},
			[]hakaru.Setting{set("processes", "2")}, []hakaru.Setting{set("processes", "4"), set("listen", "{http}")},
			hakaru.File{Path: "x.yaml"}, hakaru.File{Path: "conf/a.ini", Content: "# mine\n[serve]\nprocesses = 1"}),
			"--- conf/a.ini\n+++ conf/a.ini\n@@ -1,3 +1,4 @@\n # mine\n [serve]\n-processes = 1\n\\ No newline at end of file\n+processes = 4\n+listen = {http}\n"},
		"another version": {pair(hakaru.Service{Kind: "command", Run: []string{"app"}}, []hakaru.Setting{version("main", "aaaaaaaaaaaabbbb")}, []hakaru.Setting{version("faster", "ccccccccccccdddd")}),
			"git checkout cccccccccccc   # faster\n"},
		"another commit": {pair(hakaru.Service{Kind: "command", Run: []string{"app"}}, []hakaru.Setting{version("aaaa", "aaaaaaaaaaaabbbb")}, []hakaru.Setting{version("cccc", "ccccccccccccdddd")}),
			"git checkout cccc\n"},
		"the working tree": {pair(hakaru.Service{Kind: "command", Run: []string{"app"}}, []hakaru.Setting{version("main", "aaaaaaaaaaaabbbb")}, []hakaru.Setting{version("mine", ".")}),
			"the working tree as it is\n"},
		"the same version": {pair(hakaru.Service{Kind: "command", Run: []string{"app"}}, []hakaru.Setting{version("main", "aaaaaaaaaaaabbbb")}, []hakaru.Setting{version("v1", "aaaaaaaaaaaabbbb")}), ""},
		"settings that only name a leased address are left out": {pair(hakaru.Service{Kind: "serve", Run: []string{"hakaru", "serve", "--config", "a.ini"}, Settings: "a.ini", Ports: []string{"http"}},
			nil, []hakaru.Setting{set("listen", "{http}")}, hakaru.File{Path: "a.ini", Content: "[serve]\nlisten = 127.0.0.1:80\n"}), ""},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := render.Diff(c.exp, "other")
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
	if _, err := render.Diff(pair(hakaru.Service{Kind: "command", Run: []string{"app"}}, nil, nil), "third"); err == nil || !strings.Contains(err.Error(), `variant third`) {
		t.Errorf("a variant that is not there: %v", err)
	}
}

// All that is wrong with a load is said at once.
func TestHTTP(t *testing.T) {
	_, wrong := render.HTTP(&hakaru.HTTPLoad{URL: "ftp://x/", Method: "G T", Connections: "0", WarmUp: "1", Duration: "100ms", Timeout: "x", Status: "99", KeepAlive: "perhaps",
		Headers: map[string]string{"a b": "c", "d": "e\nf"}}, "/srv", func(s string) string { return s })
	var got []string
	for _, w := range wrong {
		if w.Message == "" || w.Code == "" {
			t.Errorf("incomplete: %+v", w)
		}
		got = append(got, w.Path)
	}
	want := []string{"load.http.warm_up", "load.http.duration", "load.http.timeout", "load.http.connections", "load.http.status", "load.http.keep_alive",
		"load.http.method", "load.http.url", "load.http.headers.a b", "load.http.headers.d"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	spec, wrong := render.HTTP(&hakaru.HTTPLoad{URL: "http://{x}/", Method: "put", KeepAlive: "no", WarmUp: "0s", Headers: map[string]string{"A": "{x}"}}, "/srv", hakaru.Names{"x": "y"}.Expand)
	if len(wrong) > 0 {
		t.Fatal(wrong)
	}
	if diff := cmp.Diff(hakaru.LoadSpec{Window: 10 * time.Second, HTTP: &hakaru.HTTPRequest{URL: "http://y/", Method: "PUT", Connections: 64, Timeout: 10 * time.Second,
		Headers: map[string]string{"A": "y"}}}, spec); diff != "" {
		t.Error(diff)
	}
}

// What is said of loops, connections and certificates is rendered, and what does not
// go together is wrong.
func TestHTTPLoops(t *testing.T) {
	for _, c := range []struct {
		name  string
		load  hakaru.HTTPLoad
		want  func(*hakaru.LoadSpec)
		wrong string // paths
	}{
		{"closed", hakaru.HTTPLoad{}, func(*hakaru.LoadSpec) {}, ""},
		{"a rate", hakaru.HTTPLoad{Rate: "600/m"}, func(s *hakaru.LoadSpec) {
			s.HTTP.Arrival = &hakaru.Arrival{Law: hakaru.ConstantRate, Rate: 10}
		}, ""},
		{"a share", hakaru.HTTPLoad{Rate: "{share}", Arrival: "poisson", WarmUp: "2s", Duration: "3s"}, func(s *hakaru.LoadSpec) {
			s.WarmUp, s.Window = 2*time.Second, 3*time.Second
			s.Open = &hakaru.OpenSpec{Arrival: hakaru.Arrival{Law: hakaru.PoissonRate}, Share: 0.8, WarmUp: 2 * time.Second, Window: 3 * time.Second}
		}, ""},
		{"connections", hakaru.HTTPLoad{ConnectTo: "{http}", Family: "6", Sources: []string{"{source}", "::1"}, Threads: "2", Precise: "yes", Version: "1.0", Engine: "epoll"}, func(s *hakaru.LoadSpec) {
			s.HTTP.ConnectTo, s.HTTP.Family, s.HTTP.Sources = "{http}", 6, []string{"127.0.0.2", "::1"}
			s.HTTP.Threads, s.HTTP.Precise, s.HTTP.Version, s.HTTP.Engine = 2, true, "1.0", "epoll"
		}, ""},
		{"certificates", hakaru.HTTPLoad{URL: "https://x/", CA: "ca.pem", Cert: "/c.pem", Key: "k.pem", ServerName: "x", Insecure: "true"}, func(s *hakaru.LoadSpec) {
			s.HTTP.URL = "https://x/"
			s.HTTP.TLS = &hakaru.TLS{ServerName: "x", Insecure: true, CA: "/srv/ca.pem", Cert: "/c.pem", Key: "/srv/k.pem"}
		}, ""},
		{"a socket", hakaru.HTTPLoad{ConnectTo: "unix:/run/app.sock"}, func(s *hakaru.LoadSpec) { s.HTTP.ConnectTo = "unix:/run/app.sock" }, ""},
		{"no rates", hakaru.HTTPLoad{Rate: "0/s"}, nil, "rate"},
		{"too much", hakaru.HTTPLoad{Rate: "200%"}, nil, "rate"},
		{"neither", hakaru.HTTPLoad{Rate: "fast", Arrival: "evenly"}, nil, "arrival rate"},
		{"more threads than connections", hakaru.HTTPLoad{Connections: "2", Threads: "3"}, nil, "threads"},
		{"a port only", hakaru.HTTPLoad{ConnectTo: ":80", Family: "5", Engine: "fast", Version: "2", Sources: []string{"here"}}, nil, "engine http_version connect_to family sources"},
		{"a key without a certificate", hakaru.HTTPLoad{URL: "https://x/", Key: "k.pem"}, nil, "key"},
		{"certificates without https", hakaru.HTTPLoad{Insecure: "true"}, nil, "insecure"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.load.URL == "" {
				c.load.URL = "http://x/"
			}
			spec, wrong := render.HTTP(&c.load, "/srv", hakaru.Names{"share": "80%", "source": "127.0.0.2"}.Expand)
			var paths []string
			for _, w := range wrong {
				paths = append(paths, strings.TrimPrefix(w.Path, "load.http."))
			}
			if got := strings.Join(paths, " "); got != c.wrong {
				t.Fatalf("wrong: %s, want %s", got, c.wrong)
			}
			if c.want == nil {
				return
			}
			want := hakaru.LoadSpec{WarmUp: time.Second, Window: 10 * time.Second, HTTP: &hakaru.HTTPRequest{URL: "http://x/", Method: "GET", Connections: 64, Timeout: 10 * time.Second, KeepAlive: true}}
			c.want(&want)
			if diff := cmp.Diff(want, spec); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// A plan can be estimated before load programs are built.
func TestProgramTimes(t *testing.T) {
	for duration, want := range map[string]time.Duration{"20s": 20 * time.Second, "{x}": 5 * time.Second, "": 10 * time.Second, "1000": 10 * time.Second} {
		exp := pair(hakaru.Service{Kind: "command", Run: []string{"app", "{x}"}}, []hakaru.Setting{set("x", "5s")}, nil)
		exp.Load = hakaru.Load{Program: &hakaru.ProgramLoad{Name: "sysbench", Options: map[string]string{"duration": duration}}}
		_, load, _, err := render.Trial(exp, exp.Baseline, nil)
		if err != nil {
			t.Fatal(err)
		}
		if load.Window != want || load.WarmUp != 0 || load.HTTP != nil {
			t.Errorf("duration %q: %+v, want a window of %v", duration, load, want)
		}
	}
}

// A setting that does nothing without another is idle until that one is set.
func TestIdle(t *testing.T) {
	serve := hakaru.Service{Kind: "serve", Run: []string{"hakaru", "serve"}}
	for want, settings := range map[string][]hakaru.Setting{
		"":      {set("stall", "1s"), set("stall-every", "10s")},
		"stall": {set("stall", "1s")},
	} {
		exp := pair(serve, nil, settings)
		renderer, err := render.New(exp)
		if err != nil {
			t.Fatal(err)
		}
		r, err := renderer.Rendering(exp.Variants[1], nil)
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		for _, idle := range r.Idle() {
			got += idle.Setting.Name
		}
		if got != want {
			t.Errorf("idle: %q, want %q", got, want)
		}
	}
}

// Whatever a setting's value is, it reaches the program as one word, and what it
// replaces is not looked at again.
func TestValuesAreWords(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := rapid.String().Draw(t, "a"), rapid.String().Draw(t, "b")
		exp := pair(hakaru.Service{Kind: "command", Run: []string{"app", "{a}", "x{b}y{a}"}}, []hakaru.Setting{set("a", "1"), set("b", "2")},
			[]hakaru.Setting{{Name: "a", Level: "l", Value: &a}, {Name: "b", Level: "m", Value: &b}})
		bundle, _, asks, err := render.Trial(exp, "other", map[string]string{})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]string{"app", a, "x" + b + "y" + a}, bundle.Units[0].Argv); diff != "" {
			t.Fatal(diff)
		}
		if len(asks) != 2 || asks[0].Asked != a || asks[0].NotProof == "" {
			t.Fatalf("asks %+v", asks)
		}
	})
}

// Readiness asks where the service listens: a path starts at its directory, and
// where nothing says it, the only service is where the load goes.
func TestReady(t *testing.T) {
	uwsgi := func(ini string) *hakaru.Experiment {
		exp := pair(hakaru.Service{Kind: "uwsgi", Run: []string{"uwsgi", "--ini", "a.ini"}, Settings: "a.ini", Dir: "sub"}, nil, nil, hakaru.File{Path: "a.ini", Content: "[uwsgi]\n" + ini})
		exp.Load.HTTP.URL = "http://127.0.0.1:9000/x"
		return exp
	}
	for name, c := range map[string]struct {
		ini  string
		want hakaru.Ready
	}{
		"what the load asks":     {"http = 127.0.0.1:9000\n", hakaru.Ready{Get: "http://127.0.0.1:9000/x"}},
		"the load goes past it":  {"http = 127.0.0.1:9001\n", hakaru.Ready{Connect: "127.0.0.1:9001"}},
		"a path in its dir":      {"socket = app.sock\n", hakaru.Ready{Connect: "unix:/srv/sub/app.sock"}},
		"a path below its chdir": {"chdir = app\nsocket = app.sock\n", hakaru.Ready{Connect: "unix:/srv/sub/app/app.sock"}},
		"a variable of the file": {"port = 9000\nhttp = :%(port)\n", hakaru.Ready{Get: "http://127.0.0.1:9000/x"}},
	} {
		bundle, _, _, err := render.Trial(uwsgi(c.ini), "other", map[string]string{})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(c.want, bundle.Units[0].Ready); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

// So does readiness of a service whose load a program sends, where its request is
// known whole.
func TestReadyOfProgram(t *testing.T) {
	const connect, get = "127.0.0.1:9000", "http://127.0.0.1:9000/x"
	for name, c := range map[string]struct {
		options map[string]string
		want    hakaru.Ready
	}{
		"a URL":    {map[string]string{"url": get, "duration": "2s"}, hakaru.Ready{Get: get}},
		"a POST":   {map[string]string{"url": get, "method": "POST"}, hakaru.Ready{Connect: connect}},
		"a header": {map[string]string{"url": get, "headers.Host": "x"}, hakaru.Ready{Connect: connect}},
		"words":    {map[string]string{"url": get, "args": "-A a:b"}, hakaru.Ready{Connect: connect}},
	} {
		exp := pair(hakaru.Service{Kind: "uwsgi", Run: []string{"uwsgi", "--ini", "a.ini"}, Settings: "a.ini"}, nil, nil, hakaru.File{Path: "a.ini", Content: "[uwsgi]\nhttp = " + connect + "\n"})
		exp.Load = hakaru.Load{Program: &hakaru.ProgramLoad{Name: "ab", Options: c.options}}
		bundle, _, _, err := render.Trial(exp, "other", map[string]string{})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(c.want, bundle.Units[0].Ready); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

// What cannot be put in is refused with what can be done instead.
func TestCannotPut(t *testing.T) {
	ruby := hakaru.File{Path: "puma.rb", Content: "preload_app!\n"}
	for name, c := range map[string]struct {
		service hakaru.Service
		setting hakaru.Setting
		sources []hakaru.File
		want    string
	}{
		"a switch that a file has":          {hakaru.Service{Kind: "uwsgi", Run: []string{"uwsgi", "--ini", "a.ini"}}, set("master", "false"), nil, "no flag switches master off, and a.ini may switch it on; name it with settings:, and it is edited"},
		"a switch, and the file is known":   {hakaru.Service{Kind: "uwsgi", Run: []string{"uwsgi", "--ini", "a.ini"}, Settings: "a.ini"}, set("master", "false"), []hakaru.File{{Path: "a.ini", Content: "[uwsgi]\n"}}, ""},
		"a switch that a file draws in":     {hakaru.Service{Kind: "gunicorn", Run: []string{"gunicorn", "a:a"}, Unread: []string{"gunicorn.conf.py"}}, set("preload", "false"), nil, "no flag switches preload off, and gunicorn.conf.py may switch it on; name it with settings:, and it is edited"},
		"a switch that a Ruby file has":     {hakaru.Service{Kind: "puma", Run: []string{"puma", "-C", "puma.rb"}, Settings: "puma.rb"}, set("preload", "false"), []hakaru.File{ruby}, "no flag switches preload off, and puma.rb may switch it on; write {preload} in it, and name it with settings:"},
		"a name of the config file alone":   {hakaru.Service{Kind: "gunicorn", Run: []string{"gunicorn", "a:a"}}, set("sendfile", "false"), nil, "gunicorn has no flag for sendfile: it can only be in the config file; write settings: and the path of the file"},
		"a program that takes no flags":     {hakaru.Service{Kind: "command", Run: []string{"app"}}, set("x", "1"), nil, ""}, // found when the file is checked
		"nginx without its file":            {hakaru.Service{Kind: "nginx", Run: []string{"nginx"}}, set("gzip", "on"), nil, "kind nginx takes gzip from its config file, and the service has none; write settings: and the path of the file"},
		"a lack that a Ruby file may cover": {hakaru.Service{Kind: "puma", Run: []string{"puma", "-C", "puma.rb"}, Settings: "puma.rb"}, set("fork-worker", "1000"), []hakaru.File{ruby}, ""},
	} {
		exp := pair(c.service, nil, []hakaru.Setting{c.setting}, c.sources...)
		_, _, _, err := render.Trial(exp, "other", map[string]string{})
		got := ""
		if wrong, ok := errors.AsType[*render.Mistake](err); ok {
			got = wrong.Message + "; " + wrong.Fix
		} else if err != nil {
			got = err.Error()
		}
		if got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}
