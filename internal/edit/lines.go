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

// long returns those of the names that a config file can hold: not the short
// flags.
func long(names []string) []string {
	var out []string
	for _, name := range names {
		if !strings.HasPrefix(name, "-") {
			out = append(out, name)
		}
	}
	return out
}
