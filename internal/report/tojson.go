package report

import (
	"encoding/json"
	"io"
	"math"
	"reflect"
	"strings"
	"time"

	"hakaru"
	"hakaru/internal/compare"
	"hakaru/internal/latency"
	"hakaru/internal/layout"
	"hakaru/internal/redact"
	"hakaru/internal/wording"
)

// JSON writes the report for programs.
func JSON(w io.Writer, in Input) error {
	r := newReport(newIndex(&in))
	redactAll(reflect.ValueOf(&r).Elem())
	return writeJSON(w, r)
}

func writeJSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}

func newReport(x *index) Report {
	e := x.exp
	r := Report{
		Format: JSONFormat,
		Run:    RunJSON{x.Run.ID, x.Run.Name, e.Question, x.Run.Started, x.Run.Ended, x.Run.State},
		Answer: AnswerJSON{Text: layout.Flat(x.answer()), State: x.state(), ViolatesLimit: x.Outcome.ViolatesLimit, Winner: x.commonWinner(), Notes: []string{}, Strata: []StratumJSON{}},
		Goal:   e.Goal,
		Load:   LoadJSON{Program: "http", Text: layout.Flat(wording.Load(e))},
		Design: DesignJSON{Method: e.Design.Method, Baseline: e.Baseline, Strata: all(e.Strata), Load: layout.Flat(wording.Load(e)), Seed: e.Design.Seed, Matters: e.Design.Matters,
			Looks: []int{}, OpenLoops: []OpenRateJSON{}, Blocks: e.Design.Blocks, Complete: x.Outcome.Complete, Dropped: x.Outcome.Dropped, Void: x.Outcome.VoidTrials},
		Environment: EnvironmentsJSON{environmentJSON(x.Run.Service), environmentJSON(x.Run.Loader)},
		Limits:      []LimitJSON{}, Comparisons: []ComparisonJSON{}, Trials: []TrialJSON{}, Variants: []VariantJSON{},
		Warnings: warningsJSON(x.Run.Warnings),
		Changes:  map[string]string{},
	}
	if p := e.Load.Program; p != nil {
		r.Load.Program = p.Name
		if command := x.command(); command != "" {
			r.Load.Command = &command
		}
	}
	for variant, diff := range x.Diff {
		r.Changes[variant] = diff
	}
	for i, s := range x.strata {
		r.Answer.Strata = append(r.Answer.Strata, StratumJSON{at(s.At), layout.Flat(x.sentence(i)), s.Winner, s.State, all(s.Ties), all(s.Excluded), all(s.Undecided), all(s.Violated), all(s.NotShown), s.Blocks, s.Dropped})
		for _, note := range x.beside(s) {
			if len(x.strata) > 1 {
				note = "At " + x.at[i] + ": " + note
			}
			r.Answer.Notes = append(r.Answer.Notes, layout.Flat(note))
		}
	}
	if note := x.unfinished(); note != "" {
		r.Answer.Notes = append(r.Answer.Notes, layout.Flat(note))
	}
	if z := x.Run.Frozen; z != nil {
		r.Design.Matters, r.Design.Alpha, r.Design.Level = z.Matters, number(z.Alpha), number(z.Level)
		r.Design.Comparisons, r.Design.Looks, r.Design.Blocks, r.Design.Note = z.Comparison, all(z.Looks), z.Blocks, z.Note
		for _, o := range z.Rates {
			r.Design.OpenLoops = append(r.Design.OpenLoops, OpenRateJSON{at(o.At), o.Rate, o.Share, o.Capacity, o.Trials})
		}
		if z.Noise.Trials > 0 {
			n := &NoiseJSON{z.Noise.Trials, map[hakaru.Metric]float64{}, map[hakaru.Metric]int{}, z.Noise.Took.Seconds()}
			for m, cv := range z.Noise.CV {
				if finite(cv) {
					n.CV[m] = cv
				}
			}
			for m, b := range z.Noise.BlocksNeeded {
				n.BlocksNeeded[m] = b
			}
			r.Noise = n
		}
	}
	for _, v := range e.Variants {
		r.Variants = append(r.Variants, x.variantJSON(v))
	}
	for _, l := range x.Limits {
		j := LimitJSON{l.Metric, at(l.At), l.Variant, l.Limit, l.Atleast, nil, nil, nil, l.Trials, l.Verdict, l.Reason}
		if l.Trials > 0 {
			j.Value = number(l.Value)
			if l.Low != 0 || l.High != 0 || l.Verdict != hakaru.NotShown {
				j.Low, j.High = number(l.Low), number(l.High)
			}
		}
		r.Limits = append(r.Limits, j)
	}
	for _, c := range x.Comparisons {
		j := ComparisonJSON{Metric: c.Metric, At: at(c.At), Base: c.Base, Other: c.Other, Level: c.Level, Verdict: c.Verdict, Judged: c.Judged,
			Blocks: c.Blocks, Trials: c.Trials, MoreBlocks: c.MoreBlocks, Warnings: warningsJSON(c.Warnings)}
		if c.Blocks > 0 && c.Ratio > 0 {
			j.Ratio = number(c.Ratio)
		}
		if c.Blocks > 0 && wording.HasInterval(&c) {
			j.Low, j.High, j.SameLow, j.SameHigh = number(c.Low), number(c.High), number(c.SameLow), number(c.SameHigh)
		}
		r.Comparisons = append(r.Comparisons, j)
	}
	for i := range x.History {
		r.Trials = append(r.Trials, trialJSON(&x.History[i]))
	}
	return r
}

