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

func TestPutMyCnf(t *testing.T) {
	check(t, mycnf, map[string]change{
		"in place, comment kept": {
			"[mysqld]\n# pool\ninnodb_buffer_pool_size = 1G   # why\nport=1\n", []edit.Edit{put("innodb-buffer-pool-size", "8G")},
			"[mysqld]\n# pool\ninnodb_buffer_pool_size = 8G   # why\nport=1\n"},
		"only the client has it": {
			"[client]\nport = 1\n", []edit.Edit{put("port", "2")},
			"[client]\nport = 1\n[mysqld]\nport = 2\n"},
		"the client's stays": {
			"[client]\nport=1\n[mysqld]\nport=1\n", []edit.Edit{put("port", "2")},
			"[client]\nport=1\n[mysqld]\nport=2\n"},
		"the last one counts, whatever its group": {
			"[mariadb]\nport=1\n[mysqld]\nport=2\n[server]\nport=3\n", []edit.Edit{put("port", "9")},
			"[mariadb]\n[mysqld]\n[server]\nport=9\n"},
		"a file drawn in later might set it": {
			"[mysqld]\nport=1\nuser=mysql\n!includedir /etc/mysql/conf.d/\n", []edit.Edit{put("port", "9")},
			"[mysqld]\nuser=mysql\n!includedir /etc/mysql/conf.d/\n[mysqld]\nport = 9\n"},
		"added to the last group": {
			"[client]\nx=1\n[mysqld]\nuser = mysql\n\n# end\n", []edit.Edit{put("port", "9")},
			"[client]\nx=1\n[mysqld]\nuser = mysql\n\n# end\nport = 9\n"},
		"no newline at the end": {"[mysqld]\n!include x.cnf", []edit.Edit{put("port", "9")}, "[mysqld]\n!include x.cnf\n[mysqld]\nport = 9\n"},
		"null takes all of it away": {
			"[mysqld]\nport=1\nloose_port=2\n[client]\nport=3\n[server]\nport=4\n", []edit.Edit{put("port")},
			"[mysqld]\n[client]\nport=3\n[server]\n"},
		"switched off": {
			"[mysqld]\nskip-performance-schema # off\n", []edit.Edit{put("performance_schema", "ON")},
			"[mysqld]\nperformance_schema = ON # off\n"},
		"a name that begins with skip": {
			"[mysqld]\nskip-name-resolve\n", []edit.Edit{put("skip_name_resolve", "0")},
			"[mysqld]\nskip-name-resolve = 0\n"},
		"quotes where they are needed": {
			"[mysqld]\n", []edit.Edit{put("init-connect", `SET NAMES 'utf8' # not a comment`), put("datadir", `C:\new`), put("y", " ")},
			"[mysqld]\ninit-connect = \"SET NAMES 'utf8' # not a comment\"\ndatadir = C:\\\\new\ny = \" \"\n"},
		"an empty value":      {"[mysqld]\nx = 1\n", []edit.Edit{put("x", "")}, "[mysqld]\nx = \n"},
		"from an empty one":   {"[mysqld]\nx =\n", []edit.Edit{put("x", "1")}, "[mysqld]\nx =1\n"},
		"CRLF":                {"[mysqld]\r\nx=1 # c\r\n", []edit.Edit{put("x", "2"), put("y", "3")}, "[mysqld]\r\nx=2 # c\r\ny = 3\r\n"},
		"empty":               {"", []edit.Edit{put("x", "2")}, "[mysqld]\nx = 2\n"},
		"case of a group":     {"[MySQLd]\nx=1\n", []edit.Edit{put("x", "2"), put("y", "1")}, "[MySQLd]\nx=2\ny = 1\n"},
		"tabs":                {"[mysqld]\n\tx\t=\t1\t# c\n", []edit.Edit{put("x", "2")}, "[mysqld]\n\tx\t=\t2\t# c\n"},
		"the person's prefix": {"[mysqld]\nloose-x=1\n", []edit.Edit{put("x", "2")}, "[mysqld]\nloose-x=2\n"},
	})
}

