package edit

import (
	"fmt"
	"slices"
	"strings"
)

// Words is how settings are written on a command line.
type Words struct {
	Flag string // "--{name}={value}", "--{name} {value}": a blank parts two words
	True string // "--{name}": how a true is written, where not as the others
	// Switches are the flags that take no value: the word behind one is not its.
	Switches []string
	// Programs are how command lines of the program begin ("python -m gunicorn"). What
	// stands before one of them (taskset -c 0, nice -n 5) has flags of its own.
	Programs []string
	// Style is MyCnf where "-" and "_" are the same in names and --skip-x is --x
	// switched off; empty: names are as they are written.
	Style Style
}

// flag is a flag found on a command line.
type flag struct {
	at, length int
	value      string
	valued     bool
}

// Put returns a command line with the edits made: in place where the flag is
// there already, at the end, or before a bare "--", where not. A null takes it
// away, and so does a false of a flag that has a form for true.
func (w Words) Put(words []string, edits []Edit) ([]string, error) {
	if w.Flag == "" {
		return nil, fmt.Errorf("edit a command line: no form of a flag is known")
	}
	words = slices.Clone(words)
	for _, e := range edits {
		if len(e.Names) == 0 || strings.Trim(e.Names[0], "-") == "" || strings.ContainsAny(e.Names[0], "= \t\r\n\x00") {
			return nil, fmt.Errorf("edit a command line: %q is no name of a flag", e.Names)
		}
		if e.Value != nil && strings.Contains(*e.Value, "\x00") {
			return nil, fmt.Errorf("edit %s of a command line: the value holds a zero byte", e.Names[0])
		}
		truth := w.True != "" && e.Value != nil && (*e.Value == "true" || *e.Value == "false")
		at := -1
		for {
			found := w.find(words, e.Names, truth)
			if len(found) == 0 {
				break
			}
			at = found[0].at
			last := found[len(found)-1]
			words = slices.Delete(words, last.at, last.at+last.length)
		}
		if e.Value == nil || truth && *e.Value == "false" {
			continue
		}
		if at < 0 {
			at = w.endOfFlags(words)
		}
		words = slices.Insert(words, at, w.write(e.Names[0], *e.Value, truth)...)
	}
	return words, nil
}

// write returns the words of one flag.
func (w Words) write(name, value string, truth bool) []string {
	form := w.Flag
	if truth {
		form = w.True
	}
	if strings.HasPrefix(name, "-") {
		if truth {
			return []string{name}
		}
		return []string{name, value}
	}
	var out []string
	for part := range strings.FieldsSeq(form) {
		part = strings.ReplaceAll(part, "{name}", name)
		out = append(out, strings.ReplaceAll(part, "{value}", value))
	}
	return out
}

// own is where the words of the program itself begin: behind its name. Where that
// is not among them, any word may be one.
func (w Words) own(words []string) int {
	for _, program := range w.Programs {
		name := strings.Fields(program)
		for i := 0; len(name) > 0 && i+len(name) <= len(words); i++ {
			if words[i][strings.LastIndexByte(words[i], '/')+1:] == name[0] && slices.Equal(words[i+1:i+len(name)], name[1:]) {
				return i + len(name)
			}
		}
	}
	return 0
}

// endOfFlags is where a flag can be added: before the bare "--" that ends them.
func (w Words) endOfFlags(words []string) int {
	own := w.own(words)
	if i := slices.Index(words[own:], "--"); i >= 0 {
		return own + i
	}
	return len(words)
}

// find returns every place of a flag. A word behind it is its value unless it
// begins with a dash; a dash alone is one (standard output). A short flag may
// have its value attached ("-w4").
func (w Words) find(words, names []string, truth bool) []flag {
	var found []flag
	end := w.endOfFlags(words)
	bare := truth || slices.ContainsFunc(names, func(n string) bool { return slices.Contains(w.Switches, n) })
	for i := w.own(words); i < end; i++ {
		f, ok := w.flagAt(words[i], names, bare)
		if !ok {
			continue
		}
		f.at, f.length = i, 1
		if !f.valued && !bare && i+1 < end && isValue(words[i+1]) {
			f.value, f.valued, f.length = words[i+1], true, 2
		}
		found = append(found, f)
		i += f.length - 1
	}
	return found
}

// flagAt reads one word as a flag of one of these names.
func (w Words) flagAt(text string, names []string, bare bool) (flag, bool) {
	for _, short := range names {
		if !strings.HasPrefix(short, "-") {
			continue
		}
		value, found := strings.CutPrefix(text, short)
		switch {
		case !found:
		case value == "":
			return flag{}, true
		case len(short) == 2 && !bare && text[1] != '-':
			return flag{value: value, valued: true}, true
		}
	}
	name, dashes := strings.CutPrefix(text, "--")
	if !dashes && strings.HasPrefix(w.Flag, "-") && !strings.HasPrefix(w.Flag, "--") {
		name, dashes = strings.CutPrefix(text, "-")
	}
	if !dashes {
		return flag{}, false
	}
	name, value, equals := strings.Cut(name, "=")
	if w.Style == MyCnf {
		v, sets := cnfSets(name, value, names)
		return flag{value: v, valued: equals || v != value}, sets
	}
	return flag{value: value, valued: equals}, slices.Contains(names, name)
}

func isValue(word string) bool { return word == "-" || !strings.HasPrefix(word, "-") }

// Count returns how often a command line has a setting.
func (w Words) Count(words []string, names []string) int { return len(w.find(words, names, false)) }

// Value returns what a command line says about a setting: the last flag of it,
// "true" for one without a value.
func (w Words) Value(words []string, names []string) (string, bool) {
	found := w.find(words, names, false)
	if len(found) == 0 {
		return "", false
	}
	if last := found[len(found)-1]; last.valued {
		return last.value, true
	}
	return "true", true
}
