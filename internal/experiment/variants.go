package experiment

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"hakaru"
)

// maxVariants bounds how many variants factors may be crossed to.
const maxVariants = 4096

// fullName is the name a setting is written by: in a stack with its service.
func fullName(s hakaru.Setting) string {
	if s.Service != "" {
		return s.Service + "." + s.Name
	}
	return s.Name
}

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
func (b *builder) setting(name, levelName string, value *string, nameAt, valueAt place) hakaru.Setting {
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
		b.valuePlaces[name] = map[string]place{}
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
			name := s.name
			if b.stack() {
				name = service.Name + "." + s.name
			}
			service.Base = override(service.Base, b.setting(name, "", s.value, s.nameAt, s.at))
			b.based = append(b.based, name)
		}
	}
	for _, s := range b.doc.Base {
		b.addBase(s)
	}
	for _, text := range b.opt.Set {
		at := place{file: "--set " + text}
		name, value, found := strings.Cut(text, "=")
		if !found || name == "" {
			b.mistake(at, "bad-flag", "--set takes name=value", "such as --set processes=4")
			continue
		}
		if _, param := b.exp.Params[name]; param {
			b.exp.Params[name] = value
			continue
		}
		s := settingDoc{name: name, value: &value, nameAt: at, at: at}
		if value == "null" {
			s.value = nil
		}
		if b.doc.Factors.has(name) {
			b.mistake(at, "set-factor", name+" is a factor, so it has no single value", "remove it from factors, or leave --set out")
			continue
		}
		b.addBase(s)
	}
}

func (b *builder) addBase(s settingDoc) {
	one := b.setting(s.name, "", s.value, s.nameAt, s.at)
	to := 0
	if b.stack() {
		if one.Service == "" {
			var names []string
			for _, service := range b.exp.Services {
				names = append(names, service.Name+"."+s.name)
			}
			fix := "write one of " + enumerate(names) + ", or put it under params"
			if before, _, found := strings.Cut(s.name, "."); found {
				var services []string
				for _, service := range b.exp.Services {
					services = append(services, service.Name)
				}
				fix = suggest(before, services)
			}
			b.mistake(s.nameAt, "whose-setting", fmt.Sprintf("base: no service is known for the setting %s", s.name), fix)
			return
		}
		to = slices.IndexFunc(b.exp.Services, func(service hakaru.Service) bool { return service.Name == one.Service })
	}
	if to >= len(b.exp.Services) {
		return
	}
	b.based = append(b.based, s.name)
	b.exp.Services[to].Base = override(b.exp.Services[to].Base, one)
}

// override puts a setting in the place of one of the same name, or at the end.
func override(list []hakaru.Setting, s hakaru.Setting) []hakaru.Setting {
	for i := range list {
		if fullName(list[i]) == fullName(s) {
			list[i] = s
			return list
		}
	}
	return append(list, s)
}

// factors turns levels into factors.
func (b *builder) factors(list dict[levels], settings bool) []hakaru.Factor {
	var out []hakaru.Factor
	for i, name := range list.keys {
		f := hakaru.Factor{Name: name}
		for _, l := range list.values[i] {
			s := hakaru.Setting{Name: name, Level: l.name, Value: l.value}
			if settings {
				s = b.setting(name, l.name, l.value, list.places[i], l.at)
			}
			f.Levels = append(f.Levels, s)
		}
		if len(f.Levels) > 0 {
			out = append(out, f)
		}
	}
	return out
}

func (b *builder) buildStrata() {
	b.exp.Levels = b.factors(b.doc.At, false)
	b.exp.Strata = []map[string]string{{}}
	for i, f := range b.exp.Levels {
		if len(b.exp.Strata)*len(f.Levels) > maxVariants {
			b.mistake(b.doc.At.places[i], "too-many", fmt.Sprintf("at crosses to more than %d strata", maxVariants), "")
			return
		}
		var crossed []map[string]string
		for _, stratum := range b.exp.Strata {
			for _, l := range f.Levels {
				next := map[string]string{f.Name: l.Level}
				for k, v := range stratum {
					next[k] = v
				}
				crossed = append(crossed, next)
			}
		}
		b.exp.Strata = crossed
	}
}

