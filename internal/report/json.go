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
	"hakaru/internal/layout"
	"hakaru/internal/redact"
	"hakaru/internal/wording"
)

// JSONFormat is the version of the names below. Fields are added without a new
// one; it rises when a name or a meaning changes. docs/report-json.md documents
// them, and a test keeps it complete.
const JSONFormat = 1

// Report is a report as JSON. Times are RFC 3339, spans are seconds, sizes
// bytes, shares and ratios plain numbers (1.12 is 12 % more). A figure that is
// not known is null.
type Report struct {
	Format      int               `json:"format"`
	Run         RunJSON           `json:"run"`
	Answer      AnswerJSON        `json:"answer"`
	Goal        hakaru.Metric     `json:"goal"`
	Load        LoadJSON          `json:"load"`
	Variants    []VariantJSON     `json:"variants"`
	Limits      []LimitJSON       `json:"limits"`
	Comparisons []ComparisonJSON  `json:"comparisons"`
	Trials      []TrialJSON       `json:"trials"`
	Design      DesignJSON        `json:"design"`
	Noise       *NoiseJSON        `json:"noise"`
	Environment EnvironmentsJSON  `json:"environment"`
	Warnings    []WarningJSON     `json:"warnings"`
	Changes     map[string]string `json:"changes"`
}

// RunJSON is the run that is reported.
type RunJSON struct {
	ID       string          `json:"id"`
	Name     string          `json:"name"`
	Question string          `json:"question"`
	Started  time.Time       `json:"started"`
	Ended    *time.Time      `json:"ended"`
	State    hakaru.RunState `json:"state"`
}

// AnswerJSON is the answer, over all strata and for each.
type AnswerJSON struct {
	Text          string        `json:"text"`
	Winner        string        `json:"winner"`
	State         compare.State `json:"state"`
	ViolatesLimit bool          `json:"violates_limit"`
	Notes         []string      `json:"notes"`
	Strata        []StratumJSON `json:"strata"`
}

// LoadJSON is what was sent. Command is null where hakaru sent it itself.
type LoadJSON struct {
	Program string  `json:"program"`
	Text    string  `json:"text"`
	Command *string `json:"command"`
}

// StratumJSON is the answer in one stratum.
type StratumJSON struct {
	At        map[string]string `json:"at"`
	Text      string            `json:"text"`
	Winner    string            `json:"winner"`
	State     compare.State     `json:"state"`
	Ties      []string          `json:"ties"`
	Excluded  []string          `json:"excluded"`
	Undecided []string          `json:"undecided"`
	Violated  []hakaru.Metric   `json:"violated"`
	NotShown  []hakaru.Metric   `json:"not_shown"`
	Blocks    int               `json:"blocks"`
	Dropped   int               `json:"dropped"`
}

// VariantJSON is a variant with what it reached in each stratum.
type VariantJSON struct {
	Name     string        `json:"name"`
	Baseline bool          `json:"baseline"`
	Settings []SettingJSON `json:"settings"`
	Strata   []ReachedJSON `json:"strata"`
}

// SettingJSON is a setting that differs from the base.
type SettingJSON struct {
	Service string  `json:"service"`
	Name    string  `json:"name"`
	Level   string  `json:"level"`
	Value   *string `json:"value"`
}

// ReachedJSON is what a variant reached in a stratum.
type ReachedJSON struct {
	At       map[string]string            `json:"at"`
	Trials   int                          `json:"trials"`
	Void     int                          `json:"void"`
	Unusable *VoidJSON                    `json:"unusable"`
	Medians  map[hakaru.Metric]FigureJSON `json:"medians"`
}

// FigureJSON is a value with its unit.
type FigureJSON struct {
	Value *float64 `json:"value"`
	Unit  string   `json:"unit"`
}

// LimitJSON is a limit for one variant in one stratum.
type LimitJSON struct {
	Metric  hakaru.Metric       `json:"metric"`
	At      map[string]string   `json:"at"`
	Variant string              `json:"variant"`
	Limit   float64             `json:"limit"`
	AtLeast bool                `json:"at_least"`
	Value   *float64            `json:"value"`
	Low     *float64            `json:"low"`
	High    *float64            `json:"high"`
	Trials  int                 `json:"trials"`
	Verdict hakaru.LimitVerdict `json:"verdict"`
	Reason  string              `json:"reason"`
}

// ComparisonJSON is one pair in one stratum.
type ComparisonJSON struct {
	Metric     hakaru.Metric     `json:"metric"`
	At         map[string]string `json:"at"`
	Base       string            `json:"base"`
	Other      string            `json:"other"`
	Ratio      *float64          `json:"ratio"`
	Low        *float64          `json:"low"`
	High       *float64          `json:"high"`
	SameLow    *float64          `json:"same_low"`
	SameHigh   *float64          `json:"same_high"`
	Level      float64           `json:"level"`
	Verdict    hakaru.Verdict    `json:"verdict"`
	Judged     bool              `json:"judged"`
	Blocks     int               `json:"blocks"`
	Trials     int               `json:"trials"`
	MoreBlocks int               `json:"more_blocks"`
	Warnings   []WarningJSON     `json:"warnings"`
}

