package kind

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"hakaru"
	"hakaru/internal/edit"
)

// CanEditFile reports whether the kind can put a setting into a config file.
func (k *Kind) CanEditFile() bool { return k.Edit.File != "" }

// CanEditWords reports whether the kind can put a setting on a command line.
func (k *Kind) CanEditWords() bool { return k.Edit.Flag != "" }

func (k *Kind) file() edit.File {
	return edit.File{Style: k.Edit.File, Sections: k.Edit.Sections}
}

func (k *Kind) words(s Setting) edit.Words {
	w := edit.Words{Flag: k.Edit.Flag, Switches: k.switches, Programs: k.Programs}
	if k.Edit.File == edit.MyCnf {
		w.Style = edit.MyCnf
	}
	if s.isSwitch() {
		w.True = k.Edit.Switch
	}
	return w
}

// flagOnly stands for the name in the config file of a setting that has none.
const flagOnly = "-"

func (s *Setting) isSwitch() bool { return s.Switch || s.Type == Bool }

// inFile are the names of a setting in the config file, the one to write first.
func (k *Kind) inFile(name string) []string {
	s := k.Describe(name)
	first := name
	switch s.File {
	case "":
	case flagOnly:
		return []string{flagOnly}
	default:
		first = s.File
	}
	return others(first, name, s)
}

// onLine are the names of a setting on the command line, the one to write first.
func (k *Kind) onLine(name string) []string {
	s := k.Describe(name)
	first := name
	if s.Flag != "" {
		first = s.Flag
	}
	return others(first, name, s)
}

func others(first, name string, s Setting) []string {
	names := []string{first}
	for _, other := range append([]string{name}, s.allNames()...) {
		if !slices.Contains(names, other) {
			names = append(names, other)
		}
	}
	return names
}

// EditFile returns content with the settings put in, in the kind's style. The
// order of lines and all comments stay; a later setting of the same name wins.
func (k *Kind) EditFile(content string, settings []hakaru.Setting) (string, error) {
	if !k.CanEditFile() {
		return "", fmt.Errorf("kind %s cannot edit a config file", k.Name)
	}
	for _, s := range settings {
		var edits []edit.Edit
		names := slices.DeleteFunc(k.inFile(s.Name), func(n string) bool { return strings.HasPrefix(n, "-") })
		if s.Value != nil {
			value := k.mask(*s.Value)
			if k.Edit.File == edit.Assign && k.Describe(s.Name).Type == Bool && k.Describe(s.Name).Check(value) == nil && !strings.Contains(value, "{") {
				value = strconv.FormatBool(!Off(value)) // "on" is a string to Python
			}
			s.Value = &value
		}
		for _, context := range k.contexts(content, s.Name) {
			edits = append(edits, edit.Edit{Names: names, Value: s.Value, Context: context})
		}
		edited, err := k.file().Put(k.mask(content), edits)
		if err != nil {
			return "", err
		}
		content = unmask(edited)
	}
	return content, nil
}

// EditCopy is EditFile for a copy that only the program reads: what nginx says of
// a line is to be true of the person's own file too, so a line that is put in
// shares one with the next.
func (k *Kind) EditCopy(content string, settings []hakaru.Setting) (string, error) {
	for _, s := range settings {
		edited, err := k.EditFile(content, []hakaru.Setting{s})
		if err != nil {
			return "", err
		}
		before, after := strings.SplitAfter(content, "\n"), strings.SplitAfter(edited, "\n")
		if i := firstDifference(before, after); k.Edit.File == edit.Nginx && len(after) == len(before)+1 && i+1 < len(after) {
			after[i] = strings.TrimRight(after[i], "\r\n") + " "
			edited = strings.Join(after, "")
		}
		content = edited
	}
	return content, nil
}

func firstDifference(a, b []string) int {
	i := 0
	for i < len(a) && i < len(b) && a[i] == b[i] {
		i++
	}
	return i
}

