package nginxconf

import (
	"fmt"
	"slices"
	"strings"

	"hakaru/internal/textedit"
)

// data tells whether the lines of a block are a table, and no directives.
func (d *directive) data() bool {
	return slices.Contains([]string{"types", "map", "geo", "split_clients", "charset_map"}, d.name())
}

func (d *directive) depth() int {
	n := 0
	for o := d.outer; o != nil; o = o.outer {
		n++
	}
	return n
}

// walk calls visit for every directive below, in the order of the text. What
// visit returns says whether to look into a block.
func walk(list []*directive, visit func(*directive) bool) {
	for _, d := range list {
		if visit(d) && d.block {
			walk(d.inner, visit)
		}
	}
}

// contextIn is a context as a file has it: one that is included within http (a
// conf.d/*.conf) has what is of http at its top. nginx refuses a whole file that has
// no events, so that a file with directives and none of the blocks that are a
// file's own is such a one.
func contextIn(top []*directive, context string) string {
	own := func(d *directive) bool {
		return d.block && slices.Contains([]string{"events", "http", "stream", "mail"}, d.name())
	}
	if len(top) == 0 || slices.ContainsFunc(top, own) {
		return context
	}
	if context == "http" {
		return ""
	}
	return strings.TrimPrefix(context, "http.")
}

// blocksOf returns the blocks of a context. The top of the file is none.
func blocksOf(top []*directive, context string) []*directive {
	var blocks []*directive
	walk(top, func(d *directive) bool {
		path := d.path()
		if path != "" {
			path += "."
		}
		path += d.name()
		if d.block && path == context {
			blocks = append(blocks, d)
		}
		return d.block && strings.HasPrefix(context, path+".")
	})
	return blocks
}

// settings returns the directives of these names in a list and in the blocks
// within. A table has none, and an upstream's are its own: keepalive_timeout is
// another thing there.
func settings(list []*directive, names []string) []*directive {
	var found []*directive
	walk(list, func(d *directive) bool {
		if !d.block && slices.Contains(names, d.name()) {
			found = append(found, d)
		}
		return !d.data() && d.name() != "upstream"
	})
	return found
}

// Put returns content with one directive set in the blocks of a context ("" is the
// top, "http.server" what it says); a nil value takes it away. Where it stands there,
// it takes the value in its place; of several in one block (listen, add_header),
// the first does and the others go. Where it stands in none of them, it is added
// to the first, which is made if need be. Further in, where it would override
// the value, it takes it too: the setting is to be this one.
func Put(content string, names []string, value *string, context string) (string, error) {
	top, err := parse(content)
	if err != nil {
		return "", err
	}
	text := ""
	if value != nil {
		if text, err = valueText(names[0], *value); err != nil {
			return "", err
		}
	}
	var blocks []*directive
	scope := top
	if context = contextIn(top, context); context != "" {
		blocks = blocksOf(top, context)
		scope = nil
		for _, b := range blocks {
			scope = append(scope, b.inner...)
		}
	}

	var changes []textedit.Change
	first := map[*directive]bool{} // the blocks that have the setting
	own := false                   // one of them is of the context itself
	for _, d := range settings(scope, names) {
		if value == nil || first[d.outer] {
			changes = append(changes, without(content, d))
			continue
		}
		first[d.outer] = true
		own = own || context == "" && d.outer == nil || slices.Contains(blocks, d.outer)
		changes = append(changes, replaced(content, d, names[0], text))
	}
	if value != nil && !own {
		addition, err := added(content, top, blocks, context, names[0]+space(text)+text+";")
		if err != nil {
			return "", err
		}
		changes = append(changes, addition)
		slices.SortStableFunc(changes, func(a, b textedit.Change) int { return a.Start - b.Start })
	}
	return textedit.Apply(content, changes), nil
}

func space(text string) string {
	if text == "" {
		return ""
	}
	return " "
}

// valueText checks that a value stays one: that it neither ends the directive
// nor opens a block.
func valueText(name, value string) (string, error) {
	value = strings.TrimSpace(value)
	text := name + space(value) + value + ";"
	d, _, next, err := nextDirective(text, 0)
	if err != nil || d == nil || d.block || next != len(text) || len(d.comments) > 0 || d.words[0].Span != (textedit.Piece(0, len(name))) {
		return "", fmt.Errorf("%s %s is not one directive of nginx.conf; what is special there (; { } # and quotes) has to stand in quotes", name, value)
	}
	return value, nil
}

// replaced gives a directive another value. Comments between its words stay.
func replaced(content string, d *directive, name, value string) textedit.Change {
	start := d.words[0].Start
	var kept strings.Builder
	for _, c := range d.comments {
		kept.WriteString(" " + strings.TrimRight(content[c.Start:c.End], "\r") + textedit.Ending(content) + indentAt(content, start))
	}
	if before := d.words[0].End; len(d.words) > 1 && len(d.comments) == 0 && name == content[start:before] {
		between := content[before:d.words[1].Start]
		if value == "" {
			between = ""
		}
		return textedit.Replace(start, d.end, name+between+value+";")
	}
	return textedit.Replace(start, d.end, name+space(value)+value+kept.String()+";")
}

