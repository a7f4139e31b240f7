package experiment

import (
	"fmt"
	"path"
	"slices"
	"strconv"
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

// FromFlags makes an experiment of flags: the tree that a file would be read
// into, with flags for places. Names in braces that are no setting's are ports.
// Without an answer to wait for that the kind knows, the service is ready when
// the URL of the load gives the right one.
func FromFlags(f Flags) (*hakaru.Experiment, error) {
	kinds, err := kind.Load()
	if err != nil {
		return nil, fmt.Errorf("read what is known about kinds: %w", err)
	}
	s := mistake.NewSource("", "")
	service := flagMap("--service")
	if strings.TrimSpace(f.Service) == "" {
		s.Mistake(mistake.Place{Flag: "--service"}, "command-line", "--service names no program", "write --service './app --listen {http}'")
		put(service, "run", &yamltree.Node{Kind: yamltree.Unread, At: mistake.Place{Flag: "--service"}})
	}
	putText(service, "run", "--service", f.Service)
	putText(service, "settings", "--settings", f.Settings)

	root := flagMap("")
	put(root, "service", service)
	factors := flagMap("--factor")
	for _, content := range f.Factors {
		at := mistake.Place{Flag: "--factor " + content}
		name, list, ok := flagPair(s, "--factor", content)
		if !ok {
			continue
		}
		if factors.Get(name) != nil {
			s.Mistake(at, "duplicate", name+" is given twice", "write all its levels after one --factor")
			continue
		}
		levels := &yamltree.Node{Kind: yamltree.List, At: at}
		for one := range strings.SplitSeq(list, ",") {
			level := &yamltree.Node{Kind: yamltree.Scalar, Text: one, At: at}
			if one == "null" {
				level.Kind = yamltree.Null
			}
			levels.Items = append(levels.Items, level)
		}
		put(factors, name, levels)
	}
	if len(factors.Entries) > 0 {
		put(root, "factors", factors)
	}
	limits := flagMap("--limit")
	for _, content := range f.Limits {
		if name, bound, ok := flagPair(s, "--limit", content); ok {
			putText(limits, name, "--limit "+content, bound)
		}
	}
	put(root, "limits", limits)
	putText(root, "goal", "--goal", f.Goal)
	design := flagMap("--method")
	putText(design, "method", "--method", f.Method)
	putText(design, "matters", "--matters", f.Matters)
	put(root, "design", design)
	load, http := flagMap("--url"), flagMap("--url")
	if f.URL == "" {
		s.Mistake(http.At, "no-url", "--url names nothing to request", "write --url 'http://{http}/'")
		put(http, "url", &yamltree.Node{Kind: yamltree.Unread, At: http.At})
	}
	putText(http, "url", "--url", f.URL)
	putText(http, "status", "--status", f.Status)
	putText(http, "expect", "--expect", f.Expect)
	put(load, "http", http)
	put(root, "load", load)
	put(service, "ports", flagPorts(f, factors))

	d := grammar.NewDecoder(s)
	b := &builder{Decoder: d, opt: f.Options, exp: &hakaru.Experiment{}, seed: seedOf(f)}
	d.Decode(root, &b.doc, "")
	words := b.doc.Service.Run.List
	if len(words) > 0 {
		b.exp.Name = path.Base(words[0])
	}
	if k := kinds.Guess(words); (k == nil || !k.Built || k.Ready.Get == "") && f.URL != "" {
		ready := flagMap("--url")
		putText(ready, "get", "--url", f.URL)
		status := "200"
		if _, err := strconv.ParseUint(f.Status, 10, 16); err == nil { // else said of the load
			status = f.Status
		}
		putText(ready, "status", "--status", status)
		putText(ready, "body", "--expect", f.Expect)
		b.doc.Service.Ready = &grammar.Ready{}
		d.Places["service.ready"] = ready.At
		d.Decode(ready, b.doc.Service.Ready, "service.ready")
	}
	return b.finish()
}

func flagMap(flag string) *yamltree.Node {
	return &yamltree.Node{Kind: yamltree.Map, At: mistake.Place{Flag: flag}}
}

func put(m *yamltree.Node, key string, value *yamltree.Node) {
	m.Entries = append(m.Entries, yamltree.Entry{Key: key, At: value.At, Value: value})
}

// putText puts in what a flag says; a flag that was not given says nothing.
func putText(m *yamltree.Node, key, flag, text string) {
	if text != "" {
		put(m, key, &yamltree.Node{Kind: yamltree.Scalar, Text: text, At: mistake.Place{Flag: flag}})
	}
}

// flagPair splits name=value.
func flagPair(s *mistake.Source, flag, content string) (name, value string, ok bool) {
	name, value, ok = strings.Cut(content, "=")
	if !ok || name == "" {
		s.Mistake(mistake.Place{Flag: flag + " " + content}, "bad-flag", flag+" takes NAME=VALUE", "")
		return "", "", false
	}
	return name, value, true
}

// flagPorts are the names in braces that stand for an address to be leased.
func flagPorts(f Flags, factors *yamltree.Node) *yamltree.Node {
	ports := &yamltree.Node{Kind: yamltree.List, At: mistake.Place{Flag: "--service"}}
	seen := map[string]bool{"hakaru": true}
	for _, e := range factors.Entries {
		seen[e.Key] = true
	}
	for _, set := range f.Options.Set {
		name, _, _ := strings.Cut(set, "=")
		seen[name] = true
	}
	for _, name := range slices.Concat(render.Mentioned(f.Service), render.Mentioned(f.URL)) {
		if name, _, _ = strings.Cut(name, "."); !seen[name] {
			seen[name] = true
			ports.Items = append(ports.Items, &yamltree.Node{Kind: yamltree.Scalar, Text: name, At: ports.At})
		}
	}
	return ports
}

// seedOf derives a seed from what was asked for, so that the same flags give the
// same order.
func seedOf(f Flags) uint64 {
	return hashOf(strings.Join(slices.Concat([]string{f.Service, f.URL}, f.Factors), "\x00"))
}
