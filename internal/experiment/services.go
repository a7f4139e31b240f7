package experiment

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"

	"hakaru"
	"hakaru/internal/grammar"
	"hakaru/internal/hint"
	"hakaru/internal/kind"
	"hakaru/internal/mistake"
	"hakaru/internal/render"
)

func (b *builder) buildServices() {
	names, docs := b.doc.Services.Keys, b.doc.Services.Values
	prefix := "services."
	switch {
	case b.doc.Service != nil && b.written("services"):
		b.Mistake(b.at("services"), "service-and-services", "the file has both service and services", "put all of them under services, each with a name")
	case b.doc.Service != nil:
		names, docs, prefix = []string{hakaru.OnlyService}, []grammar.Service{*b.doc.Service}, ""
	case !b.written("service") && !b.written("services"):
		b.Mistake(mistake.Place{Line: 1, Column: 1}, "no-service", "the file has no service", "write service: {run: …}")
	case len(docs) == 0 && b.written("services") && !b.Wrong["services"]:
		b.Mistake(b.at("services"), "no-service", "services is empty", "write services: {NAME: {run: …}}")
	}
	if prefix != "" {
		for i, name := range names {
			if !plainName.MatchString(name) || slices.Contains([]string{hakaru.OfGenerator, hakaru.OfOthers, hakaru.OfHost}, name) {
				b.Mistake(b.doc.Services.Places[i], "reserved-name", fmt.Sprintf("%q cannot be the name of a service", name), "use letters, digits, - and _, and none of generator, others, host")
			}
		}
	}
	var built []hakaru.Service
	for i, name := range names {
		built = append(built, b.service(name, prefix+name, &docs[i]))
	}
	order := b.order(names, docs)
	for _, i := range order {
		b.exp.Services = append(b.exp.Services, built[i])
		b.services = append(b.services, docs[i])
	}
}

