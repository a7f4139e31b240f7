package edit

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"hakaru/internal/textedit"
)

// cnfLine is one line of an option file.
type cnfLine struct {
	group   string
	name    string // empty: no setting
	value   string
	bare    bool          // no equals sign: switched on
	column  int           // of the name in the line, from 0
	body    textedit.Span // of the setting in the line, without the comment behind it
	between string
	header  bool
	include *Include
}

// readMyCnf reads lines as the server does (mysys/my_default.c). What it would
// refuse is an error; the lines before it are returned all the same.
func readMyCnf(lines []string) ([]cnfLine, error) {
	read := make([]cnfLine, 0, len(lines))
	group := ""
	grouped := false
	for i, line := range lines {
		r := cnfLine{}
		text := cnfTrimLeft(line)
		r.column = len(line) - len(text)
		switch {
		case text == "", text[0] == '#', text[0] == ';':
		case text[0] == '!':
			r.include = cnfInclude(text[1:], i+1)
		case text[0] == '[':
			name, _, closes := strings.Cut(text[1:], "]")
			if !closes {
				return read, fmt.Errorf("line %d: the name of the group does not end", i+1)
			}
			group, grouped = cnfTrimRight(name), true
			r.header = true
		case !grouped && strings.HasPrefix(text, byteOrderMark):
			return read, fmt.Errorf("line %d: a byte order mark stands before the first group; the server refuses such a file", i+1)
		case !grouped:
			return read, fmt.Errorf("line %d: a setting stands before the first group; the server refuses such a file", i+1)
		default:
			text = text[:cnfComment(text)]
			name, after, equals := strings.Cut(text, "=")
			r.name = cnfTrimRight(name)
			r.bare = !equals
			raw := cnfTrim(after)
			r.value = cnfUnquote(raw)
			if equals {
				after, _ = textedit.CutEnding(after)
				lead := len(after) - len(cnfTrimLeft(after))
				if raw == "" {
					lead = min(lead, 1) // the others stand before the comment
				}
				r.between = text[len(r.name):len(name)+1] + after[:lead]
			}
			r.body = textedit.Piece(r.column, r.column+len(r.name)+len(r.between)+len(raw))
		}
		r.group = group
		read = append(read, r)
	}
	return read, nil
}

// isCnfSpace is white space in Latin-1, which the server takes option files for,
// whatever they are written in.
func isCnfSpace(c byte) bool { return c >= '\t' && c <= '\r' || c == ' ' || c == 0xa0 }

func cnfTrimLeft(text string) string {
	for text != "" && isCnfSpace(text[0]) {
		text = text[1:]
	}
	return text
}

func cnfTrimRight(text string) string {
	for text != "" && isCnfSpace(text[len(text)-1]) {
		text = text[:len(text)-1]
	}
	return text
}

func cnfTrim(text string) string { return cnfTrimLeft(cnfTrimRight(text)) }

// cnfComment returns where the comment behind a setting begins.
func cnfComment(text string) int {
	quote, escaped := byte(0), false
	for i := range len(text) {
		c := text[i]
		switch {
		case (c == '\'' || c == '"') && !escaped && quote == 0:
			quote = c
		case c == quote && !escaped:
			quote = 0
		case c == '#' && quote == 0:
			return i
		}
		escaped = quote != 0 && c == '\\' && !escaped
	}
	return len(text)
}

// cnfUnquote takes the quotes off that are the same at both ends, and reads the
// escapes, which count without quotes too.
func cnfUnquote(raw string) string {
	if n := len(raw); n > 1 && (raw[0] == '"' || raw[0] == '\'') && raw[n-1] == raw[0] {
		raw = raw[1 : n-1]
	}
	var b strings.Builder
	for i := 0; i < len(raw); i++ {
		if raw[i] != '\\' || i == len(raw)-1 {
			b.WriteByte(raw[i])
			continue
		}
		i++
		switch raw[i] {
		case 'n':
			b.WriteByte('\n')
		case 't':
			b.WriteByte('\t')
		case 'r':
			b.WriteByte('\r')
		case 'b':
			b.WriteByte('\b')
		case 's':
			b.WriteByte(' ')
		case '"', '\'', '\\':
			b.WriteByte(raw[i])
		default:
			b.WriteByte('\\')
			b.WriteByte(raw[i])
		}
	}
	return b.String()
}

// cnfText returns a value as it is to be written, in quotes where it would read
// otherwise without them. A byte above 0x7f at an end may be a Latin-1 blank.
func cnfText(value string) string {
	text := strings.ReplaceAll(value, `\`, `\\`)
	if value == "" {
		return ""
	}
	first, last := value[0], value[len(value)-1]
	if !strings.ContainsAny(value, `#'"`) && first > ' ' && first < 0x7f && last > ' ' && last < 0x7f {
		return text
	}
	return `"` + strings.ReplaceAll(text, `"`, `\"`) + `"`
}

