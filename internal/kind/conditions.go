package kind

import (
	"regexp"
	"slices"
	"strconv"
	"strings"

	"hakaru"
)

// offWords are the values that switch a setting off.
func offWords() []string { return []string{"false", "0", "no", "off", "0s"} }

// Off reports whether a value switches a setting off.
func Off(value string) bool { return slices.Contains(offWords(), strings.ToLower(value)) }

// Unseen names a config file that may hold settings which hakaru does not see: one
// that the command line names and the experiment does not, or one that the config
// file draws in. Empty where all is seen.
func (k *Kind) Unseen(words []string, content string) string {
	if content != "" {
		if k.CanEditFile() {
			for _, include := range k.file().Includes(k.mask(content)) {
				return unmask(include.Path)
			}
		}
		return ""
	}
	for _, name := range k.Edit.ConfigFlags {
		if file, found := k.Value(words, "", name); found {
			return file
		}
	}
	pattern, err := regexp.Compile(k.Edit.Config)
	if err != nil || k.Edit.Config == "" || len(words) == 0 {
		return ""
	}
	if i := slices.IndexFunc(words[1:], pattern.MatchString); i >= 0 {
		return words[1+i]
	}
	return ""
}

// ReadsItself are the config files that the program reads without being told to,
// where its command line names none: paths from the directory it runs in.
func (k *Kind) ReadsItself(words []string) []string {
	if len(k.Edit.Implicit) == 0 || k.Unseen(words, "") != "" {
		return nil
	}
	return k.Edit.Implicit
}

// opaque tells a config file that is there and cannot be read: a program in
// another language.
func (k *Kind) opaque(content string) bool { return content != "" && !k.CanEditFile() }

// OffBy names what may keep a setting on that is to be off, where it cannot be put
// into the config file: taking the flag away does not switch off what a file
// switches on, be it one that is not seen, or the one that content is of, called
// file, where it has the setting or cannot be read and mentions it. Empty where the
// setting is not to be off, or nothing is in the way.
func (k *Kind) OffBy(content, file, unseen string, s hakaru.Setting) string {
	known := k.Describe(s.Name)
	has := k.Line(content, s.Name) != ""
	if s.Value == nil || !Off(*s.Value) || !known.isSwitch() || k.Edit.Switch == "" {
		return ""
	}
	for _, name := range k.inFile(s.Name) {
		word := regexp.QuoteMeta(strings.ReplaceAll(name, "-", "_"))
		mentions, err := regexp.MatchString(`(?m)^[^#\n]*\b`+word+`\b`, content)
		has = has || k.opaque(content) && err == nil && mentions
	}
	if has {
		return file
	}
	return unseen
}

// On reports whether a setting is switched on, by itself or by another that
// implies it; written says that it is there itself, on or off.
func (k *Kind) On(words []string, content, name string) (on, written bool) {
	value, written := k.Value(words, content, name)
	if written {
		return !Off(value), true
	}
	return k.ImpliedBy(words, content, name) != "", false
}

// ImpliedBy returns the setting that switches another on which is not written
// itself, or "". One that is written and off stays off, wherever it stands: so
// uWSGI 2.0.21 takes its master.
func (k *Kind) ImpliedBy(words []string, content, name string) string {
	s := k.Describe(name)
	if len(s.ImpliedBy) == 0 {
		return ""
	}
	if _, written := k.Value(words, content, name); written {
		return ""
	}
	for _, other := range s.ImpliedBy {
		if v, found := k.Value(words, content, other); found && !Off(v) {
			return other
		}
	}
	return ""
}

// conditionOf is the setting that a condition is about; empty for ~text.
func conditionOf(condition string) string {
	if at := strings.IndexAny(condition, "=!>~"); at >= 0 {
		return condition[:at]
	}
	return condition
}

// Holds evaluates a condition: the name of a setting that is switched on, or
// name=value, name!=value (with several: a|b), name>number, or ~text for a text in
// the config file.
func (k *Kind) Holds(condition string, words []string, content string) bool {
	if text, found := strings.CutPrefix(condition, "~"); found {
		return strings.Contains(content, text)
	}
	name := conditionOf(condition)
	if name == condition {
		on, _ := k.On(words, content, condition)
		return on
	}
	sign, want := condition[len(name):len(name)+1], strings.TrimLeft(condition[len(name):], "=!>")
	value, found := k.Value(words, content, name)
	switch sign {
	case "=", "!":
		is := slices.ContainsFunc(strings.Split(want, "|"), func(w string) bool { return strings.EqualFold(w, value) })
		return found && is == (sign == "=")
	}
	have, err := strconv.ParseFloat(value, 64)
	least, err2 := strconv.ParseFloat(want, 64)
	return found && err == nil && err2 == nil && have > least
}

// Any returns the first condition that holds, or "".
func (k *Kind) Any(conditions []string, words []string, content string) string {
	for _, c := range conditions {
		if k.Holds(c, words, content) {
			return c
		}
	}
	return ""
}

// Lacks tells what a setting would need to do anything: nothing where it has it, or
// may have it in a config file that is not seen, else the names of which one would
// do, and the one of them that is written and switched off, if any.
func (k *Kind) Lacks(words []string, content, unseen, name string) (needs []string, off string) {
	s := k.Describe(name)
	for _, need := range s.Needs {
		on, written := k.On(words, content, need)
		if on {
			return nil, ""
		}
		if written && off == "" {
			off = need
		}
	}
	if off == "" && (unseen != "" || k.opaque(content)) {
		return nil, ""
	}
	return s.Needs, off
}
