package host

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"hakaru"
)

// A load program that is not there is told when the load host is greeted, with
// how to get it; of one that is there, the version goes into the record.
func TestProgramAtHello(t *testing.T) {
	s := newServed(t, settings(t))
	_, err := s.Hello(t.Context(), HelloAsk{Load: &hakaru.ProgramSpec{Name: "wrk", Options: map[string]string{"program": "/nowhere/wrk"}}})
	var missing *NoProgramError
	if !errors.As(err, &missing) || missing.Hint() != "apt-get install wrk" || !strings.Contains(missing.Error(), "/nowhere/wrk") {
		t.Errorf("%#v", err)
	}
	hello, err := s.Hello(t.Context(), HelloAsk{Load: &hakaru.ProgramSpec{Name: "ab"}})
	if err != nil {
		t.Fatal(err)
	}
	found := ""
	for path, version := range hello.Environment.Programs {
		found = path + " " + version
	}
	if !strings.Contains(found, "/ab ApacheBench, Version ") {
		t.Errorf("programs %v", hello.Environment.Programs)
	}
}

// A load program ends when it ends: the watch is then told to end as well, and
// tells what it saw.
func TestProgramOverTheLink(t *testing.T) {
	set := settings(t)
	set.Environ = os.Environ()
	s := newServed(t, set)
	place, err := s.Up(t.Context(), bundle("serve"))
	if err != nil {
		t.Fatal(err)
	}
	w := hakaru.Window{Start: time.Now(), Length: time.Minute}
	ctx, loaded := context.WithCancel(t.Context())
	defer loaded()
	watched := make(chan hakaru.Watched, 1)
	go func() {
		seen, err := s.Watch(ctx, place, w, nil)
		if err != nil {
			t.Error(err)
		}
		watched <- seen
	}()
	report, err := s.Load(t.Context(), place, hakaru.LoadSpec{Window: time.Minute, Program: &hakaru.ProgramSpec{Name: "command", Counted: true,
		Options: map[string]string{"run": "echo score 7", "score": `score (\d+)`}}}, w, nil)
	if err != nil {
		t.Fatal(err)
	}
	loaded()
	seen := <-watched
	if report.Totals == nil || report.Totals.Score == nil || *report.Totals.Score != 7 || report.Output != "score 7\n" {
		t.Errorf("%+v", report)
	}
	if len(report.Buckets) == 0 || len(seen.Buckets) != len(report.Buckets) {
		t.Errorf("%d buckets of the load, %d of the watch", len(report.Buckets), len(seen.Buckets))
	}
	memory := -1
	for i, c := range seen.Counters {
		if c.Name == hakaru.CounterMemory {
			memory = i
		}
	}
	if memory < 0 || seen.Buckets[len(seen.Buckets)-1][memory] <= 0 {
		t.Errorf("no memory at the end: %v %v", seen.Counters, seen.Buckets)
	}
	if _, err := s.Down(t.Context(), place); err != nil {
		t.Error(err)
	}
}