// cnfInclude reads what follows the exclamation mark; what is not known is no
// include, as to the server.
func cnfInclude(text string, line int) *Include {
	text = cnfTrim(text)
	for _, word := range []string{"includedir", "include"} {
		if path, found := strings.CutPrefix(text, word); found && path != "" && isCnfSpace(path[0]) {
			return &Include{Path: cnfTrimLeft(path), Dir: word == "includedir", Line: line}
		}
	}
	return nil
}

// cnfName returns a name in one spelling, without the prefix that only says that
// it may be unknown.
func cnfName(name string) string {
	return strings.TrimPrefix(strings.ReplaceAll(name, "_", "-"), "loose-")
}

// cnfSets tells whether a line or flag that is written as name and value sets a
// setting of one of these names, and to what. --skip-x and --disable-x are x
// switched off, --enable-x is x switched on, unless their value is 0
// (mysys/my_getopt.c). Names that are only begun, which the server takes for the
// only one that begins so, are not known here.
func cnfSets(name, value string, names []string) (string, bool) {
	name = cnfName(name)
	is := func(name string) bool {
		return slices.ContainsFunc(names, func(n string) bool { return cnfName(n) == name })
	}
	if is(name) {
		return value, true
	}
	for prefix, on := range map[string]bool{"skip-": false, "disable-": false, "enable-": true} {
		if rest, found := strings.CutPrefix(name, prefix); found && is(rest) {
			if on != (value == "0") {
				return "1", true
			}
			return "0", true
		}
	}
	return "", false
}

// inGroups tells whether the program reads a group; case does not count.
func (f File) inGroups(group string) bool {
	return slices.ContainsFunc(f.Sections, func(s string) bool { return strings.EqualFold(s, group) })
}

// putMyCnf sets one setting of the server. The last line that sets it counts,
// whatever its group. So it takes the value in its place, unless a file that is
// drawn in behind it might set it again: then the setting is added to a group of
// its own at the end, which wins over all that is drawn in. Earlier lines in the
// server's groups go; other groups (client) are left alone.
func (f File) putMyCnf(content string, names []string, value *string) (string, error) {
	lines, ending := textedit.Lines(content), textedit.Ending(content)
	read, err := readMyCnf(lines)
	if err != nil {
		return "", err
	}
	if len(f.Sections) == 0 {
		return "", errors.New("no group is known that the server reads")
	}
	spot, lastInclude, lastHeader := -1, -1, -1
	sets := make([]bool, len(read))
	for i, r := range read {
		switch {
		case r.include != nil:
			lastInclude = i
		case r.header:
			lastHeader = i
		case r.name != "" && f.inGroups(r.group):
			if _, sets[i] = cnfSets(r.name, r.value, names); sets[i] {
				spot = i
			}
		}
	}
	if spot < lastInclude {
		spot = -1
	}
	var out []string
	end := 0 // behind the last line of the last group
	for i, line := range lines {
		r := read[i]
		switch {
		case !sets[i]:
			out = append(out, line)
		case i == spot && value != nil:
			name, between := names[0], r.between
			if cnfName(r.name) == cnfName(name) {
				name = r.name // as the person spells it
			}
			if r.bare {
				between = " = "
			}
			text, behind := cnfText(*value), line[r.body.End:]
			if text != "" && strings.HasPrefix(behind, "#") {
				behind = " " + behind
			}
			out = append(out, line[:r.body.Start]+name+between+text+behind)
		default:
			continue
		}
		if strings.TrimSpace(line) != "" {
			end = len(out)
		}
	}
	if value == nil || spot >= 0 {
		return strings.Join(out, ""), nil
	}
	added := names[0] + " = " + cnfText(*value) + ending
	if lastHeader >= 0 && lastHeader > lastInclude && strings.EqualFold(read[lastHeader].group, f.Sections[0]) {
		return strings.Join(slices.Insert(textedit.Closed(out, ending), end, added), ""), nil
	}
	return strings.Join(append(textedit.Closed(out, ending), "["+f.Sections[0]+"]"+ending, added), ""), nil
}

func (f File) valueMyCnf(content string, names []string) (value string, found bool) {
	read, _ := readMyCnf(textedit.Lines(content)) // what the server refuses has no value behind the mistake
	for _, r := range read {
		if r.name == "" || !f.inGroups(r.group) {
			continue
		}
		if v, sets := cnfSets(r.name, r.value, names); sets {
			value, found = v, true
		}
	}
	return value, found
}

func keysMyCnf(content string) []Key {
	var keys []Key
	read, _ := readMyCnf(textedit.Lines(content)) // the keys before the mistake, as Keys promises
	for i, r := range read {
		if r.name != "" {
			keys = append(keys, Key{Name: r.name, Value: r.value, Section: r.group, Line: i + 1, Column: r.column + 1})
		}
	}
	return keys
}

func includesMyCnf(content string) []Include {
	var all []Include
	read, _ := readMyCnf(textedit.Lines(content)) // as keysMyCnf
	for _, r := range read {
		if r.include != nil {
			all = append(all, *r.include)
		}
	}
	return all
}
