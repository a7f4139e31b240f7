package render

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"time"

	"hakaru"
	"hakaru/internal/kind"
	"hakaru/internal/unit"
)

// Asks are the questions that show whether the settings of a variant are in
// force: those the person wrote, else those the kind knows. A setting of the
// variant for which there is none is asked about all the same, with the reason
// why nothing can be shown; one of base is left out then.
func (r *Rendering) Asks() []hakaru.Ask {
	var out []hakaru.Ask
	for i := range r.units {
		u := &r.units[i]
		s := r.service(u.unit.Service)
		for _, x := range r.settingsOf(s) {
			varied := slices.ContainsFunc(r.variant.Settings, func(v hakaru.Setting) bool { return v.FullName() == x.FullName() })
			asks := r.written(s, x)
			if asks == nil {
				asks = r.fromKind(u, s, x)
			}
			if len(asks) == 0 && varied {
				asks = []hakaru.Ask{{NotProof: fmt.Sprintf("kind %s knows nothing that shows it; prove: {%s: …} can say what does", s.Kind, x.FullName())}}
			}
			for _, a := range asks {
				a.Service, a.Setting = s.Name, x.Name
				if a.Asked == "" {
					a.Asked = x.Level
					if x.Value != nil {
						a.Asked = r.fixed.Expand(*x.Value)
					}
				}
				out = append(out, a)
			}
		}
	}
	out = append(out, r.versions()...)
	for _, x := range r.variant.Settings {
		if asked := slices.ContainsFunc(out, func(a hakaru.Ask) bool { return a.Setting == x.Name && (x.Service == "" || a.Service == x.Service) }); asked || len(r.units) == 0 {
			continue
		}
		if x.Service != "" && !slices.ContainsFunc(r.units, func(u renderedUnit) bool { return u.unit.Service == x.Service }) {
			continue // its service is not in this variant
		}
		a := hakaru.Ask{Service: r.units[0].unit.Service, Setting: x.Name, Asked: valueOr(x.Value, x.Level),
			NotProof: "it chooses what is started, and no single service shows it"}
		if x.Service != "" {
			a.Service = x.Service
		}
		out = append(out, a)
	}
	return out
}

// versions asks whether each service that is to be of a version is of its commit.
func (r *Rendering) versions() []hakaru.Ask {
	var out []hakaru.Ask
	for i := range r.units {
		s := r.service(r.units[i].unit.Service)
		var last *hakaru.Setting
		for _, x := range slices.Concat(s.Base, r.variant.Settings) {
			if OfVersion(r.exp, s, x) {
				last = &x
			}
		}
		if last != nil && last.Value != nil {
			out = append(out, hakaru.Ask{Service: s.Name, Setting: last.Name, Kind: "revision", Asked: last.Level, Equals: *last.Value})
		}
	}
	return out
}

func (r *Rendering) service(name string) *hakaru.Service {
	for i := range r.exp.Services {
		if r.exp.Services[i].Name == name {
			return &r.exp.Services[i]
		}
	}
	return nil
}

// settingsOf are the settings to ask a service about: its own, and those that
// reach it by a placeholder or that a written proof looks for there.
func (r *Rendering) settingsOf(s *hakaru.Service) []hakaru.Setting {
	var list []hakaru.Setting
	for _, x := range slices.Concat(s.Base, r.variant.Settings) {
		name := x.FullName()
		own := x.Service == s.Name || len(r.exp.Services) == 1
		own = own || x.Service == "" && slices.Contains(r.used[name], s.Name) && r.firstUser(name) == s.Name && s.Only[name] == ""
		own = own || slices.ContainsFunc(r.exp.Prove, func(a hakaru.Ask) bool { return a.Service == s.Name && a.Setting == name })
		if own && !ReservedFactor(x.Name) {
			list = Override(list, x)
		}
	}
	return list
}

// firstUser is the first service of the variant that mentions a placeholder.
func (r *Rendering) firstUser(name string) string {
	for _, u := range r.units {
		if slices.Contains(r.used[name], u.unit.Service) {
			return u.unit.Service
		}
	}
	return ""
}

// written are the asks of `prove` for a setting; nil where it is not there.
func (r *Rendering) written(s *hakaru.Service, x hakaru.Setting) []hakaru.Ask {
	var out []hakaru.Ask
	found := false
	for _, a := range r.exp.Prove {
		if a.Setting != x.FullName() {
			continue
		}
		found = true
		if a.Service != s.Name || a.Asked != "" && a.Asked != x.Level {
			continue
		}
		a.Asked = ""
		a.Exact = a.Kind == "sql" || a.Kind == "stats" // the person knows what it says
		a.Argument, a.Contains, a.Equals = r.text(a.Argument), r.text(a.Contains), r.text(a.Equals)
		if a.Kind == "environ" && a.Argument == "" {
			r.variable(s, x, &a)
		}
		if x.Value == nil && a.Contains == "" && a.Equals == "" {
			out = append(out, r.absent(a, x)...)
			continue
		}
		out = append(out, a)
	}
	if found && out == nil {
		out = []hakaru.Ask{}
	}
	return out
}