func TestValueMyCnf(t *testing.T) {
	values(t, mycnf, map[string]struct {
		content, want string
		found         bool
	}{
		"only the client's":    {"[client]\nx=1\n", "", false},
		"last of any group":    {"[server]\nx=1\n[mysqld]\nx=2\n[client]\nx=3\n", "2", true},
		"switched on":          {"[mysqld]\nx\n", "", true},
		"switched off":         {"[mysqld]\nskip-x\n", "0", true},
		"off not":              {"[mysqld]\ndisable_x = 0\n", "1", true},
		"enabled":              {"[mysqld]\nloose-enable-x\n", "1", true},
		"enabled not":          {"[mysqld]\nenable-x=0\n", "0", true},
		"maximum is another":   {"[mysqld]\nmaximum-x=1\n", "", false},
		"behind a mistake":     {"[mysqld]\nx=1\n[\nx=2\n", "1", true},
		"single quotes":        {"[mysqld]\nx='a # b' # c\n", "a # b", true},
		"quotes in the middle": {"[mysqld]\nx=a\"b # c\"d # e\n", "a\"b # c\"d", true},
	})
	content := "[mysqld]\n x_y = 1\n!includedir /a b \n[client]\n! include  c.cnf # d\n!nothing\nz\n"
	if d := cmp.Diff([]edit.Key{{Name: "x_y", Value: "1", Section: "mysqld", Line: 2, Column: 2}, {Name: "z", Section: "client", Line: 7, Column: 1}}, mycnf.Keys(content)); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff([]edit.Include{{Path: "/a b", Dir: true, Line: 3}, {Path: "c.cnf # d", Line: 5}}, mycnf.Includes(content)); d != "" {
		t.Error(d)
	}
	if got := mycnf.Relocate(content, "/x/y.cnf"); got != content {
		t.Errorf("relocated to %q; the server takes includes from its working directory", got)
	}
}

// defaults returns what the server would read of a file, as it reads it; the
// last line of a setting counts.
func defaults(t *testing.T, file string) []string {
	t.Helper()
	out, err := exec.Command("my_print_defaults", "--defaults-file="+file, "mysqld", "server", "mariadb", "mariadbd").Output()
	if err != nil {
		t.Fatalf("my_print_defaults of %s: %v", file, err)
	}
	text := strings.TrimSuffix(string(out), "\n")
	if text == "" {
		return nil
	}
	return strings.Split(strings.TrimPrefix(text, "--"), "\n--")
}

// last returns what the server takes for x of what it reads: its value, and
// whether there is one.
func last(read []string) (value string, found bool) {
	for _, option := range read {
		name, v, _ := strings.Cut(option, "=")
		if strings.TrimPrefix(strings.ReplaceAll(name, "_", "-"), "loose-") == "x-y" {
			value, found = v, true
		}
	}
	return value, found
}

