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
			b.Mistake(b.book.Named[name], "duplicate", fmt.Sprintf("%s is both %s and a setting", name, article(other.what)), fix)
		}
	}
	b.checkUse()
	b.checkValues()
	b.checkOnly()
}

func article(what string) string { return "a " + what }

// isName reports whether something is called so that texts are filled with.
func (b *builder) isName(name string) bool {
	settings := render.SettingNames(b.exp)
	return settings[name] || settings[strings.TrimSuffix(name, ".name")] || b.fillsValues(name)
}

// fillsValues reports whether the value of a setting may be filled with a name.
func (b *builder) fillsValues(name string) bool {
	_, param := b.exp.Params[name]
	return param || render.Leased(b.exp)[name] || b.doc.At.Has(name) || b.doc.At.Has(strings.TrimSuffix(name, ".name"))
}

// fillers are the names that values may be filled with, but for parts of addresses.
func (b *builder) fillers() []string {
	var all []string
	for name := range render.Leased(b.exp) {
		if !strings.Contains(name, ".") {
			all = append(all, name)
		}
	}
	all = slices.Concat(all, b.doc.At.Keys, b.doc.Params.Keys)
	slices.Sort(all)
	return all
}

// checkUse looks at the names in URLs and addresses, where a brace is never
// meant as a brace, in commands, where it may be, and for levels of the load that
// nothing uses.
func (b *builder) checkUse() {
	all := slices.AppendSeq(b.fillers(), maps.Keys(render.SettingNames(b.exp)))
	slices.Sort(all)
	check := func(t grammar.Text, what string) {
		for _, name := range render.Mentioned(t.Value) {
			if b.isName(name) {
				continue
			}
			fix := "declare it: ports: [" + name + "]"
			if like := hint.Near(name, all); like != "" {
				fix = "did you mean {" + like + "}?"
			}
			b.Mistake(t.At, "unknown-name", fmt.Sprintf("%s: nothing is called {%s}", what, name), fix)
		}
	}
	// A command may have braces of its own: only what is nearly a name is a mistake,
	// and the rest a doubt (internal/doubt).
	command := func(t grammar.Text, what string, names ...string) {
		for _, name := range render.Braces(t.Value) {
			if b.isName(name) || slices.Contains(names, name) {
				continue
			}
			if like := hint.Near(name, slices.Concat(all, names)); like != "" {
				b.Mistake(t.At, "unknown-name", fmt.Sprintf("%s: nothing is called {%s}", what, name), "did you mean {"+like+"}?")
			}
		}
	}
	for i := range b.services {
		doc := &b.services[i]
		if doc.Ready != nil {
			check(doc.Ready.Get, "ready.get")
			check(doc.Ready.Connect, "ready.connect")
		}
		if doc.Attach != nil {
			check(doc.Attach.Get, "attach.get")
			check(doc.Attach.Connect, "attach.connect")
		}
		for _, c := range []struct {
			text grammar.Text
			what string
		}{{doc.Apply, "apply"}, {doc.Restart, "restart"}, {doc.Undo, "undo"}} {
			command(c.text, c.what, "file", "hakaru.dir", "hakaru.exe")
		}
		command(doc.Build, "build", "hakaru.exe")
	}
	if l := b.doc.Load; l != nil && l.HTTP != nil {
		check(l.HTTP.URL, "load.http.url")
		texts := httpTexts(l.HTTP)
		for _, key := range slices.Sorted(maps.Keys(texts)) {
			// Bodies have braces of their own.
			if !slices.Contains([]string{"url", "body", "expect"}, key) {
				check(texts[key], "load.http."+key)
			}
		}
		for _, source := range l.HTTP.Sources {
			check(source, "load.http.sources")
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

// checkValues looks at the braces in values of settings. They are filled with
// ports, sockets, params and levels of the load, never with another setting; what
// is nothing's name would reach the program as it is.
func (b *builder) checkValues() {
	settings := render.SettingNames(b.exp)
	done := map[string]bool{}
	for _, name := range slices.Concat(b.varied, b.based) {
		if done[name] || render.ReservedFactor(name) {
			continue
		}
		done[name] = true
		for _, s := range b.valuesOf(name) {
			if s.Value == nil {
				continue
			}
			for _, m := range render.Braces(*s.Value) {
				at := b.book.Valued[name][s.Level]
				if b.fillsValues(m) {
					continue
				}
				if settings[m] || settings[strings.TrimSuffix(m, ".name")] {
					b.Mistake(at, "setting-in-value", fmt.Sprintf("%s: {%s} is a setting, and the value of a setting is not filled with another", name, m),
						"write the value itself, or a name under params in both")
				} else if like := hint.Near(m, b.fillers()); like != "" {
					b.Mistake(at, "unknown-name", fmt.Sprintf("%s: nothing is called {%s}", name, m), "did you mean {"+like+"}?")
				}
			}
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
