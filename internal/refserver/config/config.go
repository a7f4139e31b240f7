// Package config is the settings of the built-in service, `hakaru serve`: what
// can be set, what holds where nothing is said, and how a person writes it.
//
// It takes the text of an ini file (Read) or of single settings (Config.Set)
// and gives a Config, or all mistakes with line, column and hint in one
// *UsageError. Keys is the one list of settings, from which the flags, the
// file, the status page and the documentation are made.
//
// It opens no file and reads no flags (the door does), and does nothing that a
// setting says: that is internal/refserver.
package config

import (
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"hakaru/internal/hint"
	"hakaru/internal/unit"
)

// Config is everything a person can set. Default gives the values that hold
// where nothing is said.
type Config struct {
	Listen      string        `json:"listen"`       // host:port, or unix:PATH
	Processes   int           `json:"processes"`    // worker processes
	Threads     int           `json:"threads"`      // requests answered at once by each
	Log         string        `json:"log"`          // "off", "on" (stderr), or a path
	MaxRequests uint64        `json:"max_requests"` // per worker, then it is replaced; 0: never
	MaxLifetime time.Duration `json:"max_lifetime"` // per worker, then it is replaced; 0: never
	Jitter      float64       `json:"jitter"`       // both limits are shortened by up to this share, another one for each worker
	Backlog     int           `json:"backlog"`      // of listen(2)
	Handler     string        `json:"handler"`      // one of Handlers
	Wait        time.Duration `json:"wait"`         // per request, on the clock
	CPU         time.Duration `json:"cpu"`          // per request, of CPU time
	Work        int           `json:"work"`         // per request, in rounds of a fixed computation
	Stall       time.Duration `json:"stall"`        // no worker answers for this long …
	StallEvery  time.Duration `json:"stall_every"`  // … at the beginning of every such period
	ErrorRate   float64       `json:"error_rate"`   // share of answers that are 500, evenly spaced
	Alloc       int64         `json:"alloc"`        // bytes allocated and touched per request
	Grace       time.Duration `json:"grace"`        // a draining worker ends after this at the latest
}

// Names of handlers. What a request costs is set by wait, cpu, work, stall,
// error-rate and alloc under every handler; the name says what the service is
// about, which the setting of the same name must then support. Only fsync adds
// a cost of its own.
const (
	HandlerFib   = "fib"
	HandlerWait  = "wait"
	HandlerCPU   = "cpu"
	HandlerStall = "stall"
	HandlerError = "error"
	HandlerFsync = "fsync"
	HandlerAlloc = "alloc"
)

// Words of Config.Log that are not a path.
const (
	LogOff = "off"
	LogOn  = "on"
)

// MaxProcesses is the most that can be asked for.
const MaxProcesses = 1000

const (
	maxThreads  = 10000
	maxAlloc    = 1 << 30
	maxWork     = 1_000_000_000
	maxDuration = 1000 * time.Hour
)

// Default is the configuration of a bare `hakaru serve`.
func Default() Config {
	return Config{
		Listen: "127.0.0.1:8080", Processes: 1, Threads: 1, Log: LogOff, Jitter: 0.1, Backlog: 511,
		Handler: HandlerFib, StallEvery: time.Second, Grace: 10 * time.Second,
	}
}

// Key is one setting as a person writes it, in a file or as a flag.
type Key struct {
	Name  string
	Value string // what stands for it in the help: "DURATION"
	Help  string
	set   func(*Config, string) error
	get   func(*Config) string
}

