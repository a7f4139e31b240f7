package experiment

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"hakaru"
	"hakaru/internal/kind"
)

// checkSettings looks whether every setting can reach a service: by a
// placeholder, or by what the kind knows.
func (b *builder) checkSettings() {
	// Where it is not known what is run, nothing is known to be unused.
	if b.doc.Service != nil && b.written("services") || len(b.exp.Services) == 0 {
		return
	}
	for i := range b.exp.Services {
		if s := &b.exp.Services[i]; len(s.Run) == 0 && s.Attach == nil {
			return
		}
	}
	used := usage(b.exp)
	checked := map[string]bool{}
	for _, name := range slices.Concat(b.varied, b.based) {
		if checked[name] || reservedFactor(name) {
			continue
		}
		checked[name] = true
		if len(used[name]) > 0 {
			continue
		}
		service := b.serviceOf(name)
		at := b.settingPlaces[name]
		if service == nil {
			fix := "write {" + name + "} where it belongs"
			if len(b.exp.Services) > 0 {
				fix += ", or say whose it is: " + b.exp.Services[0].Name + "." + name
			}
			if before, _, found := strings.Cut(name, "."); found {
				var services []string
				for _, s := range b.exp.Services {
					services = append(services, s.Name)
				}
				if other := near(before, services); other != "" {
					fix = fmt.Sprintf("did you mean %q?", strings.Replace(name, before, other, 1))
				}
			}
			b.mistake(at, "not-used", fmt.Sprintf("nothing uses the setting %s", name), fix)
			continue
		}
		k, known := b.kinds.Find(service.Kind)
		if !known || service.Attach != nil {
			continue
		}
		_, plain := b.owner(name)
		switch {
		case k.Knows():
			b.checkKnown(k, service, name, plain)
		case !k.Built:
			// Named in NotYet.
		case !k.CanEditFile() && !k.CanEditWords():
			fix := "write {" + name + "} in run, env, files or the settings file"
			if placeholder := near(name, b.unknownNames()); placeholder != "" {
				fix = fmt.Sprintf("{%s} is written, and nothing is called so: did you mean {%s}?", placeholder, name)
			} else if g := b.kinds.Guess(service.Run); g != nil && g.Name != k.Name {
				fix = g.Name + " is not known well enough yet to edit its settings: " + fix
			}
			b.mistake(at, "not-used", fmt.Sprintf("nothing uses the setting %s: kind %s knows no settings", name, k.Name), fix)
		}
	}
}

