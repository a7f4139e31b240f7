package grammar

import (
	"fmt"
	"slices"

	"hakaru/internal/hint"
	"hakaru/internal/yamltree"
)

// Load is {http: …} or {PROGRAM: …}.
type Load struct {
	HTTP    *HTTP
	Program Text // name of a load program
	Options Settings
}

// programs are the load programs that the grammar knows. None is built yet.
func programs() []string {
	return []string{"ab", "command", "hey", "memtier", "mysqlslap", "oha", "pgbench", "replay", "smtp-source", "sysbench", "vegeta", "wrk", "wrk2"}
}

func (l *Load) Decode(d *Decoder, n *yamltree.Node, path string) {
	if n.Kind != yamltree.Map {
		d.wrongKind(n, path, "a map, such as {http: {url: …}}")
		return
	}
	if n.Get("url") != nil && n.Get("http") == nil {
		d.Mistake(n.Entries[0].At, "unknown-load", "load does not say what sends it", "write it under http: load: {http: {url: …, connections: …}}")
		l.HTTP = &HTTP{}
		d.Decode(n, l.HTTP, join(path, "http"))
		return
	}
	for i, e := range n.Entries {
		inner := join(path, e.Key)
		d.Places[inner] = e.At
		switch {
		case i > 0 && (l.HTTP != nil || l.Program.Set):
			d.Mistake(e.At, "several-loads", fmt.Sprintf("load has %s beside %s: one load is sent", e.Key, n.Entries[0].Key), "remove one of them")
		case e.Key == "http":
			l.HTTP = &HTTP{}
			d.Decode(e.Value, l.HTTP, inner)
		case slices.Contains(programs(), e.Key):
			l.Program = written(e.Key, e.At)
			if e.Value.Kind == yamltree.Scalar {
				l.Options = Settings{{Name: "run", Value: &e.Value.Text, NameAt: e.At, At: e.Value.At}}
				continue
			}
			l.Options.Decode(d, e.Value, inner)
		default:
			d.Mistake(e.At, "unknown-load", fmt.Sprintf("unknown load %q", e.Key), hint.Name(e.Key, append([]string{"http"}, programs()...)))
			l.Program = written(e.Key, e.At) // so that it is not said to be missing as well
		}
	}
}
