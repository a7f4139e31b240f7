package textedit_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"hakaru/internal/textedit"
)

func TestLines(t *testing.T) {
	for content, want := range map[string][]string{
		"": {}, "a": {"a"}, "a\n": {"a\n"}, "a\r\n\nb": {"a\r\n", "\n", "b"},
	} {
		got := textedit.Lines(content)
		if diff := cmp.Diff(want, got); diff != "" || strings.Join(got, "") != content {
			t.Errorf("%q: %s", content, diff)
		}
	}
	if got := strings.Join(textedit.Closed(textedit.Lines("a\nb"), "\r\n"), ""); got != "a\nb\r\n" {
		t.Errorf("closed: %q", got)
	}
}

func TestApply(t *testing.T) {
	const content = "one\ntwo three\n"
	got := textedit.Apply(content, []textedit.Change{
		textedit.Replace(0, 3, "1"), textedit.Replace(4, 4, ">"), {Span: textedit.Piece(8, 13), Text: "3"},
	})
	if got != "1\n>two 3\n" {
		t.Errorf("%q", got)
	}
	if line, column := textedit.Place(content, 8); line != 2 || column != 5 {
		t.Errorf("three stands at %d:%d", line, column)
	}
}
