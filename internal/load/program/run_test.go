package program

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"hakaru"
	"hakaru/internal/load"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// service answers "hello" after a millisecond.
func service(t *testing.T) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/echo" {
			fmt.Fprintf(w, "%s %s", r.Method, r.Header.Get("X-A"))
			return
		}
		fmt.Fprint(w, "hello")
	}))
	t.Cleanup(s.Close)
	return strings.TrimPrefix(s.URL, "http://")
}

func send(t *testing.T, ctx context.Context, spec hakaru.LoadSpec, address string) (hakaru.LoadReport, error) {
	t.Helper()
	w := hakaru.Window{Start: time.Now(), WarmUp: spec.WarmUp, Length: spec.Window + 15*time.Second}
	emitted := 0
	report, err := Run(ctx, spec, hakaru.Names{"http": address}, os.Environ(), w, func(b hakaru.Bucket) {
		if b.At != time.Duration(emitted)*hakaru.BucketWidth {
			t.Errorf("bucket %d begins at %v", emitted, b.At)
		}
		emitted++
	})
	if emitted != len(report.Buckets) {
		t.Errorf("%d buckets emitted, %d reported", emitted, len(report.Buckets))
	}
	for _, b := range report.Buckets {
		if len(b.Counters) != len(report.Counters) || b.Good != 0 {
			t.Errorf("bucket %+v", b)
		}
	}
	return report, err
}

