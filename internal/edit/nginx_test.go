package edit_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"hakaru/internal/edit"
)

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

var nginxTable = map[string]change{
	"main, in place": {site, []edit.Edit{put("worker_processes", "4")},
		replace(site, "worker_processes auto;", "worker_processes 4;")},
	"main, added": {site, []edit.Edit{put("worker_rlimit_nofile", "1000")},
		replace(site, "# main\n", "# main\nworker_rlimit_nofile 1000;\n")},
	"events, in place": {site, []edit.Edit{within("events", put("worker_connections", "1024"))},
		replace(site, "worker_connections 768;", "worker_connections 1024;")},
	"events, added with its indentation": {site, []edit.Edit{within("events", put("multi_accept", "on"))},
		replace(site, "events {\n", "events {\n\tmulti_accept on;\n")},
	"http, layout kept": {site, []edit.Edit{within("http", put("keepalive_timeout", "5s 10s"))},
		replace(site, "keepalive_timeout   65;", "keepalive_timeout   5s 10s;")},
	"http, added, and where it would be overridden": {site, []edit.Edit{within("http", put("gzip", "on"))},
		replace(site, "http {\n", "http {\n    gzip on;\n", "gzip off;", "gzip on;")},
	"taken away with its line": {site, []edit.Edit{within("http", put("sendfile"))},
		replace(site, "    sendfile on;\n", "")},
	"taken away, its comment stays": {site, []edit.Edit{put("worker_processes")},
		replace(site, "worker_processes auto; # cores", "# cores")},
	"taken away within a line": {site, []edit.Edit{within("http", put("gzip"))},
		replace(site, " gzip off; }", " }")},
	"several become one, comments stay": {site, []edit.Edit{within("http.server", put("listen", "unix:@/new.sock backlog=511"))},
		replace(site, "listen unix:@/http.sock\n            # why\n            backlog=100;\n        listen unix:@/other.sock;\n",
			"listen unix:@/new.sock backlog=511 # why\n        ;\n")},
	"an upstream's own": {site, []edit.Edit{within("http.upstream", put("server", "unix:@/three.sock"))},
		replace(site, "one.sock; # first\n        server unix:@/two.sock backup;\n", "three.sock; # first\n")},
	"not in a table, not in an upstream": {site, []edit.Edit{within("http", put("keepalive_requests", "7"))},
		replace(site, "http {\n", "http {\n    keepalive_requests 7;\n")},
	"quoted": {site, []edit.Edit{within("http", put("log_format", `main "a;b{c} # $uri"`))},
		replace(site, `main '$remote_addr "$request" {x}; # no comment'`, `main "a;b{c} # $uri"`)},
	"several edits, the last wins": {site, []edit.Edit{put("worker_processes", "1"), within("events", put("worker_connections", "10")), put("worker_processes", "2")},
		replace(site, "auto", "2", "768", "10")},
	"blocks that are missing are made": {"", []edit.Edit{within("events", put("worker_connections", "10")), within("http", put("gzip", "on"))},
		"events {\n    worker_connections 10;\n}\nhttp {\n    gzip on;\n}\n"},
	"no newline at the end":   {"events {}\n# end", []edit.Edit{within("http", put("gzip", "on"))}, "events {}\n# end\nhttp {\n    gzip on;\n}\n"},
	"into an empty block":     {"events {}\nhttp { }", []edit.Edit{within("http", put("gzip", "on"))}, "events {}\nhttp {\n    gzip on;\n}"},
	"into a block in a line":  {"events {}\nhttp { sendfile on; }\n", []edit.Edit{within("http", put("gzip", "on"))}, "events {}\nhttp { gzip on; sendfile on; }\n"},
	"behind a comment":        {"events { # c\n}\n", []edit.Edit{within("events", put("multi_accept", "on"))}, "events { # c\n    multi_accept on;\n}\n"},
	"CRLF":                    {"events {\r\n  multi_accept off;\r\n}\r\n", []edit.Edit{within("events", put("multi_accept", "on")), within("events", put("accept_mutex", "on"))}, "events {\r\n  accept_mutex on;\r\n  multi_accept on;\r\n}\r\n"},
	"comment only, main":      {"# c", []edit.Edit{put("worker_processes", "2"), within("events", put("multi_accept", "on"))}, "# c\nworker_processes 2;\nevents {\n    multi_accept on;\n}\n"},
	"a directive in quotes":   {"\"worker_processes\" 1;\nevents {}\n", []edit.Edit{put("worker_processes", "2")}, "worker_processes 2;\nevents {}\n"},
	"no argument before, now": {"events {}\nhttp {\n    upstream a {\n        ip_hash;\n        server unix:@/x;\n    }\n}\n", []edit.Edit{within("http.upstream", put("ip_hash", ""))}, "events {}\nhttp {\n    upstream a {\n        ip_hash;\n        server unix:@/x;\n    }\n}\n"},
}

func TestPutNginx(t *testing.T) { check(t, nginx, nginxTable) }

func TestValueNginx(t *testing.T) {
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
		f := nginx
		f.Context = c.context
		got, found := f.Value(site, []string{c.name})
		if !found {
			got = "-"
		}
		if got != c.want {
			t.Errorf("%s in %q: %q, want %q", c.name, c.context, got, c.want)
		}
	}
	content := "gzip off;\nhttp { server { gzip on; location / { gzip  'a' ; } } }"
	if got, _ := nginx.Value(content, []string{"gzip"}); got != "'a'" {
		t.Errorf("the innermost: %q", got)
	}
}

func TestKeysNginx(t *testing.T) {
	content := "user a b;\nhttp { types { text/html html; }\n\tserver { listen 80; include \"x y/*.conf\"; } }\ninclude a;\nbroken"
	want := []edit.Key{
		{Name: "user", Value: "a b", Line: 1, Column: 1},
		{Name: "listen", Value: "80", Section: "http.server", Line: 3, Column: 11},
		{Name: "include", Value: `"x y/*.conf"`, Section: "http.server", Line: 3, Column: 22},
		{Name: "include", Value: "a", Line: 4, Column: 1},
	}
	if d := cmp.Diff(want, nginx.Keys(content)); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff([]edit.Include{{Path: "x y/*.conf", Line: 3}, {Path: "a", Line: 4}}, nginx.Includes(content)); d != "" {
		t.Error(d)
	}
}

func TestRelocateNginx(t *testing.T) {
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
		if got := nginx.Relocate(content, "/etc/nginx/nginx.conf"); got != want {
			t.Errorf("%q becomes %q, want %q", content, got, want)
		}
	}
	if got := nginx.Relocate("include a\"b;", `/a "b"\c/nginx.conf`); got != `include "/a \"b\"\\c/a\"b";` {
		t.Errorf("a directory with special characters: %s", got)
	}
}
