package edit

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"hakaru/internal/textedit"
)

// marker is the line above what Put adds.
const marker = "# Set by hakaru:"

// assignment is a statement that gives one name a value and does nothing else.
type assignment struct {
	pyStatement
	name  string
	value textedit.Span
}

// assigns reads a statement as an assignment to one name: "name = value" or
// "name: type = value".
func (s pyStatement) assigns(content string) (assignment, bool) {
	t := s.tokens
	if len(t) > 1 && s.text(content, len(t)-1) == ";" { // one at the end does nothing
		t = t[:len(t)-1]
	}
	if len(t) < 3 || t[0].kind != pyName {
		return assignment{}, false
	}
	equals, depth, lambdas := -1, 0, 0
	for i := 1; i < len(t); i++ {
		switch s.text(content, i) {
		case "(", "[", "{":
			depth++
		case ")", "]", "}":
			depth--
		case ";":
			return assignment{}, false
		case "lambda":
			lambdas++ // its arguments may have defaults, up to its colon
		case ":":
			lambdas = max(0, lambdas-1)
		case "=":
			if depth == 0 && lambdas == 0 {
				if equals >= 0 {
					return assignment{}, false // a = b = value
				}
				equals = i
			}
		}
	}
	if equals < 0 || equals == len(t)-1 || equals > 1 && s.text(content, 1) != ":" {
		return assignment{}, false
	}
	return assignment{s, s.text(content, 0), textedit.Piece(t[equals+1].Start, t[len(t)-1].End)}, true
}

func (s pyStatement) text(content string, i int) string {
	return content[s.tokens[i].Start:s.tokens[i].End]
}

// uses tells whether the statement names a variable: reads it, gives it a value
// under a condition, imports it. An attribute or an argument of that name is
// another thing.
func (s pyStatement) uses(content, name string) bool {
	depth := 0
	for i, t := range s.tokens {
		switch text := s.text(content, i); {
		case t.kind == pyString:
		case text == "(" || text == "[" || text == "{":
			depth++
		case text == ")" || text == "]" || text == "}":
			depth--
		case t.kind == pyName && text == name:
			attribute := i > 0 && s.text(content, i-1) == "."
			argument := depth > 0 && i+1 < len(s.tokens) && s.text(content, i+1) == "="
			if !attribute && !argument {
				return true
			}
		}
	}
	return false
}

// pyNames returns names as variables of a Python text.
func pyNames(names []string) []string {
	var out []string
	for _, name := range names {
		out = append(out, strings.ReplaceAll(name, "-", "_"))
	}
	return out
}

// putAssign sets one variable at the end of a Python text, under a line that
// says who did, and takes earlier assignments away, unless something else in the
// text uses the variable: then they stay, and the last one counts.
func putAssign(content string, names []string, value *string) (string, error) {
	names = pyNames(names)
	if !isPyVariable(names[0]) {
		return "", fmt.Errorf("%s is no name of a variable in Python", names[0])
	}
	statements, err := pyScan(content)
	if err != nil {
		return "", err
	}
	ours := len(content) // where what Put added before begins
	if i := lastMarker(content); i >= 0 && onlyAssignments(content, statements, i) {
		ours = i
	}
	var earlier []assignment
	var spot *assignment
	used := 0 // line of a statement that uses the variable, 0: none does
	for _, s := range statements {
		a, simple := s.assigns(content)
		simple = simple && !s.indented && slices.Contains(names, a.name)
		switch {
		case simple && s.Start >= ours && value != nil && spot == nil:
			spot = &a
		case simple && a.lines > 1:
			return "", fmt.Errorf("line %d: the assignment takes %d lines; make it one, or take it away", a.line, a.lines)
		case simple:
			earlier = append(earlier, a)
		case used == 0 && slices.ContainsFunc(names, func(name string) bool { return s.uses(content, name) }):
			used = s.line
		}
	}
	if used > 0 && value == nil {
		return "", fmt.Errorf("line %d has it otherwise than in a plain assignment, so that it cannot be taken away", used)
	}
	var changes []textedit.Change
	for _, a := range earlier {
		if used == 0 || a.Start >= ours {
			changes = append(changes, textedit.Change{Span: a.Span, Text: ""})
		}
	}
	text := ""
	if value != nil {
		text = names[0] + " = " + pyText(*value)
	}
	if spot != nil {
		_, behind := textedit.CutEnding(content[spot.Start:spot.End])
		changes = append(changes, textedit.Change{Span: spot.Span, Text: text + behind})
		slices.SortFunc(changes, func(a, b textedit.Change) int { return a.Start - b.Start })
	}
	out := textedit.Apply(content, changes)
	ending := textedit.Ending(content)
	if value != nil && spot == nil {
		if out != "" && out != byteOrderMark && !strings.HasSuffix(out, "\n") {
			out += ending
		}
		if ours == len(content) {
			out += marker + ending
		}
		out += text + ending
	}
	if value == nil && ours < len(content) { // nothing may be left under the line
		if bare := strings.TrimRight(out, "\r\n"); lastMarker(bare) == len(bare)-len(marker) {
			out = strings.TrimSuffix(bare, marker)
		}
	}
	return out, nil
}

// lastMarker returns where the last line begins that is the marker, or -1.
func lastMarker(content string) int {
	i := strings.LastIndex(content, marker)
	if i <= 0 || content[i-1] == '\n' || content[:i] == byteOrderMark {
		return i
	}
	return -1
}

