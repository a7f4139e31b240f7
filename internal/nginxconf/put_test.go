package nginxconf_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"hakaru/internal/nginxconf"
)

// setting is one directive to put in.
type setting struct {
	name    string
	value   *string
	context string
}

// put is a setting of one directive, or with no value its removal.
func put(name string, value ...string) setting {
	s := setting{name: name}
	if len(value) > 0 {
		s.value = &value[0]
	}
	return s
}

func within(context string, s setting) setting {
	s.context = context
	return s
}

// putAll puts in several, one after the other.
func putAll(content string, list []setting) (string, error) {
	for _, s := range list {
		var err error
		if content, err = nginxconf.Put(content, []string{s.name}, s.value, s.context); err != nil {
			return "", err
		}
	}
	return content, nil
}

// change is one row of a table: a text, what is put in, and what comes out.
type change struct {
	content string
	edits   []setting
	want    string
}

// site is what the nginx tables change; @ is the test's own directory.
const site = `# main
worker_processes auto; # cores
pid @/nginx.pid;
error_log @/error.log;

events {
	worker_connections 768;
}

http {
    # basics
    sendfile on;
    keepalive_timeout   65;
    log_format main '$remote_addr "$request" {x}; # no comment';
    access_log @/a.log main;

    map $uri $x { default 0; gzip 1; }
    upstream app {
        server unix:@/one.sock; # first
        server unix:@/two.sock backup;
        keepalive 4;
    }
    server {
        listen unix:@/http.sock
            # why
            backlog=100;
        listen unix:@/other.sock;
        location ~ "^/a{2};\"$" { return 200 "${uri}x"; }
        location ~ a\;b\{$ { return 204; }
        location / { proxy_pass http://app; gzip off; }
    }
}
`

var table = map[string]change{
	"main, in place": {site, []setting{put("worker_processes", "4")},
		replace(site, "worker_processes auto;", "worker_processes 4;")},
	"main, added": {site, []setting{put("worker_rlimit_nofile", "1000")},
		replace(site, "# main\n", "# main\nworker_rlimit_nofile 1000;\n")},
	"events, in place": {site, []setting{within("events", put("worker_connections", "1024"))},
		replace(site, "worker_connections 768;", "worker_connections 1024;")},
	"events, added with its indentation": {site, []setting{within("events", put("multi_accept", "on"))},
		replace(site, "events {\n", "events {\n\tmulti_accept on;\n")},
	"http, layout kept": {site, []setting{within("http", put("keepalive_timeout", "5s 10s"))},
		replace(site, "keepalive_timeout   65;", "keepalive_timeout   5s 10s;")},
	"http, added, and where it would be overridden": {site, []setting{within("http", put("gzip", "on"))},
		replace(site, "http {\n", "http {\n    gzip on;\n", "gzip off;", "gzip on;")},
	"taken away with its line": {site, []setting{within("http", put("sendfile"))},
		replace(site, "    sendfile on;\n", "")},
	"taken away, its comment stays": {site, []setting{put("worker_processes")},
		replace(site, "worker_processes auto; # cores", "# cores")},
	"taken away within a line": {site, []setting{within("http", put("gzip"))},
		replace(site, " gzip off; }", " }")},
	"several become one, comments stay": {site, []setting{within("http.server", put("listen", "unix:@/new.sock backlog=511"))},
		replace(site, "listen unix:@/http.sock\n            # why\n            backlog=100;\n        listen unix:@/other.sock;\n",
			"listen unix:@/new.sock backlog=511 # why\n        ;\n")},
	"an upstream's own": {site, []setting{within("http.upstream", put("server", "unix:@/three.sock"))},
		replace(site, "one.sock; # first\n        server unix:@/two.sock backup;\n", "three.sock; # first\n")},
	"not in a table, not in an upstream": {site, []setting{within("http", put("keepalive_requests", "7"))},
		replace(site, "http {\n", "http {\n    keepalive_requests 7;\n")},
	"quoted": {site, []setting{within("http", put("log_format", `main "a;b{c} # $uri"`))},
		replace(site, `main '$remote_addr "$request" {x}; # no comment'`, `main "a;b{c} # $uri"`)},
	"several edits, the last wins": {site, []setting{put("worker_processes", "1"), within("events", put("worker_connections", "10")), put("worker_processes", "2")},
		replace(site, "auto", "2", "768", "10")},
	"blocks that are missing are made": {"", []setting{within("events", put("worker_connections", "10")), within("http", put("gzip", "on"))},
		"events {\n    worker_connections 10;\n}\nhttp {\n    gzip on;\n}\n"},
	"no newline at the end":   {"events {}\n# end", []setting{within("http", put("gzip", "on"))}, "events {}\n# end\nhttp {\n    gzip on;\n}\n"},
	"into an empty block":     {"events {}\nhttp { }", []setting{within("http", put("gzip", "on"))}, "events {}\nhttp {\n    gzip on;\n}"},
	"into a block in a line":  {"events {}\nhttp { sendfile on; }\n", []setting{within("http", put("gzip", "on"))}, "events {}\nhttp { gzip on; sendfile on; }\n"},
	"behind a comment":        {"events { # c\n}\n", []setting{within("events", put("multi_accept", "on"))}, "events { # c\n    multi_accept on;\n}\n"},
	"CRLF":                    {"events {\r\n  multi_accept off;\r\n}\r\n", []setting{within("events", put("multi_accept", "on")), within("events", put("accept_mutex", "on"))}, "events {\r\n  accept_mutex on;\r\n  multi_accept on;\r\n}\r\n"},
	"comment only, main":      {"# c", []setting{put("worker_processes", "2"), within("events", put("multi_accept", "on"))}, "# c\nworker_processes 2;\nevents {\n    multi_accept on;\n}\n"},
	"a directive in quotes":   {"\"worker_processes\" 1;\nevents {}\n", []setting{put("worker_processes", "2")}, "worker_processes 2;\nevents {}\n"},
	"no argument before, now": {"events {}\nhttp {\n    upstream a {\n        ip_hash;\n        server unix:@/x;\n    }\n}\n", []setting{within("http.upstream", put("ip_hash", ""))}, "events {}\nhttp {\n    upstream a {\n        ip_hash;\n        server unix:@/x;\n    }\n}\n"},
}

