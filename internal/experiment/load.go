package experiment

import (
	"fmt"
	"strings"

	"hakaru"
	"hakaru/internal/grammar"
	"hakaru/internal/mistake"
	"hakaru/internal/render"
)

func (b *builder) buildLoad() {
	if b.doc.Load == nil {
		if !b.written("load") {
			b.Mistake(mistake.Place{Line: 1, Column: 1}, "no-load", "the file does not say what load to send", `write load: {http: {url: "http://{http}/"}}`)
		}
		return
	}
	if b.doc.Load.Program.Set {
		b.buildProgram()
		return
	}
	h := b.doc.Load.HTTP
	if h == nil {
		if !b.written("load.http") && !b.Wrong["load"] {
			b.Mistake(b.at("load"), "no-load", "load is empty", `write load: {http: {url: "http://{http}/"}}`)
		}
		return
	}
	if !h.URL.Set && !b.written("load.http.url") {
		b.Mistake(b.at("load.http"), "no-url", "load.http has no url", `write url: "http://{http}/"`)
	}
	load := &hakaru.HTTPLoad{Sources: h.Sources.Values()}
	texts := httpTexts(h)
	for key, to := range render.HTTPTexts(load) {
		*to = texts[key].Value
	}
	for i, name := range h.Headers.Keys {
		if load.Headers == nil {
			load.Headers = map[string]string{}
		}
		load.Headers[name] = h.Headers.Values[i].Value
	}
	for _, o := range []struct {
		flag, value string
		to          *string
	}{{"--connections", b.opt.Connections, &load.Connections}, {"--warm-up", b.opt.WarmUp, &load.WarmUp}, {"--duration", b.opt.Duration, &load.Duration}} {
		if o.value != "" {
			*o.to = o.value
			b.Places["load.http."+strings.ReplaceAll(o.flag[2:], "-", "_")] = mistake.Place{Flag: o.flag}
		}
	}
	b.exp.Load.HTTP = load
	// What holds a placeholder is looked at when trials are rendered.
	_, wrong := render.HTTP(load, b.opt.Dir, func(text string) string { return text })
	for _, e := range wrong {
		if key := strings.TrimPrefix(e.Path, "load.http."); !strings.Contains(e.Text, "{") && (e.Text != "" || key != "url") {
			b.Mistake(b.valueAt(h, key, e.Path), e.Code, e.Message, e.Fix)
		}
	}
}

// httpTexts are the single texts that were written under load.http, by key.
func httpTexts(h *grammar.HTTP) map[string]grammar.Text {
	return map[string]grammar.Text{
		"url": h.URL, "method": h.Method, "body": h.Body, "connections": h.Connections, "warm_up": h.WarmUp,
		"duration": h.Duration, "timeout": h.Timeout, "status": h.Status, "expect": h.Expect, "keep_alive": h.KeepAlive,
		"rate": h.Rate, "arrival": h.Arrival, "threads": h.Threads, "precise": h.Precise, "http_version": h.HTTPVersion,
		"engine": h.Engine, "connect_to": h.ConnectTo, "family": h.Family, "insecure": h.Insecure,
		"server_name": h.ServerName, "ca": h.CA, "cert": h.Cert, "key": h.Key,
	}
}

// buildProgram takes over load by a program. What holds a placeholder is looked
// at when trials are rendered.
func (b *builder) buildProgram() {
	written, name := b.doc.Load, b.doc.Load.Program.Value
	program := &hakaru.ProgramLoad{Name: name, Options: map[string]string{}}
	for _, o := range written.Options {
		if o.Value != nil {
			program.Options[o.Name] = *o.Value
		}
	}
	b.exp.Load.Program = program
	if !grammar.Runs(name) {
		if name != "http" {
			b.Later(written.Program.At, "load."+name+": load by an external program is not built yet")
		}
		return
	}
	b.overrideProgram(program)
	path := "load." + name
	switch {
	case b.Wrong[path]:
	case name == "command":
		if program.Options["run"] == "" {
			b.Mistake(b.at(path), "no-run", "load.command has no run", `write load: {command: {run: "./bench.sh {http}", score: 'SCORE: ([0-9.]+)'}}`)
		}
		if program.Options["score"] == "" && program.Options["good"] == "" && program.Options["throughput"] == "" {
			b.Mistake(b.at(path), "no-figure", "load.command does not say what its figure is", `write score: 'SCORE: ([0-9.]+)', or good: or throughput:, a pattern of a line that it prints`)
		}
	case program.Options["url"] == "" && !b.written(path+".url"):
		b.Mistake(b.at(path), "no-url", path+" has no url", `write url: "http://{http}/"`)
	}
	_, wrong := render.Program(program, b.exp.Dir, func(text string) string { return text })
	for _, e := range wrong {
		if !strings.Contains(e.Text, "{") {
			b.Mistake(b.loadAt(e.Path), e.Code, e.Message, e.Fix)
		}
	}
}

// overrideProgram lets flags count more than what is written.
func (b *builder) overrideProgram(p *hakaru.ProgramLoad) {
	for _, o := range []struct{ flag, key, value string }{
		{"--connections", "connections", b.opt.Connections}, {"--warm-up", "warm_up", b.opt.WarmUp}, {"--duration", "duration", b.opt.Duration},
	} {
		if o.value == "" {
			continue
		}
		at := mistake.Place{Flag: o.flag}
		if p.Name == "command" && o.key == "connections" {
			b.Mistake(at, "not-used", "load.command has no connections: only its command line says how many there are", "write {name} in run, and name: under params, and set it with --set")
			continue
		}
		p.Options[o.key] = o.value
		b.Places["load."+p.Name+"."+o.key] = at
		if requests := p.Options["requests"]; o.key == "duration" && requests != "" {
			// A time was asked for, in so many words.
			delete(p.Options, "requests")
			p.Replaced = fmt.Sprintf("--duration %s takes the place of requests: %s in load.%s", o.value, requests, p.Name)
		}
	}
}

// loadAt is where the value of a key of the load was written.
func (b *builder) loadAt(path string) mistake.Place {
	l := b.doc.Load
	if l == nil || b.at(path).Flag != "" {
		return b.at(path)
	}
	if l.HTTP != nil {
		return b.valueAt(l.HTTP, strings.TrimPrefix(path, "load.http."), path)
	}
	for _, o := range l.Options {
		if "load."+l.Program.Value+"."+o.Name == path {
			return o.At
		}
	}
	return b.at(path)
}

// valueAt is where the value of a key of load.http was written.
func (b *builder) valueAt(h *grammar.HTTP, key, path string) mistake.Place {
	if key == "sources" && len(h.Sources) > 0 {
		return h.Sources[0].At
	}
	if t := httpTexts(h)[key]; t.Set && b.at(path).Flag == "" {
		return t.At
	}
	return b.at(path)
}
