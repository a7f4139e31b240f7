package experiment

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"hakaru/internal/unit"
)

// A condition under `where`. The language is small:
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

// whereValue is a value while a condition is evaluated. The zero value is null.
type whereValue struct {
	given bool
	text  string
	level string // name of the level, where it has another
}

// condition is a parsed expression.
type condition func(lookup func(name string) whereValue) (whereValue, error)

// whereError is a mistake in an expression, at an offset in bytes.
type whereError struct {
	offset  int
	message string
	fix     string
}

func (e *whereError) Error() string { return e.message }

type whereParser struct {
	text   string
	pos    int
	depth  int
	names  []string // declared
	levels []string // words that stand for themselves
}

// parseWhere parses one condition.
func parseWhere(text string, names, levels []string) (condition, error) {
	p := &whereParser{text: text, names: names, levels: levels}
	c, err := p.or()
	if err != nil {
		return nil, err
	}
	if p.blank(); p.pos < len(p.text) {
		return nil, p.wrong("%q is not expected here", p.text[p.pos:])
	}
	return c, nil
}

func (p *whereParser) wrong(format string, args ...any) error {
	return &whereError{offset: p.pos, message: fmt.Sprintf(format, args...)}
}

func (p *whereParser) blank() {
	for p.pos < len(p.text) && strings.IndexByte(" \t\n", p.text[p.pos]) >= 0 {
		p.pos++
	}
}

// take consumes the first of the operators that stands here.
func (p *whereParser) take(operators ...string) string {
	p.blank()
	for _, o := range operators {
		if strings.HasPrefix(p.text[p.pos:], o) {
			p.pos += len(o)
			return o
		}
	}
	return ""
}

func (p *whereParser) or() (condition, error) {
	if p.depth++; p.depth > 50 {
		return nil, p.wrong("the expression is nested too deeply")
	}
	defer func() { p.depth-- }()
	return p.chain(p.and, func(op string, a, b whereValue) (whereValue, error) {
		return whereBool(a.truth() || b.truth()), nil
	}, "||")
}

func (p *whereParser) and() (condition, error) {
	return p.chain(p.not, func(op string, a, b whereValue) (whereValue, error) {
		return whereBool(a.truth() && b.truth()), nil
	}, "&&")
}

func (p *whereParser) not() (condition, error) {
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
		return func(lookup func(string) whereValue) (whereValue, error) {
			v, err := inner(lookup)
			return whereBool(!v.truth()), err
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
			return nil, &whereError{p.pos, "a single = is no comparison", "write =="}
		}
		return left, nil
	}
	right, err := p.sum()
	if err != nil {
		return nil, err
	}
	return func(lookup func(string) whereValue) (whereValue, error) {
		a, err := left(lookup)
		if err != nil {
			return a, err
		}
		b, err := right(lookup)
		if err != nil {
			return b, err
		}
		return whereCompare(op, a, b)
	}, nil
}

func (p *whereParser) sum() (condition, error) { return p.chain(p.product, arithmetic, "+", "-") }

func (p *whereParser) product() (condition, error) {
	return p.chain(p.value, arithmetic, "*", "/", "%")
}

// chain parses operand { operator operand }, from the left.
func (p *whereParser) chain(operand func() (condition, error), apply func(op string, a, b whereValue) (whereValue, error), operators ...string) (condition, error) {
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
		left = func(lookup func(string) whereValue) (whereValue, error) {
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

func constant(v whereValue) condition {
	return func(func(string) whereValue) (whereValue, error) { return v, nil }
}

func nameByte(c byte) bool {
	return c == '_' || c == '-' || c == '.' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= 0x80
}

func (p *whereParser) value() (condition, error) {
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
		return constant(whereValue{given: true, text: rest[1 : end+1]}), nil
	}
	if name := p.declared(rest); name != "" {
		p.pos += len(name)
		return func(lookup func(string) whereValue) (whereValue, error) { return lookup(name), nil }, nil
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
		return func(lookup func(string) whereValue) (whereValue, error) {
			v, err := inner(lookup)
			if err != nil {
				return v, err
			}
			return arithmetic("-", whereValue{given: true, text: "0"}, v)
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
		return constant(whereValue{}), nil
	case word == "true" || word == "false" || slices.Contains(p.levels, word):
		p.pos += end
		return constant(whereValue{given: true, text: word}), nil
	}
	if word[0] >= '0' && word[0] <= '9' || word[0] == '.' {
		word = strings.TrimRight(word, "-")
		if dash := strings.IndexByte(word, '-'); dash > 0 {
			word = word[:dash]
		}
		v := whereValue{given: true, text: word}
		if _, ok := v.number(); ok {
			p.pos += len(word)
			return constant(v), nil
		}
		return nil, p.wrong("%q is no number", word)
	}
	return nil, &whereError{p.pos, fmt.Sprintf("no setting is called %q", word), suggest(word, p.names)}
}

// declared returns the longest declared name at the start of text.
func (p *whereParser) declared(text string) string {
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

func whereBool(b bool) whereValue { return whereValue{given: true, text: strconv.FormatBool(b)} }

func (v whereValue) truth() bool {
	return v.given && !slices.Contains([]string{"", "0", "false", "no", "off"}, v.text)
}

// number reads a plain number, a duration (in seconds) or a size (in bytes).
func (v whereValue) number() (float64, bool) {
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

func whereCompare(op string, a, b whereValue) (whereValue, error) {
	if !a.given || !b.given {
		same := !a.given && !b.given || a.given && a.level == "null" || b.given && b.level == "null"
		// A null level may have a name: malloc == glibc.
		same = same || a.level != "" && a.level == b.text || b.level != "" && b.level == a.text
		switch op {
		case "==":
			return whereBool(same), nil
		case "!=":
			return whereBool(!same), nil
		}
		return whereBool(false), nil
	}
	x, okX := a.number()
	y, okY := b.number()
	if okX && okY {
		switch op {
		case "==":
			return whereBool(x == y), nil
		case "!=":
			return whereBool(x != y), nil
		case "<":
			return whereBool(x < y), nil
		case "<=":
			return whereBool(x <= y), nil
		case ">":
			return whereBool(x > y), nil
		}
		return whereBool(x >= y), nil
	}
	same := a.text == b.text || a.level != "" && a.level == b.text || b.level != "" && b.level == a.text
	switch op {
	case "==":
		return whereBool(same), nil
	case "!=":
		return whereBool(!same), nil
	}
	return whereValue{}, fmt.Errorf("%q %s %q compares what are not both numbers", a.text, op, b.text)
}

func arithmetic(op string, a, b whereValue) (whereValue, error) {
	if !a.given || !b.given {
		return whereValue{}, nil
	}
	x, okX := a.number()
	y, okY := b.number()
	if !okX || !okY {
		return whereValue{}, fmt.Errorf("%q %s %q calculates with what are not both numbers", a.text, op, b.text)
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
		return whereValue{}, nil
	}
	return whereValue{given: true, text: strconv.FormatFloat(z, 'g', -1, 64)}, nil
}