// Whatever is put in once is the same put in twice.
func TestPut(t *testing.T) {
	for name, c := range table {
		t.Run(name, func(t *testing.T) {
			got, err := putAll(c.content, c.edits)
			if err != nil || got != c.want {
				t.Fatalf("got  %q, %v\nwant %q", got, err, c.want)
			}
			again, err := putAll(got, c.edits)
			if err != nil || again != got {
				t.Errorf("twice %q, %v\nonce  %q", again, err, got)
			}
		})
	}
}

// fragments are files that are included within http.
var fragments = map[string]change{
	"of http": {"upstream a { server unix:@/x; }\nserver { listen unix:@/s; }\n", []setting{within("http", put("keepalive_timeout", "5s"))},
		"keepalive_timeout 5s;\nupstream a { server unix:@/x; }\nserver { listen unix:@/s; }\n"},
	"of http, in a server": {"server { gzip off; listen unix:@/s; }\n", []setting{within("http", put("gzip", "on"))},
		"gzip on;\nserver { gzip on; listen unix:@/s; }\n"},
	"of a server": {"# site\nserver {\n  listen unix:@/s;\n}\n", []setting{within("http.server", put("root", "/x"))},
		"# site\nserver {\n  root /x;\n  listen unix:@/s;\n}\n"},
	"directives alone": {"gzip off;\n", []setting{within("http", put("gzip", "on")), within("http", put("sendfile", "on"))},
		"sendfile on;\ngzip on;\n"},
}

func TestPutFragment(t *testing.T) {
	for name, c := range fragments {
		t.Run(name, func(t *testing.T) {
			got, err := putAll(c.content, c.edits)
			if err != nil || got != c.want {
				t.Fatalf("got  %q, %v\nwant %q", got, err, c.want)
			}
			for _, e := range c.edits {
				if value, found := nginxconf.Value(got, []string{e.name}, e.context); !found || value != *e.value {
					t.Errorf("%s in %s is %q, %v", e.name, e.context, value, found)
				}
			}
		})
	}
}

