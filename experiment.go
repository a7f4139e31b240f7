package hakaru

import "time"

// Experiment is what a person wrote, checked and expanded: internal/experiment
// makes it from YAML. Texts may still hold placeholders {name}; they are
// replaced when a trial is rendered.
type Experiment struct {
	Name     string `json:"name"` // of the file, or of its directory where the file is hakaru.yaml
	Question string `json:"question,omitempty"`
	// Dir is the directory of the file, absolute: where services run and
	// relative paths start.
	Dir string `json:"dir"`
	// Sources are the experiment file and the person's own config files as they
	// were read, in that order.
	Sources []File `json:"sources,omitempty"`

	Services []Service         `json:"services"`          // in start order
	Sockets  map[string]string `json:"sockets,omitempty"` // name → family: "tcp", "unix", or a placeholder
	Params   map[string]string `json:"params,omitempty"`

	Factors  []Factor            `json:"factors,omitempty"` // empty where variants were written out
	Variants []Variant           `json:"variants"`          // expanded, in order; never empty
	Levels   []Factor            `json:"at,omitempty"`      // what the strata are crossed of
	Strata   []map[string]string `json:"strata"`            // level names; one empty map where there is no `at`
	Baseline string              `json:"baseline"`
	Pairs    []Pair              `json:"pairs"` // what gets a verdict word, distinct, in order of Variants

	Load   Load    `json:"load"`
	Goal   Metric  `json:"goal"`
	Limits []Limit `json:"limits,omitempty"`
	Prove  []Ask   `json:"prove,omitempty"`
	Design Design  `json:"design"`

	// ActsAfter is the time that settings need to act: the shortest of their levels.
	ActsAfter map[string]time.Duration `json:"acts_after,omitempty"`

	ServiceHost HostSpec `json:"service_host"`
	LoadHost    HostSpec `json:"load_host"`
	Allow       []string `json:"allow,omitempty"`

	// NotYet names the parts of the file that this version understands and
	// cannot carry out. Such an experiment validates and plans, and does not run.
	NotYet []Finding `json:"not_yet,omitempty"`
}

// Stratum returns whether the experiment has more than the one empty stratum.
func (e *Experiment) Stratified() bool { return len(e.Levels) > 0 }

// Source returns a file of Sources as it was read; the zero File where it is none.
func (e *Experiment) Source(path string) File {
	for _, f := range e.Sources {
		if f.Path == path && path != "" {
			return f
		}
	}
	return File{}
}

// Variant returns a variant by name.
func (e *Experiment) Variant(name string) (Variant, bool) {
	for _, v := range e.Variants {
		if v.Name == name {
			return v, true
		}
	}
	return Variant{}, false
}

// File is a file by path and content.
type File struct {
	Path    string `json:"path"`
	Content string `json:"content"`
	Mode    uint32 `json:"mode,omitempty"` // 0: 0600
}

// Setting is one setting with its value; a null value leaves the line out.
type Setting struct {
	Service string  `json:"service,omitempty"` // in a stack: whose; empty: the only service, or a placeholder
	Name    string  `json:"name"`
	Level   string  `json:"level"` // name of the level: the value itself unless it was given one
	Value   *string `json:"value"` // nil: null
}

// FullName is the name a setting is written by: in a stack with its service.
func (s Setting) FullName() string {
	if s.Service != "" {
		return s.Service + "." + s.Name
	}
	return s.Name
}

// Factor is a setting with its levels, the first one the baseline's.
type Factor struct {
	Name   string    `json:"name"`
	Levels []Setting `json:"levels"`
}

// Variant is one combination of settings. Settings override the Base of their
// service.
type Variant struct {
	Name     string    `json:"name"`
	From     string    `json:"from,omitempty"`
	Settings []Setting `json:"settings,omitempty"` // all that differ from base, `from` resolved, in order of appearance
	// Idle are settings that do nothing in this variant, by full name → what
	// they would need.
	Idle map[string]string `json:"idle,omitempty"`
	// ActsAfter has the settings whose value in this variant needs longer to act
	// than Experiment.ActsAfter says, by full name.
	ActsAfter map[string]time.Duration `json:"acts_after,omitempty"`
}

