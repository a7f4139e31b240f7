package main

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/testscript"
	"github.com/spf13/pflag"

	"hakaru"
	"hakaru/internal/loadreport"
)

// loadFlagsTable is the table of docs/load.md.
func loadFlagsTable() string {
	var b strings.Builder
	b.WriteString("| flag | default | what it does |\n|---|---|---|\n")
	(&door{}).loadCommand().Flags().VisitAll(func(f *pflag.Flag) {
		value, usage := pflag.UnquoteUsage(f)
		name := "--" + f.Name
		if f.Shorthand != "" {
			name = "-" + f.Shorthand + ", " + name
		}
		if value != "" {
			name += " " + strings.Trim(value, "'")
		}
		def := f.DefValue
		if def == "0" || def == "0s" || def == "false" || def == "[]" {
			def = ""
		}
		if def != "" {
			def = "`" + def + "`"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", name, def, strings.ReplaceAll(usage, "|", `\|`))
	})
	return b.String()
}

func TestLoadFlagsDocumented(t *testing.T) {
	const file = "../../docs/load.md"
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	table := regexp.MustCompile("(?s)(<!-- flags: [^\n]*\n)(.*?)(<!-- end of flags -->)")
	m := table.FindSubmatch(text)
	if m == nil {
		t.Fatal("no place for the table of flags")
	}
	want := loadFlagsTable()
	if string(m[2]) == want {
		return
	}
	if !*update {
		t.Fatalf("the flags are others (-want +got):\n%s", cmp.Diff(want, string(m[2])))
	}
	text = table.ReplaceAll(text, []byte("${1}"+strings.ReplaceAll(want, "$", "$$")+"${3}"))
	if err := os.WriteFile(file, text, 0o644); err != nil {
		t.Fatal(err)
	}
}

// planned reads a command line of hakaru load.
func planned(t *testing.T, stdin string, args ...string) (*loadPlan, error) {
	t.Helper()
	d := &door{stdin: strings.NewReader(stdin)}
	var f loadFlags
	cmd := d.loadCommand()
	cmd.ResetFlags()
	f.register(cmd)
	if err := cmd.ParseFlags(args); err != nil {
		t.Fatalf("%v: %v", args, err)
	}
	return d.loadPlan(cmd.Flags(), &f, cmd.Flags().Arg(0))
}

func TestLoadPlan(t *testing.T) {
	plain := hakaru.HTTPRequest{
		URL: "http://h:1/", Method: "GET", Headers: map[string]string{}, Connections: 64, KeepAlive: true, Timeout: 10 * time.Second,
	}
	for _, c := range []struct {
		args   string
		stdin  string
		change func(q *hakaru.HTTPRequest)
		window hakaru.Window
	}{
		{"http://h:1/", "", func(*hakaru.HTTPRequest) {}, hakaru.Window{Length: 10 * time.Second}},
		{"h:1/ -d 1.5m --warm-up 2s", "", func(*hakaru.HTTPRequest) {}, hakaru.Window{WarmUp: 2 * time.Second, Length: 90 * time.Second}},
		{"/run/a.sock:/x -c 2", "", func(q *hakaru.HTTPRequest) { q.URL, q.Connections = "unix:/run/a.sock:/x", 2 }, hakaru.Window{Length: 10 * time.Second}},
		{"h:1/ -n 20", "", func(q *hakaru.HTTPRequest) { q.Requests, q.Connections = 20, 20 }, hakaru.Window{}},
		{"h:1/ -n 20000 -d 1s", "", func(q *hakaru.HTTPRequest) { q.Requests = 20_000 }, hakaru.Window{Length: time.Second}},
		{"h:1/ -r 1.5k", "", func(q *hakaru.HTTPRequest) {
			q.Arrival = &hakaru.Arrival{Law: hakaru.ConstantRate, Rate: 1500}
		}, hakaru.Window{Length: 10 * time.Second}},
		{"h:1/ -r 600/min --arrival poisson --seed 7 --precise", "", func(q *hakaru.HTTPRequest) {
			q.Arrival, q.Precise = &hakaru.Arrival{Law: hakaru.PoissonRate, Rate: 10, Seed: 7}, true
		}, hakaru.Window{Length: 10 * time.Second}},
		{"h:1/ --ramp 100..2k/s -d 5s", "", func(q *hakaru.HTTPRequest) {
			q.Arrival = &hakaru.Arrival{Law: hakaru.RampRate, Rate: 100, To: 2000, Over: 5 * time.Second}
		}, hakaru.Window{Length: 5 * time.Second}},
		{"h:1/ --steps 100/s:10s,0:1s,200/s:500ms", "", func(q *hakaru.HTTPRequest) {
			q.Arrival = &hakaru.Arrival{Law: hakaru.StepRates, Steps: []hakaru.RateStep{{Rate: 100, For: 10 * time.Second}, {For: time.Second}, {Rate: 200, For: 500 * time.Millisecond}}}
		}, hakaru.Window{Length: 11500 * time.Millisecond}},
		{"h:1/ --body @- -H X-A:b --host example.org --status 201 --expect ok", "from stdin", func(q *hakaru.HTTPRequest) {
			q.Method, q.Body, q.Status, q.Expect = "POST", "from stdin", 201, "ok"
			q.Headers = map[string]string{"X-A": "b", "Host": "example.org"}
		}, hakaru.Window{Length: 10 * time.Second}},
		{"h:1/ -X PUT --body text --http1.0 --no-keep-alive -4 --source 127.0.0.2 --source 127.0.0.3", "", func(q *hakaru.HTTPRequest) {
			q.Method, q.Body, q.Version, q.KeepAlive, q.Family, q.Sources = "PUT", "text", "1.0", false, 4, []string{"127.0.0.2", "127.0.0.3"}
		}, hakaru.Window{Length: 10 * time.Second}},
	} {
		p, err := planned(t, c.stdin, strings.Fields(c.args)...)
		if err != nil {
			t.Errorf("%s: %v", c.args, err)
			continue
		}
		want := plain
		c.change(&want)
		if d := cmp.Diff(want, p.Request); d != "" {
			t.Errorf("%s (-want +got):\n%s", c.args, d)
		}
		if d := cmp.Diff(c.window, p.Window); d != "" {
			t.Errorf("%s: window (-want +got):\n%s", c.args, d)
		}
	}
}

func TestLoadSearchPlan(t *testing.T) {
	p, err := planned(t, "", "h:1/", "--find-capacity", "p99<50ms", "-d", "1m", "--arrival", "poisson")
	if err != nil {
		t.Fatal(err)
	}
	if s := p.Search; s == nil || s.Step != 1500*time.Millisecond || s.Steps != searchSteps || len(s.Holds) != 1 || p.Request.Arrival.Law != hakaru.PoissonRate || p.Window.Length != time.Minute {
		t.Errorf("search %+v in %+v", p.Search, p.Window)
	}
}

// TestLoadMistakes: each is told with what to write instead.
// What people leave out of a URL, or slip with.
func TestWithScheme(t *testing.T) {
	for address, want := range map[string]string{
		"http://h/": "http://h/", "https://h/": "https://h/", "h:8080/x": "http://h:8080/x", "/run/a.sock": "unix:/run/a.sock",
		"unix:/run/a.sock:/x": "unix:/run/a.sock:/x", "http:/h/x": "http://h/x", "https//h/x": "https://h/x", "http:h/x": "http://h/x",
		"http:8080/x": "http://http:8080/x", "h/http://x": "h/http://x",
	} {
		if got := withScheme(address); got != want {
			t.Errorf("%s: %s, want %s", address, got, want)
		}
	}
}

func TestLoadMistakes(t *testing.T) {
	var b bytes.Buffer
	for _, args := range []string{
		"h:1/ -c 0", "h:1/ -c 65 -n 64", "h:1/ -n 0", "h:1/ -d 0", "h:1/ -n 10 --warm-up 1s", "h:1/ --threads -1",
		"h:1/ --precise", "h:1/ --arrival poisson", "h:1/ --seed 2 -r 10", "h:1/ -r 10 --arrival bursts", "h:1/ -r 0", "h:1/ -r fast",
		"h:1/ -r 10 --ramp 1..2", "h:1/ --ramp 1..2 -n 10", "h:1/ --ramp 1..2 --warm-up 1s", "h:1/ --ramp 1-2", "h:1/ --ramp 0..0",
		"h:1/ --steps 10/s:1s -d 3s", "h:1/ --steps 10/s", "h:1/ --steps 10/s:0s", "h:1/ --steps 0:1s",
		"h:1/ -4 -6", "h:1/ --engine fast", "h:1/ --format xml", "h:1/ --timeout 0", "h:1/ --status 20",
		"h:1/ -H nothing", "h:1/ -H A:1 -H a:2", "h:1/ -H Host:a --host b", "h:1/ --body @", "h:1/ -X G(ET", "h:1/ -H Content-Length:5",
		"h:1/ --insecure", "https://h:1/ --key k.pem", "h:1/ --threshold p99", "h:1/ --threshold mean<1ms",
		"h:1/ --find-capacity p99<1ms -r 10", "h:1/ --find-capacity p99<1ms -n 10", "h:1/ --find-capacity p99<1ms --format csv",
		"h:1/ --find-capacity throughput>10/s", "h:1/ --find-capacity p99<1ms -d 1s", "ftp://h/", "http://h:99999/",
		"h:1/ --source eth0", "h:1/ --connect-to h", "127.0.0.1:1/ -6", "http://[::1]:1/ -4", "https://h/ --engine epoll",
	} {
		_, err := planned(t, "", strings.Fields(args)...)
		if err == nil {
			t.Errorf("%s is fine", args)
			continue
		}
		d := &door{stderr: &b}
		fmt.Fprintf(&b, "hakaru load %s\n", args)
		if code := d.complain(t.Context(), err); code != exitUsage {
			t.Errorf("%s: exit code %d, want %d: %v", args, code, exitUsage, err)
		}
	}
	const file = "testdata/load-mistakes.txt"
	if *update {
		if err := os.WriteFile(file, b.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), b.String()); d != "" {
		t.Errorf("%s (-want +got):\n%s", file, d)
	}
}

// misbehaves starts testdata/misbehave for the rest of a script.
func misbehaves(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 || len(args) > 3 {
		ts.Fatalf("usage: misbehaves NAME MODE [LISTEN]")
	}
	listen := "127.0.0.1:0"
	if len(args) == 3 {
		listen = args[2]
	}
	cmd := exec.Command(filepath.Join(filepath.Dir(program), "misbehave"), "-listen", listen, "-mode", args[1])
	cmd.Dir = ts.Getenv("WORK")
	out, err := cmd.StdoutPipe()
	ts.Check(err)
	ts.Check(cmd.Start())
	ts.Defer(func() {
		_ = cmd.Process.Kill() // some have ended
		_ = cmd.Wait()
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	ts.Check(err)
	_, address, ok := strings.Cut(strings.TrimSpace(line), "serving on ")
	if !ok {
		ts.Fatalf("misbehave says %q", line)
	}
	ts.Setenv(args[0], address)
}

// TestLoadInterrupted: after Ctrl-C the report is of what was measured until then.
func TestLoadInterrupted(t *testing.T) {
	var (
		seen     sync.Mutex
		first    time.Time
		measured chan struct{} // nil: told
	)
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		seen.Lock()
		defer seen.Unlock()
		switch {
		case first.IsZero():
			first = time.Now()
		case measured != nil && time.Since(first) > 3*hakaru.BucketWidth:
			close(measured)
			measured = nil
		}
	}))
	defer service.Close()
	for _, format := range []string{"text", "json"} {
		seen.Lock()
		reached := make(chan struct{})
		first, measured = time.Time{}, reached
		seen.Unlock()
		var stdout, stderr bytes.Buffer
		cmd := exec.Command(program, "load", "-c", "2", "-d", "5m", "--format", format, service.URL)
		cmd.Env, cmd.Stdout, cmd.Stderr = isolated(t.TempDir()), &stdout, &stderr
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		select {
		case <-reached:
		case <-time.After(30 * time.Second):
			t.Error("no request in half a minute")
		}
		for range 2 { // as timeout(1) does: once to the process, once to its group
			if err := cmd.Process.Signal(os.Interrupt); err != nil {
				t.Fatal(err)
			}
			time.Sleep(5 * time.Millisecond) // two that are pending at once are one
		}
		_ = cmd.Wait() // the code is looked at
		if code := cmd.ProcessState.ExitCode(); code != exitInterrupt {
			t.Errorf("exit code %d, want %d\n%s%s", code, exitInterrupt, stdout.String(), stderr.String())
		}
		if !strings.Contains(stderr.String(), "interrupted by SIGINT") {
			t.Errorf("stderr %q", stderr.String())
		}
		if format == "text" {
			for _, want := range []string{"s of 5 min", "Not as asked: interrupted by SIGINT.", "throughput", "Latency", "median"} {
				if !strings.Contains(stdout.String(), want) {
					t.Errorf("no %q in\n%s", want, stdout.String())
				}
			}
			continue
		}
		var r loadreport.Report
		if err := json.Unmarshal(stdout.Bytes(), &r); err != nil {
			t.Fatalf("%v\n%s", err, stdout.String())
		}
		if r.OK || r.Good == 0 || r.Took < hakaru.BucketWidth.Seconds() || r.Stopped != "interrupted by SIGINT" {
			t.Errorf("ok %t, %d good in %g s, stopped %q", r.OK, r.Good, r.Took, r.Stopped)
		}
	}
}