func (b *builder) buildVariants() {
	b.exp.Design.Method = hakaru.Method(b.design().Method.value)
	switch {
	case b.written("factors") && b.written("variants"):
		b.mistake(b.at("variants"), "factors-and-variants", "the file has both factors and variants", "keep one of them: factors are crossed, variants are written out")
		b.exp.Factors = b.factors(b.doc.Factors, true)
		b.writtenVariants()
	case b.written("factors"):
		b.exp.Factors = b.factors(b.doc.Factors, true)
		if b.exp.Design.Method == "" {
			b.exp.Design.Method = hakaru.MethodFactorial
		}
		b.crossFactors()
	case b.written("variants"):
		b.writtenVariants()
	default:
		b.exp.Variants = []hakaru.Variant{{Name: "base"}}
	}
	if b.exp.Design.Method == "" {
		b.exp.Design.Method = hakaru.MethodCompare
	}
	for _, f := range b.exp.Factors {
		b.varied = append(b.varied, f.Name)
	}
	for _, v := range b.exp.Variants {
		for _, s := range v.Settings {
			if name := fullName(s); !slices.Contains(b.varied, name) {
				b.varied = append(b.varied, name)
			}
		}
	}
	if len(b.exp.Variants) == 0 {
		return
	}
	b.buildBaseline()
	b.filter()
	b.buildPairs()
}

func (b *builder) writtenVariants() {
	docs := b.doc.Variants
	if len(docs.keys) == 0 && !b.wrong["variants"] {
		b.mistake(b.at("variants"), "no-variants", "variants is empty", "write variants: {NAME: {setting: value}}")
	}
	resolved := map[string][]hakaru.Setting{}
	var resolve func(i int, trail []string) []hakaru.Setting
	resolve = func(i int, trail []string) []hakaru.Setting {
		name, doc := docs.keys[i], docs.values[i]
		if done, ok := resolved[name]; ok {
			return slices.Clone(done)
		}
		var list []hakaru.Setting
		if doc.from.set {
			from := slices.Index(docs.keys, doc.from.value)
			switch {
			case from < 0:
				b.mistake(doc.from.at, "unknown-variant", fmt.Sprintf("from: no variant is called %q", doc.from.value), suggest(doc.from.value, docs.keys))
			case slices.Contains(trail, doc.from.value) || doc.from.value == name:
				circle := append(slices.Clone(trail), name, doc.from.value)
				b.mistake(doc.from.at, "circular", "from goes round in a circle: "+strings.Join(circle[slices.Index(circle, doc.from.value):], ", "), "remove one of them")
			default:
				list = resolve(from, append(slices.Clone(trail), name))
			}
		}
		for _, s := range doc.settings {
			list = override(list, b.setting(s.name, "", s.value, s.nameAt, s.at))
		}
		resolved[name] = list
		return slices.Clone(list)
	}
	for i, name := range docs.keys {
		if name == "baseline" || name == "previous" {
			b.mistake(docs.places[i], "reserved-name", fmt.Sprintf("a variant cannot be called %s: the word is used by compare", name), "")
		}
		b.exp.Variants = append(b.exp.Variants, hakaru.Variant{Name: name, From: docs.values[i].from.value, Settings: resolve(i, nil)})
	}
}

// crossFactors makes the variants of factors, the baseline's first.
func (b *builder) crossFactors() {
	factors := b.exp.Factors
	if len(factors) == 0 {
		if len(b.doc.Factors.keys) == 0 && !b.wrong["factors"] {
			b.mistake(b.at("factors"), "no-variants", "factors is empty", "write factors: {setting: [1, 2, 4]}")
		}
		return
	}
	if b.exp.Design.Method == hakaru.MethodOneAtATime {
		b.oneAtATime()
		return
	}
	list := []hakaru.Variant{{}}
	for i, f := range factors {
		if len(list)*len(f.Levels) > maxVariants {
			b.mistake(b.doc.Factors.places[i], "too-many", fmt.Sprintf("the factors cross to more than %d variants", maxVariants),
				"use design: {method: one-at-a-time}, fewer levels, or steps in a range")
			return
		}
		var crossed []hakaru.Variant
		for _, v := range list {
			for _, l := range f.Levels {
				name := f.Name + "=" + l.Level
				if i > 0 {
					name = v.Name + " " + name
				}
				crossed = append(crossed, hakaru.Variant{Name: name, Settings: append(slices.Clone(v.Settings), l)})
			}
		}
		list = crossed
	}
	b.exp.Variants = list
}

