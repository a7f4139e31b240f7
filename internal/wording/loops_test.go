package wording

import (
	"testing"
	"time"

	"hakaru"
	"hakaru/internal/layout"
)

func TestLoops(t *testing.T) {
	for _, c := range []struct {
		load hakaru.HTTPLoad
		goal hakaru.Metric
		want string
	}{
		{hakaru.HTTPLoad{}, hakaru.Throughput, "GET http://x/, closed loop, 64 connections kept alive"},
		{hakaru.HTTPLoad{Rate: "2000/s"}, hakaru.P99, "GET http://x/, open loop at 2000/s, 64 connections kept alive"},
		{hakaru.HTTPLoad{Rate: "2000/s", Arrival: "poisson", Connections: "8", KeepAlive: "false"}, hakaru.P99,
			"GET http://x/, open loop at 2000/s by Poisson's law, 8 connections, a new one for each request"},
		{hakaru.HTTPLoad{Rate: "70%"}, hakaru.Throughput, "GET http://x/, closed loop, 64 connections kept alive, then an open loop at 70 % of the baseline's capacity"},
		{hakaru.HTTPLoad{Rate: "{rate}"}, hakaru.P99, "GET http://x/, 64 connections kept alive, rate {rate}"},
		{hakaru.HTTPLoad{}, hakaru.Capacity, "GET http://x/, 64 connections kept alive, at rates that are tried for the highest that holds p99 ≤ 50 ms and errors ≤ 1 %"},
	} {
		c.load.URL = "http://x/"
		e := &hakaru.Experiment{Goal: c.goal, Load: hakaru.Load{HTTP: &c.load}, Limits: []hakaru.Limit{{Metric: hakaru.P99, Bound: 0.05}, {Metric: hakaru.Errors, Bound: 0.01}, {Metric: hakaru.Memory, Bound: 1}}}
		if got := layout.Flat(Load(e)); got != c.want {
			t.Errorf("%s\nwant %s", got, c.want)
		}
	}
}

func TestSent(t *testing.T) {
	const s = time.Second
	for want, load := range map[string]hakaru.LoadSpec{
		"1 s of warm-up, 10 s measured":                     {WarmUp: s, Window: 10 * s},
		"0 s of warm-up, at most 60 s measured":             {Window: 60 * s, Program: &hakaru.ProgramSpec{Counted: true}},
		"open loop at 250/s, 1 s of warm-up, 10 s measured": {WarmUp: s, Window: 10 * s, HTTP: &hakaru.HTTPRequest{Arrival: &hakaru.Arrival{Law: hakaru.ConstantRate, Rate: 250}}},
		"1 s of warm-up, 10 s measured; then an open loop at 70 % of the capacity by Poisson's law, 2 s of warm-up, 5 s measured": {WarmUp: s, Window: 10 * s,
			Open: &hakaru.OpenSpec{Arrival: hakaru.Arrival{Law: hakaru.PoissonRate}, Share: 0.7, WarmUp: 2 * s, Window: 5 * s}},
		"1 s of warm-up, 10 s measured; then an open loop at 250/s, 2 s of warm-up, 5 s measured": {WarmUp: s, Window: 10 * s,
			Open: &hakaru.OpenSpec{Arrival: hakaru.Arrival{Rate: 250}, Share: 0.7, WarmUp: 2 * s, Window: 5 * s}},
		"1 s of warm-up, then at most 15 rates in 30 s, each held for 1.5 s after 500 ms": {WarmUp: s, Window: 30 * s,
			Capacity: &hakaru.CapacitySpec{Steps: 15, Step: 1500 * time.Millisecond, Settle: 500 * time.Millisecond}},
	} {
		if got := layout.Flat(Sent(load, "the capacity")); got != want {
			t.Errorf("%s\nwant %s", got, want)
		}
	}
}

func TestRates(t *testing.T) {
	ro := map[string]string{"mix": "ro"}
	f := &hakaru.Frozen{Rates: []hakaru.OpenRate{{Rate: 1400, Share: 0.7, Capacity: 2000}}}
	if got, want := layout.Flat(OpenRates(f)), "latency at 1400/s in an open loop (70 % of the baseline's 2000/s)"; got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
	f.Rates[0].At = ro
	if got, want := layout.Flat(OpenRates(f)), "latency at mix=ro: 1400/s in an open loop (70 % of the baseline's 2000/s)"; got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
	for _, none := range []*hakaru.Frozen{nil, {}} {
		if got := OpenRates(none); got != "" {
			t.Error(got)
		}
	}
	for want, c := range map[string]hakaru.CapacityReport{
		"744.2/s (731/s to 760/s, after 2 rates)":  {Value: 744.2, Low: 731, High: 760, Steps: make([]hakaru.CapacityStep, 2)},
		"at least 900/s: it used 95 % of its CPUs": {Value: 950, Low: 900, Reached: "it used 95 % of its CPUs"},
		"no rate that was tried holds the limits":  {},
	} {
		if got := layout.Flat(Capacity(&c)); got != want {
			t.Errorf("%s\nwant %s", got, want)
		}
	}
	if got := Measured(hakaru.Measurement{Metric: hakaru.P99, Open: true}) + ", " + Measured(hakaru.Measurement{Metric: hakaru.ClosedP99}); got != "p99 in the open loop, p99 in the closed loop" {
		t.Error(got)
	}
}
