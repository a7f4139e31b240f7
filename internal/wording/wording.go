// Package wording has the words in which results are told, wherever they are
// told: names of metrics and of void reasons, a comparison as a figure with its
// interval, a verdict, a limit, a setting, a load.
//
// It takes the nouns and gives texts, cells where a tone belongs to the word, and
// the table of proofs, which a trial that goes on and one that is stored share.
// Blanks that must not be broken are layout's. The figures are printed by unit.
//
// It decides no verdict and makes no sentence about a run: report does.
package wording

import (
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strings"

	"hakaru"
	"hakaru/internal/compare"
	"hakaru/internal/layout"
	"hakaru/internal/redact"
	"hakaru/internal/unit"
)

// metricNames are names for people; a metric without one goes by its own.
var metricNames = map[hakaru.Metric]string{
	hakaru.CPUPerRequest: "CPU per request",
	hakaru.ClosedP50:     "p50 in the closed loop", hakaru.ClosedP99: "p99 in the closed loop",
}

// Metric is the name of a metric for people.
func Metric(m hakaru.Metric) string {
	if name, ok := metricNames[m]; ok {
		return name
	}
	return string(m)
}

// Measured is the name of a figure of a trial, which for a latency says of which
// loop it is.
func Measured(m hakaru.Measurement) string {
	name := Metric(m.Metric)
	if m.Open {
		name += " in the open loop"
	}
	return name
}

// Unit is the unit in which limits on a metric are written.
func Unit(m hakaru.Metric) string {
	switch m {
	case hakaru.Throughput, hakaru.Capacity:
		return "1/s"
	case hakaru.CPUPerRequest, hakaru.P50, hakaru.P99, hakaru.ClosedP50, hakaru.ClosedP99:
		return "s"
	case hakaru.Errors:
		return "ratio"
	case hakaru.Memory:
		return "B"
	}
	return "1"
}

// Count prints a number with its noun: "1 block", "5 blocks".
func Count(n int, noun string) string {
	if n == 1 {
		return "1" + layout.Nbsp + noun
	}
	return fmt.Sprintf("%d"+layout.Nbsp+"%ss", n, noun)
}

// List joins words as in a sentence: "a, b and c".
func List(words []string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:len(words)-1], ", ") + " and " + words[len(words)-1]
}

// Times reports whether a ratio reads better as "3.97 times" than as a change.
func Times(c *hakaru.Comparison) bool { return c.Ratio >= 2 }

// Factor prints a ratio in three digits: a fourth one is noise.
func Factor(ratio float64) string {
	if !finite(ratio) || ratio <= 0 {
		return unit.Value(ratio, "1")
	}
	step := math.Pow(10, math.Floor(math.Log10(ratio))-2)
	return unit.Value(math.Round(ratio/step)*step, "1")
}

// Interval prints the bounds of a comparison without their sign of percent:
// "+10.1 to +14.8", "3.9 to 4.05".
func Interval(c *hakaru.Comparison) string { return bounds(c.Ratio, c.Low, c.High) }

func bounds(ratio, low, high float64) string {
	if ratio >= 2 {
		return layout.Whole(Factor(low) + " to " + Factor(high))
	}
	bare := func(ratio float64) string { return strings.TrimSuffix(unit.Change(ratio), " %") }
	return layout.Whole(bare(low) + " to " + bare(high))
}

// HasInterval reports whether there were enough values for an interval.
func HasInterval(c *hakaru.Comparison) bool { return c.Low > 0 && c.High > 0 }

// Change prints a comparison as a figure with its interval.
func Change(c *hakaru.Comparison) string {
	if c.Blocks == 0 || c.Ratio <= 0 {
		return "-"
	}
	interval := layout.Whole("no interval")
	if HasInterval(c) {
		interval = Interval(c)
	}
	if Times(c) {
		return layout.Whole(Factor(c.Ratio)+" times") + " (" + interval + ")"
	}
	return layout.Whole(unit.Change(c.Ratio)) + " (" + interval + ")"
}

// NotJudged says why a pair is not judged, where more data would not help; empty
// where it would.
func NotJudged(c *hakaru.Comparison) string {
	why, refused := compare.Refused(c)
	if !refused {
		return ""
	}
	switch why.Code {
	case compare.WarnCannotAct:
		return "what differs cannot act within a trial"
	case compare.WarnZero:
		return "the " + Metric(c.Metric) + " of one alone was 0"
	case compare.WarnBehind:
		return "both fell behind the rate"
	}
	return why.Message
}

func warned(c *hakaru.Comparison, code string) bool {
	return slices.ContainsFunc(c.Warnings, func(w hakaru.Warning) bool { return w.Code == code })
}

