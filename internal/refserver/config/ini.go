package config

import (
	"bufio"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"hakaru"
	"hakaru/internal/hint"
)

// UsageError is a mistake in what a person wrote, in a file or as a flag; the
// door exits with 2. Anything else that goes wrong is the surroundings' doing.
type UsageError struct {
	Mistakes []hakaru.Finding
}

func (e *UsageError) Error() string {
	var b strings.Builder
	for i, m := range e.Mistakes {
		if i > 0 {
			b.WriteByte('\n')
		}
		if m.File != "" {
			fmt.Fprintf(&b, "%s:", m.File)
			if m.Line > 0 {
				fmt.Fprintf(&b, "%d:%d:", m.Line, m.Column)
			}
			b.WriteByte(' ')
		}
		b.WriteString(m.Message)
		if m.Excerpt != "" {
			fmt.Fprintf(&b, "\n    %s", m.Excerpt)
		}
		if m.Fix != "" {
			fmt.Fprintf(&b, "\n    hint: %s", m.Fix)
		}
	}
	return b.String()
}

// Mistake is a UsageError about one thing.
func Mistake(message, fix string) *UsageError {
	return &UsageError{[]hakaru.Finding{{Code: "usage", Severity: hakaru.Error, Message: message, Fix: fix}}}
}

const sectionName = "serve"

// Read reads the section [serve] of an ini file over the defaults. Lines
// before the first section belong to it too. A comment begins with # or ; at
// the start of a line or after a space; a value in double quotes is taken as
// Go would, so that it may hold those. The name is for messages only. All
// mistakes are reported in one *UsageError; settings are not checked against
// each other, as flags may follow (Config.Check).
func Read(r io.Reader, name string) (Config, error) {
	cfg := Default()
	var mistakes []hakaru.Finding
	var names []string
	for _, k := range Keys() {
		names = append(names, k.Name)
	}
	seen := map[string]int{}
	lines := bufio.NewScanner(r)
	for n := 1; lines.Scan(); n++ {
		text := lines.Text()
		if n == 1 {
			text = strings.TrimPrefix(text, "\ufeff")
		}
		line := strings.TrimSpace(text)
		wrong := func(at, message, fix string) {
			mistakes = append(mistakes, hakaru.Finding{
				File: name, Line: n, Column: strings.Index(text, at) + 1, Code: "serve-config", Severity: hakaru.Error,
				Message: message, Excerpt: line, Fix: fix,
			})
		}
		if line == "" || line[0] == '#' || line[0] == ';' {
			continue
		}
		if line[0] == '[' {
			section := uncomment(line)
			if section != "["+sectionName+"]" {
				fix := "the settings stand under [serve]; everything else goes into another file"
				if hint.Near(strings.Trim(section, "[] "), []string{sectionName}) != "" {
					fix = "did you mean [serve]?"
				}
				wrong(line, fmt.Sprintf("unknown section %s", section), fix)
			}
			continue
		}
		key, value, ok := strings.Cut(line, "=")
		key = strings.TrimSpace(key)
		if !ok || key == "" {
			wrong(line, "not a setting", "write name = value")
			continue
		}
		value, err := unquote(value)
		if err != nil {
			wrong(line, fmt.Sprintf("%s: %v", key, err), "")
			continue
		}
		if strings.HasPrefix(key, "--") || !slices.Contains(names, key) {
			fix := "the settings are " + strings.Join(names, ", ")
			if near := NearKey(strings.TrimLeft(key, "-")); near != "" {
				fix = fmt.Sprintf("did you mean %s?", near)
			}
			wrong(key, fmt.Sprintf("unknown setting %s", key), fix)
			continue
		}
		if first := seen[key]; first > 0 {
			wrong(key, fmt.Sprintf("%s is set twice, first in line %d", key, first), "take one of them out")
			continue
		}
		seen[key] = n
		if err := cfg.Set(key, value); err != nil {
			wrong(key, fmt.Sprintf("%s: %v", key, err), "")
		}
	}
	if err := lines.Err(); err != nil {
		return Config{}, fmt.Errorf("read %s: %w", name, err)
	}
	if len(mistakes) > 0 {
		return Config{}, &UsageError{mistakes}
	}
	return cfg, nil
}

// Write writes c as Read reads it.
func Write(w io.Writer, c Config) error {
	var b strings.Builder
	b.WriteString("[" + sectionName + "]\n")
	for _, k := range Keys() {
		value := k.Get(&c)
		if quoted := strconv.Quote(value); quoted != `"`+value+`"` || strings.ContainsAny(value, "#; ") {
			value = quoted
		}
		fmt.Fprintf(&b, "%s = %s\n", k.Name, value)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func unquote(value string) (string, error) {
	value = strings.TrimSpace(value)
	if !strings.HasPrefix(value, `"`) {
		return uncomment(value), nil
	}
	quoted, err := strconv.QuotedPrefix(value)
	if err != nil {
		return "", fmt.Errorf("the quoted value %s does not end", value)
	}
	if rest := strings.TrimSpace(value[len(quoted):]); rest != "" && rest[0] != '#' && rest[0] != ';' {
		return "", fmt.Errorf("%s stands behind the quoted value", rest)
	}
	return strconv.Unquote(quoted)
}

// uncomment cuts a comment that begins after a space, or is all there is.
func uncomment(s string) string {
	for i := range len(s) {
		if (s[i] == '#' || s[i] == ';') && (i == 0 || s[i-1] == ' ' || s[i-1] == '\t') {
			s = s[:i]
			break
		}
	}
	return strings.TrimSpace(s)
}
