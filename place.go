package hakaru

import "time"

// What travels between the conductor and its agents: what is to be started, what
// is up, and what load and watch saw.

// Bundle is everything a service host needs to bring a stack up: rendered but
// for what only that host knows. Names it leases, and {hakaru.dir} (the place's
// private directory) and {hakaru.exe} (this program), are replaced there, in
// words, environment, files and URLs.
type Bundle struct {
	Run    string  `json:"run"`
	Trial  Trial   `json:"trial"`
	Leases []Lease `json:"leases,omitempty"`
	Units  []Unit  `json:"units"` // in start order
}

// Lease is an address the host is to find: a free TCP port on loopback, or a
// path for a unix socket.
type Lease struct {
	Name    string `json:"name"`
	Unix    bool   `json:"unix,omitempty"`
	Service string `json:"service,omitempty"` // who is to listen there; empty: any
}

// Unit is one program of a Bundle.
type Unit struct {
	Service string   `json:"service"`
	Kind    string   `json:"kind"`
	Argv    []string `json:"argv"`
	Env     []EnvVar `json:"env,omitempty"`
	Dir     string   `json:"dir"`
	Files   []File   `json:"files,omitempty"` // paths relative to the private directory
	// Beside is a directory whose entries are to be found beside Files too, by
	// links: that of the person's config file, where what it includes names others
	// relative to where the copy is. Empty: none.
	Beside string `json:"beside,omitempty"`
	User   string `json:"user,omitempty"`
	CPUs   []int  `json:"cpus,omitempty"`
	Ready  Ready  `json:"ready"`
	Stop   Stop   `json:"stop"`
	Signs  []Sign `json:"signs,omitempty"`
	SQL    string `json:"sql,omitempty"` // data source name for proofs by SQL; empty: none is known

	// Attached is set for a service that hakaru does not start: Argv is empty,
	// and Ready is how it answers.
	Attached *Attached `json:"attached,omitempty"`
	// Build is run before the first start, and once for each revision; its words.
	Build []string `json:"build,omitempty"`
	// Revision is the version of the person's code to run, as a branch, tag or
	// commit; empty: the working tree as it is.
	Revision string `json:"revision,omitempty"`
}

// Attached says how settings reach a service that something else starts, as
// words of commands; {file} is the path of the edited copy.
type Attached struct {
	// File is the path of the edited copy within the private directory; empty:
	// there is none.
	File    string   `json:"file,omitempty"`
	Apply   []string `json:"apply,omitempty"`
	Restart []string `json:"restart,omitempty"`
	Undo    []string `json:"undo,omitempty"`
}

// Sign is a line of a service's output that explains why it does not come up.
type Sign struct {
	Pattern string `json:"pattern"` // regular expression (RE2)
	Hint    string `json:"hint"`
	// Fatal says that the service will not become ready any more, though it may
	// go on running.
	Fatal bool `json:"fatal,omitempty"`
}

// Place is a stack that is up.
type Place struct {
	ID      string        `json:"id"`
	Dir     string        `json:"dir"`
	Names   Names         `json:"names"` // leased values: "http" → "127.0.0.1:41234", "http.port", "http.host"
	Units   []RunningUnit `json:"units"`
	Took    time.Duration `json:"took"`              // until the last one was ready
	Built   time.Duration `json:"built,omitempty"`   // taken before that to check out and build versions; part of no other time
	Answers []Answer      `json:"answers,omitempty"` // the first right answers
}

// RunningUnit is one program of a place.
type RunningUnit struct {
	Service string        `json:"service"`
	PID     int           `json:"pid"`
	Argv    []string      `json:"argv"`
	Cgroup  string        `json:"cgroup,omitempty"` // directory; empty where none could be made
	Files   []File        `json:"files,omitempty"`  // as written, absolute paths
	Ready   time.Duration `json:"ready"`
	// Attached is set where hakaru did not start it: PID is that of the process
	// that listens there and no other member's child; 0 where it is on another
	// machine.
	Attached bool   `json:"attached,omitempty"`
	Commit   string `json:"commit,omitempty"` // of the version that runs, where the experiment has several
}

// Answer is what a readiness probe got.
type Answer struct {
	Service string `json:"service"`
	Probe   string `json:"probe"`
	Got     string `json:"got"` // status line and the beginning of the body
}

// Leftovers is what stopping a place found and did.
type Leftovers struct {
	Outputs  []Output      `json:"outputs,omitempty"`
	Warnings []Warning     `json:"warnings,omitempty"` // had to be killed, left a process behind, …
	Exits    []Exit        `json:"exits,omitempty"`
	Took     time.Duration `json:"took"`
}

// Exit is how a unit's main process ended.
type Exit struct {
	Service string `json:"service"`
	State   string `json:"state"` // "exit status 0", "signal: killed"
	Forced  bool   `json:"forced,omitempty"`
}

// Output is what a unit wrote to stdout and stderr, the middle cut where it was long.
type Output struct {
	Service string `json:"service"`
	Text    string `json:"text"`
	Cut     int64  `json:"cut,omitempty"` // bytes left out of the middle
}

// Window is the common clock of load and watch: both begin at Start.
type Window struct {
	Start  time.Time     `json:"start"`
	WarmUp time.Duration `json:"warm_up"`
	Length time.Duration `json:"length"` // measured, after the warm-up
}

