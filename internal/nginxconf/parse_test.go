package nginxconf

import (
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// tokens returns the words of directives, with what ends each.
func tokens(list []*directive, text func(word) string) []string {
	var out []string
	for _, d := range list {
		for _, w := range d.words {
			out = append(out, text(w))
		}
		if !d.block {
			out = append(out, ";")
			continue
		}
		out = append(append(out, "{"), tokens(d.inner, text)...)
		out = append(out, "}")
	}
	return out
}

// FuzzParse: nothing panics; what is read is within the text; written out with
// one blank between, it reads the same; what is put in is read back.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		"", "a b;", "# c\nhttp { server { listen 80; } }", "a \"b;{}\\\"\" 'c';", "a ${b}c{ d; }", "a \\; \\{;", "if ($a) { b; }", "a \"b\")c;",
		"map $a $b { default 0; x 1; }", "a # c\n b;", "}", "{", "a", "a \"", "a '\\", "a;}", "\ufeffa b;\r\n", "x_by_lua_block { }", "a\tb\\tc;",
		"http{include a;}events{}", "http { upstream u { x 1; } x 2; server { x 3; x 4; } }", "$;", "${", "a\\", "http {x \"\";}",
	} {
		f.Add(seed, "1")
	}
	f.Add("http { x 1; }", "\"a;\" '{'")
	f.Fuzz(func(t *testing.T, content, value string) {
		top, err := parse(content)
		for _, k := range Entries(content) {
			if lines := strings.Count(content, "\n") + 1; k.Line < 1 || k.Line > lines || k.Column < 1 {
				t.Fatalf("%q stands at %d:%d of %d lines", k.Name, k.Line, k.Column, lines)
			}
		}
		Relocate(content, "/a b/nginx.conf")
		Includes(content)
		if err == nil {
			raw := strings.Join(tokens(top, func(w word) string { return content[w.Start:w.End] }), " ")
			again, err := parse(raw)
			if err != nil {
				t.Fatalf("%q, written as %q: %v", content, raw, err)
			}
			meant := func(w word) string { return w.text }
			if d := cmp.Diff(tokens(top, meant), tokens(again, meant)); d != "" {
				t.Fatalf("%q, written as %q: %s", content, raw, d)
			}
		}
		for _, context := range []string{"", "http", "http.server"} {
			x := []string{"x"}
			edited, err := Put(content, x, &value, context)
			if err != nil {
				continue
			}
			if _, err := parse(edited); err != nil {
				t.Fatalf("put %q into %q: %q: %v", value, content, edited, err)
			}
			if got, found := Value(edited, x, context); !found || got != strings.TrimSpace(value) {
				t.Fatalf("put %q into %q of %q, got %q, read back %q, %v", value, context, content, edited, got, found)
			}
			if twice, _ := Put(edited, x, &value, context); twice != edited {
				t.Fatalf("once %q, twice %q", edited, twice)
			}
			gone, err := Put(edited, x, nil, context)
			if err != nil {
				t.Fatal(err)
			}
			if found := settings(scopeOf(gone, context), x); len(found) > 0 {
				t.Fatalf("null left %d in %q", len(found), gone)
			}
		}
	})
}

// scopeOf returns what stands in a context.
func scopeOf(content, context string) []*directive {
	top, err := parse(content)
	if context = contextIn(top, context); err != nil || context == "" {
		return top
	}
	var scope []*directive
	for _, b := range blocksOf(top, context) {
		scope = append(scope, b.inner...)
	}
	return scope
}

// The lexer reads words as nginx does: nginx names a directive that it does not
// know by what it made of the word.
func TestWordsConfirm(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "nginx.conf")
	random := rand.New(rand.NewPCG(3, 3))
	pieces := []string{"a", "é", `"`, `'`, `\`, "$", "{", "}", ";", "#", " ", "\t", "\n", "\r\n", "n", "t", "(", ")", "${", `\"`, `\\`}
	agreed := 0
	for range 300 {
		var content strings.Builder
		content.WriteString("zz")
		if random.IntN(2) == 0 {
			content.Reset()
		}
		for range 1 + random.IntN(7) {
			content.WriteString(pieces[random.IntN(len(pieces))])
		}
		text := content.String() + " b;"
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		out, err := exec.Command("nginx", "-t", "-q", "-p", dir+"/", "-e", filepath.Join(dir, "start.log"), "-c", path).CombinedOutput()
		if err == nil {
			t.Fatalf("nginx accepts %q", text)
		}
		_, after, unknown := strings.Cut(string(out), `unknown directive "`)
		named, _, _ := strings.Cut(after, `" in `+dir)
		d, closes, _, err := nextDirective(text, 0)
		switch {
		case unknown && (err != nil || closes || d == nil || d.name() != named):
			t.Errorf("%q: nginx reads %q, here %+v, %v\n%s", text, named, d, err, out)
		case !unknown && err == nil && !closes && d != nil:
			t.Errorf("%q: nginx refuses it, here it is %q\n%s", text, d.name(), out)
		case unknown:
			agreed++
		}
	}
	if agreed < 50 {
		t.Errorf("only %d texts had a first word", agreed)
	}
}