// TestLoadCounts: as many requests as were asked for arrive at the service, by
// either engine, and JSON and CSV are what they say.
func TestLoadCounts(t *testing.T) {
	var requests atomic.Int64
	service := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { requests.Add(1) }))
	defer service.Close()
	env := isolated(t.TempDir())
	hakaruLoad := func(args ...string) []byte {
		t.Helper()
		cmd := exec.Command(program, append([]string{"load", service.URL}, args...)...)
		cmd.Env = env
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("%v: %v", args, err)
		}
		return out
	}
	for _, engine := range []string{"epoll", "goroutines"} {
		requests.Store(0)
		dec := json.NewDecoder(bytes.NewReader(hakaruLoad("-n", "1237", "-c", "7", "--engine", engine, "--format", "json")))
		dec.DisallowUnknownFields()
		var r loadreport.Report
		if err := dec.Decode(&r); err != nil {
			t.Fatal(err)
		}
		if got := requests.Load(); got != 1237 || r.Good != 1237 || r.Statuses[200] != 1237 || r.Latency.Count != 1237 || !r.OK || r.Generator.Engine != engine {
			t.Errorf("%s: %d requests arrived, %d good, by status %v, ok %t by %s", engine, got, r.Good, r.Statuses, r.OK, r.Generator.Engine)
		}
	}
	log := filepath.Join(t.TempDir(), "load.hlog")
	records, err := csv.NewReader(bytes.NewReader(hakaruLoad("--steps", "100/s:1s,50/s:500ms", "--format", "csv", "--hdr-log", log))).ReadAll()
	if err != nil || len(records) != 3 {
		t.Fatalf("%d lines of CSV: %v", len(records), err)
	}
	if records[0][3] != "offered" || records[1][3] != "100" || records[2][3] != "50" || records[2][4] != "25" {
		t.Errorf("CSV %v", records)
	}
	text, err := os.ReadFile(log)
	if err != nil || bytes.Count(text, []byte("HISTFAAAA")) != 2 {
		t.Errorf("HDR log: %v\n%s", err, text)
	}
}