// What Value says is what the server's own reader says, over random files; and
// what is put in wins over all that is drawn in.
func TestMyCnfConfirm(t *testing.T) {
	dir := t.TempDir()
	included := filepath.Join(dir, "conf.d")
	if err := os.Mkdir(included, 0o700); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(included, "a.cnf"), "[mysqld]\nx-y=in a\n")
	write(t, filepath.Join(included, "b.cnf"), "[client]\nx_y=in b\n[mariadb]\nloose_x_y = in b # c\n")
	write(t, filepath.Join(included, "c.txt"), "[mysqld]\nx-y=in c\n")
	lines := []string{
		"[mysqld]", "[client]", "[ mysqld ]", "[MARIADB ] # c", "[server]x", "[mysqld_safe]", "# x-y=comment", "; x-y=comment", "",
		"x-y=1", " x_y = 2 # two", "loose-x-y\t=\t3", "x-y = \"4 # four\" # c", "x_y='5'", "x-y = it's # no comment", "x-y",
		`x-y = a\tb\sc\\d\"e\q`, `x-y = "a\"#b" # c`, `x-y = \`, `x-y = "`, `x-y="a" "b"`, "x-y=\xa0u\xc3\xa0", "x-y =", "x y = 1", "x-y-z = 1", "=1",
		"\x0b x-y = 6", "!unknown",
	}
	values := []string{"9", "a b", " a ", "", `a\b`, `C:\new\table`, `it's`, `"`, `''`, `a#b`, `#`, `a "b" 'c' # d`, `\`, `"\`, "à", "\ta", "a=b", "[x]", "!include x"}
	random := rand.New(rand.NewPCG(3, 2))
	path := filepath.Join(dir, "my.cnf")
	for range 150 {
		pieces := []string{[]string{"[mysqld]", "[client]", "[server]"}[random.IntN(3)]}
		for range random.IntN(9) {
			pieces = append(pieces, lines[random.IntN(len(lines))])
		}
		content := strings.Join(pieces, []string{"\n", "\r\n"}[random.IntN(2)]) + []string{"", "\n"}[random.IntN(2)]
		write(t, path, content)
		want, wanted := last(defaults(t, path))
		if got, found := mycnf.Value(content, []string{"x_y"}); got != want || found != wanted {
			t.Fatalf("%q: Value %q, %v; the server takes %q, %v", content, got, found, want, wanted)
		}

		at := random.IntN(len(pieces) + 1)
		include := []string{"!includedir " + included, "!include " + filepath.Join(included, "a.cnf")}[random.IntN(2)]
		content = strings.Join(append(pieces[:at:at], append([]string{include}, pieces[at:]...)...), "\n") + "\n"
		if at == 0 {
			content = "[client]\n" + content
		}
		value := values[random.IntN(len(values))]
		edited, err := mycnf.Put(content, []edit.Edit{put("x-y", value)})
		if err != nil {
			t.Fatal(err)
		}
		write(t, path, edited)
		if got, _ := last(defaults(t, path)); got != value {
			t.Fatalf("%q: put %q, the server takes %q of\n%s", content, value, got, edited)
		}
		if got, _ := mycnf.Value(edited, []string{"x-y"}); got != value {
			t.Fatalf("%q: put %q, read back %q of\n%s", content, value, got, edited)
		}
		if again, _ := mycnf.Put(edited, []edit.Edit{put("x-y", value)}); again != edited {
			t.Fatalf("once %q\ntwice %q", edited, again)
		}
		gone, err := mycnf.Put(edited, []edit.Edit{put("x-y")})
		if err != nil {
			t.Fatal(err)
		}
		if got, found := mycnf.Value(gone, []string{"x-y"}); found {
			t.Fatalf("null left %q of\n%s", got, edited)
		}
	}
}

// The forms that switch a setting are read as the server reads them.
func TestMyCnfSwitchesConfirm(t *testing.T) {
	path := filepath.Join(t.TempDir(), "my.cnf")
	for line, want := range map[string]string{
		"performance_schema = 1": "TRUE", "performance-schema": "TRUE", "enable_performance_schema": "TRUE", "skip-performance-schema=0": "TRUE",
		"skip-performance-schema": "FALSE", "loose-skip_performance-schema": "FALSE", "disable-performance-schema": "FALSE",
		"enable-performance-schema=0": "FALSE", "skip-performance-schema=OFF": "FALSE",
	} {
		before := map[string]string{"TRUE": "OFF", "FALSE": "ON"}[want] // so that the line changes something
		content := fmt.Sprintf("[mysqld]\nperformance-schema = %s\n%s\n", before, line)
		write(t, path, content)
		out, err := exec.Command("mariadbd", "--defaults-file="+path, "--verbose", "--help").Output()
		if err != nil {
			t.Fatalf("mariadbd --help with %q: %v", line, err)
		}
		has := ""
		for l := range strings.Lines(string(out)) {
			if after, found := strings.CutPrefix(l, "performance-schema "); found {
				has = strings.TrimSpace(after)
			}
		}
		got, _ := mycnf.Value(content, []string{"performance_schema"})
		if says := map[string]string{"": "TRUE", "1": "TRUE", "0": "FALSE"}[got]; says != want || has != want {
			t.Errorf("%q: Value %q, the server has it %s, want %s", line, got, has, want)
		}
	}
}
