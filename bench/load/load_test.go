//go:build linux

package main

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"io"
	"math"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// A report is drawn from the raw file alone: goals met, not met and not shown,
// runs that went wrong, programs that are missing, and the open loops.
func TestReport(t *testing.T) {
	var raw strings.Builder
	raw.WriteString(fact{"CPU", "one | of a kind, 2"}.line())
	raw.WriteString(fact{"wrk", "4.1.0"}.line())
	raw.WriteString(fact{"k6", "missing: not on the PATH, and not built here"}.line())
	add := func(round int, cell, client string, micros float64, note string) {
		requests := uint64(100_000)
		if strings.HasPrefix(note, "exit") {
			requests = 0
		}
		raw.WriteString(row{round, cell, client, micros * 0.1, 1.1, requests, note}.line())
	}
	for round := 1; round <= 12; round++ {
		noise := 1 + 0.01*float64(round%5)
		for _, cell := range []string{"same/c64", "two/c64", "two/1m"} {
			add(round, cell, "wrk", 10, "")
			add(round, cell, "hakaru", 8.5*noise, "")
		}
		add(round, "same/c64", "floor", 8.5*noise/1.2, "")
		add(round, "same/c64", "hey", 35*noise*noise*noise, "")
		if round%4 == 0 {
			add(round, "two/c64", "vegeta", 70, "")
		}
	}
	add(13, "two/c64", "wrk", 9, cutNote)
	add(13, "two/c64", "hakaru", 9, "exit status 3:\tit answered 502")
	for n := range 5 {
		raw.WriteString(openRow{"lag", time.Duration(10+n) * time.Microsecond, time.Duration(70+n) * time.Microsecond}.line())
		raw.WriteString(openRow{"truth", time.Duration(90+n) * time.Microsecond, time.Duration(89+n) * time.Millisecond}.line())
	}
	res, err := readRaw(strings.NewReader(raw.String()))
	if err != nil {
		t.Fatal(err)
	}
	var got bytes.Buffer
	if err := res.write(&got); err != nil {
		t.Fatal(err)
	}
	golden := filepath.Join("testdata", "report.md")
	if *update {
		if err := os.WriteFile(golden, got.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got.String()); diff != "" {
		t.Error(diff)
	}
}

func TestRawMistakes(t *testing.T) {
	for name, line := range map[string]string{
		"unknown kind": "walk\t1", "too short": "run\t1\tsame/c1", "no number": "run\t1\tsame/c1\twrk\tx\t1\t1\t", "no duration": "lag\t1\t2",
	} {
		if _, err := readRaw(strings.NewReader("fact\ta\tb\n" + line + "\n")); err == nil || !strings.HasPrefix(err.Error(), "line 2: ") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestVerdict(t *testing.T) {
	for name, c := range map[string]struct {
		goal goal
		f    figure
		want string
	}{
		"below":          {goal{most: 0.9}, figure{0.8, 0.75, 0.85, 31, true}, "met"},
		"above":          {goal{most: 0.9}, figure{1.0, 0.95, 1.05, 31, true}, "**not met**"},
		"median below":   {goal{most: 0.9}, figure{0.88, 0.8, 0.95, 31, true}, "not shown (the median meets it)"},
		"median above":   {goal{most: 0.9}, figure{0.92, 0.8, 0.95, 31, true}, "not shown (the median does not meet it)"},
		"few":            {goal{most: 0.9}, figure{median: 0.5, pairs: 3}, "not shown (too few pairs)"},
		"worse":          {goal{most: 1, notWorse: true}, figure{1.05, 1.01, 1.1, 31, true}, "**not met**"},
		"not worse":      {goal{most: 1, notWorse: true}, figure{1.05, 0.99, 1.1, 31, true}, "met"},
		"not worse, few": {goal{most: 1, notWorse: true}, figure{median: 0.9, pairs: 2}, "not shown (too few pairs)"},
	} {
		if got := c.goal.verdict(c.f); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// Pairs are of the same round; a round in which one of the two has no figure is
// none.
func TestRatioPairs(t *testing.T) {
	res := &results{rows: []row{
		{1, "two/c1", "hakaru", 1, 1, 100, ""}, {1, "two/c1", "wrk", 2, 1, 100, ""},
		{2, "two/c1", "hakaru", 3, 1, 100, ""}, {2, "two/c1", "wrk", 4, 1, 100, ""},
		{3, "two/c1", "hakaru", 9, 1, 100, "exit status 3"}, {3, "two/c1", "wrk", 1, 1, 100, ""},
		{4, "two/c1", "wrk", 1, 1, 100, ""}, {5, "two/c1", "hakaru", 9, 1, 100, ""},
		{1, "two/c8", "wrk", 7, 1, 100, ""},
	}}
	f, ok := res.ratio("two/c1", "wrk")
	if want := math.Sqrt(0.5 * 0.75); !ok || f.pairs != 2 || f.interval || math.Abs(f.median-want) > 1e-9 {
		t.Errorf("%+v, %v; want 2 pairs, %g", f, ok, want)
	}
	if _, ok := res.ratio("two/c8", "wrk"); ok {
		t.Error("a ratio without hakaru")
	}
}

func TestTakesPart(t *testing.T) {
	for _, c := range []struct{ m, n int }{{9, 31}, {31, 31}, {1, 3}, {0, 5}, {3, 3}} {
		part, gap, last := 0, 0, -1
		for round := range c.n {
			if takesPart(round, c.m, c.n) {
				part++
				gap = max(gap, round-last)
				last = round
			}
		}
		if part != c.m || c.m > 0 && gap > (c.n+c.m-1)/c.m {
			t.Errorf("%d of %d: %d took part, at most %d rounds between", c.m, c.n, part, gap)
		}
	}
}

func TestReadStatus(t *testing.T) {
	got, err := readStatus("Active connections: 3 \nserver accepts handled requests\n 12 13 345 \nReading: 0 Writing: 1 Waiting: 2 \n")
	if want := (status{3, 345}); err != nil || got != want {
		t.Errorf("%+v, %v; want %+v", got, err, want)
	}
	if _, err := readStatus("404 Not Found"); err == nil {
		t.Error("not a status, and no error")
	}
}

// Every goal is about something that is measured.
func TestGoalsHaveCells(t *testing.T) {
	known := map[string]bool{}
	for _, c := range cells(func(scenario) bool { return true }) {
		known[c.String()] = true
	}
	names := map[string]bool{}
	for _, c := range clients("") {
		names[c.name] = true
	}
	for _, g := range goals() {
		if !known[g.cell] || !names[g.peer] {
			t.Errorf("goal %v of %s to %s: nothing of the kind is measured", g, g.cell, g.peer)
		}
	}
	if len(known) != 14 {
		t.Errorf("%d cells, want 14: 6 on the same CPU and 8 on two", len(known))
	}
}

// What nginx counts is what the floor sent: a real nginx, the floor as a child,
// and the launcher between them.
func TestFloorAgainstNginx(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	l, _, err := newLauncher(ctx, false)
	if err != nil {
		t.Fatal(err)
	}
	cpu := 0
	for !l.cpus.IsSet(cpu) {
		cpu++
	}
	s, err := startServer(ctx, l, t.TempDir(), cpu)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := s.stop(); err != nil {
			t.Error(err)
		}
	}()
	if err := s.moveTo(cpu); err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	host := fmt.Sprintf("127.0.0.1:%d", s.plain)
	for _, path := range []string{"/hello", "/4k", "/1m"} {
		length, err := answerLength(path, host)
		if err != nil {
			t.Fatal(err)
		}
		before, _, err := s.settle(ctx)
		if err != nil {
			t.Fatal(err)
		}
		took, err := l.run(ctx, command{
			argv: []string{self, "floor", "-to", host, "-path", path, "-c", "3", "-bytes", fmt.Sprint(length), "-d", "50ms"},
			env:  []string{"BENCH_LOAD_CHILD=1"},
		}, cpu, 10*time.Second, nil)
		if err != nil {
			t.Fatal(err)
		}
		after, own, err := s.settle(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if n := after - before - own; n == 0 || n%3 != 0 || took.cut || took.cpu <= 0 {
			t.Errorf("%s: %d requests over 3 connections, %+v", path, n, took)
		}
	}
}

// A program that does not end is ended, and its CPU time known all the same.
func TestRunIsBounded(t *testing.T) {
	l, _, err := newLauncher(t.Context(), false)
	if err != nil {
		t.Fatal(err)
	}
	cpu := 0
	for !l.cpus.IsSet(cpu) {
		cpu++
	}
	took, err := l.run(t.Context(), command{argv: []string{"sh", "-c", "while :; do :; done"}}, cpu, 300*time.Millisecond, nil)
	if err != nil || !took.cut || took.cpu <= 0 {
		t.Errorf("%+v, %v; want one that was cut", took, err)
	}
	if _, err := l.run(t.Context(), command{argv: []string{"sh", "-c", "echo too many; exit 3"}}, cpu, 5*time.Second, nil); err == nil || !strings.HasSuffix(err.Error(), "exit status 3: too many") {
		t.Errorf("%v, want the program's exit and last words", err)
	}
}

// The server stalls for a tenth of each second, counted from its first request.
func TestStall(t *testing.T) {
	in, stop := io.Pipe()
	out, said := io.Pipe()
	done := make(chan error, 1)
	go func() { done <- stall(in, said) }()
	var address string
	if _, err := fmt.Fscanln(out, &address); err != nil {
		t.Fatal(err)
	}
	c, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	ask := func() time.Duration {
		began := time.Now()
		if _, err := c.Write(request("/", address)); err != nil {
			t.Fatal(err)
		}
		answer := make([]byte, len("HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nhello\n"))
		if _, err := io.ReadFull(c, answer); err != nil {
			t.Fatal(err)
		}
		return time.Since(began)
	}
	// One after the other, until well into the stall: whoever is asked as it
	// begins waits for its end.
	first := time.Now()
	ask()
	longest := time.Duration(0)
	for time.Since(first) < stallAt+stallLength/2 {
		longest = max(longest, ask())
	}
	if end := time.Since(first); end < stallAt+stallLength || longest < stallLength/4 {
		t.Errorf("the longest answer took %v, the last came after %v: no stall", longest, end)
	}
	c.Close()
	stop.Close()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// TestMain lets the test program be the floor.
func TestMain(m *testing.M) {
	if os.Getenv("BENCH_LOAD_CHILD") != "" {
		if err := floor(os.Args[2:]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// A module that cannot be had is told of; it stops nothing.
func TestMissing(t *testing.T) {
	t.Setenv("GOPROXY", "off")
	t.Setenv("GOMODCACHE", t.TempDir())
	t.Setenv("PATH", filepath.Dir(goProgram(t)))
	for _, c := range []*client{
		{name: "nothing", module: "example.invalid/nothing@v1.0.0"},
		{name: "nothing", debian: "nothing-utils"},
	} {
		if err := c.find(t.Context(), t.TempDir()); err != nil || c.missing == "" {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

func goProgram(t *testing.T) string {
	path, err := exec.LookPath("go")
	if err != nil {
		t.Fatal(err)
	}
	return path
}
