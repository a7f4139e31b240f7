package loadreport

import (
	"encoding/json"
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
	"hakaru/internal/redact"
)

// JSONFormat is the version of the names below. Fields are added without a new
// one; it rises when a name or a meaning changes. docs/load.md documents them, and
// a test keeps it complete.
const JSONFormat = 1

// Report is a load as JSON. Times are RFC 3339, spans are seconds, sizes bytes,
// rates 1/s, shares plain numbers. A figure that is not known is null.
type Report struct {
	Format     int               `json:"format"`
	Started    time.Time         `json:"started"`
	OK         bool              `json:"ok"`
	Failures   []string          `json:"failures"`
	Stopped    string            `json:"stopped"`
	Asked      AskedJSON         `json:"asked"`
	Address    string            `json:"address"`
	Resolved   []string          `json:"resolved"`
	Took       float64           `json:"took_seconds"`
	Throughput *float64          `json:"throughput"`
	Good       uint64            `json:"good"`
	Bad        uint64            `json:"bad"`
	Errors     *float64          `json:"errors"`
	Kinds      map[string]uint64 `json:"kinds"`
	Samples    []SampleJSON      `json:"samples"`
	Statuses   map[int]uint64    `json:"statuses"`
	Bytes      uint64            `json:"bytes"`

	Connections ConnectionsJSON `json:"connections"`

	Latency *SpreadJSON `json:"latency"`
	Service *SpreadJSON `json:"service"`
	Waiting *SpreadJSON `json:"waiting"`
	Connect *SpreadJSON `json:"connect"`
	Failed  *SpreadJSON `json:"failed"`

	Open       *OpenJSON       `json:"open"`
	Generator  GeneratorJSON   `json:"generator"`
	Thresholds []ThresholdJSON `json:"thresholds"`
	Capacity   *CapacityJSON   `json:"capacity"`
	Warnings   []WarningJSON   `json:"warnings"`
}

// AskedJSON is the load as it was asked for.
type AskedJSON struct {
	URL         string   `json:"url"`
	Method      string   `json:"method"`
	Connections int      `json:"connections"`
	KeepAlive   bool     `json:"keep_alive"`
	HTTP        string   `json:"http"`
	Requests    *uint64  `json:"requests"`
	WarmUp      float64  `json:"warm_up_seconds"`
	Duration    *float64 `json:"duration_seconds"`
	Timeout     float64  `json:"timeout_seconds"`
	Loop        string   `json:"loop"`
	Law         *LawJSON `json:"law"`
}

// LawJSON says when requests were due.
type LawJSON struct {
	Name  hakaru.ArrivalLaw `json:"name"`
	Rate  *float64          `json:"rate"`
	To    *float64          `json:"to"`
	Seed  uint64            `json:"seed"`
	Steps []LawStepJSON     `json:"steps"`
}

// LawStepJSON is a rate for a time.
type LawStepJSON struct {
	Rate float64 `json:"rate"`
	For  float64 `json:"for_seconds"`
}

// SampleJSON is one bad answer in words.
type SampleJSON struct {
	Kind hakaru.ErrorKind `json:"kind"`
	Text string           `json:"text"`
}

// ConnectionsJSON counts connections.
type ConnectionsJSON struct {
	Stood   int    `json:"stood"`
	Opened  uint64 `json:"opened"`
	Retried uint64 `json:"retried"`
}

// SpreadJSON is a histogram: figures of it, and the whole.
type SpreadJSON struct {
	Count uint64   `json:"count"`
	Min   float64  `json:"min_seconds"`
	Mean  float64  `json:"mean_seconds"`
	SD    float64  `json:"sd_seconds"`
	P50   *float64 `json:"p50_seconds"`
	P90   *float64 `json:"p90_seconds"`
	P95   *float64 `json:"p95_seconds"`
	P99   *float64 `json:"p99_seconds"`
	P999  *float64 `json:"p99_9_seconds"`
	P9999 *float64 `json:"p99_99_seconds"`
	Max   float64  `json:"max_seconds"`
	HDR   []byte   `json:"hdr"`
}

