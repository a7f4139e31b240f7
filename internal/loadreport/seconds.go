package loadreport

import (
	"encoding/base64"
	"fmt"
	"io"
	"math"
	"time"

	"hakaru"
	"hakaru/internal/latency"
	"hakaru/internal/unit"
)

// Second is a second of a load, or the shorter last one.
type Second struct {
	At, Length time.Duration // from the start of the load
	WarmUp     bool
	Good, Bad  uint64
	Kinds      map[string]uint64
	Offered    float64 // 1/s, of an open loop
	Latency    *latency.Histogram
}

// Seconds puts buckets together and gives each second, when it is whole, to all
// of To. It is for one goroutine.
type Seconds struct {
	Load Load
	To   []func(Second) error

	now Second
	err error
}

// Add takes the next bucket. The first error of To or of a bucket stays.
func (s *Seconds) Add(b hakaru.Bucket) {
	const whole = time.Second
	took, err := latency.Decode(b.Latency)
	if err != nil {
		s.fail(fmt.Errorf("bucket at %v: %w", b.At, err))
		return
	}
	warmUp := b.At < s.Load.Window.WarmUp
	if s.now.Length > 0 && warmUp != s.now.WarmUp {
		s.give()
	}
	if s.now.Length == 0 {
		s.now = Second{At: b.At, WarmUp: warmUp, Latency: &latency.Histogram{}, Kinds: map[string]uint64{}}
	}
	s.now.Length += hakaru.BucketWidth
	s.now.Good += b.Good
	s.now.Bad += b.Bad
	for kind, n := range b.Kinds {
		s.now.Kinds[kind] += n
	}
	s.now.Latency.Merge(took)
	if s.now.Length >= whole {
		s.give()
	}
}

// End gives what is left, with its right length where the load took so long.
func (s *Seconds) End(took time.Duration) error {
	if s.now.Length > 0 {
		if left := s.Load.Window.WarmUp + took - s.now.At; left > 0 {
			s.now.Length = min(s.now.Length, left)
		}
		s.give()
	}
	return s.err
}

func (s *Seconds) give() {
	s.now.Offered = Offered(s.Load.Request.Arrival, s.now.At, s.now.At+s.now.Length)
	for _, to := range s.To {
		s.fail(to(s.now))
	}
	s.now = Second{}
}

func (s *Seconds) fail(err error) {
	if s.err == nil {
		s.err = err
	}
}

// Offered is the mean rate that a law offers between two times, 1/s; NaN in a
// closed loop, and 0 after the law's end.
func Offered(a *hakaru.Arrival, from, to time.Duration) float64 {
	if a == nil || to <= from {
		return math.NaN()
	}
	span := (to - from).Seconds()
	switch a.Law {
	case hakaru.RampRate:
		// The integral of the rate, which stays at its end.
		until := func(at time.Duration) float64 {
			t, over := at.Seconds(), a.Over.Seconds()
			if t <= over && over > 0 {
				return a.Rate*t + (a.To-a.Rate)*t*t/(2*over)
			}
			return (a.Rate+a.To)/2*over + a.To*(t-over)
		}
		return (until(to) - until(from)) / span
	case hakaru.StepRates:
		var begin time.Duration
		var due float64
		for _, s := range a.Steps {
			end := begin + s.For
			if common := min(to, end) - max(from, begin); common > 0 {
				due += s.Rate * common.Seconds()
			}
			begin = end
		}
		return due / span
	}
	return a.Rate
}

// Live is a second as a line of a terminal.
func (s Second) Live() string {
	line := unit.Duration((s.At + s.Length).Round(time.Second))
	if s.WarmUp {
		line += " (warm-up)"
	}
	line += "  " + unit.Rate(perSecond(float64(s.Good), s.Length))
	if !math.IsNaN(s.Offered) {
		line += " of " + unit.Rate(s.Offered)
	}
	if s.Latency.Count() > 0 {
		line += fmt.Sprintf("  p50 %s  p99 %s", unit.Duration(s.Latency.Quantile(0.5)), unit.Duration(s.Latency.Quantile(0.99)))
	}
	if s.Bad > 0 {
		line += "  " + kindList(s.Kinds)
	}
	return line
}

// CSV is a line for each second, to w, below a head that it writes at once.
func CSV(w io.Writer) (func(Second) error, error) {
	_, err := io.WriteString(w, "seconds,length_seconds,warm_up,offered,good,bad,p50_seconds,p90_seconds,p99_seconds,max_seconds\n")
	return func(s Second) error {
		offered, quantiles := "", ",,,"
		if !math.IsNaN(s.Offered) {
			offered = decimal(s.Offered)
		}
		if h := s.Latency; h.Count() > 0 {
			quantiles = fmt.Sprintf("%.6f,%.6f,%.6f,%.6f", h.Quantile(0.5).Seconds(), h.Quantile(0.9).Seconds(), h.Quantile(0.99).Seconds(), h.Max().Seconds())
		}
		_, err := fmt.Fprintf(w, "%s,%s,%t,%s,%d,%d,%s\n", decimal(s.At.Seconds()), decimal(s.Length.Seconds()), s.WarmUp, offered, s.Good, s.Bad, quantiles)
		return err
	}, err
}

func decimal(v float64) string { return fmt.Sprintf("%g", math.Round(v*1e6)/1e6) }

// HDRLog is an HdrHistogram interval log (V2, format 1.3): a line for each second
// of the measured window. Times are relative to the start, which its head says;
// the longest latency of a line is in milliseconds, as the tools for it expect.
func HDRLog(w io.Writer, started time.Time) (func(Second) error, error) {
	at := float64(started.UnixMilli()) / 1e3
	_, err := fmt.Fprintf(w, "#[Latencies from when requests were due, written by hakaru load]\n"+
		"#[Histogram log format version 1.3]\n"+
		"#[StartTime: %.3f (seconds since epoch), %s]\n"+
		"#[BaseTime: %.3f (seconds since epoch)]\n"+
		"\"StartTimestamp\",\"Interval_Length\",\"Interval_Max\",\"Interval_Compressed_Histogram\"\n",
		at, started.UTC().Format(time.RFC3339), at)
	return func(s Second) error {
		if s.WarmUp || s.Latency.Count() == 0 {
			return nil
		}
		encoded, err := s.Latency.Encode()
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(w, "%.3f,%.3f,%.3f,%s\n", s.At.Seconds(), s.Length.Seconds(), s.Latency.Max().Seconds()*1e3,
			base64.StdEncoding.EncodeToString(encoded))
		return err
	}, err
}
