package render

import (
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"

	"hakaru"
)

// placeholder is what may stand between braces; all else is a brace of the text.
var placeholder = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_.-]*$`)

// Mentioned returns the names between braces in text.
func Mentioned(text string) []string {
	return hakaru.Placeholders(text, placeholder.MatchString)
}

// Braces returns the names between braces in a text that may have braces of its
// own: the variables of a shell (${name}) are none of them.
func Braces(text string) []string {
	return Mentioned(strings.ReplaceAll(text, "${", "$"))
}

// Leased are the placeholders that the service host fills in: of ports and
// sockets, and hakaru's own.
func Leased(exp *hakaru.Experiment) map[string]bool {
	names := map[string]bool{"hakaru.dir": true, "hakaru.exe": true}
	for _, s := range exp.Services {
		for _, p := range s.Ports {
			names[p], names[p+".port"], names[p+".host"], names[p+".url"] = true, true, true, true
		}
	}
	for s := range exp.Sockets {
		names[s], names[s+".port"], names[s+".host"], names[s+".url"] = true, true, true, true
	}
	return names
}

// SettingNames are the full names of all settings of an experiment.
func SettingNames(exp *hakaru.Experiment) map[string]bool {
	names := map[string]bool{}
	for _, f := range exp.Factors {
		names[f.Name] = true
	}
	for _, v := range exp.Variants {
		for _, s := range v.Settings {
			names[s.FullName()] = true
		}
	}
	for _, service := range exp.Services {
		for _, s := range service.Base {
			names[s.FullName()] = true
		}
	}
	return names
}

// serviceTexts are all texts of a service in which placeholders are replaced.
func serviceTexts(exp *hakaru.Experiment, s *hakaru.Service) []string {
	list := slices.Clone(s.Run)
	for _, e := range s.Env {
		list = append(list, valueOr(e.Value, ""))
	}
	for _, name := range slices.Sorted(maps.Keys(s.Files)) {
		list = append(list, s.Files[name])
	}
	if s.Settings != "" {
		list = append(list, exp.Source(s.Settings).Content)
	}
	if s.Attach != nil {
		list = append(list, s.Attach.Get, s.Attach.Body, s.Attach.Connect)
	}
	return append(list, s.Ready.Get, s.Ready.Body, s.Ready.Connect, s.Ready.Log, s.Dir, s.User, s.Build, s.Apply, s.Restart, s.Undo, s.SQL)
}

func loadTexts(l hakaru.Load) []string {
	if l.Program != nil {
		return slices.Collect(maps.Values(l.Program.Options))
	}
	if l.HTTP == nil {
		return nil
	}
	list := slices.Concat(l.HTTP.Sources, slices.Collect(maps.Values(l.HTTP.Headers)))
	for _, text := range HTTPTexts(l.HTTP) {
		list = append(list, *text)
	}
	return list
}

// Usage says which services mention a placeholder; "" stands for the load and
// for sockets. Names that are leased are not settings, whatever they are called.
func Usage(exp *hakaru.Experiment) map[string][]string {
	leased := Leased(exp)
	used := map[string][]string{}
	note := func(service, name string) {
		if plain, found := strings.CutSuffix(name, ".name"); found {
			name = plain
		}
		if !leased[name] && !slices.Contains(used[name], service) {
			used[name] = append(used[name], service)
		}
	}
	for i := range exp.Services {
		s := &exp.Services[i]
		for _, text := range serviceTexts(exp, s) {
			for _, name := range Mentioned(text) {
				note(s.Name, name)
			}
		}
		for factor := range s.Only {
			note(s.Name, factor)
		}
	}
	for _, text := range append(loadTexts(exp.Load), slices.Collect(maps.Values(exp.Sockets))...) {
		for _, name := range Mentioned(text) {
			note("", name)
		}
	}
	return used
}

// Override puts a setting in the place of one of the same name, or at the end.
func Override(list []hakaru.Setting, s hakaru.Setting) []hakaru.Setting {
	for i := range list {
		if list[i].FullName() == s.FullName() {
			list[i] = s
			return list
		}
	}
	return append(list, s)
}

func valueOr(value *string, or string) string {
	if value != nil {
		return *value
	}
	return or
}

// Versions is the factor whose levels are versions of the person's code.
const Versions = "git"

// ReservedFactor tells the factors that are no settings of a service.
func ReservedFactor(name string) bool {
	return name == Versions || strings.HasPrefix(name, "sysctl.")
}

// NamesFile reports whether a word is the path of a file, or ends in it after an
// equals sign, and where the path begins; -1 where it is not.
func NamesFile(word, file string) int {
	if path.Clean(word) == path.Clean(file) && word != "" {
		return 0
	}
	if i := strings.LastIndexByte(word, '='); i >= 0 && word[i+1:] != "" && path.Clean(word[i+1:]) == path.Clean(file) {
		return i + 1
	}
	return -1
}