func TestValue(t *testing.T) {
	for _, c := range []struct{ name, context, want string }{
		{"worker_processes", "", "auto"},
		{"listen", "", "unix:@/http.sock backlog=100"},
		{"listen", "http", "unix:@/http.sock backlog=100"},
		{"keepalive_timeout", "", "65"},
		{"server", "", "unix:@/one.sock"},
		{"server", "http.upstream", "unix:@/one.sock"},
		{"log_format", "", `main '$remote_addr "$request" {x}; # no comment'`},
		{"return", "", `200 "${uri}x"`},
		{"gzip", "", "off"},
		{"default", "", "-"},
		{"worker_connections", "http", "-"},
		{"gzip", "events", "-"},
	} {
		got, found := nginxconf.Value(site, []string{c.name}, c.context)
		if !found {
			got = "-"
		}
		if got != c.want {
			t.Errorf("%s in %q: %q, want %q", c.name, c.context, got, c.want)
		}
	}
	content := "gzip off;\nhttp { server { gzip on; location / { gzip  'a' ; } } }"
	if got, _ := nginxconf.Value(content, []string{"gzip"}, ""); got != "'a'" {
		t.Errorf("the innermost: %q", got)
	}
}

func TestEntries(t *testing.T) {
	content := "user a b;\nhttp { types { text/html html; }\n\tserver { listen 80; include \"x y/*.conf\"; } }\ninclude a;\nbroken"
	want := []nginxconf.Entry{
		{Name: "user", Value: "a b", Line: 1, Column: 1},
		{Name: "listen", Value: "80", Path: "http.server", Line: 3, Column: 11},
		{Name: "include", Value: `"x y/*.conf"`, Path: "http.server", Line: 3, Column: 22},
		{Name: "include", Value: "a", Line: 4, Column: 1},
	}
	if d := cmp.Diff(want, nginxconf.Entries(content)); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff([]nginxconf.Include{{Path: "x y/*.conf", Line: 3}, {Path: "a", Line: 4}}, nginxconf.Includes(content)); d != "" {
		t.Error(d)
	}
}

func TestRelocate(t *testing.T) {
	for content, want := range map[string]string{
		"include mime.types;":                            "include /etc/nginx/mime.types;",
		"include '*.d/x y';":                             "include '/etc/nginx/*.d/x y';",
		"include /abs;":                                  "include /abs;",
		"error_log logs/e; pid x; load_module m;":        "error_log logs/e; pid x; load_module m;",
		"http { server { ssl_certificate c; root r; } }": "http { server { ssl_certificate /etc/nginx/c; root r; } }",
		"ssl_certificate $host.crt;":                     "ssl_certificate $host.crt;",
		"ssl_certificate c/$host.crt;":                   "ssl_certificate /etc/nginx/c/$host.crt;",
		"ssl_certificate_key engine:x;":                  "ssl_certificate_key engine:x;",
		"proxy_ssl_certificate \"\";":                    "proxy_ssl_certificate \"\";",
		"geo $x { include g; ssl_crl 1; }":               "geo $x { include /etc/nginx/g; ssl_crl 1; }",
		"js_import http.js;":                             "js_import /etc/nginx/http.js;",
		"js_import main from http.js;":                   "js_import main from /etc/nginx/http.js;",
		"js_path p; js_import http.js;":                  "js_path p; js_import http.js;",
		"# include a;\ninclude # b\n  c;":                "# include a;\ninclude # b\n  /etc/nginx/c;",
	} {
		if got := nginxconf.Relocate(content, "/etc/nginx/nginx.conf"); got != want {
			t.Errorf("%q becomes %q, want %q", content, got, want)
		}
	}
	if got := nginxconf.Relocate("include a\"b;", `/a "b"\c/nginx.conf`); got != `include "/a \"b\"\\c/a\"b";` {
		t.Errorf("a directory with special characters: %s", got)
	}
}
