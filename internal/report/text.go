package report

import (
	"bufio"
	"io"
	"strings"

	"charm.land/lipgloss/v2"
)

// renderText lays a document out for a terminal.
func renderText(w io.Writer, d document, style Style) error {
	d.safe()
	t := &textWriter{w: bufio.NewWriter(w), style: style}
	for i, s := range d {
		if i > 0 {
			t.line("")
		}
		indent := ""
		if s.title != "" {
			t.line(t.paint(strong, s.title))
			indent = "  "
		}
		for j, p := range s.parts {
			if _, isTable := p.(*table); j > 0 && isTable {
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
	s = strings.ReplaceAll(strings.TrimRight(s, " "), nbsp, " ")
	t.w.WriteString(s)
	t.w.WriteByte('\n')
}

func (t *textWriter) part(p part, indent string) {
	width := t.style.width()
	switch p := p.(type) {
	case *paragraph:
		for _, l := range wrap(p.text, width-len(indent)) {
			t.line(indent + t.paint(p.tone, l))
		}
	case bullets:
		for _, c := range p {
			for i, l := range wrap(c.text, width-len(indent)-2) {
				mark := "- "
				if i > 0 {
					mark = "  "
				}
				t.line(indent + mark + t.paint(c.tone, l))
			}
		}
	case facts:
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
				t.line(indent + t.paint(faint, pad(label, name, false)) + "  " + l)
			}
		}
	case *block:
		for l := range strings.SplitSeq(strings.TrimRight(p.text, "\n"), "\n") {
			tone := plain
			if p.language == "diff" {
				switch {
				case strings.HasPrefix(l, "+"):
					tone = good
				case strings.HasPrefix(l, "-"):
					tone = bad
				case strings.HasPrefix(l, "@@"):
					tone = faint
				}
			}
			t.line(indent + t.paint(tone, l))
		}
	case *table:
		t.table(p, indent)
	}
}

func (t *textWriter) table(p *table, indent string) {
	if p.title != "" {
		t.line(indent + t.paint(strong, p.title))
	}
	const gap = 2
	widths := fit(p, t.style.width()-len(indent)-gap*(len(p.head)-1))
	row := func(cells []cell) {
		lines, height := make([][]string, len(cells)), 0
		for i, c := range cells {
			lines[i] = wrap(c.text, widths[i])
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
				b.WriteString(t.paintPadded(c.tone, text, widths[i], p.right[i]))
			}
			t.line(b.String())
		}
	}
	head := make([]cell, len(p.head))
	for i, h := range p.head {
		head[i] = cell{h, faint}
	}
	row(head)
	for _, r := range p.rows {
		row(r)
	}
}

// fit gives each column the width of its longest text, and takes from the
// widest ones, down to their longest word, until the table fits.
func fit(p *table, width int) []int {
	n := len(p.head)
	want, least := make([]int, n), make([]int, n)
	see := func(i int, text string) {
		want[i] = max(want[i], lipgloss.Width(text))
		for _, word := range strings.Split(text, " ") {
			least[i] = max(least[i], lipgloss.Width(word))
		}
	}
	for i, h := range p.head {
		see(i, h)
	}
	for _, r := range p.rows {
		for i, c := range r {
			see(i, c.text)
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

func (t *textWriter) paintPadded(tone tone, text string, width int, right bool) string {
	blank := strings.Repeat(" ", max(0, width-lipgloss.Width(text)))
	if right {
		return blank + t.paint(tone, text)
	}
	return t.paint(tone, text) + blank
}

// paint colours with the terminal's own sixteen colours, so that they suit its
// background. No meaning is carried by colour alone.
func (t *textWriter) paint(tone tone, text string) string {
	if !t.style.Color || text == "" {
		return text
	}
	s := lipgloss.NewStyle().TabWidth(lipgloss.NoTabConversion)
	switch tone {
	case strong:
		s = s.Bold(true)
	case good:
		s = s.Foreground(lipgloss.Green)
	case bad:
		s = s.Foreground(lipgloss.Red)
	case doubtful:
		s = s.Foreground(lipgloss.Yellow)
	case faint:
		s = s.Faint(true)
	default:
		return text
	}
	return s.Render(text)
}
