package grammar

import (
	"fmt"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"hakaru/internal/mistake"
	"hakaru/internal/yamltree"
)

// Words is a command line: a list, or one text that is split.
type Words struct {
	List []string
	at   mistake.Place
}

func (w *Words) Decode(d *Decoder, n *yamltree.Node, path string) {
	w.at = n.At
	switch n.Kind {
	case yamltree.List:
		for i, item := range n.Items {
			var one Text
			one.Decode(d, item, fmt.Sprintf("%s[%d]", path, i))
			w.List = append(w.List, one.Value)
		}
	case yamltree.Scalar:
		list, err := Split(n.Text)
		if err != nil {
			d.Mistake(n.At, "command-line", fmt.Sprintf("%s: %v", path, err),
				"no shell reads this line; put what needs one into a script, or write sh -c '…'")
			return
		}
		w.List = list
	default:
		d.wrongKind(n, path, "a command line, or a list of its words")
		return
	}
	if len(w.List) == 0 || w.List[0] == "" {
		d.Mistake(n.At, "command-line", path+" names no program", "")
	}
}

// Split splits a command line as a shell would, quotes and backslashes
// included. Whatever a shell would do beyond that (variables, pipes, globs by
// command substitution) is refused, since no shell will run it.
func Split(line string) ([]string, error) {
	file, err := syntax.NewParser(syntax.Variant(syntax.LangPOSIX)).Parse(strings.NewReader(line), "")
	if err != nil {
		message := err.Error()
		if _, rest, found := strings.Cut(message, ": "); found {
			message = rest
		}
		return nil, fmt.Errorf("cannot be split into words: %s", message)
	}
	if len(file.Stmts) == 0 {
		return nil, nil
	}
	call, simple := file.Stmts[0].Cmd.(*syntax.CallExpr)
	s := file.Stmts[0]
	if len(file.Stmts) > 1 || !simple || len(s.Redirs) > 0 || s.Background || s.Negated || s.Semicolon.IsValid() {
		return nil, fmt.Errorf("is more than one plain command")
	}
	if len(call.Assigns) > 0 {
		return nil, fmt.Errorf("begins with a variable: write it under env")
	}
	var list []string
	for _, w := range call.Args {
		var b strings.Builder
		if err := literal(&b, w.Parts, false); err != nil {
			return nil, err
		}
		list = append(list, b.String())
	}
	return list, nil
}

// Join writes words as one line that Split splits into them again.
func Join(words []string) string {
	out := make([]string, len(words))
	for i, w := range words {
		if w == "" || strings.ContainsFunc(w, func(c rune) bool {
			letter := c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
			return !letter && !strings.ContainsRune("{}_-./:=@%+,", c)
		}) {
			w = "'" + strings.ReplaceAll(w, "'", `'\''`) + "'"
		}
		out[i] = w
	}
	return strings.Join(out, " ")
}

func literal(b *strings.Builder, parts []syntax.WordPart, quoted bool) error {
	for _, part := range parts {
		switch part := part.(type) {
		case *syntax.Lit:
			unescape(b, part.Value, quoted)
		case *syntax.SglQuoted:
			b.WriteString(part.Value)
		case *syntax.DblQuoted:
			if err := literal(b, part.Parts, true); err != nil {
				return err
			}
		default:
			return fmt.Errorf("holds something that only a shell can fill in")
		}
	}
	return nil
}

// unescape removes backslashes; within double quotes only those before
// $ ` " \ and a line end (POSIX.1-2017, XCU 2.2.3).
func unescape(b *strings.Builder, s string, quoted bool) {
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+1 < len(s) {
			next := s[i+1]
			if next == '\n' {
				i++
				continue
			}
			if !quoted || strings.IndexByte("$`\"\\", next) >= 0 {
				b.WriteByte(next)
				i++
				continue
			}
		}
		b.WriteByte(s[i])
	}
}