// figures are what differs from load to load.
var figures = regexp.MustCompile(`(127\.0\.0\.1|localhost):\d+|\d[\d.]* ?(ns|µs|ms|s|B|kB|MB|GB)?(/s)?\b|- *$|-  `)

// loadsAsShown runs the command of the README against a service of its own: the
// same lines come with other figures.
func loadsAsShown(t *testing.T, s site, block string) {
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "[0, 1]") }))
	defer service.Close()
	line, shown, _ := strings.Cut(block, "\n")
	command, ok := strings.CutPrefix(line, "$ hakaru ")
	if !ok {
		t.Fatalf("the block begins %q", line)
	}
	cmd := exec.Command(program, strings.Fields(strings.Replace(command, "localhost:8080", strings.TrimPrefix(service.URL, "http://"), 1))...)
	cmd.Env = s.env
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v\n%s", command, err, out)
	}
	shape := func(text string) []string {
		var lines []string
		for l := range strings.SplitSeq(strings.TrimSpace(text), "\n") {
			l = strings.ReplaceAll(l, " (127.0.0.1:8080)", "") // where the name stands for the address itself
			lines = append(lines, strings.Join(strings.Fields(figures.ReplaceAllString(l, " # ")), " "))
		}
		return lines
	}
	want, got := shape(shown), shape(string(out))
	if d := cmp.Diff(want, got[:min(len(want), len(got))]); d != "" {
		t.Errorf("the README shows (-) other lines than come (+):\n%s", d)
	}
}

// TestHDRLogUnwritable: a log that could not be written is an error, also where all
// of it fits into the buffer; and one of before is kept where nothing was sent.
func TestHDRLogUnwritable(t *testing.T) {
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "ok") }))
	defer service.Close()
	var stdout, stderr bytes.Buffer
	code := run(t.Context(), []string{"load", "-n", "10", "-c", "1", "--hdr-log", "/dev/full", service.URL}, strings.NewReader(""), &stdout, &stderr)
	if code != 1 || !strings.Contains(stderr.String(), "write the HDR log") {
		t.Errorf("code %d, %s: want 1 and the log named", code, &stderr)
	}
	log := filepath.Join(t.TempDir(), "log")
	if err := os.WriteFile(log, []byte("of before"), 0o600); err != nil {
		t.Fatal(err)
	}
	stderr.Reset()
	code = run(t.Context(), []string{"load", "-n", "1", "-c", "1", "--hdr-log", log, "--connect-to", "nosuchhost.invalid:80", service.URL}, strings.NewReader(""), &stdout, &stderr)
	if text, err := os.ReadFile(log); code != 1 || string(text) != "of before" {
		t.Errorf("code %d, %q, %v, %s: want 1 and the log as it was", code, text, err, &stderr)
	}
}
