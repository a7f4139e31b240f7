package edit

import "strings"

// linesOf cuts content after every newline. Joined they are content again.
func linesOf(content string) []string {
	lines := strings.SplitAfter(content, "\n")
	if lines[len(lines)-1] == "" {
		lines = lines[:len(lines)-1]
	}
	return lines
}

// endingOf returns how the lines of content end.
func endingOf(content string) string {
	if strings.Contains(content, "\r\n") {
		return "\r\n"
	}
	return "\n"
}

// cutEnding parts a line from its ending.
func cutEnding(line string) (body, ending string) {
	body = strings.TrimRight(line, "\r\n")
	return body, line[len(body):]
}

// closed returns lines with the last one ended, so that more can follow.
func closed(lines []string, ending string) []string {
	if n := len(lines); n > 0 && !strings.HasSuffix(lines[n-1], "\n") {
		lines[n-1] += ending
	}
	return lines
}

// span is a piece of a text, by byte offsets.
type span struct{ start, end int }

// place returns line and column of an offset, both from 1, the column in bytes.
func place(content string, offset int) (line, column int) {
	before := content[:offset]
	return 1 + strings.Count(before, "\n"), offset - strings.LastIndexByte(before, '\n')
}

// change is a piece of a text and what is to stand there instead.
type change struct {
	span
	text string
}

// apply makes changes that are in order and do not overlap.
func apply(content string, changes []change) string {
	var b strings.Builder
	at := 0
	for _, c := range changes {
		b.WriteString(content[at:c.start])
		b.WriteString(c.text)
		at = c.end
	}
	b.WriteString(content[at:])
	return b.String()
}
