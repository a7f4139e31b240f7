package edit_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"hakaru/internal/edit"
)

func TestPutUWSGI(t *testing.T) {
	check(t, uwsgi, map[string]change{
		"in place":                  {"[uwsgi]\nmaster = true\nprocesses = 2\n", []edit.Edit{put("processes|workers", "4")}, "[uwsgi]\nmaster = true\nprocesses = 4\n"},
		"by another name":           {"[uwsgi]\nworkers = 2\n", []edit.Edit{put("processes|workers", "4")}, "[uwsgi]\nprocesses = 4\n"},
		"a list of others stays":    {"[uwsgi]\nenv = A=1\nenv = B=2\nlog = x\n", []edit.Edit{put("log", "y")}, "[uwsgi]\nenv = A=1\nenv = B=2\nlog = y\n"},
		"a list becomes the one":    {"[uwsgi]\nenv = A=1\nlog = x\nenv = B=2\n", []edit.Edit{put("env", "C=3")}, "[uwsgi]\nenv = C=3\nlog = x\n"},
		"a list taken away":         {"[uwsgi]\nenv = A=1\nlog = x\nenv = B=2\n", []edit.Edit{put("env")}, "[uwsgi]\nlog = x\n"},
		"no comment behind a value": {"[uwsgi]\nprocesses = 2 # two\n", []edit.Edit{put("processes", "4")}, "[uwsgi]\nprocesses = 4\n"},
		"not behind a condition": {
			"[uwsgi]\nif-env = X\nprocesses = 2\nendif =\nmaster = true\n", []edit.Edit{put("processes", "4")},
			"[uwsgi]\nif-env = X\nendif =\nmaster = true\nprocesses = 4\n"},
		"before a condition that does not end": {
			"[uwsgi]\nmaster = true\nif-env = X\nprocesses = 2\n", []edit.Edit{put("processes", "4")},
			"[uwsgi]\nmaster = true\nprocesses = 4\nif-env = X\n"},
		"behind what is drawn in": {
			"[uwsgi]\nprocesses = 2\nini = base.ini\n[other]\n", []edit.Edit{put("processes", "4")},
			"[uwsgi]\nini = base.ini\nprocesses = 4\n[other]\n"},
		"two sections of the name": {
			"[uwsgi]\na = 1\n[x]\n[uwsgi]\nb = 1\n", []edit.Edit{put("processes", "4")},
			"[uwsgi]\na = 1\n[x]\n[uwsgi]\nb = 1\nprocesses = 4\n"},
		"what stands behind a header is its name": {
			"[uwsgi] # main\nprocesses = 2\n", []edit.Edit{put("processes", "4")},
			"[uwsgi] # main\nprocesses = 2\n[uwsgi]\nprocesses = 4\n"},
		"byte order mark hides the header": {
			"\ufeff[uwsgi]\nprocesses = 2\n", []edit.Edit{put("processes", "4")},
			"\ufeff[uwsgi]\nprocesses = 2\n[uwsgi]\nprocesses = 4\n"},
		"CRLF": {"[uwsgi]\r\nprocesses = 2\r\n", []edit.Edit{put("processes", "4"), put("master", "true")}, "[uwsgi]\r\nprocesses = 4\r\nmaster = true\r\n"},
	})
}