// baseLevels are the levels that the baseline has: the first of each factor, or
// those that `baseline: {factor: level}` names.
func (b *builder) baseLevels() []hakaru.Setting {
	var list []hakaru.Setting
	for _, f := range b.exp.Factors {
		list = append(list, f.Levels[0])
	}
	for _, s := range b.doc.Baseline.levels {
		i := slices.IndexFunc(b.exp.Factors, func(f hakaru.Factor) bool { return f.Name == s.name })
		if i < 0 {
			b.mistake(s.nameAt, "unknown-factor", fmt.Sprintf("baseline: no factor is called %q", s.name), suggest(s.name, b.doc.Factors.keys))
			continue
		}
		var names []string
		for _, l := range b.exp.Factors[i].Levels {
			names = append(names, l.Level)
			if s.value != nil && l.Level == *s.value || s.value == nil && l.Value == nil {
				list[i] = l
			}
		}
		if s.value != nil && !slices.Contains(names, *s.value) {
			b.mistake(s.at, "unknown-level", fmt.Sprintf("baseline: %s has no level %q", s.name, *s.value), suggest(*s.value, names))
		}
	}
	return list
}

// oneAtATime makes a baseline and, for each other level, a variant that differs
// from it in this one.
func (b *builder) oneAtATime() {
	base := b.baseLevels()
	name := "baseline"
	if len(base) == 1 {
		name = b.exp.Factors[0].Name + "=" + base[0].Level
	}
	b.exp.Variants = []hakaru.Variant{{Name: name, Settings: base}}
	for i, f := range b.exp.Factors {
		for _, l := range f.Levels {
			if l.Level == base[i].Level {
				continue
			}
			settings := slices.Clone(base)
			settings[i] = l
			b.exp.Variants = append(b.exp.Variants, hakaru.Variant{Name: f.Name + "=" + l.Level, Settings: settings})
		}
	}
}

func (b *builder) variantNames() []string {
	var names []string
	for _, v := range b.exp.Variants {
		names = append(names, v.Name)
	}
	return names
}

func (b *builder) buildBaseline() {
	b.exp.Baseline = b.exp.Variants[0].Name
	doc := b.doc.Baseline
	switch {
	case doc.name.set:
		if !slices.Contains(b.variantNames(), doc.name.value) {
			b.mistake(doc.name.at, "unknown-variant", fmt.Sprintf("baseline: no variant is called %q", doc.name.value), suggest(doc.name.value, b.variantNames()))
			return
		}
		b.exp.Baseline = doc.name.value
	case len(doc.levels) > 0 && len(b.exp.Factors) == 0:
		b.mistake(b.at("baseline"), "unknown-variant", "baseline names levels, and the file has no factors", "write the name of a variant")
	case len(doc.levels) > 0 && b.exp.Design.Method != hakaru.MethodOneAtATime:
		var parts []string
		for i, l := range b.baseLevels() {
			parts = append(parts, b.exp.Factors[i].Name+"="+l.Level)
		}
		if name := strings.Join(parts, " "); slices.Contains(b.variantNames(), name) {
			b.exp.Baseline = name
		}
	}
}