// TrialJSON is one trial, calibration and void ones included.
type TrialJSON struct {
	Seq          int                               `json:"seq"`
	Phase        hakaru.Phase                      `json:"phase"`
	Block        int                               `json:"block"`
	Attempt      int                               `json:"attempt"`
	Variant      string                            `json:"variant"`
	At           map[string]string                 `json:"at"`
	Host         string                            `json:"host"`
	Started      time.Time                         `json:"started"`
	Took         float64                           `json:"took_seconds"`
	WarmUp       float64                           `json:"warm_up_seconds"`
	Window       float64                           `json:"window_seconds"`
	Void         *VoidJSON                         `json:"void"`
	Measurements map[hakaru.Metric]MeasurementJSON `json:"measurements"`
	Totals       *TotalsJSON                       `json:"totals"`
	Proofs       []ProofJSON                       `json:"proofs"`
	Warnings     []WarningJSON                     `json:"warnings"`
}

// TotalsJSON is what a load program told of its measured run; null where hakaru
// sent the load.
type TotalsJSON struct {
	Command    string                     `json:"command"`
	Took       float64                    `json:"took_seconds"`
	Good       uint64                     `json:"good"`
	Bad        *uint64                    `json:"bad"`
	Kinds      map[string]uint64          `json:"kinds"`
	Throughput *float64                   `json:"throughput"`
	Quantiles  map[hakaru.Metric]*float64 `json:"quantiles"`
	Score      *float64                   `json:"score"`
	Failed     string                     `json:"failed"`
}

// VoidJSON says why a trial or a variant does not count.
type VoidJSON struct {
	Reason   hakaru.VoidReason `json:"reason"`
	Evidence string            `json:"evidence"`
	Hint     string            `json:"hint"`
}

// MeasurementJSON is one metric of a trial: of the whole stack, and of each
// service that has a figure of its own.
type MeasurementJSON struct {
	Value    *float64            `json:"value"`
	Unit     string              `json:"unit"`
	Services map[string]*float64 `json:"services"`
}

// ProofJSON is the evidence that a setting was in force.
type ProofJSON struct {
	Service string        `json:"service"`
	Setting string        `json:"setting"`
	Asked   string        `json:"asked"`
	Found   string        `json:"found"`
	Source  string        `json:"source"`
	When    hakaru.Moment `json:"when"`
	Holds   hakaru.Held   `json:"holds"`
}

// WarningJSON is doubt.
type WarningJSON struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

// DesignJSON is how the run was planned and how far it came.
type DesignJSON struct {
	Method      hakaru.Method       `json:"method"`
	Baseline    string              `json:"baseline"`
	Strata      []map[string]string `json:"strata"`
	Load        string              `json:"load"`
	Seed        uint64              `json:"seed"`
	Matters     float64             `json:"matters"`
	Alpha       *float64            `json:"alpha"`
	Level       *float64            `json:"level"`
	Comparisons int                 `json:"comparisons"`
	Looks       []int               `json:"looks"`
	Blocks      int                 `json:"blocks"`
	Note        string              `json:"note"`
	Complete    int                 `json:"complete_blocks"`
	Dropped     int                 `json:"dropped_blocks"`
	Void        int                 `json:"void_trials"`
}

// NoiseJSON is what the calibration showed; null before it.
type NoiseJSON struct {
	Trials       int                       `json:"trials"`
	CV           map[hakaru.Metric]float64 `json:"cv"`
	BlocksNeeded map[hakaru.Metric]int     `json:"blocks_needed"`
	Took         float64                   `json:"took_seconds"`
}

// EnvironmentsJSON are the machines.
type EnvironmentsJSON struct {
	Service EnvironmentJSON `json:"service"`
	Load    EnvironmentJSON `json:"load"`
}

// EnvironmentJSON is the record of one machine.
type EnvironmentJSON struct {
	Hakaru   string            `json:"hakaru"`
	Hostname string            `json:"hostname"`
	Kernel   string            `json:"kernel"`
	CPUModel string            `json:"cpu_model"`
	CPUs     int               `json:"cpus"`
	Memory   uint64            `json:"memory"`
	Limits   map[string]string `json:"limits"`
	Programs map[string]string `json:"programs"`
}

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
			Looks: []int{}, Blocks: e.Design.Blocks, Complete: x.Outcome.Complete, Dropped: x.Outcome.Dropped, Void: x.Outcome.VoidTrials},
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
		if c.Blocks > 0 {
			j.Ratio, j.Low, j.High, j.SameLow, j.SameHigh = number(c.Ratio), number(c.Low), number(c.High), number(c.SameLow), number(c.SameHigh)
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
		t.Void = &VoidJSON{r.Void.Reason, r.Void.Evidence, r.Void.Hint}
	}
	for _, m := range r.Measurements {
		j, known := t.Measurements[m.Metric]
		if !known {
			j = MeasurementJSON{Unit: m.Unit, Services: map[string]*float64{}}
		}
		if m.Of == "" {
			j.Value = number(m.Value)
		} else {
			j.Services[m.Of] = number(m.Value)
		}
		t.Measurements[m.Metric] = j
	}
	if sums := r.Totals; sums != nil {
		t.Totals = totalsJSON(sums)
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
		Command: t.Command, Took: t.Took.Seconds(), Good: t.Good, Kinds: map[string]uint64{},
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
