package loadreport

import (
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"hakaru"
	"hakaru/internal/condition"
	"hakaru/internal/latency"
	"hakaru/internal/layout"
	"hakaru/internal/unit"
	"hakaru/internal/wording"
)

// Text writes the report for people.
func (r *Result) Text(w io.Writer, style layout.Style) error {
	var d layout.Document
	head := []layout.Part{&layout.Paragraph{Text: r.headline(), Tone: layout.Strong}}
	switch {
	case len(r.Failures) > 0:
		head = append(head, &layout.Paragraph{Text: sentence("not as asked: " + strings.Join(r.Failures, "; ")), Tone: layout.Bad})
	case len(r.outcomes) > 0:
		head = append(head, &layout.Paragraph{Text: "Every threshold holds.", Tone: layout.Good})
	}
	d.Add("", head...)
	if r.Report.Capacity != nil {
		r.capacity(&d)
	}
	if r.Search == nil || r.open() {
		title := ""
		if r.Search != nil {
			offered, _ := r.rates()
			title = "At " + unit.Rate(offered)
		}
		d.Add(title, r.sums())
		r.wrong(&d)
		r.latencies(&d)
	}
	r.generator(&d)
	if len(r.Warnings) > 0 {
		doubts := make(layout.Bullets, len(r.Warnings))
		for i, warning := range r.Warnings {
			doubts[i] = layout.Cell{Text: sentence(warning.Message), Tone: layout.Doubtful}
		}
		d.Add("What to doubt", doubts)
	}
	return layout.Text(w, d, style)
}

// sentence begins large and ends with a point, or as it does.
func sentence(text string) string {
	if text == "" {
		return ""
	}
	first := []rune(text)[0]
	text = strings.ToUpper(string(first)) + text[len(string(first)):]
	if strings.HasSuffix(text, ".") || strings.HasSuffix(text, "?") {
		return text
	}
	return text + "."
}

// headline says what was sent where, and for how long.
func (r *Result) headline() string {
	q := &r.Request
	text := wording.Count(q.Connections, "connection")
	if !q.KeepAlive {
		text += " at a time, a new one for each request,"
	}
	method := ""
	if q.Method != "GET" {
		method = q.Method + " "
	}
	text += " to " + method + q.URL
	if address := r.tally.Address; address != "" && !strings.Contains(q.URL, address) {
		text += " (" + address + ")"
	}
	switch {
	case r.Search != nil:
		text += ", searching for the highest rate that holds " + condition.Join(r.Search.Holds)
	case r.open():
		text += ", open loop, " + Law(q.Arrival)
	default:
		text += ", closed loop"
	}
	if r.Search != nil {
		return text
	}
	switch {
	case q.Requests > 0:
		text += fmt.Sprintf(", %d requests", q.Requests)
		if r.tally.Took > 0 {
			text += " in " + layout.Whole(unit.Duration(r.tally.Took))
		}
	case r.Stopped != "":
		text += fmt.Sprintf(", %s of %s", layout.Whole(unit.Duration(r.tally.Took)), layout.Whole(unit.Duration(r.Window.Length)))
	default:
		text += ", " + layout.Whole(unit.Duration(r.tally.Took))
	}
	if r.Window.WarmUp > 0 {
		text += " after " + layout.Whole(unit.Duration(r.Window.WarmUp)) + " of warm-up"
	}
	return text
}

// Law says in words when requests are due.
func Law(a *hakaru.Arrival) string {
	switch a.Law {
	case hakaru.PoissonRate:
		return unit.Rate(a.Rate) + " at random (Poisson)"
	case hakaru.RampRate:
		return "from " + unit.Rate(a.Rate) + " to " + unit.Rate(a.To)
	case hakaru.StepRates:
		parts := make([]string, len(a.Steps))
		for i, s := range a.Steps {
			parts[i] = unit.Rate(s.Rate) + " for " + layout.Whole(unit.Duration(s.For))
		}
		return strings.Join(parts, ", then ")
	}
	return unit.Rate(a.Rate)
}

