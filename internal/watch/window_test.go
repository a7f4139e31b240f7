package watch

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"hakaru"
)

// Memory is that of the last whole bucket, which is the last one that a
// measured window can have: there it must be proportional, as in a window
// without a rest. This binary's text is shared with its fixture.
func TestMemoryOfTheLastWholeBucket(t *testing.T) {
	var place hakaru.Place
	startService(t, &place, "idle", true)
	w, err := Watch(t.Context(), place, window(1200*time.Millisecond), nil)
	if err != nil {
		t.Fatal(err)
	}
	m := column(t, w, hakaru.CounterMemory, "idle0")
	if len(m) != 3 || m[1] >= m[0] {
		t.Errorf("memory %v: want the second below the first, which is resident memory", m)
	}
}

func TestMonotonic(t *testing.T) {
	now := time.Now()
	sent := now.Add(time.Second).Round(0) // as it comes over the link
	if strings.Contains(sent.String(), " m=") {
		t.Fatalf("%v has a monotonic reading", sent)
	}
	due := monotonic(sent, now)
	if !strings.Contains(due.String(), " m=") {
		t.Errorf("%v follows the wall clock when that is set", due)
	}
	if d := due.Sub(now); d != time.Second {
		t.Errorf("it is due in %v, want 1s", d)
	}
}

// What this process uses is counted apart from other programs'.
func TestOwnCPU(t *testing.T) {
	var place hakaru.Place
	startService(t, &place, "idle", true)
	done := make(chan struct{})
	go func() {
		defer close(done)
		burn(300 * time.Millisecond)
	}()
	w, err := Watch(t.Context(), place, window(time.Second), nil)
	<-done
	if err != nil {
		t.Fatal(err)
	}
	own, host := sum(column(t, w, hakaru.CounterCPU, hakaru.OfAgent)), sum(column(t, w, hakaru.CounterCPU, hakaru.OfHost))
	if own <= 0 || host < own/2 {
		t.Errorf("this process used %v s of the machine's %v s", own, host)
	}
}

// A load that ends tells the watch to end when its last bucket is over. Where the
// machine was so busy that the sample of that bucket is late, it is taken all the
// same, and that is said: a bucket that is missing would be one that used nothing.
func TestLateLastBucket(t *testing.T) {
	var place hakaru.Place
	startService(t, &place, "idle", true)
	ended, end := context.WithCancel(t.Context())
	end()
	w := hakaru.Window{Start: time.Now().Add(-1200 * time.Millisecond), Length: time.Minute}
	seen, err := Watch(ended, place, w, nil)
	if !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	if len(seen.Buckets) < 2 {
		t.Errorf("%d buckets of the two that are over", len(seen.Buckets))
	}
	if !slices.ContainsFunc(seen.Warnings, func(w hakaru.Warning) bool { return w.Code == "watch_late" }) {
		t.Errorf("%+v", seen.Warnings)
	}
}
