// Package doubt says what is right by the grammar of an experiment and most likely
// not what was meant: settings that cannot act in the time of a trial, that do
// nothing, or that switch others on; braces that stay as they are; names of one
// commit.
//
// It takes a finished hakaru.Experiment, fresh from its file or from the store, and
// gives warnings, to be said before time is spent on it. It refuses nothing and
// changes nothing: what is wrong is for internal/experiment.
package doubt

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"hakaru"
	"hakaru/internal/hint"
	"hakaru/internal/render"
)

// Codes of doubts.
const (
	NothingToCompare = "nothing_to_compare"
	BraceStays       = "brace_stays"
	FlagReplaces     = "flag_replaces"
	SameVersion      = "same_version"  // two levels are one commit
	CannotAct        = "cannot_act"    // a setting needs longer than a trial is
	IdleSetting      = "idle"          // a setting needs another that is switched off
	UnknownKey       = "unknown_key"   // a config file has a key that its program ignores
	AlsoSwitched     = "also_switched" // a setting of some variants switches another one on
	LeavesForeground = "leaves_foreground"
	TakesOver        = "takes_over"     // a trial would take a socket from whoever listens on it
	SharesFiles      = "shares_files"   // a trial writes what a live server of the same config writes
	ListensToo       = "listens_beside" // an address that is put in leaves another, or replaces several
)

// Of are the doubts about an experiment.
func Of(exp *hakaru.Experiment) []hakaru.Warning {
	var out []hakaru.Warning
	if len(exp.Pairs) == 0 {
		out = append(out, hakaru.Warning{Code: NothingToCompare,
			Message: "nothing is compared: there is only one variant; give a setting two levels under factors (--factor name=a,b), or write a second variant"})
	}
	if p := exp.Load.Program; p != nil && p.Replaced != "" {
		out = append(out, hakaru.Warning{Code: FlagReplaces, Message: p.Replaced})
	}
	out = append(out, sameVersion(exp)...)
	out = append(out, braces(exp)...)
	return append(out, effects(exp)...)
}

// settingsOf are all settings that an experiment gives values, as often as it does.
func settingsOf(exp *hakaru.Experiment) []hakaru.Setting {
	var list []hakaru.Setting
	for _, s := range exp.Services {
		list = append(list, s.Base...)
	}
	for _, f := range exp.Factors {
		list = append(list, f.Levels...)
	}
	for _, v := range exp.Variants {
		list = append(list, v.Settings...)
	}
	return list
}

// sameVersion names levels of git that are the same commit. The working tree may
// change meanwhile, and is none.
func sameVersion(exp *hakaru.Experiment) []hakaru.Warning {
	var out []hakaru.Warning
	var seen []hakaru.Setting
	for _, s := range settingsOf(exp) {
		same := func(o hakaru.Setting) bool { return o.FullName() == s.FullName() && *o.Value == *s.Value }
		if s.Name != render.Versions || s.Value == nil || *s.Value == "." ||
			slices.ContainsFunc(seen, func(o hakaru.Setting) bool { return same(o) && o.Level == s.Level }) {
			continue
		}
		if i := slices.IndexFunc(seen, same); i >= 0 {
			out = append(out, hakaru.Warning{Code: SameVersion,
				Message: fmt.Sprintf("%s and %s are the same commit %.12s: no difference between them is one of the code", seen[i].Level, s.Level, *s.Value)})
		}
		seen = append(seen, s)
	}
	return out
}

// braces names what stands between braces and is nothing's name, so that the
// program will be given it as it is.
func braces(exp *hakaru.Experiment) []hakaru.Warning {
	var out []hakaru.Warning
	settings, leased := render.SettingNames(exp), render.Leased(exp)
	filled := slices.Collect(maps.Keys(exp.Params)) // what a value can be filled with
	for _, l := range exp.Levels {
		filled = append(filled, l.Name)
	}
	filled = slices.AppendSeq(filled, maps.Keys(leased))
	known := slices.AppendSeq(slices.Clone(filled), maps.Keys(settings))
	slices.Sort(known)
	look := func(where string, mentioned, names []string, otherwise string) {
		for _, name := range mentioned {
			if slices.Contains(names, name) || slices.Contains(names, strings.TrimSuffix(name, ".name")) {
				continue
			}
			fix := otherwise
			if near := hint.Near(name, names); near != "" {
				fix = "did you mean {" + near + "}?"
			}
			if fix != "" {
				fix = ": " + fix
			}
			w := hakaru.Warning{Code: BraceStays, Message: fmt.Sprintf("%s holds {%s}, nothing is called so, and it stays as it is%s", where, name, fix)}
			if !slices.Contains(out, w) {
				out = append(out, w)
			}
		}
	}
	for i := range exp.Services {
		s := &exp.Services[i]
		for _, name := range render.Mentioned(strings.Join(s.Run, " ")) {
			fix := "a port that hakaru is to find is declared with ports: [" + strings.TrimSuffix(name, ".port") + "]"
			if len(s.Ports) > 0 {
				p := s.Ports[0]
				fix = fmt.Sprintf("{%s} is the address 127.0.0.1:PORT, {%s.port} the port alone", p, p)
			}
			look("run of "+s.Name, []string{name}, known, fix)
		}
		// Commands that bring settings to a service have {file} as well.
		for _, c := range []struct{ key, text string }{{"apply", s.Apply}, {"restart", s.Restart}, {"undo", s.Undo}} {
			look(c.key+" of "+s.Name, render.Braces(c.text), slices.Concat(known, []string{"file"}), "")
		}
		look("build of "+s.Name, render.Braces(s.Build), known, "")
	}
	for _, s := range settingsOf(exp) {
		if s.Value != nil && s.Name != render.Versions {
			look("a value of "+s.FullName(), render.Braces(*s.Value), filled, "")
		}
	}
	return out
}
