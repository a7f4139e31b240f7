package experiment

import (
	"fmt"
	"slices"
	"strings"

	"hakaru"
	"hakaru/internal/grammar"
	"hakaru/internal/hint"
	"hakaru/internal/mistake"
	"hakaru/internal/render"
)

// buildNames takes over sockets and params.
func (b *builder) buildNames() {
	for i, name := range b.doc.Sockets.Keys {
		if b.exp.Sockets == nil {
			b.exp.Sockets = map[string]string{}
		}
		b.exp.Sockets[name] = b.doc.Sockets.Values[i].Value
	}
	for i, name := range b.doc.Params.Keys {
		if b.exp.Params == nil {
			b.exp.Params = map[string]string{}
		}
		b.exp.Params[name] = b.doc.Params.Values[i].Value
	}
}

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

func (b *builder) design() grammar.Design {
	if b.doc.Design == nil {
		return grammar.Design{}
	}
	return *b.doc.Design
}

// Bounds of a design, so that a slip of the finger is none of a month.
const (
	MaxBlocks    = 100_000
	MaxCalibrate = 1000
)

func (b *builder) buildDesign() {
	doc, d := b.design(), &b.exp.Design
	d.Blocks, d.Matters, d.Calibrate, d.Seed = hakaru.DefaultBlocks, hakaru.DefaultMatters, hakaru.DefaultCalibrations, b.seed
	built := []string{"compare", "one-at-a-time", "factorial"}
	planned := []string{"race", "search", "switchback", "auto"}
	if m := doc.Method; m.Set {
		switch {
		case slices.Contains(planned, m.Value):
			b.Later(m.At, "design.method: "+m.Value+" is not built yet")
		case !slices.Contains(built, m.Value):
			b.Mistake(m.At, "unknown-method", fmt.Sprintf("unknown method %q", m.Value), hint.Name(m.Value, append(built, planned...)))
		case m.Value != "compare" && !b.written("factors"):
			b.Mistake(m.At, "no-factors", "method "+m.Value+" is about factors, and the file has none", "write factors: instead of variants:, or leave the method out")
		}
	}
	if doc.Blocks.Set {
		d.Blocks = doc.Blocks.Within(b.Decoder, "design.blocks", 1, MaxBlocks)
	}
	if doc.Calibrate.Set {
		d.Calibrate = doc.Calibrate.Within(b.Decoder, "design.calibrate", 0, MaxCalibrate)
	}
	if doc.Matters.Set {
		d.Matters = doc.Matters.Value
		if d.Matters <= 0 || d.Matters >= 1 {
			b.Mistake(doc.Matters.At, "out-of-range", "design.matters is to be above 0 % and below 100 %", "write 3%")
		}
	}
	if doc.Seed.Set {
		d.Seed = doc.Seed.Value
	}
	if doc.Budget.Set {
		d.Budget = doc.Budget.Value
		if d.Budget == 0 {
			b.Mistake(doc.Budget.At, "out-of-range", "design.budget is to be more than nothing", "")
		}
	}
	if b.opt.Blocks > 0 {
		d.Blocks = b.opt.Blocks
	}
	if b.opt.Budget > 0 {
		d.Budget = b.opt.Budget
	}
	if b.opt.Calibrate != nil {
		d.Calibrate = *b.opt.Calibrate
	}
	if b.opt.Seed != nil {
		d.Seed = *b.opt.Seed
	}
}

func (b *builder) buildHosts() {
	if b.doc.Hosts == nil {
		return
	}
	one := func(doc grammar.Host, name string) hakaru.HostSpec {
		if doc.Agent.Set {
			b.Later(doc.Agent.At, "hosts."+name+": agents on other machines are not built yet")
		}
		return hakaru.HostSpec{CPUs: doc.CPUs, Agent: doc.Agent.Value}
	}
	b.exp.ServiceHost = one(b.doc.Hosts.Service, "service")
	b.exp.LoadHost = one(b.doc.Hosts.Load, "load")
	if b.doc.Hosts.Service.More {
		b.Mistake(b.at("hosts.service"), "several-hosts", "hosts.service is a list, and a service runs on one host", "")
	}
}

// buildLater names the parts that are only understood, and the plain rest.
func (b *builder) buildLater() {
	b.exp.Allow = b.doc.Allow.Values()
	if b.doc.Capture.Set {
		b.Later(b.at("capture"), "capture is not built yet")
	}
	if b.doc.Price != nil {
		b.Later(b.at("price"), "price is not built yet")
	}
	for i, name := range b.doc.Factors.Keys {
		if render.ReservedFactor(name) {
			b.Later(b.doc.Factors.Places[i], "factors."+name+": this factor is not built yet")
		}
	}
}