// Service is one program to start, as written.
type Service struct {
	Name     string            `json:"name"` // "service" where the file has only one
	Kind     string            `json:"kind"` // see internal/kind; "command" knows nothing
	Run      []string          `json:"run"`  // words
	Dir      string            `json:"dir,omitempty"`
	Env      []EnvVar          `json:"env,omitempty"`
	Settings string            `json:"settings,omitempty"` // path of the person's config file; a copy is edited
	Files    map[string]string `json:"files,omitempty"`    // further files to write, path in the private directory → content
	Ports    []string          `json:"ports,omitempty"`
	Base     []Setting         `json:"base,omitempty"`
	Ready    Ready             `json:"ready"`
	Stop     Stop              `json:"stop"`
	User     string            `json:"user,omitempty"`
	After    []string          `json:"after,omitempty"`
	Only     map[string]string `json:"only,omitempty"` // factor → level: present only in such variants

	// SQL is where proofs by SQL are asked: "user:password@tcp(host:port)/" or
	// "user@unix(/path)/"; empty: where the kind says.
	SQL string `json:"sql,omitempty"`
	// Unread are config files that the program reads of itself, and the experiment
	// does not name: what they say is not known.
	Unread []string `json:"unread,omitempty"`

	// Attach is the right answer of a service that something else starts. Its
	// commands are run without a shell: Apply brings {file}, the edited copy, into
	// place, Restart makes it count, and Undo puts everything back.
	Attach  *Ready `json:"attach,omitempty"`
	Apply   string `json:"apply,omitempty"`
	Restart string `json:"restart,omitempty"`
	Undo    string `json:"undo,omitempty"`

	// Build makes the program of the service, once before the first trial, and
	// once for each version of the factor git.
	Build string `json:"build,omitempty"`

	// Understood, not yet carried out.
	Data *Data `json:"data,omitempty"`
}

// EnvVar is an environment variable; a nil value removes it.
type EnvVar struct {
	Name  string  `json:"name"`
	Value *string `json:"value"`
}

// Data says how a service's data directory is filled, and what each trial gets.
type Data struct {
	Prepare   string `json:"prepare,omitempty"`
	EachTrial string `json:"each_trial,omitempty"` // "copy", "keep"
}

// Ready says what the right answer is. With neither Get nor Connect nor Log
// nothing can be known but that the process lives.
type Ready struct {
	Get     string        `json:"get,omitempty"` // URL
	Status  int           `json:"status,omitempty"`
	Body    string        `json:"body,omitempty"`    // the answer contains it
	Connect string        `json:"connect,omitempty"` // address that accepts a connection
	Log     string        `json:"log,omitempty"`     // the output contains it
	Timeout time.Duration `json:"timeout,omitempty"` // 0: 30 s
}

// Stop says how a service is asked to end before it is made to.
type Stop struct {
	Signal string        `json:"signal,omitempty"` // "TERM" where empty
	Grace  time.Duration `json:"grace,omitempty"`  // 0: 10 s
}

// Load is what is sent, as written: texts, since any of them may hold an `at`
// level. Exactly one member is set.
type Load struct {
	HTTP    *HTTPLoad    `json:"http,omitempty"`
	Program *ProgramLoad `json:"program,omitempty"`
}

// HTTPLoad is load over HTTP, as written.
type HTTPLoad struct {
	URL         string            `json:"url"`
	Method      string            `json:"method,omitempty"`
	Headers     map[string]string `json:"headers,omitempty"`
	Body        string            `json:"body,omitempty"`        // to send
	Connections string            `json:"connections,omitempty"` // "64" where empty
	WarmUp      string            `json:"warm_up,omitempty"`     // "1s" where empty
	Duration    string            `json:"duration,omitempty"`    // "10s" where empty
	Timeout     string            `json:"timeout,omitempty"`     // of one request, "10s" where empty
	Status      string            `json:"status,omitempty"`      // expected; any 2xx where empty
	Expect      string            `json:"expect,omitempty"`      // the answer's body contains it
	KeepAlive   string            `json:"keep_alive,omitempty"`  // "true" where empty

	// Rate makes the loop an open one: "2000/s" is the load itself at that rate,
	// "70%" adds an open loop after the closed one, at this share of the baseline's
	// capacity. Empty: there is none.
	Rate       string   `json:"rate,omitempty"`
	Arrival    string   `json:"arrival,omitempty"`      // "constant" where empty, "poisson"
	Threads    string   `json:"threads,omitempty"`      // as many as connections and CPUs are good for where empty
	Precise    string   `json:"precise,omitempty"`      // "false" where empty
	Version    string   `json:"http_version,omitempty"` // "1.1" where empty, "1.0"
	Engine     string   `json:"engine,omitempty"`       // the one that fits where empty
	ConnectTo  string   `json:"connect_to,omitempty"`
	Family     string   `json:"family,omitempty"` // "4" or "6"
	Sources    []string `json:"sources,omitempty"`
	Insecure   string   `json:"insecure,omitempty"` // "false" where empty
	ServerName string   `json:"server_name,omitempty"`
	CA         string   `json:"ca,omitempty"`
	Cert       string   `json:"cert,omitempty"`
	Key        string   `json:"key,omitempty"`
}

