package experiment

import (
	"fmt"
	"math"
	"reflect"
	"strconv"
	"strings"
	"time"

	"mvdan.cc/sh/v3/syntax"

	"hakaru/internal/unit"
)

// decoder reads nodes into document types and notes all that does not fit.
type decoder struct {
	*source
	places map[string]place // of every key, by its path: "service.ready.get"
	wrong  map[string]bool  // keys of the wrong type, which are not to be called missing too
}

// leaf is a document type that reads itself.
type leaf interface {
	decode(d *decoder, n *node, path string)
}

// decode reads n into a pointer to a document type.
func (d *decoder) decode(n *node, into any, path string) {
	if l, ok := into.(leaf); ok {
		l.decode(d, n, path)
		return
	}
	d.fields(n, reflect.ValueOf(into).Elem(), path)
}

// fields reads a map into a struct by the names of its json tags.
func (d *decoder) fields(n *node, into reflect.Value, path string) {
	if n.kind != mapNode {
		d.wrongKind(n, path, "a map (name: value)")
		return
	}
	index := map[string]int{}
	var names []string
	for i := range into.NumField() {
		if !into.Type().Field(i).IsExported() {
			continue
		}
		name := fieldName(into.Type().Field(i))
		index[name] = i
		names = append(names, name)
	}
	for _, e := range n.entries {
		i, known := index[e.key]
		if !known {
			where := " in " + path
			if path == "" {
				where = ""
			}
			d.mistake(e.at, "unknown-key", fmt.Sprintf("unknown key %q%s", e.key, where), suggest(e.key, names))
			continue
		}
		inner := join(path, e.key)
		d.places[inner] = e.at
		field := into.Field(i)
		if field.Kind() == reflect.Pointer {
			field.Set(reflect.New(field.Type().Elem()))
			d.decode(e.value, field.Interface(), inner)
		} else {
			d.decode(e.value, field.Addr().Interface(), inner)
		}
	}
}

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

func (d *decoder) wrongKind(n *node, path, want string) {
	if d.wrong[path] = true; n.kind == unreadNode {
		return
	}
	if path == "" {
		path = "an experiment file"
	}
	got := n.kind.String()
	if n.kind == scalarNode {
		got = strconv.Quote(n.text)
	}
	d.mistake(n.at, "wrong-type", fmt.Sprintf("%s is to be %s, not %s", path, want, got), "")
}

// text is a single value with its place.
type text struct {
	set   bool
	value string
	at    place
}

func (t *text) decode(d *decoder, n *node, path string) {
	if n.kind != scalarNode {
		d.wrongKind(n, path, "a single value")
		return
	}
	*t = text{true, n.text, n.at}
}

// or returns the value, or what stands for none.
func (t text) or(value string) string {
	if t.set {
		return t.value
	}
	return value
}

// texts is a list of single values, or one of them.
type texts []text

func (t *texts) decode(d *decoder, n *node, path string) {
	if n.kind != listNode {
		if n.kind != scalarNode {
			d.wrongKind(n, path, "a list, or a single value")
			return
		}
		var one text
		one.decode(d, n, path)
		if one.set {
			*t = texts{one}
		}
		return
	}
	for i, item := range n.items {
		var one text
		one.decode(d, item, fmt.Sprintf("%s[%d]", path, i))
		if one.set {
			*t = append(*t, one)
		}
	}
}

func (t texts) values() []string {
	var values []string
	for _, one := range t {
		values = append(values, one.value)
	}
	return values
}

// words is a command line: a list, or one text that is split.
type words struct {
	list []string
	at   place
}

func (w *words) decode(d *decoder, n *node, path string) {
	w.at = n.at
	switch n.kind {
	case listNode:
		for i, item := range n.items {
			var one text
			one.decode(d, item, fmt.Sprintf("%s[%d]", path, i))
			w.list = append(w.list, one.value)
		}
	case scalarNode:
		list, err := splitWords(n.text)
		if err != nil {
			d.mistake(n.at, "command-line", fmt.Sprintf("%s: %v", path, err),
				"no shell reads this line; put what needs one into a script, or write sh -c '…'")
			return
		}
		w.list = list
	default:
		d.wrongKind(n, path, "a command line, or a list of its words")
		return
	}
	if len(w.list) == 0 || w.list[0] == "" {
		d.mistake(n.at, "command-line", path+" names no program", "")
	}
}

