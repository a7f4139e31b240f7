package host

import (
	"net"
	"testing"
	"time"

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

// A load that asks for a capacity is a search for it, at the address that was
// leased. (Nobody is there, so that it ends with its first load.)
func TestLoadFindsCapacity(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	l.Close()
	spec := hakaru.LoadSpec{
		HTTP: &hakaru.HTTPRequest{URL: "http://{http}/", Connections: 2, KeepAlive: true},
		Capacity: &hakaru.CapacitySpec{
			Holds: []hakaru.Condition{{Metric: hakaru.P99, Quantile: 0.99, Bound: 0.05}}, Steps: 3, Step: hakaru.BucketWidth,
		},
	}
	buckets := 0
	report, err := newServed(t, settings(t)).Load(t.Context(), hakaru.Place{Names: hakaru.Names{"http": address}}, spec,
		hakaru.Window{Length: 20 * time.Second}, func(hakaru.Bucket) { buckets++ })
	if err != nil {
		t.Fatal(err)
	}
	if c := report.Capacity; c == nil || c.Value != 0 || len(report.Buckets) != buckets || buckets == 0 || report.Tally == nil {
		t.Errorf("capacity %+v, %d buckets of %d, tally %v", c, len(report.Buckets), buckets, report.Tally)
	}
	if len(report.Samples) == 0 || report.Samples[0].Kind != hakaru.Refused {
		t.Errorf("samples %v, want the refused connections", report.Samples)
	}
}
