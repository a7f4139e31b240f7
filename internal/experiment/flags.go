package experiment

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"hakaru"
	"hakaru/internal/kind"
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
	s := newSource("", "")
	d := &decoder{source: s, places: map[string]place{}, wrong: map[string]bool{}}
	flag := func(name string) place { return place{file: name} }
	value := func(name, content string) text {
		if content == "" {
			return text{}
		}
		return text{true, content, flag(name)}
	}
	pair := func(name, content string) (key, rest string, ok bool) {
		key, rest, ok = strings.Cut(content, "=")
		if !ok || key == "" {
			s.mistake(flag(name+" "+content), "bad-flag", name+" takes NAME=VALUE", "")
			return "", "", false
		}
		return key, rest, true
	}
	b := &builder{decoder: d, opt: f.Options, exp: &hakaru.Experiment{}}
	kinds, err := kind.Load()
	if err != nil {
		return nil, fmt.Errorf("read what is known about kinds: %w", err)
	}
	doc := &b.doc
	doc.Service = &serviceDoc{Settings: value("--settings", f.Settings)}
	d.places["service"], d.places["service.run"] = flag("--service"), flag("--service")
	doc.Service.Run.decode(d, &node{kind: scalarNode, text: f.Service, at: flag("--service")}, "--service")

	for _, content := range f.Factors {
		name, list, ok := pair("--factor", content)
		if !ok {
			continue
		}
		d.places["factors"] = flag("--factor")
		if doc.Factors.has(name) {
			s.mistake(flag("--factor "+content), "duplicate", name+" is given twice", "write all its levels after one --factor")
			continue
		}
		var l levels
		for _, one := range strings.Split(list, ",") {
			n := &node{kind: scalarNode, text: one, at: flag("--factor " + content)}
			if one == "null" {
				n.kind = nullNode
			}
			l.add(d, name, "", n, name)
		}
		doc.Factors.keys = append(doc.Factors.keys, name)
		doc.Factors.places = append(doc.Factors.places, flag("--factor "+content))
		doc.Factors.values = append(doc.Factors.values, l)
	}
	for _, content := range f.Base {
		if name, v, ok := pair("--base", content); ok {
			at := flag("--base " + content)
			doc.Base = append(doc.Base, settingDoc{name: name, value: &v, nameAt: at, at: at})
		}
	}
	for _, content := range f.Limits {
		if name, v, ok := pair("--limit", content); ok {
			at := flag("--limit " + content)
			doc.Limits.keys = append(doc.Limits.keys, name)
			doc.Limits.places = append(doc.Limits.places, at)
			doc.Limits.values = append(doc.Limits.values, text{true, v, at})
		}
	}
	doc.Goal = value("--goal", f.Goal)
	doc.Design = &designDoc{Method: value("--method", f.Method)}
	if f.Matters != "" {
		doc.Design.Matters.decode(d, &node{kind: scalarNode, text: f.Matters, at: flag("--matters")}, "--matters")
	}
	d.places["load"], d.places["load.http"] = flag("--url"), flag("--url")
	doc.Load = &loadDoc{http: &httpDoc{URL: value("--url", f.URL), Status: value("--status", f.Status), Expect: value("--expect", f.Expect)}}

	for _, name := range slices.Concat(mentioned(f.Service), mentioned(f.URL)) {
		name, _, _ = strings.Cut(name, ".")
		known := slices.ContainsFunc(doc.Service.Ports, func(t text) bool { return t.value == name })
		if !known && !doc.Factors.has(name) && name != "hakaru" && !slices.ContainsFunc(doc.Base, func(x settingDoc) bool { return x.name == name }) {
			doc.Service.Ports = append(doc.Service.Ports, text{true, name, flag("--service")})
		}
	}
	words := doc.Service.Run.list
	if k := kinds.Guess(words); (k == nil || !k.Built || k.Ready.Get == "") && f.URL != "" {
		doc.Service.Ready = &readyDoc{Get: value("--url", f.URL), Status: number{true, 200, flag("--url")}}
		d.places["service.ready"] = flag("--url")
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