// state is unclear where nothing was judged yet.
func (x *index) state() compare.State {
	if x.Outcome.State == "" {
		return compare.StateUnclear
	}
	return x.Outcome.State
}

// commonWinner is the winner where all strata have the same one.
func (x *index) commonWinner() string {
	winner := ""
	for i, s := range x.strata {
		if i > 0 && s.Winner != winner {
			return ""
		}
		winner = s.Winner
	}
	return winner
}

func (x *index) variantJSON(v hakaru.Variant) VariantJSON {
	j := VariantJSON{Name: v.Name, Baseline: v.Name == x.exp.Baseline, Settings: []SettingJSON{}, Strata: []ReachedJSON{}}
	for _, s := range v.Settings {
		set := SettingJSON{s.Service, s.Name, s.Level, s.Value}
		if redact.Secret(s.Name) && s.Value != nil {
			secret := redact.Mask
			set.Level, set.Value = secret, &secret
		}
		j.Settings = append(j.Settings, set)
	}
	for i, s := range x.strata {
		t := x.tally(v.Name, x.at[i])
		reached := ReachedJSON{At: at(s.At), Trials: t.valid, Void: t.void, Medians: map[hakaru.Metric]FigureJSON{}}
		for m, f := range t.median {
			reached.Medians[m] = FigureJSON{number(f.Value), f.Unit}
		}
		if u := x.unusable(v.Name, x.at[i]); u != nil {
			reached.Unusable = &VoidJSON{Reason: u.Reason, Evidence: u.Evidence}
		}
		j.Strata = append(j.Strata, reached)
	}
	return j
}

func trialJSON(r *hakaru.Result) TrialJSON {
	t := TrialJSON{
		Seq: r.Seq, Phase: r.Phase, Block: r.Block, Attempt: r.Attempt, Variant: r.Variant, At: at(r.At), Host: r.Host,
		Started: r.Started, Took: r.Took.Seconds(), WarmUp: r.WarmUp.Seconds(), Window: r.Window.Seconds(),
		Measurements: map[hakaru.Metric]MeasurementJSON{}, Proofs: []ProofJSON{}, Warnings: warningsJSON(r.Warnings),
	}
	if r.Void != nil {
		t.Void = &VoidJSON{r.Void.Reason, r.Void.Evidence, r.Void.Hint, r.Void.Foreign}
	}
	for _, m := range r.Measurements {
		j, known := t.Measurements[m.Metric]
		if !known {
			j = MeasurementJSON{Unit: m.Unit, Services: map[string]*float64{}}
		}
		if m.Of == "" {
			j.Value, j.Open = number(m.Value), m.Open
		} else {
			j.Services[m.Of] = number(m.Value)
		}
		t.Measurements[m.Metric] = j
	}
	if sums := r.Totals; sums != nil {
		t.Totals = totalsJSON(sums)
	}
	if o := r.Open; o != nil {
		t.Open = openJSON(o)
	}
	if c := r.Capacity; c != nil {
		t.Capacity = capacityJSON(c)
	}
	for _, p := range r.Proofs {
		if redact.Secret(p.Setting) {
			p.Asked, p.Found = hide(p.Asked), hide(p.Found)
		}
		t.Proofs = append(t.Proofs, ProofJSON{p.Service, p.Setting, p.Asked, p.Found, p.Source, p.When, p.Holds})
	}
	return t
}

