package grammar

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"hakaru/internal/hint"
	"hakaru/internal/mistake"
	"hakaru/internal/unit"
	"hakaru/internal/yamltree"
)

// Text is a single value with its place.
type Text struct {
	Set   bool
	Value string
	At    mistake.Place
}

// written is a value that was written at a place.
func written(value string, at mistake.Place) Text { return Text{Set: true, Value: value, At: at} }

func (t *Text) Decode(d *Decoder, n *yamltree.Node, path string) {
	if n.Kind != yamltree.Scalar {
		d.wrongKind(n, path, "a single value")
		return
	}
	*t = written(n.Text, n.At)
}

// Texts is a list of single values, or one of them.
type Texts []Text

func (t *Texts) Decode(d *Decoder, n *yamltree.Node, path string) {
	if n.Kind != yamltree.List {
		if n.Kind != yamltree.Scalar {
			d.wrongKind(n, path, "a list, or a single value")
			return
		}
		var one Text
		one.Decode(d, n, path)
		if one.Set {
			*t = Texts{one}
		}
		return
	}
	for i, item := range n.Items {
		var one Text
		one.Decode(d, item, fmt.Sprintf("%s[%d]", path, i))
		if one.Set {
			*t = append(*t, one)
		}
	}
}

// Values returns the values alone.
func (t Texts) Values() []string {
	var values []string
	for _, one := range t {
		values = append(values, one.Value)
	}
	return values
}

// Number is a whole number from 0.
type Number struct {
	Set   bool
	Value uint64
	At    mistake.Place
}

func (v *Number) Decode(d *Decoder, n *yamltree.Node, path string) {
	if n.Kind != yamltree.Scalar {
		d.wrongKind(n, path, "a whole number")
		return
	}
	value, err := strconv.ParseUint(n.Text, 10, 64)
	if err != nil {
		d.Mistake(n.At, "bad-number", fmt.Sprintf("%s: %q is not a whole number from 0", path, n.Text), "")
		return
	}
	*v = Number{Set: true, Value: value, At: n.At}
}

// Within returns the number as an int, noting one out of bounds.
func (v Number) Within(d *Decoder, what string, low, high int) int {
	if v.Value < uint64(low) || v.Value > uint64(high) {
		d.Mistake(v.At, "out-of-range", fmt.Sprintf("%s is to be from %d to %d, not %d", what, low, high, v.Value), "")
		return low
	}
	return int(v.Value)
}

// Duration is a span of time with its unit.
type Duration struct {
	Set   bool
	Value time.Duration
	At    mistake.Place
}

func (v *Duration) Decode(d *Decoder, n *yamltree.Node, path string) {
	if n.Kind != yamltree.Scalar {
		d.wrongKind(n, path, "a duration, such as 20s")
		return
	}
	value, err := unit.ParseDuration(n.Text)
	if err != nil {
		d.Mistake(n.At, "bad-duration", path+": "+err.Error(), hint.Duration(n.Text))
		return
	}
	*v = Duration{true, value, n.At}
}

// Share is a percentage.
type Share struct {
	Set   bool
	Value float64
	At    mistake.Place
}

func (v *Share) Decode(d *Decoder, n *yamltree.Node, path string) {
	if n.Kind != yamltree.Scalar {
		d.wrongKind(n, path, "a percentage, such as 3%")
		return
	}
	value, err := unit.ParseShare(n.Text)
	if err != nil {
		d.Mistake(n.At, "bad-percentage", path+": "+err.Error(), "")
		return
	}
	*v = Share{true, value, n.At}
}

// Anything is a part of the grammar that is only recognised.
type Anything struct{ Set bool }

func (a *Anything) Decode(_ *Decoder, _ *yamltree.Node, _ string) { a.Set = true }

// CPUs is a set of CPUs: 0, [0, 1], "0-3", "0,2-3".
type CPUs []int

func (c *CPUs) Decode(d *Decoder, n *yamltree.Node, path string) {
	var list Texts
	list.Decode(d, n, path)
	seen := map[int]bool{}
	for _, one := range list {
		for _, part := range strings.Split(one.Value, ",") {
			low, high, span := strings.Cut(strings.TrimSpace(part), "-")
			if !span {
				high = low
			}
			from, err1 := strconv.ParseUint(strings.TrimSpace(low), 10, 12)
			to, err2 := strconv.ParseUint(strings.TrimSpace(high), 10, 12)
			if err1 != nil || err2 != nil || from > to {
				d.Mistake(one.At, "bad-cpus", fmt.Sprintf("%s: %q is no CPU, nor a span of CPUs", path, one.Value), "write 0, [0, 1] or 0-3")
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
