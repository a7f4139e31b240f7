package render

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"

	"hakaru"
	"hakaru/internal/endpoint"
	"hakaru/internal/grammar"
	"hakaru/internal/kind"
	"hakaru/internal/unit"
)

// present reports whether the variant has the service.
func (r *Rendering) present(s *hakaru.Service) bool {
	for factor, level := range s.Only {
		i := slices.IndexFunc(r.variant.Settings, func(v hakaru.Setting) bool { return v.FullName() == factor })
		if i < 0 || r.variant.Settings[i].Level != level {
			return false
		}
	}
	return true
}

// owns reports whether a setting belongs to a service and is put in by its kind,
// not by a placeholder.
func (r *Rendering) owns(s *hakaru.Service, x hakaru.Setting) bool {
	mine := x.Service == s.Name || x.Service == "" && len(r.exp.Services) == 1 && s.Name == hakaru.OnlyService
	return mine && len(r.used[x.FullName()]) == 0 && !ReservedFactor(x.Name)
}

// effective are the settings that the kind is to put in: base, then the
// variant's, the later in the place of the earlier.
func (r *Rendering) effective(s *hakaru.Service) []hakaru.Setting {
	var list []hakaru.Setting
	for _, x := range slices.Concat(s.Base, r.variant.Settings) {
		if !r.owns(s, x) {
			continue
		}
		if x.Value != nil {
			value := r.fixed.Expand(*x.Value)
			x.Value = &value
		}
		list = Override(list, x)
	}
	return list
}

// stack renders the services that are to be brought up.
func (r *Rendering) stack() error {
	out := &r.Bundle
	*out = hakaru.Bundle{Trial: hakaru.Trial{Variant: r.variant.Name, At: r.at}}
	taken := map[string]bool{}
	for i := range r.exp.Services {
		s := &r.exp.Services[i]
		if !r.present(s) {
			continue
		}
		u, err := r.unit(s, taken)
		if err != nil {
			return err
		}
		r.units = append(r.units, u)
		out.Units = append(out.Units, u.unit)
		for _, p := range s.Ports {
			out.Leases = append(out.Leases, hakaru.Lease{Name: p, Service: s.Name})
		}
	}
	for _, name := range slices.Sorted(maps.Keys(r.exp.Sockets)) {
		family := r.text(r.exp.Sockets[name])
		if family != "tcp" && family != "unix" {
			return &Mistake{Path: "sockets." + name, Code: "unknown-value",
				Message: fmt.Sprintf("socket %s is to be tcp or unix, and is %q in variant %s", name, family, r.variant.Name)}
		}
		out.Leases = append(out.Leases, hakaru.Lease{Name: name, Unix: family == "unix"})
	}
	return nil
}

func (r *Rendering) unit(s *hakaru.Service, taken map[string]bool) (renderedUnit, error) {
	where := where(r.exp, s)
	k, _ := r.kinds.Find(s.Kind)
	if k == nil {
		return renderedUnit{}, fmt.Errorf("unknown kind %q of %s", s.Kind, s.Name)
	}
	out := renderedUnit{kind: k, settings: r.effective(s)}
	u := hakaru.Unit{Service: s.Name, Kind: s.Kind, Dir: r.exp.Dir, User: r.text(s.User), CPUs: r.exp.ServiceHost.CPUs}
	if s.Dir != "" {
		if u.Dir = r.text(s.Dir); !path.IsAbs(u.Dir) {
			u.Dir = path.Join(r.exp.Dir, u.Dir)
		}
	}
	if err := r.outside(s, where, &u); err != nil {
		return out, err
	}
	for i, word := range s.Run {
		word, whole := r.expand(word)
		switch {
		case i == 0 && (!whole || word == ""):
			return out, &Mistake{Path: where + ".run", Code: "command-line", Message: fmt.Sprintf("run names no program in variant %s", r.variant.Name)}
		case i == 0 && word == "hakaru":
			word = "{hakaru.exe}"
		}
		if whole {
			u.Argv = append(u.Argv, word)
		}
	}
	for _, e := range s.Env {
		v := hakaru.EnvVar{Name: e.Name}
		if e.Value != nil {
			if value, whole := r.expand(*e.Value); whole {
				v.Value = &value
			}
		}
		u.Env = append(u.Env, v)
	}
	if err := r.putIn(s, k, &u, &out, taken); err != nil {
		return out, err
	}
	for _, name := range slices.Sorted(maps.Keys(s.Files)) {
		taken[name] = true
		u.Files = append(u.Files, hakaru.File{Path: name, Content: r.lines(s.Files[name])})
		redirect(u.Argv, name, name)
	}
	u.Ready = r.ready(s, k, &u, out.content)
	u.Signs = k.UnitSigns()
	if u.SQL == "" {
		u.SQL = k.DataSource(u.Argv, out.content)
		if s.Attach != nil {
			u.SQL = k.DataSourceAt(answersAt(u.Ready))
		}
	}
	u.Stop = s.Stop
	if u.Stop.Signal == "" {
		u.Stop.Signal = k.Stop.Signal
	}
	if u.Stop.Grace == 0 && k.Stop.Grace != "" {
		grace, err := unit.ParseDuration(k.Stop.Grace)
		if err != nil {
			return out, fmt.Errorf("kind %s: %w", k.Name, err)
		}
		u.Stop.Grace = grace
	}
	out.unit = u
	return out, nil
}

