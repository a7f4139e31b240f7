package layout

import (
	"bytes"
	"strings"
	"testing"

	"charm.land/lipgloss/v2"
	"github.com/google/go-cmp/cmp"
)

// every has one of each part. It is made anew for each rendering: a rendering
// makes the texts safe in place.
func every() Document {
	var d Document
	d.Add("", &Paragraph{Text: "One | two.", Tone: Strong})
	d.Add("Nothing in it")
	d.Add("Seen",
		Bullets{{Text: "the first of two", Tone: Good}, {Text: "password = abc"}},
		Facts{{"CPU", "2"}, {"db-password", "abc"}},
		&Table{Title: "rates", Head: []string{"variant", "1/s"}, Right: []bool{false, true}, Rows: [][]Cell{{{Text: "base"}, {Text: Whole("1 200"), Tone: Bad}}}},
		&Block{Language: "diff", Text: "+a\n-```\n"})
	return d
}

func TestText(t *testing.T) {
	want := `One | two.

Seen
  - the first of two
  - password = ***
  CPU          2
  db-password  ***

  rates
  variant    1/s
  base     1 200
  +a
  -` + "```" + `
`
	var b bytes.Buffer
	if err := Text(&b, every(), Style{}); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(want, b.String()); d != "" {
		t.Error(d)
	}
}

func TestMarkdown(t *testing.T) {
	want := strings.Join([]string{
		`**One \| two.**`, "", "### Seen", "",
		"- the first of two", "- password = \\*\\*\\*", "",
		"- CPU: 2", `- db-password: \*\*\*`, "",
		"**rates**", "", "| variant | 1/s |", "| --- | ---: |", "| base | **1 200** |", "",
		"````diff", "+a", "-```", "````", "",
	}, "\n")
	var b bytes.Buffer
	if err := Markdown(&b, every()); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(want, b.String()); d != "" {
		t.Error(d)
	}
}

// TestSafe: what a terminal would act upon does not reach it, in whatever part
// it stands, and hides no secret.
func TestSafe(t *testing.T) {
	const hostile = "pass\x1b[31mword=GEHEIM\r\n\x1b]0;owned\x07 \u202e \xff"
	var d Document
	d.Add(hostile, &Paragraph{Text: hostile}, Bullets{{Text: hostile}}, Facts{{"name", hostile}, {hostile, "value"}}, &Block{Text: hostile},
		&Table{Title: hostile, Head: []string{"h"}, Right: []bool{false}, Rows: [][]Cell{{{Text: hostile}}}})
	for name, write := range map[string]func(*bytes.Buffer) error{
		"text":     func(b *bytes.Buffer) error { return Text(b, d, Style{}) },
		"markdown": func(b *bytes.Buffer) error { return Markdown(b, d) },
	} {
		var b bytes.Buffer
		if err := write(&b); err != nil {
			t.Fatal(err)
		}
		if got := b.String(); strings.ContainsAny(got, "\x1b\x07\r\u202e") || strings.Contains(got, "GEHEIM") || !strings.Contains(got, "owned") {
			t.Errorf("%s: %q", name, got)
		}
	}
}

// TestWidth: a table is narrowed until it fits, down to its longest words.
func TestWidth(t *testing.T) {
	for _, width := range []int{40, 60, 200} {
		var d Document
		d.Add("", &Table{Head: []string{"a", "b"}, Right: []bool{false, false}, Rows: [][]Cell{{{Text: strings.TrimSpace(strings.Repeat("xx ", 17))}, {Text: strings.TrimSpace(strings.Repeat("y ", 26))}}}})
		var b bytes.Buffer
		if err := Text(&b, d, Style{Width: width}); err != nil {
			t.Fatal(err)
		}
		widest := 0
		for l := range strings.SplitSeq(b.String(), "\n") {
			widest = max(widest, lipgloss.Width(l))
		}
		if widest > width {
			t.Errorf("at width %d: %d columns", width, widest)
		}
	}
}
