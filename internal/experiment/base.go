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
)

// setting makes a Setting and remembers where it was written.
func (b *builder) setting(name, levelName string, value *string, nameAt, valueAt mistake.Place) hakaru.Setting {
	service, plain := b.owner(name)
	s := hakaru.Setting{Service: service, Name: plain, Level: levelName, Value: value}
	if s.Level == "" {
		s.Level = "null"
		if value != nil {
			s.Level = *value
		}
	}
	if _, seen := b.settingPlaces[name]; !seen {
		b.settingPlaces[name] = nameAt
		b.valuePlaces[name] = map[string]mistake.Place{}
	}
	if _, seen := b.valuePlaces[name][s.Level]; !seen {
		b.valuePlaces[name][s.Level] = valueAt
	}
	return s
}

func (b *builder) buildBase() {
	for i := range b.exp.Services {
		service := &b.exp.Services[i]
		for _, s := range b.services[i].Base {
			name := s.Name
			if b.stack() {
				name = service.Name + "." + s.Name
			}
			service.Base = render.Override(service.Base, b.setting(name, "", s.Value, s.NameAt, s.At))
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

func (b *builder) addBase(s grammar.Setting) {
	one := b.setting(s.Name, "", s.Value, s.NameAt, s.At)
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
