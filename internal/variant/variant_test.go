package variant_test

import (
	"fmt"
	"strings"
	"testing"

	"hakaru"
	"hakaru/internal/grammar"
	"hakaru/internal/mistake"
	"hakaru/internal/variant"
	"hakaru/internal/yamltree"
)

// build makes a Set of a document, and says what is wrong with it.
func build(t *testing.T, src string) (variant.Set, string) {
	t.Helper()
	source := mistake.NewSource("a.yaml", src)
	d := grammar.NewDecoder(source)
	root, _ := yamltree.Read(source, src)
	var doc grammar.Document
	d.Decode(root, &doc, "")
	owner := func(name string) (service, plain string) {
		if plain, found := strings.CutPrefix(name, "app."); found {
			return "app", plain
		}
		return "", name
	}
	set := variant.Build(d, &doc, owner, variant.Known{
		Params: map[string]string{"most": "4"}, Base: []hakaru.Setting{{Name: "log", Level: "off", Value: new("off")}}, Names: []string{"log", "most"},
	}, variant.NewBook())
	return set, source.Sorted().Error()
}

func TestBuild(t *testing.T) {
	for name, c := range map[string]struct{ src, want, pairs string }{
		"none":          {"{}", "base", ""},
		"written":       {"variants: {a: {x: 1}, b: {from: a, y: null}, c: {from: b, x: 2}}", "a[x=1] b[x=1 y=null] c[x=2 y=null]", "a-b a-c"},
		"both":          {"variants: {a: {x: 1}, b: {x: 2}, c: {x: 3}}\ncompare: [baseline, previous]", "a[x=1] b[x=2] c[x=3]", "a-b a-c b-c"},
		"crossed":       {"factors: {x: [1, 2], app.y: {none: null, some: 3}}", "x=1 app.y=none[x=1 app.y=none] x=1 app.y=some[x=1 app.y=some] x=2 app.y=none[x=2 app.y=none] x=2 app.y=some[x=2 app.y=some]", "x=1 app.y=none-x=1 app.y=some x=1 app.y=none-x=2 app.y=none x=1 app.y=none-x=2 app.y=some"},
		"one at a time": {"factors: {x: [1, 2], y: [3, 4]}\ndesign: {method: one-at-a-time}\nbaseline: {y: 4}", "baseline[x=1 y=4] x=2[x=2 y=4] y=3[x=1 y=3]", "baseline-x=2 baseline-y=3"},
		"where":         {"factors: {x: [1, 2, 8]}\nwhere: [\"x <= most && log == 'off'\"]", "x=1[x=1] x=2[x=2]", "x=1-x=2"},
		"a baseline":    {"factors: {x: [1, 2, 8]}\nbaseline: {x: 2}\ncompare: previous", "x=1[x=1] x=2[x=2] x=8[x=8]", "x=1-x=2 x=2-x=8"},
	} {
		t.Run(name, func(t *testing.T) {
			set, wrong := build(t, c.src)
			if wrong != "" {
				t.Fatal(wrong)
			}
			var variants, pairs []string
			for _, v := range set.Variants {
				var settings []string
				for _, s := range v.Settings {
					settings = append(settings, s.FullName()+"="+s.Level)
				}
				one := v.Name
				if len(settings) > 0 {
					one += fmt.Sprint(settings)
				}
				variants = append(variants, one)
			}
			for _, p := range set.Pairs {
				pairs = append(pairs, p.Base+"-"+p.Other)
			}
			if got := strings.Join(variants, " "); got != c.want {
				t.Errorf("variants %s\nwant     %s", got, c.want)
			}
			if got := strings.Join(pairs, " "); got != c.pairs {
				t.Errorf("pairs %s\nwant  %s", got, c.pairs)
			}
		})
	}
}

// Strata are all combinations of the levels of the load, and never variants.
func TestStrata(t *testing.T) {
	set, wrong := build(t, "at: {c: [1, 64], page: {small: /a, large: /b}}")
	if wrong != "" || len(set.Strata) != 4 || len(set.Variants) != 1 || len(set.Levels) != 2 {
		t.Fatalf("%+v, %s", set, wrong)
	}
	seen := map[string]bool{}
	for _, s := range set.Strata {
		seen[hakaru.AtKey(s)] = true
	}
	if !seen["c=64 page=small"] || len(seen) != 4 {
		t.Errorf("strata %v", seen)
	}
}

func TestWrong(t *testing.T) {
	for name, c := range map[string]struct{ src, want string }{
		"a circle":        {"variants: {a: {from: b}, b: {from: a}}", "1:36: from goes round in a circle"},
		"no such from":    {"variants: {one: {}, b: {from: noe}}", `did you mean "one"?`},
		"both":            {"variants: {a: {}}\nfactors: {x: [1, 2]}", "both factors and variants"},
		"where of nobody": {"factors: {x: [1, 2]}\nwhere: [x > 9]", "holds for none of the 2 variants"},
		"too many":        {"factors: {x: {from: 1, to: 1000}, y: {from: 1, to: 5}}", "more than 4096 variants"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, wrong := build(t, c.src); !strings.Contains(wrong, c.want) {
				t.Errorf("%q does not hold %q", wrong, c.want)
			}
		})
	}
}