// outside renders the commands that are run for a service beside its program:
// those that build it, and those that bring settings to one that something else
// starts.
func (r *Rendering) outside(s *hakaru.Service, where string, u *hakaru.Unit) error {
	u.SQL = r.text(s.SQL)
	var wrong error
	words := func(key, text string) []string {
		list, err := grammar.Split(text)
		if err != nil && wrong == nil {
			wrong = &Mistake{Path: where + "." + key, Code: "command-line", Message: fmt.Sprintf("%s.%s: %v", where, key, err)}
		}
		var out []string
		for _, word := range list {
			if word, whole := r.expand(word); whole {
				out = append(out, word)
			}
		}
		return out
	}
	u.Build = words("build", s.Build)
	u.Revision = r.revision(s)
	if s.Attach != nil {
		u.Attached = &hakaru.Attached{Apply: words("apply", s.Apply), Restart: words("restart", s.Restart), Undo: words("undo", s.Undo)}
	}
	return wrong
}

// revision is the commit that a service is to be of; empty: the working tree as
// it is, where the experiment has no versions.
func (r *Rendering) revision(s *hakaru.Service) string {
	commit := ""
	for _, x := range slices.Concat(s.Base, r.variant.Settings) {
		if OfVersion(r.exp, s, x) {
			commit = valueOr(x.Value, "")
		}
	}
	return commit
}

// OfVersion reports whether a setting chooses the version of a service: of the
// one that it is written with, or of the only one; in a stack, of each that is
// built.
func OfVersion(exp *hakaru.Experiment, s *hakaru.Service, x hakaru.Setting) bool {
	if x.Name != Versions {
		return false
	}
	return x.Service == s.Name || x.Service == "" && (len(exp.Services) == 1 || s.Build != "")
}

// putIn writes the settings copy and lets the kind put its settings in: into the
// copy where there is one, else on the command line. What the command line has
// already is changed there as well, since it may count more.
func (r *Rendering) putIn(s *hakaru.Service, k *kind.Kind, u *hakaru.Unit, out *renderedUnit, taken map[string]bool) error {
	own := out.settings
	if out.unseen = k.Unseen(u.Argv, ""); out.unseen == "" && len(s.Unread) > 0 {
		out.unseen = s.Unread[0]
	}
	if s.Attach != nil && len(own) > 0 && (s.Settings == "" || !k.CanEditFile()) {
		return &Mistake{Path: where(r.exp, s) + ".attach", Code: "not-used",
			Message: fmt.Sprintf("nothing brings the setting %s to %s, which hakaru does not start", own[0].Name, hakaru.TheService(s.Name)),
			Fix:     "write {" + own[0].Name + "} in its settings file or in apply"}
	}
	if s.Settings != "" {
		out.content = r.lines(r.exp.Source(s.Settings).Content)
		out.unseen = k.Unseen(u.Argv, out.content)
		if s.Attach == nil { // else apply brings the copy to where it is read
			original := s.Settings
			if !path.IsAbs(original) {
				original = path.Join(r.exp.Dir, original)
			}
			out.content = k.Relocate(out.content, original)
			if k.Edit.Beside {
				u.Beside = path.Dir(original)
			}
			for _, x := range k.OwnFiles(out.content) {
				if !slices.ContainsFunc(own, func(o hakaru.Setting) bool { return k.Same(o.Name, x.Name) }) && !k.OnLine(u.Argv, x.Name) {
					own = append([]hakaru.Setting{x}, own...)
				}
			}
		}
	}
	for _, x := range own {
		if s.Kind == "command" {
			break
		}
		if err := r.putOne(s, k, u, out, x); err != nil {
			return err
		}
	}
	if s.Settings != "" {
		name := path.Base(s.Settings)
		if taken[name] {
			name = s.Name + "-" + name
		}
		taken[name] = true
		file := hakaru.File{Path: name, Content: out.content}
		if u.Attached != nil {
			// Something else reads it, maybe as another user: whoever may read the
			// person's file may read what apply makes of the copy.
			u.Attached.File, file.Mode = name, r.exp.Source(s.Settings).Mode
		}
		u.Files = append(u.Files, file)
		redirect(u.Argv, s.Settings, name)
	}
	return nil
}

