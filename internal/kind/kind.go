// Package kind holds what is known about kinds of services: how to tell that
// one is ready, how to stop it, which settings it has and of which type, what a
// setting needs to act, where it listens, what proves that a setting is in force,
// and which line of its output explains a failed start.
//
// What is known is data: one YAML file a kind under kinds/, and beside it a plain
// list of all names that the program takes (docs/kinds.md describes both). The
// code applies them to texts: catalogue.go reads them, settings.go answers about
// names, put.go puts settings in (by internal/edit), conditions.go says what is
// switched on, listen.go where the service listens, proofs.go what to ask. It
// starts nothing and reads no file of a person.
//
// A kind that is only planned is known by name, so that a file that names it is
// told "not built yet" and not "unknown".
package kind

import (
	"hakaru"
	"hakaru/internal/edit"
)

// Kind is what is known about one kind of service.
type Kind struct {
	Name    string `yaml:"name"`
	Built   bool   `yaml:"built"` // false: known by name only
	Summary string `yaml:"summary"`
	// Like is a kind whose everything counts here too, but for what is written.
	Like string `yaml:"like"`
	// Programs are the first words of command lines of this kind.
	Programs []string `yaml:"programs"`
	// Run is the command where the file has none; {settings} is the config file.
	Run string `yaml:"run"`
	// RunUnless is the command where the config file has a setting of its own that
	// the words of Run would repeat.
	RunUnless map[string]string `yaml:"run_unless"`

	Ready  Ready  `yaml:"ready"`
	Stop   Stop   `yaml:"stop"`
	Edit   Edit   `yaml:"edit"`
	Listen Listen `yaml:"listen"`
	SQL    SQL    `yaml:"sql"`

	// Loud says that the program refuses a setting that it does not know.
	Loud bool `yaml:"loud"`
	// Ignores says that it passes over a key of its config file that it does not
	// know, without a word.
	Ignores bool `yaml:"ignores"`
	// Names is the list of names that the program takes, a file beside this one.
	Names string `yaml:"names"`
	// Settings are those of which more is known than the name.
	Settings []Setting `yaml:"settings"`
	// Proofs are of settings for which no proof is written.
	Proofs []Proof `yaml:"proofs"`
	// Private are files that two running services must not share.
	Private []Private `yaml:"private"`
	// TakesOver are settings for sockets whose file the program removes, whoever
	// listens on it.
	TakesOver []string `yaml:"takes_over"`
	// Shares are settings for files and directories that the program writes, and a
	// live server that has the same line writes too.
	Shares []string `yaml:"shares"`
	// Variables are how the config file uses a key of its own, {name}.
	Variables []string `yaml:"variables"`
	// LogsElsewhere are conditions under which the output does not reach hakaru.
	LogsElsewhere []string `yaml:"logs_elsewhere"`
	// Background are conditions under which the program leaves the foreground.
	Background []string `yaml:"background"`
	Signs      []Sign   `yaml:"signs"`

	names    map[string]*Setting // every name that the program takes, normalised
	all      []string            // names that may be meant, sorted
	switches []string            // flags that take no value
}

// Ready is the right first answer; {addr} is where the service listens.
type Ready struct {
	// Load asks what the load will ask, where the load goes to this service; the
	// rest is for when it does not.
	Load    bool   `yaml:"load"`
	Get     string `yaml:"get"`
	Status  int    `yaml:"status"`
	Connect string `yaml:"connect"`
	Log     string `yaml:"log"`
}

// Stop is how the service is asked to end.
type Stop struct {
	Signal string `yaml:"signal"`
	Grace  string `yaml:"grace"`
}

// Edit says how settings reach the service.
type Edit struct {
	File     edit.Style `yaml:"file"`     // style of the config file; empty where it cannot be edited
	Sections []string   `yaml:"sections"` // of the file, that the program reads
	Flag     string     `yaml:"flag"`     // "--{name}={value}"; empty where there are no flags
	Switch   string     `yaml:"switch"`   // "--{name}": a flag without a value
	// Config is a pattern (RE2) on a word of the command line that names a config
	// file, and ConfigFlags are the settings that name one there.
	Config      string   `yaml:"config"`
	ConfigFlags []string `yaml:"config_flags"`
	// Implicit are the config files that the program reads of itself where its
	// command line names none, from the directory it runs in.
	Implicit []string `yaml:"implicit"`
	// In is the block for a setting of which nothing is known.
	In string `yaml:"in"`
	// Dashes says that - and _ are the same in names of settings.
	Dashes bool `yaml:"dashes"`
	// Beside says that files which the config file includes name others relative
	// to where the config file is: its copy needs them beside it.
	Beside bool `yaml:"beside"`
}

// SQL is where proofs by SQL are asked: over the unix socket where one is set, or
// over TCP.
type SQL struct {
	Unix string `yaml:"unix"` // {path}
	TCP  string `yaml:"tcp"`  // {addr}
}

// Private is a setting that names a file of the running service.
type Private struct {
	Name string `yaml:"name"`
	// Value is what the copy of the config file says; empty: it is taken out.
	Value string `yaml:"value"`
	// Always puts it in; otherwise it is replaced where the file has it.
	Always bool `yaml:"always"`
}

// Sign is a line of the output that explains a failed start.
type Sign struct {
	Line  string `yaml:"line"` // regular expression (RE2)
	Hint  string `yaml:"hint"`
	Fatal bool   `yaml:"fatal"` // it will not become ready any more, though it may run on
}

// Setting is one setting that the kind has.
type Setting struct {
	Name string `yaml:"name"`
	Type Type   `yaml:"type"`
	// Choices are the values of a setting of type choice.
	Choices []string `yaml:"choices"`
	// Synonyms are other names that the program itself takes for it; of one letter
	// with a dash (-w) on its command line only.
	Synonyms []string `yaml:"synonyms"`
	// Mistaken are names that people write for it and the program does not take.
	Mistaken []string `yaml:"mistaken"`
	// File and Flag are its names in the config file and on the command line,
	// where they differ from what a person writes. A File of "-": a flag only.
	File string `yaml:"file"`
	Flag string `yaml:"flag"`
	// Switch says that its flag takes no value.
	Switch bool `yaml:"switch"`
	// In is the block of the config file where it is put in: "http.server".
	In string `yaml:"in"`
	// ActsAfter is the time until the setting can show: a duration, or "value"
	// where it is the setting's own value (plain numbers are seconds).
	ActsAfter string `yaml:"acts_after"`
	// Needs are settings without any of which it does nothing.
	Needs []string `yaml:"needs"`
	// ImpliedBy are settings that switch this one on.
	ImpliedBy []string `yaml:"implied_by"`
	Proofs    []Proof  `yaml:"proofs"`
}

// UnitSigns are the kind's signs as a unit carries them.
func (k *Kind) UnitSigns() []hakaru.Sign {
	var out []hakaru.Sign
	for _, s := range k.Signs {
		out = append(out, hakaru.Sign{Pattern: s.Line, Hint: s.Hint, Fatal: s.Fatal})
	}
	return out
}
