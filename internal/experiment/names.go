package experiment

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"hakaru/internal/grammar"
	"hakaru/internal/hint"
	"hakaru/internal/mistake"
	"hakaru/internal/render"
)

// checkNames looks for names that are given twice, cannot be had, or are used
// and not declared.
func (b *builder) checkNames() {
	type named struct {
		what string
		at   mistake.Place
	}
	seen := map[string]named{}
	declare := func(name, what string, at mistake.Place) {
		if name == "hakaru" || strings.HasPrefix(name, "hakaru.") || name == "file" && what != "factor" {
			b.Mistake(at, "reserved-name", fmt.Sprintf("%s %q: the name is taken by hakaru itself", what, name), "use another name")
			return
		}
		if what != "factor" && !plainName.MatchString(name) {
			b.Mistake(at, "bad-name", fmt.Sprintf("%s %q: the name cannot be used in braces", what, name), "use letters, digits, - and _")
			return
		}
		if other, twice := seen[name]; twice {
			message := fmt.Sprintf("%s is both %s and %s", name, article(other.what), article(what))
			if other.what == what {
				message = fmt.Sprintf("the %s %s is given twice", what, name)
			}
			fix := "give one of them another name"
			if other.what == "level of the load (at)" || what == "level of the load (at)" {
				fix = "levels under at are never settings of the service; " + fix
			}
			b.Mistake(at, "duplicate", message, fix)
			return
		}
		seen[name] = named{what, at}
	}
	for i := range b.exp.Services {
		for _, p := range b.services[i].Ports {
			declare(p.Value, "port", p.At)
		}
	}
	for i, name := range b.doc.Sockets.Keys {
		declare(name, "socket", b.doc.Sockets.Places[i])
		value := b.doc.Sockets.Values[i]
		if value.Set && value.Value != "tcp" && value.Value != "unix" && !strings.Contains(value.Value, "{") {
			b.Mistake(value.At, "unknown-value", fmt.Sprintf("socket %s is to be tcp or unix, not %q", name, value.Value), hint.Name(value.Value, []string{"tcp", "unix"}))
		}
	}
	for i, name := range b.doc.Params.Keys {
		declare(name, "param", b.doc.Params.Places[i])
	}
	for i, name := range b.doc.At.Keys {
		declare(name, "level of the load (at)", b.doc.At.Places[i])
	}
	for i, name := range b.doc.Factors.Keys {
		declare(name, "factor", b.doc.Factors.Places[i])
	}
	// Settings of base and variants share their names with ports at will
	// (http: "{http}"), and with nothing else.
	for _, name := range slices.Concat(b.based, b.varied) {
		other, twice := seen[name]
		if twice && !b.doc.Factors.Has(name) && (strings.HasPrefix(other.what, "level") || other.what == "param") {
			fix := "give one of them another name"
			if other.what != "param" {
				fix = "levels under at are never settings of the service"
			}
			b.Mistake(b.settingPlaces[name], "duplicate", fmt.Sprintf("%s is both %s and a setting", name, article(other.what)), fix)
		}
	}
	b.checkUse()
	b.checkOnly()
}

func article(what string) string { return "a " + what }

// checkUse looks at the names in URLs and addresses, where a brace is never
// meant as a brace, and for levels of the load that nothing uses.
func (b *builder) checkUse() {
	leased, settings := render.Leased(b.exp), render.SettingNames(b.exp)
	known := func(name string) bool {
		plain := strings.TrimSuffix(name, ".name")
		_, param := b.exp.Params[name]
		return leased[name] || settings[name] || settings[plain] || param || b.doc.At.Has(name) || b.doc.At.Has(plain)
	}
	var all []string
	for name := range leased {
		if !strings.HasPrefix(name, "hakaru.") && !strings.Contains(name, ".") {
			all = append(all, name)
		}
	}
	all = slices.Concat(all, b.doc.At.Keys, b.doc.Params.Keys, slices.Collect(maps.Keys(settings)))
	slices.Sort(all)
	check := func(t grammar.Text, what string) {
		for _, name := range render.Mentioned(t.Value) {
			if known(name) {
				continue
			}
			fix := "declare it: ports: [" + name + "]"
			if like := hint.Near(name, all); like != "" {
				fix = "did you mean {" + like + "}?"
			}
			b.Mistake(t.At, "unknown-name", fmt.Sprintf("%s: nothing is called {%s}", what, name), fix)
		}
	}
	for i := range b.services {
		if ready := b.services[i].Ready; ready != nil {
			check(ready.Get, "ready.get")
			check(ready.Connect, "ready.connect")
		}
	}
	if l := b.doc.Load; l != nil && l.HTTP != nil {
		check(l.HTTP.URL, "load.http.url")
		for _, t := range []struct {
			name string
			text grammar.Text
		}{{"connections", l.HTTP.Connections}, {"warm_up", l.HTTP.WarmUp}, {"duration", l.HTTP.Duration}, {"timeout", l.HTTP.Timeout}, {"status", l.HTTP.Status}, {"keep_alive", l.HTTP.KeepAlive}, {"method", l.HTTP.Method}} {
			check(t.text, "load.http."+t.name)
		}
	}
	if l := b.doc.Load; l != nil && grammar.Runs(l.Program.Value) {
		for _, o := range l.Options {
			// Commands, patterns and bodies have braces of their own.
			if o.Value != nil && !slices.Contains([]string{"run", "args", "body", "score", "good", "bad", "throughput"}, o.Name) {
				check(grammar.Text{Set: true, Value: *o.Value, At: o.At}, "load."+l.Program.Value+"."+o.Name)
			}
		}
	}
	for i, value := range b.doc.Sockets.Values {
		check(value, "socket "+b.doc.Sockets.Keys[i])
	}
	used := render.Usage(b.exp)
	for i, name := range b.doc.At.Keys {
		if len(used[name]) == 0 && b.doc.Load != nil {
			b.Mistake(b.doc.At.Places[i], "not-used", fmt.Sprintf("at: nothing uses {%s}, so its levels would all be the same", name), "write {"+name+"} in the load")
		}
	}
}

// checkOnly checks that `only` names a factor and one of its levels.
func (b *builder) checkOnly() {
	for i := range b.services {
		only := b.services[i].Only
		for k, name := range only.Keys {
			var levels []string
			for _, v := range b.exp.Variants {
				for _, s := range v.Settings {
					if s.FullName() == name && !slices.Contains(levels, s.Level) {
						levels = append(levels, s.Level)
					}
				}
			}
			want := only.Values[k]
			switch {
			case len(levels) == 0:
				b.Mistake(only.Places[k], "unknown-factor", fmt.Sprintf("only: no factor is called %q", name), hint.Name(name, b.varied))
			case want.Set && !slices.Contains(levels, want.Value):
				b.Mistake(want.At, "unknown-level", fmt.Sprintf("only: %s has no level %q", name, want.Value), hint.Name(want.Value, levels))
			}
		}
	}
}

// buildNames takes over sockets and params.
func (b *builder) buildNames() {
	for i, name := range b.doc.Sockets.Keys {
		if b.exp.Sockets == nil {
			b.exp.Sockets = map[string]string{}
		}
		b.exp.Sockets[name] = b.doc.Sockets.Values[i].Value
	}
	for i, name := range b.doc.Params.Keys {
		if b.exp.Params == nil {
			b.exp.Params = map[string]string{}
		}
		b.exp.Params[name] = b.doc.Params.Values[i].Value
	}
}
