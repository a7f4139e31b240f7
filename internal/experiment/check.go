package experiment

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"hakaru"
	"hakaru/internal/hint"
	"hakaru/internal/kind"
	"hakaru/internal/mistake"
	"hakaru/internal/render"
)

// checkSettings looks whether every setting can reach a service: by a
// placeholder, or by what the kind knows.
func (b *builder) checkSettings() {
	if b.doc.Service != nil && b.written("services") || len(b.exp.Services) == 0 {
		return
	}
	// Where it is not known what is run, nothing is known to be unused; a name that
	// is nearly one of the kind's is a mistake all the same.
	blind := slices.ContainsFunc(b.exp.Services, func(s hakaru.Service) bool { return len(s.Run) == 0 && s.Attach == nil })
	used := render.Usage(b.exp)
	checked := map[string]bool{}
	for _, name := range slices.Concat(b.varied, b.based) {
		_, own := b.owner(name)
		if checked[name] || render.ReservedFactor(name) || own == render.Versions {
			continue
		}
		checked[name] = true
		if len(used[name]) > 0 {
			continue
		}
		service := b.serviceOf(name)
		at := b.book.Named[name]
		if service == nil {
			if blind {
				continue
			}
			fix := "write {" + name + "} where it belongs"
			if len(b.exp.Services) > 0 {
				fix += ", or say whose it is: " + b.exp.Services[0].Name + "." + name
			}
			if before, _, found := strings.Cut(name, "."); found {
				var services []string
				for _, s := range b.exp.Services {
					services = append(services, s.Name)
				}
				if other := hint.Near(before, services); other != "" {
					fix = fmt.Sprintf("did you mean %q?", strings.Replace(name, before, other, 1))
				}
			}
			b.Mistake(at, "not-used", fmt.Sprintf("nothing uses the setting %s", name), fix)
			continue
		}
		k, known := b.kinds.Find(service.Kind)
		if !known {
			continue
		}
		_, plain := b.owner(name)
		switch {
		case k.Knows():
			_, mistaken := k.Mistaken(plain)
			if _, has := k.Setting(plain); blind && !has && !mistaken && k.Near(plain) == "" {
				continue
			}
			b.checkKnown(k, service, name, plain)
		case blind, !k.Built: // the latter is named in NotYet
		case !k.CanEditFile() && !k.CanEditWords():
			fix := "write {" + name + "} in run, env, files or the settings file"
			if service.Attach != nil {
				fix = "write {" + name + "} in the settings file or in apply"
			}
			if placeholder := hint.Near(name, b.unknownNames()); placeholder != "" {
				fix = fmt.Sprintf("{%s} is written, and nothing is called so: did you mean {%s}?", placeholder, name)
			} else if g := b.kinds.Guess(service.Run); g != nil && g.Name != k.Name {
				fix = g.Name + " is not known well enough yet to edit its settings: " + fix
			}
			b.Mistake(at, "not-used", fmt.Sprintf("nothing uses the setting %s: kind %s knows no settings", name, k.Name), fix)
		}
	}
}

