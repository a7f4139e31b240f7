package kind_test

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"hakaru"
	"hakaru/internal/kind"
)

func load(t *testing.T, name string) *kind.Kind {
	t.Helper()
	c, err := kind.Load()
	if err != nil {
		t.Fatal(err)
	}
	k, found := c.Find(name)
	if !found {
		t.Fatalf("no kind %s in %v", name, c.Names())
	}
	return k
}

func set(name string, value ...string) hakaru.Setting {
	s := hakaru.Setting{Name: name}
	if len(value) > 0 {
		s.Value = &value[0]
	}
	return s
}

// Every kind file is complete: types are known, needs and conditions name
// settings, a proof asks one thing, patterns can be read, and nothing is mistaken
// for two settings.
func TestKinds(t *testing.T) {
	c, err := kind.Load()
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob("kinds/*.yaml")
	if err != nil || len(files) < 10 {
		t.Fatalf("%d kind files, %v", len(files), err)
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".yaml")
		if k, found := c.Find(name); name != "planned" && (!found || k.Name != name || !k.Built) {
			t.Errorf("%s: there is no kind of this name, or it is not marked as built", file)
		}
	}
	types := []kind.Type{kind.Text, kind.Count, kind.Whole, kind.Bool, kind.Duration, kind.Share, kind.Bytes, kind.Size, kind.Address, kind.Choice}
	for _, name := range c.Names() {
		k, err := c.Read(name)
		if err != nil {
			t.Error(err)
			continue
		}
		known := func(what, setting string) {
			if _, ok := k.Setting(setting); !ok {
				t.Errorf("%s: %s names %s, which is no setting", name, what, setting)
			}
		}
		conditions := func(what string, list []string) {
			for _, condition := range list {
				if strings.HasPrefix(condition, "~") {
					continue
				}
				setting, _, _ := strings.Cut(condition, "=")
				setting, _, _ = strings.Cut(strings.TrimSuffix(setting, "!"), ">")
				known(what, setting)
			}
		}
		pattern := func(what, text string) {
			if re, err := regexp.Compile(text); err != nil {
				t.Errorf("%s: %s: %v", name, what, err)
			} else if re.MatchString("") {
				t.Errorf("%s: %s matches everything: %s", name, what, text)
			}
		}
		if k.Built && k.Name != "command" && (k.Summary == "" || len(k.Programs) == 0 || !k.Knows() || k.Stop.Signal == "") {
			t.Errorf("%s: summary, programs, settings or stop is missing", name)
		}
		names := map[string]string{}
		for _, s := range k.Settings {
			if !slices.Contains(types, s.Type) {
				t.Errorf("%s.%s: type %q", name, s.Name, s.Type)
			}
			if (s.Type == kind.Choice) != (len(s.Choices) > 0) {
				t.Errorf("%s.%s: choices %v of type %s", name, s.Name, s.Choices, s.Type)
			}
			for _, n := range slices.Concat([]string{s.Name}, s.Synonyms, s.Mistaken) {
				if other, twice := names[n]; twice {
					t.Errorf("%s: %s stands for %s and %s", name, n, other, s.Name)
				}
				names[n] = s.Name
			}
			for _, n := range s.Mistaken {
				if real, ok := k.Setting(n); ok && real.Name != s.Name {
					t.Errorf("%s.%s: %s is called a mistake and is a setting", name, s.Name, n)
				}
			}
			for _, n := range s.Needs {
				known(s.Name+" needs", n)
			}
			for _, n := range s.ImpliedBy {
				known(s.Name+" implied_by", n)
			}
			for _, p := range s.Proofs {
				asks := 0
				for _, is := range []bool{p.HTTP != "", p.Processes, p.Threads, p.Backlog, p.Log != "", p.SQL != "", p.Stats != "", p.Command != "", p.File, p.Cmdline} {
					if is {
						asks++
					}
				}
				if p.Title != "" && !p.Processes {
					t.Errorf("%s.%s: a title is of processes", name, s.Name)
				}
				if asks != 1 {
					t.Errorf("%s.%s: a proof asks %d things", name, s.Name, asks)
				}
				if p.Log != "" {
					pattern(s.Name, p.Log)
				}
				if re, err := regexp.Compile(p.Log); err == nil && p.Shows != "" && re.NumSubexp() > 0 {
					t.Errorf("%s.%s: what shows on or off has a group", name, s.Name)
				}
				if re, err := regexp.Compile(p.Part); err != nil || p.Part != "" && re.NumSubexp() != 1 {
					t.Errorf("%s.%s: part %q is no pattern with a group", name, s.Name, p.Part)
				}
				conditions(s.Name+" unless", p.Unless)
				conditions(s.Name+" when", p.When)
				for plus := range p.Plus {
					for name := range strings.SplitSeq(plus, "|") {
						known(s.Name+" plus", name)
					}
				}
			}
		}
		conditions("logs_elsewhere", k.LogsElsewhere)
		conditions("background", k.Background)
		conditions("takes_over", k.TakesOver)
		conditions("shares", k.Shares)
		conditions("config_flags", k.Edit.ConfigFlags)
		if k.Edit.Config != "" {
			pattern("edit", k.Edit.Config)
		}
		for _, p := range k.Private {
			known("private", p.Name)
		}
		for _, n := range slices.Concat(k.Listen.Settings, []string{k.Listen.Host, k.Listen.Port, k.Listen.Unix, k.Listen.Dir, k.Listen.NoPort}) {
			if n != "" {
				known("listen", n)
			}
		}
		for _, s := range k.Signs {
			pattern("sign", s.Line)
			if s.Hint == "" {
				t.Errorf("%s: the sign %s has no hint", name, s.Line)
			}
		}
	}
}

