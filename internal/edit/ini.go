package edit

import (
	"slices"
	"strings"
)

const blanks = " \t\r"

// iniLine is one line of an ini file, as the program of the style has it.
type iniLine struct {
	section   string
	key       string // empty: a comment, a blank line, a section's header
	value     string
	separator string // the equals sign and the blanks around it; empty where there is none
	column    int    // of the key in the line, from 0
	guarded   bool   // it stands behind a condition or in a loop (uWSGI)
	draws     bool   // it draws in another file at this place (uWSGI)
}

// readINI reads each line. Comments stand on lines of their own: what stands
// behind a value belongs to it.
//
// uWSGI (core/ini.c): a header's last character is not looked at, so that
// "[uwsgi] # x" is another section; a byte order mark makes the first line no
// header.
func (f File) readINI(lines []string) []iniLine {
	read := make([]iniLine, len(lines))
	section, guarded := "", false
	for i, line := range lines {
		if i == 0 && f.Style == INI {
			line = strings.TrimPrefix(line, "\ufeff")
		}
		body, _ := cutEnding(line)
		text := strings.Trim(body, blanks)
		r := &read[i]
		switch {
		case text == "", text[0] == '#', text[0] == ';':
		case text[0] == '[' && f.Style == UWSGI:
			section = text[1:max(1, len(text)-1)]
		case text[0] == '[':
			section, _, _ = strings.Cut(text[1:], "]")
		default:
			key, value, equals := strings.Cut(text, "=")
			r.key = strings.TrimRight(key, blanks)
			r.value = strings.TrimLeft(value, blanks)
			r.column = strings.Index(lines[i], text)
			if equals {
				r.separator = text[len(r.key) : len(text)-len(r.value)]
				if r.value == "" { // the blanks at the line's end were trimmed away
					r.separator = strings.TrimLeft(lines[i], "\ufeff"+blanks)[len(r.key):]
					r.separator, _ = cutEnding(r.separator)
				}
			}
			if f.Style == UWSGI {
				switch {
				case opensGuard(r.key):
					guarded = true
				case closesGuard(r.key):
					guarded = false
				case drawsIn(r.key):
					r.draws = true
				}
				r.guarded = guarded || opensGuard(r.key) || closesGuard(r.key)
			}
		}
		r.section = section
	}
	return read
}

// opensGuard tells whether what follows this key of uWSGI counts under a
// condition only, or several times.
func opensGuard(key string) bool {
	return key == "if" || strings.HasPrefix(key, "if-") || key == "for" || strings.HasPrefix(key, "for-") || key == "else"
}

func closesGuard(key string) bool {
	return slices.Contains([]string{"end", "endif", "endfor", "end-if", "end-for"}, key)
}

// drawsIn tells whether uWSGI reads another file at the place of this key: what
// that file sets wins over what stands before.
func drawsIn(key string) bool {
	return slices.Contains([]string{"ini", "include", "inherit", "config", "xml", "yaml", "yml", "json"}, key)
}

func (f File) section() string {
	if len(f.Sections) == 0 {
		return ""
	}
	return f.Sections[0]
}

// putINI sets one key in the section. The first line that has the key takes the
// value in its place, every further one goes: of two, programs differ on which
// counts, and where all do (env of uWSGI) the setting is to be this one. A
// missing key is added after the last line of the section, a missing section at
// the end.
//
// Of uWSGI, a line that counts under a condition only, or that a file drawn in
// later may override, is no place for a value: then it is added as if missing.
func (f File) putINI(content string, names []string, value *string) string {
	lines, ending := linesOf(content), endingOf(content)
	read := f.readINI(lines)
	section := f.section()

	place, lastDraw := -1, -1
	separator, insert := " = ", -1
	if section == "" {
		insert = 0
	}
	for i, r := range read {
		if r.section != section {
			continue
		}
		if r.draws {
			lastDraw = i
		}
		if r.separator != "" && !slices.Contains(names, r.key) {
			separator = r.separator
		}
		if strings.TrimSpace(lines[i]) != "" && (!r.guarded || closesGuard(r.key)) {
			insert = i + 1
		}
	}
	for i, r := range read {
		if r.section == section && slices.Contains(names, r.key) && !r.guarded && i > lastDraw {
			place = i
			break
		}
	}

	var out []string
	add := func() {
		out = append(closed(out, ending), names[0]+separator+*value+ending)
	}
	for i, line := range lines {
		if i == insert && value != nil && place < 0 {
			add()
		}
		r := read[i]
		switch {
		case r.section == section && slices.Contains(names, r.key):
			if i != place || value == nil {
				continue
			}
			between := r.separator
			if between == "" {
				between = separator
			}
			_, end := cutEnding(line)
			line = line[:r.column] + names[0] + between + *value + end
		}
		out = append(out, line)
	}
	if value != nil && place < 0 {
		if insert < 0 {
			out = append(closed(out, ending), "["+section+"]"+ending)
		}
		if insert < 0 || insert >= len(lines) {
			add()
		}
	}
	return strings.Join(out, "")
}

// valueINI returns the last value of a key in the section. Of uWSGI, one behind
// a condition counts too: whether it holds is not known here.
func (f File) valueINI(content string, names []string) (string, bool) {
	value, found := "", false
	for _, r := range f.readINI(linesOf(content)) {
		if r.section == f.section() && slices.Contains(names, r.key) {
			value, found = r.value, true
		}
	}
	return value, found
}

func (f File) keysINI(content string) []Key {
	var keys []Key
	for i, r := range f.readINI(linesOf(content)) {
		if r.key != "" {
			keys = append(keys, Key{Name: r.key, Value: r.value, Section: r.section, Line: i + 1, Column: r.column + 1})
		}
	}
	return keys
}
