package edit

import (
	"fmt"
	"slices"
	"strings"

	"hakaru/internal/textedit"
)

// pyToken is one token of a Python text: a name, a string, or something else (a
// number, an operator).
type pyToken struct {
	textedit.Span
	kind pyKind
}

type pyKind uint8

const (
	pyOther pyKind = iota
	pyName
	pyString
)

// pyStatement is a logical line: what Python reads as one, over brackets and
// backslashes.
type pyStatement struct {
	textedit.Span      // from the indentation to behind the newline
	line, lines   int  // where it begins, from 1, and how many it takes
	indented      bool // it belongs to a def, an if, …
	tokens        []pyToken
}

// pyScan cuts a Python text into logical lines and tokens (Python Language
// Reference, 2.1 and 2.4); blank lines and comments belong to none. Strings are
// read to their end, so that what looks like a setting within one is none. A
// string in an f-string that uses the same quotes (Python 3.12) is not
// understood.
func pyScan(content string) ([]pyStatement, error) {
	var all []pyStatement
	at, line := 0, 1
	if strings.HasPrefix(content, byteOrderMark) {
		at = len(byteOrderMark)
	}
	for at < len(content) {
		s := pyStatement{Span: textedit.Span{Start: at}, line: line}
		s.indented = content[at] == ' ' || content[at] == '\t' || content[at] == '\f'
		depth := 0
	logical:
		for at < len(content) {
			c := content[at]
			switch {
			case c == '\n':
				at++
				line++
				if depth == 0 {
					break logical
				}
			case c == '\\' && slices.Contains([]string{"", "\r", "\n", "\r\n"}, content[at+1:]):
				return all, fmt.Errorf("line %d: nothing follows the backslash", line)
			case c == '\\' && (content[at+1] == '\n' || strings.HasPrefix(content[at+1:], "\r\n")):
				at += 1 + strings.IndexByte(content[at+1:], '\n') + 1
				line++
			case c == '#':
				if length := strings.IndexByte(content[at:], '\n'); length >= 0 {
					at += length
				} else {
					at = len(content)
				}
			case c == '"' || c == '\'' || pyPrefixed(content[at:]):
				end, ok := pyStringEnd(content, at)
				if !ok {
					return all, fmt.Errorf("line %d: the string does not end", line)
				}
				s.tokens = append(s.tokens, pyToken{textedit.Piece(at, end), pyString})
				line += strings.Count(content[at:end], "\n")
				at = end
			case isPyLetter(c):
				end := at
				for end < len(content) && (isPyLetter(content[end]) || isDigit(content[end])) {
					end++
				}
				s.tokens = append(s.tokens, pyToken{textedit.Piece(at, end), pyName})
				at = end
			case isDigit(c) || c == '.' && at+1 < len(content) && isDigit(content[at+1]):
				end := at + 1
				for end < len(content) && (isPyLetter(content[end]) || isDigit(content[end]) || content[end] == '.') {
					end++
				}
				s.tokens = append(s.tokens, pyToken{textedit.Piece(at, end), pyOther})
				at = end
			case c == ' ' || c == '\t' || c == '\r' || c == '\f' || c == '\\':
				at++
			default:
				end := at + pyOperator(content[at:])
				switch c {
				case '(', '[', '{':
					depth++
				case ')', ']', '}':
					depth = max(0, depth-1)
				}
				s.tokens = append(s.tokens, pyToken{textedit.Piece(at, end), pyOther})
				at = end
			}
		}
		if depth > 0 {
			return all, fmt.Errorf("line %d: a bracket is not closed", s.line)
		}
		if len(s.tokens) > 0 {
			s.End, s.lines = at, line-s.line
			if at == len(content) && !strings.HasSuffix(content, "\n") {
				s.lines++
			}
			all = append(all, s)
		}
	}
	return all, nil
}

// pyOperator returns the length of the operator that a text begins with.
func pyOperator(text string) int {
	for _, op := range []string{
		"**=", "//=", ">>=", "<<=", "...", "==", "!=", "<=", ">=", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "@=",
		":=", "->", "**", "//", "<<", ">>",
	} {
		if strings.HasPrefix(text, op) {
			return len(op)
		}
	}
	return 1
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

// isPyLetter takes every letter outside ASCII for one of a name.
func isPyLetter(c byte) bool {
	return c == '_' || c|0x20 >= 'a' && c|0x20 <= 'z' || c >= 0x80
}

// pyPrefixed tells whether a string with a prefix (r, b, f, u and two of them)
// begins here.
func pyPrefixed(text string) bool {
	for i := range min(3, len(text)) {
		switch {
		case i > 0 && (text[i] == '"' || text[i] == '\''):
			return true
		case strings.IndexByte("rbfuRBFU", text[i]) < 0:
			return false
		}
	}
	return false
}

// pyStringEnd returns where the string that begins at an offset ends.
func pyStringEnd(content string, at int) (int, bool) {
	for content[at] != '"' && content[at] != '\'' {
		at++ // the prefix
	}
	quote := content[at : at+1]
	if triple := strings.Repeat(quote, 3); strings.HasPrefix(content[at:], triple) {
		quote = triple
	}
	for i := at + len(quote); i < len(content); i++ {
		switch {
		case content[i] == '\\':
			i++
		case content[i] == '\n' && len(quote) == 1:
			return i, false
		case strings.HasPrefix(content[i:], quote):
			return i + len(quote), true
		}
	}
	return len(content), false
}
