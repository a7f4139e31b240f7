// Package hakaru holds the nouns of the program: what a person asked for
// (Experiment), what was planned (Trial, Block), what was seen (Result and its
// parts) and what may be said about it (Comparison, LimitResult).
//
// The same types are stored, travel between the conductor and its agents, and
// are read back years later, so every one of them survives a round trip through
// JSON, and a field is only ever added, never given another meaning.
// Durations are time.Duration (JSON: nanoseconds), rates are float64 in 1/s,
// sizes are bytes, shares are 0..1.
//
// The package imports the standard library only and does nothing: no file, no
// process, no clock.
package hakaru

import (
	"strings"
	"time"
)

// StoreFormat is the version of everything in this package as it is stored.
// A store with a higher number is refused, a lower one is read for ever.
const StoreFormat = 1

// Phase says what a trial is for.
type Phase string

const (
	// Calibrate trials run the baseline only; they set noise and cost and are
	// never part of a verdict.
	Calibrate Phase = "calibrate"
	Compare   Phase = "compare"
	Search    Phase = "search"
	Confirm   Phase = "confirm"
)

// Trial is one start of the service under one variant: warm-up, measured
// window, stop. It is the unit of statistics.
type Trial struct {
	Run     string            `json:"run,omitempty"`
	Seq     int               `json:"seq"` // order in which trials were run, from 1; given when it is run
	Phase   Phase             `json:"phase"`
	Block   int               `json:"block"`   // from 1, unique within the run
	Attempt int               `json:"attempt"` // from 1; 2 and 3 are re-runs of a void trial
	Variant string            `json:"variant"`
	At      map[string]string `json:"at,omitempty"` // stratum: name of each at level
	Host    string            `json:"host,omitempty"`
}

// Key identifies a trial within its run: the same key is never run twice
// (a void trial is re-run under the next attempt).
type Key struct {
	Block, Attempt int
	Variant        string
}

// Key returns the trial's identity within its run.
func (t Trial) Key() Key { return Key{t.Block, t.Attempt, t.Variant} }

// Block is the unit of dispatch: all its trials run on one host, in this order,
// within one stratum.
type Block struct {
	N      int               `json:"n"`
	Phase  Phase             `json:"phase"`
	At     map[string]string `json:"at,omitempty"`
	Trials []Trial           `json:"trials"`
}

// BucketWidth is the length of a Bucket.
const BucketWidth = 500 * time.Millisecond

// Bucket is half a second of a trial, warm-up included, so that another
// warm-up can be cut later.
type Bucket struct {
	At       time.Duration     `json:"at"` // start of the bucket, from the start of the load
	Good     uint64            `json:"good"`
	Bad      uint64            `json:"bad"`
	Kinds    map[string]uint64 `json:"kinds,omitempty"`    // bad ones by ErrorKind
	Latency  []byte            `json:"latency,omitempty"`  // of good answers; see internal/latency
	Counters []float64         `json:"counters,omitempty"` // in the order of Result.Counters
	Variant  string            `json:"variant,omitempty"`  // whose slice it was, where a trial alternates between variants
	// Sending is set while a load program's measured run is under way at the end
	// of the bucket: told as it goes, and kept in no result.
	Sending bool `json:"sending,omitempty"`
}

// Counter names one column of Bucket.Counters.
type Counter struct {
	Name  string `json:"name"`            // one of the Counter… names below
	Of    string `json:"of,omitempty"`    // a service's name, or OfGenerator, OfOthers, OfHost, OfAgent
	Gauge bool   `json:"gauge,omitempty"` // the value at the end of the bucket; otherwise the increase during it
}

// Names of whom a figure is about, beside the names of services.
const (
	OfGenerator = "generator" // the load host's process
	OfOthers    = "others"    // everything on the machine but the services, the generator and the agent
	OfHost      = "host"      // the machine
	// OfLoad is whose output a load program's is.
	OfLoad = "load:program"
	// OfAgent is the process on the service host that samples and reads what
	// services write; with a colon, which no service's name has.
	OfAgent = "agent:service"
)

// Names of counters.
const (
	CounterCPU            = "cpu"             // CPU seconds used (user and system)
	CounterWait           = "cpu_wait"        // seconds in which a thread was runnable and had no CPU (schedstat)
	CounterHotThread      = "hot_thread"      // CPU+wait seconds of the busiest single thread
	CounterMemory         = "memory"          // bytes, proportional set size (gauge)
	CounterProcesses      = "processes"       // live processes (gauge)
	CounterListenOverflow = "listen_overflow" // connections the kernel dropped because an accept queue was full
	CounterBacklog        = "backlog"         // granted by the kernel; the least of its listeners' (gauge)
	CounterThrottled      = "throttled"       // seconds throttled by a CPU quota
	CounterStolen         = "stolen"          // CPU seconds taken by the hypervisor
	CounterCPUs           = "cpus"            // CPUs available to it (gauge)
	CounterConnects       = "connects"        // connections the generator opened
	CounterRetried        = "retried"         // requests sent again because the service had closed an idle connection
)

