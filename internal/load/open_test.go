package load

import (
	"context"
	"errors"
	"net"
	"os"
	"slices"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"hakaru"
	"hakaru/internal/latency"
	"hakaru/internal/load/goroutines"
	"hakaru/internal/load/job"

	"github.com/google/go-cmp/cmp"
)

// An open loop in the bubble of time_test.go: what is measured of a service with a
// known law is what that law says on paper, to the histogram's resolution.

const ms = time.Millisecond

// stalling is a service that answers after some time, but in a part of each second:
// what arrives then is answered when that is over. Both are by the start of the load.
type stalling struct {
	start    time.Time
	service  time.Duration
	from, to time.Duration

	mu      sync.Mutex
	arrived []time.Duration
}

func (s *stalling) pipes() *pipes {
	return &pipes{serve: func(_ int, c net.Conn) {
		eachRequest(c, func() bool {
			at := time.Since(s.start)
			s.mu.Lock()
			s.arrived = append(s.arrived, at)
			s.mu.Unlock()
			if within := at % time.Second; within >= s.from && within < s.to {
				time.Sleep(s.to - within)
			} else {
				time.Sleep(s.service)
			}
			return say(c, hello)
		})
	}}
}

func decoded(t *testing.T, encoded []byte) *latency.Histogram {
	t.Helper()
	h, err := latency.Decode(encoded)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// figures are what is told of a histogram, each to the histogram's resolution.
type figures struct{ p50, p99, p999, max time.Duration }

func figuresOf(h *latency.Histogram) figures {
	return figures{h.Quantile(0.5), h.Quantile(0.99), h.Quantile(0.999), h.Max()}
}

// resolved is a time on the histogram's scale, on which 0 is some nanoseconds too.
func resolved(d time.Duration) time.Duration {
	var h latency.Histogram
	h.Record(d)
	return h.Max()
}

func (f figures) resolved() figures {
	return figures{resolved(f.p50), resolved(f.p99), resolved(f.p999), resolved(f.max)}
}

// times is n times the same.
func times(n int, d time.Duration) *latency.Histogram {
	var h latency.Histogram
	for range n {
		h.Record(d)
	}
	return &h
}

// The service stalls in 500..600 ms of each second, and 2000 requests a second are
// due, number j of a second's stall at 500 ms + j/2 ms. Otherwise it takes S.
//
// With a connection for each of the 200 that arrive in a stall, number j waits for
// its end: a latency of 100 ms − j/2 ms; all others S. So (x/0.5 ms) of 2000 have a
// latency above 100 ms − x: of the 1 % that are above p99, 20 in a second, the lowest
// has 90.5 ms and the next one, p99, 90 ms; likewise p99.9 = 99 ms; the highest is
// 100 ms. Service times are the same, since all are sent when they are due.
//
// With 16 connections the first 16 of a stall are sent, and answered at its end, as
// above: 100 to 92.5 ms. The others are sent from 600 ms on, 16 every S = 1 ms:
// number j at 600 ms + b ms, b = ⌊(j−16)/16⌋, and answered 1 ms later, a latency of
// 101 ms + b ms − j/2 ms, as long as that is above S; then the queue is empty again.
// The highest of them are 93, 92.5, 92, 91.5 and 91 ms: of these the fifth is the
// 21st of all, p99 = 91 ms. p99.9 and the highest are as above. Of the service times
// only the 16 in 2000 that were out in the stall are not S, less than 1 %, so that
// their p99 = S: that is what is hidden where latency is measured from the send.
func TestStallsAreMeasuredAsTheLawSays(t *testing.T) {
	const rate, seconds = 2000, 10
	for _, c := range []struct {
		name        string
		connections int
		service     time.Duration
		// latency and served are the law for number j of a stall, as long as it acts.
		late            int
		latency, served func(j int) time.Duration
		wantLatency     figures
		wantService     figures
	}{
		{
			"enough connections, an instant service", 256, 0, 200,
			func(j int) time.Duration { return 100*ms - time.Duration(j)*ms/2 },
			func(j int) time.Duration { return 100*ms - time.Duration(j)*ms/2 },
			figures{0, 90 * ms, 99 * ms, 100 * ms}, figures{0, 90 * ms, 99 * ms, 100 * ms},
		},
		{
			"enough connections", 256, ms, 200,
			func(j int) time.Duration { return 100*ms - time.Duration(j)*ms/2 },
			func(j int) time.Duration { return 100*ms - time.Duration(j)*ms/2 },
			figures{ms, 90 * ms, 99 * ms, 100 * ms}, figures{ms, 90 * ms, 99 * ms, 100 * ms},
		},
		{
			"few connections", 16, ms, 250,
			func(j int) time.Duration {
				if j < 16 {
					return 100*ms - time.Duration(j)*ms/2
				}
				return max(ms, 101*ms+time.Duration((j-16)/16)*ms-time.Duration(j)*ms/2)
			},
			func(j int) time.Duration {
				if j < 16 {
					return 100*ms - time.Duration(j)*ms/2
				}
				return ms
			},
			figures{ms, 91 * ms, 99 * ms, 100 * ms}, figures{ms, ms, 99 * ms, 100 * ms},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &stalling{start: time.Now().Add(time.Second), service: c.service, from: 500 * ms, to: 600 * ms}
				req := plainRequest(c.connections)
				req.Arrival = &hakaru.Arrival{Law: hakaru.ConstantRate, Rate: rate}
				report := inBubble(t, s.pipes(), req, hakaru.Window{Start: s.start, WarmUp: time.Second, Length: seconds * time.Second}, nil)

				// As many are out at the end of the warm-up as at the end.
				var latencies, services latency.Histogram
				queued := uint64(0)
				for range seconds {
					for j := range rate {
						latency, service := c.service, c.service
						if j < c.late {
							latency, service = c.latency(j), c.served(j)
						}
						latencies.Record(latency)
						services.Record(service)
						if latency > service {
							queued++
						}
					}
				}
				tally := report.Tally
				gotLatency, gotService := decoded(t, tally.Latency), decoded(t, tally.Service)
				if got, want := figuresOf(gotLatency), c.wantLatency.resolved(); got != want {
					t.Errorf("latency %v, want %v", got, want)
				}
				if got, want := figuresOf(gotService), c.wantService.resolved(); got != want {
					t.Errorf("service time %v, want %v", got, want)
				}
				if !gotLatency.Equal(&latencies) {
					t.Errorf("latencies %v\nwant %v", cells(gotLatency), cells(&latencies))
				}
				if !gotService.Equal(&services) {
					t.Errorf("service times %v\nwant %v", cells(gotService), cells(&services))
				}
				if tally.Due != rate*seconds || tally.Good != rate*seconds || tally.Bad != 0 || tally.Unsent != 0 || tally.Queued != queued {
					t.Errorf("%d due, %d good, %d bad, %d unsent, %d queued, want %d, %[6]d, 0, 0, %d",
						tally.Due, tally.Good, tally.Bad, tally.Unsent, tally.Queued, rate*seconds, queued)
				}
				if lag := decoded(t, tally.Lag); !lag.Equal(times(rate*seconds, 0)) {
					t.Errorf("%d send lags, the longest %v, want %d of 0", lag.Count(), lag.Max(), rate*seconds)
				}
			})
		})
	}
}

