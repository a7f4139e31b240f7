package mistake_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"hakaru"
	"hakaru/internal/mistake"
)

// The caret stands under the character that is meant, whatever comes before it.
func TestDescribe(t *testing.T) {
	s := mistake.NewSource("a.yaml", "x: 1\r\n\tü: 2\nlast")
	for _, c := range []struct {
		at        mistake.Place
		text, fix string
		want      string
	}{
		{mistake.Place{Line: 1, Column: 4}, "plain", "", "a.yaml:1:4: plain\n    1 | x: 1\n      |    ^"},
		{mistake.Place{Line: 2, Column: 3}, "after a tab and two bytes", "a fix", "a.yaml:2:4: after a tab and two bytes\n    2 | \tü: 2\n      | \t ^\n  hint: a fix"},
		{mistake.Place{Line: 3, Column: 99}, "past the end", "", "a.yaml:3:5: past the end\n    3 | last\n      |     ^"},
		{mistake.Place{Line: 9, Column: 1}, "no such line", "", "a.yaml: no such line"},
		{mistake.Place{}, "of the whole", "", "a.yaml: of the whole"},
		{mistake.Place{Flag: "--set x"}, "of a flag", "", "--set x: of a flag"},
	} {
		s.Mistakes = nil
		s.Mistake(c.at, "code", c.text, c.fix)
		if diff := cmp.Diff(c.want, s.Mistakes.Error()); diff != "" {
			t.Errorf("%+v:\n%s", c.at, diff)
		}
	}
}

// Mistakes come in the order of the lines, each once; what is only not built yet
// is none.
func TestSorted(t *testing.T) {
	s := mistake.NewSource("a", "one\ntwo\nthree")
	say := func(line, column int, text string) {
		s.Mistake(mistake.Place{Line: line, Column: column}, "code", text, "")
	}
	say(3, 1, "c")
	say(1, 2, "b")
	say(1, 1, "a")
	say(3, 1, "c")
	say(3, 1, "d")
	s.Later(mistake.Place{Line: 2, Column: 1}, "later")
	s.Later(mistake.Place{Line: 2, Column: 1}, "later")
	var got []string
	for _, m := range s.Sorted() {
		got = append(got, m.Message)
	}
	if diff := cmp.Diff([]string{"a", "b", "c", "d"}, got); diff != "" {
		t.Error(diff)
	}
	if len(s.NotYet) != 1 || s.NotYet[0].Severity != hakaru.Warn || s.NotYet[0].Line != 2 {
		t.Errorf("not yet: %+v", s.NotYet)
	}
}

// A mistake in another file has its place and line there, and comes after those
// in the source's own.
func TestMistakeIn(t *testing.T) {
	s := mistake.NewSource("a.yaml", "one\ntwo")
	s.MistakeIn("b.ini", "[x]\r\n\tkey = 1\r\n", mistake.Place{Line: 2, Column: 2}, "code", "unknown key", "did you mean that?")
	s.MistakeIn("b.ini", "[x]", mistake.Place{Line: 1, Column: 99}, "code", "past the end", "")
	s.MistakeIn("b.ini", "[x]", mistake.Place{Line: 1, Column: 99}, "code", "past the end", "")
	s.MistakeIn("a.ini", "", mistake.Place{Line: 1, Column: 1}, "code", "empty", "")
	s.Mistake(mistake.Place{Line: 2, Column: 1}, "code", "own", "")
	want := "a.yaml:2:1: own\n    2 | two\n      | ^\n" +
		"a.ini:1:1: empty\n" +
		"b.ini:1:4: past the end\n    1 | [x]\n      |    ^\n" +
		"b.ini:2:2: unknown key\n    2 | \tkey = 1\n      | \t^\n  hint: did you mean that?"
	if diff := cmp.Diff(want, s.Sorted().Error()); diff != "" {
		t.Error(diff)
	}
}
