package experiment

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"hakaru"
	"hakaru/internal/unit"
)

// buildNames takes over sockets and params.
func (b *builder) buildNames() {
	for i, name := range b.doc.Sockets.keys {
		if b.exp.Sockets == nil {
			b.exp.Sockets = map[string]string{}
		}
		b.exp.Sockets[name] = b.doc.Sockets.values[i].value
	}
	for i, name := range b.doc.Params.keys {
		if b.exp.Params == nil {
			b.exp.Params = map[string]string{}
		}
		b.exp.Params[name] = b.doc.Params.values[i].value
	}
}

func (b *builder) buildLoad() {
	if b.doc.Load == nil {
		if !b.written("load") {
			b.mistake(place{line: 1, column: 1}, "no-load", "the file does not say what load to send", `write load: {http: {url: "http://{http}/"}}`)
		}
		return
	}
	if b.doc.Load.program.set {
		name := b.doc.Load.program.value
		program := &hakaru.ProgramLoad{Name: name}
		for _, o := range b.doc.Load.options {
			if program.Options == nil {
				program.Options = map[string]string{}
			}
			if o.value != nil {
				program.Options[o.name] = *o.value
			}
		}
		b.exp.Load.Program = program
		b.later(b.doc.Load.program.at, "load."+name+": load by an external program is not built yet")
		return
	}
	h := b.doc.Load.http
	if h == nil {
		if !b.written("load.http") && !b.wrong["load"] {
			b.mistake(b.at("load"), "no-load", "load is empty", `write load: {http: {url: "http://{http}/"}}`)
		}
		return
	}
	if !h.URL.set && !b.written("load.http.url") {
		b.mistake(b.at("load.http"), "no-url", "load.http has no url", `write url: "http://{http}/"`)
	}
	if strings.HasPrefix(h.URL.value, "https://") {
		b.later(h.URL.at, "load.http: https is not built yet")
	}
	load := &hakaru.HTTPLoad{
		URL: h.URL.value, Method: h.Method.value, Body: h.Body.value, Connections: h.Connections.value,
		WarmUp: h.WarmUp.value, Duration: h.Duration.value, Timeout: h.Timeout.value,
		Status: h.Status.value, Expect: h.Expect.value, KeepAlive: h.KeepAlive.value,
	}
	for i, name := range h.Headers.keys {
		if load.Headers == nil {
			load.Headers = map[string]string{}
		}
		if !token(name) {
			b.mistake(h.Headers.places[i], "bad-header", fmt.Sprintf("%q cannot be the name of a header", name), "")
		}
		load.Headers[name] = h.Headers.values[i].value
	}
	for _, o := range []struct {
		flag, value string
		to          *string
	}{{"--connections", b.opt.Connections, &load.Connections}, {"--warm-up", b.opt.WarmUp, &load.WarmUp}, {"--duration", b.opt.Duration, &load.Duration}} {
		if o.value != "" {
			*o.to = o.value
			b.places["load.http."+strings.ReplaceAll(o.flag[2:], "-", "_")] = place{file: o.flag}
		}
	}
	b.exp.Load.HTTP = load
	// What holds a placeholder is looked at when trials are rendered.
	_, wrong := renderHTTP(load, func(text string) string { return text })
	for _, e := range wrong {
		if key := strings.TrimPrefix(e.path, "load.http."); !strings.Contains(e.text, "{") && (e.text != "" || key != "url") {
			b.mistake(b.valueAt(h, key, e.path), e.code, e.message, e.fix)
		}
	}
}

// valueAt is where the value of a key of load.http was written.
func (b *builder) valueAt(h *httpDoc, key, path string) place {
	values := map[string]text{"url": h.URL, "method": h.Method, "connections": h.Connections, "warm_up": h.WarmUp,
		"duration": h.Duration, "timeout": h.Timeout, "status": h.Status, "keep_alive": h.KeepAlive}
	if t := values[key]; t.set && b.at(path).file == "" {
		return t.at
	}
	return b.at(path)
}

