// Package kind holds what is known about kinds of services: how to tell that
// one is ready, how to stop it, which settings it has and of which type, how
// long a setting needs to act, how its config file or command line is edited,
// and what proves that a setting is in force.
//
// What is known is data, one YAML file a kind under kinds/; the code here reads
// those files and edits texts by their rules (edit.go). It starts nothing and
// reads no file of a person: contents come in and go out as texts.
//
// A kind that is only planned is known by name, so that a file that names it is
// told "not built yet" and not "unknown".
package kind

import (
	"bytes"
	"embed"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/goccy/go-yaml"

	"hakaru/internal/unit"
)

//go:embed kinds/*.yaml
var files embed.FS

// Kind is what is known about one kind of service.
type Kind struct {
	Name    string `yaml:"name"`
	Built   bool   `yaml:"built"` // false: known by name only
	Summary string `yaml:"summary"`
	// Program are the first words of a command line of this kind.
	Program []string `yaml:"program"`
	// Run is the command where the file has none; {settings} is the config file.
	Run      string    `yaml:"run"`
	Ready    Ready     `yaml:"ready"`
	Stop     Stop      `yaml:"stop"`
	Edit     Edit      `yaml:"edit"`
	Listen   Listen    `yaml:"listen"`
	Settings []Setting `yaml:"settings"`
}

// Ready is the right first answer; {addr} is where the service listens.
type Ready struct {
	Get    string `yaml:"get"`
	Status int    `yaml:"status"`
}

// Stop is how the service is asked to end.
type Stop struct {
	Signal string `yaml:"signal"`
	Grace  string `yaml:"grace"`
}

// Edit says how settings reach the service.
type Edit struct {
	File    string `yaml:"file"`    // style of the config file: "ini", or empty where it cannot be edited
	Section string `yaml:"section"` // of an ini file
	Flag    string `yaml:"flag"`    // "--{name}={value}", or empty where there are no flags
	True    string `yaml:"true"`    // "--{name}": how a true is written, where not as the others
}

// Listen says where the address that the service listens on is written.
type Listen struct {
	Setting string `yaml:"setting"`
	Default string `yaml:"default"`
}

// Setting is one setting that the kind has.
type Setting struct {
	Name string `yaml:"name"`
	Type Type   `yaml:"type"`
	// Choices are the values of a setting of type choice.
	Choices []string `yaml:"choices"`
	// Synonyms are other names that the program itself takes for it.
	Synonyms []string `yaml:"synonyms"`
	// Mistaken are names that people write for it and the program does not take.
	Mistaken []string `yaml:"mistaken"`
	// ActsAfter is the time until the setting can show: a duration, or "value"
	// where it is the setting's own value.
	ActsAfter string `yaml:"acts_after"`
	// Needs are settings without any of which it does nothing.
	Needs  []string `yaml:"needs"`
	Proofs []Proof  `yaml:"proofs"`
}

// Proof is one way to see a setting in force. Exactly one of HTTP, Processes,
// Threads, Backlog and Log is set.
type Proof struct {
	HTTP      string   `yaml:"http"` // a URL, {addr} as in Ready
	Field     string   `yaml:"field"`
	As        string   `yaml:"as"` // "seconds", "share", "bytes": the answer is a number of these
	Processes bool     `yaml:"processes"`
	Offset    int      `yaml:"offset"`
	Threads   bool     `yaml:"threads"`
	Backlog   bool     `yaml:"backlog"`
	Log       string   `yaml:"log"`
	Unless    []string `yaml:"unless"` // says nothing when one of these settings is set too
	When      []string `yaml:"when"`   // says something only then
}

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
	Address  Type = "address"
	Choice   Type = "choice"
)

// Catalogue is all kinds.
type Catalogue struct{ kinds []*Kind }