func (r *Rendering) putOne(s *hakaru.Service, k *kind.Kind, u *hakaru.Unit, out *renderedUnit, x hakaru.Setting) error {
	list := []hakaru.Setting{x}
	var failed error
	if s.Settings != "" && k.CanEditFile() {
		edited, err := k.EditCopy(out.content, list)
		switch {
		case err == nil:
			out.content = edited
			if !k.OnLine(u.Argv, x.Name) {
				return nil
			}
		case s.Attach != nil || !k.CanEditWords():
			return &Mistake{Path: where(r.exp, s) + ".settings", Setting: x.FullName(), Code: "settings-file", Message: fmt.Sprintf("put %s into %s: %v", x.Name, s.Settings, err)}
		default: // a file that cannot be edited there: the command line counts more
			failed = err
		}
	}
	if !k.CanEditWords() {
		m := &Mistake{NotYet: !k.Built, Path: where(r.exp, s) + ".kind", Setting: x.FullName(), Code: "not-used",
			Message: fmt.Sprintf("kind %s cannot put the setting %s in", k.Name, x.Name)}
		if k.CanEditFile() {
			m.Code, m.Message = "no-settings", fmt.Sprintf("kind %s takes %s from its config file, and the service has none", k.Name, x.Name)
			m.Fix = "write settings: and the path of the file"
		} else {
			m.Fix = "write {" + x.Name + "} in run, env or the settings file"
		}
		return m
	}
	argv, err := k.EditWords(u.Argv, list)
	if err != nil {
		m := &Mistake{Path: where(r.exp, s) + ".run", Setting: x.FullName(), Code: "command-line", Message: err.Error()}
		switch {
		case failed != nil:
			m.Message = failed.Error()
		case k.CanEditFile() && s.Settings == "":
			m.Fix = "write settings: and the path of the file"
		default:
			m.Fix = "write {" + x.Name + "} where its config file has it, and name the file with settings:"
		}
		return m
	}
	edited := s.Settings != "" && k.CanEditFile() && failed == nil
	if by := k.OffBy(out.content, s.Settings, out.unseen, x); by != "" && !edited {
		fix := "name it with settings:, and it is edited"
		if !k.CanEditFile() {
			fix = "write {" + x.Name + "} in it, and name it with settings:"
		}
		return &Mistake{Path: where(r.exp, s) + ".run", Setting: x.FullName(), Code: "command-line",
			Message: fmt.Sprintf("no flag switches %s off, and %s may switch it on", x.Name, by), Fix: fix}
	}
	u.Argv = argv
	return nil
}

// where is the path of a service in the experiment file.
func where(exp *hakaru.Experiment, s *hakaru.Service) string {
	if s.Name == hakaru.OnlyService && len(exp.Services) == 1 {
		return "service"
	}
	return "services." + s.Name
}

// redirect makes the words that name a file name its copy.
func redirect(argv []string, file, name string) {
	for i, word := range argv {
		if at := NamesFile(word, file); at >= 0 && i > 0 {
			argv[i] = word[:at] + "{hakaru.dir}/" + name
		}
	}
}

