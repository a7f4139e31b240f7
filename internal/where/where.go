// Package where is the small language of conditions under `where`, which says
// which variants an experiment is to keep: processes * threads <= 64.
//
// It takes the text of one condition with the names and levels that are declared,
// and gives a function from the settings of a variant to a value, or an error at
// an offset. It knows neither variants nor files.
package where

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"hakaru/internal/unit"
)

// The language:
//
//	or     = and { "||" and }
//	and    = not { "&&" not }
//	not    = "!" not | sum [ ("==" | "!=" | "<" | "<=" | ">" | ">=") sum ]
//	sum    = product { ("+" | "-") product }
//	product = value { ("*" | "/" | "%") value }
//	value  = number | "text" | 'text' | true | false | null | name | "(" or ")" | "-" value
//
// A name is the longest declared name that stands there, so that max-requests
// is one name where it is declared and a difference where max and requests are.
// A word that is no name and is a level stands for itself (server == puma).
// null is false, as is a setting that a variant does not have; a comparison
// with null other than == and != is false, and arithmetic with null is null.

// Value is a value while a condition is evaluated. The zero value is null.
type Value struct {
	given bool
	text  string
	level string // name of the level, where it has another
}

// Of is the value of a setting: null where it is nil.
func Of(value *string, level string) Value {
	if value == nil {
		return Value{level: level}
	}
	return Value{given: true, text: *value, level: level}
}

// Condition is a parsed expression.
type Condition func(lookup func(name string) Value) (Value, error)

// Error is a mistake in an expression, at an offset in bytes.
type Error struct {
	Offset  int
	message string
	Fix     string
	Unknown string // the word that is no name, where that is it
}

func (e *Error) Error() string { return e.message }

type parser struct {
	text   string
	pos    int
	depth  int
	names  []string // declared
	levels []string // words that stand for themselves
}

// Parse parses one condition.
func Parse(text string, names, levels []string) (Condition, error) {
	p := &parser{text: text, names: names, levels: levels}
	c, err := p.or()
	if err != nil {
		return nil, err
	}
	if p.blank(); p.pos < len(p.text) {
		return nil, p.wrong("%q is not expected here", p.text[p.pos:])
	}
	return c, nil
}

func (p *parser) wrong(format string, args ...any) error {
	return &Error{Offset: p.pos, message: fmt.Sprintf(format, args...)}
}

func (p *parser) blank() {
	for p.pos < len(p.text) && strings.IndexByte(" \t\n", p.text[p.pos]) >= 0 {
		p.pos++
	}
}

// take consumes the first of the operators that stands here.
func (p *parser) take(operators ...string) string {
	p.blank()
	for _, o := range operators {
		if strings.HasPrefix(p.text[p.pos:], o) {
			p.pos += len(o)
			return o
		}
	}
	return ""
}

func (p *parser) or() (Condition, error) {
	if p.depth++; p.depth > 50 {
		return nil, p.wrong("the expression is nested too deeply")
	}
	defer func() { p.depth-- }()
	return p.chain(p.and, func(op string, a, b Value) (Value, error) {
		return boolean(a.Truth() || b.Truth()), nil
	}, "||")
}

func (p *parser) and() (Condition, error) {
	return p.chain(p.not, func(op string, a, b Value) (Value, error) {
		return boolean(a.Truth() && b.Truth()), nil
	}, "&&")
}

func (p *parser) not() (Condition, error) {
	p.blank()
	if strings.HasPrefix(p.text[p.pos:], "!") && !strings.HasPrefix(p.text[p.pos:], "!=") {
		p.pos++
		if p.depth++; p.depth > 50 {
			return nil, p.wrong("the expression is nested too deeply")
		}
		defer func() { p.depth-- }()
		inner, err := p.not()
		if err != nil {
			return nil, err
		}
		return func(lookup func(string) Value) (Value, error) {
			v, err := inner(lookup)
			return boolean(!v.Truth()), err
		}, nil
	}
	left, err := p.sum()
	if err != nil {
		return nil, err
	}
	op := p.take("==", "!=", "<=", ">=", "<", ">")
	if op == "" {
		if p.take("=") != "" {
			p.pos--
			return nil, &Error{Offset: p.pos, message: "a single = is no comparison", Fix: "write =="}
		}
		return left, nil
	}
	right, err := p.sum()
	if err != nil {
		return nil, err
	}
	return func(lookup func(string) Value) (Value, error) {
		a, err := left(lookup)
		if err != nil {
			return a, err
		}
		b, err := right(lookup)
		if err != nil {
			return b, err
		}
		return compared(op, a, b)
	}, nil
}

func (p *parser) sum() (Condition, error) { return p.chain(p.product, arithmetic, "+", "-") }

func (p *parser) product() (Condition, error) {
	return p.chain(p.value, arithmetic, "*", "/", "%")
}

// chain parses operand { operator operand }, from the left.
func (p *parser) chain(operand func() (Condition, error), apply func(op string, a, b Value) (Value, error), operators ...string) (Condition, error) {
	left, err := operand()
	if err != nil {
		return nil, err
	}
	for {
		op := p.take(operators...)
		if op == "" {
			return left, nil
		}
		right, err := operand()
		if err != nil {
			return nil, err
		}
		first := left
		left = func(lookup func(string) Value) (Value, error) {
			a, err := first(lookup)
			if err != nil {
				return a, err
			}
			b, err := right(lookup)
			if err != nil {
				return b, err
			}
			return apply(op, a, b)
		}
	}
}

func constant(v Value) Condition {
	return func(func(string) Value) (Value, error) { return v, nil }
}

func nameByte(c byte) bool {
	return c == '_' || c == '-' || c == '.' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= 0x80
}