// Verdict words a judged comparison.
func Verdict(c *hakaru.Comparison) layout.Cell {
	switch c.Verdict {
	case hakaru.Better:
		return layout.Cell{Text: "better", Tone: layout.Good}
	case hakaru.Worse:
		return layout.Cell{Text: "worse", Tone: layout.Bad}
	case hakaru.Same:
		return layout.Cell{Text: "no difference that matters (" + bounds(c.Ratio, c.SameLow, c.SameHigh) + ")"}
	}
	switch {
	case warned(c, compare.WarnCannotAct):
		return layout.Cell{Text: "not judged: it cannot act", Tone: layout.Doubtful}
	case NotJudged(c) != "":
		return layout.Cell{Text: "not judged: " + NotJudged(c), Tone: layout.Doubtful}
	case warned(c, compare.WarnNoSpread):
		return layout.Cell{Text: "not judged: told too coarsely", Tone: layout.Doubtful}
	}
	text := "not enough data"
	if c.MoreBlocks > 0 {
		text += " (about " + Count(c.MoreBlocks, "more"+layout.Nbsp+"block") + ")"
	}
	return layout.Cell{Text: text, Tone: layout.Doubtful}
}

// voidReasons are the reasons in words, after "because".
var voidReasons = map[hakaru.VoidReason]string{
	hakaru.VoidNotStarted:       "the service did not become ready",
	hakaru.VoidDied:             "the service died or was replaced",
	hakaru.VoidWrongAnswers:     "there were wrong answers",
	hakaru.VoidLoadErrors:       "the load host made errors",
	hakaru.VoidAcceptQueue:      "the accept queue overflowed",
	hakaru.VoidGenerator:        "the load generator was at its limit",
	hakaru.VoidOthers:           "other programs took over half of the machine",
	hakaru.VoidThrottled:        "a CPU quota throttled the service",
	hakaru.VoidProof:            "a setting was not in force",
	hakaru.VoidAgent:            "the agent was lost",
	hakaru.VoidNothingCompleted: "not one request completed",
	hakaru.VoidProgram:          "the load program failed",
}

// VoidReason words a reason of void trials, after "because".
func VoidReason(r hakaru.VoidReason) string {
	if words, ok := voidReasons[r]; ok {
		return words
	}
	return string(r)
}

// figures are what differs between messages that say the same of several trials:
// numbers with their units, and what stands in brackets.
var figures = regexp.MustCompile(`\([^()]*\)|(?:\d+(?:[.,]\d+)*(?:[ \x{a0}]?(?:%|(?:ns|µs|us|ms|s|min|h|[kMGTKi]*B)\b))?[ \x{a0}]?)+`)

// Likeness is the same for warnings that say the same with other figures: they
// are one doubt.
func Likeness(w hakaru.Warning) string {
	return w.Code + ": " + figures.ReplaceAllString(w.Message, "#")
}

// Plural gives the form of a word that goes with so many names.
func Plural(names []string, one, many string) string {
	if len(names) == 1 {
		return one
	}
	return many
}

// IsAre is the verb that goes with so many names.
func IsAre(names []string) string { return Plural(names, "is", "are") }

// Load says in words what was sent.
func Load(e *hakaru.Experiment) string {
	switch {
	case e.Load.HTTP != nil:
		h := e.Load.HTTP
		method := h.Method
		if method == "" {
			method = "GET"
		}
		text := fmt.Sprintf("%s %s, %s%s connections", method, h.URL, loopOf(e), or(h.Connections, "64"))
		if h.KeepAlive == "false" {
			text += ", a new one for each request"
		} else {
			text += " kept alive"
		}
		text += openLoopOf(e)
		for _, name := range slices.Sorted(maps.Keys(h.Headers)) {
			value := h.Headers[name]
			if redact.Header(name) {
				value = redact.Mask
			}
			text += ", " + name + ": " + value
		}
		if h.Status != "" {
			text += ", status " + h.Status + " expected"
		}
		if h.Expect != "" {
			text += fmt.Sprintf(", answers hold %q", h.Expect)
		}
		return text
	case e.Load.Program != nil:
		return program(e.Load.Program)
	}
	return ""
}

func or(text, otherwise string) string {
	if text == "" {
		return otherwise
	}
	return text
}

// Setting is a setting as name = value.
func Setting(s hakaru.Setting) string {
	name := s.Name
	if s.Service != "" {
		name = s.Service + "." + name
	}
	switch {
	case s.Value == nil:
		return name + " left out"
	case redact.Secret(s.Name):
		return name + " = " + redact.Mask
	}
	return name + " = " + *s.Value
}

func finite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }

// Limit is a limit as it would be written: "errors ≤ 1 %".
func Limit(m hakaru.Metric, bound float64, atLeast bool) string {
	sign := " ≤ "
	if atLeast {
		sign = " ≥ "
	}
	return layout.Whole(Metric(m) + sign + unit.Value(bound, Unit(m)))
}

// Because adds the evidence of a void trial, and what may be done, to its
// reason.
func Because(v *hakaru.Void) string {
	text := ""
	if v.Evidence != "" {
		text += " (" + strings.TrimSuffix(v.Evidence, ".") + ")"
	}
	if v.Hint != "" {
		text += "; " + strings.TrimSuffix(v.Hint, ".")
	}
	return text + "."
}