// Total is warm-up and measured window together.
func (w Window) Total() time.Duration { return w.WarmUp + w.Length }

// LoadReport is what the load host says when the load has ended.
type LoadReport struct {
	Buckets     []Bucket  `json:"buckets"`           // Good, Bad, Kinds, Latency, and Counters of the generator
	Counters    []Counter `json:"counters"`          // the columns: cpu and cpu_wait of OfGenerator, cpus
	Samples     []Sample  `json:"samples,omitempty"` // the first bad answers
	Latency     []byte    `json:"latency,omitempty"` // of the measured window, good answers
	Connections int       `json:"connections"`
	Totals      *Totals   `json:"totals,omitempty"` // of a program; Buckets then hold counters only
	Output      string    `json:"output,omitempty"` // what the program wrote
	// Begun is when the measured run of a program was started, from the start of
	// the window, at the boundary of a bucket: its warm-up takes a moment more
	// than it is told to.
	Begun    time.Duration   `json:"begun,omitempty"`
	Warnings []Warning       `json:"warnings,omitempty"` // what is to doubt about the figures
	Tally    *Tally          `json:"tally,omitempty"`    // of hakaru's own load
	Capacity *CapacityReport `json:"capacity,omitempty"`
}

// Tally is the measured window of hakaru's own load as a whole. Histograms are of
// internal/latency; they hold good answers but where it says otherwise.
type Tally struct {
	// Took is the measured time: the window, or until the last answer where the
	// load ended by a number of requests or by its law.
	Took  time.Duration     `json:"took"`
	Good  uint64            `json:"good"`
	Bad   uint64            `json:"bad"`
	Kinds map[string]uint64 `json:"kinds,omitempty"` // bad ones by ErrorKind
	// Statuses counts complete answers, good and bad.
	Statuses map[int]uint64 `json:"statuses,omitempty"`
	Bytes    uint64         `json:"bytes"` // of complete answers, heads included
	Connects uint64         `json:"connects"`
	Retried  uint64         `json:"retried,omitempty"`

	Latency []byte `json:"latency,omitempty"` // from when a request was due
	Service []byte `json:"service,omitempty"` // from its send
	Waiting []byte `json:"waiting,omitempty"` // from its send to the first byte
	Failed  []byte `json:"failed,omitempty"`  // of bad ones, from when due
	Connect []byte `json:"connect,omitempty"` // of every connection made, those before the start too

	// Of an open loop: how many requests were due in the window, how many of
	// those sent had to wait until a connection was free, how many were never
	// sent, and how late the generator itself was with those it sent.
	Due    uint64 `json:"due,omitempty"`
	Queued uint64 `json:"queued,omitempty"`
	Unsent uint64 `json:"unsent,omitempty"`
	Lag    []byte `json:"lag,omitempty"`
	// Own is the latencies of good answers less what the generator itself was late
	// by with each: what they would be had it been in time. Empty in older results.
	Own []byte `json:"own,omitempty"`

	Engine   string        `json:"engine"`
	Threads  int           `json:"threads"`
	CPU      float64       `json:"cpu"`                // CPU seconds of the generator's process in the window
	CPUs     int           `json:"cpus"`               // it may use
	Waited   float64       `json:"waited,omitempty"`   // CPU seconds it wanted and did not get
	GCs      uint32        `json:"gcs,omitempty"`      // collections of its memory
	GCPause  time.Duration `json:"gc_pause,omitempty"` // the longest
	Address  string        `json:"address,omitempty"`  // that was connected to
	Resolved []string      `json:"resolved,omitempty"` // what its name stands for, where that is more than one address
}

// CapacityReport is the highest rate that held the conditions of a CapacitySpec.
type CapacityReport struct {
	// Value is the rate, 1/s, and Low and High its 95 % interval. Value is 0 where
	// no rate held.
	Value float64 `json:"value"`
	Low   float64 `json:"low"`
	High  float64 `json:"high"`
	// Reached is set where the generator, not the service, set the bound: the
	// capacity is at least Low.
	Reached string         `json:"reached,omitempty"`
	Steps   []CapacityStep `json:"steps"` // in the order in which they were run
}

// CapacityStep is one rate that was held for a time.
type CapacityStep struct {
	Rate     float64            `json:"rate"`     // offered, 1/s
	Achieved float64            `json:"achieved"` // good answers, 1/s
	Errors   float64            `json:"errors"`   // share
	Latency  []byte             `json:"latency,omitempty"`
	Values   map[string]float64 `json:"values,omitempty"` // of each condition, by its text
	Holds    bool               `json:"holds"`
	Why      string             `json:"why,omitempty"`  // which condition did not
	Void     string             `json:"void,omitempty"` // why the step does not count
}

// Sample is one bad answer in words.
type Sample struct {
	Kind ErrorKind `json:"kind"`
	Text string    `json:"text"`
}

// Watched is what the service host saw during a window: the increase or value
// of each counter in each bucket.
type Watched struct {
	Counters []Counter   `json:"counters"`
	Buckets  [][]float64 `json:"buckets"` // [bucket][counter]
	// Ended tells of units that died or were replaced during the window.
	Ended    []Exit    `json:"ended,omitempty"`
	Warnings []Warning `json:"warnings,omitempty"`
}