func cells(h *latency.Histogram) map[time.Duration]uint64 {
	all := map[time.Duration]uint64{}
	for d, n := range h.Cells() {
		all[d] = n
	}
	return all
}

// In a closed loop a request is due when it is sent: both figures are the same, and
// the stall hides in both.
func TestClosedLoopReportsBoth(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &stalling{start: time.Now(), service: ms, from: 500 * ms, to: 600 * ms}
		report := inBubble(t, s.pipes(), plainRequest(16), hakaru.Window{WarmUp: time.Second, Length: 10 * time.Second}, nil)
		h, service := decoded(t, report.Tally.Latency), decoded(t, report.Tally.Service)
		if !h.Equal(service) {
			t.Errorf("latencies %v, service times %v, want the same", cells(h), cells(service))
		}
		// In a second 900 of 901 answers take 1 ms, and one 100 ms.
		want := times(16*10*900, ms)
		want.Merge(times(16*10, 100*ms))
		if !h.Equal(want) {
			t.Errorf("latencies %v, want %v", cells(h), cells(want))
		}
		if report.Tally.Due != 0 || report.Tally.Queued != 0 || report.Tally.Unsent != 0 || decoded(t, report.Tally.Lag).Count() != 0 {
			t.Errorf("%d due, %d queued, %d unsent, want 0 in a closed loop", report.Tally.Due, report.Tally.Queued, report.Tally.Unsent)
		}
	})
}

