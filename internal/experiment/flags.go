package experiment

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"hakaru"
	"hakaru/internal/grammar"
	"hakaru/internal/kind"
	"hakaru/internal/mistake"
	"hakaru/internal/render"
	"hakaru/internal/yamltree"
)

// Flags are an experiment without a file, as the command line says it:
//
//	hakaru run --service 'hakaru serve --listen {http}' --factor processes=1,2,4 --url 'http://{http}/' -c 64 -d 20s
type Flags struct {
	Service  string   // the command; its kind is guessed from its first words
	Settings string   // its config file
	Factors  []string // "name=level,level,…"; "null" is null
	Base     []string // "name=value"
	URL      string
	Status   string // expected
	Expect   string
	Goal     string
	Limits   []string // "metric=bound"
	Matters  string
	Method   string
	// Options are as for a file; Connections, WarmUp and Duration describe the load.
	Options Options
}

// FromFlags makes an experiment of flags. Names in braces that are no factor's
// are ports. Without an answer to wait for that the kind knows, the service is
// ready when the URL of the load answers.
func FromFlags(f Flags) (*hakaru.Experiment, error) {
	s := mistake.NewSource("", "")
	d := grammar.NewDecoder(s)
	flag := func(name string) mistake.Place { return mistake.Place{Flag: name} }
	value := func(name, content string) grammar.Text {
		if content == "" {
			return grammar.Text{}
		}
		return grammar.Written(content, flag(name))
	}
	pair := func(name, content string) (key, rest string, ok bool) {
		key, rest, ok = strings.Cut(content, "=")
		if !ok || key == "" {
			s.Mistake(flag(name+" "+content), "bad-flag", name+" takes NAME=VALUE", "")
			return "", "", false
		}
		return key, rest, true
	}
	b := &builder{Decoder: d, opt: f.Options, exp: &hakaru.Experiment{}}
	kinds, err := kind.Load()
	if err != nil {
		return nil, fmt.Errorf("read what is known about kinds: %w", err)
	}
	doc := &b.doc
	doc.Service = &grammar.Service{Settings: value("--settings", f.Settings)}
	d.Places["service"], d.Places["service.run"] = flag("--service"), flag("--service")
	doc.Service.Run.Decode(d, &yamltree.Node{Kind: yamltree.Scalar, Text: f.Service, At: flag("--service")}, "--service")

	for _, content := range f.Factors {
		name, list, ok := pair("--factor", content)
		if !ok {
			continue
		}
		d.Places["factors"] = flag("--factor")
		if doc.Factors.Has(name) {
			s.Mistake(flag("--factor "+content), "duplicate", name+" is given twice", "write all its levels after one --factor")
			continue
		}
		var l grammar.Levels
		for _, one := range strings.Split(list, ",") {
			n := &yamltree.Node{Kind: yamltree.Scalar, Text: one, At: flag("--factor " + content)}
			if one == "null" {
				n.Kind = yamltree.Null
			}
			l.Add(d, name, "", n, name)
		}
		doc.Factors.Keys = append(doc.Factors.Keys, name)
		doc.Factors.Places = append(doc.Factors.Places, flag("--factor "+content))
		doc.Factors.Values = append(doc.Factors.Values, l)
	}
	for _, content := range f.Base {
		if name, v, ok := pair("--base", content); ok {
			at := flag("--base " + content)
			doc.Base = append(doc.Base, grammar.Setting{Name: name, Value: &v, NameAt: at, At: at})
		}
	}
	for _, content := range f.Limits {
		if name, v, ok := pair("--limit", content); ok {
			at := flag("--limit " + content)
			doc.Limits.Keys = append(doc.Limits.Keys, name)
			doc.Limits.Places = append(doc.Limits.Places, at)
			doc.Limits.Values = append(doc.Limits.Values, grammar.Written(v, at))
		}
	}
	doc.Goal = value("--goal", f.Goal)
	doc.Design = &grammar.Design{Method: value("--method", f.Method)}
	if f.Matters != "" {
		doc.Design.Matters.Decode(d, &yamltree.Node{Kind: yamltree.Scalar, Text: f.Matters, At: flag("--matters")}, "--matters")
	}
	d.Places["load"], d.Places["load.http"] = flag("--url"), flag("--url")
	doc.Load = &grammar.Load{HTTP: &grammar.HTTP{URL: value("--url", f.URL), Status: value("--status", f.Status), Expect: value("--expect", f.Expect)}}

	for _, name := range slices.Concat(render.Mentioned(f.Service), render.Mentioned(f.URL)) {
		name, _, _ = strings.Cut(name, ".")
		known := slices.ContainsFunc(doc.Service.Ports, func(t grammar.Text) bool { return t.Value == name })
		if !known && !doc.Factors.Has(name) && name != "hakaru" && !slices.ContainsFunc(doc.Base, func(x grammar.Setting) bool { return x.Name == name }) {
			doc.Service.Ports = append(doc.Service.Ports, grammar.Written(name, flag("--service")))
		}
	}
	words := doc.Service.Run.List
	if k := kinds.Guess(words); (k == nil || !k.Built || k.Ready.Get == "") && f.URL != "" {
		doc.Service.Ready = &grammar.Ready{Get: value("--url", f.URL), Status: grammar.Number{Set: true, Value: 200, At: flag("--url")}}
		d.Places["service.ready"] = flag("--url")
	}
	if len(words) > 0 {
		b.exp.Name = path.Base(words[0])
	}
	b.seed = seedOf(f)
	return b.finish()
}

// seedOf derives a seed from what was asked for, so that the same flags give the
// same order.
func seedOf(f Flags) uint64 {
	return hashOf(strings.Join(slices.Concat([]string{f.Service, f.URL}, f.Factors, f.Base), "\x00"))
}
