package experiment

import (
	"errors"
	"strings"
	"unicode/utf8"

	yaml "github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
)

// place is where something was written: line and column in characters, from 1,
// or the flag that said it.
type place struct {
	line, column int
	file         string // a flag's name where it was not in the file
}

// node is a YAML value with its place; aliases are resolved, scalars keep the
// text they were written with.
type node struct {
	kind    nodeKind
	at      place
	text    string // of a scalar
	quoted  bool
	flow    bool // a map or list written with braces or brackets
	entries []entry
	items   []*node
}

type entry struct {
	key    string
	at     place
	value  *node
	merged bool // by <<: a key written out counts more
}

type nodeKind uint8

const (
	nullNode nodeKind = iota
	scalarNode
	mapNode
	listNode
	unreadNode // something that was found wrong already
)

func (k nodeKind) String() string {
	return [...]string{"nothing", "a single value", "a map (name: value)", "a list", "unread"}[k]
}

func (n *node) get(key string) *node {
	for _, e := range n.entries {
		if e.key == key {
			return e.value
		}
	}
	return nil
}

const (
	maxNodes = 100_000 // aliases can blow a small file up without bound
	maxDepth = 100
	maxBytes = 1 << 20
)

// readTree parses text. Mistakes that people often make and after which YAML
// cannot be read on (a tab, a placeholder without quotes) are noted and mended in
// memory, so that the rest of the file is checked as well. A file with another
// error of syntax is read without the top-level block that holds it, and partial
// is true: what refers to something elsewhere is not to be checked then.
func (s *source) readTree(text string) (root *node, partial bool) {
	if len(text) > maxBytes {
		s.mistake(place{}, "too-large", "the file is larger than 1 MiB", "")
		return nil, true
	}
	if !utf8.ValidString(text) || strings.ContainsRune(text, 0) {
		s.mistake(place{}, "not-text", "the file is not UTF-8 text", "")
		return nil, true
	}
	lines := strings.Split(strings.TrimPrefix(strings.ReplaceAll(text, "\r\n", "\n"), "\ufeff"), "\n")
	s.lines = append([]string(nil), lines...)
	shifts := s.mend(lines)
	for range 20 {
		file, err := parser.ParseBytes([]byte(strings.Join(lines, "\n")+"\n"), 0, parser.AllowDuplicateMapKey())
		if err == nil {
			if len(file.Docs) > 1 {
				at := place{line: 1, column: 1}
				if b := file.Docs[1].Body; b != nil && b.GetToken() != nil {
					at.line = b.GetToken().Position.Line
				}
				s.mistake(at, "several-documents", "an experiment file holds one document", "remove the line ---")
			}
			if len(file.Docs) == 0 || file.Docs[0].Body == nil {
				return &node{kind: nullNode}, partial
			}
			c := converter{source: s, shifts: shifts, anchors: map[string]ast.Node{}}
			return c.convert(file.Docs[0].Body, 0), partial
		}
		partial = true
		var syntax *yaml.SyntaxError
		if !errors.As(err, &syntax) || syntax.Token == nil || syntax.Token.Position == nil {
			s.mistake(place{line: 1, column: 1}, "syntax", "the file is not YAML: "+err.Error(), "")
			return nil, true
		}
		pos := syntax.Token.Position
		at := shifts.original(pos.Line, pos.Column)
		message := "this is not YAML: " + syntax.Message
		if strings.Contains(message, "must be specified") || strings.Contains(message, "end token") {
			// Everything after it is taken for a part of it.
			s.mistake(at, "syntax", message, "a bracket or brace before this is not closed")
			return nil, true
		}
		s.mistake(at, "syntax", message, syntaxHint(s.lineText(at.line)))
		if !blankBlock(lines, pos.Line) {
			return nil, true
		}
	}
	return nil, true
}

func (s *source) lineText(n int) string {
	if n > 0 && n <= len(s.lines) {
		return s.lines[n-1]
	}
	return ""
}

func syntaxHint(line string) string {
	if _, value, found := strings.Cut(line, ": "); found && strings.Contains(value, ": ") {
		return "a value that holds \": \" needs quotes"
	}
	return "check the indentation and the quotes of this line and the one before"
}

// blankBlock empties the top-level block that holds a line.
func blankBlock(lines []string, line int) bool {
	top := func(i int) bool {
		t := lines[i]
		return t != "" && t[0] != ' ' && t[0] != '\t' && t[0] != '#' && t[0] != '}' && t[0] != ']' && t[0] != '-'
	}
	start := min(line, len(lines)) - 1
	for start > 0 && !top(start) {
		start--
	}
	changed := false
	for i := start; i < len(lines) && (i == start || i < line || !top(i)); i++ {
		changed = changed || strings.TrimSpace(lines[i]) != ""
		lines[i] = ""
	}
	return changed
}

// shift says that from a column of a line on, text was moved right.
type shift struct{ line, column, by int }

type shiftList []shift

