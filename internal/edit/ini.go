package edit

import (
	"slices"
	"strconv"
	"strings"

	"hakaru/internal/textedit"
)

const blanks = " \t\r"

// iniLine is one line of an ini file, as the program of the style has it.
type iniLine struct {
	section   string
	key       string // empty: a comment, a blank line, a section's header
	value     string
	column    int    // of the key in the line, from 0
	separator string // what stands between key and value; empty where there is no equals sign
	raw       int    // length of the value as written
	guarded   bool   // it counts under a condition, or several times (uWSGI)
	draws     bool   // another file is read at this place (uWSGI)
}

// readINI reads each line.
func (f File) readINI(lines []string) []iniLine {
	read := make([]iniLine, len(lines))
	section := ""
	if f.Style == INI {
		section = f.section() // what stands above the first header belongs to it
	}
	guarded := false
	for i, line := range lines {
		r := &read[i]
		body, _ := textedit.CutEnding(line)
		if i == 0 && f.Style == INI {
			body = strings.TrimPrefix(body, byteOrderMark)
		}
		text := strings.Trim(body, blanks)
		switch {
		case text == "", text[0] == '#', text[0] == ';':
		case text[0] == '[':
			section = f.header(text)
		default:
			r.column = strings.Index(line, text)
			key, after, equals := strings.Cut(text, "=")
			r.key = strings.TrimRight(key, blanks)
			if equals {
				// The blanks behind an equals sign that nothing follows are kept.
				after, _ = textedit.CutEnding(line[r.column+len(key)+1:])
				value := strings.TrimLeft(after, blanks)
				r.separator = text[len(r.key):len(key)+1] + after[:len(after)-len(value)]
				r.value, r.raw = f.iniValue(value)
			}
			if f.Style == UWSGI {
				r.guarded = guarded || opensGuard(r.key) || closesGuard(r.key)
				r.draws = drawsIn(r.key)
				guarded = opensGuard(r.key) || guarded && !closesGuard(r.key)
			}
		}
		r.section = section
	}
	return read
}

const byteOrderMark = "\ufeff"

// header returns the name of the section that a header begins. uWSGI cuts off
// the last character, whatever it is (core/ini.c), so that "[uwsgi] # x" begins
// another section.
func (f File) header(text string) string {
	if f.Style == UWSGI {
		return text[1:max(1, len(text)-1)]
	}
	name, _, _ := strings.Cut(text[1:], "]")
	return name
}

// iniValue returns the value that text, which ends with the line, holds, and the
// length of what was written for it.
func (f File) iniValue(text string) (value string, raw int) {
	value = strings.TrimRight(text, blanks)
	if f.Style == UWSGI {
		return value, len(value)
	}
	if quoted, err := strconv.QuotedPrefix(value); err == nil && quoted[0] == '"' {
		if unquoted, err := strconv.Unquote(quoted); err == nil {
			return unquoted, len(quoted)
		}
	}
	for i := range len(value) {
		if (value[i] == '#' || value[i] == ';') && (i == 0 || value[i-1] == ' ' || value[i-1] == '\t') {
			value = strings.TrimRight(value[:i], blanks)
			break
		}
	}
	return value, len(value)
}

// iniText returns a value as it is to be written.
func (f File) iniText(value string) string {
	if f.Style == INI {
		if _, raw := f.iniValue(value); raw != len(value) || strings.HasPrefix(value, `"`) || strings.TrimLeft(value, blanks) != value {
			return strconv.Quote(value)
		}
	}
	return strings.Trim(value, blanks) // uWSGI has no way to write blanks at the ends
}

func (f File) section() string {
	if len(f.Sections) == 0 {
		return ""
	}
	return f.Sections[0]
}

// putINI sets one key in the section. The first line that has the key takes the
// value in its place, every further one goes: programs differ on which of two
// counts, and where both do (env of uWSGI) the setting is to be this one. A
// missing key is added after the last line of the section, a missing section at
// the end.
//
// Of uWSGI, a line that counts under a condition only, or that a file drawn in
// behind it may override, is no place for a value: it goes, and the key is added
// as if it were missing.
func (f File) putINI(content string, names []string, value *string) string {
	lines, ending, section := textedit.Lines(content), textedit.Ending(content), f.section()
	read := f.readINI(lines)
	ours := func(r iniLine) bool { return r.section == section && slices.Contains(names, r.key) }

	separator := " = " // as the lines of the section have it
	at, lastDraw, headed := -1, -1, section == "" && f.Style == UWSGI
	for i, r := range read {
		if r.section != section {
			continue
		}
		if r.draws {
			lastDraw = i
		}
		if r.separator != "" && !ours(r) && strings.TrimSpace(lines[i]) != strings.TrimSpace(r.key+r.separator) {
			separator = r.separator
		}
		header := strings.HasPrefix(strings.TrimSpace(lines[i]), "[")
		headed = headed || header || r.key != ""
		if headed && strings.TrimSpace(lines[i]) != "" && (!r.guarded || closesGuard(r.key)) {
			at = i + 1
		}
	}
	if section == "" && at < 0 {
		at = 0
	}
	spot := slices.IndexFunc(read[lastDraw+1:], func(r iniLine) bool { return ours(r) && !r.guarded })
	if spot >= 0 {
		spot += lastDraw + 1
	}

	added := value != nil && spot < 0
	var out []string
	add := func() {
		if at < 0 {
			out = append(textedit.Closed(out, ending), "["+section+"]"+ending)
		}
		out = append(textedit.Closed(out, ending), names[0]+separator+f.iniText(*value)+ending)
		added = false
	}
	for i, line := range lines {
		if added && i == at {
			add()
		}
		r := read[i]
		switch {
		case !ours(r):
			out = append(out, line)
		case i == spot && value != nil:
			between := r.separator
			if between == "" {
				between = separator
			}
			behind := line[r.column+len(r.key)+len(r.separator)+r.raw:]
			out = append(out, line[:r.column]+names[0]+between+f.iniText(*value)+behind)
		}
	}
	if added {
		add()
	}
	return strings.Join(out, "")
}

// valueINI returns the last value of a key in the section. Of uWSGI, one behind
// a condition counts too: whether it holds is not known here.
func (f File) valueINI(content string, names []string) (value string, found bool) {
	for _, r := range f.readINI(textedit.Lines(content)) {
		if r.section == f.section() && slices.Contains(names, r.key) {
			value, found = r.value, true
		}
	}
	return value, found
}

func (f File) keysINI(content string) []Key {
	var keys []Key
	for i, r := range f.readINI(textedit.Lines(content)) {
		if r.key != "" {
			keys = append(keys, Key{Name: r.key, Value: r.value, Section: r.section, Line: i + 1, Column: r.column + 1})
		}
	}
	return keys
}
