package yamltree

import (
	"github.com/goccy/go-yaml/ast"

	"hakaru/internal/mistake"
)

// converter turns the parser's tree into ours.
type converter struct {
	source  *mistake.Source
	shifts  shiftList
	anchors map[string]ast.Node
	count   int
	full    bool
}

func (c *converter) place(n ast.Node) mistake.Place {
	if t := n.GetToken(); t != nil && t.Position != nil {
		return c.shifts.original(t.Position.Line, t.Position.Column)
	}
	return mistake.Place{Line: 1, Column: 1}
}

func (c *converter) convert(n ast.Node, depth int) *Node {
	if n == nil {
		return &Node{Kind: Null, At: mistake.Place{Line: 1, Column: 1}}
	}
	at := c.place(n)
	c.count++
	if c.count > maxNodes || depth > maxDepth {
		if !c.full {
			c.full = true
			c.source.Mistake(at, "too-large", "the file holds too many values, or an alias that holds itself", "")
		}
		return &Node{Kind: Unread, At: at}
	}
	switch n := n.(type) {
	case *ast.MappingNode:
		out := &Node{Kind: Map, At: at}
		for _, v := range n.Values {
			c.entry(out, v, depth)
		}
		if len(out.Entries) > 0 && !n.IsFlowStyle {
			out.At = out.Entries[0].At
		}
		return out
	case *ast.MappingValueNode:
		out := &Node{Kind: Map, At: at}
		c.entry(out, n, depth)
		return out
	case *ast.SequenceNode:
		out := &Node{Kind: List, At: at}
		for _, v := range n.Values {
			out.Items = append(out.Items, c.convert(v, depth+1))
		}
		return out
	case *ast.AnchorNode:
		if n.Name != nil {
			c.anchors[n.Name.GetToken().Value] = n.Value
		}
		return c.convert(n.Value, depth+1)
	case *ast.AliasNode:
		name := ""
		if n.Value != nil {
			name = n.Value.GetToken().Value
		}
		target, known := c.anchors[name]
		if !known {
			c.source.Mistake(at, "unknown-alias", "no anchor is called &"+name+" before this", "")
			return &Node{Kind: Unread, At: at}
		}
		out := c.convert(target, depth+1)
		return out
	case *ast.TagNode:
		return c.convert(n.Value, depth+1)
	case *ast.NullNode:
		return &Node{Kind: Null, At: at}
	case *ast.LiteralNode:
		text := ""
		if n.Value != nil {
			text = n.Value.Value
		}
		return &Node{Kind: Scalar, At: at, Text: text}
	case *ast.StringNode:
		return &Node{Kind: Scalar, At: at, Text: n.Value}
	}
	text := ""
	if t := n.GetToken(); t != nil {
		text = t.Value
	}
	return &Node{Kind: Scalar, At: at, Text: text}
}

func (c *converter) entry(out *Node, v *ast.MappingValueNode, depth int) {
	if _, merge := v.Key.(*ast.MergeKeyNode); merge {
		if merged := c.convert(v.Value, depth+1); merged.Kind == Map {
			for _, e := range merged.Entries {
				if out.Get(e.Key) == nil {
					e.merged = true
					out.Entries = append(out.Entries, e)
				}
			}
		}
		return
	}
	at := mistake.Place{Line: 1, Column: 1}
	key := ""
	if v.Key != nil {
		at = c.place(v.Key)
		if t := v.Key.GetToken(); t != nil {
			key = t.Value
		}
	}
	value := c.convert(v.Value, depth+1)
	if value.Kind == Null {
		value.At = at
	}
	for i, e := range out.Entries {
		if e.Key == key && e.merged {
			out.Entries[i] = Entry{Key: key, At: at, Value: value}
			return
		}
		if e.Key == key {
			c.source.Mistake(at, "duplicate", "the key "+key+" is given twice here", "remove one of them, or give one another name")
			return
		}
	}
	out.Entries = append(out.Entries, Entry{Key: key, At: at, Value: value})
}
