package edit_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"hakaru/internal/edit"
)

// fragments are lines of config files, by style; x is what is put in.
var fragments = map[edit.Style][]string{
	edit.INI:   {"[serve]", "[other]", "x = a", "x=b # c", "  y = 2", "# x = c", "", "x", "; c", "y = x = z", `x = "a # b" ; c`, "\tx\t=\t1"},
	edit.UWSGI: {"[uwsgi]", "[other]", "x = a", "x=b # c", "  y = 2", "# x = c", "", "x", "; c", "if-env = A", "endif =", "ini = a.ini", "x =", "for = 1 2", "[uwsgi] "},
	edit.MyCnf: {"[mysqld]", "[client]", "[SERVER]", "x = a", "x=b # c", "  y_z = 2", "# x = c", "", "x", "; c", "!include a.cnf", "!includedir d", "skip-x", "loose_x='1'", "x =  # d"},
	edit.Nginx: {"x a;", "http {", "}", "server {", "x  'b;' c; # d", "# x c;", "", "types { x y; }", "y z; x 1; x 2;", "upstream u { x q; }", "x # e\n 1;", "events {}"},
	edit.Assign: {"x = 1", "x = 'a' # c", "y = 2", "# x = c", "", "if y:", "    y = 3", "x: int = 2", "def f(x=1):", "    return 2", "s = '''", "'''", "# Set by hakaru:",
		"y = [", "]", "x = \"b\";"},
}

func draw(t *rapid.T) (edit.File, string) {
	f := rapid.SampledFrom([]edit.File{ini, uwsgi, mycnf, nginx, assign}).Draw(t, "style")
	lines := rapid.SliceOfN(rapid.SampledFrom(fragments[f.Style]), 0, 12).Draw(t, "lines")
	content := strings.Join(lines, rapid.SampledFrom([]string{"\n", "\r\n"}).Draw(t, "ending"))
	return f, content + rapid.SampledFrom([]string{"", "\n", "\r\n"}).Draw(t, "end")
}

// comments counts whole lines that are comments, in any style.
func comments(content string) int {
	n := 0
	for line := range strings.Lines(content) {
		if text := strings.TrimSpace(line); text != "# Set by hakaru:" && strings.HasPrefix(text, "#") {
			n++
		}
	}
	return n
}

// Whatever the file holds: what is put in is read back, twice is once, comments
// and other settings stay, null leaves none.
func TestFilesHold(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f, content := draw(t)
		value := rapid.StringMatching(`[a-z0-9:/=._-]{1,8}`).Draw(t, "value")
		x := []string{"x"}
		before := others(f, content)
		edited, err := f.Put(content, []edit.Edit{put("x", value)})
		if err != nil {
			if value, found := f.Value(content, x); edited != "" {
				t.Fatalf("an error and %q (%q, %v)", edited, value, found)
			}
			return // the program would refuse the file, or the edit
		}
		if got, found := f.Value(edited, x); !found || got != value {
			t.Fatalf("put %q into %q, got %q, read back %q, %v", value, content, edited, got, found)
		}
		if again, err := f.Put(edited, []edit.Edit{put("x", value)}); again != edited {
			t.Fatalf("once %q, twice %q, %v", edited, again, err)
		}
		if comments(edited) < comments(content) {
			t.Fatalf("a comment went from %q to %q", content, edited)
		}
		if after := others(f, edited); after != before {
			t.Fatalf("other settings went from %q to %q:\n%q\n%q", before, after, content, edited)
		}
		gone, err := f.Put(edited, []edit.Edit{put("x")})
		if err != nil {
			return // of Python: something else uses it
		}
		if got, found := f.Value(gone, x); found {
			inUpstream := f.Style == edit.Nginx // it has its own
			if !inUpstream {
				t.Fatalf("null left %q in %q", got, gone)
			}
		}
		if after := others(f, gone); after != before {
			t.Fatalf("null: other settings went from %q to %q", before, after)
		}
		// Another value and back again is as if there had been one.
		other, err := f.Put(edited, []edit.Edit{put("x", "other"), put("x", value)})
		if err != nil || other != edited {
			t.Fatalf("there and back %q, %v, want %q", other, err, edited)
		}
	})
}

// others returns all settings but x, with their sections.
func others(f edit.File, content string) string {
	var b strings.Builder
	for _, k := range f.Keys(content) {
		if k.Name != "x" && !strings.HasSuffix(k.Name, "-x") && !strings.HasSuffix(k.Name, "_x") {
			b.WriteString(k.Section + "/" + k.Name + "=" + k.Value + "\n")
		}
	}
	return b.String()
}

// FuzzFiles: of whatever text and value, in every style, nothing panics, and what
// is put in is read back or refused.
func FuzzFiles(f *testing.F) {
	for _, lines := range fragments {
		f.Add(strings.Join(lines, "\n"), "1")
		f.Add(strings.Join(lines, "\r\n")+"\r\n", " \"a' # b\\")
	}
	f.Add("\ufeff[mysqld]\nx = '", "\xa0")
	f.Add("x = (\\\n", "à")
	f.Fuzz(func(t *testing.T, content, value string) {
		for _, file := range []edit.File{ini, uwsgi, mycnf, nginx, assign} {
			for _, k := range file.Keys(content) {
				if k.Line < 1 || k.Line > strings.Count(content, "\n")+1 || k.Column < 1 {
					t.Fatalf("%s: %q stands at %d:%d", file.Style, k.Name, k.Line, k.Column)
				}
			}
			file.Includes(content)
			file.Relocate(content, "/a/b.c")
			edited, err := file.Put(content, []edit.Edit{put("x", value)})
			if err != nil {
				continue
			}
			want := value
			switch file.Style {
			case edit.UWSGI:
				want = strings.Trim(value, " \t\r") // it has no way to write blanks at the ends
			case edit.Nginx:
				want = strings.TrimSpace(value)
			case edit.Assign:
				if value == "True" || value == "False" {
					want = strings.ToLower(value)
				}
			case edit.INI:
				if !utf8.ValidString(value) {
					continue // Go's quotes write other bytes
				}
			}
			if got, found := file.Value(edited, []string{"x"}); !found || got != want {
				t.Fatalf("%s: put %q into %q, got %q, read back %q, %v", file.Style, value, content, edited, got, found)
			}
			if again, err := file.Put(edited, []edit.Edit{put("x", value)}); again != edited {
				t.Fatalf("%s: once %q, twice %q, %v", file.Style, edited, again, err)
			}
			gone, err := file.Put(edited, []edit.Edit{put("x")})
			if err == nil && file.Style != edit.Nginx {
				if got, found := file.Value(gone, []string{"x"}); found {
					t.Fatalf("%s: null left %q in %q", file.Style, got, gone)
				}
			}
		}
	})
}