// Measurement is one figure of one trial, over its measured window.
type Measurement struct {
	Metric Metric  `json:"metric"`
	Of     string  `json:"of,omitempty"` // service; empty: the whole stack
	Value  float64 `json:"value"`
	Unit   string  `json:"unit"` // "1/s", "s", "B", "ratio", "cpus", "1"
	// Open is set on a latency of an open loop, which counts from when a request
	// was due. One of a closed loop is shown, and never judged: a slow service
	// slows its own load down.
	Open bool `json:"open,omitempty"`
}

// Metric names something that is measured per trial.
type Metric string

const (
	Throughput    Metric = "throughput"      // good answers per second; more is better
	CPUPerRequest Metric = "cpu_per_request" // CPU seconds of the services per good answer
	P50           Metric = "p50"             // seconds
	P99           Metric = "p99"             // seconds
	Errors        Metric = "errors"          // share of answers the service got wrong
	Memory        Metric = "memory"          // bytes at the end of the window
	Capacity      Metric = "capacity"        // highest rate that holds the limits
	Cost          Metric = "cost"            // money per million requests
	Score         Metric = "score"           // what a load program reports; more is better

	// Of a trial with both loops, where p50 and p99 are those of the open one: shown.
	ClosedP50 Metric = "closed_p50"
	ClosedP99 Metric = "closed_p99"
)

// HigherIsBetter tells the direction of a metric.
func (m Metric) HigherIsBetter() bool {
	switch m {
	case Throughput, Capacity, Score:
		return true
	}
	return false
}

// Moment is when something was looked at.
type Moment string

const (
	AtReady   Moment = "ready"
	UnderLoad Moment = "load"
	AtEnd     Moment = "end"
)

// Proof is the evidence that a setting was, or was not, in force.
type Proof struct {
	Service string `json:"service,omitempty"`
	Setting string `json:"setting"`
	Asked   string `json:"asked"`
	Found   string `json:"found"`
	Source  string `json:"source"` // where it was read: "cmdline of pid 12", "GET /status"
	When    Moment `json:"when"`
	Holds   Held   `json:"holds"`
}

// VoidReason says why a trial does not count.
type VoidReason string

const (
	VoidNotStarted       VoidReason = "not_started"       // the service did not become ready
	VoidDied             VoidReason = "died"              // the service died or was replaced during the trial
	VoidWrongAnswers     VoidReason = "wrong_answers"     // answers that are not what was expected
	VoidLoadErrors       VoidReason = "load_errors"       // errors the load host made
	VoidAcceptQueue      VoidReason = "accept_queue"      // connections dropped, the accept queue was full
	VoidGenerator        VoidReason = "generator_limited" // the load generator was at its limit
	VoidOthers           VoidReason = "others"            // other programs took over half of the machine
	VoidThrottled        VoidReason = "throttled"         // a CPU quota the experiment did not set
	VoidProof            VoidReason = "proof_failed"      // a setting was not in force
	VoidAgent            VoidReason = "agent_lost"        // the agent or the link to it ended
	VoidNothingCompleted VoidReason = "nothing_completed" // not one good answer in the window
	VoidProgram          VoidReason = "load_program"      // the load program failed
)

// Own reports whether the reason is the variant's own doing, so that a variant
// that shows it every time is unusable; the others are the surroundings' doing.
func (r VoidReason) Own() bool {
	switch r {
	case VoidNotStarted, VoidDied, VoidWrongAnswers, VoidAcceptQueue, VoidProof, VoidNothingCompleted,
		// Programs end when the service resets or refuses them; one that cannot
		// run at all fails with the baseline as well.
		VoidProgram:
		return true
	}
	return false
}

// Void says that a trial does not count, and why.
type Void struct {
	Reason   VoidReason `json:"reason"`
	Evidence string     `json:"evidence"` // one sentence with the figures
	Hint     string     `json:"hint,omitempty"`
	// Foreign is set where the evidence is, or may be, the doing of something
	// else on the machine, whatever the reason is.
	Foreign bool `json:"foreign,omitempty"`
}

// Own reports whether the trial is void by the variant's own doing.
func (v Void) Own() bool { return v.Reason.Own() && !v.Foreign }

// Warning is doubt as a value: it is stored with the result and printed with it.
type Warning struct {
	Code    string `json:"code"` // stable, lower_case
	Message string `json:"message"`
}

