package host

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"hakaru"
)

// Who watched and who waited both see a unit end; it is told once, with what the
// one who waited knows.
func TestUnite(t *testing.T) {
	waited := []hakaru.Exit{{Service: "app", State: "exit status 3, and left pid 7 running"}}
	watched := []hakaru.Exit{{Service: "app", State: "exit status 3"}, {Service: "db", State: "signal: killed"}}
	want := []hakaru.Exit{waited[0], watched[1]}
	if diff := cmp.Diff(want, unite(waited, watched)); diff != "" {
		t.Error(diff)
	}
	if got := unite(nil, nil); len(got) != 0 {
		t.Errorf("nobody ended: %v", got)
	}
}
