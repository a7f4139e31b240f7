package experiment

import (
	"fmt"
	"slices"
	"strings"

	"hakaru"
	"hakaru/internal/grammar"
	"hakaru/internal/render"
)

// attached takes over how settings reach a service that something else starts,
// and checks that what is written fits together.
func (b *builder) attached(doc *grammar.Service, s *hakaru.Service, where string) {
	commands := []struct {
		key  string
		text grammar.Text
	}{{"apply", doc.Apply}, {"restart", doc.Restart}, {"undo", doc.Undo}}
	if doc.Attach == nil {
		for _, c := range commands {
			if c.text.Set {
				b.Mistake(c.text.At, "no-attach", fmt.Sprintf("%s.%s is for a service that something else starts", where, c.key),
					"say with attach: {get: URL} how it answers, in the place of run")
			}
		}
		return
	}
	attach := b.ready(doc.Attach, where+".attach")
	s.Attach = &attach
	if attach.Get == "" && attach.Connect == "" {
		b.Mistake(b.at(where+".attach"), "no-answer", where+".attach does not say how it answers", "write attach: {get: URL}, or {connect: HOST:PORT}")
	}
	if doc.Attach.Log.Set {
		b.Mistake(doc.Attach.Log.At, "no-output", where+".attach.log: hakaru does not see the output of what it does not start", "write get or connect")
	}
	for _, part := range []struct{ key, why, fix string }{
		{"run", "a service is either started by hakaru (run) or by something else (attach)", "leave one of them out"},
		{"ready", "the right answer of an attached service stands under attach", "write it there"},
		{"stop", "hakaru does not stop what it does not start", "leave it out"},
		{"user", "an attached service runs as whoever started it, and its commands as you", "leave it out"},
		{"ports", "hakaru cannot choose a port for what it does not start", "write the address that it listens on"},
		{"build", "hakaru does not run the program of an attached service", "build it under apply"},
		{"data", "hakaru does not run the program of an attached service", "fill it under apply"},
	} {
		if b.written(where + "." + part.key) {
			b.Mistake(b.at(where+"."+part.key), "not-attached", fmt.Sprintf("%s.%s: %s", where, part.key, part.why), part.fix)
		}
	}
	for _, c := range commands {
		words, err := grammar.Split(c.text.Value)
		switch {
		case !c.text.Set:
		case err != nil:
			b.Mistake(c.text.At, "command-line", fmt.Sprintf("%s.%s: %v", where, c.key, err), "")
		case len(words) == 0:
			b.Mistake(c.text.At, "command-line", fmt.Sprintf("%s.%s is empty", where, c.key), "write a command, or leave it out")
		case !doc.Settings.Set && slices.Contains(render.Mentioned(c.text.Value), "file"):
			b.Mistake(c.text.At, "no-file", fmt.Sprintf("%s.%s: {file} is the edited copy of settings, and there is no settings file", where, c.key),
				"name the file with settings:, or write the name of one of files: as {hakaru.dir}/NAME")
		}
	}
	switch {
	case doc.Apply.Set && !doc.Undo.Set:
		b.Mistake(doc.Apply.At, "no-undo", where+".apply without undo: what it changes could not be put back",
			"write under undo the command that puts it back; it runs whatever happens, also when apply did not run (rm -f)")
	case doc.Settings.Set && !strings.Contains(doc.Apply.Value+" "+doc.Restart.Value, "{file}") && !strings.Contains(doc.Apply.Value+" "+doc.Restart.Value, "{hakaru.dir}"):
		b.Mistake(doc.Settings.At, "settings-not-used", "apply does not mention {file}, so the edited copy would not be used",
			"write apply: cp {file} PATH, with the path from which the service reads it")
	}
}

// mode is who may read a person's config file: who may read what apply makes of
// its copy.
func (b *builder) mode(path string) uint32 {
	if b.opt.Mode == nil {
		return 0
	}
	return b.opt.Mode(path)
}
