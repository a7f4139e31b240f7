package experiment

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"hakaru"
)

// Diff returns what a variant changes in what the person has, as a unified diff:
// in the config file where the service has one, else in its command line,
// environment and files as they are for the baseline. It is empty where nothing
// changes. Settings that only give the service an address leased by hakaru are
// left out.
func Diff(exp *hakaru.Experiment, variant string) (string, error) {
	fail := func(err error) (string, error) {
		return "", fmt.Errorf("show what variant %s changes: %w", variant, err)
	}
	old, err := plainRendering(exp, exp.Baseline)
	if err != nil {
		return fail(err)
	}
	now, err := plainRendering(exp, variant)
	if err != nil {
		return fail(err)
	}
	var b strings.Builder
	for i := range exp.Services {
		s := &exp.Services[i]
		before, after := old.find(s.Name), now.find(s.Name)
		if s.Settings != "" && after != nil {
			b.WriteString(Unified(s.Settings, sourceOf(exp, s.Settings), now.personal(s, after)))
		}
		switch {
		case before == nil && after == nil:
		case after == nil:
			fmt.Fprintf(&b, "--- service %s\n+++ service %s\n-%s\n", s.Name, s.Name, commandLine(before.unit.Argv))
		case before == nil:
			fmt.Fprintf(&b, "--- service %s\n+++ service %s\n+%s\n", s.Name, s.Name, commandLine(after.unit.Argv))
		default:
			b.WriteString(Unified(s.Name+": run", commandLine(before.unit.Argv)+"\n", commandLine(after.unit.Argv)+"\n"))
			b.WriteString(Unified(s.Name+": env", environment(before.unit.Env), environment(after.unit.Env)))
			for _, name := range slices.Sorted(maps.Keys(s.Files)) {
				b.WriteString(Unified(name, old.lines(s.Files[name]), now.lines(s.Files[name])))
			}
		}
	}
	return b.String(), nil
}

// plainRendering renders a variant under the first stratum.
func plainRendering(exp *hakaru.Experiment, variant string) (*rendering, error) {
	v, found := exp.Variant(variant)
	if !found || len(exp.Strata) == 0 {
		return nil, fmt.Errorf("the experiment has no variant %q", variant)
	}
	c, err := newContext(exp)
	if err != nil {
		return nil, err
	}
	r, err := c.rendering(v, exp.Strata[0])
	if err != nil {
		return nil, err
	}
	_, err = r.bundle()
	return r, err
}

func (r *rendering) find(service string) *renderedUnit {
	for i := range r.units {
		if r.units[i].unit.Service == service {
			return &r.units[i]
		}
	}
	return nil
}

// personal is the config file as the person would write it for the variant:
// without the settings whose values only hakaru can fill in.
func (r *rendering) personal(s *hakaru.Service, u *renderedUnit) string {
	leased := r.leased
	var list []hakaru.Setting
	for _, x := range u.settings {
		if x.Value != nil && slices.ContainsFunc(mentioned(*x.Value), func(n string) bool { return leased[n] }) {
			continue
		}
		list = append(list, x)
	}
	content := r.lines(sourceOf(r.exp, s.Settings))
	edited, err := u.kind.EditFile(content, list)
	if err != nil { // a kind without an editor: placeholders only
		return content
	}
	return edited
}

// commandLine writes words as they would be typed, our own names undone.
func commandLine(argv []string) string {
	var words []string
	for i, w := range argv {
		if i == 0 && w == "{hakaru.exe}" {
			w = "hakaru"
		}
		w = strings.ReplaceAll(w, "{hakaru.dir}/", "")
		// Braces need no quotes here: they are placeholders.
		if w == "" || strings.ContainsFunc(w, func(c rune) bool {
			letter := c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
			return !letter && !strings.ContainsRune("{}_-./:=@%+,", c)
		}) {
			w = "'" + strings.ReplaceAll(w, "'", `'\''`) + "'"
		}
		words = append(words, w)
	}
	return strings.Join(words, " ")
}

func environment(list []hakaru.EnvVar) string {
	var b strings.Builder
	for _, e := range list {
		if e.Value != nil {
			fmt.Fprintf(&b, "%s=%s\n", e.Name, *e.Value)
		}
	}
	return b.String()
}

