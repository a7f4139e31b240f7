package experiment

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"hakaru"
	"hakaru/internal/grammar"
	"hakaru/internal/hint"
	"hakaru/internal/render"
)

// acts notes the time a setting needs; the shortest where its levels differ, so
// that no level is refused that could act.
func (b *builder) acts(name string, after time.Duration) {
	if b.exp.ActsAfter == nil {
		b.exp.ActsAfter = map[string]time.Duration{}
	}
	if before, found := b.exp.ActsAfter[name]; !found || after < before {
		b.exp.ActsAfter[name] = after
	}
}

// actsLater notes that a setting needs longer in one variant than the shortest of
// its levels does: in the stratum in which it is soonest.
func (b *builder) actsLater(v *hakaru.Variant, name string, after time.Duration) {
	if after <= b.exp.ActsAfter[name] {
		return
	}
	if v.ActsAfter == nil {
		v.ActsAfter = map[string]time.Duration{}
	}
	if before, found := v.ActsAfter[name]; !found || after < before {
		v.ActsAfter[name] = after
	}
}

// valuesOf returns all values that a setting is given, each once.
func (b *builder) valuesOf(name string) []hakaru.Setting {
	var out []hakaru.Setting
	add := func(list []hakaru.Setting) {
		for _, s := range list {
			if s.FullName() == name && !slices.ContainsFunc(out, func(o hakaru.Setting) bool { return o.Level == s.Level }) {
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

// buildProofs takes over `prove` and `acts_after`.
func (b *builder) buildProofs() {
	names := slices.Concat(b.varied, b.based)
	for i, name := range b.doc.ActsAfter.Keys {
		if !slices.Contains(names, name) {
			b.Mistake(b.doc.ActsAfter.Places[i], "unknown-setting", fmt.Sprintf("acts_after: no setting is called %q", name), hint.Name(name, names))
		}
		if after := b.doc.ActsAfter.Values[i]; after.Set {
			b.acts(name, after.Value)
		}
	}
	for i, name := range b.doc.Prove.Keys {
		if !slices.Contains(names, name) {
			b.Mistake(b.doc.Prove.Places[i], "unknown-setting", fmt.Sprintf("prove: no setting is called %q", name), hint.Name(name, names))
			continue
		}
		service := b.proofService(name)
		for _, p := range b.doc.Prove.Values[i] {
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
	for _, s := range render.Usage(b.exp)[name] {
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
func (b *builder) proofAsks(service, name string, p grammar.Proof) []hakaru.Ask {
	ask := hakaru.Ask{
		Service: service, Setting: name, Kind: p.Kind, Argument: p.Argument, Field: p.Field, Contains: p.Contains, Equals: p.Equals,
		Offset: p.Offset, Count: p.Count, Absent: p.Absent, From: hakaru.Moment(p.From),
	}
	if p.ByLevel == nil {
		return []hakaru.Ask{ask}
	}
	var asks []hakaru.Ask
	var known []string
	for _, v := range b.valuesOf(name) {
		known = append(known, v.Level)
		want, found := p.ByLevel[v.Level]
		if !found {
			continue
		}
		one := ask
		one.Asked = v.Level
		if p.Exact {
			one.Equals = want
		} else {
			one.Contains = want
		}
		asks = append(asks, one)
	}
	for _, l := range slices.Sorted(maps.Keys(p.ByLevel)) {
		if !slices.Contains(known, l) {
			b.Mistake(p.At, "unknown-level", fmt.Sprintf("prove: %s has no level %q", name, l), hint.Name(l, known))
		}
	}
	return asks
}
