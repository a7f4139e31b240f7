package render

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/rogpeppe/go-internal/diff"

	"hakaru"
	"hakaru/internal/grammar"
)

// Diff returns what a variant changes in what the person has, as a unified diff:
// in the config file where the service has one, else in its command line,
// environment and files as they are for the baseline. Another version of the
// person's code is named, not shown. It is empty where nothing changes. Settings
// that only give the service an address leased by hakaru are left out.
func Diff(exp *hakaru.Experiment, variant string) (string, error) {
	fail := func(err error) (string, error) {
		return "", fmt.Errorf("show what variant %s changes: %w", variant, err)
	}
	old, err := plainRendering(exp, exp.Baseline)
	if err != nil {
		return fail(err)
	}
	now, err := plainRendering(exp, variant)
	if err != nil {
		return fail(err)
	}
	var b strings.Builder
	for i := range exp.Services {
		s := &exp.Services[i]
		before, after := old.find(s.Name), now.find(s.Name)
		if s.Settings != "" && after != nil {
			b.WriteString(unified(s.Settings, exp.Source(s.Settings).Content, now.personal(s, after)))
		}
		switch {
		case before == nil && after == nil:
		case after == nil:
			b.WriteString(unified("service "+s.Name, typed(before.unit.Argv)+"\n", ""))
		case before == nil:
			b.WriteString(unified("service "+s.Name, "", typed(after.unit.Argv)+"\n"))
		default:
			if commit := after.unit.Revision; commit != before.unit.Revision {
				b.WriteString(now.otherVersion(s, commit))
			}
			b.WriteString(unified(s.Name+": run", typed(before.unit.Argv)+"\n", typed(after.unit.Argv)+"\n"))
			b.WriteString(unified(s.Name+": env", environment(before.unit.Env), environment(after.unit.Env)))
			for _, name := range slices.Sorted(maps.Keys(s.Files)) {
				b.WriteString(unified(name, old.lines(s.Files[name]), now.lines(s.Files[name])))
			}
		}
	}
	return b.String(), nil
}

// otherVersion is how one gets the version that a variant is of. What differs in
// it by file is for git to show.
func (r *Rendering) otherVersion(s *hakaru.Service, commit string) string {
	level := ""
	for _, x := range slices.Concat(s.Base, r.variant.Settings) {
		if OfVersion(r.exp, s, x) {
			level = x.Level
		}
	}
	whose := ""
	if len(r.exp.Services) > 1 {
		whose = s.Name + ": "
	}
	switch {
	case commit == "." || commit == "":
		return whose + "the working tree as it is\n"
	case strings.HasPrefix(commit, level):
		return fmt.Sprintf("%sgit checkout %s\n", whose, level)
	}
	return fmt.Sprintf("%sgit checkout %.12s   # %s\n", whose, commit, level)
}

// plainRendering renders a variant under the first stratum.
func plainRendering(exp *hakaru.Experiment, variant string) (*Rendering, error) {
	v, found := exp.Variant(variant)
	if !found || len(exp.Strata) == 0 {
		return nil, fmt.Errorf("the experiment has no variant %q", variant)
	}
	c, err := New(exp)
	if err != nil {
		return nil, err
	}
	return c.Rendering(v, exp.Strata[0])
}

func (r *Rendering) find(service string) *renderedUnit {
	for i := range r.units {
		if r.units[i].unit.Service == service {
			return &r.units[i]
		}
	}
	return nil
}

// personal is the config file as the person would write it for the variant:
// without the settings whose values only hakaru can fill in.
func (r *Rendering) personal(s *hakaru.Service, u *renderedUnit) string {
	leased := r.leased
	var list []hakaru.Setting
	for _, x := range u.settings {
		if x.Value != nil && slices.ContainsFunc(Mentioned(*x.Value), func(n string) bool { return leased[n] }) {
			continue
		}
		list = append(list, x)
	}
	content := r.lines(r.exp.Source(s.Settings).Content)
	edited, err := u.kind.EditFile(content, list)
	if err != nil { // a kind without an editor: placeholders only
		return content
	}
	return edited
}

// typed is an argument list as it would be typed, our own names undone.
func typed(argv []string) string {
	words := make([]string, len(argv))
	for i, w := range argv {
		if i == 0 && w == "{hakaru.exe}" {
			w = "hakaru"
		}
		words[i] = strings.ReplaceAll(w, "{hakaru.dir}/", "")
	}
	return CommandLine(words)
}

// CommandLine writes an argument list so that a shell reads the same words, but
// for braces, which stay bare: they are placeholders to whoever reads this.
func CommandLine(argv []string) string { return grammar.Join(argv) }

func environment(list []hakaru.EnvVar) string {
	var b strings.Builder
	for _, e := range list {
		if e.Value != nil {
			fmt.Fprintf(&b, "%s=%s\n", e.Name, *e.Value)
		}
	}
	return b.String()
}

// unified is a unified diff of two texts under one name, empty where they are
// the same. The line "diff name name" that the library begins with says nothing
// that the next two do not.
func unified(name, old, now string) string {
	text := diff.Diff(name, []byte(old), name, []byte(now))
	_, text, _ = bytes.Cut(text, []byte("\n"))
	return string(text)
}
