package hakaru

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// The small enumerations travel as words, so that stored results and JSON
// reports can be read without this package.

var (
	verdictWords  = []string{"unclear", "same", "better", "worse"}
	limitWords    = []string{"not_shown", "meets", "violates"}
	heldWords     = []string{"not_proved", "yes", "no"}
	severityWords = []string{"info", "warning", "error"}
)

func word(words []string, i uint8) string {
	if int(i) < len(words) {
		return words[i]
	}
	return fmt.Sprintf("unknown(%d)", i)
}

func unword(words []string, what string, text []byte) (uint8, error) {
	if i := slices.Index(words, string(text)); i >= 0 {
		return uint8(i), nil
	}
	return 0, fmt.Errorf("%s %q: want one of %s", what, text, strings.Join(words, ", "))
}

func (v Verdict) String() string               { return word(verdictWords, uint8(v)) }
func (v Verdict) MarshalText() ([]byte, error) { return []byte(v.String()), nil }
func (v *Verdict) UnmarshalText(b []byte) error {
	i, err := unword(verdictWords, "verdict", b)
	*v = Verdict(i)
	return err
}

func (v LimitVerdict) String() string               { return word(limitWords, uint8(v)) }
func (v LimitVerdict) MarshalText() ([]byte, error) { return []byte(v.String()), nil }
func (v *LimitVerdict) UnmarshalText(b []byte) error {
	i, err := unword(limitWords, "limit verdict", b)
	*v = LimitVerdict(i)
	return err
}

func (v Held) String() string               { return word(heldWords, uint8(v)) }
func (v Held) MarshalText() ([]byte, error) { return []byte(v.String()), nil }
func (v *Held) UnmarshalText(b []byte) error {
	i, err := unword(heldWords, "holds", b)
	*v = Held(i)
	return err
}

func (v Severity) String() string               { return word(severityWords, uint8(v)) }
func (v Severity) MarshalText() ([]byte, error) { return []byte(v.String()), nil }
func (v *Severity) UnmarshalText(b []byte) error {
	i, err := unword(severityWords, "severity", b)
	*v = Severity(i)
	return err
}

// AtKey is a stratum as one string ("mix=ro threads=16"), sorted by name, empty
// for the only stratum of an experiment without `at`.
func AtKey(at map[string]string) string {
	parts := make([]string, 0, len(at))
	for _, name := range slices.Sorted(maps.Keys(at)) {
		parts = append(parts, name+"="+at[name])
	}
	return strings.Join(parts, " ")
}

// Names are values by name, for the placeholders {name} of an experiment.
type Names map[string]string

// Expand replaces {name} by its value for every name in n; every other brace
// stays as it is. Replaced text is not looked at again.
func (n Names) Expand(text string) string {
	if len(n) == 0 || !strings.Contains(text, "{") {
		return text
	}
	var b strings.Builder
	for {
		open := strings.IndexByte(text, '{')
		if open < 0 {
			break
		}
		length := strings.IndexByte(text[open:], '}')
		if length < 0 {
			break
		}
		value, known := n[text[open+1:open+length]]
		if !known {
			b.WriteString(text[:open+1])
			text = text[open+1:]
			continue
		}
		b.WriteString(text[:open])
		b.WriteString(value)
		text = text[open+length+1:]
	}
	b.WriteString(text)
	return b.String()
}

// Placeholders returns the names between braces in text that known accepts, in
// the order they appear.
func Placeholders(text string, known func(string) bool) []string {
	var names []string
	for {
		open := strings.IndexByte(text, '{')
		if open < 0 {
			return names
		}
		text = text[open+1:]
		if length := strings.IndexByte(text, '}'); length >= 0 && known(text[:length]) {
			names = append(names, text[:length])
		}
	}
}

// OnlyService is the name of the service of an experiment that has one.
const OnlyService = "service"

// TheService names a service within a sentence.
func TheService(name string) string {
	if name == OnlyService || name == "" {
		return "the service"
	}
	return "service " + name
}
