package proof

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"hakaru"
	"hakaru/internal/watch/kernel"
)

// The functions here decide, from what was read, whether an ask holds. They
// read nothing themselves.

// wanted is what to look for.
func wanted(ask hakaru.Ask) string {
	if ask.Equals != "" {
		return ask.Equals
	}
	if ask.Contains != "" {
		return ask.Contains
	}
	return ask.Asked
}

// sameValue compares values as a person means them: 4 and 4.0 are the same, and
// so are true, on, yes and 1 where both sides are such words.
func sameValue(a, b string) bool {
	a, b = strings.TrimSpace(a), strings.TrimSpace(b)
	if strings.EqualFold(a, b) {
		return true
	}
	x, errX := strconv.ParseFloat(a, 64)
	y, errY := strconv.ParseFloat(b, 64)
	if errX == nil && errY == nil {
		return x == y
	}
	t, okT := switchWord(a)
	v, okV := switchWord(b)
	return okT && okV && t == v
}

func switchWord(s string) (on, ok bool) {
	switch strings.ToLower(s) {
	case "true", "on", "yes", "1", "enabled":
		return true, true
	case "false", "off", "no", "0", "disabled":
		return false, true
	}
	return false, false
}

// matchValue compares one value that was found.
func matchValue(found string, ask hakaru.Ask) bool {
	if ask.Equals == "" && ask.Contains != "" {
		return strings.Contains(found, ask.Contains)
	}
	return sameValue(found, wanted(ask))
}

// matchMaps looks for a mapped file. The kernel shows names with links
// resolved, so a path is compared by what it leads to as well.
func matchMaps(maps string, ask hakaru.Ask) (found string, ok bool) {
	want := wanted(ask)
	if want == "" {
		return "nothing to look for", false
	}
	resolved := want
	if filepath.IsAbs(want) {
		if r, err := filepath.EvalSymlinks(want); err == nil {
			resolved = r
		}
	}
	for line := range strings.Lines(maps) {
		i := strings.IndexByte(line, '/')
		if i < 0 {
			continue
		}
		file := strings.TrimSuffix(line[i:], "\n")
		if strings.Contains(file, want) || file == resolved {
			return file, true
		}
	}
	return "not mapped", false
}

func askedNumber(ask hakaru.Ask) (int, error) {
	n, err := strconv.Atoi(strings.TrimSpace(wanted(ask)))
	if err != nil {
		return 0, fmt.Errorf("%q is not a number", wanted(ask))
	}
	return n + ask.Offset, nil
}

// matchThreads compares the threads of the process that has most of them.
// Libraries and runtimes have threads of their own, so more than was asked for
// is no proof in either direction.
func matchThreads(counts []int, ask hakaru.Ask) (string, hakaru.Held) {
	most := slices.Max(counts)
	want, err := askedNumber(ask)
	switch {
	case err != nil:
		return fmt.Sprintf("%d; %v", most, err), hakaru.NotProved
	case most > want:
		return fmt.Sprintf("%d; threads of libraries and of the runtime are among them", most), hakaru.NotProved
	}
	return strconv.Itoa(most), held(most == want, ask.Absent)
}

// matchBacklog compares what the kernel granted: it cuts to somaxconn without
// a word.
func matchBacklog(listeners []kernel.Listener, somaxconn int, ask hakaru.Ask) (string, hakaru.Held) {
	if len(listeners) == 0 {
		return "it does not listen", hakaru.NotProved
	}
	want, err := askedNumber(ask)
	if err != nil {
		return err.Error(), hakaru.NotProved
	}
	equal := 0
	var parts []string
	for _, l := range listeners {
		name := l.Path
		if name == "" {
			name = l.Addr.String()
		}
		part := fmt.Sprintf("%d on %s", l.Backlog, name)
		if int(l.Backlog) == somaxconn && somaxconn < want {
			part += ", cut by net.core.somaxconn"
		}
		parts = append(parts, part)
		if int64(l.Backlog) == int64(want) {
			equal++
		}
	}
	slices.Sort(parts)
	found := strings.Join(slices.Compact(parts), ", ")
	if equal > 0 && equal < len(listeners) {
		return found + "; which of them it is about is not known", hakaru.NotProved
	}
	return found, held(equal > 0, ask.Absent)
}

