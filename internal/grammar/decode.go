package grammar

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"hakaru/internal/hint"
	"hakaru/internal/mistake"
	"hakaru/internal/yamltree"
)

// Decoder reads nodes into document types and notes all that does not fit.
type Decoder struct {
	*mistake.Source
	Places map[string]mistake.Place // of every key, by its path: "service.ready.get"
	Wrong  map[string]bool          // keys of the wrong type, which are not to be called missing too
}

// leaf is a document type that reads itself.
type leaf interface {
	Decode(d *Decoder, n *yamltree.Node, path string)
}

// NewDecoder notes mistakes in s.
func NewDecoder(s *mistake.Source) *Decoder {
	return &Decoder{Source: s, Places: map[string]mistake.Place{}, Wrong: map[string]bool{}}
}

// Decode reads n into a pointer to a document type.
func (d *Decoder) Decode(n *yamltree.Node, into any, path string) {
	if l, ok := into.(leaf); ok {
		l.Decode(d, n, path)
		return
	}
	d.fields(n, reflect.ValueOf(into).Elem(), path)
}

// fields reads a map into a struct by the names of its json tags.
func (d *Decoder) fields(n *yamltree.Node, into reflect.Value, path string) {
	if n.Kind != yamltree.Map {
		d.wrongKind(n, path, "a map (name: value)")
		return
	}
	index := map[string]int{}
	var names []string
	for i := range into.NumField() {
		name := fieldName(into.Type().Field(i))
		if name == "" {
			continue
		}
		index[name] = i
		names = append(names, name)
	}
	read := func(e yamltree.Entry, name string) {
		inner := join(path, name)
		d.Places[inner] = e.At
		field := into.Field(index[name])
		if field.Kind() == reflect.Pointer {
			field.Set(reflect.New(field.Type().Elem()))
			d.Decode(e.Value, field.Interface(), inner)
		} else {
			d.Decode(e.Value, field.Addr().Interface(), inner)
		}
	}
	for _, e := range n.Entries {
		if _, known := index[e.Key]; known {
			read(e, e.Key)
			continue
		}
		where := " in " + path
		if path == "" {
			where = ""
		}
		d.Mistake(e.At, "unknown-key", fmt.Sprintf("unknown key %q%s", e.Key, where), hint.Name(e.Key, names))
		// What is meant is read all the same, so that it is not said to be missing
		// and what depends on it is checked as well.
		if meant := hint.Near(e.Key, names); meant != "" && n.Get(meant) == nil && d.Places[join(path, meant)] == (mistake.Place{}) {
			read(e, meant)
		}
	}
}

// fieldName is the key of a field; "" where it is none.
func fieldName(f reflect.StructField) string {
	name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	return name
}

func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

func (d *Decoder) wrongKind(n *yamltree.Node, path, want string) {
	if d.Wrong[path] = true; n.Kind == yamltree.Unread {
		return
	}
	if path == "" {
		path = "an experiment file"
	}
	got := n.Kind.String()
	if n.Kind == yamltree.Scalar {
		got = strconv.Quote(n.Text)
	}
	d.Mistake(n.At, "wrong-type", fmt.Sprintf("%s is to be %s, not %s", path, want, got), "")
}

// Dict is a map that keeps its order.
type Dict[T any] struct {
	Keys   []string
	Places []mistake.Place
	Values []T
}

func (m *Dict[T]) Decode(d *Decoder, n *yamltree.Node, path string) {
	if n.Kind != yamltree.Map {
		d.wrongKind(n, path, "a map (name: value)")
		return
	}
	if path == "services" && (n.Get("run") != nil || n.Get("kind") != nil) && !isMap(n.Get("run")) && !isMap(n.Get("kind")) {
		d.Mistake(n.Entries[0].At, "wrong-type", "services holds several services, each under its name, and this is one service", "write service: for a single one")
		// What is meant is read, so that its ports and settings are known below.
		var v T
		d.Decode(n, &v, join(path, "service"))
		m.Keys, m.Places, m.Values = []string{"service"}, []mistake.Place{n.Entries[0].At}, []T{v}
		return
	}
	for _, e := range n.Entries {
		if e.Key == "" {
			d.Mistake(e.At, "empty-name", "a name in "+path+" is empty", "")
			continue
		}
		inner := join(path, e.Key)
		d.Places[inner] = e.At
		var v T
		d.Decode(e.Value, &v, inner)
		m.Keys = append(m.Keys, e.Key)
		m.Places = append(m.Places, e.At)
		m.Values = append(m.Values, v)
	}
}

