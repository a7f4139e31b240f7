package report

import (
	"time"

	"hakaru"
	"hakaru/internal/compare"
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
	Open         *OpenJSON                         `json:"open"`
	Capacity     *CapacityJSON                     `json:"capacity"`
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
	Closed     uint64                     `json:"closed"`
	Throughput *float64                   `json:"throughput"`
	Quantiles  map[hakaru.Metric]*float64 `json:"quantiles"`
	Score      *float64                   `json:"score"`
	Failed     string                     `json:"failed"`
}

// OpenJSON is the open loop that latencies are of; null where there was none.
type OpenJSON struct {
	Rate   float64  `json:"rate"`
	Share  *float64 `json:"share"`
	Whole  bool     `json:"whole"`
	WarmUp float64  `json:"warm_up_seconds"`
	Window float64  `json:"window_seconds"`
	Due    *uint64  `json:"due"`
	Queued *uint64  `json:"queued"`
	Unsent *uint64  `json:"unsent"`
	Lag50  *float64 `json:"lag_p50_seconds"`
	Lag99  *float64 `json:"lag_p99_seconds"`
}

// CapacityJSON is what a search for the capacity found; null where there was none.
type CapacityJSON struct {
	Value   float64    `json:"value"`
	Low     float64    `json:"low"`
	High    float64    `json:"high"`
	Reached string     `json:"reached"`
	Steps   []StepJSON `json:"steps"`
}

// StepJSON is a rate that was tried.
type StepJSON struct {
	Rate     float64             `json:"rate"`
	Achieved *float64            `json:"achieved"`
	Errors   *float64            `json:"errors"`
	Values   map[string]*float64 `json:"values"`
	Holds    bool                `json:"holds"`
	Why      string              `json:"why"`
	Void     string              `json:"void"`
}

// VoidJSON says why a trial or a variant does not count.
type VoidJSON struct {
	Reason   hakaru.VoidReason `json:"reason"`
	Evidence string            `json:"evidence"`
	Hint     string            `json:"hint"`
	Foreign  bool              `json:"foreign"`
}

// MeasurementJSON is one metric of a trial: of the whole stack, and of each
// service that has a figure of its own.
type MeasurementJSON struct {
	Value    *float64            `json:"value"`
	Unit     string              `json:"unit"`
	Services map[string]*float64 `json:"services"`
	Open     bool                `json:"open"`
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
	OpenLoops   []OpenRateJSON      `json:"open_loops"`
	Complete    int                 `json:"complete_blocks"`
	Dropped     int                 `json:"dropped_blocks"`
	Void        int                 `json:"void_trials"`
}

// OpenRateJSON is the rate of the open loop in a stratum.
type OpenRateJSON struct {
	At       map[string]string `json:"at"`
	Rate     float64           `json:"rate"`
	Share    float64           `json:"share"`
	Capacity float64           `json:"capacity"`
	Trials   int               `json:"trials"`
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
