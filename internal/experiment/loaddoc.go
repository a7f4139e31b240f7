package experiment

import (
	"fmt"
	"slices"
)

// loadDoc is {http: …} or {PROGRAM: …}.
type loadDoc struct {
	http    *httpDoc
	program text // name of a load program
	options settings
}

// programs are the load programs that the grammar knows. None is built yet.
func programs() []string {
	return []string{"ab", "command", "hey", "memtier", "mysqlslap", "oha", "pgbench", "replay", "smtp-source", "sysbench", "vegeta", "wrk", "wrk2"}
}

func (l *loadDoc) decode(d *decoder, n *node, path string) {
	if n.kind != mapNode {
		d.wrongKind(n, path, "a map, such as {http: {url: …}}")
		return
	}
	for i, e := range n.entries {
		inner := join(path, e.key)
		d.places[inner] = e.at
		switch {
		case i > 0 && (l.http != nil || l.program.set):
			d.mistake(e.at, "several-loads", fmt.Sprintf("load has %s beside %s: one load is sent", e.key, n.entries[0].key), "remove one of them")
		case e.key == "http":
			l.http = &httpDoc{}
			d.decode(e.value, l.http, inner)
		case slices.Contains(programs(), e.key):
			l.program = text{true, e.key, e.at}
			if e.value.kind == scalarNode {
				l.options = settings{{name: "run", value: &e.value.text, nameAt: e.at, at: e.value.at}}
				continue
			}
			l.options.decode(d, e.value, inner)
		default:
			d.mistake(e.at, "unknown-load", fmt.Sprintf("unknown load %q", e.key), suggest(e.key, append([]string{"http"}, programs()...)))
			l.program = text{true, e.key, e.at} // so that it is not said to be missing as well
		}
	}
}

// proofDoc is one way to see a setting in force.
type proofDoc struct {
	kind     string
	argument string
	field    string
	contains string
	equals   string
	byLevel  map[string]string // what it contains or equals, by level
	exact    bool              // byLevel is of equals
	offset   int
	at       place
}

type proofs []proofDoc

func plainProofs() []string {
	return []string{"cmdline", "environ", "maps", "processes", "threads", "backlog"}
}

func askingProofs() []string { return []string{"http", "log", "sql", "command", "file"} }

func (p *proofs) decode(d *decoder, n *node, path string) {
	items := []*node{n}
	if n.kind == listNode {
		items = n.items
	}
	for _, item := range items {
		switch item.kind {
		case scalarNode:
			if !slices.Contains(plainProofs(), item.text) {
				if slices.Contains(askingProofs(), item.text) {
					d.mistake(item.at, "unknown-proof", fmt.Sprintf("the proof %s of %s needs to say what it asks", item.text, path), "write {"+item.text+": …}")
					continue
				}
				d.mistake(item.at, "unknown-proof", fmt.Sprintf("unknown proof %q in %s", item.text, path), suggest(item.text, append(plainProofs(), askingProofs()...)))
				continue
			}
			*p = append(*p, proofDoc{kind: item.text, at: item.at})
		case mapNode:
			*p = append(*p, proofMap(d, item, path))
		default:
			d.wrongKind(item, path, "a proof, such as cmdline or {http: URL, equals: …}")
		}
	}
}

func proofMap(d *decoder, n *node, path string) proofDoc {
	out := proofDoc{at: n.at}
	for _, e := range n.entries {
		var value text
		if e.key == "contains" || e.key == "equals" {
			out.exact = e.key == "equals"
			if e.value.kind == mapNode {
				var levels dict[text]
				levels.decode(d, e.value, join(path, e.key))
				out.byLevel = map[string]string{}
				for i, level := range levels.keys {
					out.byLevel[level] = levels.values[i].value
				}
				continue
			}
			value.decode(d, e.value, join(path, e.key))
			if out.exact {
				out.equals = value.value
			} else {
				out.contains = value.value
			}
			continue
		}
		switch {
		case e.key == "field":
			value.decode(d, e.value, join(path, e.key))
			out.field = value.value
		case e.key == "offset":
			var offset number
			offset.decode(d, e.value, join(path, e.key))
			if offset.set {
				out.offset = offset.within(d, join(path, e.key), 0, 1000)
			}
		case slices.Contains(askingProofs(), e.key) || slices.Contains(plainProofs(), e.key):
			if out.kind != "" {
				d.mistake(e.at, "several-proofs", fmt.Sprintf("%s has %s beside %s", path, e.key, out.kind), "make it two entries of a list")
				continue
			}
			out.kind = e.key
			if e.value.kind == nullNode && slices.Contains(plainProofs(), e.key) {
				continue
			}
			value.decode(d, e.value, join(path, e.key))
			out.argument = value.value
		default:
			d.mistake(e.at, "unknown-key", fmt.Sprintf("unknown key %q in %s", e.key, path),
				suggest(e.key, slices.Concat([]string{"field", "contains", "equals", "offset"}, askingProofs(), plainProofs())))
		}
	}
	if out.kind == "" && len(n.entries) > 0 {
		d.mistake(n.at, "unknown-proof", path+" does not say what to look at", "write one of "+enumerate(append(askingProofs(), plainProofs()...)))
	}
	return out
}