// variable makes an ask about the environment name the variable that the setting
// is in, and its whole value.
func (r *Rendering) variable(s *hakaru.Service, x hakaru.Setting, a *hakaru.Ask) {
	for _, e := range s.Env {
		if e.Value == nil || !slices.Contains(Mentioned(*e.Value), x.FullName()) {
			continue
		}
		a.Argument = e.Name
		if value, whole := r.expand(*e.Value); whole && a.Contains == "" && a.Equals == "" && *e.Value != "{"+x.FullName()+"}" {
			a.Equals = value
		}
		return
	}
}

// absent asks that nothing of what the other levels bring is there: it looks for
// the same as their own proof does, since a short level, such as 3, is within
// python3 too.
func (r *Rendering) absent(a hakaru.Ask, x hakaru.Setting) []hakaru.Ask {
	value := false // it is always there, as the default where no other is
	switch a.Kind {
	case "processes", "threads", "backlog", "http", "sql", "stats", "command":
		value = true
	case "log":
		pattern, err := regexp.Compile(a.Argument)
		value = a.Count || err == nil && pattern.NumSubexp() > 0
	}
	if value {
		a.NotProof = "the setting is left out, so the program's own default counts, and it is not known"
		return []hakaru.Ask{a}
	}
	var out []hakaru.Ask
	for _, v := range r.exp.Variants {
		for _, other := range v.Settings {
			if other.FullName() != x.FullName() || other.Value == nil || *other.Value == "" {
				continue
			}
			one := a
			one.Absent, one.Equals = true, r.fixed.Expand(*other.Value)
			if !slices.Contains(out, one) {
				out = append(out, one)
			}
		}
	}
	return out
}

// fromKind are the asks that the kind knows for a setting.
func (r *Rendering) fromKind(u *renderedUnit, s *hakaru.Service, x hakaru.Setting) []hakaru.Ask {
	if why := r.variant.Idle[x.FullName()]; why != "" && x.Value != nil {
		return []hakaru.Ask{{NotProof: "it does nothing here: " + why}}
	}
	if _, known := u.kind.Setting(x.Name); !known && len(r.used[x.FullName()]) > 0 {
		return nil // a name of the person's own
	}
	if x.Value == nil {
		if len(u.kind.Describe(x.Name).Proofs) == 0 {
			return nil
		}
		return []hakaru.Ask{{NotProof: "the setting is left out, so the program's own default counts"}}
	}
	value := r.fixed.Expand(*x.Value)
	if why := r.tooSoon(r.actsAfter(u.kind, x, value)); why != "" {
		return []hakaru.Ask{{NotProof: why}}
	}
	asks, why := u.kind.Asks(u.unit.Argv, u.content, u.unseen, r.address(u.kind, &u.unit, u.content), x.Name, value)
	if len(asks) == 0 && why != "" {
		return []hakaru.Ask{{NotProof: why}}
	}
	if u.unit.Attached == nil {
		return asks
	}
	// It is the copy that would be looked at, and not what apply made of it.
	rest := slices.DeleteFunc(slices.Clone(asks), func(a hakaru.Ask) bool { return a.Kind == "file" })
	if len(rest) == 0 && len(asks) > 0 {
		rest = []hakaru.Ask{{NotProof: fmt.Sprintf("only hakaru's copy is known, not whether the service reads what apply made of it; prove: {%s: {file: PATH}} asks the file that it reads", x.FullName())}}
	}
	return rest
}

// tooSoon says why a setting that acts after a time cannot be seen in a trial; ""
// where it can.
func (r *Rendering) tooSoon(acts time.Duration) string {
	load, err := r.Load()
	if err != nil {
		return ""
	}
	total := load.WarmUp + load.Window
	counted := load.Program != nil && load.Program.Counted
	switch {
	case total > 0 && acts > total:
		return fmt.Sprintf("it acts after %s, and a trial ends after %s", unit.ExactDuration(acts), unit.ExactDuration(total))
	case counted && acts > load.WarmUp:
		return fmt.Sprintf("it acts after %s, and how long a trial takes that ends with a number of requests is not known", unit.ExactDuration(acts))
	}
	return ""
}

// actsAfter is how long a setting needs until it can show: as the person says,
// else as the kind does; 0 where it acts at once.
func (r *Rendering) actsAfter(k *kind.Kind, x hakaru.Setting, value string) time.Duration {
	said := r.exp.ActsAfter[x.FullName()]
	after, known := k.Describe(x.Name).Acts(value)
	if !known {
		return said
	}
	// Where nobody said otherwise the experiment has the shortest of all levels.
	shortest := after
	for _, v := range r.exp.Variants {
		for _, s := range v.Settings {
			if s.FullName() == x.FullName() && s.Value != nil {
				if a, ok := k.Describe(x.Name).Acts(r.fixed.Expand(*s.Value)); ok {
					shortest = min(shortest, a)
				}
			}
		}
	}
	if said == 0 || said == shortest {
		return after
	}
	return said
}

// Length is warm-up and measured window together; 0 where the load cannot be
// rendered.
func (r *Rendering) Length() time.Duration {
	load, err := r.Load()
	if err != nil {
		return 0
	}
	return load.WarmUp + load.Window
}

// Late are the settings that need longer to act than the trial is, by full name,
// with the time they need. One that does nothing at all is none of them.
func (r *Rendering) Late() map[string]time.Duration {
	out := r.ActsAfter()
	total := r.Length()
	maps.DeleteFunc(out, func(_ string, acts time.Duration) bool { return acts <= total || total <= 0 })
	return out
}
