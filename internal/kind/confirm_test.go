package kind_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Every option that an installed program tells of is one that its kind knows, so
// that a true name is never taken for a mistyped one.
func TestNamesConfirm(t *testing.T) {
	flag := regexp.MustCompile(`(?m)^ *(?:-[A-Za-z0-9][ ,|]*(?:[A-Z_]+, )?)?--(\[no-\])?([A-Za-z0-9][A-Za-z0-9_.-]*)`)
	for name, command := range map[string][]string{
		"uwsgi":     {"uwsgi", "--plugins", "http,python3", "--help"},
		"gunicorn":  {"gunicorn", "--help"},
		"memcached": {"memcached", "--help"},
		"puma":      {"puma", "--help"},
		"mariadb":   {"mariadbd", "--no-defaults", "--verbose", "--help"},
	} {
		t.Run(name, func(t *testing.T) {
			cmd := exec.CommandContext(t.Context(), command[0], command[1:]...)
			cmd.Dir = t.TempDir()
			output, err := cmd.CombinedOutput()
			found := flag.FindAllStringSubmatch(string(output), -1)
			if len(found) < 20 {
				t.Fatalf("%v: %v, %d options in\n%.2000s", command, err, len(found), output)
			}
			k := load(t, name)
			for _, m := range found {
				if _, known := k.Setting(m[2]); !known && m[2] != "help" && m[2] != "version" {
					t.Errorf("--%s is an option of %s that the kind does not know", m[2], command[0])
				}
			}
		})
	}
}

// Directives are put where nginx takes them.
func TestContextsConfirm(t *testing.T) {
	dir := t.TempDir()
	blocks := map[string]string{
		"": "%s\nevents {}\n", "events": "events { %s }\n", "http": "events {}\nhttp { %s }\n",
		"http.server": "events {}\nhttp { server { %s } }\n", "http.server.location": "events {}\nhttp { server { location / { %s } } }\n",
		"http.upstream": "events {}\nhttp { upstream u { server 127.0.0.1:1; %s } }\n",
	}
	k := load(t, "nginx")
	for _, directive := range []string{"worker_processes 1;", "worker_rlimit_nofile 9;", "worker_connections 9;", "multi_accept on;", "keepalive_timeout 9;", "sendfile on;",
		"listen 127.0.0.1:1;", "server_name x;", "alias /x;", "proxy_pass http://127.0.0.1:1;", "gzip on;", "access_log off;", "least_conn;", "error_log stderr;", "internal;"} {
		name, _, _ := strings.Cut(strings.TrimSuffix(directive, ";"), " ")
		block, known := blocks[k.Describe(name).In]
		if !known {
			t.Errorf("%s is put in the unknown block %q", name, k.Describe(name).In)
			continue
		}
		file := filepath.Join(dir, "nginx.conf")
		content := "pid " + dir + "/pid;\n" + strings.ReplaceAll(block, "%s", directive)
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if output, err := exec.CommandContext(t.Context(), "nginx", "-t", "-c", file, "-p", dir, "-e", filepath.Join(dir, "log")).CombinedOutput(); err != nil {
			t.Errorf("%s in %q: %v\n%s", directive, k.Describe(name).In, err, output)
		}
	}
}