// sums are the figures of the load as a whole.
func (r *Result) sums() layout.Facts {
	t := r.tally
	facts := layout.Facts{{"throughput", unit.Rate(perSecond(float64(t.Good), t.Took)) + " good answers"}}
	if r.open() {
		offered, achieved := r.rates()
		reached := unit.Rate(achieved)
		if !r.counted() || !r.kept() { // otherwise the wait for the last answers is in it
			reached += fmt.Sprintf(" (%s)", unit.Share(achieved/offered))
		}
		facts = append(facts, [2]string{"offered", unit.Rate(offered)}, [2]string{"achieved", reached})
		if t.Queued+t.Unsent > 0 {
			facts = append(facts, [2]string{"queued", fmt.Sprintf("%d requests had to wait for a connection, %d were never sent", t.Queued, t.Unsent)})
		}
	}
	answers := fmt.Sprintf("%d good, %d bad", t.Good, t.Bad)
	if t.Bad > 0 {
		answers += fmt.Sprintf(" (%s)", unit.Share(float64(t.Bad)/float64(r.answers())))
	}
	facts = append(facts, [2]string{"answers", answers})
	if len(t.Statuses) > 0 {
		parts := make([]string, 0, len(t.Statuses))
		for _, status := range slices.Sorted(maps.Keys(t.Statuses)) {
			parts = append(parts, fmt.Sprintf("%d: %d", status, t.Statuses[status]))
		}
		facts = append(facts, [2]string{"by status", strings.Join(parts, ", ")})
	}
	facts = append(facts, [2]string{"received", fmt.Sprintf("%s, %s/s", unit.Bytes(float64(t.Bytes)), unit.Bytes(perSecond(float64(t.Bytes), t.Took)))})
	connections := fmt.Sprintf("%d stood", r.Report.Connections)
	if t.Connects > uint64(max(r.Report.Connections, 0)) {
		connections += fmt.Sprintf(", %d were opened while measuring", t.Connects)
	}
	if t.Retried > 0 {
		connections += fmt.Sprintf(", %d requests sent again since the service had closed an idle one", t.Retried)
	}
	facts = append(facts, [2]string{"connections", connections})
	for _, o := range r.outcomes {
		holds := "holds"
		if !o.Holds {
			holds = "missed"
		}
		facts = append(facts, [2]string{"threshold", condition.String(o.Condition) + ": " + holds + ", " + o.Words})
	}
	return facts
}

// wrong shows bad answers by kind, with the first of each.
func (r *Result) wrong(d *layout.Document) {
	t := r.tally
	if t.Bad == 0 {
		return
	}
	table := &layout.Table{Head: []string{"kind", "requests", "of all", "for example"}, Right: []bool{false, true, true, false}}
	var advice layout.Bullets
	for _, kind := range kindsByCount(t.Kinds) {
		example := ""
		for _, s := range r.Report.Samples {
			if string(s.Kind) == kind {
				example = s.Text
				break
			}
		}
		table.Rows = append(table.Rows, []layout.Cell{
			{Text: kindName(kind), Tone: layout.Bad}, {Text: fmt.Sprint(t.Kinds[kind])},
			{Text: layout.Whole(unit.Share(float64(t.Kinds[kind]) / float64(r.answers())))}, {Text: example},
		})
		if text := r.advice(hakaru.ErrorKind(kind)); text != "" {
			advice = append(advice, layout.Cell{Text: sentence(text)})
		}
	}
	parts := []layout.Part{table}
	if len(advice) > 0 {
		parts = append(parts, advice)
	}
	if h := r.took.failed; h.Count() > 0 {
		parts = append(parts, layout.Facts{{"they took", fmt.Sprintf("median %s, p99 %s, at most %s",
			unit.Duration(h.Quantile(0.5)), unit.Value(quantile(h, 0.99), "s"), unit.Duration(h.Max()))}})
	}
	d.Add("Bad answers", parts...)
}

