// Package condition reads bounds on the figures of a load, "p99<50ms,errors<0.1%",
// and says of a load whether they hold.
//
// It takes a person's text or a hakaru.Tally; it gives hakaru.Conditions, their
// text, and for each the figure and whether it holds. What follows from it, an
// exit code or the next rate to try, is for others.
package condition

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"hakaru"
	"hakaru/internal/hint"
	"hakaru/internal/latency"
	"hakaru/internal/unit"
)

// Max is the metric of the highest latency.
const Max hakaru.Metric = "max"

// known are the names that a condition may begin with, for the hint.
var known = []string{"errors", "throughput", "p50", "p90", "p95", "p99", "p99.9", "max"}

const example = "write bounds such as p99<50ms,errors<0.1%,throughput>1000/s"

// Error is a mistake in a text of conditions, at an offset in bytes.
type Error struct {
	Offset  int
	message string
	fix     string
}

func (e *Error) Error() string { return e.message }

// Hint says what to write instead; it may be empty.
func (e *Error) Hint() string { return e.fix }

// Parse reads conditions, separated by commas. A metric is errors (a share, "0.1%"),
// throughput ("1000/s"), or a latency ("50ms"): max, or p and a percentage, "p99.9".
// "<" and "<=" are the same bound, as are ">" and ">=": a figure that is exactly the
// bound holds.
func Parse(text string) ([]hakaru.Condition, error) {
	var conditions []hakaru.Condition
	offset := 0
	for part := range strings.SplitSeq(text, ",") {
		at := offset + len(part) - len(strings.TrimLeft(part, " \t"))
		offset += len(part) + len(",")
		part = strings.TrimSpace(part)
		if part == "" {
			return nil, &Error{Offset: at, message: fmt.Sprintf("%q: a condition is missing", text), fix: example}
		}
		c, wrong := parse(part)
		if wrong != nil {
			wrong.Offset += at
			return nil, wrong
		}
		for _, before := range conditions {
			if before.Metric == c.Metric && before.AtLeast == c.AtLeast {
				return nil, &Error{Offset: at, message: fmt.Sprintf("%s: %s has a bound already, %s", part, c.Metric, String(before)), fix: "leave one of them out"}
			}
		}
		conditions = append(conditions, c)
	}
	return conditions, nil
}

func parse(part string) (hakaru.Condition, *Error) {
	wrong := func(at int, fix, format string, args ...any) (hakaru.Condition, *Error) {
		return hakaru.Condition{}, &Error{Offset: at, message: part + ": " + fmt.Sprintf(format, args...), fix: fix}
	}
	sign := strings.IndexAny(part, "<>=")
	if sign < 0 {
		return wrong(len(part), example, "neither < nor > is there")
	}
	name, rest := strings.TrimSpace(part[:sign]), part[sign+1:]
	switch {
	case part[sign] == '=':
		return wrong(sign, "write < or >", "a measured figure is never equal to anything")
	case strings.HasPrefix(rest, "="):
		rest = rest[1:]
	}
	valueAt := len(part) - len(strings.TrimLeft(rest, " \t"))
	value := strings.TrimSpace(rest)
	if value == "" {
		return wrong(len(part), example, "the bound is missing")
	}

	c, fault := metric(name)
	if fault != "" {
		fix := hint.Name(name, known)
		switch strings.ToLower(name) {
		case "mean", "avg", "average", "latency":
			fix = "a mean hides what the slow requests took: write p50 or p99"
		case "rps", "rate", "qps":
			fix = `did you mean "throughput"?`
		}
		return wrong(0, fix, "%s", fault)
	}
	c.AtLeast = part[sign] == '>'
	var err error
	bare := "write " + name + part[sign:sign+1] + value
	switch c.Metric {
	case hakaru.Errors:
		if c.Bound, err = unit.ParseShare(value); err == nil && c.Bound > 1 {
			return wrong(valueAt, bare+"%", "%s is more than everything", value)
		}
		bare = ""
	case hakaru.Throughput:
		c.Bound, err = unit.ParseRate(value)
		bare += "/s"
	default:
		var d time.Duration
		d, err = unit.ParseDuration(value)
		c.Bound = d.Seconds()
		bare += "ms, or " + value + "s for seconds"
	}
	if err != nil {
		if _, number := strconv.ParseFloat(value, 64); number != nil {
			bare = ""
		}
		return wrong(valueAt, bare, "%v", err)
	}
	return c, nil
}

// metric reads a name; fault says what is wrong with it.
func metric(name string) (c hakaru.Condition, fault string) {
	switch name {
	case string(hakaru.Errors), string(hakaru.Throughput):
		return hakaru.Condition{Metric: hakaru.Metric(name)}, ""
	case string(Max):
		return Latency(1), ""
	}
	if digits, is := strings.CutPrefix(name, "p"); is && strings.Trim(digits, "0123456789.") == "" {
		percent, err := strconv.ParseFloat(digits, 64)
		switch {
		case err != nil:
		case percent == 100:
			return Latency(1), ""
		case percent < 100 && decimal(percent) != "0" && decimal(percent) != "100":
			return Latency(percent / 100), ""
		default:
			return c, fmt.Sprintf("there is no %s: a quantile lies between p0 and p100", name)
		}
	}
	return c, fmt.Sprintf("there is no figure %q", name)
}