// unknownNames are the words between braces that are nothing's name.
func (b *builder) unknownNames() []string {
	settings, leased := render.SettingNames(b.exp), render.Leased(b.exp)
	var out []string
	for name := range render.Usage(b.exp) {
		if _, param := b.exp.Params[name]; !param && !settings[name] && !leased[name] && !b.doc.At.Has(name) {
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
	if fix, refused := k.Refuses(plain); refused && !k.IsVariable(b.exp.Source(service.Settings).Content, plain) {
		b.Mistake(b.book.Named[name], "unknown-setting", fmt.Sprintf("%s has no setting called %q", k.Name, plain), fix)
		return
	}
	known := k.Describe(plain)
	for _, v := range b.valuesOf(name) {
		if v.Value == nil {
			continue
		}
		if err := known.Check(*v.Value); err != nil {
			b.Mistake(b.book.Valued[name][v.Level], "bad-value", fmt.Sprintf("%s: %v", name, err), "")
			continue
		}
		if acts, found := known.Acts(*v.Value); found && !b.doc.ActsAfter.Has(name) {
			b.acts(name, acts)
		}
	}
}

// checkRendering renders what would be run, so that what only shows in a variant
// or stratum (a load of "{x}" connections where x is a word) is found now. Where
// they are more than render.MaxRendered together, every variant and every stratum
// is rendered still.
func (b *builder) checkRendering() {
	if b.doc.Load == nil && len(b.services) == 0 {
		return
	}
	c, err := render.New(b.exp)
	if err != nil {
		b.renderMistake(err, hakaru.Variant{})
		return
	}
	all := len(b.exp.Variants)*len(b.exp.Strata) <= render.MaxRendered
	b.loads = make([]hakaru.LoadSpec, len(b.exp.Strata))
	for i, v := range b.exp.Variants {
		for j, at := range b.exp.Strata {
			if !all && i > 0 && j > 0 {
				continue
			}
			r, err := c.Rendering(v, at)
			var load hakaru.LoadSpec
			if err == nil {
				load, err = r.Load()
			}
			if err != nil {
				b.renderMistake(err, v)
				continue
			}
			if i == 0 {
				b.loads[j] = load
			} else if own, first := rate(load), rate(b.loads[j]); own.law != first.law && own.rate == first.rate && own.share == first.share {
				b.Mistake(b.loadAt("load.http.arrival"), "bad-value", "load.http.arrival is another one for "+v.Name+" than for "+b.exp.Variants[0].Name+": variants are compared under the same law", "write constant or poisson, or {name} of a level under at")
			} else if own != first {
				b.Mistake(b.loadAt("load.http.rate"), "bad-value", "load.http.rate is another one for "+v.Name+" than for "+b.exp.Variants[0].Name+": variants are compared at the same rate", "write a rate, or {name} of a level under at")
			}
			for _, idle := range r.Idle() {
				name := idle.Setting.FullName()
				if idle.Off == "" {
					b.Mistake(b.book.Named[name], "needs", idle.Why(), b.needsHint(idle))
					continue
				}
				if b.exp.Variants[i].Idle == nil {
					b.exp.Variants[i].Idle = map[string]string{}
				}
				b.exp.Variants[i].Idle[name] = idle.Why()
			}
			for name, after := range r.ActsAfter() {
				b.actsLater(&b.exp.Variants[i], name, after)
			}
		}
	}
}

// needsHint says what to do about a setting that does nothing without others. A
// factor is not written under base: variants without it are left out, or it is in
// the baseline.
func (b *builder) needsHint(idle render.Idle) string {
	service := b.serviceOf(idle.Setting.FullName())
	if service == nil {
		return ""
	}
	k, _ := b.kinds.Find(service.Kind)
	for _, f := range b.exp.Factors {
		_, plain := b.owner(f.Name)
		if b.serviceOf(f.Name) != service || !slices.ContainsFunc(idle.Needs, func(need string) bool { return k.Same(need, plain) }) {
			continue
		}
		on := slices.IndexFunc(f.Levels, func(s hakaru.Setting) bool { return s.Value != nil && !kind.Off(*s.Value) })
		if on < 0 {
			continue
		}
		if b.exp.Design.Method == hakaru.MethodOneAtATime {
			return fmt.Sprintf("switch it on in what the others are compared with: baseline: {%s: %s}", f.Name, f.Levels[on].Level)
		}
		return fmt.Sprintf("leave such variants out: where: [\"%s || !%s\"]", f.Name, idle.Setting.FullName())
	}
	return "set it as well, under base or in the variant"
}

func (b *builder) renderMistake(err error, v hakaru.Variant) {
	if e, ok := errors.AsType[*render.Mistake](err); ok {
		if e.NotYet {
			return // named in NotYet
		}
		at, known := b.book.Named[e.Setting]
		if !known {
			at = b.loadAt(e.Path)
		}
		b.Mistake(at, e.Code, e.Message, e.Fix)
		return
	}
	b.Mistake(mistake.Place{Line: 1, Column: 1}, "render", fmt.Sprintf("variant %s: %v", v.Name, err), "")
}

// checkStrays looks for keys of a person's config file that the program does not
// know and would pass over without a word.
func (b *builder) checkStrays() {
	for i := range b.exp.Services {
		s := &b.exp.Services[i]
		k, known := b.kinds.Find(s.Kind)
		content := b.exp.Source(s.Settings).Content
		if !known || content == "" {
			continue
		}
		for _, stray := range k.Strays(content) {
			if !stray.Sure {
				continue // a doubt
			}
			b.MistakeIn(s.Settings, content, mistake.Place{Line: stray.Line, Column: stray.Column}, "unknown-setting",
				fmt.Sprintf("%s has no setting called %q, and ignores it", k.Name, stray.Name),
				fmt.Sprintf("did you mean %q?", stray.Near))
		}
	}
}
