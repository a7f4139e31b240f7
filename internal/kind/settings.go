package kind

import (
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"
	"time"

	"hakaru/internal/hint"
	"hakaru/internal/unit"
)

// Type is the type of a setting's value.
type Type string

const (
	Text     Type = "text"
	Count    Type = "count" // a whole number from 1
	Whole    Type = "whole" // a whole number from 0
	Bool     Type = "bool"
	Duration Type = "duration"
	Share    Type = "share"
	Bytes    Type = "bytes"
	Size     Type = "size" // bytes, K, M and G being powers of 1024
	Address  Type = "address"
	Choice   Type = "choice"
)

// index makes the table of names out of the settings and the list of names.
func (k *Kind) index(from fs.FS) error {
	k.names = map[string]*Setting{}
	for i := range k.Settings {
		s := &k.Settings[i]
		if s.Proofs == nil {
			s.Proofs = k.Proofs
		}
		for _, name := range s.allNames() {
			if other := k.names[k.normal(name)]; other != nil && other != s {
				return fmt.Errorf("%s is a name of %s and of %s", name, other.Name, s.Name)
			}
			k.names[k.normal(name)] = s
		}
	}
	if k.Names != "" {
		text, err := fs.ReadFile(from, "kinds/"+k.Names)
		if err != nil {
			return fmt.Errorf("read its names: %w", err)
		}
		if err := k.listed(string(text)); err != nil {
			return fmt.Errorf("%s: %w", k.Names, err)
		}
	}
	for name, s := range k.names {
		if !strings.HasPrefix(name, "-") {
			k.all = append(k.all, name)
		}
		if k.Edit.Switch != "" && s.isSwitch() {
			k.switches = append(k.switches, name)
		}
	}
	slices.Sort(k.all)
	slices.Sort(k.switches)
	return nil
}

// listed takes over a list of names: a line each, with what else is known of the
// name behind it ("flag=…", "file=…", "in=…", "switch"). What the settings say of a
// name counts more.
func (k *Kind) listed(text string) error {
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		if len(fields) == 0 || fields[0] == "#" {
			continue
		}
		s := &Setting{Name: fields[0], Type: Text, Proofs: k.Proofs}
		for _, f := range fields[1:] {
			key, value, _ := strings.Cut(f, "=")
			switch key {
			case "switch":
				s.Switch = true
			case "flag":
				s.Flag = value
			case "file":
				s.File = value
			case "in":
				s.In = value
			default:
				return fmt.Errorf("%s has the unknown field %q", s.Name, f)
			}
		}
		known := k.names[k.normal(s.Name)]
		if known == nil && s.Flag != "" {
			known = k.names[k.normal(s.Flag)]
		}
		if known != nil {
			if known.In == "" {
				known.In = s.In
			}
			known.Switch = known.Switch || s.Switch
			if known.File == "" && s.File != "" {
				known.File = s.File
			}
			if known.Flag == "" {
				known.Flag = s.Flag
			}
			s = known
		}
		for _, name := range append(fields[:1], s.allNames()...) {
			if k.names[k.normal(name)] == nil {
				k.names[k.normal(name)] = s
			}
		}
	}
	return nil
}