// filter takes away the variants that `where` excludes.
func (b *builder) filter() {
	var levelWords []string
	note := func(list []hakaru.Setting) {
		for _, s := range list {
			for _, w := range []string{s.Level, valueOr(s.Value, s.Level)} {
				if w != "" && strings.IndexByte("0123456789.-", w[0]) < 0 && !slices.Contains(levelWords, w) {
					levelWords = append(levelWords, w)
				}
			}
		}
	}
	for _, v := range b.exp.Variants {
		note(v.Settings)
	}
	names := slices.Concat(b.varied, b.based, b.doc.Params.keys)
	for _, w := range b.doc.Where {
		at := func(offset int) place {
			if w.at.file != "" || b.lineText(w.at.line) == "" || !strings.Contains(b.lineText(w.at.line), w.value) {
				return w.at
			}
			line := b.lineText(w.at.line)
			before := strings.Index(line, w.value) + offset
			return place{line: w.at.line, column: len([]rune(line[:before])) + 1}
		}
		holds, err := parseWhere(w.value, names, levelWords)
		if err != nil {
			message, offset, fix := err.Error(), 0, ""
			if e, ok := errors.AsType[*whereError](err); ok {
				offset, fix = e.offset, e.fix
				for _, name := range b.doc.At.keys {
					if strings.HasPrefix(w.value[offset:], name) {
						message, fix = name+" is a level of the load (at), and where is about variants", "leave it out"
					}
				}
			}
			b.mistake(at(offset), "where", "where: "+message, fix)
			continue
		}
		var left []hakaru.Variant
		failed := false
		for _, v := range b.exp.Variants {
			result, err := holds(b.lookup(v))
			if err != nil {
				b.mistake(at(0), "where", fmt.Sprintf("where: in variant %s, %v", v.Name, err), "")
				failed = true
				break
			}
			if result.truth() {
				left = append(left, v)
			}
		}
		if failed {
			continue
		}
		if len(left) == 0 {
			b.mistake(at(0), "where", fmt.Sprintf("where: %s holds for none of the %d variants", w.value, len(b.exp.Variants)), "")
			continue
		}
		if !slices.ContainsFunc(left, func(v hakaru.Variant) bool { return v.Name == b.exp.Baseline }) {
			b.mistake(at(0), "where", fmt.Sprintf("where: %s does not hold for the baseline %s", w.value, b.exp.Baseline), "name another with baseline:")
			continue
		}
		b.exp.Variants = left
	}
}

func valueOr(value *string, or string) string {
	if value != nil {
		return *value
	}
	return or
}

// lookup gives conditions the settings that a variant has.
func (b *builder) lookup(v hakaru.Variant) func(string) whereValue {
	values := map[string]whereValue{}
	for name, value := range b.exp.Params {
		values[name] = whereValue{given: true, text: value}
	}
	put := func(s hakaru.Setting) {
		values[fullName(s)] = whereValue{given: s.Value != nil, text: valueOr(s.Value, ""), level: s.Level}
	}
	for _, service := range b.exp.Services {
		for _, s := range service.Base {
			put(s)
		}
	}
	for _, s := range v.Settings {
		put(s)
	}
	return func(name string) whereValue { return values[name] }
}

func (b *builder) buildPairs() {
	withBaseline, withPrevious := len(b.doc.Compare) == 0, false
	for _, c := range b.doc.Compare {
		switch c.value {
		case "baseline":
			withBaseline = true
		case "previous":
			withPrevious = true
		default:
			b.mistake(c.at, "unknown-value", fmt.Sprintf("compare is to be baseline or previous, not %q", c.value), suggest(c.value, []string{"baseline", "previous"}))
		}
	}
	for i, v := range b.exp.Variants {
		if withBaseline && v.Name != b.exp.Baseline {
			b.exp.Pairs = append(b.exp.Pairs, hakaru.Pair{Base: b.exp.Baseline, Other: v.Name})
		}
		if withPrevious && i > 0 {
			pair := hakaru.Pair{Base: b.exp.Variants[i-1].Name, Other: v.Name}
			reverse := hakaru.Pair{Base: pair.Other, Other: pair.Base}
			if !slices.Contains(b.exp.Pairs, pair) && !slices.Contains(b.exp.Pairs, reverse) {
				b.exp.Pairs = append(b.exp.Pairs, pair)
			}
		}
	}
}
