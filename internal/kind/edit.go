package kind

import (
	"fmt"
	"slices"
	"strings"

	"hakaru"
)

// CanEditFile reports whether the kind can put a setting into a config file.
func (k *Kind) CanEditFile() bool { return k.Edit.File != "" }

// CanEditWords reports whether the kind can put a setting on a command line.
func (k *Kind) CanEditWords() bool { return k.Edit.Flag != "" }

// EditFile returns content with the settings put in, in the kind's style. The
// order of lines and all comments stay; a later setting of the same name wins.
func (k *Kind) EditFile(content string, settings []hakaru.Setting) (string, error) {
	for _, s := range settings {
		if s.Value != nil && strings.ContainsAny(*s.Value, "\r\n") {
			return "", fmt.Errorf("edit %s of kind %s: the value is more than one line", s.Name, k.Name)
		}
	}
	switch k.Edit.File {
	case "ini":
		for _, s := range settings {
			content = editINI(content, k.Edit.Section, k.names(s.Name), s.Value)
		}
		return content, nil
	}
	return "", fmt.Errorf("kind %s cannot edit a config file yet", k.Name)
}

// names returns a setting's name as written and all others it goes by.
func (k *Kind) names(name string) []string {
	names := []string{name}
	if s, known := k.Setting(name); known {
		for _, other := range append([]string{s.Name}, s.Synonyms...) {
			if other != name {
				names = append(names, other)
			}
		}
	}
	return names
}

// iniKey returns the key of an ini line, with its section; a comment, a blank
// line or a section header has none.
func iniLine(line string) (key, section string) {
	text := strings.TrimSpace(line)
	switch {
	case text == "", text[0] == '#', text[0] == ';':
		return "", ""
	case text[0] == '[' && strings.Contains(text, "]"):
		return "", text[1:strings.IndexByte(text, ']')]
	}
	key, _, _ = strings.Cut(text, "=")
	return strings.TrimSpace(key), ""
}

// editINI sets one key in the named section. The first line that has the key
// takes the value in its place, every further one goes, since programs differ on
// which of two counts. A missing key is added after the last key of the section,
// a missing section at the end.
func editINI(content, section string, names []string, value *string) string {
	lines := strings.SplitAfter(content, "\n")
	if lines[len(lines)-1] == "" {
		lines = lines[:len(lines)-1]
	}
	ending := "\n"
	if strings.Contains(content, "\r\n") {
		ending = "\r\n"
	}
	var out []string
	inside, done := section == "", value == nil
	insert := -1 // where in out a missing key goes
	between := " = "
	if inside {
		insert = 0
	}
	for _, line := range lines {
		key, header := iniLine(line)
		switch {
		case header != "" || strings.HasPrefix(strings.TrimSpace(line), "["):
			inside = header == section
		case inside && slices.Contains(names, key):
			if done {
				continue
			}
			done = true
			body := strings.TrimRight(line, "\r\n")
			start := strings.Index(body, key)
			separator, _ := separatorOf(body[start+len(key):])
			line = body[:start] + names[0] + separator + *value + line[len(body):]
		case inside && key != "":
			if separator, found := separatorOf(line[strings.Index(line, key)+len(key):]); found {
				between = separator
			}
		}
		out = append(out, line)
		if inside && strings.TrimSpace(line) != "" {
			insert = len(out)
		}
	}
	if done {
		return strings.Join(out, "")
	}
	if n := len(out); n > 0 && !strings.HasSuffix(out[n-1], "\n") {
		out[n-1] += ending
	}
	added := names[0] + between + *value + ending
	if insert < 0 {
		return strings.Join(out, "") + "[" + section + "]" + ending + added
	}
	return strings.Join(slices.Insert(out, insert, added), "")
}

// separatorOf returns the equals sign at the start of text with the blanks
// around it.
func separatorOf(text string) (string, bool) {
	trimmed := strings.TrimLeft(text, " \t")
	if !strings.HasPrefix(trimmed, "=") {
		return " = ", false
	}
	after := trimmed[1:]
	blanks := len(after) - len(strings.TrimLeft(after, " \t"))
	return text[:len(text)-len(trimmed)+1+blanks], true
}

// EditWords returns a command line with the settings put in as flags: in place
// where the flag is there already ("--name=value" or "--name value"), at the end
// where not. A null takes the flag away.
func (k *Kind) EditWords(words []string, settings []hakaru.Setting) ([]string, error) {
	if k.Edit.Flag == "" {
		return nil, fmt.Errorf("kind %s takes no settings on its command line", k.Name)
	}
	words = slices.Clone(words)
	for _, s := range settings {
		at := -1
		for i := 0; i < len(words); i++ {
			name, length := flagAt(words, i)
			if !slices.Contains(k.names(s.Name), name) {
				continue
			}
			words = slices.Delete(words, i, i+length)
			if at < 0 {
				at = i
			}
			i--
		}
		if s.Value == nil {
			continue
		}
		if at < 0 {
			at = len(words)
		}
		form := k.Edit.Flag
		if *s.Value == "true" && k.Edit.True != "" {
			form = k.Edit.True
		}
		word := hakaru.Names{"name": s.Name, "value": *s.Value}.Expand(form)
		words = slices.Insert(words, at, word)
	}
	return words, nil
}

// flagAt returns the name of the flag at words[i], and how many words it takes.
func flagAt(words []string, i int) (name string, length int) {
	text, dashes := strings.CutPrefix(words[i], "--")
	if !dashes || text == "" {
		return "", 0
	}
	if name, _, equals := strings.Cut(text, "="); equals {
		return name, 1
	}
	if i+1 < len(words) && !strings.HasPrefix(words[i+1], "-") {
		return text, 2
	}
	return text, 1
}

// Value returns what a command line and a config file, both as they will be
// used, say about a setting. The command line counts more.
func (k *Kind) Value(words []string, file, name string) (string, bool) {
	names := k.names(name)
	for i := len(words) - 1; i >= 0; i-- {
		flag, length := flagAt(words, i)
		if k.Edit.Flag == "" || !slices.Contains(names, flag) {
			continue
		}
		if _, value, equals := strings.Cut(words[i], "="); equals {
			return value, true
		}
		if length == 2 {
			return words[i+1], true
		}
		return "true", true
	}
	if k.Edit.File != "ini" {
		return "", false
	}
	found, value, inside := false, "", k.Edit.Section == ""
	for line := range strings.Lines(file) {
		key, header := iniLine(line)
		if header != "" {
			inside = header == k.Edit.Section
		}
		if inside && slices.Contains(names, key) {
			_, value, _ = strings.Cut(line, "=")
			value, found = strings.TrimSpace(value), true
		}
	}
	return value, found
}

// Address returns where a service listens whose command line and config file
// are these; empty where the kind does not know.
func (k *Kind) Address(words []string, file string) string {
	if k.Listen.Setting == "" {
		return ""
	}
	if value, found := k.Value(words, file, k.Listen.Setting); found {
		return value
	}
	return k.Listen.Default
}