// ProgramLoad is load by an external program, as written.
type ProgramLoad struct {
	Name string `json:"name"` // "ab", "wrk", "command", …
	// Options by key; a header is "headers.NAME".
	Options map[string]string `json:"options,omitempty"`
	// Replaced says what of the file a flag put aside, to be told to the person.
	Replaced string `json:"replaced,omitempty"`
}

// Limit is a bound that a variant must hold.
type Limit struct {
	Metric  Metric  `json:"metric"`
	Bound   float64 `json:"bound"`
	AtLeast bool    `json:"at_least,omitempty"` // lower bound; otherwise upper
	Implied bool    `json:"implied,omitempty"`  // not written by the person: errors 1 %
}

// Ask is one question put to a running service: is this setting in force?
type Ask struct {
	Service  string `json:"service"`
	Setting  string `json:"setting"`
	Asked    string `json:"asked"`              // the level as asked for; what to look for where Contains and Equals are empty
	Kind     string `json:"kind"`               // cmdline, environ, maps, processes, threads, backlog, http, log, sql, command, file, stats, revision
	Argument string `json:"argument,omitempty"` // URL, pattern, statement, command, JSON path; processes: a text of the titles of those that count
	Field    string `json:"field,omitempty"`    // JSON path into the answer: "workers", "pool.size"
	Contains string `json:"contains,omitempty"`
	Equals   string `json:"equals,omitempty"`
	Exact    bool   `json:"exact,omitempty"`     // sql, stats: any other text contradicts it; the server has no other word for it
	Absent   bool   `json:"absent,omitempty"`    // a null level: what the other levels bring must not be there
	Offset   int    `json:"offset,omitempty"`    // processes: added to the asked number (a master)
	Count    bool   `json:"count,omitempty"`     // log: how often the pattern is there, not what it holds, is what was asked for
	From     Moment `json:"from,omitempty"`      // the first moment at which it can be seen; empty: when ready
	NotProof string `json:"not_proof,omitempty"` // why it cannot be proved; the answer is NotProved with this reason
}

// Method says how trials are planned.
type Method string

const (
	MethodCompare       Method = "compare"
	MethodOneAtATime    Method = "one-at-a-time"
	MethodFactorial     Method = "factorial"
	MethodRace          Method = "race"
	MethodSearch        Method = "search"
	MethodSwitchback    Method = "switchback"
	MethodAuto          Method = "auto"
	DefaultBlocks              = 28
	DefaultMatters             = 0.03
	DefaultCalibrations        = 6
)

// Design says how much to measure and what difference matters.
type Design struct {
	Method    Method        `json:"method"`
	Blocks    int           `json:"blocks"`           // cap per stratum
	Budget    time.Duration `json:"budget,omitempty"` // wall time of the whole run; 0: none
	Matters   float64       `json:"matters"`          // 0.03: 3 %
	Seed      uint64        `json:"seed"`
	Calibrate int           `json:"calibrate"` // baseline trials before the first block
	// Open is set where latency is measured in an open loop whose rate is a share of
	// the baseline's capacity.
	Open *OpenDesign `json:"open,omitempty"`
}

// OpenDesign says what the rates of open loops are settled by, and what the loops
// cost.
type OpenDesign struct {
	Shares    []OpenShare   `json:"shares"`              // of each stratum that has one
	Calibrate int           `json:"calibrate,omitempty"` // further baseline trials, in each stratum but the first
	Takes     time.Duration `json:"takes"`               // what the open loop adds to a trial of a block
}

// OpenShare is the rate of the open loop in one stratum, as a share of the
// baseline's capacity there.
type OpenShare struct {
	At    map[string]string `json:"at,omitempty"`
	Share float64           `json:"share"`
}

// HostSpec says where one side of a trial runs.
type HostSpec struct {
	CPUs  []int  `json:"cpus,omitempty"`  // pinned to these; empty: all
	Agent string `json:"agent,omitempty"` // empty: this machine
}

