package hint

import "testing"

func TestNear(t *testing.T) {
	names := []string{"throughput", "memory", "threads", "warm_up", "p50", "p99", "a"}
	for written, want := range map[string]string{
		"troughput": "throughput", "memroy": "memory", "thread": "threads", "warmup": "warm_up", "warm-up": "warm_up",
		"p95": "p99", "b": "", "xyzzy": "", "Threads": "threads", "thredas": "threads",
	} {
		if got := Near(written, names); got != want && !(written == "p95" && got == "p50") {
			t.Errorf("%q is near %q, want %q", written, got, want)
		}
	}
}
