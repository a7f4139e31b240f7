package grammar

import (
	"fmt"
	"math"
	"slices"
	"strconv"

	"hakaru/internal/hint"
	"hakaru/internal/mistake"
	"hakaru/internal/yamltree"
)

// Level is one level of a factor: its name, and its value, nil for null.
type Level struct {
	Name  string
	Value *string
	At    mistake.Place
}

// Levels are written as a list, as {name: value}, or as a range.
type Levels []Level

const maxLevels = 1000

func (l *Levels) Decode(d *Decoder, n *yamltree.Node, path string) {
	switch n.Kind {
	case yamltree.List:
		for i, item := range n.Items {
			l.add(d, path, "", item, fmt.Sprintf("%s[%d]", path, i))
		}
	case yamltree.Map:
		if isRange(n) {
			l.span(d, n, path)
			break
		}
		for _, e := range n.Entries {
			l.add(d, path, e.Key, e.Value, join(path, e.Key))
		}
	case yamltree.Scalar:
		l.add(d, path, "", n, path)
	default:
		d.wrongKind(n, path, "a list of levels, a map of them, or {from, to, scale, steps}")
		return
	}
	if len(*l) == 0 {
		d.Mistake(n.At, "no-levels", path+" has no levels", "write at least two, such as [1, 2, 4]")
	}
}

// add adds a level; a name of "" stands for the value itself.
func (l *Levels) add(d *Decoder, path, name string, n *yamltree.Node, inner string) {
	one := Level{Name: name, At: n.At}
	switch n.Kind {
	case yamltree.Scalar:
		one.Value = &n.Text
		if name == "" {
			one.Name = n.Text
		}
	case yamltree.Null:
		if name == "" {
			one.Name = "null"
		}
	default:
		d.wrongKind(n, inner, "a single value or null")
		return
	}
	if one.Name == "" {
		d.Mistake(n.At, "empty-name", "a level of "+path+" is empty", "give it a name: {none: \"\"}")
		return
	}
	if slices.ContainsFunc(*l, func(o Level) bool { return o.Name == one.Name }) {
		d.Mistake(n.At, "duplicate", fmt.Sprintf("%s has the level %s twice", path, one.Name), "remove one of them")
		return
	}
	*l = append(*l, one)
}

// isRange tells {from: 1, to: 64} from levels with names.
func isRange(n *yamltree.Node) bool {
	for _, e := range n.Entries {
		if !slices.Contains([]string{"from", "to", "scale", "steps"}, e.Key) {
			return false
		}
	}
	return n.Get("from") != nil && n.Get("to") != nil
}

// span expands a range to whole numbers, even steps on a linear or logarithmic
// scale, both ends included, without repeats.
func (l *Levels) span(d *Decoder, n *yamltree.Node, path string) {
	var from, to, steps Number
	var scale Text
	from.Decode(d, n.Get("from"), path+".from")
	to.Decode(d, n.Get("to"), path+".to")
	if s := n.Get("scale"); s != nil {
		scale.Decode(d, s, path+".scale")
	}
	if s := n.Get("steps"); s != nil {
		steps.Decode(d, s, path+".steps")
	}
	fail := func(at mistake.Place, message, fix string) {
		d.Mistake(at, "bad-range", path+": "+message, fix)
		// Something to go on with, so that the level is not said to be missing.
		one := "1"
		*l = Levels{{Name: one, Value: &one, At: n.At}}
	}
	const most = 1 << 53 // whole numbers are exact in a float64 up to here
	switch {
	case !from.Set || !to.Set:
		fail(n.At, "a range goes from a whole number to another", "")
		return
	case from.Value >= to.Value || to.Value > most:
		fail(n.Get("to").At, "a range goes from a smaller number to a larger one", "")
		return
	case scale.Set && scale.Value != "log" && scale.Value != "linear":
		fail(scale.At, fmt.Sprintf("unknown scale %q", scale.Value), hint.Name(scale.Value, []string{"linear", "log"}))
		return
	case scale.Value == "log" && from.Value == 0:
		fail(n.Get("from").At, "a logarithmic range cannot begin at 0", "begin at 1")
		return
	case steps.Set && (steps.Value < 2 || steps.Value > maxLevels):
		fail(steps.At, fmt.Sprintf("steps is to be from 2 to %d", maxLevels), "")
		return
	}
	low, high := float64(from.Value), float64(to.Value)
	count := int(steps.Value)
	if !steps.Set {
		if scale.Value == "log" { // doublings
			count = int(math.Round(math.Log2(high/low))) + 1
		} else {
			count = int(min(high-low+1, maxLevels+1))
		}
		count = max(count, 2)
		if count > maxLevels {
			fail(n.At, fmt.Sprintf("more than %d levels", maxLevels), "give steps: 7")
			return
		}
	}
	last := math.NaN()
	for i := range count {
		share := float64(i) / float64(count-1)
		v := math.Round(low + (high-low)*share)
		if scale.Value == "log" {
			v = math.Round(low * math.Pow(high/low, share))
		}
		if v == last {
			continue
		}
		last = v
		value := strconv.FormatFloat(v, 'f', -1, 64)
		*l = append(*l, Level{Name: value, Value: &value, At: n.At})
	}
}