// mask makes placeholders that are still to be filled in plain words to nginx,
// where a brace begins a block; no byte more or less, so that places stay.
func (k *Kind) mask(text string) string {
	if k.Edit.File != edit.Nginx {
		return text
	}
	return placeholder.ReplaceAllString(text, "\x01$1\x02")
}

func unmask(text string) string {
	return strings.NewReplacer("\x01", "{", "\x02", "}").Replace(text)
}

// A block that holds one bare word is none of nginx: a directive ends in ";".
var placeholder = regexp.MustCompile(`\{([A-Za-z_][A-Za-z0-9_.-]*)\}`)

// keys are the keys of a config file, placeholders as they are.
func (k *Kind) keys(content string) []edit.Key {
	keys := k.file().Keys(k.mask(content))
	for i := range keys {
		keys[i].Name, keys[i].Value = unmask(keys[i].Name), unmask(keys[i].Value)
	}
	return keys
}

// keysOf are the lines of a config file that have a setting, in the sections that
// the program reads.
func (k *Kind) keysOf(content, name string) []edit.Key {
	if !k.CanEditFile() || content == "" {
		return nil
	}
	names := k.inFile(name)
	return slices.DeleteFunc(k.keys(content), func(key edit.Key) bool {
		return len(k.Edit.Sections) > 0 && !slices.Contains(k.Edit.Sections, key.Section) ||
			!slices.ContainsFunc(names, func(n string) bool { return k.normal(n) == k.normal(key.Name) })
	})
}

func (k *Kind) inContent(content, name string) (string, bool) {
	if !k.CanEditFile() {
		return "", false
	}
	content, file := k.mask(content), k.file()
	// Where it stands in stream as well, that is another server's.
	if k.Edit.File == edit.Nginx {
		file.Context, _, _ = strings.Cut(k.Describe(name).In, ".")
	}
	value, found := file.Value(content, k.inFile(name))
	if !found && file.Context != "" { // a file that is drawn in has no such block
		file.Context = ""
		value, found = file.Value(content, k.inFile(name))
	}
	return unmask(value), found
}

// contexts are the blocks of the file that a setting is put into: where it
// stands already, since what an inner block says counts more, else where it is
// usual.
func (k *Kind) contexts(content, name string) []string {
	if k.Edit.File != edit.Nginx {
		return []string{""}
	}
	// keepalive_timeout of an upstream is another thing than that of http, and
	// stream and mail are servers of their own.
	usual := k.Describe(name).In
	root, _, _ := strings.Cut(usual, ".")
	var in, elsewhere []string
	for _, key := range k.keysOf(content, name) {
		to := &in
		first, _, _ := strings.Cut(key.Section, ".")
		if upstream := strings.HasSuffix(key.Section, ".upstream"); upstream != strings.HasSuffix(usual, ".upstream") || first != root && first != "" && root != "" {
			to = &elsewhere
		}
		if !slices.Contains(*to, key.Section) {
			*to = append(*to, key.Section)
		}
	}
	switch {
	case in != nil:
		return in
	case elsewhere != nil:
		return elsewhere
	}
	return []string{usual}
}

// putInto are the lines of a config file that a setting is put into.
func (k *Kind) putInto(content, name string) []edit.Key {
	contexts := k.contexts(content, name)
	return slices.DeleteFunc(k.keysOf(content, name), func(key edit.Key) bool {
		return k.Edit.File == edit.Nginx && !slices.Contains(contexts, key.Section)
	})
}

// EditWords returns a command line with the settings put in as flags: in place
// where the flag is there already, at the end where not. A null takes the flag
// away.
func (k *Kind) EditWords(words []string, settings []hakaru.Setting) ([]string, error) {
	if !k.CanEditWords() {
		return nil, fmt.Errorf("kind %s takes no settings on its command line", k.Name)
	}
	words = slices.Clone(words)
	for _, s := range settings {
		known := k.Describe(s.Name)
		names := k.onLine(s.Name)
		if known.isSwitch() && k.Edit.Switch != "" && s.Value != nil {
			value := strconv.FormatBool(!Off(*s.Value))
			s.Value = &value
		}
		if known.File != "" && known.Flag == "" && known.Name == known.File {
			return nil, fmt.Errorf("%s has no flag for %s: it can only be in the config file", k.Name, s.Name)
		}
		edited, err := k.words(known).Put(words, []edit.Edit{{Names: names, Value: s.Value}})
		if err != nil {
			return nil, err
		}
		words = edited
	}
	return words, nil
}