// token reports whether text is a token of HTTP (RFC 9110, 5.6.2).
func token(text string) bool {
	for i := range len(text) {
		c := text[i]
		letter := c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
		if !letter && strings.IndexByte("!#$%&'*+-.^_`|~", c) < 0 {
			return false
		}
	}
	return text != ""
}

func metrics() []string {
	return []string{"throughput", "cpu_per_request", "p50", "p99", "errors", "memory", "capacity", "cost", "score"}
}

func (b *builder) buildGoal() {
	b.exp.Goal = hakaru.Throughput
	if b.exp.Load.Program != nil {
		b.exp.Goal = hakaru.Score
	}
	if g := b.doc.Goal; g.set {
		b.exp.Goal = hakaru.Metric(g.value)
		if !slices.Contains(metrics(), g.value) {
			b.mistake(g.at, "unknown-metric", fmt.Sprintf("goal: unknown metric %q", g.value), suggest(g.value, metrics()))
		}
		switch b.exp.Goal {
		case hakaru.P50, hakaru.P99:
			b.later(g.at, "goal: "+g.value+" needs an open loop, which is not built yet")
		case hakaru.Capacity, hakaru.Cost, hakaru.Score:
			b.later(g.at, "goal: "+g.value+" is not built yet")
		}
	}
	hasErrors := false
	for i, name := range b.doc.Limits.keys {
		at, value := b.doc.Limits.places[i], b.doc.Limits.values[i]
		if !slices.Contains(metrics(), name) {
			b.mistake(at, "unknown-metric", fmt.Sprintf("limits: unknown metric %q", name), suggest(name, metrics()))
			continue
		}
		metric := hakaru.Metric(name)
		hasErrors = hasErrors || metric == hakaru.Errors
		if !value.set {
			continue
		}
		limit, err := parseLimit(metric, value.value)
		if err != nil {
			b.mistake(value.at, "bad-limit", fmt.Sprintf("limits.%s: %v", name, err), limitHint(metric, value.value))
			continue
		}
		switch metric {
		case hakaru.Capacity, hakaru.Cost, hakaru.Score:
			b.later(at, "limits."+name+" is not built yet")
		}
		b.exp.Limits = append(b.exp.Limits, limit)
	}
	if !hasErrors {
		b.exp.Limits = append(b.exp.Limits, hakaru.Limit{Metric: hakaru.Errors, Bound: 0.01, Implied: true})
	}
}

// parseLimit reads a bound in the metric's own unit; "<= 5ms" and ">= 100/s" say
// the direction, which otherwise is the metric's own.
func parseLimit(metric hakaru.Metric, text string) (hakaru.Limit, error) {
	limit := hakaru.Limit{Metric: metric, AtLeast: metric.HigherIsBetter()}
	text = strings.TrimSpace(text)
	for _, sign := range []string{"<=", "<", ">=", ">"} {
		if rest, found := strings.CutPrefix(text, sign); found {
			text, limit.AtLeast = strings.TrimSpace(rest), sign[0] == '>'
			break
		}
	}
	var err error
	switch metric {
	case hakaru.Errors:
		limit.Bound, err = unit.ParseShare(text)
		if err == nil && limit.Bound > 1 {
			err = fmt.Errorf("%q is more than everything", text)
		}
	case hakaru.Throughput, hakaru.Capacity:
		limit.Bound, err = unit.ParseRate(text)
	case hakaru.CPUPerRequest, hakaru.P50, hakaru.P99:
		d, derr := unit.ParseDuration(text)
		limit.Bound, err = d.Seconds(), derr
	case hakaru.Memory:
		limit.Bound, err = unit.ParseBytes(text)
	default: // cost, score
		limit.Bound, err = strconv.ParseFloat(text, 64)
		if err != nil || limit.Bound != limit.Bound || limit.Bound-limit.Bound != 0 {
			err = fmt.Errorf("%q is not a number", text)
		}
	}
	return limit, err
}

