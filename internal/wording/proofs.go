package wording

import (
	"regexp"
	"slices"
	"strings"

	"hakaru"
	"hakaru/internal/layout"
	"hakaru/internal/redact"
)

// Proofs is a table of proofs. The last column has what was found with where it
// was found: both can be long, and apart each would be broken into shreds. What
// is the same at several moments is one row; withMoments says at which.
func Proofs(proofs []hakaru.Proof, withMoments bool) *layout.Table {
	type seen struct {
		proof hakaru.Proof
		when  []string
	}
	var rows []*seen
	services := map[string]bool{}
	for _, p := range proofs {
		services[p.Service] = true
		when := string(p.When)
		p.When = ""
		at := slices.IndexFunc(rows, func(s *seen) bool { return s.proof == p })
		if at < 0 {
			at = len(rows)
			rows = append(rows, &seen{proof: p})
		}
		if when != "" && !slices.Contains(rows[at].when, when) {
			rows[at].when = append(rows[at].when, when)
		}
	}
	t := &layout.Table{Head: []string{"setting", "asked", "holds", "found"}, Right: make([]bool, 4)}
	if withMoments {
		t.Head, t.Right = slices.Insert(t.Head, 2, "at"), make([]bool, 5)
	}
	for _, s := range rows {
		p := s.proof
		row := []layout.Cell{{Text: ProvedSetting(p.Service, p.Setting, len(services) > 1)}, {Text: Value(p.Setting, p.Asked)}, holds(p.Holds), {Text: evidence(p)}}
		if withMoments {
			at := strings.Join(s.when, ", ")
			if len(s.when) == 3 { // all the moments there are
				at = "always"
			}
			row = slices.Insert(row, 2, layout.Cell{Text: at})
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

// ProvedSetting names the setting of a proof: in a stack with its service.
func ProvedSetting(service, setting string, stack bool) string {
	if !stack || service == "" || strings.HasPrefix(setting, service+".") {
		return setting
	}
	return service + "." + setting
}

func holds(h hakaru.Held) layout.Cell {
	switch h {
	case hakaru.Yes:
		return layout.Cell{Text: "yes", Tone: layout.Good}
	case hakaru.No:
		return layout.Cell{Text: "no", Tone: layout.Bad}
	}
	return layout.Cell{Text: layout.Whole("not proved"), Tone: layout.Doubtful}
}

// evidence is what was found and where. The reason why nothing is proved stands
// in either.
func evidence(p hakaru.Proof) string {
	by := By(p.Source)
	switch {
	case by == "":
		return Value(p.Setting, p.Found)
	case p.Found == "" && p.Holds == hakaru.NotProved:
		return by
	}
	return Value(p.Setting, p.Found) + ", by " + by
}

// Value is a value of a setting, asked for or found.
func Value(setting, text string) string {
	switch {
	case text == "":
		return "(nothing)"
	case redact.Secret(setting):
		return redact.Mask
	}
	return text
}

// holder is the command line of a process that a source names by its number: it
// is long, and the service's own.
var holder = regexp.MustCompile(`(, to pid \d+) \(.*\)$`)

// private is the directory of one trial.
var private = regexp.MustCompile(`\S*/hakaru-[0-9a-f]{8,}/`)

// longestSource is how much of a source is shown: of a command with many words
// the first tell which it was.
const longestSource = 72

// By is where a proof was read, short enough to stand beside what was found.
func By(source string) string {
	source = private.ReplaceAllString(holder.ReplaceAllString(source, "$1"), "{hakaru.dir}/")
	if letters := []rune(source); len(letters) > longestSource {
		source = string(letters[:longestSource-1]) + "…"
	}
	return source
}

// pids are numbers of processes, which are others in each trial.
var pids = regexp.MustCompile(` of pid \d+|(?:, to|:) pids? \d+(?:, \d+)*(?: and \d+ more)?$`)

// ByInTrials is By where one proof stands for those of many trials.
func ByInTrials(source string) string {
	return By(pids.ReplaceAllString(holder.ReplaceAllString(source, "$1"), ""))
}
