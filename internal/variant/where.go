package variant

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"hakaru"
	"hakaru/internal/hint"
	"hakaru/internal/mistake"
	"hakaru/internal/where"
)

// filter takes away the variants that `where` excludes.
func (b *builder) filter() {
	var levelWords []string
	note := func(list []hakaru.Setting) {
		for _, s := range list {
			words := []string{s.Level}
			if s.Value != nil {
				words = append(words, *s.Value)
			}
			for _, w := range words {
				if w != "" && strings.IndexByte("0123456789.-", w[0]) < 0 && !slices.Contains(levelWords, w) {
					levelWords = append(levelWords, w)
				}
			}
		}
	}
	for _, v := range b.set.Variants {
		note(v.Settings)
	}
	names := slices.Concat(b.set.Varied, b.known.Names)
	for _, w := range b.doc.Where {
		at := func(offset int) mistake.Place {
			if w.At.Flag != "" || b.LineText(w.At.Line) == "" || !strings.Contains(b.LineText(w.At.Line), w.Value) {
				return w.At
			}
			line := b.LineText(w.At.Line)
			before := strings.Index(line, w.Value) + offset
			return mistake.Place{Line: w.At.Line, Column: len([]rune(line[:before])) + 1}
		}
		holds, err := where.Parse(w.Value, names, levelWords)
		if err != nil {
			message, offset, fix := err.Error(), 0, ""
			if e, ok := errors.AsType[*where.Error](err); ok {
				if offset, fix = e.Offset, e.Fix; e.Unknown != "" {
					fix = hint.Name(e.Unknown, names)
				}
				for _, name := range b.doc.At.Keys {
					if strings.HasPrefix(w.Value[offset:], name) {
						message, fix = name+" is a level of the load (at), and where is about variants", "leave it out"
					}
				}
			}
			b.Mistake(at(offset), "where", "where: "+message, fix)
			continue
		}
		var left []hakaru.Variant
		failed := false
		for _, v := range b.set.Variants {
			result, err := holds(b.lookup(v))
			if err != nil {
				b.Mistake(at(0), "where", fmt.Sprintf("where: in variant %s, %v", v.Name, err), "")
				failed = true
				break
			}
			if result.Truth() {
				left = append(left, v)
			}
		}
		if failed {
			continue
		}
		if len(left) == 0 {
			b.Mistake(at(0), "where", fmt.Sprintf("where: %s holds for none of the %d variants", w.Value, len(b.set.Variants)), "")
			continue
		}
		if !slices.ContainsFunc(left, func(v hakaru.Variant) bool { return v.Name == b.set.Baseline }) {
			b.Mistake(at(0), "where", fmt.Sprintf("where: %s does not hold for the baseline %s", w.Value, b.set.Baseline), "name another with baseline:")
			continue
		}
		b.set.Variants = left
	}
}

// lookup gives conditions the settings that a variant has.
func (b *builder) lookup(v hakaru.Variant) func(string) where.Value {
	values := map[string]where.Value{}
	for name, value := range b.known.Params {
		values[name] = where.Of(&value, "")
	}
	put := func(s hakaru.Setting) {
		values[s.FullName()] = where.Of(s.Value, s.Level)
	}
	for _, s := range b.known.Base {
		put(s)
	}
	for _, s := range v.Settings {
		put(s)
	}
	return func(name string) where.Value { return values[name] }
}
