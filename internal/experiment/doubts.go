package experiment

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
	CannotAct        = "cannot_act"    // a setting needs longer than a trial is
	IdleSetting      = "idle"          // a setting needs another that is switched off
	UnknownKey       = "unknown_key"   // a config file has a key that its program ignores
	AlsoSwitched     = "also_switched" // a setting of some variants switches another one on
	LeavesForeground = "leaves_foreground"
	TakesOver        = "takes_over" // a trial would take a socket from whoever listens on it
)

// Doubts are what is right by the grammar and most likely not what was meant:
// to be said before time is spent on it.
func Doubts(exp *hakaru.Experiment) []hakaru.Warning {
	var out []hakaru.Warning
	if len(exp.Pairs) == 0 {
		out = append(out, hakaru.Warning{Code: NothingToCompare,
			Message: "nothing is compared: there is only one variant; give a setting two levels under factors (--factor name=a,b), or write a second variant"})
	}
	if p := exp.Load.Program; p != nil && p.Replaced != "" {
		out = append(out, hakaru.Warning{Code: FlagReplaces, Message: p.Replaced})
	}
	out = append(out, sameVersion(exp)...)
	settings, leased := render.SettingNames(exp), render.Leased(exp)
	known := slices.Collect(maps.Keys(exp.Params))
	for _, l := range exp.Levels {
		known = append(known, l.Name)
	}
	known = slices.AppendSeq(known, maps.Keys(settings))
	known = slices.AppendSeq(known, maps.Keys(leased))
	slices.Sort(known)
	for i := range exp.Services {
		s := &exp.Services[i]
		for _, name := range render.Mentioned(strings.Join(s.Run, " ")) {
			if slices.Contains(known, name) || slices.Contains(known, strings.TrimSuffix(name, ".name")) {
				continue
			}
			fix := "a port that hakaru is to find is declared with ports: [" + strings.TrimSuffix(name, ".port") + "]"
			if len(s.Ports) > 0 {
				p := s.Ports[0]
				fix = fmt.Sprintf("{%s} is the address 127.0.0.1:PORT, {%s.port} the port alone", p, p)
			}
			if near := hint.Near(name, known); near != "" {
				fix = "did you mean {" + near + "}?"
			}
			out = append(out, hakaru.Warning{Code: BraceStays,
				Message: fmt.Sprintf("run of %s holds {%s}, nothing is called so, and it stays as it is: %s", s.Name, name, fix)})
		}
	}
	return append(out, effects(exp)...)
}