func (s *Setting) allNames() []string {
	names := append([]string{s.Name}, s.Synonyms...)
	for _, name := range []string{s.File, s.Flag} {
		if name != "" && name != flagOnly && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// normal is a name as it is compared.
func (k *Kind) normal(name string) string {
	if k.Edit.Dashes && !strings.HasPrefix(name, "-") {
		return strings.ReplaceAll(name, "_", "-")
	}
	return name
}

// Same reports whether two names are one to the program.
func (k *Kind) Same(a, b string) bool {
	s, known := k.names[k.normal(a)], k.names[k.normal(a)] != nil
	return k.normal(a) == k.normal(b) || known && s == k.names[k.normal(b)]
}

// Knows reports whether the kind has a list of settings to check names against.
func (k *Kind) Knows() bool { return len(k.names) > 0 }

// Setting returns a setting by one of the names that the program takes for it.
func (k *Kind) Setting(name string) (Setting, bool) {
	if s := k.names[k.normal(name)]; s != nil {
		return *s, true
	}
	return Setting{}, false
}

// Describe returns what is known of a setting, be it only what holds for all.
func (k *Kind) Describe(name string) Setting {
	if s, known := k.Setting(name); known {
		return s
	}
	return Setting{Name: name, Type: Text, In: k.Edit.In, Proofs: k.Proofs}
}

// Mistaken returns the setting that people mean when they write name.
func (k *Kind) Mistaken(name string) (string, bool) {
	plain := strings.NewReplacer("_", "-")
	for _, s := range k.Settings {
		if slices.ContainsFunc(s.Mistaken, func(m string) bool { return plain.Replace(m) == plain.Replace(name) }) {
			return s.Name, true
		}
	}
	return "", false
}

// Near returns the name that is most like one the kind does not have, or "".
func (k *Kind) Near(name string) string {
	// What more is known of is meant sooner than one of a thousand others.
	if near := hint.Near(name, k.SettingNames()); near != "" {
		return near
	}
	return hint.Near(name, k.all)
}

// Refuses says why the kind cannot have a setting of this name, as a hint; a
// program that is loud about unknown ones is given the benefit of the doubt.
func (k *Kind) Refuses(name string) (fix string, refused bool) {
	if _, known := k.Setting(name); known {
		return "", false
	}
	if meant, found := k.Mistaken(name); found {
		return fmt.Sprintf("%s calls it %q", k.Name, meant), true
	}
	if near := k.Near(name); near != "" {
		return fmt.Sprintf("did you mean %q?", near), true
	}
	if k.Loud {
		return "", false
	}
	return hint.Name(name, k.SettingNames()), true
}

// SettingNames returns the names of all settings of which more is known.
func (k *Kind) SettingNames() []string {
	names := make([]string, 0, len(k.Settings))
	for _, s := range k.Settings {
		names = append(names, s.Name)
	}
	return names
}

// Check says what is wrong with a value of the setting. A value that still
// holds a placeholder is not looked at.
func (s Setting) Check(value string) error {
	if strings.Contains(value, "{") {
		return nil
	}
	switch s.Type {
	case Count, Whole:
		n, err := strconv.ParseUint(value, 10, 32)
		if err != nil || s.Type == Count && n == 0 {
			least := 0
			if s.Type == Count {
				least = 1
			}
			return fmt.Errorf("%q is not a whole number from %d", value, least)
		}
	case Bool:
		if !slices.Contains(append(offWords(), "true", "1", "yes", "on"), strings.ToLower(value)) {
			return fmt.Errorf("%q is neither true nor false", value)
		}
	case Duration:
		_, err := unit.ParseDuration(value)
		return err
	case Share:
		if share, err := unit.ParseShare(value); err != nil || share > 1 {
			return fmt.Errorf("%q is not a share from 0 to 1, such as 0.1 or 10%%", value)
		}
	case Bytes:
		_, err := unit.ParseBytes(value)
		return err
	case Size:
		if _, ok := size(value); !ok {
			return fmt.Errorf("%q is not a size, such as 65536, 64K, 16M or 1G", value)
		}
	case Address:
		return checkAddress(value)
	case Choice:
		if !slices.Contains(s.Choices, value) {
			return fmt.Errorf("%q is none of %s", value, strings.Join(s.Choices, ", "))
		}
	}
	return nil
}

// Acts returns how long the setting needs until it can show, and whether that
// is known.
func (s Setting) Acts(value string) (time.Duration, bool) {
	text := s.ActsAfter
	if text == "value" {
		text = value
		if seconds, err := strconv.ParseUint(text, 10, 31); err == nil {
			return time.Duration(seconds) * time.Second, seconds > 0
		}
	}
	if text == "" {
		return 0, false
	}
	d, err := unit.ParseDuration(text)
	return d, err == nil && d > 0
}

// size reads a number of bytes as servers write them: K, M, G and T are powers of
// 1024, in either case.
func size(text string) (float64, bool) {
	if text == "" {
		return 0, false
	}
	shift := strings.IndexByte("KMGTPE", text[len(text)-1]&^0x20)
	if shift >= 0 {
		text = text[:len(text)-1]
	}
	n, err := strconv.ParseUint(text, 10, 63)
	if err != nil {
		return 0, false
	}
	return float64(n) * float64(uint64(1)<<(10*(shift+1))), true
}
