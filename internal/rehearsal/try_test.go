package rehearsal

import (
	"bytes"
	"strings"
	"testing"

	"hakaru"
	"hakaru/internal/layout"
)

// Proofs are asked at three moments; those that say nothing new are not printed
// again, and one that changed is.
func TestProofsAreShownWhenTheyChange(t *testing.T) {
	var out bytes.Buffer
	show := NewTry(&out, layout.Style{})
	proof := hakaru.Proof{Setting: "processes", Asked: "4", Found: "4", Source: "GET /-/status", When: hakaru.AtReady, Holds: hakaru.Yes}
	said := func(p hakaru.Proof) string {
		out.Reset()
		show.Proofs([]hakaru.Proof{p})
		if show.Err() != nil {
			t.Fatal(show.Err())
		}
		return out.String()
	}
	if got := said(proof); !strings.Contains(got, "at ready") || !strings.Contains(got, "processes") {
		t.Errorf("first: %s", got)
	}
	proof.When = hakaru.UnderLoad
	if got := said(proof); !strings.Contains(got, "at load") || !strings.Contains(got, "As before") || strings.Contains(got, "processes") {
		t.Errorf("the same under load: %s", got)
	}
	proof.When, proof.Found, proof.Holds = hakaru.AtEnd, "3", hakaru.No
	if got := said(proof); !strings.Contains(got, "at end") || !strings.Contains(got, "no") || !strings.Contains(got, "processes") {
		t.Errorf("changed: %s", got)
	}
}