// OpenJSON is what an open loop has beside.
type OpenJSON struct {
	Offered  *float64    `json:"offered"`
	Achieved *float64    `json:"achieved"`
	Reached  bool        `json:"reached"`
	Due      uint64      `json:"due"`
	Queued   uint64      `json:"queued"`
	Unsent   uint64      `json:"unsent"`
	Lag      *SpreadJSON `json:"lag"`
}

// GeneratorJSON is what the load cost hakaru itself.
type GeneratorJSON struct {
	Engine  string  `json:"engine"`
	Threads int     `json:"threads"`
	CPU     float64 `json:"cpu_seconds"`
	CPUs    int     `json:"cpus"`
	Waited  float64 `json:"cpu_wait_seconds"`
	GCs     uint32  `json:"collections"`
	GCPause float64 `json:"longest_collection_seconds"`
}

// ThresholdJSON is a threshold and what became of it.
type ThresholdJSON struct {
	Text  string   `json:"text"`
	Value *float64 `json:"value"`
	Holds bool     `json:"holds"`
	Words string   `json:"words"`
}

// CapacityJSON is what a search for the capacity found.
type CapacityJSON struct {
	Holds   string     `json:"holds"`
	Value   float64    `json:"value"`
	Low     float64    `json:"low"`
	High    float64    `json:"high"`
	Reached string     `json:"reached"`
	Steps   []StepJSON `json:"steps"`
}

// StepJSON is one rate that was held for a time.
type StepJSON struct {
	Rate     float64             `json:"rate"`
	Achieved float64             `json:"achieved"`
	Errors   float64             `json:"errors"`
	Holds    bool                `json:"holds"`
	Why      string              `json:"why"`
	Void     string              `json:"void"`
	Values   map[string]*float64 `json:"values"`
	Latency  *SpreadJSON         `json:"latency"`
}

// WarningJSON is something to doubt.
type WarningJSON struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

// JSON writes the report for programs.
func (r *Result) JSON(w io.Writer) error {
	j, err := r.report()
	if err != nil {
		return err
	}
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	return enc.Encode(j)
}

