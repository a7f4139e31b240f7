package kernel

import (
	"os"
	"testing"
)

func TestParseSchedstat(t *testing.T) {
	got, err := parseSchedstat("1500000000 250000000 42\n")
	if err != nil || got != (schedstat{1.5, 0.25}) {
		t.Errorf("%v, %v", got, err)
	}
	for _, bad := range []string{"", "1", "a 2 3", "1 -2 3"} {
		if _, err := parseSchedstat(bad); err == nil {
			t.Errorf("%q: no error", bad)
		}
	}
}

// Each look tells what was new since the one before; a process that is not there
// adds nothing.
func TestThreadTimes(t *testing.T) {
	if !HasSchedstat() {
		t.Skip("this kernel keeps no schedstat")
	}
	var times ThreadTimes
	const none = 1 << 30
	_, all := times.Look(os.Getpid(), none)
	_, next := times.Look(os.Getpid(), none)
	if all <= 0 || next < 0 || next >= all {
		t.Errorf("%v s at first, %v s more a moment later", all, next)
	}
}
