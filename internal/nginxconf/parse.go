// Package nginxconf reads nginx.conf as nginx does, and changes directives in it: what
// was not to be changed (order, comments, layout, line endings) stays as it is.
//
// It takes a text and gives a text, or entries with their places. Whether nginx has a
// directive, and whether a value is right, is not known here; no file is opened.
package nginxconf

import (
	"fmt"
	"strings"

	"hakaru/internal/textedit"
)

// Entry is one directive as a file has it.
type Entry struct {
	Name   string
	Value  string // what is written between name and semicolon
	Path   string // of the blocks that it stands in: "http.server.location"
	Line   int    // from 1
	Column int    // of the name, in bytes, from 1
}

// Include is a file that a text draws in.
type Include struct {
	Path string // as written, maybe a pattern, relative to the directory of the file
	Line int    // from 1
}

// word is one word of nginx.conf.
type word struct {
	textedit.Span        // as written, quotes included
	text          string // what nginx makes of it
}

// directive is one statement of nginx.conf: words up to a semicolon, or a block.
type directive struct {
	words    []word
	comments []textedit.Span // between its words
	end      int             // behind the semicolon, or behind the brace that closes its block
	block    bool
	opens    int // behind the brace that opens its block
	inner    []*directive
	outer    *directive // nil: it stands at the top
}

func (d *directive) name() string { return d.words[0].text }

// path returns the names of the blocks that the directive stands in.
func (d *directive) path() string {
	var names []string
	for o := d.outer; o != nil; o = o.outer {
		names = append([]string{o.name()}, names...)
	}
	return strings.Join(names, ".")
}

// parse reads nginx.conf by the rules of ngx_conf_read_token (nginx,
// src/core/ngx_conf_file.c). What nginx would refuse is an error, and so are
// blocks of Lua, whose braces follow other rules; the directives before it are
// returned all the same.
func parse(content string) ([]*directive, error) {
	var top []*directive
	var open *directive // the innermost block
	add := func(d *directive) {
		d.outer = open
		if open == nil {
			top = append(top, d)
		} else {
			open.inner = append(open.inner, d)
		}
	}
	wrong := func(at int, what string) error {
		line, _ := textedit.Place(content, at)
		return fmt.Errorf("line %d: %s", line, what)
	}
	for at := 0; ; {
		d, closes, next, err := nextDirective(content, at)
		switch {
		case err != nil:
			return top, err
		case closes:
			if open == nil {
				return top, wrong(next-1, `unexpected "}"`)
			}
			open.end = next
			open = open.outer
		case d == nil:
			if open != nil {
				return top, wrong(open.words[0].Start, fmt.Sprintf("the block %s does not end", open.name()))
			}
			return top, nil
		default:
			add(d)
			if d.block {
				if strings.HasSuffix(d.name(), "_by_lua_block") {
					return top, wrong(d.words[0].Start, fmt.Sprintf("%s holds Lua, which cannot be read here; %s would do with the code in a file of its own", d.name(), strings.TrimSuffix(d.name(), "_block")+"_file"))
				}
				d.end = len(content) // until it is closed
				open = d
			}
		}
		at = next
	}
}

// nextDirective reads up to the next semicolon or brace. Without one, d is nil.
func nextDirective(content string, at int) (d *directive, closes bool, next int, err error) {
	d = &directive{}
	wrong := func(at int, what string) error {
		line, _ := textedit.Place(content, at)
		return fmt.Errorf("line %d: %s", line, what)
	}
	quoted := false // the last word was: now only a blank, or what ends the directive
	for at < len(content) {
		c := content[at]
		switch {
		case isBlank(c):
			quoted = false
			at++
			continue
		case c == ';' || c == '{':
			if len(d.words) == 0 {
				return nil, false, at, wrong(at, fmt.Sprintf("unexpected %q", c))
			}
			at++
			d.end, d.block, d.opens = at, c == '{', at
			return d, false, at, nil
		case quoted && c != ')':
			return nil, false, at, wrong(at, fmt.Sprintf("unexpected %q behind a quoted word", c))
		case c == '}':
			if len(d.words) > 0 {
				return nil, false, at, wrong(d.words[0].Start, fmt.Sprintf(`%s ends without ";"`, d.name()))
			}
			return nil, true, at + 1, nil
		case c == '#':
			start := at
			if length := strings.IndexByte(content[at:], '\n'); length >= 0 {
				at += length
			} else {
				at = len(content)
			}
			if len(d.words) > 0 {
				d.comments = append(d.comments, textedit.Piece(start, at))
			}
			continue
		}
		w, ends := nextWord(content, at)
		if !ends {
			return nil, false, at, wrong(at, fmt.Sprintf(`unexpected end of file behind %q`, firstOf(content[at:])))
		}
		quoted = content[at] == '"' || content[at] == '\''
		d.words = append(d.words, w)
		at = w.End
	}
	if len(d.words) > 0 {
		return nil, false, at, wrong(d.words[0].Start, fmt.Sprintf(`%s ends without ";"`, d.name()))
	}
	return nil, false, at, nil
}

func isBlank(c byte) bool { return c == ' ' || c == '\t' || c == '\r' || c == '\n' }

// nextWord reads one word. A quote counts at its start only; a backslash takes
// the next character along; "${" does not open a block.
func nextWord(content string, at int) (word, bool) {
	quote := byte(0)
	if content[at] == '"' || content[at] == '\'' {
		quote = content[at]
	}
	start := at
	if quote != 0 {
		start++
	}
	variable := false
	for i := start; i < len(content); i++ {
		c := content[i]
		switch {
		case c == '{' && variable:
			// nginx goes on looking for "${" behind it: $ was the last but one.
			continue
		case c == '\\':
			variable = false
			i++
			continue
		case c == '$':
			variable = true
			continue
		case quote != 0 && c == quote:
			return word{textedit.Piece(at, i+1), textOf(content[start:i])}, true
		case quote == 0 && (isBlank(c) || c == ';' || c == '{'):
			return word{textedit.Piece(at, i), textOf(content[start:i])}, true
		}
		variable = false
	}
	return word{}, false
}

// textOf reads the escapes of a word.
func textOf(raw string) string {
	if !strings.Contains(raw, `\`) {
		return raw
	}
	var b strings.Builder
	for i := 0; i < len(raw); i++ {
		if raw[i] == '\\' && i+1 < len(raw) {
			switch raw[i+1] {
			case '"', '\'', '\\':
				i++
			case 't':
				b.WriteByte('\t')
				i++
				continue
			case 'r':
				b.WriteByte('\r')
				i++
				continue
			case 'n':
				b.WriteByte('\n')
				i++
				continue
			}
		}
		b.WriteByte(raw[i])
	}
	return b.String()
}

// firstOf returns the beginning of a text, for a message.
func firstOf(text string) string {
	text, _, _ = strings.Cut(text, "\n")
	if len(text) > 20 {
		text = text[:20] + "…"
	}
	return text
}
