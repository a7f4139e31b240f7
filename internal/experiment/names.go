package experiment

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"hakaru"
)

var braces = regexp.MustCompile(`\{([A-Za-z_][A-Za-z0-9_.-]*)\}`)

// mentioned returns the names between braces in text.
func mentioned(text string) []string {
	var names []string
	for _, m := range braces.FindAllStringSubmatch(text, -1) {
		names = append(names, m[1])
	}
	return names
}

// leasedNames are the placeholders that the service host fills in: of ports and
// sockets, and hakaru's own.
func leasedNames(exp *hakaru.Experiment) map[string]bool {
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

// settingNames are the full names of all settings of an experiment.
func settingNames(exp *hakaru.Experiment) map[string]bool {
	names := map[string]bool{}
	for _, f := range exp.Factors {
		names[f.Name] = true
	}
	for _, v := range exp.Variants {
		for _, s := range v.Settings {
			names[fullName(s)] = true
		}
	}
	for _, service := range exp.Services {
		for _, s := range service.Base {
			names[fullName(s)] = true
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
		list = append(list, sourceOf(exp, s.Settings))
	}
	return append(list, s.Ready.Get, s.Ready.Body, s.Ready.Connect, s.Ready.Log, s.Dir, s.User, s.Build, s.Apply)
}

func loadTexts(l hakaru.Load) []string {
	if l.Program != nil {
		return slices.Collect(maps.Values(l.Program.Options))
	}
	if l.HTTP == nil {
		return nil
	}
	h := l.HTTP
	list := []string{h.URL, h.Method, h.Body, h.Connections, h.WarmUp, h.Duration, h.Timeout, h.Status, h.Expect, h.KeepAlive}
	return append(list, slices.Collect(maps.Values(h.Headers))...)
}

func sourceOf(exp *hakaru.Experiment, path string) string {
	for _, f := range exp.Sources {
		if f.Path == path {
			return f.Content
		}
	}
	return ""
}

// usage says which services mention a placeholder; "" stands for the load and
// for sockets. Names that are leased are not settings, whatever they are called.
func usage(exp *hakaru.Experiment) map[string][]string {
	leased := leasedNames(exp)
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
			for _, name := range mentioned(text) {
				note(s.Name, name)
			}
		}
		for factor := range s.Only {
			note(s.Name, factor)
		}
	}
	for _, text := range append(loadTexts(exp.Load), slices.Collect(maps.Values(exp.Sockets))...) {
		for _, name := range mentioned(text) {
			note("", name)
		}
	}
	return used
}

// checkNames looks for names that are given twice, cannot be had, or are used
// and not declared.
func (b *builder) checkNames() {
	type named struct {
		what string
		at   place
	}
	seen := map[string]named{}
	declare := func(name, what string, at place) {
		if name == "hakaru" || strings.HasPrefix(name, "hakaru.") || name == "file" && what != "factor" {
			b.mistake(at, "reserved-name", fmt.Sprintf("%s %q: the name is taken by hakaru itself", what, name), "use another name")
			return
		}
		if what != "factor" && !plainName.MatchString(name) {
			b.mistake(at, "bad-name", fmt.Sprintf("%s %q: the name cannot be used in braces", what, name), "use letters, digits, - and _")
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
			b.mistake(at, "duplicate", message, fix)
			return
		}
		seen[name] = named{what, at}
	}
	for i := range b.exp.Services {
		for _, p := range b.services[i].Ports {
			declare(p.value, "port", p.at)
		}
	}
	for i, name := range b.doc.Sockets.keys {
		declare(name, "socket", b.doc.Sockets.places[i])
		value := b.doc.Sockets.values[i]
		if value.set && value.value != "tcp" && value.value != "unix" && !strings.Contains(value.value, "{") {
			b.mistake(value.at, "unknown-value", fmt.Sprintf("socket %s is to be tcp or unix, not %q", name, value.value), suggest(value.value, []string{"tcp", "unix"}))
		}
	}
	for i, name := range b.doc.Params.keys {
		declare(name, "param", b.doc.Params.places[i])
	}
	for i, name := range b.doc.At.keys {
		declare(name, "level of the load (at)", b.doc.At.places[i])
	}
	for i, name := range b.doc.Factors.keys {
		declare(name, "factor", b.doc.Factors.places[i])
	}
	// Settings of base and variants share their names with ports at will
	// (http: "{http}"), and with nothing else.
	for _, name := range slices.Concat(b.based, b.varied) {
		other, twice := seen[name]
		if twice && !b.doc.Factors.has(name) && (strings.HasPrefix(other.what, "level") || other.what == "param") {
			fix := "give one of them another name"
			if other.what != "param" {
				fix = "levels under at are never settings of the service"
			}
			b.mistake(b.settingPlaces[name], "duplicate", fmt.Sprintf("%s is both %s and a setting", name, article(other.what)), fix)
		}
	}
	b.checkUse()
	b.checkOnly()
}