func (r *Result) report() (Report, error) {
	t, q := r.tally, &r.Request
	j := Report{
		Format: JSONFormat, Started: r.Started, OK: len(r.Failures) == 0 && r.Stopped == "", Failures: texts(r.Failures), Stopped: text(r.Stopped),
		Asked: AskedJSON{
			URL: text(q.URL), Method: text(q.Method), Connections: q.Connections, KeepAlive: q.KeepAlive, HTTP: q.Version,
			WarmUp: r.Window.WarmUp.Seconds(), Timeout: q.Timeout.Seconds(), Loop: "closed",
		},
		Address: text(t.Address), Resolved: texts(t.Resolved),
		Took: t.Took.Seconds(), Throughput: number(perSecond(float64(t.Good), t.Took)), Good: t.Good, Bad: t.Bad,
		Errors: number(float64(t.Bad) / float64(r.answers())), Kinds: map[string]uint64{}, Samples: []SampleJSON{}, Statuses: map[int]uint64{}, Bytes: t.Bytes,
		Connections: ConnectionsJSON{r.Report.Connections, t.Connects, t.Retried},
		Generator:   GeneratorJSON{t.Engine, t.Threads, t.CPU, t.CPUs, t.Waited, t.GCs, t.GCPause.Seconds()},
		Thresholds:  []ThresholdJSON{}, Warnings: []WarningJSON{},
	}
	if j.Asked.HTTP == "" {
		j.Asked.HTTP = "1.1"
	}
	if q.Requests > 0 {
		j.Asked.Requests = &q.Requests
	}
	if r.Window.Length > 0 {
		j.Asked.Duration = number(r.Window.Length.Seconds())
	}
	if a := q.Arrival; a != nil {
		j.Asked.Loop, j.Asked.Law = "open", lawJSON(a)
	}
	if r.Search != nil {
		j.Asked.Loop = "search"
	}
	if r.open() {
		offered, achieved := r.rates()
		j.Open = &OpenJSON{Offered: number(offered), Achieved: number(achieved), Reached: r.kept(), Due: t.Due, Queued: t.Queued, Unsent: t.Unsent}
	}
	for kind, n := range t.Kinds {
		j.Kinds[kind] = n
	}
	for _, s := range r.Report.Samples {
		j.Samples = append(j.Samples, SampleJSON{s.Kind, text(s.Text)})
	}
	maps.Copy(j.Statuses, t.Statuses)
	for _, part := range []struct {
		to   **SpreadJSON
		from *latency.Histogram
	}{
		{&j.Latency, r.took.latency}, {&j.Service, r.took.service}, {&j.Waiting, r.took.waiting},
		{&j.Connect, r.took.connect}, {&j.Failed, r.took.failed},
	} {
		var err error
		if *part.to, err = spreadJSON(part.from); err != nil {
			return j, err
		}
	}
	if j.Open != nil {
		var err error
		if j.Open.Lag, err = spreadJSON(r.took.lag); err != nil {
			return j, err
		}
	}
	for _, o := range r.outcomes {
		j.Thresholds = append(j.Thresholds, ThresholdJSON{condition.String(o.Condition), number(o.Value), o.Holds, o.Words})
	}
	if c := r.Report.Capacity; c != nil && r.Search != nil {
		j.Capacity = &CapacityJSON{condition.Join(r.Search.Holds), c.Value, c.Low, c.High, text(c.Reached), []StepJSON{}}
		for _, s := range c.Steps {
			h, err := latency.Decode(s.Latency)
			if err != nil {
				return j, err
			}
			step := StepJSON{s.Rate, s.Achieved, s.Errors, s.Holds, text(s.Why), text(s.Void), map[string]*float64{}, nil}
			for name, value := range s.Values {
				step.Values[name] = number(value)
			}
			if step.Latency, err = spreadJSON(h); err != nil {
				return j, err
			}
			j.Capacity.Steps = append(j.Capacity.Steps, step)
		}
	}
	for _, warning := range r.Warnings {
		j.Warnings = append(j.Warnings, WarningJSON{warning.Code, text(warning.Message)})
	}
	return j, nil
}

func lawJSON(a *hakaru.Arrival) *LawJSON {
	j := &LawJSON{Name: a.Law, Seed: a.Seed, Steps: []LawStepJSON{}}
	if a.Rate > 0 {
		j.Rate = number(a.Rate)
	}
	if a.Law == hakaru.RampRate {
		j.To = number(a.To)
	}
	for _, s := range a.Steps {
		j.Steps = append(j.Steps, LawStepJSON{s.Rate, s.For.Seconds()})
	}
	return j
}

// spreadJSON is null for nothing.
func spreadJSON(h *latency.Histogram) (*SpreadJSON, error) {
	if h.Count() == 0 {
		return nil, nil
	}
	encoded, err := h.Encode()
	if err != nil {
		return nil, err
	}
	q := func(share float64) *float64 { return number(quantile(h, share)) }
	return &SpreadJSON{
		Count: h.Count(), Min: h.Quantile(0).Seconds(), Mean: h.Mean().Seconds(), SD: h.StdDev().Seconds(),
		P50: q(0.5), P90: q(0.9), P95: q(0.95), P99: q(0.99), P999: q(0.999), P9999: q(0.9999), Max: h.Max().Seconds(), HDR: encoded,
	}, nil
}

// number is null for what is none.
func number(v float64) *float64 {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return nil
	}
	return &v
}

// text is fit to leave: without secrets, in UTF-8, with plain blanks.
func text(s string) string {
	return strings.ToValidUTF8(redact.Text(layout.Flat(s)), "\uFFFD")
}

func texts(all []string) []string {
	fit := slices.Clone(all)
	for i := range fit {
		fit[i] = text(fit[i])
	}
	if fit == nil {
		return []string{}
	}
	return fit
}
