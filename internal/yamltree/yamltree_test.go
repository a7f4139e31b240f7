package yamltree

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"hakaru/internal/mistake"
)

// outline writes a tree with the place of every key and value.
func outline(n *Node) string {
	at := fmt.Sprintf("@%d:%d", n.At.Line, n.At.Column)
	switch n.Kind {
	case Map:
		var parts []string
		for _, e := range n.Entries {
			parts = append(parts, fmt.Sprintf("%s@%d:%d=%s", e.Key, e.At.Line, e.At.Column, outline(e.Value)))
		}
		return "{" + strings.Join(parts, " ") + "}"
	case List:
		var parts []string
		for _, item := range n.Items {
			parts = append(parts, outline(item))
		}
		return "[" + strings.Join(parts, " ") + "]"
	case Scalar:
		return fmt.Sprintf("%q%s", n.Text, at)
	}
	return n.Kind.String() + at
}

func TestRead(t *testing.T) {
	for name, c := range map[string]struct {
		text, want string
		mistakes   []string // "line:column code"
		partial    bool
	}{
		"text stays as it is written": {text: "a: 0644\nb: 1e3\nc: yes\nd: \"x\"\n", want: `{a@1:1="0644"@1:4 b@2:1="1e3"@2:4 c@3:1="yes"@3:4 d@4:1="x"@4:4}`},
		"nothing":                     {text: "a:\nb: null\nc: ~\n", want: "{a@1:1=nothing@1:1 b@2:1=nothing@2:1 c@3:1=nothing@3:1}"},
		"lists and maps":              {text: "a: [1, x]\nb: {c: 2}\nd:\n  - e\n", want: `{a@1:1=["1"@1:5 "x"@1:8] b@2:1={c@2:5="2"@2:8} d@3:1=["e"@4:5]}`},
		"an empty file":               {text: "# only this\n", want: "nothing@0:0"},
		"aliases and merging":         {text: "a: &x {p: 1, q: 2}\nb: {<<: *x, q: 3}\nc: *x\n", want: `{a@1:1={p@1:8="1"@1:11 q@1:14="2"@1:17} b@2:1={p@1:8="1"@1:11 q@2:13="3"@2:16} c@3:1={p@1:8="1"@1:11 q@1:14="2"@1:17}}`},
		"a block text":                {text: "a: |\n  {x}\n  b: c\nd: 1\n", want: `{a@1:1="{x}\nb: c\n"@1:4 d@4:1="1"@4:4}`},
		"CRLF and a byte order mark":  {text: "\ufeffa: 1\r\nb: 2\r\n", want: `{a@1:1="1"@1:4 b@2:1="2"@2:4}`},

		"CR alone": {text: "a: 1\rb: 2", want: `{a@1:1="1"@1:4 b@2:1="2"@2:4}`},

		"a placeholder without quotes": {text: "a: {x}/y\nb: 1\n", want: `{a@1:1="{x}/y"@1:4 b@2:1="1"@2:4}`, mistakes: []string{"1:4 needs-quotes"}},
		"two of them in braces":        {text: "l: {p: {x}, q: a{y}}\n", want: `{l@1:1={p@1:5="{x}"@1:8 q@1:13="a{y}"@1:16}}`, mistakes: []string{"1:8 needs-quotes", "1:16 needs-quotes"}},
		"plain braces":                 {text: "a: x {y} z\n# {c}\nb: \"{d}\"\n", want: `{a@1:1="x {y} z"@1:4 b@3:1="{d}"@3:4}`},
		"a tab":                        {text: "a:\n\tb: 1\nc: 2\n", want: `{a@1:1={b@2:2="1"@2:5} c@3:1="2"@3:4}`, mistakes: []string{"2:1 tab"}},
		"a key twice":                  {text: "a: 1\na: 2\n", want: `{a@1:1="1"@1:4}`, mistakes: []string{"2:1 duplicate"}},
		"an unknown alias":             {text: "a: *x\nb: 1\n", want: `{a@1:1=unread@1:4 b@2:1="1"@2:4}`, mistakes: []string{"1:4 unknown-alias"}},
		"the rest is read":             {text: "a: 1\nb: x: y\nc: 3\n", want: `{a@1:1="1"@1:4 c@3:1="3"@3:4}`, mistakes: []string{"2:4 syntax"}, partial: true},
		"two documents":                {text: "a: 1\n---\nb: 2\n", want: `{a@1:1="1"@1:4}`, mistakes: []string{"3:1 several-documents"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := mistake.NewSource("x", c.text)
			root, partial := Read(s, c.text)
			if root == nil || partial != c.partial {
				t.Fatalf("root %v, partial %v", root, partial)
			}
			if diff := cmp.Diff(c.want, outline(root)); diff != "" {
				t.Errorf("tree:\n%s", diff)
			}
			var got []string
			for _, m := range s.Sorted() {
				got = append(got, fmt.Sprintf("%d:%d %s", m.Line, m.Column, m.Code))
			}
			if diff := cmp.Diff(c.mistakes, got); diff != "" {
				t.Errorf("mistakes:\n%s", diff)
			}
		})
	}
}

func TestReadRefuses(t *testing.T) {
	bomb := "a: &a [x, x, x, x, x, x, x, x, x]\n"
	for c := 'b'; c < 'i'; c++ {
		bomb += fmt.Sprintf("%c: &%c [*%c, *%c, *%c, *%c, *%c, *%c, *%c, *%c]\n", c, c, c-1, c-1, c-1, c-1, c-1, c-1, c-1, c-1)
	}
	for name, text := range map[string]string{
		"an alias bomb": bomb, "an alias of itself": "a: &a [*a]\n", "no text": "a: \xff\n", "a zero": "a: \x00\n",
		"too long": strings.Repeat("# more\n", maxBytes/7+1), "a bracket that stays open": "a: [1\nb: 2\n",
	} {
		s := mistake.NewSource("x", text)
		if Read(s, text); len(s.Mistakes) == 0 {
			t.Errorf("%s is read without a mistake", name)
		}
	}
}

// FuzzRead: whatever is read has places within the text, and the same text gives
// the same tree.
func FuzzRead(f *testing.F) {
	for _, text := range []string{"a: {x}/y\n", "l: {p: {x}, q: a{y}}\n", "a:\n\tb: 1\n", "a: &x {p: 1}\nb: {<<: *x}\n", "a: x: y\nb: [\n", "- {a}: {b}\n", "\ufeffä: 'ö' # {c}\r\n"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		s := mistake.NewSource("x", text)
		root, _ := Read(s, text)
		if root == nil {
			if len(s.Mistakes) == 0 {
				t.Fatal("nothing read, and no mistake")
			}
			return
		}
		var walk func(n *Node)
		walk = func(n *Node) {
			if n.At.Line > len(s.Lines)+1 || n.At.Column < 0 {
				t.Errorf("place %+v in %d lines", n.At, len(s.Lines))
			}
			for _, e := range n.Entries {
				walk(e.Value)
			}
			for _, item := range n.Items {
				walk(item)
			}
		}
		walk(root)
		if again, _ := Read(mistake.NewSource("x", text), text); outline(again) != outline(root) {
			t.Errorf("read twice: %s and %s", outline(root), outline(again))
		}
	})
}