// matchHTTP compares a field of a JSON answer, or looks for the text in the
// whole of any answer.
func matchHTTP(body string, ask hakaru.Ask) (string, hakaru.Held) {
	if ask.Field == "" {
		found, there := matchText(body, ask)
		if there == hakaru.No {
			found = Beginning(body)
		}
		return found, unless(ask.Absent, there)
	}
	d := json.NewDecoder(strings.NewReader(body))
	d.UseNumber()
	var value any
	if err := d.Decode(&value); err != nil {
		return fmt.Sprintf("the answer is not JSON: %s", Beginning(body)), hakaru.NotProved
	}
	found, ok := field(value, ask.Field)
	if !ok {
		if ask.Absent {
			return "not there", hakaru.Yes
		}
		return fmt.Sprintf("the answer has no %s", ask.Field), hakaru.NotProved
	}
	return shorten(found), held(matchValue(found, ask), ask.Absent)
}

// field follows a path such as pool.size or workers.0.pid. The length of a list
// is its field "length".
func field(value any, at string) (string, bool) {
	for name := range strings.SplitSeq(strings.Trim(at, "$."), ".") {
		switch v := value.(type) {
		case map[string]any:
			var ok bool
			if value, ok = v[name]; !ok {
				return "", false
			}
		case []any:
			if name == "length" {
				value = json.Number(strconv.Itoa(len(v)))
				continue
			}
			i, err := strconv.Atoi(name)
			if err != nil || i < 0 || i >= len(v) {
				return "", false
			}
			value = v[i]
		default:
			return "", false
		}
	}
	switch v := value.(type) {
	case string:
		return v, true
	case nil:
		return "null", true
	default:
		b, err := json.Marshal(v)
		return string(b), err == nil
	}
}

// matchLog searches the output, by the pattern in Argument or for the text. What
// is missing proves nothing where part of the output is missing.
func matchLog(text string, cut bool, ask hakaru.Ask) (string, hakaru.Held) {
	const unkept = "not in the part of the output that was kept"
	if ask.Argument == "" {
		found, there := matchText(text, ask)
		switch {
		case there != hakaru.No:
			return found, unless(ask.Absent, there)
		case cut:
			return unkept, hakaru.NotProved
		}
		return "not there", held(false, ask.Absent)
	}
	if _, err := regexp.Compile(ask.Argument); err != nil {
		return fmt.Sprintf("pattern: %v", err), hakaru.NotProved
	}
	pattern, err := regexp.Compile("(?m)" + ask.Argument) // ^ and $ are a line's
	if err != nil {
		return fmt.Sprintf("pattern: %v", err), hakaru.NotProved
	}
	matches := pattern.FindAllStringSubmatch(text, -1)
	if ask.Count {
		return matchLogCount(matches, cut, ask)
	}
	found := ""
	for _, m := range matches {
		value := m[len(m)-1] // the last group, or the whole
		found = m[0]
		// Of an absence, or where there is no group, the match itself is asked.
		any := ask.Contains == "" && ask.Equals == "" && (len(m) == 1 || ask.Absent)
		if any || matchValue(value, ask) {
			return shorten(found), held(true, ask.Absent)
		}
	}
	switch {
	case cut:
		return unkept, hakaru.NotProved
	case found != "":
		return shorten(found), held(false, ask.Absent)
	case pattern.NumSubexp() > 0 && !ask.Absent:
		// No value was said at all: maybe this version of the program says it in
		// other words, which contradicts nothing.
		return "not there", hakaru.NotProved
	}
	return "not there", held(false, ask.Absent)
}