var plainName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_-]*$`)

// order sorts services so that each comes after those it names in `after`, and
// otherwise as they are written (Kahn 1962, taking the first that is free).
func (b *builder) order(names []string, docs []grammar.Service) []int {
	var order []int
	done := map[string]bool{}
	for i := range docs {
		for _, a := range docs[i].After {
			if !slices.Contains(names, a.Value) {
				b.Mistake(a.At, "unknown-service", fmt.Sprintf("after: no service is called %q", a.Value), hint.Name(a.Value, names))
				done[a.Value] = true
			}
		}
	}
	for range names {
		next := slices.IndexFunc(names, func(name string) bool {
			if done[name] {
				return false
			}
			for _, a := range docs[slices.Index(names, name)].After {
				if !done[a.Value] {
					return false
				}
			}
			return true
		})
		if next < 0 {
			break
		}
		done[names[next]] = true
		order = append(order, next)
	}
	if len(order) < len(names) {
		var circle []string
		var at mistake.Place
		for i, name := range names {
			if !slices.Contains(order, i) {
				circle = append(circle, name)
				if len(circle) == 1 {
					at = docs[i].After[0].At
				}
				order = append(order, i)
			}
		}
		b.Mistake(at, "circular", "after goes round in a circle: "+strings.Join(circle, ", "), "remove one of them")
	}
	return order
}

func (b *builder) service(name, where string, doc *grammar.Service) hakaru.Service {
	s := hakaru.Service{
		Name: name, Run: doc.Run.List, Dir: doc.Dir.Value, User: doc.User.Value, Settings: doc.Settings.Value,
		Ports: doc.Ports.Values(), After: doc.After.Values(),
		Apply: doc.Apply.Value, Restart: doc.Restart.Value, Undo: doc.Undo.Value, Build: doc.Build.Value, SQL: doc.SQL.Value,
	}
	k := b.kindOf(doc, &s)
	b.settingsFile(doc, &s, where)
	if !b.written(where+".run") && doc.Attach == nil {
		fix := "write run: and the command"
		switch {
		case k == nil || k.Run == "":
		case s.Settings == "" && strings.Contains(k.Run, "{settings}"):
			fix += ", or settings: and the path of its config file"
		default:
			s.Run = defaultRun(k, s.Settings, b.exp.Source(s.Settings).Content)
			fix = ""
		}
		if fix != "" {
			b.Mistake(b.at(where), "no-run", where+" does not say what to run", fix)
		}
	}
	b.readsItself(k, &s)
	for _, e := range doc.Env {
		if strings.ContainsAny(e.Name, "=\x00") {
			b.Mistake(e.NameAt, "bad-name", fmt.Sprintf("%q cannot be the name of an environment variable", e.Name), "")
		}
		s.Env = append(s.Env, hakaru.EnvVar{Name: e.Name, Value: e.Value})
	}
	for i, file := range doc.Files.Keys {
		if s.Files == nil {
			s.Files = map[string]string{}
		}
		if path.IsAbs(file) || path.Clean(file) != file || strings.HasPrefix(file, "..") {
			b.Mistake(doc.Files.Places[i], "bad-path", fmt.Sprintf("%q is to be a path within the private directory", file), "write a relative path without ..")
			continue
		}
		s.Files[file] = doc.Files.Values[i].Value
	}
	for i, factor := range doc.Only.Keys {
		if s.Only == nil {
			s.Only = map[string]string{}
		}
		s.Only[factor] = doc.Only.Values[i].Value
	}
	if doc.Ready != nil {
		s.Ready = b.ready(doc.Ready, where+".ready")
	}
	b.attached(doc, &s, where)
	if doc.Data != nil {
		s.Data = &hakaru.Data{Prepare: doc.Data.Prepare.Value, EachTrial: doc.Data.EachTrial.Value}
		b.Later(b.at(where+".data"), where+".data: data directories are not built yet")
		if t := doc.Data.EachTrial; t.Set && t.Value != "copy" && t.Value != "keep" {
			b.Mistake(t.At, "unknown-value", fmt.Sprintf("each_trial is to be copy or keep, not %q", t.Value), hint.Name(t.Value, []string{"copy", "keep"}))
		}
	}
	s.Stop = b.stop(doc.Stop)
	return s
}

// readsItself notes the config files that the program reads without being told to.
func (b *builder) readsItself(k *kind.Kind, s *hakaru.Service) {
	if k == nil || b.opt.Read == nil || s.Dir != "" && strings.Contains(s.Dir, "{") || len(s.Run) == 0 {
		return
	}
	dir := s.Dir
	if !path.IsAbs(dir) {
		dir = path.Join(b.opt.Dir, dir)
	}
	for _, name := range k.ReadsItself(s.Run) {
		if _, err := b.opt.Read(path.Join(dir, name)); err == nil { // else it is not there
			s.Unread = append(s.Unread, name)
		}
	}
}

// defaultRun is the kind's command for a config file.
func defaultRun(k *kind.Kind, settings, content string) []string {
	list, err := grammar.Split(k.RunFor(content))
	if err != nil {
		return nil
	}
	for i := range list {
		list[i] = hakaru.Names{"settings": settings}.Expand(list[i])
	}
	return list
}

// kindOf finds the service's kind and notes it; nil where it is not known.
func (b *builder) kindOf(doc *grammar.Service, s *hakaru.Service) *kind.Kind {
	s.Kind = doc.Kind.Value
	if !doc.Kind.Set {
		s.Kind = "command"
		if k := b.kinds.Guess(s.Run); k != nil && k.Built {
			s.Kind = k.Name
		}
	}
	k, known := b.kinds.Find(s.Kind)
	switch {
	case !known:
		b.Mistake(doc.Kind.At, "unknown-kind", fmt.Sprintf("unknown kind %q", s.Kind), hint.Name(s.Kind, b.kinds.Names()))
		return nil
	case !k.Built:
		b.Later(doc.Kind.At, fmt.Sprintf("kind %s is not built yet", k.Name))
	}
	return k
}

func (b *builder) ready(doc *grammar.Ready, where string) hakaru.Ready {
	r := hakaru.Ready{Get: doc.Get.Value, Body: doc.Body.Value, Connect: doc.Connect.Value, Log: doc.Log.Value, Timeout: doc.Timeout.Value}
	if doc.Status.Set {
		r.Status = doc.Status.Within(b.Decoder, where+".status", 100, 599)
	}
	if (doc.Status.Set || doc.Body.Set) && !doc.Get.Set {
		b.Mistake(b.at(where), "no-get", where+" has a status or a body and no get", "write get: and a URL")
	}
	if doc.Get.Set && !strings.HasPrefix(doc.Get.Value, "http://") && !strings.HasPrefix(doc.Get.Value, "{") {
		b.Mistake(doc.Get.At, "bad-url", fmt.Sprintf("%s.get: %q is not a URL that begins with http://", where, doc.Get.Value), "")
	}
	return r
}

func signals() []string {
	return []string{"TERM", "INT", "QUIT", "HUP", "USR1", "USR2", "WINCH", "KILL"}
}

func (b *builder) stop(doc grammar.Stop) hakaru.Stop {
	if !doc.Signal.Set {
		return hakaru.Stop{Grace: doc.Grace.Value}
	}
	name := strings.TrimPrefix(strings.ToUpper(doc.Signal.Value), "SIG")
	if !slices.Contains(signals(), name) {
		b.Mistake(doc.Signal.At, "unknown-signal", fmt.Sprintf("unknown signal %q", doc.Signal.Value), hint.Name(name, signals()))
	}
	return hakaru.Stop{Signal: name, Grace: doc.Grace.Value}
}

// settingsFile reads the person's config file and checks that the command would
// use it.
func (b *builder) settingsFile(doc *grammar.Service, s *hakaru.Service, where string) {
	if !doc.Settings.Set {
		return
	}
	full := s.Settings
	if !path.IsAbs(full) {
		full = path.Join(b.opt.Dir, full)
	}
	if s.Settings == "" {
		b.Mistake(doc.Settings.At, "settings-file", where+".settings is empty", "write the path of the config file")
		return
	}
	if b.opt.Read == nil {
		b.Mistake(doc.Settings.At, "settings-file", "settings: "+s.Settings+" cannot be read here", "")
		return
	}
	from := "the path starts at the directory of the experiment file"
	if doc.Settings.At.Flag != "" {
		from = "the path starts at the working directory"
	}
	content, err := b.opt.Read(full)
	if err != nil {
		b.Mistake(doc.Settings.At, "settings-file", fmt.Sprintf("read settings %s: %v", s.Settings, err), from)
		return
	}
	if !slices.ContainsFunc(b.exp.Sources, func(f hakaru.File) bool { return f.Path == s.Settings }) {
		b.exp.Sources = append(b.exp.Sources, hakaru.File{Path: s.Settings, Content: string(content), Mode: b.mode(full)})
	}
	if len(s.Run) > 0 && !slices.ContainsFunc(s.Run, func(w string) bool { return render.NamesFile(w, s.Settings) >= 0 }) {
		b.Mistake(doc.Settings.At, "settings-not-used", fmt.Sprintf("run does not mention %s, so the edited copy would not be used", s.Settings),
			"write "+s.Settings+" in run as it is written here")
	}
}
