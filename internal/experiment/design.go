package experiment

import (
	"fmt"
	"slices"

	"hakaru"
	"hakaru/internal/grammar"
	"hakaru/internal/hint"
)

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