func totalsJSON(t *hakaru.Totals) *TotalsJSON {
	j := &TotalsJSON{
		Command: t.Command, Took: t.Took.Seconds(), Good: t.Good, Closed: t.Closed, Kinds: map[string]uint64{},
		Quantiles: map[hakaru.Metric]*float64{}, Failed: t.Failed,
	}
	if !t.BadUnknown {
		j.Bad = &t.Bad
	}
	for kind, n := range t.Kinds {
		j.Kinds[kind] = n
	}
	for m, v := range t.Quantiles {
		j.Quantiles[m] = number(v)
	}
	if t.Throughput > 0 {
		j.Throughput = number(t.Throughput)
	}
	if t.Score != nil {
		j.Score = number(*t.Score)
	}
	return j
}

func openJSON(o *hakaru.OpenPhase) *OpenJSON {
	j := &OpenJSON{Rate: o.Rate, Whole: o.Whole, WarmUp: o.WarmUp.Seconds(), Window: o.Window.Seconds()}
	if o.Share > 0 {
		j.Share = number(o.Share)
	}
	if t := o.Tally; t != nil {
		j.Due, j.Queued, j.Unsent = &t.Due, &t.Queued, &t.Unsent
		if lag, err := latency.Decode(t.Lag); err == nil && lag.Count() > 0 {
			j.Lag50, j.Lag99 = number(lag.Quantile(0.50).Seconds()), number(lag.Quantile(0.99).Seconds())
		}
	}
	return j
}

func capacityJSON(c *hakaru.CapacityReport) *CapacityJSON {
	j := &CapacityJSON{Value: c.Value, Low: c.Low, High: c.High, Reached: c.Reached, Steps: []StepJSON{}}
	for _, s := range c.Steps {
		step := StepJSON{Rate: s.Rate, Achieved: number(s.Achieved), Errors: number(s.Errors), Values: map[string]*float64{}, Holds: s.Holds, Why: s.Why, Void: s.Void}
		for name, v := range s.Values {
			step.Values[name] = number(v)
		}
		j.Steps = append(j.Steps, step)
	}
	return j
}

func environmentJSON(e hakaru.Environment) EnvironmentJSON {
	return EnvironmentJSON{e.Hakaru, e.Hostname, e.Kernel, e.CPUModel, e.CPUs, e.Memory, at(e.Limits), at(e.Programs)}
}

func warningsJSON(ws []hakaru.Warning) []WarningJSON {
	all := make([]WarningJSON, 0, len(ws))
	for _, w := range ws {
		all = append(all, WarningJSON{w.Code, w.Message})
	}
	return all
}

// number gives null for what JSON cannot hold.
func number(v float64) *float64 {
	if !finite(v) {
		return nil
	}
	return &v
}

// at gives {} for no map, and all [] for no slice, so that a reader need not
// ask for null. Both copy: what is redacted later is the report's own.
func at(m map[string]string) map[string]string {
	c := make(map[string]string, len(m))
	for k, v := range m {
		c[k] = v
	}
	return c
}

func all[T any](s []T) []T { return append([]T{}, s...) }

// redactAll redacts every string that can be reached, so that no field can be
// forgotten, and makes it UTF-8. Control characters are escaped by JSON itself.
func redactAll(v reflect.Value) {
	switch v.Kind() {
	case reflect.String:
		v.SetString(strings.ToValidUTF8(redact.Text(v.String()), "\uFFFD"))
	case reflect.Pointer:
		if !v.IsNil() {
			if v.Type().Elem().Kind() == reflect.String { // may be shared with the input
				fresh := reflect.New(v.Type().Elem())
				fresh.Elem().Set(v.Elem())
				v.Set(fresh)
			}
			redactAll(v.Elem())
		}
	case reflect.Slice:
		for i := range v.Len() {
			redactAll(v.Index(i))
		}
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() {
			return
		}
		for i := range v.NumField() {
			redactAll(v.Field(i))
		}
	case reflect.Map:
		for _, k := range v.MapKeys() {
			e := reflect.New(v.Type().Elem()).Elem()
			e.Set(v.MapIndex(k))
			redactAll(e)
			v.SetMapIndex(k, e)
		}
	}
}

func finite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }
