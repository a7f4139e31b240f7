package render_test

import (
	"strings"
	"testing"
	"time"

	"hakaru"
	"hakaru/internal/render"
)

func asksOf(t *testing.T, exp *hakaru.Experiment) []hakaru.Ask {
	t.Helper()
	_, _, asks, err := render.Trial(exp, "other", map[string]string{})
	if err != nil {
		t.Fatal(err)
	}
	return asks
}

// What was written into a copy of the config shows nothing where something else
// than hakaru brings the copy to the service.
func TestAsksOfAttached(t *testing.T) {
	for name, c := range map[string]struct {
		apply    string
		set      hakaru.Setting
		kinds    string
		notProof string
	}{
		"started":                        {"", set("gzip", "on"), "file", ""},
		"attached":                       {"cp {file} /etc/nginx/nginx.conf", set("gzip", "on"), "", "prove: {gzip: {file: PATH}} asks the file that it reads"},
		"attached, with something other": {"cp {file} /etc/nginx/nginx.conf", set("worker_processes", "4"), "processes", ""},
	} {
		t.Run(name, func(t *testing.T) {
			service := hakaru.Service{Kind: "nginx", Run: []string{"nginx", "-c", "{settings}"}, Settings: "nginx.conf"}
			if c.apply != "" {
				service.Run, service.Apply, service.Undo = nil, c.apply, "true"
				service.Attach = &hakaru.Ready{Connect: "127.0.0.1:80"}
			}
			exp := pair(service, nil, []hakaru.Setting{c.set}, hakaru.File{Path: "x.yaml"}, hakaru.File{Path: "nginx.conf", Content: "events {}\nhttp { server { listen 80; } }\n"})
			var kinds []string
			notProof := ""
			for _, a := range asksOf(t, exp) {
				if a.Kind != "" {
					kinds = append(kinds, a.Kind)
				}
				notProof += a.NotProof
			}
			if got := strings.Join(kinds, " "); got != c.kinds || !strings.HasSuffix(notProof, c.notProof) || notProof != "" && c.notProof == "" {
				t.Errorf("asks by %q, %q; want %q, %q", got, notProof, c.kinds, c.notProof)
			}
		})
	}
}

// A setting that acts after a time is not asked about where the load may be over
// before: how long a number of requests takes is not known.
func TestAsksTooSoon(t *testing.T) {
	for name, c := range map[string]struct {
		acts time.Duration
		load hakaru.Load
		want string
	}{
		"in time":             {5 * time.Second, hakaru.Load{HTTP: &hakaru.HTTPLoad{URL: "http://h/", WarmUp: "2s", Duration: "10s"}}, ""},
		"too late":            {time.Minute, hakaru.Load{HTTP: &hakaru.HTTPLoad{URL: "http://h/", WarmUp: "2s", Duration: "10s"}}, "it acts after 1m, and a trial ends after 12s"},
		"counted":             {30 * time.Second, program("2s"), "it acts after 30s, and how long a trial takes that ends with a number of requests is not known"},
		"counted, in warm-up": {time.Second, program("2s"), ""},
		"counted, too late":   {time.Hour, program("2s"), "it acts after 1h, and a trial ends after 1m2s"},
	} {
		t.Run(name, func(t *testing.T) {
			exp := pair(hakaru.Service{Kind: "serve", Run: []string{"hakaru", "serve"}}, nil, []hakaru.Setting{set("processes", "2")})
			exp.Load, exp.ActsAfter = c.load, map[string]time.Duration{"processes": c.acts}
			got := ""
			for _, a := range asksOf(t, exp) {
				got += a.NotProof
			}
			if got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}

func program(warmUp string) hakaru.Load {
	return hakaru.Load{Program: &hakaru.ProgramLoad{Name: "ab", Options: map[string]string{"url": "http://127.0.0.1:1/", "requests": "5000", "warm_up": warmUp}}}
}

// Where a setting is left out, what is always there with some value is not asked
// to be absent: the program's default may be what another level brings.
func TestAsksOfNull(t *testing.T) {
	for name, c := range map[string]struct {
		ask  hakaru.Ask
		want bool // it is asked
	}{
		"a variable":       {hakaru.Ask{Kind: "environ"}, true},
		"a line":           {hakaru.Ask{Kind: "log", Argument: "with threads"}, true},
		"a value of a log": {hakaru.Ask{Kind: "log", Argument: `threads: (\d+)`}, false},
		"a count of lines": {hakaru.Ask{Kind: "log", Argument: `worker \d`, Count: true}, false},
		"a figure":         {hakaru.Ask{Kind: "stats", Argument: "127.0.0.1:1", Field: "num_threads"}, false},
		"a value of SQL":   {hakaru.Ask{Kind: "sql", Argument: "select 1"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			exp := pair(hakaru.Service{Kind: "command", Run: []string{"app", "{threads}"}}, []hakaru.Setting{set("threads", "4")}, []hakaru.Setting{set("threads", "null")})
			c.ask.Service, c.ask.Setting = hakaru.OnlyService, "threads"
			exp.Prove = []hakaru.Ask{c.ask}
			asks := asksOf(t, exp)
			if len(asks) != 1 || (asks[0].NotProof == "") != c.want || asks[0].Absent != c.want {
				t.Errorf("asks %+v", asks)
			}
		})
	}
}

// An attached service is asked where it answers, not where its kind listens by
// default: another server may be there.
func TestAsksOfAttachedAddress(t *testing.T) {
	attached := func(kind string, ready hakaru.Ready) hakaru.Service {
		return hakaru.Service{Kind: kind, Settings: "own.conf", Attach: &ready, Apply: "cp {file} /etc/own.conf", Undo: "true"}
	}
	for name, c := range map[string]struct {
		service hakaru.Service
		content string
		want    string // in the data source for SQL
	}{
		"connect": {attached("mariadb", hakaru.Ready{Connect: "127.0.0.1:3307"}), "[mysqld]\n", "tcp(127.0.0.1:3307)"},
		"socket":  {attached("mariadb", hakaru.Ready{Connect: "unix:/run/two.sock"}), "[mysqld]\nsocket=/run/one.sock\n", "unix(/run/two.sock)"},
		"get":     {attached("mariadb", hakaru.Ready{Get: "http://127.0.0.1:3308/x"}), "[mysqld]\nport=3306\n", "tcp(127.0.0.1:3308)"},
	} {
		t.Run(name, func(t *testing.T) {
			exp := pair(c.service, nil, []hakaru.Setting{set("max-connections", "100")}, hakaru.File{Path: "x.yaml"}, hakaru.File{Path: "own.conf", Content: c.content})
			bundle, _, _, err := render.Trial(exp, "other", map[string]string{})
			if err != nil {
				t.Fatal(err)
			}
			if got := bundle.Units[0].SQL; !strings.Contains(got, c.want) {
				t.Errorf("SQL is asked at %q, want %q", got, c.want)
			}
		})
	}
}