// Result is all that is known of one trial. Void results are kept and shown,
// and never averaged in.
type Result struct {
	Trial
	Started   time.Time     `json:"started"`
	Took      time.Duration `json:"took"`       // start, warm-up, window and stop together
	StartTook time.Duration `json:"start_took"` // from the start of the first process until the last service was ready
	StopTook  time.Duration `json:"stop_took"`  // until nothing was left
	WarmUp    time.Duration `json:"warm_up"`    // cut from the front of Buckets
	Window    time.Duration `json:"window"`     // measured, after the warm-up
	Counters  []Counter     `json:"counters,omitempty"`
	Buckets   []Bucket      `json:"buckets,omitempty"`
	Totals    *Totals       `json:"totals,omitempty"` // of a load program, whose answers are in no bucket
	// Open is the open loop by which latency was measured; nil: there was none.
	Open *OpenPhase `json:"open,omitempty"`
	// Capacity is what a search for the highest rate found, which then was the load.
	Capacity     *CapacityReport `json:"capacity,omitempty"`
	Measurements []Measurement   `json:"measurements,omitempty"`
	Proofs       []Proof         `json:"proofs,omitempty"`
	Warnings     []Warning       `json:"warnings,omitempty"`
	Void         *Void           `json:"void,omitempty"`
}

// OpenPhase is the open loop of a trial.
type OpenPhase struct {
	Rate  float64 `json:"rate"`            // offered, 1/s
	Share float64 `json:"share,omitempty"` // of the baseline's capacity; 0: the rate was written
	// Whole is set where it was all the load there was: its buckets are the trial's.
	// Otherwise it came after the closed loop and has its own, with a clock that
	// begins at its start.
	Whole    bool          `json:"whole,omitempty"`
	WarmUp   time.Duration `json:"warm_up"`
	Window   time.Duration `json:"window"`
	Counters []Counter     `json:"counters,omitempty"`
	Buckets  []Bucket      `json:"buckets,omitempty"`
	// Tally has the load as a whole; of its histograms only Service, Lag and Own.
	Tally *Tally `json:"tally,omitempty"`
}

// Measured returns the value of a metric of the whole stack, and whether the
// trial has it.
func (r *Result) Measured(m Metric) (float64, bool) {
	for _, x := range r.Measurements {
		if x.Metric == m && x.Of == "" {
			return x.Value, true
		}
	}
	return 0, false
}

// Verdict is the answer to "is Other better than Base". The zero value claims
// nothing.
type Verdict uint8

const (
	Unclear Verdict = iota // not enough data
	Same                   // no difference that matters
	Better
	Worse
)

// LimitVerdict is the answer to "does this variant hold the limit".
type LimitVerdict uint8

const (
	NotShown LimitVerdict = iota
	Meets
	Violates
)

// Held says whether a proof holds.
type Held uint8

const (
	NotProved Held = iota
	Yes
	No
)

// Pair is one comparison that gets a verdict word: Other against Base.
type Pair struct {
	Base  string `json:"base"`
	Other string `json:"other"`
}

// Comparison is what may be said about one pair in one stratum.
type Comparison struct {
	Metric Metric            `json:"metric"`
	At     map[string]string `json:"at,omitempty"`
	Base   string            `json:"base"`
	Other  string            `json:"other"`
	Blocks int               `json:"blocks"` // complete blocks the interval stands on: those of the last look
	Trials int               `json:"trials"` // trials those blocks hold for this pair

	Ratio float64 `json:"ratio"` // Other over Base
	Low   float64 `json:"low"`   // interval at level 1-a of the look
	High  float64 `json:"high"`
	// SameLow and SameHigh are the interval at level 1-2a, the one that decides
	// "no difference that matters" (two one-sided tests).
	SameLow  float64 `json:"same_low"`
	SameHigh float64 `json:"same_high"`
	Level    float64 `json:"level"` // a: the share of false alarms this look may spend on this pair

	Verdict Verdict `json:"verdict"`
	// Judged is false for metrics other than the goal: a change with its
	// interval, without a verdict word.
	Judged     bool      `json:"judged"`
	MoreBlocks int       `json:"more_blocks,omitempty"` // about how many more would decide, where Unclear
	Warnings   []Warning `json:"warnings,omitempty"`
}

// LimitResult says whether a variant holds a limit in one stratum.
type LimitResult struct {
	Metric  Metric            `json:"metric"`
	At      map[string]string `json:"at,omitempty"`
	Variant string            `json:"variant"`
	Limit   float64           `json:"limit"`
	Atleast bool              `json:"at_least,omitempty"` // the limit is a lower bound (throughput)
	Value   float64           `json:"value"`
	Low     float64           `json:"low"` // 95 % interval over trials
	High    float64           `json:"high"`
	Trials  int               `json:"trials"`
	Verdict LimitVerdict      `json:"verdict"`
	Reason  string            `json:"reason,omitempty"` // why NotShown, or Violates where the figure alone does not say it
}

