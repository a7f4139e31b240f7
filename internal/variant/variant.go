// Package variant makes the variants of an experiment: those that are written out or
// crossed from factors, without those that `where` excludes, the baseline, the pairs
// that get a verdict, and the strata of the load.
//
// It takes a decoded document and what its names mean, and gives a Set; mistakes are
// noted in the document's decoder. Whether a setting can do anything is not known
// here, nor what a variant means to a service (internal/render).
package variant

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"hakaru"
	"hakaru/internal/grammar"
	"hakaru/internal/hint"
	"hakaru/internal/mistake"
	"hakaru/internal/render"
)

// Owner parts the full name of a setting: "puma.threads" where puma is a service of
// the stack. service is empty for the only service's, and for a placeholder.
type Owner func(name string) (service, plain string)

// Book remembers where settings and their values were written.
type Book struct {
	Named  map[string]mistake.Place            // by full name, where it was first
	Valued map[string]map[string]mistake.Place // by full name, then by level
}

// NewBook is an empty one.
func NewBook() *Book {
	return &Book{Named: map[string]mistake.Place{}, Valued: map[string]map[string]mistake.Place{}}
}

// Setting makes a setting and remembers where it was written.
func (k *Book) Setting(owner Owner, name, level string, value *string, nameAt, valueAt mistake.Place) hakaru.Setting {
	service, plain := owner(name)
	s := hakaru.Setting{Service: service, Name: plain, Level: level, Value: value}
	if s.Level == "" {
		s.Level = "null"
		if value != nil {
			s.Level = *value
		}
	}
	if _, seen := k.Named[name]; !seen {
		k.Named[name] = nameAt
		k.Valued[name] = map[string]mistake.Place{}
	}
	if _, seen := k.Valued[name][s.Level]; !seen {
		k.Valued[name][s.Level] = valueAt
	}
	return s
}

// Known is what conditions may look up beside the settings of a variant.
type Known struct {
	Params map[string]string
	Base   []hakaru.Setting
	Names  []string // of both, as they were written
}

// Set is what there is to compare.
type Set struct {
	Method   hakaru.Method
	Factors  []hakaru.Factor
	Levels   []hakaru.Factor // of the load
	Strata   []map[string]string
	Variants []hakaru.Variant
	Baseline string
	Pairs    []hakaru.Pair
	Varied   []string // full names of settings of factors and variants, in order
}

// builder makes a Set of a document.
type builder struct {
	*grammar.Decoder
	doc   *grammar.Document
	owner Owner
	known Known
	book  *Book
	set   Set
}

// Build makes the variants of a document.
func Build(d *grammar.Decoder, doc *grammar.Document, owner Owner, known Known, book *Book) Set {
	b := &builder{Decoder: d, doc: doc, owner: owner, known: known, book: book}
	b.buildStrata()
	b.buildVariants()
	return b.set
}

// at returns where a key was written, or the beginning of the file.
func (b *builder) at(path string) mistake.Place {
	if p, ok := b.Places[path]; ok {
		return p
	}
	return mistake.Place{Line: 1, Column: 1}
}

// written reports whether a key is in the file, be it with a mistake in it.
func (b *builder) written(path string) bool {
	_, ok := b.Places[path]
	return ok
}

// maxVariants bounds how many variants factors may be crossed to.
const maxVariants = 4096