// Requests arrive when the law says, and the same law makes the same load.
func TestArrivalsAreTheLaws(t *testing.T) {
	const length = 5 * time.Second
	arrivals := func(t *testing.T, a hakaru.Arrival) (arrived []time.Duration) {
		synctest.Test(t, func(t *testing.T) {
			s := &stalling{start: time.Now().Add(time.Second)}
			req := plainRequest(8)
			req.Arrival = &a
			report := inBubble(t, s.pipes(), req, hakaru.Window{Start: s.start, Length: length}, nil)
			arrived = s.arrived
			if n := uint64(len(arrived)); report.Tally.Good != n || report.Tally.Due != n || report.Tally.Bad+report.Tally.Unsent != 0 {
				t.Errorf("%d arrived, %d due, %d good, %d bad, %d unsent", n, report.Tally.Due, report.Tally.Good, report.Tally.Bad, report.Tally.Unsent)
			}
			if h := decoded(t, report.Latency); h.Max() != resolved(0) {
				t.Errorf("a latency of %v from an instant service, want 0", h.Max())
			}
		})
		return arrived
	}
	for _, a := range []hakaru.Arrival{
		{Law: hakaru.PoissonRate, Rate: 300, Seed: 1},
		{Law: hakaru.PoissonRate, Rate: 300, Seed: 2},
		{Law: hakaru.ConstantRate, Rate: 300},
		{Law: hakaru.RampRate, Rate: 500, To: 50, Over: 2 * time.Second},
	} {
		t.Run(string(a.Law), func(t *testing.T) {
			make, err := lawOf(&a)
			if err != nil {
				t.Fatal(err)
			}
			var want []time.Duration
			for law, n := make(), uint64(0); ; n++ {
				due, ok := law.At(n)
				if !ok || due >= length {
					break
				}
				want = append(want, due)
			}
			first, second := arrivals(t, a), arrivals(t, a)
			if d := cmp.Diff(want, first); d != "" {
				t.Errorf("arrivals (-want +got)\n%s", d)
			}
			if !slices.Equal(first, second) {
				t.Error("the same law made another load the second time")
			}
		})
	}
}

// How many arrive in each half second is the integral of the rate over it.
func TestRatesThatChange(t *testing.T) {
	for _, c := range []struct {
		name    string
		arrival hakaru.Arrival
		want    []uint64
		took    time.Duration
	}{
		// N(t) = 100 t² until 2 s, then 400 a second.
		{"ramp", hakaru.Arrival{Law: hakaru.RampRate, Rate: 0, To: 400, Over: 2 * time.Second}, []uint64{25, 75, 125, 175, 200, 200}, 3 * time.Second},
		// N(t) = 400 t − 100 t²; nobody comes after 2 s, so that it ends before.
		{"ramp down", hakaru.Arrival{Law: hakaru.RampRate, Rate: 400, To: 0, Over: 2 * time.Second}, []uint64{175, 125, 75, 25}, 0},
		// It ends with the last answer: that of a request due at 1.5 s + 299/300 s.
		{"steps", hakaru.Arrival{Law: hakaru.StepRates, Steps: []hakaru.RateStep{{Rate: 100, For: time.Second}, {For: time.Second / 2}, {Rate: 300, For: time.Second}}},
			[]uint64{50, 50, 0, 150, 150}, 1500*ms + 996_666_667 + 1},
		{"no rate at all", hakaru.Arrival{Law: hakaru.ConstantRate}, []uint64{0}, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &stalling{start: time.Now(), service: 1}
				req := plainRequest(4)
				req.Arrival = &c.arrival
				report := inBubble(t, s.pipes(), req, hakaru.Window{Length: 3 * time.Second}, nil)
				var got []uint64
				total := uint64(0)
				for _, b := range report.Buckets {
					got = append(got, b.Good)
					total += b.Good
				}
				if d := cmp.Diff(c.want, got); d != "" {
					t.Errorf("good answers by bucket (-want +got)\n%s", d)
				}
				if report.Tally.Due != total || report.Tally.Unsent != 0 {
					t.Errorf("%d due, %d unsent, want %d and 0", report.Tally.Due, report.Tally.Unsent, total)
				}
				if c.took != 0 && report.Tally.Took != c.took {
					t.Errorf("took %v, want %v", report.Tally.Took, c.took)
				}
			})
		})
	}
}

