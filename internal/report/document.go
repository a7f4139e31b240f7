package report

import (
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// A document is what a report says, before it is laid out for the terminal or
// as Markdown.
type document []section

type section struct {
	title string
	parts []part
}

// part is one of paragraph, bullets, table, facts and block.
type part interface {
	// each calls change on every text of the part and keeps what it returns.
	each(change func(string) string)
}

type (
	paragraph struct {
		text string
		tone tone
	}
	bullets []cell
	facts   [][2]string // name, value
	block   struct {
		language string // of a fenced block in Markdown
		text     string
	}
	table struct {
		title string
		head  []string
		right []bool // by column: figures that are read from the right
		rows  [][]cell
	}
	cell struct {
		text string
		tone tone
	}
)

// tone is what a text means for the reader; colour is made of it.
type tone uint8

const (
	plain tone = iota
	strong
	good
	bad
	doubtful
	faint
)

func (d *document) add(title string, parts ...part) {
	if len(parts) > 0 {
		*d = append(*d, section{title, parts})
	}
}

// safe makes every text of the document fit to leave: secrets redacted, control
// characters replaced.
func (d document) safe() {
	for i := range d {
		d[i].title = safe(d[i].title)
		for _, p := range d[i].parts {
			p.each(safe)
		}
	}
}

func (p *paragraph) each(change func(string) string) { p.text = change(p.text) }
func (p *block) each(change func(string) string)     { p.text = change(p.text) }
func (p bullets) each(change func(string) string) {
	for i := range p {
		p[i].text = change(p[i].text)
	}
}
func (p facts) each(change func(string) string) {
	for i := range p {
		// Together, so that a telling name redacts its value.
		name := change(p[i][0])
		p[i][1] = change(p[i][1])
		if Secret(p[i][0]) {
			p[i][1] = Redacted
		}
		p[i][0] = name
	}
}
func (p *table) each(change func(string) string) {
	p.title = change(p.title)
	for _, row := range p.rows {
		for i := range row {
			row[i].text = change(row[i].text)
		}
	}
}

// safe cleans first: a colour in the middle of a name would hide a secret.
func safe(text string) string { return Redact(clean(text)) }

// colours are the sequences that services put around their log lines.
var colours = regexp.MustCompile("\x1b\\[[0-9;]*m")

// clean drops colours and replaces what else a terminal would act upon: a
// service's output must not move the cursor or set the window's title. Tabs and
// line ends stay.
func clean(text string) string {
	text = strings.ReplaceAll(text, "\r\n", "\n")
	text = colours.ReplaceAllString(text, "")
	var b strings.Builder
	for i, r := range text {
		switch {
		case r == '\n' || r == '\t':
			b.WriteRune(r)
		case r == utf8.RuneError && !strings.HasPrefix(text[i:], "\uFFFD"):
			b.WriteRune('\uFFFD')
		case unicode.IsControl(r), r >= '\u202a' && r <= '\u202e', r >= '\u2066' && r <= '\u2069': // and what turns the direction of writing
			b.WriteRune('\uFFFD')
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

// nbsp holds together what must not be broken over two lines, "+12.4 %"; it is
// written as a plain blank.
const nbsp = "\u00a0"

func whole(text string) string { return strings.ReplaceAll(text, " ", nbsp) }