// unknownNames are the words between braces that are nothing's name.
func (b *builder) unknownNames() []string {
	settings, leased := settingNames(b.exp), leasedNames(b.exp)
	var out []string
	for name := range usage(b.exp) {
		if _, param := b.exp.Params[name]; !param && !settings[name] && !leased[name] && !b.doc.At.has(name) {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}

// serviceOf returns the service a setting belongs to: in a stack the one it is
// written with, else the only one.
func (b *builder) serviceOf(name string) *hakaru.Service {
	owner, _ := b.owner(name)
	for i := range b.exp.Services {
		if b.exp.Services[i].Name == owner || owner == "" && !b.stack() {
			return &b.exp.Services[i]
		}
	}
	return nil
}

// checkKnown checks a setting against those that its kind has.
func (b *builder) checkKnown(k *kind.Kind, service *hakaru.Service, name, plain string) {
	known, ok := k.Setting(plain)
	if !ok {
		fix := ""
		if meant, found := k.Mistaken(plain); found {
			fix = fmt.Sprintf("%s calls it %q", k.Name, meant)
		} else {
			fix = suggest(plain, k.SettingNames())
		}
		b.mistake(b.settingPlaces[name], "unknown-setting", fmt.Sprintf("%s has no setting called %q", k.Name, plain), fix)
		return
	}
	for _, v := range b.valuesOf(name) {
		if v.Value == nil {
			continue
		}
		if err := known.Check(*v.Value); err != nil {
			b.mistake(b.valuePlaces[name][v.Level], "bad-value", fmt.Sprintf("%s: %v", name, err), "")
			continue
		}
		if acts, found := known.Acts(*v.Value); found && !b.doc.ActsAfter.has(name) {
			b.acts(name, plain, acts)
		}
	}
}

// acts notes the time a setting needs; the shortest where its levels differ, so
// that no level is refused that could act.
func (b *builder) acts(name, plain string, after time.Duration) {
	if b.exp.ActsAfter == nil {
		b.exp.ActsAfter = map[string]time.Duration{}
	}
	for _, key := range []string{name, plain} {
		if before, found := b.exp.ActsAfter[key]; !found || after < before {
			b.exp.ActsAfter[key] = after
		}
	}
}

// valuesOf returns all values that a setting is given, each once.
func (b *builder) valuesOf(name string) []hakaru.Setting {
	var out []hakaru.Setting
	add := func(list []hakaru.Setting) {
		for _, s := range list {
			if fullName(s) == name && !slices.ContainsFunc(out, func(o hakaru.Setting) bool { return o.Level == s.Level }) {
				out = append(out, s)
			}
		}
	}
	for _, f := range b.exp.Factors {
		add(f.Levels)
	}
	for _, v := range b.exp.Variants {
		add(v.Settings)
	}
	for _, s := range b.exp.Services {
		add(s.Base)
	}
	return out
}

// maxRendered bounds how many combinations of variant and stratum are rendered
// to look for mistakes; beyond it, every variant and every stratum is still.
const maxRendered = 2000

// checkRendering renders what would be run, so that what only shows in a variant
// or stratum (a load of "{x}" connections where x is a word) is found now.
func (b *builder) checkRendering() {
	if b.doc.Load == nil && len(b.services) == 0 {
		return
	}
	c, err := newContext(b.exp)
	if err != nil {
		b.renderMistake(err, hakaru.Variant{})
		return
	}
	all := len(b.exp.Variants)*len(b.exp.Strata) <= maxRendered
	for i, v := range b.exp.Variants {
		for j, at := range b.exp.Strata {
			if !all && i > 0 && j > 0 {
				continue
			}
			r, err := c.rendering(v, at)
			if err == nil {
				_, err = r.bundle()
			}
			if err == nil {
				_, err = r.load()
			}
			if err != nil {
				b.renderMistake(err, v)
				continue
			}
			b.checkNeeds(r)
		}
	}
}

func (b *builder) renderMistake(err error, v hakaru.Variant) {
	if e, ok := errors.AsType[*renderError](err); ok {
		if e.notYet {
			return // named in NotYet
		}
		at := b.at(e.path)
		if l := b.doc.Load; l != nil && l.http != nil {
			at = b.valueAt(l.http, strings.TrimPrefix(e.path, "load.http."), e.path)
		}
		b.mistake(at, e.code, e.message, e.fix)
		return
	}
	b.mistake(place{line: 1, column: 1}, "render", fmt.Sprintf("variant %s: %v", v.Name, err), "")
}

// checkNeeds looks for settings that do nothing without another.
func (b *builder) checkNeeds(r *rendering) {
	for _, u := range r.units {
		if u.kind == nil {
			continue
		}
		for _, s := range u.settings {
			known, ok := u.kind.Setting(s.Name)
			if !ok || s.Value == nil || len(known.Needs) == 0 {
				continue
			}
			if slices.ContainsFunc(known.Needs, func(need string) bool {
				_, found := u.kind.Value(u.unit.Argv, u.content, need)
				return found
			}) {
				continue
			}
			b.mistake(b.settingPlaces[fullName(s)], "needs", fmt.Sprintf("%s does nothing without %s", s.Name, strings.Join(known.Needs, " or ")), "set it as well, under base or in the variant")
		}
	}
}

// buildProofs takes over `prove` and `acts_after`.
func (b *builder) buildProofs() {
	names := slices.Concat(b.varied, b.based)
	for i, name := range b.doc.ActsAfter.keys {
		if !slices.Contains(names, name) {
			b.mistake(b.doc.ActsAfter.places[i], "unknown-setting", fmt.Sprintf("acts_after: no setting is called %q", name), suggest(name, names))
		}
		if after := b.doc.ActsAfter.values[i]; after.set {
			_, plain := b.owner(name)
			b.acts(name, plain, after.value)
		}
	}
	for i, name := range b.doc.Prove.keys {
		if !slices.Contains(names, name) {
			b.mistake(b.doc.Prove.places[i], "unknown-setting", fmt.Sprintf("prove: no setting is called %q", name), suggest(name, names))
			continue
		}
		service := b.proofService(name)
		for _, p := range b.doc.Prove.values[i] {
			b.exp.Prove = append(b.exp.Prove, b.proofAsks(service, name, p)...)
		}
	}
}

// proofService is where a setting is to be looked for: its service, or the first
// one that mentions it.
func (b *builder) proofService(name string) string {
	if s := b.serviceOf(name); s != nil {
		return s.Name
	}
	for _, s := range usage(b.exp)[name] {
		if s != "" {
			return s
		}
	}
	if len(b.exp.Services) > 0 {
		return b.exp.Services[0].Name
	}
	return ""
}

// proofAsks makes the questions of one proof: one for any level (Asked is empty),
// or one for each where what to look for depends on it.
func (b *builder) proofAsks(service, name string, p proofDoc) []hakaru.Ask {
	ask := hakaru.Ask{Service: service, Setting: name, Kind: p.kind, Argument: p.argument, Field: p.field, Contains: p.contains, Equals: p.equals, Offset: p.offset}
	if p.byLevel == nil {
		return []hakaru.Ask{ask}
	}
	var asks []hakaru.Ask
	var known []string
	for _, v := range b.valuesOf(name) {
		known = append(known, v.Level)
		want, found := p.byLevel[v.Level]
		if !found {
			continue
		}
		one := ask
		one.Asked = v.Level
		if p.exact {
			one.Equals = want
		} else {
			one.Contains = want
		}
		asks = append(asks, one)
	}
	for _, l := range slices.Sorted(maps.Keys(p.byLevel)) {
		if !slices.Contains(known, l) {
			b.mistake(p.at, "unknown-level", fmt.Sprintf("prove: %s has no level %q", name, l), suggest(l, known))
		}
	}
	return asks
}