// splitWords splits a command line as a shell would, quotes and backslashes
// included. Whatever a shell would do beyond that (variables, pipes, globs by
// command substitution) is refused, since no shell will run it.
func splitWords(line string) ([]string, error) {
	file, err := syntax.NewParser(syntax.Variant(syntax.LangPOSIX)).Parse(strings.NewReader(line), "")
	if err != nil {
		message := err.Error()
		if _, rest, found := strings.Cut(message, ": "); found {
			message = rest
		}
		return nil, fmt.Errorf("cannot be split into words: %s", message)
	}
	if len(file.Stmts) == 0 {
		return nil, nil
	}
	call, simple := file.Stmts[0].Cmd.(*syntax.CallExpr)
	s := file.Stmts[0]
	if len(file.Stmts) > 1 || !simple || len(s.Redirs) > 0 || s.Background || s.Negated || s.Semicolon.IsValid() {
		return nil, fmt.Errorf("is more than one plain command")
	}
	if len(call.Assigns) > 0 {
		return nil, fmt.Errorf("begins with a variable: write it under env")
	}
	var list []string
	for _, w := range call.Args {
		var b strings.Builder
		if err := literal(&b, w.Parts, false); err != nil {
			return nil, err
		}
		list = append(list, b.String())
	}
	return list, nil
}

func literal(b *strings.Builder, parts []syntax.WordPart, quoted bool) error {
	for _, part := range parts {
		switch part := part.(type) {
		case *syntax.Lit:
			unescape(b, part.Value, quoted)
		case *syntax.SglQuoted:
			b.WriteString(part.Value)
		case *syntax.DblQuoted:
			if err := literal(b, part.Parts, true); err != nil {
				return err
			}
		default:
			return fmt.Errorf("holds something that only a shell can fill in")
		}
	}
	return nil
}

// unescape removes backslashes; within double quotes only those before
// $ ` " \ and a line end (POSIX.1-2017, XCU 2.2.3).
func unescape(b *strings.Builder, s string, quoted bool) {
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+1 < len(s) {
			next := s[i+1]
			if next == '\n' {
				i++
				continue
			}
			if !quoted || strings.IndexByte("$`\"\\", next) >= 0 {
				b.WriteByte(next)
				i++
				continue
			}
		}
		b.WriteByte(s[i])
	}
}

// dict is a map that keeps its order.
type dict[T any] struct {
	keys   []string
	places []place
	values []T
}

func (m *dict[T]) decode(d *decoder, n *node, path string) {
	if n.kind != mapNode {
		d.wrongKind(n, path, "a map (name: value)")
		return
	}
	for _, e := range n.entries {
		if e.key == "" {
			d.mistake(e.at, "empty-name", "a name in "+path+" is empty", "")
			continue
		}
		inner := join(path, e.key)
		d.places[inner] = e.at
		var v T
		d.decode(e.value, &v, inner)
		m.keys = append(m.keys, e.key)
		m.places = append(m.places, e.at)
		m.values = append(m.values, v)
	}
}

func (m *dict[T]) has(key string) bool {
	for _, k := range m.keys {
		if k == key {
			return true
		}
	}
	return false
}

// settingDoc is one "name: value"; a nil value is null.
type settingDoc struct {
	name   string
	value  *string
	nameAt place
	at     place
}

// settings are "name: value" lines in order.
type settings []settingDoc

func (s *settings) decode(d *decoder, n *node, path string) {
	switch n.kind {
	case nullNode:
		return // "base:" with nothing under it
	case mapNode:
	default:
		d.wrongKind(n, path, "a map (name: value)")
		return
	}
	for _, e := range n.entries {
		if e.key == "" {
			d.mistake(e.at, "empty-name", "a name in "+path+" is empty", "")
			continue
		}
		one := settingDoc{name: e.key, nameAt: e.at, at: e.value.at}
		switch e.value.kind {
		case scalarNode:
			one.value = &e.value.text
		case nullNode:
		default:
			d.wrongKind(e.value, join(path, e.key), "a single value or null")
			continue
		}
		*s = append(*s, one)
	}
}

// variantDoc is a variant written out.
type variantDoc struct {
	from     text
	settings settings
}

func (v *variantDoc) decode(d *decoder, n *node, path string) {
	rest := *n
	rest.entries = nil
	for _, e := range n.entries {
		if e.key == "from" {
			v.from.decode(d, e.value, join(path, "from"))
			continue
		}
		rest.entries = append(rest.entries, e)
	}
	v.settings.decode(d, &rest, path)
}

// baselineDoc names a variant, or a level of every factor.
type baselineDoc struct {
	name   text
	levels settings
}

func (b *baselineDoc) decode(d *decoder, n *node, path string) {
	if n.kind == mapNode {
		b.levels.decode(d, n, path)
		return
	}
	b.name.decode(d, n, path)
}

