package program

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"hakaru"
	"hakaru/internal/grammar"
)

// command is a program of one's own, whose figures are found by patterns. Of
// several lines that a pattern matches the last one counts: programs print sums at
// their end.
type command struct{}

func (command) Call(spec hakaru.ProgramSpec, _ time.Duration, _ bool) (Call, error) {
	words, err := grammar.Split(spec.Options["run"])
	if err != nil {
		return Call{}, fmt.Errorf("load.command.run: %w", err)
	}
	if len(words) == 0 {
		return Call{}, fmt.Errorf("load.command.run names no program")
	}
	return Call{Argv: words}, nil
}

func (command) CPUs(hakaru.ProgramSpec) int { return 0 }

func (command) Install() string {
	return "a relative path starts at the directory of the experiment file"
}

func (command) Version() []string { return nil }

func (command) Doubts(hakaru.ProgramSpec, hakaru.Totals) []hakaru.Warning { return nil }

func (command) Read(spec hakaru.ProgramSpec, w Written) hakaru.Totals {
	t := hakaru.Totals{Took: w.Took}
	if w.State != "" {
		t.Failed, t.Hint = ended("the load command", w), "run it by hand"
		return t
	}
	t.BadUnknown = spec.Options["bad"] == ""
	o, text := spec.Options, w.Stdout+"\n"+w.Stderr
	read := func(key string, into func(text string) error) {
		pattern := o[key]
		if pattern == "" || t.Failed != "" {
			return
		}
		found, err := lastMatch(pattern, text)
		if err == nil {
			err = into(found)
		}
		if err != nil {
			t.Failed = fmt.Sprintf("the load command's output tells no %s: %v; it ends with: %s", key, err, firstWord(lastLines(text, 3), "nothing"))
			t.Hint = fmt.Sprintf("load.command.%s is to match a line that it prints, with the number in a group", key)
		}
	}
	real := func(to *float64) func(string) error {
		return func(text string) error {
			v, err := strconv.ParseFloat(strings.ReplaceAll(text, ",", ""), 64)
			if err != nil || !finite(v) {
				return fmt.Errorf("%q is no number", text)
			}
			*to = v
			return nil
		}
	}
	whole := func(to *uint64) func(string) error {
		return func(text string) (err error) {
			if *to, err = strconv.ParseUint(strings.ReplaceAll(text, ",", ""), 10, 64); err != nil {
				return fmt.Errorf("%q is no whole number", text)
			}
			return nil
		}
	}
	var score float64
	read("score", real(&score))
	read("throughput", real(&t.Throughput))
	read("good", whole(&t.Good))
	read("bad", whole(&t.Bad))
	switch {
	case t.Failed != "":
		// Half of its figures would be taken for all.
		t.Good, t.Bad, t.Throughput = 0, 0, 0
	case t.Throughput < 0:
		t.Failed, t.Throughput = fmt.Sprintf("the load command tells a throughput of %v", t.Throughput), 0
	case o["score"] != "":
		t.Score = &score
	}
	return t
}

// lastMatch is the first group that took part in the last match.
func lastMatch(pattern, text string) (string, error) {
	re, err := regexp.Compile("(?m)" + pattern)
	if err != nil {
		return "", err
	}
	all := re.FindAllStringSubmatch(text, -1)
	if len(all) == 0 {
		return "", fmt.Errorf("nothing matches %s", pattern)
	}
	for _, group := range all[len(all)-1][1:] {
		if group != "" {
			return group, nil
		}
	}
	return "", fmt.Errorf("the group of %s is empty", pattern)
}
