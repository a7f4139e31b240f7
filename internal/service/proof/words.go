package proof

import (
	"fmt"
	"path"
	"slices"
	"strings"
	"unicode"

	"hakaru"
	"hakaru/internal/watch/kernel"
)

// matchCmdline looks for a flag (Argument) with the value wanted, or for the
// text in the words, or for a word or a value after "=" that is the level. An
// error says why the words show nothing.
func matchCmdline(words []string, title bool, ask hakaru.Ask) (found string, ok bool, err error) {
	if ask.Argument != "" {
		found, ok, err = matchFlag(words, ask)
	} else {
		found, ok, err = matchWords(words, ask)
	}
	// A title is prose: "worker 4" says nothing of a level that is 4.
	said := ok && (strings.HasPrefix(found, "-") || strings.Contains(wanted(ask), " "))
	if title && err == nil && !said {
		err = fmt.Errorf("has written a title over its words: %s", shorten(strings.Join(words, " ")))
	}
	return found, ok, err
}

func matchWords(words []string, ask hakaru.Ask) (found string, ok bool, err error) {
	want, line := wanted(ask), strings.Join(words, " ")
	switch {
	case want == "":
		return shorten(line), false, nil
	case ask.Equals != "" && strings.Contains(want, " "): // several words
		if strings.Contains(" "+line+" ", " "+want+" ") {
			return want, true, nil
		}
		return shorten(line), false, nil
	case ask.Equals == "" && ask.Contains != "":
		if strings.Contains(line, want) {
			return want, true, nil
		}
		return shorten(line), false, nil
	}
	if flag := flagOf(words, ask.Setting); flag != "" && !strings.HasPrefix(want, "-") && !strings.Contains(want, "=") {
		ask.Argument = flag
		return matchFlag(words, ask)
	}
	for _, w := range words {
		_, value, has := strings.Cut(w, "=")
		if w != want && !(has && value == want) {
			continue
		}
		if ask.Absent && !strings.HasPrefix(want, "-") {
			return "", false, fmt.Errorf("has the word %s, of another setting perhaps", w)
		}
		return w, true, nil
	}
	return shorten(line), false, nil
}

// flagOf is the flag that has a setting's own name, where one of the words is it.
func flagOf(words []string, setting string) string {
	name := strings.ReplaceAll(setting[strings.LastIndexByte(setting, '.')+1:], "_", "-")
	for _, w := range words {
		flag, _, _ := strings.Cut(w, "=")
		if name != "" && strings.HasPrefix(flag, "-") && strings.ReplaceAll(strings.TrimLeft(flag, "-"), "_", "-") == name {
			return flag
		}
	}
	return ""
}

// matchFlag judges by the last of several: most programs do, and "$@" of a
// wrapper stands behind its own. Others take the first, or all.
func matchFlag(words []string, ask hakaru.Ask) (found string, ok bool, err error) {
	want := wanted(ask)
	given, fit := 0, ""
	for i, w := range words {
		value, joined := strings.CutPrefix(w, ask.Argument+"=")
		attached := false
		switch {
		case joined:
		case w == ask.Argument && i+1 < len(words):
			value = words[i+1]
		case w == ask.Argument:
			value = ""
		// -w4: a short flag with its value.
		case len(ask.Argument) == 2 && ask.Argument[0] == '-' && strings.HasPrefix(w, ask.Argument):
			value, attached = w[2:], true
		default:
			continue
		}
		fits := want == "" || matchValue(value, ask) || switchOn(want) && (value == "" || strings.HasPrefix(value, "-"))
		if attached && !fits && unicode.IsLetter([]rune(value)[0]) {
			continue // -threshold is no -t
		}
		given++
		if found, ok = strings.TrimSpace(ask.Argument+" "+value), fits; ok {
			fit = found
		}
	}
	switch {
	case given == 0:
		return ask.Argument + " is not there", false, nil
	case !ok && fit != "":
		return "", false, fmt.Errorf("has %s, and after it %s: which of them counts is not known", fit, found)
	}
	return found, ok, nil
}

// switchOn reports whether a level only says that a flag is given.
func switchOn(level string) bool {
	on, ok := switchWord(level)
	return ok && on
}

// matchEnviron looks at the variable named by Argument, else at the one with
// the setting's name, else for the text as a whole item of any variable. An error
// says why the environment shows nothing: a number is in many.
func matchEnviron(env []string, ask hakaru.Ask) (found string, ok bool, err error) {
	want := wanted(ask)
	names := []string{ask.Argument}
	if ask.Argument == "" {
		last := ask.Setting[strings.LastIndexByte(ask.Setting, '.')+1:]
		names = []string{last, strings.ToUpper(last)}
	}
	for _, e := range env {
		name, value, _ := strings.Cut(e, "=")
		if name == "" || !slices.Contains(names, name) {
			continue
		}
		if want == "" {
			return name + "=" + value, true, nil
		}
		items := strings.FieldsFunc(value, func(r rune) bool { return r == ':' || r == ' ' || r == ',' })
		return name + "=" + value, matchValue(value, ask) || slices.Contains(items, want), nil
	}
	if ask.Argument != "" || want == "" {
		return "not set", false, nil
	}
	for _, e := range env {
		name, value, _ := strings.Cut(e, "=")
		if name == kernel.MarkVariable {
			continue
		}
		// A level such as 4 is inside of many values; only a whole item counts,
		// a long text (a library's name) may be the end of a path.
		for _, item := range strings.FieldsFunc(value, func(r rune) bool { return r == ':' || r == ' ' || r == ',' }) {
			if item != want && path.Base(item) != want && !(ask.Contains != "" && strings.Contains(item, want)) {
				continue
			}
			if _, switched := switchWord(want); ask.Contains == "" && (switched || isNumber(want)) {
				return "", false, fmt.Errorf("has %s=%s, of another setting perhaps; {environ: NAME} says which variable it is", name, shorten(value))
			}
			return name + "=" + value, true, nil
		}
	}
	return "in no variable", false, nil
}