// number is a whole number from 0.
type number struct {
	set   bool
	value uint64
	at    place
}

func (v *number) decode(d *decoder, n *node, path string) {
	if n.kind != scalarNode {
		d.wrongKind(n, path, "a whole number")
		return
	}
	value, err := strconv.ParseUint(n.text, 10, 64)
	if err != nil {
		d.mistake(n.at, "bad-number", fmt.Sprintf("%s: %q is not a whole number from 0", path, n.text), "")
		return
	}
	*v = number{true, value, n.at}
}

// within returns the number as an int, noting one out of bounds.
func (v number) within(d *decoder, what string, low, high int) int {
	if v.value < uint64(low) || v.value > uint64(high) {
		d.mistake(v.at, "out-of-range", fmt.Sprintf("%s is to be from %d to %d, not %d", what, low, high, v.value), "")
		return low
	}
	return int(v.value)
}

type duration struct {
	set   bool
	value time.Duration
	at    place
}

func (v *duration) decode(d *decoder, n *node, path string) {
	if n.kind != scalarNode {
		d.wrongKind(n, path, "a duration, such as 20s")
		return
	}
	value, err := unit.ParseDuration(n.text)
	if err != nil {
		d.mistake(n.at, "bad-duration", path+": "+err.Error(), durationHint(n.text))
		return
	}
	*v = duration{true, value, n.at}
}

func durationHint(text string) string {
	if f, err := strconv.ParseFloat(text, 64); err == nil && f > 0 && !math.IsInf(f, 0) {
		return "write " + text + "s for seconds, or " + text + "ms for milliseconds"
	}
	return ""
}

type share struct {
	set   bool
	value float64
	at    place
}

func (v *share) decode(d *decoder, n *node, path string) {
	if n.kind != scalarNode {
		d.wrongKind(n, path, "a percentage, such as 3%")
		return
	}
	value, err := unit.ParseShare(n.text)
	if err != nil {
		d.mistake(n.at, "bad-percentage", path+": "+err.Error(), "")
		return
	}
	*v = share{true, value, n.at}
}

// anything is a part of the grammar that is only recognised.
type anything struct{ set bool }

func (a *anything) decode(_ *decoder, _ *node, _ string) { a.set = true }

// stopDoc is a signal, or {signal, grace}.
type stopDoc struct {
	Signal text     `json:"signal,omitempty" jsonschema:"TERM where it is not given"`
	Grace  duration `json:"grace,omitempty" jsonschema:"how long to wait before it is killed; 10s where it is not given"`
}

func (s *stopDoc) decode(d *decoder, n *node, path string) {
	if n.kind == scalarNode {
		s.Signal.decode(d, n, path)
		return
	}
	d.fields(n, reflect.ValueOf(s).Elem(), path)
}

// hostDoc is an agent's name, a list of them, or {cpus, agent}.
type hostDoc struct {
	CPUs  cpus `json:"cpus,omitempty" jsonschema:"pinned to these CPUs: 0, [0, 1] or 0-3"`
	Agent text `json:"agent,omitempty" jsonschema:"name of an agent (not built yet)"`
	more  bool // several agents
}

func (h *hostDoc) decode(d *decoder, n *node, path string) {
	switch n.kind {
	case mapNode:
		d.fields(n, reflect.ValueOf(h).Elem(), path)
	case listNode:
		var names texts
		names.decode(d, n, path)
		if len(names) > 0 {
			h.Agent, h.more = names[0], len(names) > 1
		}
	default:
		h.Agent.decode(d, n, path)
	}
}

// cpus is a set of CPUs: 0, [0, 1], "0-3", "0,2-3".
type cpus []int

func (c *cpus) decode(d *decoder, n *node, path string) {
	var list texts
	list.decode(d, n, path)
	seen := map[int]bool{}
	for _, one := range list {
		for _, part := range strings.Split(one.value, ",") {
			low, high, span := strings.Cut(strings.TrimSpace(part), "-")
			if !span {
				high = low
			}
			from, err1 := strconv.ParseUint(strings.TrimSpace(low), 10, 12)
			to, err2 := strconv.ParseUint(strings.TrimSpace(high), 10, 12)
			if err1 != nil || err2 != nil || from > to {
				d.mistake(one.at, "bad-cpus", fmt.Sprintf("%s: %q is no CPU, nor a span of CPUs", path, one.value), "write 0, [0, 1] or 0-3")
				break
			}
			for i := from; i <= to; i++ {
				if !seen[int(i)] {
					seen[int(i)] = true
					*c = append(*c, int(i))
				}
			}
		}
	}
}