// One connection that can take 100 a second, of 200 that are due: number n is due at
// 5n ms and answered at 10(n+1) ms. Half of them are never sent, and the last of the
// others is answered at the end, which is too late.
func TestMoreThanTheConnectionsTake(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &stalling{start: time.Now(), service: 10 * ms}
		req := plainRequest(1)
		req.Arrival = &hakaru.Arrival{Law: hakaru.ConstantRate, Rate: 200}
		report := inBubble(t, s.pipes(), req, hakaru.Window{Length: 2 * time.Second}, nil)
		var want latency.Histogram
		for n := range 199 {
			want.Record(10*ms + 5*ms*time.Duration(n))
		}
		tally := report.Tally
		if h := decoded(t, tally.Latency); !h.Equal(&want) {
			t.Errorf("latencies %v, want %v", cells(h), cells(&want))
		}
		if tally.Due != 400 || tally.Good != 199 || tally.Unsent != 200 || tally.Queued != 199 {
			t.Errorf("%d due, %d good, %d unsent, %d queued, want 400, 199, 200, 199", tally.Due, tally.Good, tally.Unsent, tally.Queued)
		}
		if service, waiting := decoded(t, tally.Service), decoded(t, tally.Waiting); !service.Equal(times(199, 10*ms)) || !service.Equal(waiting) {
			t.Errorf("service times %v, waiting %v, want 199 of 10 ms", cells(service), cells(waiting))
		}
	})
}

// A number of requests ends an open loop as it does a closed one: with the answers.
func TestBudgetOfAnOpenLoop(t *testing.T) {
	for _, c := range []struct {
		name    string
		arrival *hakaru.Arrival
		took    time.Duration
	}{
		{"open", &hakaru.Arrival{Law: hakaru.ConstantRate, Rate: 100}, 990*ms + 20*ms},
		{"closed", nil, 34 * 20 * ms}, // of three connections, one has one more
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &stalling{start: time.Now(), service: 20 * ms}
				req := plainRequest(3)
				req.Arrival, req.Requests = c.arrival, 100
				report := inBubble(t, s.pipes(), req, hakaru.Window{Length: time.Hour}, nil)
				if n := len(s.arrived); n != 100 || report.Tally.Good != 100 || report.Tally.Unsent != 0 || report.Tally.Took != c.took {
					t.Errorf("%d arrived, %d good, %d unsent, took %v, want 100, 100, 0, %v", n, report.Tally.Good, report.Tally.Unsent, report.Tally.Took, c.took)
				}
			})
		})
	}
}

// A connection on which nothing is out does not time out, however long that is.
func TestIdleIsNoTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &stalling{start: time.Now(), service: 99 * ms}
		p := s.pipes()
		req := plainRequest(2)
		req.Timeout = 100 * ms
		req.Arrival = &hakaru.Arrival{Law: hakaru.ConstantRate, Rate: 0.25}
		report := inBubble(t, p, req, hakaru.Window{Length: 21 * time.Second}, nil)
		good, bad := kinds(report)
		if good != 6 || len(bad) != 0 || p.dialled.Load() != 2 || report.Tally.Took != 21*time.Second {
			t.Errorf("%d good, bad %v, %d connections, took %v, want 6, none, 2 and the whole window", good, bad, p.dialled.Load(), report.Tally.Took)
		}
	})
}