func TestGuess(t *testing.T) {
	c, err := kind.Load()
	if err != nil {
		t.Fatal(err)
	}
	for line, want := range map[string]string{
		"hakaru serve --listen x": "serve", "/usr/bin/hakaru serve": "serve", "hakaru": "", "hakaru run": "",
		"./app": "", "": "", "/usr/sbin/nginx -c x": "nginx", "uwsgi --ini x": "uwsgi",
	} {
		got := ""
		if k := c.Guess(strings.Fields(line)); k != nil {
			got = k.Name
		}
		if got != want {
			t.Errorf("%q is guessed as %q, want %q", line, got, want)
		}
	}
}

func TestEditFile(t *testing.T) {
	for name, c := range map[string]struct {
		content  string
		settings []hakaru.Setting
		want     string
	}{
		"in place, comments and order kept": {
			"# top\n[serve]\n; a\nprocesses = 1\nthreads = 2\n", []hakaru.Setting{set("processes", "4")},
			"# top\n[serve]\n; a\nprocesses = 4\nthreads = 2\n"},
		"spacing of the line kept": {"[serve]\n  processes=1\n", []hakaru.Setting{set("processes", "4")}, "[serve]\n  processes=4\n"},
		"appended in the section's own spacing": {
			"[serve]\na=1\n\n[other]\nprocesses=9\n", []hakaru.Setting{set("processes", "4")},
			"[serve]\na=1\nprocesses=4\n\n[other]\nprocesses=9\n"},
		"null takes the line away":  {"[serve]\nlog = off\nthreads = 1\n", []hakaru.Setting{set("log")}, "[serve]\nthreads = 1\n"},
		"null of what is not there": {"[serve]\nthreads = 1\n", []hakaru.Setting{set("log")}, "[serve]\nthreads = 1\n"},
		"repeated keys become one": {
			"[serve]\nlog = a\nthreads = 1\nlog = b\n", []hakaru.Setting{set("log", "off")},
			"[serve]\nlog = off\nthreads = 1\n"},
		"a commented line is a comment": {"[serve]\n#log = a\n", []hakaru.Setting{set("log", "off")}, "[serve]\n#log = a\nlog = off\n"},
		"no section":                    {"", []hakaru.Setting{set("log", "off")}, "[serve]\nlog = off\n"},
		"another section only":          {"[x]\na = 1", []hakaru.Setting{set("log", "off")}, "[x]\na = 1\n[serve]\nlog = off\n"},
		"CRLF":                          {"[serve]\r\nlog = a\r\n", []hakaru.Setting{set("log", "b"), set("threads", "2")}, "[serve]\r\nlog = b\r\nthreads = 2\r\n"},
		"no newline at the end":         {"[serve]\nlog = a", []hakaru.Setting{set("threads", "2")}, "[serve]\nlog = a\nthreads = 2\n"},
		"value with an equals sign":     {"[serve]\nlog = a=b\n", []hakaru.Setting{set("log", "c=d")}, "[serve]\nlog = c=d\n"},
		"empty value":                   {"[serve]\nlog = a\n", []hakaru.Setting{set("log", "")}, "[serve]\nlog = \n"},
		"the later wins":                {"[serve]\n", []hakaru.Setting{set("log", "a"), set("log", "b")}, "[serve]\nlog = b\n"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := load(t, "serve").EditFile(c.content, c.settings)
			if err != nil || got != c.want {
				t.Errorf("got %q, %v\nwant %q", got, err, c.want)
			}
		})
	}
	if _, err := load(t, "serve").EditFile("", []hakaru.Setting{set("log", "a\nprocesses = 9")}); err == nil {
		t.Error("a value of two lines was put in")
	}
	if _, err := load(t, "command").EditFile("", []hakaru.Setting{set("log", "a")}); err == nil {
		t.Error("kind command edited a file")
	}
}

