package kind

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// offWords are the values that switch a setting off.
func offWords() []string { return []string{"false", "0", "no", "off", "0s"} }

// Off reports whether a value switches a setting off.
func Off(value string) bool { return slices.Contains(offWords(), strings.ToLower(value)) }

// Blind reports whether settings may be where hakaru does not see them: in a config
// file that the command line names and the experiment does not, or in one that the
// config file draws in.
func (k *Kind) Blind(words []string, content string) bool {
	if content != "" {
		return k.CanEditFile() && len(k.file().Includes(k.mask(content))) > 0
	}
	pattern, err := regexp.Compile(k.Edit.Config)
	return err == nil && k.Edit.Config != "" && len(words) > 0 && slices.ContainsFunc(words[1:], pattern.MatchString)
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
// itself, or "".
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

// Holds evaluates a condition: the name of a setting that is switched on, or
// name=value, name!=value, name>number, or ~text for a text in the config file.
func (k *Kind) Holds(condition string, words []string, content string) bool {
	if text, found := strings.CutPrefix(condition, "~"); found {
		return strings.Contains(content, text)
	}
	at := strings.IndexAny(condition, "=!>")
	if at < 0 {
		on, _ := k.On(words, content, condition)
		return on
	}
	name, sign, want := condition[:at], condition[at:at+1], strings.TrimLeft(condition[at:], "=!>")
	value, found := k.Value(words, content, name)
	switch sign {
	case "=":
		return found && value == want
	case "!":
		return found && value != want
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

// Lacks tells what a setting would need to do anything: nothing where it has it,
// else the names of which one would do, and the one of them that is written and
// switched off, if any.
func (k *Kind) Lacks(words []string, content, name string) (needs []string, off string) {
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
	if off == "" && k.Blind(words, content) {
		return nil, ""
	}
	return s.Needs, off
}