// Keys are all settings in the order of the help. The flag's name and the key
// in the file are the same.
func Keys() []Key {
	return []Key{
		{"listen", "ADDRESS", "host:port, or unix:PATH", func(c *Config, v string) (err error) {
			c.Listen, err = parseListen(v)
			return err
		}, func(c *Config) string { return c.Listen }},
		{"processes", "N", "worker processes", number(1, MaxProcesses, func(c *Config) *int { return &c.Processes }), whole(func(c *Config) int { return c.Processes })},
		{"threads", "N", "requests that each process answers at once", number(1, maxThreads, func(c *Config) *int { return &c.Threads }), whole(func(c *Config) int { return c.Threads })},
		{"log", "off|on|PATH", "one line per request: off, on (stderr), or appended to a file", setLog, func(c *Config) string { return c.Log }},
		{"max-requests", "N", "replace a worker after so many requests; 0: never", func(c *Config, v string) error {
			n, err := strconv.ParseUint(v, 10, 63)
			if err != nil {
				return fmt.Errorf("%q is not a whole number from 0", v)
			}
			c.MaxRequests = n
			return nil
		}, func(c *Config) string { return strconv.FormatUint(c.MaxRequests, 10) }},
		{"max-lifetime", "DURATION", "replace a worker after so long; 0: never", duration(func(c *Config) *time.Duration { return &c.MaxLifetime }), length(func(c *Config) time.Duration { return c.MaxLifetime })},
		{"jitter", "SHARE", "shorten both limits by up to this share, differently for each worker", share(func(c *Config) *float64 { return &c.Jitter }), part(func(c *Config) float64 { return c.Jitter })},
		{"backlog", "N", "length of the queue of connections that wait to be accepted", number(1, math.MaxInt32, func(c *Config) *int { return &c.Backlog }), whole(func(c *Config) int { return c.Backlog })},
		{"handler", "NAME", strings.Join(Handlers(), ", "), setHandler, func(c *Config) string { return c.Handler }},
		{"wait", "DURATION", "time each request waits", duration(func(c *Config) *time.Duration { return &c.Wait }), length(func(c *Config) time.Duration { return c.Wait })},
		{"cpu", "DURATION", "CPU time each request burns", duration(func(c *Config) *time.Duration { return &c.CPU }), length(func(c *Config) time.Duration { return c.CPU })},
		{"work", "ROUNDS", "fixed computation of each request, in rounds of about a microsecond", number(0, maxWork, func(c *Config) *int { return &c.Work }), whole(func(c *Config) int { return c.Work })},
		{"stall", "DURATION", "nothing is answered for so long in every period", duration(func(c *Config) *time.Duration { return &c.Stall }), length(func(c *Config) time.Duration { return c.Stall })},
		{"stall-every", "DURATION", "the period of stall", duration(func(c *Config) *time.Duration { return &c.StallEvery }), length(func(c *Config) time.Duration { return c.StallEvery })},
		{"error-rate", "SHARE", "share of answers that are 500, evenly spaced: 0.01 or 1%", share(func(c *Config) *float64 { return &c.ErrorRate }), part(func(c *Config) float64 { return c.ErrorRate })},
		{"alloc", "BYTES", "memory each request allocates and touches: 65536 or 64KiB", setAlloc, func(c *Config) string { return strconv.FormatInt(c.Alloc, 10) }},
		{"grace", "DURATION", "how long a draining worker may finish what is open", duration(func(c *Config) *time.Duration { return &c.Grace }), length(func(c *Config) time.Duration { return c.Grace })},
	}
}

// NearKey is the name of the setting that word was probably meant to be, or "".
func NearKey(word string) string {
	var names []string
	for _, k := range Keys() {
		names = append(names, k.Name)
	}
	word = strings.TrimLeft(word, "-") // a flag's dashes do not belong into a file
	if slices.Contains(names, word) {
		return word
	}
	return hint.Near(word, names)
}

// Handlers are the names handler accepts.
func Handlers() []string {
	return []string{HandlerFib, HandlerWait, HandlerCPU, HandlerStall, HandlerError, HandlerFsync, HandlerAlloc}
}

// Get is the setting in c, as a person would write it.
func (k Key) Get(c *Config) string { return k.get(c) }

// Set gives a setting its value as a person writes it. The error does not name
// the setting; whoever knows where it was written does.
func (c *Config) Set(name, value string) error {
	for _, k := range Keys() {
		if k.Name == name {
			return k.set(c, value)
		}
	}
	return errors.New("there is no such setting")
}

// Get is a setting as a person would write it; "" for an unknown name.
func (c *Config) Get(name string) string {
	for _, k := range Keys() {
		if k.Name == name {
			return k.get(c)
		}
	}
	return ""
}

// Check reports what is wrong with the settings together: all of it.
func (c *Config) Check() error {
	var wrong []error
	need := func(handler, setting string, has bool) {
		if c.Handler == handler && !has {
			wrong = append(wrong, fmt.Errorf("handler %s: set %s too, it is 0", handler, setting))
		}
	}
	need(HandlerWait, "wait", c.Wait > 0)
	need(HandlerCPU, "cpu", c.CPU > 0)
	need(HandlerStall, "stall", c.Stall > 0)
	need(HandlerError, "error-rate", c.ErrorRate > 0)
	need(HandlerAlloc, "alloc", c.Alloc > 0)
	if c.Stall > 0 && c.Stall >= c.StallEvery {
		wrong = append(wrong, fmt.Errorf("stall %v: must be shorter than stall-every (%v), or nothing is ever answered", c.Stall, c.StallEvery))
	}
	return errors.Join(wrong...)
}