// Whatever the file holds: what was put in is read back, twice is the same as
// once, and comments stay.
func TestEditFileHolds(t *testing.T) {
	k := load(t, "serve")
	line := rapid.SampledFrom([]string{"[serve]", "[other]", "log = a", "log=b", "  threads = 2", "# log = x", "", "processes", "; c", "x = y = z"})
	rapid.Check(t, func(t *rapid.T) {
		lines := rapid.SliceOfN(line, 0, 12).Draw(t, "lines")
		content := strings.Join(lines, rapid.SampledFrom([]string{"\n", "\r\n"}).Draw(t, "ending"))
		value := rapid.StringMatching(`[a-z0-9:/=]{1,8}`).Draw(t, "value")
		name := rapid.SampledFrom([]string{"log", "threads", "processes"}).Draw(t, "name")
		edited, err := k.EditFile(content, []hakaru.Setting{set(name, value)})
		if err != nil {
			t.Fatal(err)
		}
		if got, found := k.Value(nil, edited, name); !found || got != value {
			t.Fatalf("put %s = %s into %q, got %q, read back %q, %v", name, value, content, edited, got, found)
		}
		if again, _ := k.EditFile(edited, []hakaru.Setting{set(name, value)}); again != edited {
			t.Fatalf("twice: %q, once: %q", again, edited)
		}
		if strings.Count(edited, "#") != strings.Count(content, "#") || strings.Count(edited, ";") != strings.Count(content, ";") {
			t.Fatalf("a comment went from %q to %q", content, edited)
		}
		gone, _ := k.EditFile(edited, []hakaru.Setting{set(name)})
		if got, found := k.Value(nil, gone, name); found {
			t.Fatalf("null left %s = %q in %q", name, got, gone)
		}
	})
}

func TestEditWords(t *testing.T) {
	for _, c := range []struct {
		line     string
		settings []hakaru.Setting
		want     string
	}{
		{"hakaru serve", []hakaru.Setting{set("threads", "2")}, "hakaru serve --threads=2"},
		{"hakaru serve --threads 1 --log off", []hakaru.Setting{set("threads", "2")}, "hakaru serve --threads=2 --log off"},
		{"hakaru serve --threads=1 --log=off --threads=3", []hakaru.Setting{set("threads", "2")}, "hakaru serve --threads=2 --log=off"},
		{"hakaru serve --log=off --threads=1", []hakaru.Setting{set("log")}, "hakaru serve --threads=1"},
		{"hakaru serve --threads", []hakaru.Setting{set("threads", "2"), set("log", "off")}, "hakaru serve --threads=2 --log=off"},
		{"hakaru serve --thread=1", []hakaru.Setting{set("threads", "2")}, "hakaru serve --thread=1 --threads=2"},
	} {
		words := strings.Fields(c.line)
		got, err := load(t, "serve").EditWords(words, c.settings)
		if err != nil || strings.Join(got, " ") != c.want {
			t.Errorf("%s: got %q, %v, want %q", c.line, got, err, c.want)
		}
		if strings.Join(words, " ") != c.line {
			t.Errorf("%s: the words given were changed to %q", c.line, words)
		}
	}
}

func TestAddress(t *testing.T) {
	k := load(t, "serve")
	for _, c := range []struct{ line, file, want string }{
		{"hakaru serve --listen {http}", "[serve]\nlisten = 1.2.3.4:5\n", "{http}"},
		{"hakaru serve --listen=unix:/a", "", "unix:/a"},
		{"hakaru serve", "[x]\nlisten = 9.9.9.9:9\n[serve]\nlisten = 1.2.3.4:5\n", "1.2.3.4:5"},
		{"hakaru serve", "", "127.0.0.1:8080"},
	} {
		if got := k.Address(strings.Fields(c.line), c.file); got != c.want {
			t.Errorf("%s with %q listens on %q, want %q", c.line, c.file, got, c.want)
		}
	}
	if got := load(t, "command").Address([]string{"a", "--listen=x"}, ""); got != "" {
		t.Errorf("kind command knows the address %q", got)
	}
}

func TestWant(t *testing.T) {
	for _, c := range []struct{ as, value, want string }{
		{"seconds", "1.5m", "90"}, {"seconds", "250ms", "0.25"}, {"seconds", "x", "x"},
		{"share", "10%", "0.1"}, {"bytes", "64KiB", "65536"}, {"", "04", "04"},
	} {
		if got := (kind.Proof{As: c.as}).Want(c.value); got != c.want {
			t.Errorf("%s as %q is %q, want %q", c.value, c.as, got, c.want)
		}
	}
}
