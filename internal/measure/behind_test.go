package measure

import (
	"testing"

	"hakaru"
)

func TestFellBehind(t *testing.T) {
	for _, c := range []struct {
		name        string
		good, bad   uint64 // of each half second, of which 100 are due
		p99         float64
		whole, want bool
	}{
		{"keeps up", 100, 0, 0.01, false, false},
		{"keeps up as the load itself", 100, 0, 0.01, true, false},
		{"half of it", 50, 0, 2, false, true},
		{"half of it as the load itself", 50, 0, 2, true, true},
		{"all badly", 0, 100, 0, false, false},
		{"a few under way", 98, 0, 0.1, false, false},
		{"more missing than can be under way", 95, 0, 0.01, false, true},
		{"slower and slower", 98, 0, 0.9, false, true},
		{"none answered", 0, 0, 0, false, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			bs := buckets(10, func(i int, b *hakaru.Bucket) {
				b.Good, b.Bad = c.good, c.bad
				if i < 2 {
					b.Good = 9999 // warm-up
				}
			})
			r := &hakaru.Result{Open: &hakaru.OpenPhase{Rate: 200, Whole: c.whole}}
			if c.whole {
				r.Buckets, r.WarmUp, r.Window = bs, 2*w, 8*w
			} else {
				r.Open.Buckets, r.Open.WarmUp, r.Open.Window = bs, 2*w, 8*w
			}
			if c.p99 > 0 {
				r.Measurements = []hakaru.Measurement{{Metric: hakaru.P99, Value: c.p99, Open: true}}
			}
			if got := FellBehind(r); got != c.want {
				t.Errorf("%v, want %v", got, c.want)
			}
			r.Open.Tally = &hakaru.Tally{Due: uint64(8 * (c.good + c.bad))}
			if c.good+c.bad > 0 && FellBehind(r) {
				t.Error("behind, with no more due than were answered")
			}
		})
	}
	if FellBehind(&hakaru.Result{}) || FellBehind(&hakaru.Result{Open: &hakaru.OpenPhase{Rate: 200}}) {
		t.Error("behind, where nothing is known of an open loop")
	}
}