func TestKeysUWSGI(t *testing.T) {
	got := uwsgi.Keys("[uwsgi]\n# c\n proceses=4\nmaster\n[other]\r\nx = %(y) z\r\n")
	want := []edit.Key{
		{Name: "proceses", Value: "4", Section: "uwsgi", Line: 3, Column: 2},
		{Name: "master", Section: "uwsgi", Line: 4, Column: 1},
		{Name: "x", Value: "%(y) z", Section: "other", Line: 6, Column: 1},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	included := uwsgi.Includes("[uwsgi]\nini = a.ini\n[x]\nini = b.ini\n[uwsgi]\ninherit = c.ini\ninclude =\n")
	if d := cmp.Diff([]edit.Include{{Path: "a.ini", Line: 2}, {Path: "c.ini", Line: 6}}, included); d != "" {
		t.Error(d)
	}
}

func TestRelocateUWSGI(t *testing.T) {
	for content, want := range map[string]string{
		"chdir = %dapp":        "chdir = /srv/web/app",
		"p = %p s = %s":        "p = /srv/web/my.app.ini s = my.app.ini",
		"n = %n e = %e c = %c": "n = my.app e = ini c = web",
		"%0/%1/%2":             "srv/web/",
		"%%d %%%d":             "%%d %%/srv/web/",
		"%(name) %k %v %x %i":  "%(name) %k %v %x %i",
		"# %d\n50%\n%":         "# /srv/web/\n50%\n%",
		"no newline %":         "no newline %",
	} {
		if got := uwsgi.Relocate(content, "/srv/web/my.app.ini"); got != want {
			t.Errorf("%q becomes %q, want %q", content, got, want)
		}
	}
	if got := uwsgi.Relocate("%d", "/a%b/x.ini"); got != "/a%%b/" {
		t.Errorf("a percent sign in the path: %q", got)
	}
	if got := ini.Relocate("%d", "/a/x.ini"); got != "%d" {
		t.Errorf("an ini file of another program was changed to %q", got)
	}
}

// shows returns what uWSGI itself prints for a config file.
func shows(t *testing.T, dir, file string, words ...string) string {
	t.Helper()
	cmd := exec.Command("uwsgi", append([]string{"--ini", file, "--no-server"}, words...)...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("uwsgi --ini %s: %v\n%s", file, err, out)
	}
	return string(out)
}

// What uWSGI's magic variables mean in one place, they mean relocated in another.
func TestRelocateUWSGIConfirm(t *testing.T) {
	dir := t.TempDir()
	var content strings.Builder
	content.WriteString("[uwsgi]\n")
	for c := '!'; c <= 'z'; c++ {
		// Time and random values differ from run to run, %i is the inode and
		// %o the path as the command line has it.
		if !strings.ContainsRune("tTiIoO(", c) {
			fmt.Fprintf(&content, "print = <%c %%%c>\n", c, c)
		}
	}
	content.WriteString("print = <%%d %%%d %(foo)%n>\nfoo = bar\n# %d\n")
	from := filepath.Join(dir, "one", "two%")
	to := filepath.Join(dir, "else")
	for _, d := range []string{from, to} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	printed := func(out string) string {
		var lines []string
		for line := range strings.Lines(out) {
			if strings.HasPrefix(line, "<") {
				lines = append(lines, line)
			}
		}
		return strings.Join(lines, "")
	}
	for _, name := range []string{"my.app.ini", ".hidden", "x."} {
		path := filepath.Join(from, name)
		write(t, path, content.String())
		write(t, filepath.Join(to, "config.ini"), uwsgi.Relocate(content.String(), path))
		want := printed(shows(t, dir, path))
		if !strings.Contains(want, "<d "+from+"/>") {
			t.Fatalf("uwsgi printed %s", want)
		}
		if d := cmp.Diff(want, printed(shows(t, dir, filepath.Join(to, "config.ini")))); d != "" {
			t.Errorf("%s: %s", name, d)
		}
	}
}

// What Value says is what uWSGI takes, and what is put in is what it takes then.
func TestValueUWSGIConfirm(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "base.ini"), "[uwsgi]\nprocesses = 77\n")
	random := rand.New(rand.NewPCG(3, 1))
	pieces := []string{
		"processes = 2", "processes=3", " processes\t= 4 # four", "# processes = 5", "; x", "[other]", "[uwsgi]", "[uwsgi] x",
		"if-env = HAKARU_NOT_SET\nprocesses = 6\nendif =", "master = true", "threads = 1", "", "processes = 08",
	}
	takes := func(content string) (value string, found bool) {
		write(t, filepath.Join(dir, "c.ini"), content)
		for line := range strings.Lines(shows(t, dir, "c.ini", "--show-config")) {
			if after, ok := strings.CutPrefix(line, "processes = "); ok {
				value, found = strings.TrimSpace(after), true
			}
		}
		return value, found
	}
	for range 12 {
		var lines []string
		for range 1 + random.IntN(7) {
			lines = append(lines, pieces[random.IntN(len(pieces))])
		}
		content := strings.Join(lines, []string{"\n", "\r\n"}[random.IntN(2)])
		want, wanted := takes(content)
		got, found := uwsgi.Value(content, []string{"processes"})
		if !strings.Contains(content, "if-env") && (got != want || found != wanted) {
			t.Errorf("%q: Value %q, %v; uwsgi takes %q, %v", content, got, found, want, wanted)
		}
		content += "\nini = base.ini"
		edited, err := uwsgi.Put(content, []edit.Edit{put("processes", "9")})
		if err != nil {
			t.Fatal(err)
		}
		if got, _ := takes(edited); got != "9" {
			t.Errorf("%q: put 9, uwsgi takes %q\n%s", content, got, edited)
		}
		gone, err := uwsgi.Put(edited, []edit.Edit{put("processes")})
		if err != nil {
			t.Fatal(err)
		}
		if got, found := uwsgi.Value(gone, []string{"processes"}); found {
			t.Errorf("%q: null left %q", content, got)
		}
	}
}

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}