// quantiles are the lines of the table of latencies.
var quantiles = []struct {
	name string
	q    float64
}{{"median", 0.5}, {"p90", 0.9}, {"p95", 0.95}, {"p99", 0.99}, {"p99.9", 0.999}, {"p99.99", 0.9999}, {"max", 1}}

func (r *Result) latencies(d *layout.Document) {
	columns := []struct {
		name string
		h    *latency.Histogram
	}{{"connect", r.took.connect}, {"waiting", r.took.waiting}, {"processing", r.took.service}, {"total", r.took.latency}}
	if r.took.latency.Count() == 0 {
		if h := r.took.connect; h.Count() > 0 {
			d.Add("Latency", layout.Facts{{"connect", fmt.Sprintf("median %s, at most %s", unit.Duration(h.Quantile(0.5)), unit.Duration(h.Max()))}})
		}
		return
	}
	table := &layout.Table{Head: []string{""}, Right: []bool{false}}
	row := func(name string, of func(h *latency.Histogram) string) {
		cells := []layout.Cell{{Text: name}}
		for i, c := range columns {
			text := "-"
			if c.h.Count() > 0 {
				text = layout.Whole(of(c.h))
			}
			tone := layout.Plain
			if i == len(columns)-1 {
				tone = layout.Strong
			}
			cells = append(cells, layout.Cell{Text: text, Tone: tone})
		}
		table.Rows = append(table.Rows, cells)
	}
	for _, c := range columns {
		table.Head, table.Right = append(table.Head, c.name), append(table.Right, true)
	}
	row("min", func(h *latency.Histogram) string { return unit.Duration(h.Quantile(0)) })
	row("mean", func(h *latency.Histogram) string { return unit.Duration(h.Mean()) })
	row("sd", func(h *latency.Histogram) string { return unit.Duration(h.StdDev()) })
	for _, line := range quantiles {
		row(line.name, func(h *latency.Histogram) string {
			v := quantile(h, line.q)
			if math.IsNaN(v) {
				return "-"
			}
			return unit.Duration(time.Duration(math.Round(v * 1e9)))
		})
	}
	parts := []layout.Part{table}
	due := "from the first thing done for the request, a new connection included"
	if r.open() {
		due = "from when the request was due by its rate, whether a connection was free then or not"
	}
	parts = append(parts, &layout.Paragraph{Tone: layout.Faint,
		Text: "Of good answers. Waiting is from the send to the first byte, processing to the last; total is " + due + "."})
	d.Add("Latency", parts...)
	if lines := drawn(r.took.latency); lines != "" {
		d.Add("Total, by how many answers took so long", &layout.Block{Text: lines})
	}
}

// generator is how it went for hakaru itself.
func (r *Result) generator(d *layout.Document) {
	t := r.tally
	if t.Engine == "" {
		return
	}
	facts := layout.Facts{{"engine", t.Engine + ", " + wording.Count(t.Threads, "thread")}}
	if took := t.Took.Seconds(); took > 0 {
		cpu := fmt.Sprintf("%.2f of %s", t.CPU/took, wording.Count(t.CPUs, "CPU"))
		if n := r.answers(); n > 0 {
			cpu += fmt.Sprintf(", %s a request", unit.Seconds(t.CPU/float64(n)))
		}
		if t.Waited > 0 {
			cpu += fmt.Sprintf("; waited %s for one", unit.Seconds(t.Waited))
		}
		facts = append(facts, [2]string{"CPU", cpu})
	}
	if r.took.lag.Count() > 0 {
		h := r.took.lag
		facts = append(facts, [2]string{"send lag", fmt.Sprintf("p50 %s, p99 %s, at most %s",
			unit.Duration(h.Quantile(0.5)), unit.Value(quantile(h, 0.99), "s"), unit.Duration(h.Max()))})
	}
	memory := "not collected"
	if t.GCs > 0 {
		memory = fmt.Sprintf("collected %s, at most %s each", wording.Count(int(t.GCs), "time"), unit.Duration(t.GCPause))
	}
	facts = append(facts, [2]string{"memory", memory})
	d.Add("Generator", facts)
}

