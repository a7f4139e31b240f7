package experiment

import (
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
		name := b.doc.Load.Program.Value
		program := &hakaru.ProgramLoad{Name: name}
		for _, o := range b.doc.Load.Options {
			if program.Options == nil {
				program.Options = map[string]string{}
			}
			if o.Value != nil {
				program.Options[o.Name] = *o.Value
			}
		}
		b.exp.Load.Program = program
		b.Later(b.doc.Load.Program.At, "load."+name+": load by an external program is not built yet")
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
	if strings.HasPrefix(h.URL.Value, "https://") {
		b.Later(h.URL.At, "load.http: https is not built yet")
	}
	load := &hakaru.HTTPLoad{
		URL: h.URL.Value, Method: h.Method.Value, Body: h.Body.Value, Connections: h.Connections.Value,
		WarmUp: h.WarmUp.Value, Duration: h.Duration.Value, Timeout: h.Timeout.Value,
		Status: h.Status.Value, Expect: h.Expect.Value, KeepAlive: h.KeepAlive.Value,
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
	_, wrong := render.HTTP(load, func(text string) string { return text })
	for _, e := range wrong {
		if key := strings.TrimPrefix(e.Path, "load.http."); !strings.Contains(e.Text, "{") && (e.Text != "" || key != "url") {
			b.Mistake(b.valueAt(h, key, e.Path), e.Code, e.Message, e.Fix)
		}
	}
}

// valueAt is where the value of a key of load.http was written.
func (b *builder) valueAt(h *grammar.HTTP, key, path string) mistake.Place {
	values := map[string]grammar.Text{"url": h.URL, "method": h.Method, "connections": h.Connections, "warm_up": h.WarmUp,
		"duration": h.Duration, "timeout": h.Timeout, "status": h.Status, "keep_alive": h.KeepAlive}
	if t := values[key]; t.Set && b.at(path).Flag == "" {
		return t.At
	}
	return b.at(path)
}