// onlyAssignments tells whether nothing but assignments in single lines stands
// behind an offset.
func onlyAssignments(content string, statements []pyStatement, from int) bool {
	for _, s := range statements {
		if s.End <= from {
			continue
		}
		if _, simple := s.assigns(content); s.Start < from || !simple || s.indented || s.lines > 1 {
			return false
		}
	}
	return true
}

func isPyVariable(name string) bool {
	for i := range len(name) {
		if !isPyLetter(name[i]) && (i == 0 || !isDigit(name[i])) {
			return false
		}
	}
	return name != "" && !slices.Contains([]string{
		"False", "None", "True", "and", "as", "assert", "async", "await", "break", "class", "continue", "def", "del",
		"elif", "else", "except", "finally", "for", "from", "global", "if", "import", "in", "is", "lambda", "nonlocal",
		"not", "or", "pass", "raise", "return", "try", "while", "with", "yield",
	}, name)
}

// pyText returns a value as Python writes it: numbers, True, False and None bare,
// all else as a string.
func pyText(value string) string {
	switch value {
	case "true", "True":
		return "True"
	case "false", "False":
		return "False"
	case "None":
		return value
	}
	if regexp.MustCompile(`^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?$`).MatchString(value) {
		return value
	}
	var b strings.Builder
	b.WriteByte('"')
	for i := range len(value) {
		switch c := value[i]; {
		case c == '"' || c == '\\':
			b.WriteString(`\` + string(c))
		case c < ' ' || c == 0x7f:
			fmt.Fprintf(&b, `\x%02x`, c)
		default:
			b.WriteByte(c)
		}
	}
	b.WriteByte('"')
	return b.String()
}

// pyValue returns what an expression means where it is a plain string, or true
// or false in the words of an experiment; all else as it is written.
func pyValue(text string) string {
	switch text {
	case "True":
		return "true"
	case "False":
		return "false"
	}
	prefix := strings.IndexAny(text, `"'`)
	if prefix < 0 || prefix > 1 || !pyPrefixed(text) && prefix > 0 {
		return text
	}
	raw := prefix == 1 && (text[0] == 'r' || text[0] == 'R')
	if prefix == 1 && !raw && text[0] != 'u' && text[0] != 'U' {
		return text
	}
	if end, ok := pyStringEnd(text, 0); !ok || end != len(text) {
		return text // more than one string
	}
	body := text[prefix:]
	quote := 1
	if len(body) >= 6 && body[1] == body[0] && body[2] == body[0] {
		quote = 3
	}
	body = body[quote : len(body)-quote]
	if raw {
		return body
	}
	return pyUnescape(body)
}

// pyUnescape reads the escapes of a string (Python Language Reference 2.4.1), but
// for names of characters (\N{…}), which stay as written.
func pyUnescape(body string) string {
	var b strings.Builder
	for i := 0; i < len(body); i++ {
		if body[i] != '\\' || i+1 == len(body) {
			b.WriteByte(body[i])
			continue
		}
		i++
		if at := strings.IndexByte(`abfnrtv\'"`, body[i]); at >= 0 {
			b.WriteByte("\a\b\f\n\r\t\v\\'\""[at])
			continue
		}
		digits, base := 0, 16
		switch c := body[i]; {
		case c == '\n':
			continue
		case c == '\r' && strings.HasPrefix(body[i:], "\r\n"):
			i++
			continue
		case c == 'x':
			digits = 2
		case c == 'u':
			digits = 4
		case c == 'U':
			digits = 8
		case c >= '0' && c <= '7':
			base = 8
			for digits < 3 && i+digits < len(body) && body[i+digits] >= '0' && body[i+digits] <= '7' {
				digits++
			}
			i--
		}
		if digits > 0 && i+1+digits <= len(body) {
			if n, err := strconv.ParseUint(body[i+1:i+1+digits], base, 32); err == nil && utf8.ValidRune(rune(n)) {
				b.WriteRune(rune(n))
				i += digits
				continue
			}
		}
		b.WriteByte('\\')
		b.WriteByte(body[i])
	}
	return b.String()
}

// assignments returns the assignments at the top of a Python text.
func assignments(content string) []assignment {
	statements, _ := pyScan(content) // what Python refuses has none behind the mistake
	var all []assignment
	for _, s := range statements {
		if a, simple := s.assigns(content); simple && !s.indented {
			all = append(all, a)
		}
	}
	return all
}

func valueAssign(content string, names []string) (value string, found bool) {
	names = pyNames(names)
	for _, a := range assignments(content) {
		if slices.Contains(names, a.name) {
			value, found = pyValue(content[a.value.Start:a.value.End]), true
		}
	}
	return value, found
}

func keysAssign(content string) []Key {
	var keys []Key
	for _, a := range assignments(content) {
		line, column := textedit.Place(content, a.tokens[0].Start)
		keys = append(keys, Key{Name: a.name, Value: pyValue(content[a.value.Start:a.value.End]), Line: line, Column: column})
	}
	return keys
}

// relocateAssign writes the path of the file in the place of __file__, by which a
// Python file finds what is beside it. The __file__ of a module (os.__file__) is
// its own.
func relocateAssign(content, path string) string {
	statements, _ := pyScan(content) // of what Python would refuse, it names the mistake itself
	var changes []textedit.Change
	for _, s := range statements {
		for i, t := range s.tokens {
			if t.kind == pyName && s.text(content, i) == "__file__" && (i == 0 || s.text(content, i-1) != ".") {
				changes = append(changes, textedit.Change{Span: t.Span, Text: pyText(path)})
			}
		}
	}
	return textedit.Apply(content, changes)
}