// original returns the place in the person's file of a place in the mended one.
func (l shiftList) original(line, column int) place {
	moved := 0
	for _, s := range l {
		if s.line == line && column > s.column {
			moved = max(moved, s.by)
		}
	}
	return place{line: line, column: max(column-moved, 1)}
}

// mend notes and mends tabs in indentation and placeholders without quotes.
// Block texts (|, >) are left alone.
func (s *source) mend(lines []string) shiftList {
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
			s.mistake(place{line: i + 1, column: tab + 1}, "tab", "a tab cannot indent YAML", "use spaces")
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
		lines[i] = s.quoteBraces(i+1, line, &shifts)
	}
	return shifts
}

// quoteBraces puts quotes around the values of one line that begin with {name},
// and around those within a map or list in braces that hold one.
func (s *source) quoteBraces(number int, line string, shifts *shiftList) string {
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
		s.mistake(place{line: number, column: max(column-base, 1)}, "needs-quotes", value+why, "write \""+value+"\"")
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

// converter turns the parser's tree into ours.
type converter struct {
	source  *source
	shifts  shiftList
	anchors map[string]ast.Node
	count   int
	full    bool
}

func (c *converter) place(n ast.Node) place {
	if t := n.GetToken(); t != nil && t.Position != nil {
		return c.shifts.original(t.Position.Line, t.Position.Column)
	}
	return place{line: 1, column: 1}
}

func (c *converter) convert(n ast.Node, depth int) *node {
	if n == nil {
		return &node{kind: nullNode, at: place{line: 1, column: 1}}
	}
	at := c.place(n)
	c.count++
	if c.count > maxNodes || depth > maxDepth {
		if !c.full {
			c.full = true
			c.source.mistake(at, "too-large", "the file holds too many values, or an alias that holds itself", "")
		}
		return &node{kind: unreadNode, at: at}
	}
	switch n := n.(type) {
	case *ast.MappingNode:
		out := &node{kind: mapNode, at: at, flow: n.IsFlowStyle}
		for _, v := range n.Values {
			c.entry(out, v, depth)
		}
		if len(out.entries) > 0 && !n.IsFlowStyle {
			out.at = out.entries[0].at
		}
		return out
	case *ast.MappingValueNode:
		out := &node{kind: mapNode, at: at}
		c.entry(out, n, depth)
		return out
	case *ast.SequenceNode:
		out := &node{kind: listNode, at: at, flow: n.IsFlowStyle}
		for _, v := range n.Values {
			out.items = append(out.items, c.convert(v, depth+1))
		}
		return out
	case *ast.AnchorNode:
		if n.Name != nil {
			c.anchors[n.Name.GetToken().Value] = n.Value
		}
		return c.convert(n.Value, depth+1)
	case *ast.AliasNode:
		name := ""
		if n.Value != nil {
			name = n.Value.GetToken().Value
		}
		target, known := c.anchors[name]
		if !known {
			c.source.mistake(at, "unknown-alias", "no anchor is called &"+name+" before this", "")
			return &node{kind: unreadNode, at: at}
		}
		out := c.convert(target, depth+1)
		return out
	case *ast.TagNode:
		return c.convert(n.Value, depth+1)
	case *ast.NullNode:
		return &node{kind: nullNode, at: at}
	case *ast.LiteralNode:
		text := ""
		if n.Value != nil {
			text = n.Value.Value
		}
		return &node{kind: scalarNode, at: at, text: text, quoted: true}
	case *ast.StringNode:
		quoted := n.Token != nil && strings.HasSuffix(n.Token.Type.String(), "Quote")
		return &node{kind: scalarNode, at: at, text: n.Value, quoted: quoted}
	}
	text := ""
	if t := n.GetToken(); t != nil {
		text = t.Value
	}
	return &node{kind: scalarNode, at: at, text: text}
}

func (c *converter) entry(out *node, v *ast.MappingValueNode, depth int) {
	if _, merge := v.Key.(*ast.MergeKeyNode); merge {
		if merged := c.convert(v.Value, depth+1); merged.kind == mapNode {
			for _, e := range merged.entries {
				if out.get(e.key) == nil {
					e.merged = true
					out.entries = append(out.entries, e)
				}
			}
		}
		return
	}
	at := place{line: 1, column: 1}
	key := ""
	if v.Key != nil {
		at = c.place(v.Key)
		if t := v.Key.GetToken(); t != nil {
			key = t.Value
		}
	}
	value := c.convert(v.Value, depth+1)
	if value.kind == nullNode {
		value.at = at
	}
	for i, e := range out.entries {
		if e.key == key && e.merged {
			out.entries[i] = entry{key: key, at: at, value: value}
			return
		}
		if e.key == key {
			c.source.mistake(at, "duplicate", "the key "+key+" is given twice here", "remove one of them, or give one another name")
			return
		}
	}
	out.entries = append(out.entries, entry{key: key, at: at, value: value})
}
