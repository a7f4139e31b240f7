package grammar

import (
	"fmt"
	"regexp"
	"slices"

	"hakaru/internal/hint"
	"hakaru/internal/mistake"
	"hakaru/internal/yamltree"
)

// Proof is one way to see a setting in force.
type Proof struct {
	Kind     string
	Argument string
	Field    string
	Contains string
	Equals   string
	ByLevel  map[string]string // what it contains or equals, by level
	Exact    bool              // byLevel is of equals
	Offset   int
	Count    bool   // of a log: how many different matches there are
	Absent   bool   // it holds where nothing of it is found
	From     string // the first moment at which it can be seen; empty: when ready
	At       mistake.Place
}

// Proofs are all ways to see one setting in force.
type Proofs []Proof

func plainProofs() []string {
	return []string{"cmdline", "environ", "maps", "processes", "threads", "backlog"}
}

func askingProofs() []string {
	return []string{"http", "log", "sql", "stats", "command", "file"}
}

// moments are when proofs are asked, in order.
func moments() []string { return []string{"ready", "load", "end"} }

func (p *Proofs) Decode(d *Decoder, n *yamltree.Node, path string) {
	items := []*yamltree.Node{n}
	if n.Kind == yamltree.List {
		items = n.Items
	}
	for _, item := range items {
		switch item.Kind {
		case yamltree.Scalar:
			if !slices.Contains(plainProofs(), item.Text) {
				if slices.Contains(askingProofs(), item.Text) {
					d.Mistake(item.At, "unknown-proof", fmt.Sprintf("the proof %s of %s needs to say what it asks", item.Text, path), "write {"+item.Text+": …}")
					continue
				}
				d.Mistake(item.At, "unknown-proof", fmt.Sprintf("unknown proof %q in %s", item.Text, path), hint.Name(item.Text, append(plainProofs(), askingProofs()...)))
				continue
			}
			*p = append(*p, Proof{Kind: item.Text, At: item.At})
		case yamltree.Map:
			*p = append(*p, proofMap(d, item, path))
		default:
			d.wrongKind(item, path, "a proof, such as cmdline or {http: URL, equals: …}")
		}
	}
}

func proofMap(d *Decoder, n *yamltree.Node, path string) Proof {
	out := Proof{At: n.At}
	for _, e := range n.Entries {
		var value Text
		if e.Key == "contains" || e.Key == "equals" {
			out.Exact = e.Key == "equals"
			if e.Value.Kind == yamltree.Map {
				var levels Dict[Text]
				levels.Decode(d, e.Value, join(path, e.Key))
				out.ByLevel = map[string]string{}
				for i, level := range levels.Keys {
					out.ByLevel[level] = levels.Values[i].Value
				}
				continue
			}
			value.Decode(d, e.Value, join(path, e.Key))
			if out.Exact {
				out.Equals = value.Value
			} else {
				out.Contains = value.Value
			}
			continue
		}
		switch {
		case e.Key == "field":
			value.Decode(d, e.Value, join(path, e.Key))
			out.Field = value.Value
		case e.Key == "offset":
			var offset Number
			offset.Decode(d, e.Value, join(path, e.Key))
			if offset.Set {
				out.Offset = offset.Within(d, join(path, e.Key), 0, 1000)
			}
		case e.Key == "count" || e.Key == "absent":
			value.Decode(d, e.Value, join(path, e.Key))
			if value.Set && value.Value != "true" && value.Value != "false" {
				d.Mistake(value.At, "unknown-value", fmt.Sprintf("%s is to be true or false, not %q", join(path, e.Key), value.Value), "")
			}
			if e.Key == "count" {
				out.Count = value.Value == "true"
			} else {
				out.Absent = value.Value == "true"
			}
		case e.Key == "from":
			value.Decode(d, e.Value, join(path, e.Key))
			if value.Set && !slices.Contains(moments(), value.Value) {
				d.Mistake(value.At, "unknown-value", fmt.Sprintf("%s is to be a moment, not %q", join(path, e.Key), value.Value), "write one of "+hint.List(moments()))
			}
			out.From = value.Value
		case slices.Contains(askingProofs(), e.Key) || slices.Contains(plainProofs(), e.Key):
			if out.Kind != "" {
				d.Mistake(e.At, "several-proofs", fmt.Sprintf("%s has %s beside %s", path, e.Key, out.Kind), "make it two entries of a list")
				continue
			}
			out.Kind = e.Key
			if e.Value.Kind == yamltree.Null && slices.Contains(plainProofs(), e.Key) {
				continue
			}
			value.Decode(d, e.Value, join(path, e.Key))
			out.Argument = value.Value
			checkArgument(d, e.Key, value, path)
		default:
			d.Mistake(e.At, "unknown-key", fmt.Sprintf("unknown key %q in %s", e.Key, path),
				hint.Name(e.Key, slices.Concat([]string{"field", "contains", "equals", "offset", "count", "absent", "from"}, askingProofs(), plainProofs())))
		}
	}
	if out.Kind == "" && len(n.Entries) > 0 {
		d.Mistake(n.At, "unknown-proof", path+" does not say what to look at", "write one of "+hint.List(append(askingProofs(), plainProofs()...)))
	}
	switch {
	case out.Kind == "stats" && out.Field == "":
		d.Mistake(n.At, "missing-key", path+": the proof stats does not say which key of the answer", "write {stats: ADDRESS, field: maxbytes} or the like")
	case out.Count && out.Kind != "log":
		d.Mistake(n.At, "no-effect", path+": count is of the lines of a log alone", "leave it out, or write {log: PATTERN, count: true}")
	}
	return out
}

// checkArgument looks at what can be told of an argument before it is asked.
func checkArgument(d *Decoder, kind string, value Text, path string) {
	if !value.Set {
		return
	}
	switch kind {
	case "command":
		if words, err := Split(value.Value); err != nil {
			d.Mistake(value.At, "command-line", fmt.Sprintf("%s.command: %v", path, err),
				"no shell reads this line; put what needs one into a script, or write sh -c '…'")
		} else if len(words) == 0 {
			d.Mistake(value.At, "command-line", path+".command names no program", "")
		}
	case "log":
		if _, err := regexp.Compile(value.Value); err != nil {
			d.Mistake(value.At, "bad-pattern", fmt.Sprintf("%s.log: %v", path, err), "a pattern is a regular expression (RE2): write \\( for a bracket itself")
		}
	}
}