// Frozen is what is fixed and stored before the first compare block, so that
// no look at the data can change how often the data is looked at.
type Frozen struct {
	Alpha      float64 `json:"alpha"`       // family-wise share of false claims, 0.05
	Matters    float64 `json:"matters"`     // smallest ratio-1 that matters, 0.03
	Comparison int     `json:"comparisons"` // m: pairs times strata
	Looks      []int   `json:"looks"`       // complete blocks per stratum at which the data is looked at
	Level      float64 `json:"level"`       // a = Alpha/(m·len(Looks))
	Blocks     int     `json:"blocks"`      // cap, per stratum; the last look
	Noise      Noise   `json:"noise"`
	Note       string  `json:"note,omitempty"` // where a time budget was turned into blocks: how
	// Rates are those of the open loops that follow a share of the capacity.
	Rates []OpenRate `json:"rates,omitempty"`
}

// OpenRate is the rate of the open loop in one stratum, the same for all variants.
type OpenRate struct {
	At       map[string]string `json:"at,omitempty"`
	Rate     float64           `json:"rate"`     // 1/s
	Share    float64           `json:"share"`    // of Capacity
	Capacity float64           `json:"capacity"` // 1/s: the median throughput of the baseline's calibration trials there
	Trials   int               `json:"trials"`   // that it is the median of
}

// Rate returns the rate of the open loop in a stratum; false where none is settled.
func (f *Frozen) Rate(at map[string]string) (OpenRate, bool) {
	if f == nil {
		return OpenRate{}, false
	}
	for _, r := range f.Rates {
		if AtKey(r.At) == AtKey(at) {
			return r, true
		}
	}
	return OpenRate{}, false
}

// Noise is what the calibration trials showed, per metric.
type Noise struct {
	Trials       int                `json:"trials"`
	CV           map[Metric]float64 `json:"cv,omitempty"`            // run-to-run coefficient of variation
	BlocksNeeded map[Metric]int     `json:"blocks_needed,omitempty"` // to resolve Matters in four of five runs
	Took         time.Duration      `json:"took"`                    // mean of one trial, start and stop included
}

// Done says that the planner wants no more trials, and why.
type Done struct {
	State DoneState `json:"state"`
	Text  string    `json:"text"` // one sentence
}

// DoneState is the outcome of a campaign.
type DoneState string

const (
	Decided   DoneState = "decided"   // every comparison has a verdict
	Exhausted DoneState = "exhausted" // the last planned look is reached
	AllVoid   DoneState = "void"      // void trials prevail
	NoStart   DoneState = "no_start"  // the baseline could not be started
)

// Finding is the answer of a check: something in a person's file or machine.
type Finding struct {
	File     string   `json:"file,omitempty"`
	Line     int      `json:"line,omitempty"`   // from 1; 0: not about a line
	Column   int      `json:"column,omitempty"` // from 1, in bytes
	Code     string   `json:"code"`             // stable, lower-case with dashes
	Severity Severity `json:"severity"`
	Message  string   `json:"message"`
	Excerpt  string   `json:"excerpt,omitempty"` // the line
	Fix      string   `json:"fix,omitempty"`     // hint: what to write or run
}

// Severity orders findings.
type Severity uint8

const (
	Info Severity = iota
	Warn
	Error
)

// ErrorKind says how a request failed. Kinds beginning with "load_" are the
// load host's own doing.
type ErrorKind string

const (
	WrongStatus   ErrorKind = "wrong_status"
	WrongBody     ErrorKind = "wrong_body"
	BadAnswer     ErrorKind = "bad_answer" // not HTTP
	ShortBody     ErrorKind = "short_body"
	Refused       ErrorKind = "refused"
	Reset         ErrorKind = "reset"
	Closed        ErrorKind = "closed" // the service closed the connection without an answer
	TimedOut      ErrorKind = "timeout"
	Unreachable   ErrorKind = "unreachable"
	TLSFailed     ErrorKind = "tls"              // the handshake failed, or the certificate is not good
	LoadPorts     ErrorKind = "load_ports"       // the load host ran out of ports
	LoadFiles     ErrorKind = "load_descriptors" // … of file descriptors
	LoadOther     ErrorKind = "load_other"
	ServiceErrors ErrorKind = "server_error" // an answer of 5xx where another was expected
)

// Load reports whether the load host made the error.
func (k ErrorKind) Load() bool { return strings.HasPrefix(string(k), "load_") }

// Wrong reports whether it is an answer that came and is not what was expected:
// such answers void a trial, where other errors count against the limit.
func (k ErrorKind) Wrong() bool {
	return k == WrongStatus || k == WrongBody || k == BadAnswer
}
