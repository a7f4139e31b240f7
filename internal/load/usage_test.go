package load

import (
	"runtime"
	"testing"

	"hakaru"
)

// Collections of memory are counted in the bucket in which they were, and the
// longest is kept.
func TestUsageCountsCollections(t *testing.T) {
	u, err := newUsage()
	if err != nil {
		t.Fatal(err)
	}
	var tally hakaru.Tally
	look := func() {
		t.Helper()
		values, err := u.read(nil)
		if err != nil {
			t.Fatal(err)
		}
		u.tally(&tally, append(values, 0, 0))
	}
	runtime.GC()
	runtime.GC()
	look()
	if tally.GCs < 2 || tally.GCPause <= 0 {
		t.Errorf("%d collections, the longest %v", tally.GCs, tally.GCPause)
	}
	longest := tally.GCPause
	look()
	if tally.GCPause < longest {
		t.Errorf("the longest was %v and is %v", longest, tally.GCPause)
	}
}
