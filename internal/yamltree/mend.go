package yamltree

import (
	"regexp"
	"strings"
	"unicode/utf8"

	"hakaru/internal/mistake"
)

// shift says that from a column of a line on, text was moved right.
type shift struct{ line, column, by int }

type shiftList []shift

// original returns the place in the person's file of a place in the mended one.
func (l shiftList) original(line, column int) mistake.Place {
	moved := 0
	for _, s := range l {
		if s.line == line && column > s.column {
			moved = max(moved, s.by)
		}
	}
	return mistake.Place{Line: line, Column: max(column-moved, 1)}
}

// braces are a placeholder of an experiment, which YAML takes for a map.
var braces = regexp.MustCompile(`\{[A-Za-z_][A-Za-z0-9_.-]*\}`)

// mend notes and mends tabs in indentation and placeholders without quotes.
// Block texts (|, >) are left alone.
func mend(s *mistake.Source, lines []string) shiftList {
	var shifts shiftList
	block := -1 // indentation of the line that began a block text
	for i, line := range lines {
		indent := len(line) - len(strings.TrimLeft(line, " \t"))
		blank := strings.TrimSpace(line) == ""
		if block >= 0 && (blank || indent > block) {
			continue
		}
		block = -1
		if blank || strings.TrimSpace(line)[0] == '#' {
			continue
		}
		if tab := strings.IndexByte(line[:indent], '\t'); tab >= 0 {
			s.Mistake(mistake.Place{Line: i + 1, Column: tab + 1}, "tab", "a tab cannot indent YAML", "use spaces")
			// Two columns a tab; the column of what follows is shifted by one each.
			tabs := strings.Count(line[:indent], "\t")
			lines[i] = strings.ReplaceAll(line[:indent], "\t", "  ") + line[indent:]
			shifts = append(shifts, shift{i + 1, indent, tabs})
			line = lines[i]
		}
		trimmed := strings.TrimRight(line, " ")
		if strings.HasSuffix(trimmed, "|") || strings.HasSuffix(trimmed, ">") || strings.HasSuffix(trimmed, "|-") || strings.HasSuffix(trimmed, ">-") {
			block = indent
		}
		lines[i] = quoteBraces(s, i+1, line, &shifts)
	}
	return shifts
}

// quoteBraces puts quotes around the values of one line that begin with {name},
// and around those within a map or list in braces that hold one.
func quoteBraces(s *mistake.Source, number int, line string, shifts *shiftList) string {
	base := 0
	for _, sh := range *shifts {
		if sh.line == number {
			base = max(base, sh.by)
		}
	}
	for from := 0; from < len(line); {
		match := braces.FindStringIndex(line[from:])
		if match == nil {
			break
		}
		open := from + match[0]
		from += match[1]
		if insideQuotes(line, open) || commentBefore(line, open) {
			continue
		}
		start, flow := valueStart(line, open)
		if start < open && !flow {
			continue // in the middle of a plain value, where braces are plain
		}
		end := from
		for end < len(line) {
			c := line[end]
			if flow && (c == ',' || c == '}' || c == ']') || c == '"' || c == '\'' || c == '#' && line[end-1] == ' ' {
				break
			}
			if next := braces.FindStringIndex(line[end:]); next != nil && next[0] == 0 { // {a}{b}
				end += next[1]
				continue
			}
			end++
		}
		value := strings.TrimRight(line[start:end], " ")
		if strings.HasSuffix(value, ":") || strings.Contains(value, ": ") || end < len(line) && line[end] == ':' {
			continue // a key, not a value
		}
		column := utf8.RuneCountInString(line[:start]) + 1
		why := " begins with a brace and has no quotes: YAML takes it for a map"
		if start < open {
			why = " holds a brace within { } or [ ] and has no quotes: YAML ends the value there"
		}
		s.Mistake(mistake.Place{Line: number, Column: max(column-base, 1)}, "needs-quotes", value+why, "write \""+value+"\"")
		line = line[:start] + `"` + value + `"` + line[start+len(value):]
		base++
		*shifts = append(*shifts, shift{number, column, base})
		base++
		*shifts = append(*shifts, shift{number, column + utf8.RuneCountInString(value) + 1, base})
		from = start + len(value) + 2
	}
	return line
}

// valueStart returns where the value begins in which a brace stands, and whether
// that is within a map or list in braces or brackets that began on the line.
func valueStart(line string, open int) (start int, flow bool) {
	start = len(line) - len(strings.TrimLeft(line, " "))
	depth := 0
	for i := start; i < open; i++ {
		if insideQuotes(line, i) {
			continue
		}
		switch c := line[i]; {
		case c == '{' || c == '[':
			if skip := braces.FindStringIndex(line[i:]); c == '{' && skip != nil && skip[0] == 0 && i+skip[1] <= open {
				i += skip[1] - 1 // a placeholder before this one
				continue
			}
			if i > start && strings.TrimSpace(line[start:i]) != "" {
				continue // in the middle of a plain value
			}
			depth++
			start = i + 1
		case depth > 0 && (c == '}' || c == ']'):
			depth--
			start = i + 1
		case depth > 0 && c == ',', c == ':' && line[i+1] == ' ', c == '-' && strings.TrimSpace(line[:i]) == "" && line[i+1] == ' ':
			start = i + 1
		}
	}
	for start < open && line[start] == ' ' {
		start++
	}
	return start, depth > 0
}

func insideQuotes(line string, at int) bool {
	var quote byte
	for i := 0; i < at; i++ {
		switch c := line[i]; {
		case quote == '"' && c == '\\':
			i++
		case quote != 0 && c == quote:
			quote = 0
		case quote == 0 && (c == '"' || c == '\'') && (i == 0 || strings.IndexByte(" \t[{,:", line[i-1]) >= 0):
			quote = c
		}
	}
	return quote != 0
}

func commentBefore(line string, at int) bool {
	i := strings.Index(line, " #")
	return i >= 0 && i < at && !insideQuotes(line, i)
}