func (r *Rendering) ready(s *hakaru.Service, k *kind.Kind, u *hakaru.Unit, content string) hakaru.Ready {
	if s.Attach != nil {
		return hakaru.Ready{Get: r.text(s.Attach.Get), Status: s.Attach.Status, Body: r.text(s.Attach.Body),
			Connect: r.text(s.Attach.Connect), Timeout: s.Attach.Timeout}
	}
	ready := hakaru.Ready{Get: r.text(s.Ready.Get), Status: s.Ready.Status, Body: r.text(s.Ready.Body),
		Connect: r.text(s.Ready.Connect), Log: r.text(s.Ready.Log), Timeout: s.Ready.Timeout}
	if ready.Get != "" || ready.Connect != "" || ready.Log != "" {
		return ready
	}
	address := r.address(k, u, content)
	ready.Log = k.Ready.Log
	switch {
	case k.Ready.Load && r.asked(address, &ready):
	case address == "": // it is not known where it listens
	case k.Ready.Get != "" && !r.unixAddress(address):
		ready.Get, ready.Status = hakaru.Names{"addr": address}.Expand(k.Ready.Get), k.Ready.Status
	case k.Ready.Get != "" || k.Ready.Connect != "":
		ready.Connect = address
	}
	return ready
}

// asked makes readiness ask what the load will, where that goes to the address: a
// server may accept connections long before its app can answer.
func (r *Rendering) asked(address string, ready *hakaru.Ready) bool {
	l := r.exp.Load.HTTP
	if l == nil {
		l = simpleRequest(r.exp.Load.Program)
	}
	if l == nil || l.Method != "" && !strings.EqualFold(l.Method, "GET") || len(l.Headers) > 0 || address == "" && len(r.exp.Services) > 1 {
		return false
	}
	url := r.text(l.URL)
	// Where it is not known where the only service listens, the load goes to it.
	if rest, found := strings.CutPrefix(url, "http://"); address != "" && (!found || rest != address && !strings.HasPrefix(rest, address+"/") && !strings.HasPrefix(rest, address+"?")) {
		return false
	}
	ready.Get, ready.Body = url, r.text(l.Expect)
	if status, err := strconv.Atoi(r.text(l.Status)); err == nil {
		ready.Status = status
	}
	return true
}

// simpleRequest is what a load program asks for; nil where it has no URL, or adds to
// the request what only its command line says.
func simpleRequest(p *hakaru.ProgramLoad) *hakaru.HTTPLoad {
	if p == nil || p.Options["url"] == "" || p.Options["body"] != "" || p.Options["args"] != "" {
		return nil
	}
	for name := range p.Options {
		if strings.HasPrefix(name, "headers.") {
			return nil
		}
	}
	return &hakaru.HTTPLoad{URL: p.Options["url"], Method: p.Options["method"]}
}

// address is where the service listens. A socket's URL stands for its address, and
// a relative path starts at the service's directory.
func (r *Rendering) address(k *kind.Kind, u *hakaru.Unit, content string) string {
	if u.Attached != nil {
		return answersAt(u.Ready)
	}
	address := k.Address(u.Argv, content)
	if file, unix := strings.CutPrefix(address, "unix:"); unix && file != "" && !strings.ContainsAny(file[:1], "/@{") {
		return "unix:" + path.Join(u.Dir, file)
	}
	if plain, found := strings.CutSuffix(address, ".url}"); found && !r.unixAddress(address) {
		return plain + "}"
	}
	return strings.TrimPrefix(address, "tcp://")
}

// answersAt is the address of an attached service, which is where it answers: what
// it was started with is not known, and its kind's default may be another server.
func answersAt(ready hakaru.Ready) string {
	if ready.Connect != "" {
		return strings.TrimPrefix(ready.Connect, "tcp://")
	}
	at, err := endpoint.Plain(ready.Get)
	switch {
	case err != nil: // said when it is asked
		return ""
	case at.Network == "unix":
		return "unix:" + at.Address
	}
	return at.Address
}

// unixAddress tells a unix socket from host:port; a leased socket is one when its
// family says so.
func (r *Rendering) unixAddress(address string) bool {
	if strings.HasPrefix(address, "unix:") || strings.HasPrefix(address, "/") {
		return true
	}
	for _, name := range Mentioned(address) {
		name = strings.TrimSuffix(name, ".url")
		if family, ok := r.exp.Sockets[name]; ok && r.text(family) == "unix" {
			return true
		}
	}
	return false
}
