package rehearsal

import (
	"bytes"
	"strings"
	"testing"
	"time"

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

// Both loops are told before they are sent, and what came of them after.
func TestTryOfLoops(t *testing.T) {
	var out bytes.Buffer
	show := NewTry(&out, layout.Style{Width: 200})
	show.Spec(hakaru.Bundle{Trial: hakaru.Trial{Variant: "base"}}, hakaru.LoadSpec{WarmUp: time.Second, Window: 2 * time.Second,
		HTTP: &hakaru.HTTPRequest{Method: "GET", URL: "http://{http}/", Connections: 8},
		Open: &hakaru.OpenSpec{Arrival: hakaru.Arrival{Law: hakaru.ConstantRate}, Share: 0.7, WarmUp: time.Second, Window: 3 * time.Second}})
	show.Result(hakaru.Result{
		Open: &hakaru.OpenPhase{Rate: 1400, Share: 0.7, WarmUp: time.Second, Window: 3 * time.Second, Tally: &hakaru.Tally{Due: 4200, Queued: 12}},
		Capacity: &hakaru.CapacityReport{Value: 744, Low: 731, High: 760, Steps: []hakaru.CapacityStep{
			{Rate: 700, Achieved: 699, Holds: true}, {Rate: 800, Achieved: 760, Why: "p99 310 ms, want below 50 ms"}}},
		Measurements: []hakaru.Measurement{{Metric: hakaru.P99, Value: 0.09, Unit: "s", Open: true}, {Metric: hakaru.ClosedP99, Value: 0.2, Unit: "s"}},
	}, nil, nil, nil)
	if show.Err() != nil {
		t.Fatal(show.Err())
	}
	golden(t, "try-loops.txt", out.Bytes())
}