// factors turns levels into factors.
func (b *builder) factors(list grammar.Dict[grammar.Levels], settings bool) []hakaru.Factor {
	var out []hakaru.Factor
	for i, name := range list.Keys {
		f := hakaru.Factor{Name: name}
		for _, l := range list.Values[i] {
			s := hakaru.Setting{Name: name, Level: l.Name, Value: l.Value}
			if settings {
				s = b.book.Setting(b.owner, name, l.Name, l.Value, list.Places[i], l.At)
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
	b.set.Levels = b.factors(b.doc.At, false)
	b.set.Strata = []map[string]string{{}}
	for i, f := range b.set.Levels {
		if len(b.set.Strata)*len(f.Levels) > maxVariants {
			b.Mistake(b.doc.At.Places[i], "too-many", fmt.Sprintf("at crosses to more than %d strata", maxVariants), "")
			return
		}
		var crossed []map[string]string
		for _, stratum := range b.set.Strata {
			for _, l := range f.Levels {
				next := maps.Clone(stratum)
				next[f.Name] = l.Level
				crossed = append(crossed, next)
			}
		}
		b.set.Strata = crossed
	}
}

func (b *builder) buildVariants() {
	if b.doc.Design != nil {
		b.set.Method = hakaru.Method(b.doc.Design.Method.Value)
	}
	switch {
	case b.written("factors") && b.written("variants"):
		b.Mistake(b.at("variants"), "factors-and-variants", "the file has both factors and variants", "keep one of them: factors are crossed, variants are written out")
		b.set.Factors = b.factors(b.doc.Factors, true)
		b.writtenVariants()
	case b.written("factors"):
		b.set.Factors = b.factors(b.doc.Factors, true)
		if b.set.Method == "" {
			b.set.Method = hakaru.MethodFactorial
		}
		b.crossFactors()
	case b.written("variants"):
		b.writtenVariants()
	default:
		b.set.Variants = []hakaru.Variant{{Name: "base"}}
	}
	if b.set.Method == "" {
		b.set.Method = hakaru.MethodCompare
	}
	for _, f := range b.set.Factors {
		b.set.Varied = append(b.set.Varied, f.Name)
	}
	for _, v := range b.set.Variants {
		for _, s := range v.Settings {
			if name := s.FullName(); !slices.Contains(b.set.Varied, name) {
				b.set.Varied = append(b.set.Varied, name)
			}
		}
	}
	if len(b.set.Variants) == 0 {
		return
	}
	b.buildBaseline()
	b.filter()
	b.buildPairs()
}

func (b *builder) writtenVariants() {
	docs := b.doc.Variants
	if len(docs.Keys) == 0 && !b.Wrong["variants"] {
		b.Mistake(b.at("variants"), "no-variants", "variants is empty", "write variants: {NAME: {setting: value}}")
	}
	resolved := map[string][]hakaru.Setting{}
	var resolve func(i int, trail []string) []hakaru.Setting
	resolve = func(i int, trail []string) []hakaru.Setting {
		name, doc := docs.Keys[i], docs.Values[i]
		if done, ok := resolved[name]; ok {
			return slices.Clone(done)
		}
		var list []hakaru.Setting
		if doc.From.Set {
			from := slices.Index(docs.Keys, doc.From.Value)
			switch {
			case from < 0:
				b.Mistake(doc.From.At, "unknown-variant", fmt.Sprintf("from: no variant is called %q", doc.From.Value), hint.Name(doc.From.Value, docs.Keys))
			case slices.Contains(trail, doc.From.Value) || doc.From.Value == name:
				circle := append(slices.Clone(trail), name, doc.From.Value)
				b.Mistake(doc.From.At, "circular", "from goes round in a circle: "+strings.Join(circle[slices.Index(circle, doc.From.Value):], ", "), "remove one of them")
			default:
				list = resolve(from, append(slices.Clone(trail), name))
			}
		}
		for _, s := range doc.Settings {
			list = render.Override(list, b.book.Setting(b.owner, s.Name, "", s.Value, s.NameAt, s.At))
		}
		resolved[name] = list
		return slices.Clone(list)
	}
	for i, name := range docs.Keys {
		if name == "baseline" || name == "previous" {
			b.Mistake(docs.Places[i], "reserved-name", fmt.Sprintf("a variant cannot be called %s: the word is used by compare", name), "")
		}
		b.set.Variants = append(b.set.Variants, hakaru.Variant{Name: name, From: docs.Values[i].From.Value, Settings: resolve(i, nil)})
	}
}

// crossFactors makes the variants of factors, the baseline's first.
func (b *builder) crossFactors() {
	factors := b.set.Factors
	if len(factors) == 0 {
		if len(b.doc.Factors.Keys) == 0 && !b.Wrong["factors"] {
			b.Mistake(b.at("factors"), "no-variants", "factors is empty", "write factors: {setting: [1, 2, 4]}")
		}
		return
	}
	if b.set.Method == hakaru.MethodOneAtATime {
		b.oneAtATime()
		return
	}
	list := []hakaru.Variant{{}}
	for i, f := range factors {
		if len(list)*len(f.Levels) > maxVariants {
			b.Mistake(b.doc.Factors.Places[i], "too-many", fmt.Sprintf("the factors cross to more than %d variants", maxVariants),
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
	b.set.Variants = list
}

// baseLevels are the levels that the baseline has: the first of each factor, or
// those that `baseline: {factor: level}` names.
func (b *builder) baseLevels() []hakaru.Setting {
	var list []hakaru.Setting
	for _, f := range b.set.Factors {
		list = append(list, f.Levels[0])
	}
	for _, s := range b.doc.Baseline.Levels {
		i := slices.IndexFunc(b.set.Factors, func(f hakaru.Factor) bool { return f.Name == s.Name })
		if i < 0 {
			b.Mistake(s.NameAt, "unknown-factor", fmt.Sprintf("baseline: no factor is called %q", s.Name), hint.Name(s.Name, b.doc.Factors.Keys))
			continue
		}
		var names []string
		for _, l := range b.set.Factors[i].Levels {
			names = append(names, l.Level)
			if s.Value != nil && l.Level == *s.Value || s.Value == nil && l.Value == nil {
				list[i] = l
			}
		}
		if s.Value != nil && !slices.Contains(names, *s.Value) {
			b.Mistake(s.At, "unknown-level", fmt.Sprintf("baseline: %s has no level %q", s.Name, *s.Value), hint.Name(*s.Value, names))
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
		name = b.set.Factors[0].Name + "=" + base[0].Level
	}
	b.set.Variants = []hakaru.Variant{{Name: name, Settings: base}}
	for i, f := range b.set.Factors {
		for _, l := range f.Levels {
			if l.Level == base[i].Level {
				continue
			}
			settings := slices.Clone(base)
			settings[i] = l
			b.set.Variants = append(b.set.Variants, hakaru.Variant{Name: f.Name + "=" + l.Level, Settings: settings})
		}
	}
}

func (b *builder) variantNames() []string {
	var names []string
	for _, v := range b.set.Variants {
		names = append(names, v.Name)
	}
	return names
}

func (b *builder) buildBaseline() {
	b.set.Baseline = b.set.Variants[0].Name
	doc := b.doc.Baseline
	switch {
	case doc.Name.Set:
		if !slices.Contains(b.variantNames(), doc.Name.Value) {
			b.Mistake(doc.Name.At, "unknown-variant", fmt.Sprintf("baseline: no variant is called %q", doc.Name.Value), hint.Name(doc.Name.Value, b.variantNames()))
			return
		}
		b.set.Baseline = doc.Name.Value
	case len(doc.Levels) > 0 && len(b.set.Factors) == 0:
		b.Mistake(b.at("baseline"), "unknown-variant", "baseline names levels, and the file has no factors", "write the name of a variant")
	case len(doc.Levels) > 0 && b.set.Method != hakaru.MethodOneAtATime:
		var parts []string
		for i, l := range b.baseLevels() {
			parts = append(parts, b.set.Factors[i].Name+"="+l.Level)
		}
		if name := strings.Join(parts, " "); slices.Contains(b.variantNames(), name) {
			b.set.Baseline = name
		}
	}
}

func (b *builder) buildPairs() {
	withBaseline, withPrevious := len(b.doc.Compare) == 0, false
	for _, c := range b.doc.Compare {
		switch c.Value {
		case "baseline":
			withBaseline = true
		case "previous":
			withPrevious = true
		default:
			b.Mistake(c.At, "unknown-value", fmt.Sprintf("compare is to be baseline or previous, not %q", c.Value), hint.Name(c.Value, []string{"baseline", "previous"}))
		}
	}
	for i, v := range b.set.Variants {
		if withBaseline && v.Name != b.set.Baseline {
			b.set.Pairs = append(b.set.Pairs, hakaru.Pair{Base: b.set.Baseline, Other: v.Name})
		}
		if withPrevious && i > 0 {
			pair := hakaru.Pair{Base: b.set.Variants[i-1].Name, Other: v.Name}
			reverse := hakaru.Pair{Base: pair.Other, Other: pair.Base}
			if !slices.Contains(b.set.Pairs, pair) && !slices.Contains(b.set.Pairs, reverse) {
				b.set.Pairs = append(b.set.Pairs, pair)
			}
		}
	}
}
