package experiment

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"hakaru"
	"hakaru/internal/hint"
	"hakaru/internal/mistake"
	"hakaru/internal/render"
)

// UnknownRevision says that a repository has no commit by a name.
type UnknownRevision struct {
	Err   error
	Known []string // branches and tags that it has
}

func (e *UnknownRevision) Error() string { return e.Err.Error() }
func (e *UnknownRevision) Unwrap() error { return e.Err }

// buildVersions puts commits in the place of the names of versions. It is done
// once, when the file is read: a branch may move while the run goes on, or until
// it is resumed, and trials before and after would be of different programs. The
// level keeps the name.
func (b *builder) buildVersions() {
	known := map[string]*string{} // by full name of the setting and what was written
	fix := func(list []hakaru.Setting) {
		for i := range list {
			if s := &list[i]; s.Name == render.Versions {
				key := s.FullName() + "\x00" + valueOf(s)
				commit, done := known[key]
				if !done {
					commit = b.commit(*s)
					known[key] = commit
				}
				s.Value = commit
			}
		}
	}
	for i := range b.exp.Factors {
		fix(b.exp.Factors[i].Levels)
	}
	for i := range b.exp.Variants {
		// Variants share what they have from one another.
		b.exp.Variants[i].Settings = slices.Clone(b.exp.Variants[i].Settings)
		fix(b.exp.Variants[i].Settings)
	}
	for i := range b.exp.Services {
		fix(b.exp.Services[i].Base)
	}
}

func valueOf(s *hakaru.Setting) string {
	if s.Value == nil {
		return ""
	}
	return *s.Value
}

// commit finds what a version's name stands for in the repositories of the
// services that are to be of it; nil where there is a mistake in it.
func (b *builder) commit(s hakaru.Setting) *string {
	name := s.FullName()
	at, found := b.book.Valued[name][s.Level]
	if !found {
		at = b.book.Named[name]
	}
	if s.Value == nil || *s.Value == "" {
		b.Mistake(at, "no-revision", name+" names no version", "write a branch, tag or commit, or . for the working tree as it is")
		return nil
	}
	services := b.versioned(s)
	if len(services) == 0 {
		b.Mistake(b.book.Named[name], "not-used", "no service would be of the version that "+name+" names",
			"write build: in the service whose code it is, or say whose version it is, as in NAME.git")
		return nil
	}
	var commit string
	for i, service := range services {
		if service.Attach != nil {
			b.Mistake(b.book.Named[name], "attached", fmt.Sprintf("%s is not started by hakaru, so it cannot be of a version", hakaru.TheService(service.Name)), "write run: in the place of attach:")
			return nil
		}
		one, ok := b.resolve(service, name, *s.Value, at)
		switch {
		case !ok:
			return nil
		case i == 0:
			commit = one
		case one != commit:
			b.Mistake(at, "several-repositories", fmt.Sprintf("%s: %s is another commit for service %s than for service %s", name, *s.Value, service.Name, services[0].Name),
				fmt.Sprintf("say whose version it is: %s.git, %s.git", services[0].Name, service.Name))
			return nil
		}
	}
	return &commit
}

// versioned are the services that a setting chooses the version of.
func (b *builder) versioned(s hakaru.Setting) []*hakaru.Service {
	var out []*hakaru.Service
	for i := range b.exp.Services {
		if service := &b.exp.Services[i]; render.OfVersion(b.exp, service, s) {
			out = append(out, service)
		}
	}
	return out
}

func (b *builder) resolve(service *hakaru.Service, name, revision string, at mistake.Place) (commit string, ok bool) {
	if b.opt.Revision == nil {
		b.Mistake(at, "revision", name+": "+revision+" cannot be looked up here", "")
		return "", false
	}
	dir := b.exp.Dir
	if service.Dir != "" && len(render.Mentioned(service.Dir)) == 0 {
		if dir = service.Dir; !path.IsAbs(dir) {
			dir = path.Join(b.exp.Dir, dir)
		}
	}
	commit, err := b.opt.Revision(dir, revision)
	if err == nil {
		return commit, true
	}
	fix := ""
	if unknown, is := errors.AsType[*UnknownRevision](err); is {
		fix = hint.Name(revision, unknown.Known)
		for _, k := range unknown.Known {
			if strings.HasSuffix(k, "/"+revision) {
				fix = fmt.Sprintf("did you mean %q?", k)
			}
		}
	} else if advice, is := errors.AsType[interface {
		error
		Hint() string
	}](err); is {
		fix = advice.Hint()
	}
	b.Mistake(at, "revision", name+": "+err.Error(), fix)
	return "", false
}

// checkBuilds looks whether what builds are told is known before they run.
func (b *builder) checkBuilds() {
	leased := render.Leased(b.exp)
	for i := range b.exp.Services {
		for _, name := range render.Mentioned(b.exp.Services[i].Build) {
			if leased[name] && name != "hakaru.exe" {
				b.Mistake(b.services[i].Build.At, "build-name", fmt.Sprintf("build: {%s} is known only when the service is started, and is another one in each trial", name), "leave it out of build")
			}
		}
	}
}
