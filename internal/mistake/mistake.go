// Package mistake notes what is wrong with a text that a person wrote: a file, or
// the flags that stand for one. Findings are gathered, each with its place, and
// become one error that prints them all, with the line, a caret and a hint.
//
// It decides nothing: what is a mistake, and what would have been right, is for
// those who read the text.
package mistake

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"hakaru"
)

// List is all that was found wrong with what a person wrote, in the order of its
// lines. It is an error.
type List []hakaru.Finding

// Error prints every mistake with its place, the line and a hint.
func (m List) Error() string {
	var b strings.Builder
	for i, f := range m {
		if i > 0 {
			b.WriteByte('\n')
		}
		b.WriteString(Describe(f))
	}
	return b.String()
}

// Describe prints one finding: "file:line:column: message", the line with a
// caret under the column, and the hint.
func Describe(f hakaru.Finding) string {
	var b strings.Builder
	if f.File != "" {
		b.WriteString(f.File)
		if f.Line > 0 {
			fmt.Fprintf(&b, ":%d:%d", f.Line, f.Column)
		}
		b.WriteString(": ")
	}
	b.WriteString(f.Message)
	if f.Line > 0 && f.Excerpt != "" {
		number := fmt.Sprintf("%5d", f.Line)
		fmt.Fprintf(&b, "\n%s | %s\n      | ", number, f.Excerpt)
		// The caret stands under the character that is meant, so tabs are kept
		// and a character of several bytes takes one place.
		before := f.Excerpt[:min(max(f.Column-1, 0), len(f.Excerpt))]
		for _, r := range before {
			if r == '\t' {
				b.WriteByte('\t')
			} else {
				b.WriteByte(' ')
			}
		}
		b.WriteByte('^')
	}
	if f.Fix != "" {
		b.WriteString("\n  hint: " + f.Fix)
	}
	return b.String()
}

// Place is where something was written: line and column in characters, from 1,
// or the flag that said it.
type Place struct {
	Line, Column int
	Flag         string // a flag's name where it was not in the file
}

// Source is the person's file, and what was found wrong with it so far.
type Source struct {
	file     string
	Lines    []string
	Mistakes List
	NotYet   []hakaru.Finding
}

// Lines splits a text at LF, CRLF and CR, the line breaks of YAML 1.2 (5.4).
func Lines(text string) []string {
	return strings.Split(strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(text), "\n")
}

// NewSource is a text by the name of its file; both are empty for flags.
func NewSource(file, text string) *Source {
	return &Source{file: file, Lines: Lines(text)}
}

func (s *Source) finding(at Place, code, message, fix string) hakaru.Finding {
	f := hakaru.Finding{File: s.file, Code: code, Severity: hakaru.Error, Message: message, Fix: fix}
	if at.Flag != "" { // a flag
		f.File = at.Flag
		return f
	}
	if at.Line > 0 && at.Line <= len(s.Lines) {
		f.Line, f.Excerpt = at.Line, s.Lines[at.Line-1]
		f.Column = byteColumn(f.Excerpt, at.Column)
	}
	return f
}

// MistakeIn notes a mistake in another file than the source's own; the column is
// in bytes.
func (s *Source) MistakeIn(file, text string, at Place, code, message, fix string) {
	f := In(file, text, at, code, message, fix)
	if !slices.Contains(s.Mistakes, f) {
		s.Mistakes = append(s.Mistakes, f)
	}
}

// In is a mistake in a text by the name of its file; the column is in bytes.
func In(file, text string, at Place, code, message, fix string) hakaru.Finding {
	f := hakaru.Finding{File: file, Code: code, Severity: hakaru.Error, Message: message, Fix: fix}
	if lines := Lines(text); at.Line > 0 && at.Line <= len(lines) {
		f.Line, f.Excerpt = at.Line, lines[at.Line-1]
		f.Column = min(max(at.Column, 1), len(f.Excerpt)+1)
	}
	return f
}

// Mistake notes a mistake. The same thing said of the same place is noted once.
func (s *Source) Mistake(at Place, code, message, fix string) {
	f := s.finding(at, code, message, fix)
	if !slices.Contains(s.Mistakes, f) {
		s.Mistakes = append(s.Mistakes, f)
	}
}

// Later notes a part that is understood and cannot be carried out.
func (s *Source) Later(at Place, what string) {
	f := s.finding(at, "not-yet", what, "")
	f.Severity = hakaru.Warn
	if !slices.Contains(s.NotYet, f) {
		s.NotYet = append(s.NotYet, f)
	}
}

// Sorted returns the mistakes in the order of the lines, those in other files
// after those in the source's own.
func (s *Source) Sorted() List {
	slices.SortStableFunc(s.Mistakes, func(a, b hakaru.Finding) int {
		if other := s.isOther(a) - s.isOther(b); other != 0 {
			return other
		}
		if c := strings.Compare(a.File, b.File); c != 0 && s.isOther(a) == 1 {
			return c
		}
		if a.Line != b.Line {
			return a.Line - b.Line
		}
		return a.Column - b.Column
	})
	return s.Mistakes
}

// isOther is 1 for a finding in a file that is not the source's own.
func (s *Source) isOther(f hakaru.Finding) int {
	if f.File != s.file && f.Line > 0 {
		return 1
	}
	return 0
}

// byteColumn turns a column in characters, as the YAML parser counts, into one
// in bytes.
func byteColumn(line string, column int) int {
	bytes := 0
	for n := 1; n < column && bytes < len(line); n++ {
		_, size := utf8.DecodeRuneInString(line[bytes:])
		bytes += size
	}
	return bytes + 1
}

// LineText returns a line by its number, "" where there is none.
func (s *Source) LineText(n int) string {
	if n > 0 && n <= len(s.Lines) {
		return s.Lines[n-1]
	}
	return ""
}
