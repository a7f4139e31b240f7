// Package render says what one variant of an experiment under one stratum means:
// the programs to start with their command lines, files and readiness (unit.go),
// the load to send (http.go), the questions that prove settings (asks.go), and
// what a variant changes in the person's own config, as a diff (diff.go).
//
// It takes a checked hakaru.Experiment, fresh from its file or years later from
// the store, and gives texts. It starts nothing and writes nothing. Names that only
// the host knows (ports, sockets, hakaru.dir, hakaru.exe) are left in place.
package render

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"hakaru"
	"hakaru/internal/kind"
)

// Trial renders one variant under one stratum: the stack to bring up, the load to
// send, and what to ask the services for proof.
func Trial(exp *hakaru.Experiment, variant string, at map[string]string) (hakaru.Bundle, hakaru.LoadSpec, []hakaru.Ask, error) {
	fail := func(err error) (hakaru.Bundle, hakaru.LoadSpec, []hakaru.Ask, error) {
		return hakaru.Bundle{}, hakaru.LoadSpec{}, nil, fmt.Errorf("render variant %s: %w", variant, err)
	}
	v, found := exp.Variant(variant)
	if !found {
		return fail(fmt.Errorf("the experiment has no such variant"))
	}
	c, err := New(exp)
	if err != nil {
		return fail(err)
	}
	r, err := c.Rendering(v, at)
	if err != nil {
		return fail(err)
	}
	load, err := r.Load()
	if err != nil {
		return fail(err)
	}
	return r.Bundle, load, r.Asks(), nil
}

// Mistake is a mistake of the person that shows when a trial is rendered.
type Mistake struct {
	Path, Code, Message, Fix string
	Text                     string // that is wrong, as rendered
	Setting                  string // full name of the one that it is about
	NotYet                   bool
}

func (e *Mistake) Error() string { return e.Message }

// MaxRendered bounds how many combinations of variant and stratum are rendered to
// look a whole experiment over.
const MaxRendered = 2000

// Renderer is what all renderings of an experiment share.
type Renderer struct {
	exp    *hakaru.Experiment
	kinds  *kind.Catalogue
	used   map[string][]string
	leased map[string]bool
	known  map[string]bool // full names of settings
}

// New looks an experiment over for all its renderings.
func New(exp *hakaru.Experiment) (*Renderer, error) {
	kinds, err := kind.Load()
	if err != nil {
		return nil, err
	}
	return &Renderer{exp, kinds, Usage(exp), Leased(exp), SettingNames(exp)}, nil
}

// Rendering is one variant under one stratum.
type Rendering struct {
	*Renderer
	Bundle  hakaru.Bundle
	variant hakaru.Variant
	at      map[string]string

	fixed hakaru.Names    // params and levels of the load
	names hakaru.Names    // all that is replaced here
	null  map[string]bool // settings without a value
	units []renderedUnit
}

type renderedUnit struct {
	unit     hakaru.Unit
	kind     *kind.Kind
	settings []hakaru.Setting // that the kind put in, values expanded
	content  string           // of the settings copy
	unseen   string           // a config file that may hold settings and is not known; "" where all is seen
}

// Rendering renders a variant under one stratum: its bundle now, load and asks
// when they are wanted.
func (c *Renderer) Rendering(v hakaru.Variant, at map[string]string) (*Rendering, error) {
	exp, leased := c.exp, c.leased
	r := &Rendering{Renderer: c, variant: v, at: at, fixed: hakaru.Names{}, names: hakaru.Names{}, null: map[string]bool{}}
	for _, f := range exp.Levels {
		i := slices.IndexFunc(f.Levels, func(s hakaru.Setting) bool { return s.Level == at[f.Name] })
		if i < 0 {
			return nil, fmt.Errorf("%s has no level %q", f.Name, at[f.Name])
		}
		r.fixed[f.Name], r.fixed[f.Name+".name"] = valueOr(f.Levels[i].Value, ""), f.Levels[i].Level
	}
	levels := maps.Clone(r.fixed)
	for name, value := range exp.Params {
		r.fixed[name] = levels.Expand(value)
	}
	maps.Copy(r.names, r.fixed)
	for name := range c.known {
		if !leased[name] {
			r.names[name], r.names[name+".name"], r.null[name] = "", "null", true
		}
	}
	put := func(list []hakaru.Setting) {
		for _, s := range list {
			if name := s.FullName(); !leased[name] {
				r.names[name], r.names[name+".name"] = r.fixed.Expand(valueOr(s.Value, "")), s.Level
				r.null[name] = s.Value == nil
			}
		}
	}
	for _, s := range exp.Services {
		put(s.Base)
	}
	put(v.Settings)
	return r, r.stack()
}

