package trial_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"hakaru"
	"hakaru/internal/trial"
)

// programHosts are both sides of a trial whose load is a program's: it begins its
// measured run after begun and ends after buckets.
type programHosts struct {
	hosts
	begun   time.Duration
	buckets int
	totals  hakaru.Totals
	watched hakaru.Window
	looked  time.Duration
}

func (h *programHosts) Watch(ctx context.Context, _ hakaru.Place, w hakaru.Window, begun func()) (hakaru.Watched, error) {
	h.watched = w
	begun()
	_ = until(ctx, w) // it tells what it has seen when it is to end
	seen := hakaru.Watched{Counters: []hakaru.Counter{{Name: hakaru.CounterCPU, Of: "app"}}}
	for range min(int(time.Since(w.Start)/hakaru.BucketWidth), int(w.Total()/hakaru.BucketWidth)) {
		seen.Buckets = append(seen.Buckets, []float64{0.1})
	}
	return seen, nil
}

func (h *programHosts) Load(ctx context.Context, _ hakaru.Place, _ hakaru.LoadSpec, w hakaru.Window, emit func(hakaru.Bucket)) (hakaru.LoadReport, error) {
	report := hakaru.LoadReport{
		Counters: []hakaru.Counter{{Name: hakaru.CounterCPU, Of: hakaru.OfGenerator}},
		Begun:    h.begun, Totals: &h.totals, Output: "its report",
		Warnings: []hakaru.Warning{{Code: "program_latency", Message: "of a closed loop"}},
	}
	for i := range h.buckets {
		b := hakaru.Bucket{At: time.Duration(i) * hakaru.BucketWidth, Counters: []float64{0.01}}
		report.Buckets = append(report.Buckets, b)
		if err := until(ctx, hakaru.Window{Start: w.Start, Length: b.At + hakaru.BucketWidth}); err != nil {
			return report, err
		}
		b.Sending = b.At >= h.begun && i < h.buckets-1 // in the last one it ended
		emit(b)
	}
	length := time.Duration(h.buckets)*hakaru.BucketWidth + 100*time.Millisecond
	return report, until(ctx, hakaru.Window{Start: w.Start, Length: length})
}

// Prove notes how long after the start of the measured run it was asked.
func (h *programHosts) Prove(ctx context.Context, p hakaru.Place, asks []hakaru.Ask, when hakaru.Moment) ([]hakaru.Proof, error) {
	if when == hakaru.UnderLoad {
		h.looked = time.Since(h.watched.Start) - h.begun
	}
	return h.hosts.Prove(ctx, p, asks, when)
}

func TestRunProgram(t *testing.T) {
	for _, c := range []struct {
		name         string
		spec         hakaru.LoadSpec
		begun        time.Duration
		buckets      int
		window       time.Duration // of the result
		underLoad    time.Duration // after the start of the measured run; 0: there was none
		within       time.Duration // of the machine's time, start and stop apart
		cpuPerAnswer float64
	}{
		{"by time, with the moment more that it takes",
			hakaru.LoadSpec{WarmUp: time.Second, Window: 2 * time.Second, Program: &hakaru.ProgramSpec{Name: "wrk"}},
			1500 * time.Millisecond, 8, 2500 * time.Millisecond, time.Second, 5 * time.Second, 0.001},
		{"by time, when the service has done with what the warm-up left behind",
			hakaru.LoadSpec{WarmUp: time.Second, Window: 2 * time.Second, Program: &hakaru.ProgramSpec{Name: "wrk"}},
			5 * time.Second, 15, 2500 * time.Millisecond, time.Second, 8 * time.Second, 0.001},
		{"by count, long before the limit",
			hakaru.LoadSpec{WarmUp: time.Second, Window: time.Minute, Program: &hakaru.ProgramSpec{Name: "ab", Counted: true}},
			1500 * time.Millisecond, 6, 1500 * time.Millisecond, 500 * time.Millisecond, 4 * time.Second, 0.0006},
		{"by count, within one bucket",
			hakaru.LoadSpec{Window: time.Minute, Program: &hakaru.ProgramSpec{Name: "ab", Counted: true}},
			0, 1, 500 * time.Millisecond, 0, time.Second, 0.0002},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				spec := one()
				spec.Load = c.spec
				spec.Asks[0].From = hakaru.UnderLoad
				h := &programHosts{hosts: hosts{held: hakaru.Yes}, begun: c.begun, buckets: c.buckets,
					totals: hakaru.Totals{Took: time.Second, Good: 500}}
				out, err := trial.Run(t.Context(), spec, h, h, trial.Sight{})
				if err != nil {
					t.Fatal(err)
				}
				r := out.Result
				if r.Void != nil || r.WarmUp != c.begun || r.Window != c.window || r.Took > c.within {
					t.Errorf("void %v, warm-up %v, window %v, took %v", r.Void, r.WarmUp, r.Window, r.Took)
				}
				if slices.Contains(h.calls, "prove load") != (c.underLoad > 0) || h.looked != c.underLoad {
					t.Errorf("calls %v, looked after %v, want %v", h.calls, h.looked, c.underLoad)
				}
				// What shows under load only is not passed over in silence.
				late := slices.ContainsFunc(r.Proofs, func(p hakaru.Proof) bool {
					return p.When == hakaru.UnderLoad && p.Holds == hakaru.NotProved && strings.Contains(p.Found, "the load was over")
				})
				if late != (c.underLoad == 0) {
					t.Errorf("proofs %+v", r.Proofs)
				}
				if v, _ := r.Measured(hakaru.Throughput); v != 500 {
					t.Errorf("throughput %v", v)
				}
				if v, ok := r.Measured(hakaru.CPUPerRequest); !ok || v-c.cpuPerAnswer > 1e-12 || c.cpuPerAnswer-v > 1e-12 {
					t.Errorf("CPU per answer %v (%v), want %v", v, ok, c.cpuPerAnswer)
				}
				if h.watched.Length <= c.spec.Window {
					t.Errorf("watched for %v only", h.watched.Length)
				}
				if last := out.Outputs[len(out.Outputs)-1]; last.Service != hakaru.OfLoad || last.Text != "its report" {
					t.Errorf("outputs %+v", out.Outputs)
				}
				if !slices.ContainsFunc(r.Warnings, func(w hakaru.Warning) bool { return w.Code == "program_latency" }) {
					t.Errorf("warnings %+v", r.Warnings)
				}
			})
		})
	}
}