func script(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "bench.sh")
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+text), 0o700); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestRun(t *testing.T) {
	t.Parallel()
	address := service(t)
	cases := []struct {
		name string
		spec hakaru.LoadSpec
		want func(hakaru.LoadReport) bool
	}{
		{"ab, counted", hakaru.LoadSpec{Window: time.Minute, Program: &hakaru.ProgramSpec{Name: "ab", Connections: 2, Counted: true,
			Options: map[string]string{"url": "http://{http}/", "requests": "200"}}},
			func(r hakaru.LoadReport) bool {
				return r.Totals.Good == 200 && r.Totals.Quantiles[hakaru.P99] > 0 && r.Begun == 0 && len(r.Buckets) >= 1 &&
					strings.Contains(r.Output, "Complete requests:      200")
			}},
		{"ab, a body in memory", hakaru.LoadSpec{Window: time.Minute, Program: &hakaru.ProgramSpec{Name: "ab", Connections: 1, Counted: true,
			Options: map[string]string{"url": "http://{http}/echo", "requests": "1", "method": "PUT", "body": "x", "args": "-v 4"}}},
			func(r hakaru.LoadReport) bool {
				return r.Totals.Good == 1 && strings.Contains(r.Output, "PUT /echo HTTP/1.0")
			}},
		{"wrk, warmed up", hakaru.LoadSpec{WarmUp: time.Second, Window: time.Second, Program: &hakaru.ProgramSpec{Name: "wrk", Connections: 2,
			Options: map[string]string{"url": "http://{http}/echo", "method": "POST", "body": "x"}}},
			func(r hakaru.LoadReport) bool {
				measured := time.Duration(len(r.Buckets))*hakaru.BucketWidth - r.Begun
				return r.Totals.Good > 0 && r.Totals.Bad == 0 && r.Begun >= time.Second && measured >= r.Totals.Took
			}},
		{"a command", hakaru.LoadSpec{Window: time.Minute, Program: &hakaru.ProgramSpec{Name: "command", Counted: true,
			Options: map[string]string{"run": script(t, "echo rate $1 12.5") + " {http}", "score": `rate \S+ ([0-9.]+)`}}},
			func(r hakaru.LoadReport) bool {
				return *r.Totals.Score == 12.5 && r.Output == "rate "+address+" 12.5\n" && strings.HasSuffix(r.Totals.Command, "bench.sh "+address)
			}},
		{"a command that fails", hakaru.LoadSpec{Window: time.Minute, Program: &hakaru.ProgramSpec{Name: "command", Counted: true,
			Options: map[string]string{"run": script(t, "echo no such table >&2; exit 3"), "score": `(\d)`}}},
			func(r hakaru.LoadReport) bool {
				return r.Totals.Failed == "the load command ended with exit status 3: no such table"
			}},
		{"one that is too slow, with a child of its own", hakaru.LoadSpec{Window: hakaru.BucketWidth, Program: &hakaru.ProgramSpec{Name: "command", Counted: true,
			Options: map[string]string{"run": script(t, "sleep 600 & echo $! 1; sleep 600"), "score": `(\d)`}}},
			func(r hakaru.LoadReport) bool {
				return strings.Contains(r.Totals.Failed, "had not ended after 500ms, and was ended") && gone(t, firstNumber(r.Output))
			}},
		{"a child that is left behind is ended with it", hakaru.LoadSpec{Window: time.Minute, Program: &hakaru.ProgramSpec{Name: "command", Counted: true,
			Options: map[string]string{"run": script(t, "sleep 600 >/dev/null & echo $! 1"), "score": `(\d)$`}}},
			func(r hakaru.LoadReport) bool { return *r.Totals.Score == 1 && gone(t, firstNumber(r.Output)) }},
		{"so is a job with a group of its own", hakaru.LoadSpec{Window: time.Minute, Program: &hakaru.ProgramSpec{Name: "command", Counted: true,
			Options: map[string]string{"run": script(t, "set -m; sleep 600 >/dev/null & echo $! 1"), "score": `(\d)$`}}},
			func(r hakaru.LoadReport) bool { return *r.Totals.Score == 1 && gone(t, firstNumber(r.Output)) }},
		{"the warm-up of a command is ended", hakaru.LoadSpec{WarmUp: hakaru.BucketWidth, Window: time.Minute, Program: &hakaru.ProgramSpec{Name: "command", Counted: true,
			Options: map[string]string{"run": script(t, `d=$(dirname $0); [ -e $d/again ] && { echo 7; exit; }; touch $d/again; sleep 600`), "score": `(\d)`}}},
			func(r hakaru.LoadReport) bool { return *r.Totals.Score == 7 && r.Begun > 0 && len(r.Warnings) == 0 }},
		{"as many open files as this process may have", hakaru.LoadSpec{Window: time.Minute, Program: &hakaru.ProgramSpec{Name: "command", Counted: true,
			Options: map[string]string{"run": script(t, `[ "$(ulimit -Sn)" = "$(ulimit -Hn)" ] && echo raised 1`), "score": `raised (\d)`}}},
			func(r hakaru.LoadReport) bool { return r.Totals.Failed == "" }},
		{"more connections than there can be files", hakaru.LoadSpec{Window: time.Minute, Program: &hakaru.ProgramSpec{Name: "wrk", Connections: 1 << 40,
			Options: map[string]string{"url": "http://{http}/"}}},
			func(r hakaru.LoadReport) bool {
				return r.Totals.OfLoadHost && strings.Contains(r.Totals.Failed, "the hard limit is")
			}},
		{"nobody listens", hakaru.LoadSpec{Window: time.Minute, Program: &hakaru.ProgramSpec{Name: "ab", Connections: 1, Counted: true,
			Options: map[string]string{"url": "http://127.0.0.1:1/", "requests": "1"}}},
			func(r hakaru.LoadReport) bool {
				return !r.Totals.OfLoadHost && strings.Contains(r.Totals.Failed, "Connection refused")
			}},
		{"not there", hakaru.LoadSpec{Window: time.Minute, Program: &hakaru.ProgramSpec{Name: "wrk", Connections: 1,
			Options: map[string]string{"url": "http://{http}/", "program": "/nowhere/wrk"}}},
			func(r hakaru.LoadReport) bool {
				return strings.Contains(r.Totals.Failed, "/nowhere/wrk") && r.Totals.Hint == "apt-get install wrk"
			}},
	}
	// They wait for the ends of buckets most of the time: all at once.
	reports, errs := make([]hakaru.LoadReport, len(cases)), make([]error, len(cases))
	var sending sync.WaitGroup
	for i, c := range cases {
		sending.Go(func() { reports[i], errs[i] = send(t, t.Context(), c.spec, address) })
	}
	sending.Wait()
	for i, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			report := reports[i]
			if errs[i] != nil {
				t.Fatal(errs[i])
			}
			if report.Totals == nil || !c.want(report) {
				t.Errorf("%+v\n%+v", report, report.Totals)
			}
		})
	}
}

func firstNumber(text string) int {
	n, err := strconv.Atoi(strings.Fields(text + " 0")[0])
	if err != nil {
		return 0
	}
	return n
}

// gone reports whether a process has ended; who adopted it may not have reaped
// it yet.
func gone(t *testing.T, pid int) bool {
	t.Helper()
	if pid <= 1 {
		t.Fatalf("no process %d", pid)
	}
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err != nil || strings.Contains(string(text), ") Z ")
}