// matchLogCount compares how many different matches there are: by their last
// group, or as a whole, so that a line that is repeated counts once.
func matchLogCount(matches [][]string, cut bool, ask hakaru.Ask) (string, hakaru.Held) {
	different := map[string]bool{}
	for _, m := range matches {
		different[m[len(m)-1]] = true
	}
	count := len(different)
	found := strconv.Itoa(count)
	want, err := askedNumber(ask)
	switch {
	case err != nil:
		return fmt.Sprintf("%d; %v", count, err), hakaru.NotProved
	case cut && count <= want:
		return found + " in the part of the output that was kept", hakaru.NotProved
	case count == 0 && want != 0 && !ask.Absent:
		// It may be written to another place, or said in other words.
		return "not there", hakaru.NotProved
	}
	return found, held(count == want, ask.Absent)
}

// matchRevision compares a commit that runs with the revision asked for. A
// branch or a tag was resolved when it was checked out; only what looks like a
// commit can be contradicted.
func matchRevision(commit string, ask hakaru.Ask) hakaru.Held {
	want := strings.ToLower(strings.TrimSpace(wanted(ask)))
	isCommit := len(want) >= 7 && len(want) <= len(commit) && strings.Trim(want, "0123456789abcdef") == ""
	return held(!isCommit || strings.HasPrefix(strings.ToLower(commit), want), ask.Absent)
}

// matchOutput compares what a command printed: a field of it where it is JSON,
// else a line that contains the text, or the whole.
func matchOutput(text string, cut bool, ask hakaru.Ask) (string, hakaru.Held) {
	if ask.Field != "" {
		return matchHTTP(text, ask)
	}
	found, ok := shorten(strings.TrimSpace(text)), false
	if ask.Equals == "" && ask.Contains != "" {
		if line, there := matchText(text, ask); there == hakaru.Yes {
			found, ok = line, true
		}
	} else {
		ok = sameValue(text, wanted(ask))
	}
	switch {
	case !ok && cut:
		return found + " (more was printed than is read)", hakaru.NotProved
	case found == "":
		found = "nothing was printed"
	}
	return found, held(ok, ask.Absent)
}

// matchText looks for the text wanted and gives the line it is in. A level, which
// may be as short as 4, shows nothing where it is only within a longer word; a text
// that was written for this question may be any part.
func matchText(text string, ask hakaru.Ask) (string, hakaru.Held) {
	want := wanted(ask)
	if want == "" {
		return "", hakaru.No
	}
	part := ask.Equals == "" && ask.Contains != ""
	within := ""
	for at := 0; ; {
		i := strings.Index(text[at:], want)
		if i < 0 {
			break
		}
		start, end := at+i, at+i+len(want)
		line := lineAt(text, start, end)
		if part || !joins(text[:start], want) && !joins(want, text[end:]) {
			return line, hakaru.Yes
		}
		if within == "" {
			within = line + ": within a longer word"
		}
		at = start + 1
	}
	if within != "" {
		return within, hakaru.NotProved
	}
	return "", hakaru.No
}

// joins reports whether two texts beside each other make one word of their ends.
func joins(before, after string) bool {
	a, _ := utf8.DecodeLastRuneInString(before)
	b, _ := utf8.DecodeRuneInString(after)
	inWord := func(r rune) bool {
		return r == '_' || r != utf8.RuneError && (unicode.IsLetter(r) || unicode.IsDigit(r))
	}
	return inWord(a) && inWord(b)
}

// lineAt is the line, or the lines, of a part of the text.
func lineAt(text string, start, end int) string {
	if j := strings.IndexByte(text[end:], '\n'); j >= 0 {
		text = text[:end+j]
	}
	return shorten(strings.TrimSpace(text[strings.LastIndexByte(text[:start], '\n')+1:]))
}

func shorten(text string) string {
	if runes := []rune(text); len(runes) > Shown {
		return string(runes[:Shown-1]) + "…"
	}
	return text
}

// join adds a reason to what was found.
func join(found, why string) string {
	if why == "" {
		return found
	}
	return found + ": " + why
}