// Filled is c with the defaults of what can not be zero, so that a Config
// written in Go needs only what matters to it.
func (c Config) Filled() Config {
	d := Default()
	if c.Listen == "" {
		c.Listen = d.Listen
	}
	if c.Processes == 0 {
		c.Processes = d.Processes
	}
	if c.Threads == 0 {
		c.Threads = d.Threads
	}
	if c.Log == "" {
		c.Log = d.Log
	}
	if c.Backlog == 0 {
		c.Backlog = d.Backlog
	}
	if c.Handler == "" {
		c.Handler = d.Handler
	}
	if c.StallEvery == 0 {
		c.StallEvery = d.StallEvery
	}
	return c
}

func parseListen(v string) (string, error) {
	v = strings.TrimPrefix(v, "tcp://") // as a leased socket's URL has it
	if path, ok := strings.CutPrefix(v, "unix:"); ok {
		if path == "" {
			return "", errors.New("unix: needs a path")
		}
		// sun_path holds 108 bytes, the last of which ends it (unix(7)).
		if len(path) > 107 {
			return "", fmt.Errorf("the path has %d bytes; a unix socket's path has at most 107", len(path))
		}
		return v, nil
	}
	host, port, ok := cutPort(v)
	if !ok {
		return "", fmt.Errorf("%q is neither host:port nor unix:PATH", v)
	}
	if n, err := strconv.Atoi(port); err != nil || n < 0 || n > 65535 {
		return "", fmt.Errorf("port %q is not a number from 0 to 65535", port)
	}
	if host == "" {
		// Nothing listens beyond loopback unless asked: all interfaces are
		// 0.0.0.0 or [::], written out.
		host = "127.0.0.1"
	}
	return host + ":" + port, nil
}

// cutPort splits host:port, where an IPv6 host keeps its brackets, and takes a
// bare port.
func cutPort(v string) (host, port string, ok bool) {
	i := strings.LastIndexByte(v, ':')
	if i < 0 {
		_, err := strconv.Atoi(v)
		return "", v, err == nil
	}
	host, port = v[:i], v[i+1:]
	if strings.ContainsAny(host, " \t/") {
		return "", "", false
	}
	if strings.Contains(host, ":") && !(strings.HasPrefix(host, "[") && strings.HasSuffix(host, "]")) {
		return "", "", false
	}
	return host, port, true
}

func setLog(c *Config, v string) error {
	switch strings.ToLower(v) {
	case "":
		return errors.New("want off, on or a path")
	case LogOff, "false", "no":
		c.Log = LogOff
	case LogOn, "true", "yes":
		c.Log = LogOn
	default:
		c.Log = filepath.Clean(v)
		if c.Log == LogOff || c.Log == LogOn {
			c.Log = "./" + c.Log // a file of that name stays a file when it is written out
		}
	}
	return nil
}

func setHandler(c *Config, v string) error {
	if !slices.Contains(Handlers(), v) {
		suggestion := ""
		if near := hint.Near(v, Handlers()); near != "" {
			suggestion = fmt.Sprintf(": did you mean %s?", near)
		}
		return fmt.Errorf("%q is none of %s%s", v, strings.Join(Handlers(), ", "), suggestion)
	}
	c.Handler = v
	return nil
}

func number(low, high int, field func(*Config) *int) func(*Config, string) error {
	return func(c *Config, v string) error {
		n, err := strconv.Atoi(v)
		if err != nil || n < low || n > high {
			return fmt.Errorf("%q is not a whole number from %d to %d", v, low, high)
		}
		*field(c) = n
		return nil
	}
}

func duration(field func(*Config) *time.Duration) func(*Config, string) error {
	return func(c *Config, v string) error {
		d, err := unit.ParseDuration(v)
		if err != nil {
			return err
		}
		if d > maxDuration {
			return fmt.Errorf("%q is longer than %s", v, unit.ExactDuration(maxDuration))
		}
		*field(c) = d
		return nil
	}
}

func share(field func(*Config) *float64) func(*Config, string) error {
	return func(c *Config, v string) error {
		f, err := unit.ParseShare(v)
		if err != nil {
			return err
		}
		if !(f >= 0 && f <= 1) {
			return fmt.Errorf("%q is not between 0 and 1 (100%%)", v)
		}
		*field(c) = f
		return nil
	}
}

func setAlloc(c *Config, v string) error {
	f, err := unit.ParseBytes(v)
	if err != nil {
		return err
	}
	if !(f >= 0 && f <= maxAlloc) {
		return fmt.Errorf("%q is more than 1GiB", v)
	}
	c.Alloc = int64(math.Round(f))
	return nil
}

func whole(field func(*Config) int) func(*Config) string {
	return func(c *Config) string { return strconv.Itoa(field(c)) }
}

func length(field func(*Config) time.Duration) func(*Config) string {
	return func(c *Config) string { return unit.ExactDuration(field(c)) }
}

func part(field func(*Config) float64) func(*Config) string {
	return func(c *Config) string { return strconv.FormatFloat(field(c), 'f', -1, 64) }
}
