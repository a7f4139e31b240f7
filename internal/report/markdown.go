package report

import (
	"bufio"
	"io"
	"strings"
)

// renderMarkdown lays a document out as GitHub's Markdown.
func renderMarkdown(w io.Writer, d document) error {
	d.safe()
	out := bufio.NewWriter(w) // keeps the first error; Flush reports it
	line := func(s string) {
		out.WriteString(strings.ReplaceAll(s, nbsp, " "))
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
			case *paragraph:
				text := escape(p.text)
				if p.tone == strong {
					text = "**" + text + "**"
				}
				line(text)
			case bullets:
				for _, c := range p {
					line("- " + escape(c.text))
				}
			case facts:
				for _, f := range p {
					line("- " + escape(f[0]) + ": " + escape(f[1]))
				}
			case *block:
				fence := "```"
				for strings.Contains(p.text, fence) {
					fence += "`"
				}
				line(fence + p.language)
				line(strings.TrimRight(p.text, "\n"))
				line(fence)
			case *table:
				if p.title != "" {
					line("**" + escape(p.title) + "**")
					line("")
				}
				row := func(cells []string) { line("| " + strings.Join(cells, " | ") + " |") }
				head, rule := make([]string, len(p.head)), make([]string, len(p.head))
				for i, h := range p.head {
					head[i], rule[i] = escape(h), "---"
					if p.right[i] {
						rule[i] = "---:"
					}
				}
				row(head)
				row(rule)
				for _, r := range p.rows {
					cells := make([]string, len(r))
					for i, c := range r {
						cells[i] = escape(c.text)
						if c.tone == good || c.tone == bad {
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
