// Package layout holds what a report says as a document of sections, and lays
// it out: for a terminal, in its width and colours, or as Markdown.
//
// It takes paragraphs, bullets, facts, tables and blocks of text, each with the
// tone in which it is meant, and writes them onto an io.Writer. Whatever leaves
// through it is redacted, and cleaned of what a terminal would act upon: a text
// from a service or from a person's file may hold anything.
//
// It knows no run, no variant and no verdict, words nothing and prints no
// number: the sentences are report's.
package layout

import (
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"hakaru/internal/redact"
)

// A Document is what is said, before it is laid out for the terminal or as
// Markdown.
type Document []section

type section struct {
	title string
	parts []Part
}

// Part is one of *Paragraph, Bullets, *Table, Facts and *Block.
type Part interface {
	// each calls change on every text of the part and keeps what it returns.
	each(change func(string) string)
}

type (
	// Paragraph is text that is broken into lines.
	Paragraph struct {
		Text string
		Tone Tone
	}
	// Bullets are short texts, each with a dash before it.
	Bullets []Cell
	// Facts are pairs of a name and its value.
	Facts [][2]string
	// Block is text whose lines stay as they are: a file, a diff, an output.
	Block struct {
		Language string // of a fenced block in Markdown
		Text     string
	}
	// Table has a column for each text of its head.
	Table struct {
		Title string
		Head  []string
		Right []bool // by column: figures that are read from the right
		Rows  [][]Cell
	}
	// Cell is one text of a table or of bullets.
	Cell struct {
		Text string
		Tone Tone
	}
)

// Tone is what a text means for the reader; colour is made of it.
type Tone uint8

const (
	Plain Tone = iota
	Strong
	Good
	Bad
	Doubtful
	Faint
)

// Add appends a section; one without parts is left out, with its title.
func (d *Document) Add(title string, parts ...Part) {
	if len(parts) > 0 {
		*d = append(*d, section{title, parts})
	}
}

// safe makes every text of the document fit to leave: secrets redacted, control
// characters replaced.
func (d Document) safe() {
	for i := range d {
		d[i].title = safe(d[i].title)
		for _, p := range d[i].parts {
			p.each(safe)
		}
	}
}

func (p *Paragraph) each(change func(string) string) { p.Text = change(p.Text) }
func (p *Block) each(change func(string) string)     { p.Text = change(p.Text) }
func (p Bullets) each(change func(string) string) {
	for i := range p {
		p[i].Text = change(p[i].Text)
	}
}
func (p Facts) each(change func(string) string) {
	for i := range p {
		// Together, so that a telling name redacts its value.
		name := change(p[i][0])
		p[i][1] = change(p[i][1])
		if redact.Secret(p[i][0]) {
			p[i][1] = redact.Mask
		}
		p[i][0] = name
	}
}
func (p *Table) each(change func(string) string) {
	p.Title = change(p.Title)
	for _, row := range p.Rows {
		for i := range row {
			row[i].Text = change(row[i].Text)
		}
	}
}

// safe cleans first: a colour in the middle of a name would hide a secret.
func safe(text string) string { return redact.Text(clean(text)) }

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

// Nbsp holds together what must not be broken over two lines, "+12.4 %"; it is
// written as a plain blank.
const Nbsp = "\u00a0"

// Whole keeps a text from being broken over two lines.
func Whole(text string) string { return strings.ReplaceAll(text, " ", Nbsp) }

// Flat gives a text with plain blanks, for where it is not laid out.
func Flat(text string) string { return strings.ReplaceAll(text, Nbsp, " ") }
