package layout

import (
	"bufio"
	"io"
	"strings"

	"charm.land/lipgloss/v2"
)

// Style is how a text is to look on the terminal.
type Style struct {
	Color bool
	Width int // columns; 0: 80
}

func (s Style) width() int {
	if s.Width <= 0 {
		return 80
	}
	return max(s.Width, 40)
}

// Text lays a document out for a terminal. The document's texts are made safe
// first, in place.
func Text(w io.Writer, d Document, style Style) error {
	d.safe()
	t := &textWriter{w: bufio.NewWriter(w), style: style}
	for i, s := range d {
		if i > 0 {
			t.line("")
		}
		indent := ""
		if s.title != "" {
			t.line(t.paint(Strong, s.title))
			indent = "  "
		}
		for j, p := range s.parts {
			if _, isTable := p.(*Table); j > 0 && isTable {
				t.line("")
			}
			t.part(p, indent)
		}
	}
	return t.w.Flush()
}

type textWriter struct {
	w     *bufio.Writer // keeps the first error; Flush reports it
	style Style
}

func (t *textWriter) line(s string) {
	s = Flat(strings.TrimRight(s, " "))
	t.w.WriteString(s)
	t.w.WriteByte('\n')
}

func (t *textWriter) part(p Part, indent string) {
	width := t.style.width()
	switch p := p.(type) {
	case *Paragraph:
		for _, l := range wrap(p.Text, width-len(indent)) {
			t.line(indent + t.paint(p.Tone, l))
		}
	case Bullets:
		for _, c := range p {
			for i, l := range wrap(c.Text, width-len(indent)-2) {
				mark := "- "
				if i > 0 {
					mark = "  "
				}
				t.line(indent + mark + t.paint(c.Tone, l))
			}
		}
	case Facts:
		name := 0
		for _, f := range p {
			name = max(name, lipgloss.Width(f[0]))
		}
		for _, f := range p {
			for i, l := range wrap(f[1], width-len(indent)-name-2) {
				label := ""
				if i == 0 {
					label = f[0]
				}
				t.line(indent + t.paint(Faint, pad(label, name, false)) + "  " + l)
			}
		}
	case *Block:
		for l := range strings.SplitSeq(strings.TrimRight(p.Text, "\n"), "\n") {
			tone := Plain
			if p.Language == "diff" {
				switch {
				case strings.HasPrefix(l, "+"):
					tone = Good
				case strings.HasPrefix(l, "-"):
					tone = Bad
				case strings.HasPrefix(l, "@@"):
					tone = Faint
				}
			}
			t.line(indent + t.paint(tone, l))
		}
	case *Table:
		t.table(p, indent)
	}
}

func (t *textWriter) table(p *Table, indent string) {
	if p.Title != "" {
		t.line(indent + t.paint(Strong, p.Title))
	}
	const gap = 2
	widths := fit(p, t.style.width()-len(indent)-gap*(len(p.Head)-1))
	row := func(cells []Cell) {
		lines, height := make([][]string, len(cells)), 0
		for i, c := range cells {
			lines[i] = wrap(c.Text, widths[i])
			height = max(height, len(lines[i]))
		}
		for n := range height {
			var b strings.Builder
			b.WriteString(indent)
			for i, c := range cells {
				text := ""
				if n < len(lines[i]) {
					text = lines[i][n]
				}
				if i > 0 {
					b.WriteString(strings.Repeat(" ", gap))
				}
				b.WriteString(t.paintPadded(c.Tone, text, widths[i], p.Right[i]))
			}
			t.line(b.String())
		}
	}
	head := make([]Cell, len(p.Head))
	for i, h := range p.Head {
		head[i] = Cell{h, Faint}
	}
	row(head)
	for _, r := range p.Rows {
		row(r)
	}
}

// fit gives each column the width of its longest text, and takes from the
// widest ones, down to their longest word, until the table fits.
func fit(p *Table, width int) []int {
	n := len(p.Head)
	want, least := make([]int, n), make([]int, n)
	see := func(i int, text string) {
		want[i] = max(want[i], lipgloss.Width(text))
		for _, word := range strings.Split(text, " ") {
			least[i] = max(least[i], lipgloss.Width(word))
		}
	}
	for i, h := range p.Head {
		see(i, h)
	}
	for _, r := range p.Rows {
		for i, c := range r {
			see(i, c.Text)
		}
	}
	for {
		total, widest := 0, -1
		for i := range want {
			total += want[i]
			if want[i] > least[i] && (widest < 0 || want[i] > want[widest]) {
				widest = i
			}
		}
		if total <= width || widest < 0 {
			return want
		}
		want[widest]--
	}
}

// wrap breaks text at blanks into lines of at most width columns; a longer word
// stays whole, so that it can be copied.
func wrap(text string, width int) []string {
	var lines []string
	for l := range strings.SplitSeq(text, "\n") {
		line := ""
		for _, word := range strings.Split(l, " ") {
			switch {
			case line == "":
				line = word
			case lipgloss.Width(line)+1+lipgloss.Width(word) <= width:
				line += " " + word
			default:
				lines = append(lines, line)
				line = word
			}
		}
		lines = append(lines, line)
	}
	return lines
}

func pad(text string, width int, right bool) string {
	blank := strings.Repeat(" ", max(0, width-lipgloss.Width(text)))
	if right {
		return blank + text
	}
	return text + blank
}

func (t *textWriter) paintPadded(tone Tone, text string, width int, right bool) string {
	blank := strings.Repeat(" ", max(0, width-lipgloss.Width(text)))
	if right {
		return blank + t.paint(tone, text)
	}
	return t.paint(tone, text) + blank
}

// paint colours with the terminal's own sixteen colours, so that they suit its
// background. No meaning is carried by colour alone.
func (t *textWriter) paint(tone Tone, text string) string {
	if !t.style.Color || text == "" {
		return text
	}
	s := lipgloss.NewStyle().TabWidth(lipgloss.NoTabConversion)
	switch tone {
	case Strong:
		s = s.Bold(true)
	case Good:
		s = s.Foreground(lipgloss.Green)
	case Bad:
		s = s.Foreground(lipgloss.Red)
	case Doubtful:
		s = s.Foreground(lipgloss.Yellow)
	case Faint:
		s = s.Faint(true)
	default:
		return text
	}
	return s.Render(text)
}
