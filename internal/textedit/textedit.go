// Package textedit has what editors of config files share: lines with their endings,
// pieces of a text by their offsets, and changes of several pieces at once. It knows
// no format.
package textedit

import "strings"

// Lines cuts content after every newline. Joined they are content again.
func Lines(content string) []string {
	lines := strings.SplitAfter(content, "\n")
	if lines[len(lines)-1] == "" {
		lines = lines[:len(lines)-1]
	}
	return lines
}

// Ending returns how the lines of content end.
func Ending(content string) string {
	if strings.Contains(content, "\r\n") {
		return "\r\n"
	}
	return "\n"
}

// CutEnding parts a line from its ending.
func CutEnding(line string) (body, ending string) {
	body = strings.TrimRight(line, "\r\n")
	return body, line[len(body):]
}

// Closed returns lines with the last one ended, so that more can follow.
func Closed(lines []string, ending string) []string {
	if n := len(lines); n > 0 && !strings.HasSuffix(lines[n-1], "\n") {
		lines[n-1] += ending
	}
	return lines
}

// Span is a piece of a text, by byte offsets.
type Span struct{ Start, End int }

// Piece is the span between two offsets.
func Piece(start, end int) Span { return Span{start, end} }

// Place returns line and column of an offset, both from 1, the column in bytes.
func Place(content string, offset int) (line, column int) {
	before := content[:offset]
	return 1 + strings.Count(before, "\n"), offset - strings.LastIndexByte(before, '\n')
}

// Change is a piece of a text and what is to stand there instead.
type Change struct {
	Span
	Text string
}

// Replace is the change of the piece between two offsets.
func Replace(start, end int, text string) Change { return Change{Span{start, end}, text} }

// Apply makes changes that are in order and do not overlap.
func Apply(content string, changes []Change) string {
	var b strings.Builder
	at := 0
	for _, c := range changes {
		b.WriteString(content[at:c.Start])
		b.WriteString(c.Text)
		at = c.End
	}
	b.WriteString(content[at:])
	return b.String()
}
