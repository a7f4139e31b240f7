package layout

import (
	"bufio"
	"io"
	"strings"
)

// Markdown lays a document out as GitHub's Markdown. The document's texts are
// made safe first, in place.
func Markdown(w io.Writer, d Document) error {
	d.safe()
	out := bufio.NewWriter(w) // keeps the first error; Flush reports it
	line := func(s string) {
		out.WriteString(Flat(s))
		out.WriteByte('\n')
	}
	for i, s := range d {
		if i > 0 {
			line("")
		}
		if s.title != "" {
			line("### " + escape(s.title))
			line("")
		}
		for j, p := range s.parts {
			if j > 0 {
				line("")
			}
			switch p := p.(type) {
			case *Paragraph:
				text := escape(p.Text)
				if p.Tone == Strong {
					text = "**" + text + "**"
				}
				line(text)
			case Bullets:
				for _, c := range p {
					line("- " + escape(c.Text))
				}
			case Facts:
				for _, f := range p {
					line("- " + escape(f[0]) + ": " + escape(f[1]))
				}
			case *Block:
				fence := "```"
				for strings.Contains(p.Text, fence) {
					fence += "`"
				}
				line(fence + p.Language)
				line(strings.TrimRight(p.Text, "\n"))
				line(fence)
			case *Table:
				if p.Title != "" {
					line("**" + escape(p.Title) + "**")
					line("")
				}
				row := func(cells []string) { line("| " + strings.Join(cells, " | ") + " |") }
				head, rule := make([]string, len(p.Head)), make([]string, len(p.Head))
				for i, h := range p.Head {
					head[i], rule[i] = escape(h), "---"
					if p.Right[i] {
						rule[i] = "---:"
					}
				}
				row(head)
				row(rule)
				for _, r := range p.Rows {
					cells := make([]string, len(r))
					for i, c := range r {
						cells[i] = escape(c.Text)
						if c.Tone == Good || c.Tone == Bad {
							cells[i] = "**" + cells[i] + "**"
						}
					}
					row(cells)
				}
			}
		}
	}
	return out.Flush()
}

var markdownEscapes = strings.NewReplacer(`\`, `\\`, "`", "\\`", "*", `\*`, "_", `\_`, "<", "&lt;", "|", `\|`, "[", `\[`, "]", `\]`, "\n", " ", "~", `\~`, "#", `\#`)

// escape keeps texts from being read as markup.
func escape(text string) string { return markdownEscapes.Replace(text) }
