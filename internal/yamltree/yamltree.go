// Package yamltree reads YAML into a tree that keeps the place of every key and
// value, and notes all that cannot be read. It reads on after mistakes that
// people often make (mend.go), so that one does not hide the others; aliases are
// resolved (convert.go), and a scalar keeps the text it was written with: 0644 is
// "0644".
//
// It knows no keys: what a tree is to hold is said elsewhere (internal/grammar).
package yamltree

import (
	"errors"
	"strings"
	"unicode/utf8"

	yaml "github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"

	"hakaru/internal/mistake"
)

// Node is a YAML value with its place; aliases are resolved, scalars keep the
// text they were written with.
type Node struct {
	Kind    Kind
	At      mistake.Place
	Text    string // of a scalar
	Entries []Entry
	Items   []*Node
}

// Entry is a key with its value.
type Entry struct {
	Key    string
	At     mistake.Place
	Value  *Node
	merged bool // by <<: a key written out counts more
}

// Kind says what a node is.
type Kind uint8

const (
	Null Kind = iota
	Scalar
	Map
	List
	Unread // something that was found wrong already
)

func (k Kind) String() string {
	return [...]string{"nothing", "a single value", "a map (name: value)", "a list", "unread"}[k]
}

// Get returns the value of a key of a map; nil where it is not there.
func (n *Node) Get(key string) *Node {
	for _, e := range n.Entries {
		if e.Key == key {
			return e.Value
		}
	}
	return nil
}

const (
	maxNodes = 100_000 // aliases can blow a small file up without bound
	maxDepth = 100
	maxBytes = 1 << 20
)

// Read parses text. Mistakes that people often make and after which YAML
// cannot be read on (a tab, a placeholder without quotes) are noted and mended in
// memory, so that the rest of the file is checked as well. A file with another
// error of syntax is read without the top-level block that holds it, and partial
// is true: what refers to something elsewhere is not to be checked then.
func Read(s *mistake.Source, text string) (root *Node, partial bool) {
	if len(text) > maxBytes {
		s.Mistake(mistake.Place{}, "too-large", "the file is larger than 1 MiB", "")
		return nil, true
	}
	if !utf8.ValidString(text) || strings.ContainsRune(text, 0) {
		s.Mistake(mistake.Place{}, "not-text", "the file is not UTF-8 text", "")
		return nil, true
	}
	lines := mistake.Lines(strings.TrimPrefix(text, "\ufeff"))
	s.Lines = append([]string(nil), lines...)
	shifts := mend(s, lines)
	for range 20 {
		file, err := parser.ParseBytes([]byte(strings.Join(lines, "\n")+"\n"), 0, parser.AllowDuplicateMapKey())
		if err == nil {
			if len(file.Docs) > 1 {
				at := mistake.Place{Line: 1, Column: 1}
				if b := file.Docs[1].Body; b != nil && b.GetToken() != nil {
					at.Line = b.GetToken().Position.Line
				}
				s.Mistake(at, "several-documents", "an experiment file holds one document", "remove the line ---")
			}
			if len(file.Docs) == 0 || file.Docs[0].Body == nil {
				return &Node{Kind: Null}, partial
			}
			c := converter{source: s, shifts: shifts, anchors: map[string]ast.Node{}}
			return c.convert(file.Docs[0].Body, 0), partial
		}
		partial = true
		var syntax *yaml.SyntaxError
		if !errors.As(err, &syntax) || syntax.Token == nil || syntax.Token.Position == nil {
			s.Mistake(mistake.Place{Line: 1, Column: 1}, "syntax", "the file is not YAML: "+err.Error(), "")
			return nil, true
		}
		pos := syntax.Token.Position
		at := shifts.original(pos.Line, pos.Column)
		message := "this is not YAML: " + syntax.Message
		if strings.Contains(message, "must be specified") || strings.Contains(message, "end token") {
			// Everything after it is taken for a part of it.
			s.Mistake(at, "syntax", message, "a bracket or brace before this is not closed")
			return nil, true
		}
		s.Mistake(at, "syntax", message, syntaxHint(s.LineText(at.Line)))
		if !blankBlock(lines, pos.Line) {
			return nil, true
		}
	}
	return nil, true
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
