package kind_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"hakaru/internal/kind"
)

var update = flag.Bool("update", false, "rewrite golden files")

// What the real programs wrote when they did not start is explained: each block of
// a recording has a sign, and the first that matches is the one that helps.
func TestSigns(t *testing.T) {
	recordings, err := filepath.Glob("testdata/signs/*.txt")
	if err != nil || len(recordings) < 6 {
		t.Fatalf("%d recordings, %v", len(recordings), err)
	}
	for _, path := range recordings {
		name := strings.TrimSuffix(filepath.Base(path), ".txt")
		t.Run(name, func(t *testing.T) {
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			k := load(t, name)
			var got strings.Builder
			for block := range strings.SplitSeq(strings.TrimPrefix(string(text), "### "), "\n### ") {
				title, output, _ := strings.Cut(block, "\n")
				s, line, found := firstSign(k, output)
				if !found {
					t.Errorf("%s: no sign for\n%s", title, output)
					continue
				}
				fmt.Fprintf(&got, "### %s\n%s\n  hint: %s\n", title, line, s.Hint)
				if s.Fatal {
					got.WriteString("  it will not become ready any more\n")
				}
			}
			golden := strings.TrimSuffix(path, ".txt") + ".golden"
			if *update {
				if err := os.WriteFile(golden, []byte(got.String()), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatalf("%v (write it with -update)", err)
			}
			if diff := cmp.Diff(string(want), got.String()); diff != "" {
				t.Errorf("%s (rewrite with -update, and look):\n%s", golden, diff)
			}
		})
	}
}

// What uWSGI, gunicorn, nginx, MariaDB, memcached and Puma write when all is well
// is no sign of a failed start.
func TestNoSigns(t *testing.T) {
	for name, output := range map[string]string{
		"uwsgi": "*** Operational MODE: preforking+threaded ***\nWSGI app 0 (mountpoint='') ready in 0 seconds on interpreter 0x7fc9 pid: 23744 (default app)\n" +
			"your server socket listen backlog is limited to 100 connections\nspawned uWSGI worker 1 (pid: 23745, cores: 2)\n" +
			"[pid: 1|app: 0|req: 1/1] 127.0.0.1 () {24 vars in 248 bytes} [Mon] GET /x => generated 3 bytes in 0 msecs (HTTP/1.1 500) 1 headers\n",
		"gunicorn":  "[2024-01-01 00:00:00 +0000] [1] [INFO] Listening at: http://127.0.0.1:39771 (1)\n[2024-01-01 00:00:00 +0000] [1] [INFO] Booting worker with pid: 2\n",
		"nginx":     "2024/01/01 00:00:00 [notice] 1#1: start worker processes\n",
		"mariadb":   "2024-01-01 0 [Note] Server socket created on IP: '127.0.0.1', port: '18347'.\n2024-01-01 0 [Warning] Could not increase number of max_open_files to more than 20000 (request: 32184)\n",
		"memcached": "\n",
		"puma":      "Puma starting in single mode...\n* Listening on http://127.0.0.1:39771\nUse Ctrl-C to stop\n",
	} {
		if s, line, found := firstSign(load(t, name), output); found {
			t.Errorf("%s: %q is taken for %q", name, line, s.Hint)
		}
	}
}

// firstSign is the first of a kind's signs that a line of the output has.
func firstSign(k *kind.Kind, output string) (s kind.Sign, line string, found bool) {
	for _, s := range k.Signs {
		pattern := regexp.MustCompile(s.Line)
		for line := range strings.Lines(output) {
			if pattern.MatchString(line) {
				return s, strings.TrimSpace(line), true
			}
		}
	}
	return kind.Sign{}, "", false
}