// Unified is a unified diff of two texts with three lines of context, empty
// where they are the same.
func Unified(name, old, now string) string {
	if old == now {
		return ""
	}
	a, b := textLines(old), textLines(now)
	edits := compareLines(a, b)
	var out strings.Builder
	fmt.Fprintf(&out, "--- %s\n+++ %s\n", name, name)
	const around = 3
	for start := 0; start < len(edits); {
		if edits[start].op == ' ' {
			start++
			continue
		}
		// A hunk goes on while changes are at most twice the context apart.
		first, last := start, start
		for i := start; i < len(edits) && i <= last+2*around; i++ {
			if edits[i].op != ' ' {
				last = i
			}
		}
		first, end := max(first-around, 0), min(last+around+1, len(edits))
		oldStart, newStart := 1, 1
		for _, e := range edits[:first] {
			if e.op != '+' {
				oldStart++
			}
			if e.op != '-' {
				newStart++
			}
		}
		oldCount, newCount := 0, 0
		for _, e := range edits[first:end] {
			if e.op != '+' {
				oldCount++
			}
			if e.op != '-' {
				newCount++
			}
		}
		fmt.Fprintf(&out, "@@ -%s +%s @@\n", span(oldStart, oldCount), span(newStart, newCount))
		for _, e := range edits[first:end] {
			fmt.Fprintf(&out, "%c%s", e.op, e.line)
			if !strings.HasSuffix(e.line, "\n") {
				out.WriteString("\n\\ No newline at end of file\n")
			}
		}
		start = end
	}
	return out.String()
}

// span writes the range of a hunk as diff does: the line before an empty one,
// and no count where it is 1.
func span(start, count int) string {
	switch count {
	case 0:
		return fmt.Sprintf("%d,0", start-1)
	case 1:
		return fmt.Sprint(start)
	}
	return fmt.Sprintf("%d,%d", start, count)
}

func textLines(text string) []string {
	if text == "" {
		return nil
	}
	lines := strings.SplitAfter(text, "\n")
	if lines[len(lines)-1] == "" {
		lines = lines[:len(lines)-1]
	}
	return lines
}

type lineEdit struct {
	op   byte
	line string
}

// maxTable bounds the table of compareLines; beyond it the middle is replaced
// whole, which is a right diff, if a long one.
const maxTable = 4 << 20

// compareLines finds a longest common subsequence by the plain dynamic programme,
// after the common beginning and end are taken off.
func compareLines(a, b []string) []lineEdit {
	var edits, tail []lineEdit
	for len(a) > 0 && len(b) > 0 && a[0] == b[0] {
		edits = append(edits, lineEdit{' ', a[0]})
		a, b = a[1:], b[1:]
	}
	for len(a) > 0 && len(b) > 0 && a[len(a)-1] == b[len(b)-1] {
		tail = append(tail, lineEdit{' ', a[len(a)-1]})
		a, b = a[:len(a)-1], b[:len(b)-1]
	}
	slices.Reverse(tail)
	width := len(b) + 1
	var length []int32
	if (len(a)+1)*width <= maxTable {
		length = make([]int32, (len(a)+1)*width)
		for i := len(a) - 1; i >= 0; i-- {
			for j := len(b) - 1; j >= 0; j-- {
				if a[i] == b[j] {
					length[i*width+j] = length[(i+1)*width+j+1] + 1
				} else {
					length[i*width+j] = max(length[(i+1)*width+j], length[i*width+j+1])
				}
			}
		}
	}
	i, j := 0, 0
	for i < len(a) || j < len(b) {
		switch {
		case i < len(a) && j < len(b) && length != nil && a[i] == b[j]:
			edits = append(edits, lineEdit{' ', a[i]})
			i, j = i+1, j+1
		case i < len(a) && (j == len(b) || length == nil || length[(i+1)*width+j] >= length[i*width+j+1]):
			edits = append(edits, lineEdit{'-', a[i]})
			i++
		default:
			edits = append(edits, lineEdit{'+', b[j]})
			j++
		}
	}
	return append(edits, tail...)
}