func (p *parser) value() (Condition, error) {
	p.blank()
	if p.pos >= len(p.text) {
		return nil, p.wrong("the expression ends where a value is expected")
	}
	rest := p.text[p.pos:]
	switch c := rest[0]; {
	case c == '(':
		p.pos++
		inner, err := p.or()
		if err != nil {
			return nil, err
		}
		if p.take(")") == "" {
			return nil, p.wrong("a closing parenthesis is missing")
		}
		return inner, nil
	case c == '"' || c == '\'':
		end := strings.IndexByte(rest[1:], c)
		if end < 0 {
			return nil, p.wrong("the quote is not closed")
		}
		p.pos += end + 2
		return constant(Value{given: true, text: rest[1 : end+1]}), nil
	}
	if name := p.declared(rest); name != "" {
		p.pos += len(name)
		return func(lookup func(string) Value) (Value, error) { return lookup(name), nil }, nil
	}
	if rest[0] == '-' {
		p.pos++
		if p.depth++; p.depth > 50 {
			return nil, p.wrong("the expression is nested too deeply")
		}
		defer func() { p.depth-- }()
		inner, err := p.value()
		if err != nil {
			return nil, err
		}
		return func(lookup func(string) Value) (Value, error) {
			v, err := inner(lookup)
			if err != nil {
				return v, err
			}
			return arithmetic("-", Value{given: true, text: "0"}, v)
		}, nil
	}
	end := 0
	for end < len(rest) && nameByte(rest[end]) {
		end++
	}
	word := rest[:end]
	switch {
	case word == "":
		return nil, p.wrong("a value is expected here, not %q", rest)
	case word == "null":
		p.pos += end
		return constant(Value{}), nil
	case word == "true" || word == "false" || slices.Contains(p.levels, word):
		p.pos += end
		return constant(Value{given: true, text: word}), nil
	}
	if word[0] >= '0' && word[0] <= '9' || word[0] == '.' {
		word = strings.TrimRight(word, "-")
		if dash := strings.IndexByte(word, '-'); dash > 0 {
			word = word[:dash]
		}
		v := Value{given: true, text: word}
		if _, ok := v.number(); ok {
			p.pos += len(word)
			return constant(v), nil
		}
		return nil, p.wrong("%q is no number", word)
	}
	return nil, &Error{Offset: p.pos, message: fmt.Sprintf("no setting is called %q", word), Unknown: word}
}

// declared returns the longest declared name at the start of text.
func (p *parser) declared(text string) string {
	best := ""
	for _, name := range p.names {
		if len(name) > len(best) && strings.HasPrefix(text, name) && (len(text) == len(name) || !nameByte(text[len(name)]) || text[len(name)] == '-') {
			best = name
		}
	}
	// "processes-x" where only processes is declared reads as a difference; but a
	// level that is longer than the name is the level.
	for _, l := range p.levels {
		if len(l) > len(best) && strings.HasPrefix(text, l) && (len(text) == len(l) || !nameByte(text[len(l)])) {
			return ""
		}
	}
	return best
}

func boolean(b bool) Value { return Value{given: true, text: strconv.FormatBool(b)} }

// Truth reports whether a condition with this value holds.
func (v Value) Truth() bool {
	return v.given && !slices.Contains([]string{"", "0", "false", "no", "off"}, v.text)
}

// number reads a plain number, a duration (in seconds) or a size (in bytes).
func (v Value) number() (float64, bool) {
	if f, err := strconv.ParseFloat(v.text, 64); err == nil && !math.IsInf(f, 0) && !math.IsNaN(f) {
		return f, true
	}
	if d, err := unit.ParseDuration(v.text); err == nil {
		return d.Seconds(), true
	}
	if b, err := unit.ParseBytes(v.text); err == nil {
		return b, true
	}
	return 0, false
}

func compared(op string, a, b Value) (Value, error) {
	if !a.given || !b.given {
		same := !a.given && !b.given || a.given && a.level == "null" || b.given && b.level == "null"
		// A null level may have a name: malloc == glibc.
		same = same || a.level != "" && a.level == b.text || b.level != "" && b.level == a.text
		switch op {
		case "==":
			return boolean(same), nil
		case "!=":
			return boolean(!same), nil
		}
		return boolean(false), nil
	}
	x, okX := a.number()
	y, okY := b.number()
	if okX && okY {
		switch op {
		case "==":
			return boolean(x == y), nil
		case "!=":
			return boolean(x != y), nil
		case "<":
			return boolean(x < y), nil
		case "<=":
			return boolean(x <= y), nil
		case ">":
			return boolean(x > y), nil
		}
		return boolean(x >= y), nil
	}
	same := a.text == b.text || a.level != "" && a.level == b.text || b.level != "" && b.level == a.text
	switch op {
	case "==":
		return boolean(same), nil
	case "!=":
		return boolean(!same), nil
	}
	return Value{}, fmt.Errorf("%q %s %q compares what are not both numbers", a.text, op, b.text)
}

func arithmetic(op string, a, b Value) (Value, error) {
	if !a.given || !b.given {
		return Value{}, nil
	}
	x, okX := a.number()
	y, okY := b.number()
	if !okX || !okY {
		return Value{}, fmt.Errorf("%q %s %q calculates with what are not both numbers", a.text, op, b.text)
	}
	var z float64
	switch op {
	case "+":
		z = x + y
	case "-":
		z = x - y
	case "*":
		z = x * y
	case "/":
		z = x / y
	case "%":
		z = math.Mod(x, y)
	}
	if math.IsNaN(z) || math.IsInf(z, 0) { // by zero
		return Value{}, nil
	}
	return Value{given: true, text: strconv.FormatFloat(z, 'g', -1, 64)}, nil
}