// HTTPRequest is HTTPLoad rendered for a trial; it may still hold leased names
// ({http}) which the load host replaces.
type HTTPRequest struct {
	URL         string            `json:"url"`
	Method      string            `json:"method"`
	Headers     map[string]string `json:"headers,omitempty"`
	Body        string            `json:"body,omitempty"`
	Connections int               `json:"connections"`
	Timeout     time.Duration     `json:"timeout"`
	Status      int               `json:"status,omitempty"` // 0: any 2xx
	Expect      string            `json:"expect,omitempty"`
	KeepAlive   bool              `json:"keep_alive"`

	Version string `json:"version,omitempty"` // "1.0"; "1.1" where empty
	// Arrival makes the loop an open one: requests are due by a law, whatever
	// becomes of those before. Nil: closed, a connection's next request is due
	// when its last one is answered.
	Arrival *Arrival `json:"arrival,omitempty"`
	// Requests ends the load when so many are done with; 0: its time does.
	Requests uint64 `json:"requests,omitempty"`
	Threads  int    `json:"threads,omitempty"` // 0: as many as connections and CPUs are good for
	// Precise waits for the last 50 µs before a request is due on the CPU, which
	// costs CPU time and makes an open loop send closer to its law.
	Precise bool   `json:"precise,omitempty"`
	Engine  string `json:"engine,omitempty"` // "epoll" or "goroutines"; empty: the one that fits
	// ConnectTo is the HOST:PORT, or unix:PATH, to connect to instead of the URL's.
	ConnectTo string   `json:"connect_to,omitempty"`
	Family    int      `json:"family,omitempty"`  // 4 or 6: addresses of that family only; 0: both
	Sources   []string `json:"sources,omitempty"` // local addresses to connect from, in turn
	TLS       *TLS     `json:"tls,omitempty"`     // for https; nil: as a browser would
}

// TLS says how a connection of https is made. Paths are of PEM files.
type TLS struct {
	ServerName string `json:"server_name,omitempty"` // sent (SNI) and checked; the URL's host where empty
	Insecure   bool   `json:"insecure,omitempty"`    // any certificate is good
	CA         string `json:"ca,omitempty"`          // whose signatures count; the system's where empty
	Cert       string `json:"cert,omitempty"`        // shown to the service, with Key
	Key        string `json:"key,omitempty"`
}

// ArrivalLaw names a law of an open loop.
type ArrivalLaw string

const (
	ConstantRate ArrivalLaw = "constant" // evenly
	PoissonRate  ArrivalLaw = "poisson"  // independently of each other
	RampRate     ArrivalLaw = "ramp"     // evenly from one rate to another, which then stays
	StepRates    ArrivalLaw = "steps"    // one rate after another; ends with the last
)

// Arrival says when the requests of an open loop are due. Rates are in 1/s.
type Arrival struct {
	Law   ArrivalLaw    `json:"law"`
	Rate  float64       `json:"rate,omitempty"` // of a ramp: at its start
	To    float64       `json:"to,omitempty"`   // of a ramp: at its end
	Over  time.Duration `json:"over,omitempty"` // of a ramp
	Steps []RateStep    `json:"steps,omitempty"`
	Seed  uint64        `json:"seed,omitempty"` // of poisson
}

// RateStep is a rate for a time; 0 is a pause.
type RateStep struct {
	Rate float64       `json:"rate"`
	For  time.Duration `json:"for"`
}

// LoadSpec is the load of one trial: HTTP or a program.
type LoadSpec struct {
	HTTP    *HTTPRequest  `json:"http,omitempty"`
	Program *ProgramSpec  `json:"program,omitempty"`
	WarmUp  time.Duration `json:"warm_up"`
	// Window is the measured time. A program that is given a number of requests
	// instead ends when they are answered: then it is how long it may take.
	Window time.Duration `json:"window"`
	// Open is the second load of a trial whose latency is judged: the same request
	// in an open loop, after the closed one. Nil: there is none.
	Open *OpenSpec `json:"open,omitempty"`
	// Capacity asks for the highest rate that holds conditions, in place of the
	// load above: Window is then how long the whole search takes.
	Capacity *CapacitySpec `json:"capacity,omitempty"`
}

// OpenSpec is the open loop by which latency is measured.
type OpenSpec struct {
	Arrival Arrival `json:"arrival"`
	// Share is what Arrival.Rate is of the baseline's capacity. Where the rate is
	// still 0 it is the share of what the closed loop before it shows.
	Share  float64       `json:"share,omitempty"`
	WarmUp time.Duration `json:"warm_up"`
	Window time.Duration `json:"window"`
}

