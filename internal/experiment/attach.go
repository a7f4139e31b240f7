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
	a := doc.Attach
	attach := b.ready(&grammar.Ready{Get: a.Get, Status: a.Status, Body: a.Body, Connect: a.Connect, Timeout: a.Timeout}, where+".attach")
	s.Attach = &attach
	if attach.Get == "" && attach.Connect == "" {
		b.Mistake(b.at(where+".attach"), "no-answer", where+".attach does not say how it answers", "write attach: {get: URL}, or {connect: HOST:PORT}")
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
		case c.key != "undo" && !doc.Settings.Set && slices.Contains(render.Mentioned(c.text.Value), "file"):
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

// checkAttached looks at the commands that bring settings to services that
// something else starts, once all names are known: what they change has to be put
// back, by words that mean the same whenever they are run.
func (b *builder) checkAttached() {
	for i := range b.exp.Services {
		if b.exp.Services[i].Attach == nil {
			continue
		}
		doc, where := &b.services[i], "service"
		if b.stack() {
			where = "services." + b.exp.Services[i].Name
		}
		b.checkRestart(doc, where)
		for _, name := range render.Mentioned(doc.Undo.Value) {
			if name == "file" || name == "hakaru.dir" {
				b.Mistake(doc.Undo.At, "undo-file", fmt.Sprintf("%s.undo: {%s} is not there when undo is run before apply, or after a crash", where, name),
					"keep the original in a place of your own, and copy it from there")
			}
		}
		b.checkNulls(where+".apply", doc.Apply, false)
		b.checkNulls(where+".restart", doc.Restart, false)
		b.checkNulls(where+".undo", doc.Undo, true)
	}
}

// checkRestart looks for a restart that does more than to restart: one whose words
// or environment are others in each trial leaves what the last trial made of it.
func (b *builder) checkRestart(doc *grammar.Service, where string) {
	if !doc.Restart.Set || doc.Undo.Set || doc.Apply.Set { // apply without undo is said already
		return
	}
	texts := []string{doc.Restart.Value}
	for _, e := range doc.Env {
		if e.Value != nil {
			texts = append(texts, *e.Value)
		}
	}
	settings, leased := render.SettingNames(b.exp), render.Leased(b.exp)
	for _, name := range slices.Concat(render.Mentioned(texts[0]), render.Mentioned(strings.Join(texts[1:], " "))) {
		plain := strings.TrimSuffix(name, ".name")
		if name == "hakaru.exe" || name != "file" && !leased[name] && !settings[plain] && !b.doc.At.Has(plain) {
			continue
		}
		b.Mistake(doc.Restart.At, "no-undo", fmt.Sprintf("%s.restart is given {%s}, and without undo the service would keep what the last trial gave it", where, name),
			"write under undo the command that puts it back; it runs whatever happens, also when restart did not run")
		return
	}
}

// checkNulls looks for words of a command that would be left out, as words that
// mention a setting without a value are: never of an undo, which has to do the same
// after every variant, and never the script of `sh -c`.
func (b *builder) checkNulls(where string, command grammar.Text, never bool) {
	words, err := grammar.Split(command.Value)
	if err != nil {
		return // said already
	}
	for i, word := range words {
		for _, name := range render.Mentioned(word) {
			variant, null := b.nullIn(strings.TrimSuffix(name, ".name"))
			if !null || !never && i > 0 && words[i-1] != "-c" {
				continue
			}
			b.Mistake(command.At, "null-word", fmt.Sprintf("%s: {%s} is null in variant %s, where the word that mentions it would be left out", where, name, variant),
				"write a value for every variant, or a command that does not need it")
			return
		}
	}
}

// nullIn returns a variant in which a setting has no value.
func (b *builder) nullIn(name string) (variant string, null bool) {
	if render.Leased(b.exp)[name] || !render.SettingNames(b.exp)[name] {
		return "", false
	}
	for _, v := range b.exp.Variants {
		var value *string
		for _, s := range b.settingsOf(v) {
			if s.FullName() == name {
				value = s.Value
			}
		}
		if value == nil {
			return v.Name, true
		}
	}
	return "", false
}

// settingsOf are all settings that a variant has, those that count more later.
func (b *builder) settingsOf(v hakaru.Variant) []hakaru.Setting {
	var list []hakaru.Setting
	for _, s := range b.exp.Services {
		list = append(list, s.Base...)
	}
	return append(list, v.Settings...)
}

// mode is who may read a person's config file: who may read what apply makes of
// its copy.
func (b *builder) mode(path string) uint32 {
	if b.opt.Mode == nil {
		return 0
	}
	return b.opt.Mode(path)
}