// capacity is what a search found.
func (r *Result) capacity(d *layout.Document) {
	c := r.Report.Capacity
	if c.Value > 0 {
		text := fmt.Sprintf("Capacity: %s (%s to %s, 95 %%).", unit.Rate(c.Value), unit.Rate(c.Low), unit.Rate(c.High))
		if c.Reached != "" {
			text = fmt.Sprintf("Capacity: at least %s: %s.", unit.Rate(c.Low), strings.TrimSuffix(c.Reached, "."))
		}
		d.Add("", &layout.Paragraph{Text: text, Tone: layout.Good})
	}
	steps := slices.Clone(c.Steps)
	slices.SortStableFunc(steps, func(a, b hakaru.CapacityStep) int {
		switch {
		case a.Rate < b.Rate:
			return -1
		case a.Rate > b.Rate:
			return 1
		}
		return 0
	})
	table := &layout.Table{
		Head: []string{"offered", "achieved", "median", "p99", "errors", "verdict", "why"}, Right: []bool{true, true, true, true, true, false, false},
	}
	highest := 0.0
	p99s := make([]float64, len(steps))
	for i, s := range steps {
		h, err := latency.Decode(s.Latency)
		if err != nil {
			h = &latency.Histogram{}
		}
		p99s[i] = quantile(h, 0.99)
		if p99s[i] > highest {
			highest = p99s[i]
		}
	}
	for i, s := range steps {
		h, err := latency.Decode(s.Latency)
		median := "-"
		if err == nil && h.Count() > 0 {
			median = unit.Duration(h.Quantile(0.5))
		}
		verdict, why := layout.Cell{Text: "holds", Tone: layout.Good}, ""
		switch {
		case s.Void != "":
			verdict, why = layout.Cell{Text: "void", Tone: layout.Faint}, s.Void
		case !s.Holds:
			verdict, why = layout.Cell{Text: "fails", Tone: layout.Bad}, s.Why
		}
		p99 := "-"
		if !math.IsNaN(p99s[i]) {
			p99 = layout.Whole(unit.Seconds(p99s[i]))
		}
		table.Rows = append(table.Rows, []layout.Cell{
			{Text: unit.Rate(s.Rate)}, {Text: unit.Rate(s.Achieved)}, {Text: layout.Whole(median)}, {Text: p99},
			{Text: layout.Whole(unit.Share(s.Errors))}, verdict, {Text: why},
		})
	}
	parts := []layout.Part{table}
	d.Add("By rate", parts...)
	var curve strings.Builder
	for i, s := range steps {
		if !math.IsNaN(p99s[i]) && highest > 0 {
			fmt.Fprintf(&curve, "%10s  %s\n", unit.Rate(s.Rate), bar(p99s[i]/highest)+" "+unit.Seconds(p99s[i]))
		}
	}
	if curve.Len() > 0 {
		d.Add("p99 by rate", &layout.Block{Text: curve.String()})
	}
}

// StepLine tells one step of a search as a line.
func StepLine(s hakaru.CapacityStep) string {
	line := unit.Rate(s.Rate)
	switch {
	case s.Void != "":
		return line + " does not count: " + s.Void
	case !s.Holds:
		return line + " does not hold: " + s.Why
	}
	line += " holds"
	if h, err := latency.Decode(s.Latency); err == nil && h.Count() > 0 {
		line += fmt.Sprintf(" (p99 %s)", unit.Duration(h.Quantile(0.99)))
	}
	return line
}