// A timeout runs from the send, so that a queue is not taken for one; the latency of
// what failed runs from when it was due, as that of the rest.
func TestTimeoutOfAnOpenLoop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		// The first request is never answered, and hung up on after 200 to 210 ms.
		p := &pipes{serve: func(n int, c net.Conn) {
			eachRequest(c, func() bool {
				if n == 1 {
					c.Read(make([]byte, 1))
					return false
				}
				return say(c, hello)
			})
		}}
		req := plainRequest(1)
		req.Timeout = 200 * ms
		req.Arrival = &hakaru.Arrival{Law: hakaru.ConstantRate, Rate: 10}
		report := inBubble(t, p, req, hakaru.Window{Length: time.Second}, nil)
		good, bad := kinds(report)
		if good != 9 || bad[hakaru.TimedOut] != 1 || len(bad) != 1 {
			t.Errorf("%d good, bad %v, want 9 and one timeout", good, bad)
		}
		if failed := decoded(t, report.Tally.Failed); failed.Max() < 200*ms || failed.Max() > 211*ms {
			t.Errorf("it failed after %v, want 200 ms to a twentieth more", failed.Max())
		}
		if h := decoded(t, report.Latency); h.CountBetween(ms, time.Hour) != 2 {
			t.Errorf("latencies %v, want those due at 100 and 200 ms to have waited", cells(h))
		}
	})
}

// Requests that are due while nobody listens fail, or are never sent, since attempts
// are kept apart as in a closed loop.
func TestNobodyListensToAnOpenLoop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		refuse := func(context.Context) (net.Conn, error) {
			return nil, &net.OpError{Op: "dial", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}
		}
		req := plainRequest(1)
		req.Arrival = &hakaru.Arrival{Law: hakaru.ConstantRate, Rate: 1000}
		report, err := keep(t.Context(), req, hakaru.Window{Length: 2 * time.Second}, nil, goroutines.Engine{}, refuse)
		if err != nil {
			t.Fatal(err)
		}
		attempts := uint64(0)
		for at, pause := time.Duration(0), job.FirstPause; at < 2*time.Second; at, pause = at+pause, min(2*pause, job.LongPause) {
			attempts++
		}
		good, bad := kinds(report)
		if d := cmp.Diff(map[hakaru.ErrorKind]uint64{hakaru.Refused: attempts}, bad); d != "" || good != 0 {
			t.Errorf("%d good, bad (-want +got)\n%s", good, d)
		}
		if tally := report.Tally; tally.Due != 2000 || tally.Unsent != 2000-attempts {
			t.Errorf("%d due, %d unsent, want 2000 and %d", tally.Due, tally.Unsent, 2000-attempts)
		}
	})
}

// Broken off, an open loop ends at once, though its next request is far away.
func TestOpenLoopInterrupted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reason := errors.New("somebody said stop")
		ctx, cancel := context.WithCancelCause(t.Context())
		timer := time.AfterFunc(1250*ms, func() { cancel(reason) })
		defer timer.Stop()
		s := &stalling{start: time.Now(), service: ms}
		p := s.pipes()
		req := plainRequest(4)
		req.Arrival = &hakaru.Arrival{Law: hakaru.ConstantRate, Rate: 0.9}
		report, err := keep(ctx, req, hakaru.Window{Length: time.Hour}, nil, goroutines.Engine{}, p.dial)
		if !errors.Is(err, reason) {
			t.Errorf("error %v, want %v", err, reason)
		}
		if took := time.Since(s.start); took != 1250*ms {
			t.Errorf("ended after %v, want at once", took)
		}
		p.serving.Wait()
		// At 0 and 1.11 s: the second one after the last whole bucket.
		tally := report.Tally
		if len(report.Buckets) != 2 || tally.Good != 2 || tally.Statuses[200] != 2 || tally.Due != 2 || tally.Unsent != 0 || tally.Took != 1250*ms {
			t.Errorf("%d buckets, %d good, %d of status 200, %d due, %d unsent in %v, want 2, 2, 2, 2, 0 in 1.25s",
				len(report.Buckets), tally.Good, tally.Statuses[200], tally.Due, tally.Unsent, tally.Took)
		}
	})
}

// Laws that nobody can follow are mistakes before the start.
func TestNoSuchLaw(t *testing.T) {
	for _, a := range []hakaru.Arrival{{}, {Law: "burst"}, {Law: hakaru.ConstantRate, Rate: -1}, {Law: hakaru.RampRate, To: 1}, {Law: hakaru.StepRates}} {
		if _, err := lawOf(&a); err == nil {
			t.Errorf("%+v: no error", a)
		}
	}
	if law, err := lawOf(nil); law != nil || err != nil {
		t.Errorf("a closed loop has a law, or the error %v", err)
	}
}