// Latency is a condition, without its bound, on a quantile of the latency.
func Latency(quantile float64) hakaru.Condition {
	if quantile >= 1 {
		return hakaru.Condition{Metric: Max, Quantile: 1}
	}
	return hakaru.Condition{Metric: hakaru.Metric("p" + decimal(quantile*100)), Quantile: quantile}
}

// decimal prints a number as it would be written, without what a division by 100
// has left in its last digits.
func decimal(v float64) string {
	text := strconv.FormatFloat(v, 'f', 10, 64)
	return strings.TrimSuffix(strings.TrimRight(text, "0"), ".")
}

// String is a condition as it is written, the same for the same bound: "p99<50ms".
// Parse reads it.
func String(c hakaru.Condition) string {
	sign := "<"
	if c.AtLeast {
		sign = ">"
	}
	switch c.Metric {
	case hakaru.Errors:
		return string(c.Metric) + sign + decimal(c.Bound*100) + "%"
	case hakaru.Throughput:
		return string(c.Metric) + sign + decimal(c.Bound) + "/s"
	}
	return string(c.Metric) + sign + unit.ExactDuration(time.Duration(math.Round(c.Bound*1e9)))
}

// Join is what Parse reads.
func Join(conditions []hakaru.Condition) string {
	var texts []string
	for _, c := range conditions {
		texts = append(texts, String(c))
	}
	return strings.Join(texts, ",")
}

// Outcome is one condition held against one load.
type Outcome struct {
	Condition hakaru.Condition
	Value     float64 // in the unit of the bound; NaN where there is none
	Holds     bool    // never where there is no value
	Words     string  // "p99 61 ms, want below 50 ms"
}

// Check holds conditions against a load, in their order. A share of errors leaves
// out what the load host did wrong. Where nothing was answered there is neither
// such a share nor a latency, and no condition on them holds.
func Check(conditions []hakaru.Condition, t *hakaru.Tally) []Outcome {
	took, err := latency.Decode(t.Latency)
	outcomes := make([]Outcome, 0, len(conditions))
	for _, c := range conditions {
		o := Outcome{Condition: c, Value: math.NaN()}
		figure, none := "", "no answer"
		switch c.Metric {
		case hakaru.Errors:
			if share, ok := Errors(t); ok {
				o.Value, figure = share, unit.Share(share)
			}
		case hakaru.Throughput:
			o.Value = 0
			if t.Took > 0 {
				o.Value = float64(t.Good) / t.Took.Seconds()
			}
			figure = unit.Rate(o.Value)
		default:
			none = "no good answer"
			switch {
			case err != nil:
				none = err.Error()
			case took.Count() > 0:
				o.Value = took.Quantile(c.Quantile).Seconds()
				figure = unit.Seconds(o.Value)
			}
		}
		if figure == "" {
			o.Words = fmt.Sprintf("%s: %s, want %s", c.Metric, none, want(c))
		} else {
			o.Holds = o.Value <= c.Bound && !c.AtLeast || o.Value >= c.Bound && c.AtLeast
			o.Words = fmt.Sprintf("%s %s, want %s", c.Metric, figure, want(c))
		}
		outcomes = append(outcomes, o)
	}
	return outcomes
}

// Errors is the share of answers that the service got wrong; false where there was
// none. What the load host did wrong is no answer.
func Errors(t *hakaru.Tally) (share float64, ok bool) {
	bad := t.Bad - min(Own(t), t.Bad)
	if t.Good+bad == 0 {
		return 0, false
	}
	return float64(bad) / float64(t.Good+bad), true
}

// Own is how many requests went wrong by the load host's own doing.
func Own(t *hakaru.Tally) (n uint64) {
	for kind, count := range t.Kinds {
		if hakaru.ErrorKind(kind).Load() {
			n += count
		}
	}
	return n
}

// want is the bound in words: "below 50 ms".
func want(c hakaru.Condition) string {
	side := "below "
	if c.AtLeast {
		side = "above "
	}
	switch c.Metric {
	case hakaru.Errors:
		return side + unit.Share(c.Bound)
	case hakaru.Throughput:
		return side + unit.Rate(c.Bound)
	}
	return side + unit.Seconds(c.Bound)
}

// All reports whether every outcome holds, and says which do not.
func All(outcomes []Outcome) (hold bool, why string) {
	var not []string
	for _, o := range outcomes {
		if !o.Holds {
			not = append(not, o.Words)
		}
	}
	return len(not) == 0, strings.Join(slices.Compact(not), "; ")
}
