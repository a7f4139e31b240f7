package experiment

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"

	"hakaru"
	"hakaru/internal/kind"
)

// onlyService is the name of the service of a file that has one.
const onlyService = "service"

func (b *builder) buildServices() {
	names, docs := b.doc.Services.keys, b.doc.Services.values
	prefix := "services."
	switch {
	case b.doc.Service != nil && b.written("services"):
		b.mistake(b.at("services"), "service-and-services", "the file has both service and services", "put all of them under services, each with a name")
	case b.doc.Service != nil:
		names, docs, prefix = []string{onlyService}, []serviceDoc{*b.doc.Service}, ""
	case !b.written("service") && !b.written("services"):
		b.mistake(place{line: 1, column: 1}, "no-service", "the file has no service", "write service: {run: …}")
	case len(docs) == 0 && b.written("services") && !b.wrong["services"]:
		b.mistake(b.at("services"), "no-service", "services is empty", "write services: {NAME: {run: …}}")
	}
	if prefix != "" {
		for i, name := range names {
			if !plainName.MatchString(name) || slices.Contains([]string{hakaru.OfGenerator, hakaru.OfOthers, hakaru.OfHost}, name) {
				b.mistake(b.doc.Services.places[i], "reserved-name", fmt.Sprintf("%q cannot be the name of a service", name), "use letters, digits, - and _, and none of generator, others, host")
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
func (b *builder) order(names []string, docs []serviceDoc) []int {
	var order []int
	done := map[string]bool{}
	for i := range docs {
		for _, a := range docs[i].After {
			if !slices.Contains(names, a.value) {
				b.mistake(a.at, "unknown-service", fmt.Sprintf("after: no service is called %q", a.value), suggest(a.value, names))
				done[a.value] = true
			}
		}
	}
	for range names {
		next := slices.IndexFunc(names, func(name string) bool {
			if done[name] {
				return false
			}
			for _, a := range docs[slices.Index(names, name)].After {
				if !done[a.value] {
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
		var at place
		for i, name := range names {
			if !slices.Contains(order, i) {
				circle = append(circle, name)
				if len(circle) == 1 {
					at = docs[i].After[0].at
				}
				order = append(order, i)
			}
		}
		b.mistake(at, "circular", "after goes round in a circle: "+strings.Join(circle, ", "), "remove one of them")
	}
	return order
}

func (b *builder) service(name, where string, doc *serviceDoc) hakaru.Service {
	s := hakaru.Service{
		Name: name, Run: doc.Run.list, Dir: doc.Dir.value, User: doc.User.value, Settings: doc.Settings.value,
		Ports: doc.Ports.values(), After: doc.After.values(),
		Apply: doc.Apply.value, Restart: doc.Restart.value, Undo: doc.Undo.value, Build: doc.Build.value,
	}
	k := b.kindOf(doc, &s)
	if !b.written(where+".run") && doc.Attach == nil {
		if k != nil && k.Run != "" {
			s.Run = defaultRun(k, s.Settings)
		} else {
			b.mistake(b.at(where), "no-run", where+" does not say what to run", "write run: and the command")
		}
	}
	for _, e := range doc.Env {
		if strings.ContainsAny(e.name, "=\x00") {
			b.mistake(e.nameAt, "bad-name", fmt.Sprintf("%q cannot be the name of an environment variable", e.name), "")
		}
		s.Env = append(s.Env, hakaru.EnvVar{Name: e.name, Value: e.value})
	}
	for i, file := range doc.Files.keys {
		if s.Files == nil {
			s.Files = map[string]string{}
		}
		if path.IsAbs(file) || path.Clean(file) != file || strings.HasPrefix(file, "..") {
			b.mistake(doc.Files.places[i], "bad-path", fmt.Sprintf("%q is to be a path within the private directory", file), "write a relative path without ..")
			continue
		}
		s.Files[file] = doc.Files.values[i].value
	}
	for i, factor := range doc.Only.keys {
		if s.Only == nil {
			s.Only = map[string]string{}
		}
		s.Only[factor] = doc.Only.values[i].value
	}
	if doc.Ready != nil {
		s.Ready = b.ready(doc.Ready, where+".ready")
	}
	if doc.Attach != nil {
		attach := b.ready(doc.Attach, where+".attach")
		s.Attach = &attach
		b.later(b.at(where+".attach"), where+".attach: a service that hakaru does not start is not built yet")
	}
	if doc.Data != nil {
		s.Data = &hakaru.Data{Prepare: doc.Data.Prepare.value, EachTrial: doc.Data.EachTrial.value}
		b.later(b.at(where+".data"), where+".data: data directories are not built yet")
		if t := doc.Data.EachTrial; t.set && t.value != "copy" && t.value != "keep" {
			b.mistake(t.at, "unknown-value", fmt.Sprintf("each_trial is to be copy or keep, not %q", t.value), suggest(t.value, []string{"copy", "keep"}))
		}
	}
	for _, part := range []struct {
		key string
		at  text
	}{{"apply", doc.Apply}, {"restart", doc.Restart}, {"undo", doc.Undo}, {"build", doc.Build}} {
		if part.at.set {
			b.later(b.at(where+"."+part.key), where+"."+part.key+" is not built yet")
		}
	}
	s.Stop = b.stop(doc.Stop)
	b.settingsFile(doc, &s, where)
	return s
}

func defaultRun(k *kind.Kind, settings string) []string {
	list, err := splitWords(k.Run)
	if err != nil {
		return nil
	}
	for i := range list {
		list[i] = hakaru.Names{"settings": settings}.Expand(list[i])
	}
	return list
}

// kindOf finds the service's kind and notes it; nil where it is not known.
func (b *builder) kindOf(doc *serviceDoc, s *hakaru.Service) *kind.Kind {
	s.Kind = doc.Kind.value
	if !doc.Kind.set {
		s.Kind = "command"
		if k := b.kinds.Guess(s.Run); k != nil && k.Built {
			s.Kind = k.Name
		}
	}
	k, known := b.kinds.Find(s.Kind)
	switch {
	case !known:
		b.mistake(doc.Kind.at, "unknown-kind", fmt.Sprintf("unknown kind %q", s.Kind), suggest(s.Kind, b.kinds.Names()))
		return nil
	case !k.Built:
		b.later(doc.Kind.at, fmt.Sprintf("kind %s is not built yet", k.Name))
	}
	return k
}

func (b *builder) ready(doc *readyDoc, where string) hakaru.Ready {
	r := hakaru.Ready{Get: doc.Get.value, Body: doc.Body.value, Connect: doc.Connect.value, Log: doc.Log.value, Timeout: doc.Timeout.value}
	if doc.Status.set {
		r.Status = doc.Status.within(b.decoder, where+".status", 100, 599)
	}
	if (doc.Status.set || doc.Body.set) && !doc.Get.set {
		b.mistake(b.at(where), "no-get", where+" has a status or a body and no get", "write get: and a URL")
	}
	if doc.Get.set && !strings.HasPrefix(doc.Get.value, "http://") && !strings.HasPrefix(doc.Get.value, "{") {
		b.mistake(doc.Get.at, "bad-url", fmt.Sprintf("%s.get: %q is not a URL that begins with http://", where, doc.Get.value), "")
	}
	return r
}

func signals() []string {
	return []string{"TERM", "INT", "QUIT", "HUP", "USR1", "USR2", "WINCH", "KILL"}
}

func (b *builder) stop(doc stopDoc) hakaru.Stop {
	if !doc.Signal.set {
		return hakaru.Stop{Grace: doc.Grace.value}
	}
	name := strings.TrimPrefix(strings.ToUpper(doc.Signal.value), "SIG")
	if !slices.Contains(signals(), name) {
		b.mistake(doc.Signal.at, "unknown-signal", fmt.Sprintf("unknown signal %q", doc.Signal.value), suggest(name, signals()))
	}
	return hakaru.Stop{Signal: name, Grace: doc.Grace.value}
}

// settingsFile reads the person's config file and checks that the command would
// use it.
func (b *builder) settingsFile(doc *serviceDoc, s *hakaru.Service, where string) {
	if !doc.Settings.set {
		return
	}
	full := s.Settings
	if !path.IsAbs(full) {
		full = path.Join(b.opt.Dir, full)
	}
	if s.Settings == "" {
		b.mistake(doc.Settings.at, "settings-file", where+".settings is empty", "write the path of the config file")
		return
	}
	if b.opt.Read == nil {
		b.mistake(doc.Settings.at, "settings-file", "settings: "+s.Settings+" cannot be read here", "")
		return
	}
	content, err := b.opt.Read(full)
	if err != nil {
		b.mistake(doc.Settings.at, "settings-file", fmt.Sprintf("read settings %s: %v", s.Settings, err), "the path starts at the directory of the experiment file")
		return
	}
	if !slices.ContainsFunc(b.exp.Sources, func(f hakaru.File) bool { return f.Path == s.Settings }) {
		b.exp.Sources = append(b.exp.Sources, hakaru.File{Path: s.Settings, Content: string(content)})
	}
	if len(s.Run) > 0 && !slices.ContainsFunc(s.Run, func(w string) bool { return namesFile(w, s.Settings) >= 0 }) {
		b.mistake(doc.Settings.at, "settings-not-used", fmt.Sprintf("run does not mention %s, so the edited copy would not be used", s.Settings),
			"write "+s.Settings+" in run as it is written here")
	}
}

// namesFile reports whether a word is the path of a file, or ends in it after an
// equals sign, and where the path begins; -1 where it is not.
func namesFile(word, file string) int {
	if path.Clean(word) == path.Clean(file) && word != "" {
		return 0
	}
	if i := strings.LastIndexByte(word, '='); i >= 0 && word[i+1:] != "" && path.Clean(word[i+1:]) == path.Clean(file) {
		return i + 1
	}
	return -1
}