func isMap(n *yamltree.Node) bool { return n != nil && n.Kind == yamltree.Map }

// Has reports whether a key is there.
func (m *Dict[T]) Has(key string) bool {
	return slices.Contains(m.Keys, key)
}

// Setting is one "name: value"; a nil value is null.
type Setting struct {
	Name   string
	Value  *string
	NameAt mistake.Place
	At     mistake.Place
}

// Settings are "name: value" lines in order.
type Settings []Setting

func (s *Settings) Decode(d *Decoder, n *yamltree.Node, path string) {
	switch n.Kind {
	case yamltree.Null:
		return // "base:" with nothing under it
	case yamltree.Map:
	default:
		d.wrongKind(n, path, "a map (name: value)")
		return
	}
	for _, e := range n.Entries {
		if e.Key == "" {
			d.Mistake(e.At, "empty-name", "a name in "+path+" is empty", "")
			continue
		}
		one := Setting{Name: e.Key, NameAt: e.At, At: e.Value.At}
		switch e.Value.Kind {
		case yamltree.Scalar:
			one.Value = &e.Value.Text
		case yamltree.Null:
		default:
			d.wrongKind(e.Value, join(path, e.Key), "a single value or null")
			continue
		}
		*s = append(*s, one)
	}
}

// Variant is a variant written out.
type Variant struct {
	From     Text
	Settings Settings
}

func (v *Variant) Decode(d *Decoder, n *yamltree.Node, path string) {
	rest := *n
	rest.Entries = nil
	for _, e := range n.Entries {
		if e.Key == "from" {
			v.From.Decode(d, e.Value, join(path, "from"))
			continue
		}
		rest.Entries = append(rest.Entries, e)
	}
	v.Settings.Decode(d, &rest, path)
}

// Baseline names a variant, or a level of every factor.
type Baseline struct {
	Name   Text
	Levels Settings
}

func (b *Baseline) Decode(d *Decoder, n *yamltree.Node, path string) {
	if n.Kind == yamltree.Map {
		b.Levels.Decode(d, n, path)
		return
	}
	b.Name.Decode(d, n, path)
}

// Stop is a signal, or {signal, grace}.
type Stop struct {
	Signal Text     `json:"signal,omitempty" jsonschema:"TERM where it is not given"`
	Grace  Duration `json:"grace,omitempty" jsonschema:"how long to wait before it is killed; 10s where it is not given"`
}

func (s *Stop) Decode(d *Decoder, n *yamltree.Node, path string) {
	if n.Kind == yamltree.Scalar {
		s.Signal.Decode(d, n, path)
		return
	}
	d.fields(n, reflect.ValueOf(s).Elem(), path)
}

// Host is an agent's name, a list of them, or {cpus, agent}.
type Host struct {
	CPUs  CPUs `json:"cpus,omitempty" jsonschema:"pinned to these CPUs: 0, [0, 1] or 0-3"`
	Agent Text `json:"agent,omitempty" jsonschema:"name of an agent (not built yet)"`
	More  bool // several agents
}

func (h *Host) Decode(d *Decoder, n *yamltree.Node, path string) {
	switch n.Kind {
	case yamltree.Map:
		d.fields(n, reflect.ValueOf(h).Elem(), path)
	case yamltree.List:
		var names Texts
		names.Decode(d, n, path)
		if len(names) > 0 {
			h.Agent, h.More = names[0], len(names) > 1
		}
	default:
		h.Agent.Decode(d, n, path)
	}
}
