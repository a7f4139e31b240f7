//go:build linux

package main

import (
	"context"
	"debug/buildinfo"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// scenario is what a client is to do.
type scenario struct {
	name        string
	words       string
	path        string
	connections int
	tls         bool
	closing     bool // a connection for each request
}

var scenarios = []scenario{
	{"c1", "1 connection", "/hello", 1, false, false},
	{"c8", "8 connections", "/hello", 8, false, false},
	{"c64", "64 connections", "/hello", 64, false, false},
	{"c500", "500 connections", "/hello", 500, false, false},
	{"4k", "64 connections, 4 KB", "/4k", 64, false, false},
	{"1m", "64 connections, 1 MB", "/1m", 64, false, false},
	{"close", "64 connections, no keep-alive", "/hello", 64, false, true},
	{"tls", "64 connections, TLS", "/hello", 64, true, false},
}

// protocol says where nginx and the client run.
type protocol string

const (
	sameCPU protocol = "same"
	twoCPUs protocol = "two"
)

func (p protocol) String() string {
	if p == sameCPU {
		return "same CPU"
	}
	return "two CPUs"
}

// cell is one place of the table.
type cell struct {
	protocol protocol
	scenario scenario
}

func (c cell) String() string { return string(c.protocol) + "/" + c.scenario.name }

// cells are all that are measured: large bodies and TLS on two CPUs only, as
// there the server's part is most of the CPU time.
func cells(chosen func(scenario) bool) []cell {
	var all []cell
	for _, p := range []protocol{sameCPU, twoCPUs} {
		for _, s := range scenarios {
			if chosen(s) && (p == twoCPUs || s.name != "1m" && !s.tls) {
				all = append(all, cell{p, s})
			}
		}
	}
	return all
}

// work is one run of a client.
type work struct {
	scenario
	url, host string
	bytes     int // of an answer, head included; 0: not known
	d         time.Duration
}

// seconds is for programs that know whole ones only.
func (w work) seconds() string { return strconv.Itoa(int(math.Ceil(w.d.Seconds()))) }

func (w work) c() string { return strconv.Itoa(w.connections) }

// client is a program that is measured. command gives its words after its own
// name; ok is false for what it cannot do.
type client struct {
	name    string
	main    bool // takes part in every round
	debian  string
	module  string // Go's, with its version, where it is built here
	version []string
	command func(w work) (c command, ok bool)

	path, found string // where it is, and in what version
	missing     string // why it is not
}

const (
	subject    = "hakaru"
	floorName  = "floor"
	k6Script   = "import http from 'k6/http';\nexport default function () { http.get(__ENV.URL); }\n"
	k6FileName = "k6.js"
)

// clients are the programs, the subject first. dir is for what they need.
func clients(dir string) []*client {
	words := func(more ...string) command { return command{argv: more} }
	return []*client{
		{name: subject, main: true, command: func(w work) (command, bool) {
			argv := []string{"load", "-c", w.c(), "-d", w.d.String(), "--threads", "1"}
			if w.tls {
				argv = append(argv, "--insecure")
			}
			if w.closing {
				argv = append(argv, "--no-keep-alive")
			}
			return words(append(argv, w.url)...), true
		}},
		{name: floorName, main: true, command: func(w work) (command, bool) {
			// Go's preemption would interrupt its waits, which hold no lock.
			return command{env: []string{"GODEBUG=asyncpreemptoff=1"}, argv: []string{"floor", "-to", w.host, "-path", w.path,
				"-c", w.c(), "-bytes", strconv.Itoa(w.bytes), "-d", w.d.String()}}, w.bytes > 0 && !w.tls && !w.closing
		}},
		{name: "wrk", main: true, debian: "wrk", version: []string{"-v"}, command: func(w work) (command, bool) {
			argv := []string{"-t1", "-c", w.c(), "-d", w.seconds() + "s"}
			if w.closing {
				argv = append(argv, "-H", "Connection: close")
			}
			return words(append(argv, w.url)...), true
		}},
		{name: "ab", debian: "apache2-utils", version: []string{"-V"}, command: func(w work) (command, bool) {
			// -n after -t, which sets it; more than it can do in that time.
			argv := []string{"-q", "-l", "-t", w.seconds(), "-n", strconv.Itoa(200_000 * int(math.Ceil(w.d.Seconds()))), "-c", w.c()}
			if !w.closing {
				argv = append(argv, "-k")
			}
			return words(append(argv, w.url)...), true
		}},
		{name: "h2load", debian: "nghttp2-client", version: []string{"--version"}, command: func(w work) (command, bool) {
			argv := []string{"--h1", "-t", "1", "-c", w.c(), "-D", fmt.Sprintf("%dms", w.d.Milliseconds()), w.url}
			return words(argv...), !w.closing // without keep-alive it does not end
		}},
		{name: "hey", debian: "hey", command: func(w work) (command, bool) {
			argv := []string{"-z", w.d.String(), "-c", w.c()}
			if w.closing {
				argv = append(argv, "-disable-keepalive")
			}
			return words(append(argv, w.url)...), true
		}},
		{name: "bombardier", module: "github.com/codesenberg/bombardier@v1.2.6", command: func(w work) (command, bool) {
			argv := []string{"-q", "-k", "-c", w.c(), "-d", max(w.d, time.Second).String()}
			if w.closing {
				argv = append(argv, "-H", "Connection: close")
			}
			return words(append(argv, w.url)...), true
		}},
		{name: "vegeta", module: "github.com/tsenart/vegeta/v12@v12.13.0", command: func(w work) (command, bool) {
			return command{
				argv: []string{"attack", "-rate=0", "-workers=" + w.c(), "-max-workers=" + w.c(), "-duration=" + w.d.String(),
					"-insecure", "-keepalive=" + strconv.FormatBool(!w.closing), "-output=/dev/null"},
				stdin: "GET " + w.url + "\n",
			}, true
		}},
		// k6 is under the AGPL: taken where the person has it, not built here.
		{name: "k6", version: []string{"version"}, command: func(w work) (command, bool) {
			return command{
				argv: []string{"run", "--quiet", "--no-usage-report", "--discard-response-bodies", "--insecure-skip-tls-verify",
					"--no-connection-reuse=" + strconv.FormatBool(w.closing), "--vus", w.c(), "--duration", w.d.String(),
					"-e", "URL=" + w.url, filepath.Join(dir, k6FileName)},
			}, true
		}},
	}
}

// find looks for a program where it was built before (tools), then on the PATH,
// and builds it where a module is known. Not finding one is no error: the report
// tells of it.
func (c *client) find(ctx context.Context, tools string) error {
	var err error
	switch {
	case c.name == floorName:
		if c.path, err = os.Executable(); err != nil {
			return err
		}
		c.found = "bare write and read, in Go"
		return nil
	case c.module != "":
		if c.path, err = build(ctx, tools, c.name, c.module); err != nil {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			c.missing = err.Error()
			return nil
		}
	default:
		if own := filepath.Join(tools, c.name); executable(own) {
			c.path = own
		} else if c.path, err = exec.LookPath(c.name); err != nil {
			c.missing = "not on the PATH, and not built here"
			if c.debian != "" {
				c.missing = "not installed; on Debian: apt-get install " + c.debian
			}
			return nil
		}
	}
	c.found = c.versionOf(ctx)
	return nil
}

// build gives the program of a Go module, built at its first use into a
// directory of its version's.
func build(ctx context.Context, tools, name, module string) (string, error) {
	_, version, _ := strings.Cut(module, "@")
	dir := filepath.Join(tools, name+"-"+version)
	path := filepath.Join(dir, name)
	if executable(path) {
		return path, nil
	}
	outside, err := os.MkdirTemp("", "hakaru-build-") // of this module
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(outside)
	cmd := exec.CommandContext(ctx, "go", "install", module)
	cmd.Dir = outside
	cmd.Env = append(os.Environ(), "GOBIN="+dir, "GOFLAGS=-mod=mod")
	if out, err := cmd.CombinedOutput(); err != nil {
		lines := strings.Split(strings.TrimSpace(string(out)), "\n")
		return "", fmt.Errorf("go install %s: %w: %s", module, err, lines[len(lines)-1])
	}
	return path, nil
}

func executable(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0
}

var versionNumber = regexp.MustCompile(`\bv?\d+\.\d[\w.+-]*`)

// versionOf asks a program, else what Go or Debian wrote down about it.
func (c *client) versionOf(ctx context.Context) string {
	if _, version, ok := strings.Cut(c.module, "@"); ok {
		return version
	}
	if c.version != nil {
		// wrk ends with 1 after it.
		out, err := exec.CommandContext(ctx, c.path, c.version...).CombinedOutput()
		var exit *exec.ExitError
		if v := versionNumber.Find(out); v != nil && (err == nil || errors.As(err, &exit)) {
			return string(v)
		}
	}
	if c.debian != "" {
		if out, err := exec.CommandContext(ctx, "dpkg-query", "-W", "-f", "${Version}", c.debian).Output(); err == nil {
			return string(out)
		}
	}
	if info, err := buildinfo.ReadFile(c.path); err == nil && info.Main.Version != "" {
		return info.Main.Version
	}
	return "version not known"
}
