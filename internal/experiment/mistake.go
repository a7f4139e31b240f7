package experiment

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"hakaru"
)

// Mistakes are all the mistakes in a person's file, in the order of its lines.
// It is the error that Parse and FromFlags return for what a person wrote.
type Mistakes []hakaru.Finding

// Error prints every mistake with its place, the line and a hint.
func (m Mistakes) Error() string {
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

// source is the person's file, and what was found wrong with it so far.
type source struct {
	file     string
	lines    []string
	mistakes Mistakes
	notYet   []hakaru.Finding
}

func newSource(file, text string) *source {
	return &source{file: file, lines: strings.Split(strings.ReplaceAll(text, "\r\n", "\n"), "\n")}
}

func (s *source) finding(at place, code, message, fix string) hakaru.Finding {
	f := hakaru.Finding{File: s.file, Code: code, Severity: hakaru.Error, Message: message, Fix: fix}
	if at.file != "" { // a flag
		f.File = at.file
		return f
	}
	if at.line > 0 && at.line <= len(s.lines) {
		f.Line, f.Excerpt = at.line, s.lines[at.line-1]
		f.Column = byteColumn(f.Excerpt, at.column)
	}
	return f
}

// mistake notes a mistake. The same thing said of the same place is noted once.
func (s *source) mistake(at place, code, message, fix string) {
	f := s.finding(at, code, message, fix)
	if !slices.Contains(s.mistakes, f) {
		s.mistakes = append(s.mistakes, f)
	}
}

// later notes a part that is understood and cannot be carried out.
func (s *source) later(at place, what string) {
	f := s.finding(at, "not-yet", what, "")
	f.Severity = hakaru.Warn
	if !slices.Contains(s.notYet, f) {
		s.notYet = append(s.notYet, f)
	}
}

func (s *source) sorted() Mistakes {
	slices.SortStableFunc(s.mistakes, func(a, b hakaru.Finding) int {
		if a.Line != b.Line {
			return a.Line - b.Line
		}
		return a.Column - b.Column
	})
	return s.mistakes
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

// near returns the candidate that is most like what was written, or "". It is
// like when at most a third of its letters are wrong; two swapped neighbours
// count as one wrong letter (optimal string alignment distance, Damerau 1964).
func near(written string, candidates []string) string {
	best, bestDistance := "", 1<<30
	for _, c := range candidates {
		if c == written || len(c) > 64 || len(written) > 64 {
			continue
		}
		d := distance(normal(written), normal(c))
		if shorter := min(len(c), len(written)); d < bestDistance && d <= max(1, shorter/3) && d < shorter {
			best, bestDistance = c, d
		}
	}
	return best
}

// normal makes spellings alike that people mix up.
func normal(name string) string {
	return strings.ReplaceAll(strings.ToLower(name), "_", "-")
}

func distance(a, b string) int {
	before, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			row[j] = min(last[j]+1, row[j-1]+1, last[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, last, row = last, row, before
	}
	return last[len(b)]
}

// suggest is a hint for a name that is not known.
func suggest(written string, candidates []string) string {
	if c := near(written, candidates); c != "" {
		return fmt.Sprintf("did you mean %q?", c)
	}
	if len(candidates) == 0 {
		return ""
	}
	return "known are " + enumerate(candidates)
}

func enumerate(names []string) string {
	if len(names) > 30 {
		return strings.Join(names[:30], ", ") + ", …"
	}
	return strings.Join(names, ", ")
}