// The program's CPU time is all there, what it used after the last look too.
func TestUsage(t *testing.T) {
	t.Parallel()
	spec := hakaru.LoadSpec{Window: time.Minute, Program: &hakaru.ProgramSpec{Name: "command", Counted: true,
		Options: map[string]string{"run": script(t, `i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done; times; echo 1`), "score": `^(\d)$`}}}
	report, err := send(t, t.Context(), spec, "")
	if err != nil || report.Totals.Failed != "" {
		t.Fatal(err, report.Totals)
	}
	// `times` prints what the shell used: "0m0.21s 0m0.00s" and that of children.
	f := strings.Fields(report.Output)
	var used float64
	for _, text := range f[:2] {
		d, err := time.ParseDuration(text)
		if err != nil {
			t.Fatal(err)
		}
		used += d.Seconds()
	}
	var seen float64
	for _, b := range report.Buckets {
		seen += b.Counters[0]
		if cpus := b.Counters[1]; cpus < 1 {
			t.Errorf("%v CPUs", cpus)
		}
	}
	if used == 0 || seen < used-0.02 || seen > used+0.1 {
		t.Errorf("%.3f s of CPU time seen, the shell says %.3f s", seen, used)
	}
}

// A load that is interrupted leaves no process behind.
func TestRunInterrupted(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancelCause(t.Context())
	stop := errors.New("that will do")
	mark := filepath.Join(t.TempDir(), "pid")
	spec := hakaru.LoadSpec{Window: time.Minute, Program: &hakaru.ProgramSpec{Name: "command", Counted: true,
		Options: map[string]string{"run": script(t, "trap '' TERM; mkfifo "+mark+".fifo; echo $$ > "+mark+"; read x < "+mark+".fifo"), "score": `(\d)`}}}
	w := hakaru.Window{Length: 2 * time.Minute}
	_, err := Run(ctx, spec, nil, os.Environ(), w, func(hakaru.Bucket) {
		if _, err := os.Stat(mark); err == nil {
			cancel(stop)
		}
	})
	if !errors.Is(err, stop) {
		t.Fatal(err)
	}
	text, err := os.ReadFile(mark)
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(firstNumber(string(text)), 0); !errors.Is(err, syscall.ESRCH) {
		t.Errorf("it is still there: %v", err)
	}
}

func TestRunLate(t *testing.T) {
	spec := hakaru.LoadSpec{Window: time.Second, Program: &hakaru.ProgramSpec{Name: "wrk", Connections: 1, Options: map[string]string{"url": "http://h/"}}}
	_, err := Run(t.Context(), spec, nil, nil, hakaru.Window{Start: time.Now().Add(-time.Minute), Length: time.Second}, nil)
	var late *load.LateError
	if !errors.As(err, &late) {
		t.Fatal(err)
	}
}

// A connection that is reset ends ab, and its trial.
func TestReset(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			var b [4096]byte
			_, _ = c.Read(b[:]) // what was asked does not matter
			_ = c.(*net.TCPConn).SetLinger(0)
			c.Close()
		}
	}()
	defer func() { l.Close(); <-done }()
	spec := hakaru.LoadSpec{Window: time.Minute, Program: &hakaru.ProgramSpec{Name: "ab", Connections: 1, Counted: true,
		Options: map[string]string{"url": "http://{http}/", "requests": "10"}}}
	report, err := send(t, t.Context(), spec, l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	if got := report.Totals; got.Failed != "ab ended with exit status 104: apr_socket_recv: Connection reset by peer (104)" || got.Good != 0 {
		t.Errorf("%+v", got)
	}
}

func TestVersion(t *testing.T) {
	for _, name := range []string{"ab", "wrk"} {
		path, version, err := Version(t.Context(), hakaru.ProgramSpec{Name: name})
		if err != nil || !strings.HasSuffix(path, "/"+name) || !strings.ContainsAny(version, "0123456789") {
			t.Errorf("%s: %q %q %v", name, path, version, err)
		}
	}
	bench := script(t, "echo 1")
	path, version, err := Version(t.Context(), hakaru.ProgramSpec{Name: "command", Dir: filepath.Dir(bench), Options: map[string]string{"run": "./bench.sh x"}})
	if err != nil || version != "" || filepath.Clean(path) != bench {
		t.Errorf("%q %q %v", path, version, err)
	}
	var missing *MissingError
	for run, want := range map[string]string{"": "load.command.run names no program", "sh 'x": "split load.command.run into words: "} {
		if _, _, err := Version(t.Context(), hakaru.ProgramSpec{Name: "command", Options: map[string]string{"run": run}}); err == nil || !strings.HasPrefix(err.Error(), want) || strings.Contains(err.Error(), "%!") {
			t.Errorf("run %q: %v, want %s", run, err, want)
		}
	}
	if _, _, err := Version(t.Context(), hakaru.ProgramSpec{Name: "ab", Options: map[string]string{"program": "nowhere-ab"}}); !errors.As(err, &missing) || missing.Install != "apt-get install apache2-utils" {
		t.Error(err)
	}
}