// Load reads the embedded kind files. An error is a mistake in hakaru itself.
func Load() (*Catalogue, error) {
	var c Catalogue
	names, err := fs.Glob(files, "kinds/*.yaml")
	if err != nil {
		return nil, fmt.Errorf("list kinds: %w", err)
	}
	for _, name := range names {
		text, err := files.ReadFile(name)
		if err != nil {
			return nil, fmt.Errorf("read kind: %w", err)
		}
		read, err := decode(text)
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", name, err)
		}
		c.kinds = append(c.kinds, read...)
	}
	slices.SortFunc(c.kinds, func(a, b *Kind) int { return strings.Compare(a.Name, b.Name) })
	return &c, nil
}

// decode reads one kind, or a list of them.
func decode(text []byte) ([]*Kind, error) {
	list := []*Kind{{}}
	var into any = list[0]
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "- ") {
			list, into = nil, &list
			break
		}
	}
	if err := yaml.NewDecoder(bytes.NewReader(text), yaml.Strict()).Decode(into); err != nil {
		return nil, err
	}
	return list, nil
}

// Find returns a kind by name.
func (c *Catalogue) Find(name string) (*Kind, bool) {
	for _, k := range c.kinds {
		if k.Name == name {
			return k, true
		}
	}
	return nil, false
}

// Names returns the names of all kinds, those that can be worked with first.
func (c *Catalogue) Names() []string {
	var built, planned []string
	for _, k := range c.kinds {
		if k.Built {
			built = append(built, k.Name)
		} else {
			planned = append(planned, k.Name)
		}
	}
	return append(built, planned...)
}

// Guess returns the kind whose program a command line starts, or nil. A
// directory before the program's name does not matter.
func (c *Catalogue) Guess(words []string) *Kind {
	for _, k := range c.kinds {
		if n := len(k.Program); n == 0 || len(words) < n ||
			words[0][strings.LastIndexByte(words[0], '/')+1:] != k.Program[0] ||
			!slices.Equal(words[1:n], k.Program[1:]) {
			continue
		}
		return k
	}
	return nil
}

// Knows reports whether the kind has a list of settings to check names against.
func (k *Kind) Knows() bool { return len(k.Settings) > 0 }

// Setting returns a setting by its name or by a synonym of it.
func (k *Kind) Setting(name string) (Setting, bool) {
	for _, s := range k.Settings {
		if s.Name == name || slices.Contains(s.Synonyms, name) {
			return s, true
		}
	}
	return Setting{}, false
}

// Mistaken returns the setting that people mean when they write name.
func (k *Kind) Mistaken(name string) (string, bool) {
	for _, s := range k.Settings {
		if slices.Contains(s.Mistaken, name) {
			return s.Name, true
		}
	}
	return "", false
}

// SettingNames returns the names of all settings.
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
		if !slices.Contains([]string{"true", "false", "1", "0", "yes", "no", "on", "off"}, value) {
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
	case Address:
		if path, unix := strings.CutPrefix(value, "unix:"); unix && path != "" {
			return nil
		}
		colon := strings.LastIndexByte(value, ':')
		if colon < 0 {
			return fmt.Errorf("%q is not an address: write host:port or unix:PATH", value)
		}
		if _, err := strconv.ParseUint(value[colon+1:], 10, 16); err != nil {
			return fmt.Errorf("%q is not an address: its port is no number", value)
		}
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
	}
	if text == "" {
		return 0, false
	}
	d, err := unit.ParseDuration(text)
	return d, err == nil && d > 0
}

// Want returns what a proof is to find where value was asked for.
func (p Proof) Want(value string) string {
	var number float64
	var err error
	switch p.As {
	case "seconds":
		d, derr := unit.ParseDuration(value)
		number, err = d.Seconds(), derr
	case "share":
		number, err = unit.ParseShare(value)
	case "bytes":
		number, err = unit.ParseBytes(value)
	default:
		return value
	}
	if err != nil {
		return value
	}
	return strconv.FormatFloat(number, 'f', -1, 64)
}