// OnLine reports whether the command line has the setting already: then it is
// changed there, since it counts more than the file.
func (k *Kind) OnLine(words []string, name string) bool {
	if !k.CanEditWords() {
		return false
	}
	_, found := k.words(k.Describe(name)).Value(words, k.onLine(name))
	return found
}

// Value returns what a command line and a config file, both as they will be
// used, say about a setting. The command line counts more.
func (k *Kind) Value(words []string, content, name string) (string, bool) {
	if k.CanEditWords() {
		if value, found := k.words(k.Describe(name)).Value(words, k.onLine(name)); found {
			return value, true
		}
	}
	return k.inContent(content, name)
}

// Relocate returns a config file as it has to read when its copy stands
// elsewhere; original is its absolute path.
func (k *Kind) Relocate(content, original string) string {
	if !k.CanEditFile() {
		return content
	}
	return unmask(k.file().Relocate(k.mask(content), original))
}

// Line is the setting as it stands in the config file, the last one where it does
// more than once; empty where it does not.
func (k *Kind) Line(content, name string) string {
	if !k.CanEditFile() {
		return ""
	}
	found, lines := "", strings.Split(content, "\n")
	for _, key := range k.putInto(content, name) {
		if key.Line > len(lines) {
			continue
		}
		found = strings.TrimSpace(lines[key.Line-1])
		if k.Edit.File == edit.Nginx { // a line may hold several
			found = lines[key.Line-1][key.Column-1:]
			if end := strings.IndexByte(found, ';'); end >= 0 {
				found = found[:end+1]
			}
		}
	}
	return found
}

// RunFor is the command where an experiment has none, for a config file with this
// content.
func (k *Kind) RunFor(content string) string {
	for name, run := range k.RunUnless {
		if _, found := k.Value(nil, content, name); found {
			return run
		}
	}
	return k.Run
}

// OwnFiles are the settings by which a config file is kept from sharing files
// with another running service.
func (k *Kind) OwnFiles(content string) []hakaru.Setting {
	var out []hakaru.Setting
	for _, p := range k.Private {
		if _, found := k.inContent(content, p.Name); !found && !p.Always {
			continue
		}
		s := hakaru.Setting{Name: p.Name, Level: "null"}
		if p.Value != "" {
			s.Level, s.Value = p.Value, &p.Value
		}
		out = append(out, s)
	}
	return out
}

// Stray is a key of a config file that the program does not have, and ignores.
type Stray struct {
	edit.Key
	Near string // the name that may be meant
	// Sure says that it can hardly be anything but a mistake.
	Sure bool
}

// Strays are the keys of a config file that are no settings of a program that
// ignores those. A key that the file itself uses as a
// variable is none.
func (k *Kind) Strays(content string) []Stray {
	if !k.Ignores || !k.Knows() || !k.CanEditFile() {
		return nil
	}
	var out []Stray
	for _, key := range k.keys(content) {
		if len(k.Edit.Sections) > 0 && !slices.Contains(k.Edit.Sections, key.Section) {
			continue
		}
		if _, known := k.Setting(key.Name); known || k.IsVariable(content, key.Name) {
			continue
		}
		near := k.Near(key.Name)
		if meant, found := k.Mistaken(key.Name); found {
			near = meant
		}
		// A program in Python has names of its own: only those like a setting's are
		// worth a word.
		program := k.Edit.File == edit.Assign
		if near != "" || !program {
			out = append(out, Stray{key, near, near != "" && !program})
		}
	}
	return out
}

// IsVariable reports whether a config file uses a key of its own.
func (k *Kind) IsVariable(content, name string) bool {
	return slices.ContainsFunc(k.Variables, func(form string) bool {
		return strings.Contains(content, hakaru.Names{"name": name}.Expand(form))
	})
}