func limitHint(metric hakaru.Metric, text string) string {
	if _, err := strconv.ParseFloat(text, 64); err != nil {
		return ""
	}
	switch metric {
	case hakaru.Throughput, hakaru.Capacity:
		return "write " + text + "/s"
	case hakaru.CPUPerRequest, hakaru.P50, hakaru.P99:
		return "write " + text + "ms, or " + text + "s for seconds"
	case hakaru.Errors:
		return "write " + text + "%"
	}
	return ""
}

func (b *builder) design() designDoc {
	if b.doc.Design == nil {
		return designDoc{}
	}
	return *b.doc.Design
}

func (b *builder) buildDesign() {
	doc, d := b.design(), &b.exp.Design
	d.Blocks, d.Matters, d.Calibrate, d.Seed = hakaru.DefaultBlocks, hakaru.DefaultMatters, hakaru.DefaultCalibrations, b.seed
	built := []string{"compare", "one-at-a-time", "factorial"}
	planned := []string{"race", "search", "switchback", "auto"}
	if m := doc.Method; m.set {
		switch {
		case slices.Contains(planned, m.value):
			b.later(m.at, "design.method: "+m.value+" is not built yet")
		case !slices.Contains(built, m.value):
			b.mistake(m.at, "unknown-method", fmt.Sprintf("unknown method %q", m.value), suggest(m.value, append(built, planned...)))
		case m.value != "compare" && !b.written("factors"):
			b.mistake(m.at, "no-factors", "method "+m.value+" is about factors, and the file has none", "write factors: instead of variants:, or leave the method out")
		}
	}
	if doc.Blocks.set {
		d.Blocks = doc.Blocks.within(b.decoder, "design.blocks", 1, 100_000)
	}
	if doc.Calibrate.set {
		d.Calibrate = doc.Calibrate.within(b.decoder, "design.calibrate", 0, 1000)
	}
	if doc.Matters.set {
		d.Matters = doc.Matters.value
		if d.Matters <= 0 || d.Matters >= 1 {
			b.mistake(doc.Matters.at, "out-of-range", "design.matters is to be above 0 % and below 100 %", "write 3%")
		}
	}
	if doc.Seed.set {
		d.Seed = doc.Seed.value
	}
	if doc.Budget.set {
		d.Budget = doc.Budget.value
		if d.Budget == 0 {
			b.mistake(doc.Budget.at, "out-of-range", "design.budget is to be more than nothing", "")
		}
	}
	if b.opt.Blocks > 0 {
		d.Blocks = b.opt.Blocks
	}
	if b.opt.Budget > 0 {
		d.Budget = b.opt.Budget
	}
	if b.opt.Seed != nil {
		d.Seed = *b.opt.Seed
	}
}

func (b *builder) buildHosts() {
	if b.doc.Hosts == nil {
		return
	}
	one := func(doc hostDoc, name string) hakaru.HostSpec {
		if doc.Agent.set {
			b.later(doc.Agent.at, "hosts."+name+": agents on other machines are not built yet")
		}
		return hakaru.HostSpec{CPUs: doc.CPUs, Agent: doc.Agent.value}
	}
	b.exp.ServiceHost = one(b.doc.Hosts.Service, "service")
	b.exp.LoadHost = one(b.doc.Hosts.Load, "load")
	if b.doc.Hosts.Service.more {
		b.mistake(b.at("hosts.service"), "several-hosts", "hosts.service is a list, and a service runs on one host", "")
	}
}

// buildLater names the parts that are only understood, and the plain rest.
func (b *builder) buildLater() {
	b.exp.Allow = b.doc.Allow.values()
	if b.doc.Capture.set {
		b.later(b.at("capture"), "capture is not built yet")
	}
	if b.doc.Price != nil {
		b.later(b.at("price"), "price is not built yet")
	}
	for i, name := range b.doc.Factors.keys {
		if reservedFactor(name) {
			b.later(b.doc.Factors.places[i], "factors."+name+": this factor is not built yet")
		}
	}
}

// reservedFactor tells the factors that are no settings of a service.
func reservedFactor(name string) bool {
	return name == "git" || strings.HasPrefix(name, "sysctl.")
}
