package experiment

import (
	"fmt"
	"slices"
	"strings"

	"hakaru"
	"hakaru/internal/grammar"
	"hakaru/internal/hint"
	"hakaru/internal/mistake"
	"hakaru/internal/render"
	"hakaru/internal/variant"
)

func (b *builder) stack() bool { return b.written("services") }

// owner splits "puma.threads" where puma is a service of the stack.
func (b *builder) owner(name string) (service, setting string) {
	if before, after, found := strings.Cut(name, "."); found && b.stack() && after != "" {
		if slices.ContainsFunc(b.exp.Services, func(s hakaru.Service) bool { return s.Name == before }) {
			return before, after
		}
	}
	return "", name
}

// setting makes a Setting and remembers where it was written.
func (b *builder) setting(name string, s grammar.Setting) hakaru.Setting {
	return b.book.Setting(b.owner, name, "", s.Value, s.NameAt, s.At)
}

func (b *builder) buildBase() {
	for i := range b.exp.Services {
		service := &b.exp.Services[i]
		for _, s := range b.services[i].Base {
			name := s.Name
			if b.stack() {
				name = service.Name + "." + s.Name
			}
			service.Base = render.Override(service.Base, b.setting(name, s))
			b.based = append(b.based, name)
		}
	}
	for _, s := range b.doc.Base {
		b.addBase(s)
	}
	for _, text := range b.opt.Set {
		at := mistake.Place{Flag: "--set " + text}
		name, value, found := strings.Cut(text, "=")
		if !found || name == "" {
			b.Mistake(at, "bad-flag", "--set takes name=value", "such as --set processes=4")
			continue
		}
		if _, param := b.exp.Params[name]; param {
			b.exp.Params[name] = value
			continue
		}
		s := grammar.Setting{Name: name, Value: &value, NameAt: at, At: at}
		if value == "null" {
			s.Value = nil
		}
		if b.doc.Factors.Has(name) {
			b.Mistake(at, "set-factor", name+" is a factor, so it has no single value", "remove it from factors, or leave --set out")
			continue
		}
		b.addBase(s)
	}
}

// buildVariants takes over what there is to compare.
func (b *builder) buildVariants() {
	known := variant.Known{Params: b.exp.Params, Names: slices.Concat(b.based, b.doc.Params.Keys)}
	for _, s := range b.exp.Services {
		known.Base = append(known.Base, s.Base...)
	}
	set := variant.Build(b.Decoder, &b.doc, b.owner, known, b.book)
	b.exp.Design.Method = set.Method
	b.exp.Factors, b.exp.Levels, b.exp.Strata = set.Factors, set.Levels, set.Strata
	b.exp.Variants, b.exp.Baseline, b.exp.Pairs = set.Variants, set.Baseline, set.Pairs
	b.varied = set.Varied
}

func (b *builder) addBase(s grammar.Setting) {
	one := b.setting(s.Name, s)
	to := 0
	if b.stack() {
		if one.Service == "" {
			var names []string
			for _, service := range b.exp.Services {
				names = append(names, service.Name+"."+s.Name)
			}
			fix := "write one of " + hint.List(names) + ", or put it under params"
			if before, _, found := strings.Cut(s.Name, "."); found {
				var services []string
				for _, service := range b.exp.Services {
					services = append(services, service.Name)
				}
				fix = hint.Name(before, services)
			}
			b.Mistake(s.NameAt, "whose-setting", fmt.Sprintf("base: no service is known for the setting %s", s.Name), fix)
			return
		}
		to = slices.IndexFunc(b.exp.Services, func(service hakaru.Service) bool { return service.Name == one.Service })
	}
	if to >= len(b.exp.Services) {
		return
	}
	b.based = append(b.based, s.Name)
	b.exp.Services[to].Base = render.Override(b.exp.Services[to].Base, one)
}