// expand replaces names in text; whole is false where one of them is null, so
// that the word, line or variable is to be left out.
func (r *Rendering) expand(text string) (expanded string, whole bool) {
	for _, name := range Mentioned(text) {
		if r.null[name] {
			return "", false
		}
	}
	return r.names.Expand(text), true
}

func (r *Rendering) text(text string) string { return r.names.Expand(text) }

// lines expands a text line by line, without those that mention a null.
func (r *Rendering) lines(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		if line, whole := r.expand(line); whole {
			b.WriteString(line)
		}
	}
	return b.String()
}

// Idle is a setting that does nothing in a variant, since none of those
// it needs is set.
type Idle struct {
	Setting hakaru.Setting
	Needs   []string
	// Off is the one of them that is written and switched off; empty where none is
	// written at all.
	Off string
}

// Why is the reason in words.
func (i Idle) Why() string {
	if i.Off != "" {
		return fmt.Sprintf("%s needs %s, which is switched off", i.Setting.Name, i.Off)
	}
	return fmt.Sprintf("%s does nothing without %s", i.Setting.Name, strings.Join(i.Needs, " or "))
}

// Idle returns the settings of the variant that do nothing.
func (r *Rendering) Idle() []Idle {
	var out []Idle
	for _, u := range r.units {
		for _, s := range u.settings {
			if s.Value == nil || kind.Off(*s.Value) {
				continue
			}
			if needs, off := u.kind.Lacks(u.unit.Argv, u.content, u.unseen, s.Name); len(needs) > 0 {
				out = append(out, Idle{s, needs, off})
			}
		}
	}
	return out
}

// Implied are settings that others switch on without their being written, by full
// name: the one that does it. A variant that has such a one may differ from
// others in more than it says.
func (r *Rendering) Implied() map[string]string {
	out := map[string]string{}
	for _, u := range r.units {
		for _, s := range u.kind.Settings {
			if by := u.kind.ImpliedBy(u.unit.Argv, u.content, s.Name); by != "" {
				name := s.Name
				if len(r.exp.Services) > 1 {
					name = u.unit.Service + "." + name
				}
				out[name] = by
			}
		}
	}
	return out
}

// Background are conditions under which a service would leave the foreground, by
// its name.
func (r *Rendering) Background() map[string]string {
	out := map[string]string{}
	for _, u := range r.units {
		if c := u.kind.Any(u.kind.Background, u.unit.Argv, u.content); c != "" && u.unit.Attached == nil {
			out[u.unit.Service] = c
		}
	}
	return out
}

// Strays are the keys of a service's config file that its program does not know
// and passes over.
func (c *Renderer) Strays(s *hakaru.Service) []kind.Stray {
	k, known := c.kinds.Find(s.Kind)
	if !known || s.Settings == "" {
		return nil
	}
	return k.Strays(c.exp.Source(s.Settings).Content)
}

// Overwritten says of which services a setting for an address leaves another in the
// config file, or takes the place of several: the setting and what it does.
func (r *Rendering) Overwritten() map[string][2]string {
	out := map[string][2]string{}
	for _, u := range r.units {
		s := r.service(u.unit.Service)
		if s.Settings == "" || s.Attach != nil {
			continue
		}
		if setting, what := u.kind.Overwritten(r.lines(r.exp.Source(s.Settings).Content), u.content, u.settings); setting != "" {
			out[u.unit.Service] = [2]string{setting, what}
		}
	}
	return out
}

// Shared says which lines of a person's config file name what their live server
// writes too, by service.
func (r *Rendering) Shared() map[string][][2]string {
	out := map[string][][2]string{}
	for _, u := range r.units {
		if shared := u.kind.Shared(u.content); len(shared) > 0 && u.unit.Attached == nil {
			out[u.unit.Service] = shared
		}
	}
	return out
}

// TakenOver says which socket files the person's config files name that a trial
// would take from whoever listens on them, each with its setting, by service.
func (r *Rendering) TakenOver() map[string][2]string {
	out := map[string][2]string{}
	for _, u := range r.units {
		if setting, file := u.kind.TakenOver(u.content); setting != "" && u.unit.Attached == nil &&
			!slices.ContainsFunc(u.settings, func(s hakaru.Setting) bool { return u.kind.Same(s.Name, setting) }) {
			out[u.unit.Service] = [2]string{setting, file}
		}
	}
	return out
}