// without takes a directive away, with its line if there is nothing else in it.
func without(content string, d *directive) textedit.Change {
	start, end := d.words[0].Start, d.end
	lineStart := strings.LastIndexByte(content[:start], '\n') + 1
	for end < len(content) && (content[end] == ' ' || content[end] == '\t') {
		end++
	}
	rest, _, _ := strings.Cut(content[end:], "\n")
	ends := strings.TrimRight(rest, "\r") == ""
	if len(d.comments) > 0 { // they stay, each in a line of its own
		var kept []string
		for _, c := range d.comments {
			kept = append(kept, strings.TrimRight(content[c.Start:c.End], "\r"))
		}
		line := textedit.Ending(content) + indentAt(content, start)
		text := strings.Join(kept, line)
		if !ends {
			text += line
		}
		return textedit.Replace(start, end, text)
	}
	if strings.TrimLeft(content[lineStart:start], " \t") == "" && ends {
		return textedit.Replace(lineStart, min(len(content), end+len(rest)+1), "")
	}
	return textedit.Replace(start, end, "")
}

// indentAt returns the blanks that the line of an offset begins with.
func indentAt(content string, offset int) string {
	line := content[strings.LastIndexByte(content[:offset], '\n')+1 : offset]
	return line[:len(line)-len(strings.TrimLeft(line, " \t"))]
}

// added adds a directive at the start of a context's first block.
func added(content string, top, blocks []*directive, context, text string) (textedit.Change, error) {
	ending := textedit.Ending(content)
	if context == "" {
		at := 0
		if len(top) > 0 { // behind the comments that a file begins with
			at = strings.LastIndexByte(content[:top[0].words[0].Start], '\n') + 1
			return textedit.Replace(at, at, text+ending), nil
		}
		if content != "" && !strings.HasSuffix(content, "\n") {
			text = ending + text
		}
		return textedit.Replace(len(content), len(content), text+ending), nil
	}
	if len(blocks) == 0 {
		if strings.Contains(context, ".") {
			return textedit.Change{}, fmt.Errorf("there is no block %s in the file; it may stand in a file that is included", strings.ReplaceAll(context, ".", " > "))
		}
		block := context + " {" + ending + "    " + text + ending + "}" + ending
		if content != "" && !strings.HasSuffix(content, "\n") {
			block = ending + block
		}
		return textedit.Replace(len(content), len(content), block), nil
	}
	b := blocks[0]
	outer := indentAt(content, b.words[0].Start)
	indent := outer + "    "
	if strings.HasPrefix(outer, "\t") {
		indent = outer + "\t"
	}
	if len(b.inner) > 0 {
		first := b.inner[0].words[0].Start
		if !strings.Contains(content[b.opens:first], "\n") {
			return textedit.Replace(b.opens, b.opens, " "+text), nil // all in one line
		}
		indent = indentAt(content, first)
	}
	line, _, several := strings.Cut(content[b.opens:], "\n")
	if behind := strings.TrimSpace(line); several && (behind == "" || behind[0] == '#') {
		at := b.opens + len(line) + 1
		return textedit.Replace(at, at, indent+text+ending), nil
	}
	return textedit.Replace(b.opens, b.end-1, ending+indent+text+ending+outer), nil
}

// Value returns what is written between name and semicolon, of the innermost
// directive, which is the one that counts there; of several of one depth, the
// first. What an upstream has is its own, and counts where nothing else does.
func Value(content string, names []string, context string) (string, bool) {
	top, _ := parse(content) // as Entries
	scope := top
	if context = contextIn(top, context); context != "" {
		scope = nil
		for _, b := range blocksOf(top, context) {
			scope = append(scope, b.inner...)
		}
	}
	found := settings(scope, names)
	if len(found) == 0 && context == "" {
		walk(top, func(d *directive) bool {
			if !d.block && slices.Contains(names, d.name()) {
				found = append(found, d)
			}
			return !d.data()
		})
	}
	var best *directive
	for _, d := range found {
		if best == nil || d.depth() > best.depth() {
			best = d
		}
	}
	if best == nil {
		return "", false
	}
	return best.value(content), true
}

// value returns what is written between name and semicolon, a comment between
// left out.
func (d *directive) value(content string) string {
	if len(d.words) == 1 {
		return ""
	}
	if len(d.comments) == 0 {
		return content[d.words[1].Start:d.words[len(d.words)-1].End]
	}
	var words []string
	for _, w := range d.words[1:] {
		words = append(words, content[w.Start:w.End])
	}
	return strings.Join(words, " ")
}

// Entries returns every directive but blocks and the lines of tables. Of a text that
// nginx would refuse, it returns those before the mistake.
func Entries(content string) []Entry {
	var entries []Entry
	top, _ := parse(content) // the directives before the mistake, as Entries promises
	walk(top, func(d *directive) bool {
		if d.outer != nil && d.outer.data() {
			return false
		}
		if !d.block {
			line, column := textedit.Place(content, d.words[0].Start)
			entries = append(entries, Entry{Name: d.name(), Value: d.value(content), Path: d.path(), Line: line, Column: column})
		}
		return true
	})
	return entries
}
