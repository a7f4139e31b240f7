package experiment

import (
	"fmt"
	"math"
	"slices"
	"strconv"
)

// level is one level of a factor: its name, and its value, nil for null.
type level struct {
	name  string
	value *string
	at    place
}

// levels are written as a list, as {name: value}, or as a range.
type levels []level

const maxLevels = 1000

func (l *levels) decode(d *decoder, n *node, path string) {
	switch n.kind {
	case listNode:
		for i, item := range n.items {
			l.add(d, path, "", item, fmt.Sprintf("%s[%d]", path, i))
		}
	case mapNode:
		if isRange(n) {
			l.span(d, n, path)
			break
		}
		for _, e := range n.entries {
			l.add(d, path, e.key, e.value, join(path, e.key))
		}
	case scalarNode:
		l.add(d, path, "", n, path)
	default:
		d.wrongKind(n, path, "a list of levels, a map of them, or {from, to, scale, steps}")
		return
	}
	if len(*l) == 0 {
		d.mistake(n.at, "no-levels", path+" has no levels", "write at least two, such as [1, 2, 4]")
	}
}

func (l *levels) add(d *decoder, path, name string, n *node, inner string) {
	one := level{name: name, at: n.at}
	switch n.kind {
	case scalarNode:
		one.value = &n.text
		if name == "" {
			one.name = n.text
		}
	case nullNode:
		if name == "" {
			one.name = "null"
		}
	default:
		d.wrongKind(n, inner, "a single value or null")
		return
	}
	if one.name == "" {
		d.mistake(n.at, "empty-name", "a level of "+path+" is empty", "give it a name: {none: \"\"}")
		return
	}
	if slices.ContainsFunc(*l, func(o level) bool { return o.name == one.name }) {
		d.mistake(n.at, "duplicate", fmt.Sprintf("%s has the level %s twice", path, one.name), "remove one of them")
		return
	}
	*l = append(*l, one)
}

// isRange tells {from: 1, to: 64} from levels with names.
func isRange(n *node) bool {
	for _, e := range n.entries {
		if !slices.Contains([]string{"from", "to", "scale", "steps"}, e.key) {
			return false
		}
	}
	return n.get("from") != nil && n.get("to") != nil
}

// span expands a range to whole numbers, even steps on a linear or logarithmic
// scale, both ends included, without repeats.
func (l *levels) span(d *decoder, n *node, path string) {
	var from, to, steps number
	var scale text
	from.decode(d, n.get("from"), path+".from")
	to.decode(d, n.get("to"), path+".to")
	if s := n.get("scale"); s != nil {
		scale.decode(d, s, path+".scale")
	}
	if s := n.get("steps"); s != nil {
		steps.decode(d, s, path+".steps")
	}
	fail := func(at place, message, fix string) {
		d.mistake(at, "bad-range", path+": "+message, fix)
		// Something to go on with, so that the level is not said to be missing.
		one := "1"
		*l = levels{{name: one, value: &one, at: n.at}}
	}
	const most = 1 << 53 // whole numbers are exact in a float64 up to here
	switch {
	case !from.set || !to.set:
		fail(n.at, "a range goes from a whole number to another", "")
		return
	case from.value >= to.value || to.value > most:
		fail(n.get("to").at, "a range goes from a smaller number to a larger one", "")
		return
	case scale.set && scale.value != "log" && scale.value != "linear":
		fail(scale.at, fmt.Sprintf("unknown scale %q", scale.value), suggest(scale.value, []string{"linear", "log"}))
		return
	case scale.value == "log" && from.value == 0:
		fail(n.get("from").at, "a logarithmic range cannot begin at 0", "begin at 1")
		return
	case steps.set && (steps.value < 2 || steps.value > maxLevels):
		fail(steps.at, fmt.Sprintf("steps is to be from 2 to %d", maxLevels), "")
		return
	}
	low, high := float64(from.value), float64(to.value)
	count := int(steps.value)
	if !steps.set {
		if scale.value == "log" { // doublings
			count = int(math.Round(math.Log2(high/low))) + 1
		} else {
			count = int(min(high-low+1, maxLevels+1))
		}
		count = max(count, 2)
		if count > maxLevels {
			fail(n.at, fmt.Sprintf("more than %d levels", maxLevels), "give steps: 7")
			return
		}
	}
	last := math.NaN()
	for i := range count {
		share := float64(i) / float64(count-1)
		v := math.Round(low + (high-low)*share)
		if scale.value == "log" {
			v = math.Round(low * math.Pow(high/low, share))
		}
		if v == last {
			continue
		}
		last = v
		value := strconv.FormatFloat(v, 'f', -1, 64)
		*l = append(*l, level{name: value, value: &value, at: n.at})
	}
}