func article(what string) string { return "a " + what }

// checkUse looks at the names in URLs and addresses, where a brace is never
// meant as a brace, and for levels of the load that nothing uses.
func (b *builder) checkUse() {
	leased, settings := leasedNames(b.exp), settingNames(b.exp)
	known := func(name string) bool {
		plain := strings.TrimSuffix(name, ".name")
		_, param := b.exp.Params[name]
		return leased[name] || settings[name] || settings[plain] || param || b.doc.At.has(name) || b.doc.At.has(plain)
	}
	var all []string
	for name := range leased {
		if !strings.HasPrefix(name, "hakaru.") && !strings.Contains(name, ".") {
			all = append(all, name)
		}
	}
	all = slices.Concat(all, b.doc.At.keys, b.doc.Params.keys, slices.Collect(maps.Keys(settings)))
	slices.Sort(all)
	check := func(t text, what string) {
		for _, name := range mentioned(t.value) {
			if known(name) {
				continue
			}
			fix := "declare it: ports: [" + name + "]"
			if like := near(name, all); like != "" {
				fix = "did you mean {" + like + "}?"
			}
			b.mistake(t.at, "unknown-name", fmt.Sprintf("%s: nothing is called {%s}", what, name), fix)
		}
	}
	for i := range b.services {
		if ready := b.services[i].Ready; ready != nil {
			check(ready.Get, "ready.get")
			check(ready.Connect, "ready.connect")
		}
	}
	if l := b.doc.Load; l != nil && l.http != nil {
		check(l.http.URL, "load.http.url")
		for _, t := range []struct {
			name string
			text text
		}{{"connections", l.http.Connections}, {"warm_up", l.http.WarmUp}, {"duration", l.http.Duration}, {"timeout", l.http.Timeout}, {"status", l.http.Status}, {"keep_alive", l.http.KeepAlive}, {"method", l.http.Method}} {
			check(t.text, "load.http."+t.name)
		}
	}
	for i, value := range b.doc.Sockets.values {
		check(value, "socket "+b.doc.Sockets.keys[i])
	}
	used := usage(b.exp)
	for i, name := range b.doc.At.keys {
		if len(used[name]) == 0 && b.doc.Load != nil {
			b.mistake(b.doc.At.places[i], "not-used", fmt.Sprintf("at: nothing uses {%s}, so its levels would all be the same", name), "write {"+name+"} in the load")
		}
	}
}

// checkOnly checks that `only` names a factor and one of its levels.
func (b *builder) checkOnly() {
	for i := range b.services {
		only := b.services[i].Only
		for k, name := range only.keys {
			var levels []string
			for _, v := range b.exp.Variants {
				for _, s := range v.Settings {
					if fullName(s) == name && !slices.Contains(levels, s.Level) {
						levels = append(levels, s.Level)
					}
				}
			}
			want := only.values[k]
			switch {
			case len(levels) == 0:
				b.mistake(only.places[k], "unknown-factor", fmt.Sprintf("only: no factor is called %q", name), suggest(name, b.varied))
			case want.set && !slices.Contains(levels, want.value):
				b.mistake(want.at, "unknown-level", fmt.Sprintf("only: %s has no level %q", name, want.value), suggest(want.value, levels))
			}
		}
	}
}