// CapacitySpec asks for the highest rate that holds conditions.
type CapacitySpec struct {
	Holds []Condition `json:"holds"`
	Steps int         `json:"steps"` // at most; each is one rate held for a time
	// Settle is the beginning of a step that is left out, Step the rest of it.
	Settle time.Duration `json:"settle"`
	Step   time.Duration `json:"step"`
	From   float64       `json:"from,omitempty"` // the first rate, 1/s; 0: what a closed loop shows
}

// Condition is a bound on a figure of a load.
type Condition struct {
	Metric   Metric  `json:"metric"`             // errors, throughput, or a latency
	Quantile float64 `json:"quantile,omitempty"` // of a latency: 0.99; 1: the highest
	Bound    float64 `json:"bound"`              // seconds, a share, 1/s
	AtLeast  bool    `json:"at_least,omitempty"`
}

// ProgramSpec is ProgramLoad rendered for a trial; options may still hold leased
// names, which the load host replaces.
type ProgramSpec struct {
	Name        string            `json:"name"`
	Options     map[string]string `json:"options,omitempty"`
	Connections int               `json:"connections,omitempty"` // 0: the program's own business
	// Counted is set where the program ends after a number of requests, not
	// after a time.
	Counted bool   `json:"counted,omitempty"`
	Dir     string `json:"dir,omitempty"` // where it runs, and where a relative path begins
}

// Totals is what a load tells that knows sums only, over the measured window as
// the program itself had it.
type Totals struct {
	Took       time.Duration     `json:"took"`
	Good       uint64            `json:"good"`
	Bad        uint64            `json:"bad"`
	Kinds      map[string]uint64 `json:"kinds,omitempty"`       // bad ones by ErrorKind
	BadUnknown bool              `json:"bad_unknown,omitempty"` // it tells no bad ones: Bad is 0, and no figure
	Throughput float64           `json:"throughput,omitempty"`  // good answers per second, as the program says
	// Closed is how many connections the service closed after a whole answer
	// without having said so; some programs count each as an error.
	Closed uint64 `json:"closed,omitempty"`
	// Quantiles are of the program's own latencies, in seconds, by metric (p50,
	// p99). They are service times of a closed loop, rounded as it rounds.
	Quantiles map[Metric]float64 `json:"quantiles,omitempty"`
	Score     *float64           `json:"score,omitempty"`
	// Failed is why the program itself failed: a trial of it is void.
	Failed string `json:"failed,omitempty"`
	Hint   string `json:"hint,omitempty"` // what may be done about it
	// OfLoadHost is set where it failed for what the load host lacks: memory,
	// descriptors, ports.
	OfLoadHost bool `json:"of_load_host,omitempty"`
	// Command is the command line as it was run.
	Command string `json:"command,omitempty"`
}

// Environment is the record of one machine, kept with a run.
type Environment struct {
	Hakaru   string            `json:"hakaru"` // version
	Hostname string            `json:"hostname"`
	Kernel   string            `json:"kernel"`
	CPUModel string            `json:"cpu_model"`
	CPUs     int               `json:"cpus"`
	Memory   uint64            `json:"memory"`
	Limits   map[string]string `json:"limits,omitempty"`   // nofile, somaxconn, port range, cgroup version, …
	Programs map[string]string `json:"programs,omitempty"` // binary of a service → first line of its version
}

// Run is one campaign in the store.
type Run struct {
	ID         string      `json:"id"`
	Name       string      `json:"name"`
	Started    time.Time   `json:"started"`
	Ended      *time.Time  `json:"ended,omitempty"`
	State      RunState    `json:"state"`
	Experiment Experiment  `json:"experiment"`
	Service    Environment `json:"service_environment"`
	Loader     Environment `json:"load_environment"`
	Frozen     *Frozen     `json:"frozen,omitempty"`
	Done       *Done       `json:"done,omitempty"`
	Warnings   []Warning   `json:"warnings,omitempty"` // about the run as a whole
}

// RunInfo is a run as one line of a list: what can be told without reading the
// experiment and its trials.
type RunInfo struct {
	ID      string     `json:"id"`
	Name    string     `json:"name"`
	Started time.Time  `json:"started"`
	Ended   *time.Time `json:"ended,omitempty"`
	State   RunState   `json:"state"`
	Trials  int        `json:"trials"` // void ones and calibration included
	Void    int        `json:"void"`
}

// RunState says how far a run has come.
type RunState string

const (
	RunRunning     RunState = "running"
	RunDone        RunState = "done"
	RunInterrupted RunState = "interrupted"
	RunFailed      RunState = "failed"
)
