// Package trial runs one trial through two hosts: up, prove, warm up, load while
// watching, once more in an open loop where latency is measured, prove, down, and
// says what was measured and whether it counts.
//
// It takes a rendered trial and gives a hakaru.Result. Everything that goes
// wrong with the service or its surroundings is a void Result, kept and shown;
// an error is returned only when the trial could not be carried through for a
// reason that says nothing about the variant: it was interrupted, or an agent
// was lost. Whatever happens, the place is taken down before Run returns.
//
// It draws nothing and stores nothing.
package trial

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"hakaru"
	"hakaru/internal/compare"
	"hakaru/internal/diagnose"
	"hakaru/internal/host"
	"hakaru/internal/link"
	"hakaru/internal/measure"
	"hakaru/internal/service/attach"
)

// Spec is a trial, rendered.
type Spec struct {
	Trial  hakaru.Trial
	Bundle hakaru.Bundle
	Load   hakaru.LoadSpec
	Asks   []hakaru.Ask
	Goal   hakaru.Metric
	Limits []hakaru.Limit
	// Shared is set where generator and service may use the same CPUs.
	Shared bool
}

// Sight is what may be shown of a trial while it runs. Any member may be nil.
// They are called one at a time, whichever goroutine has something to show.
type Sight struct {
	Stage  func(Stage)
	Up     func(hakaru.Place)
	Proofs func([]hakaru.Proof)
	Bucket func(hakaru.Bucket)
	// Hold is called when all has been measured and before the place is taken
	// down; it may keep it up until its ctx ends.
	Hold func(context.Context, hakaru.Place)
}

// Stage is where a trial is.
type Stage string

const (
	Starting  Stage = "starting"
	WarmingUp Stage = "warm-up"
	Measuring Stage = "measuring"
	OpenLoop  Stage = "open loop" // after the closed one
	Searching Stage = "searching" // for the capacity
	Stopping  Stage = "stopping"
)

// oneAtATime fills in what is missing and puts a lock around what tells of a
// trial: load and proofs go on at the same time. Hold, which waits, has none.
func (s Sight) oneAtATime() Sight {
	var mu sync.Mutex
	return Sight{
		Stage: told(&mu, s.Stage), Up: told(&mu, s.Up), Proofs: told(&mu, s.Proofs), Bucket: told(&mu, s.Bucket),
		Hold: s.Hold,
	}
}

func told[T any](mu *sync.Mutex, tell func(T)) func(T) {
	return func(what T) {
		if tell == nil {
			return
		}
		mu.Lock()
		defer mu.Unlock()
		tell(what)
	}
}

// Outcome is a Result with what the services wrote.
type Outcome struct {
	Result  hakaru.Result
	Outputs []hakaru.Output
	Exits   []hakaru.Exit
	Samples []hakaru.Sample // the first bad answers
}

// downGrace bounds how long taking a place down may take beside the graces of
// its services.
const downGrace = time.Minute

// downTime bounds taking down what the bundle brings up, and putting back what it
// changes: undo, and the answer after it.
func downTime(b hakaru.Bundle) time.Duration {
	limit := downGrace
	for _, u := range b.Units {
		limit += max(u.Stop.Grace, 0)
		if u.Attached != nil {
			limit += 2 * cmp.Or(u.Ready.Timeout, attach.DefaultTimeout)
		}
	}
	return limit
}

// wholeBuckets rounds a time up, so that the measured window begins and ends with
// a bucket, none of it is lost, and its length is what is said.
func wholeBuckets(d time.Duration) time.Duration {
	return (d + hakaru.BucketWidth - 1).Truncate(hakaru.BucketWidth)
}

// lead is the time between asking for the load and its first request, in which
// connections are made: more of them need more of it.
func lead(connections int) time.Duration {
	return 100*time.Millisecond + time.Duration(connections)*200*time.Microsecond
}

// overrun is what a load program may take beside the times it was told: a third
// of it for its warm-up to start, to end within a request and to say what came of
// it, one for the service to be done with what that left behind, and one for the
// measured run (program.Run).
const overrun = 30 * time.Second

// Run carries out one trial.
func Run(ctx context.Context, spec Spec, service, load host.Host, sight Sight) (out Outcome, err error) {
	began := time.Now()
	r := &out.Result
	r.Trial = spec.Trial
	r.Started = began
	spec.Load.WarmUp, spec.Load.Window = wholeBuckets(spec.Load.WarmUp), wholeBuckets(spec.Load.Window)
	r.WarmUp, r.Window = spec.Load.WarmUp, spec.Load.Window
	sight = sight.oneAtATime()
	stage := sight.Stage

	stage(Starting)
	place, err := service.Up(ctx, spec.Bundle)
	if err != nil {
		r.Took = time.Since(began)
		var not *host.NotStarted
		if errors.As(err, &not) && ctx.Err() == nil {
			r.Void = &hakaru.Void{Reason: hakaru.VoidNotStarted, Evidence: not.Message, Hint: not.Hint, Foreign: not.Foreign}
			out.Outputs = []hakaru.Output{{Text: not.Output}}
			return out, nil
		}
		return lost(out, err)
	}
	r.StartTook = place.Took
	sight.Up(place)

	seen, err := measured(ctx, spec, service, load, place, sight, stage, r)

	if err == nil && sight.Hold != nil {
		sight.Hold(ctx, place)
	}

	// From here on the place is taken down whatever has happened.
	stage(Stopping)
	downCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), downTime(spec.Bundle))
	defer cancel()
	left, downErr := service.Down(downCtx, place)
	r.StopTook = left.Took
	out.Outputs, out.Exits, out.Samples = left.Outputs, left.Exits, slices.Concat(seen.report.Samples, seen.open.report.Samples)
	if seen.report.Output != "" {
		out.Outputs = append(out.Outputs, hakaru.Output{Service: hakaru.OfLoad, Text: seen.report.Output})
	}
	r.Warnings = append(r.Warnings, left.Warnings...)
	r.Took = time.Since(began) - place.Built // what a trial takes, not what is done once
	var late *host.LateError
	if errors.As(err, &late) && downErr == nil && ctx.Err() == nil {
		// Nothing was measured, and another try may find the machine quieter.
		r.Void = &hakaru.Void{
			Reason: hakaru.VoidGenerator, Evidence: late.Message,
			Hint: "the machine was too busy to begin in time: a longer warm_up leaves more room",
		}
		return out, nil
	}
	if err = errors.Join(err, downErr); err != nil {
		if ctx.Err() != nil {
			var changed *host.NotBack
			if errors.As(err, &changed) {
				// An interrupt must not hide it.
				return out, errors.Join(context.Cause(ctx), changed)
			}
			return out, context.Cause(ctx)
		}
		return lost(out, err)
	}

	r.Measurements = measure.Result(r, services(spec.Bundle))
	facts := seen.facts(spec, r)
	r.Void = diagnose.Void(facts)
	r.Warnings = append(r.Warnings, diagnose.Warnings(facts)...)
	return out, nil
}

// lost turns the end of a link into a void result; every other error stays one.
func lost(out Outcome, err error) (Outcome, error) {
	if errors.Is(err, link.ErrLost) {
		out.Result.Void = &hakaru.Void{Reason: hakaru.VoidAgent, Evidence: err.Error()}
	}
	return out, fmt.Errorf("trial of %s: %w", out.Result.Variant, err)
}

// sighting is what came back from both hosts.
type sighting struct {
	loop
	open loop // after it, where latency is measured there
}

// loop is one load with what was seen of the services meanwhile.
type loop struct {
	report  hakaru.LoadReport
	watched hakaru.Watched
}

// facts are what a trial is judged by, as far as it has come.
func (s sighting) facts(spec Spec, r *hakaru.Result) diagnose.Facts {
	return diagnose.Facts{
		Result: r, Goal: spec.Goal, Limits: spec.Limits, Connections: s.report.Connections,
		Samples: s.report.Samples, Ended: s.watched.Ended, Shared: spec.Shared,
		Program: spec.Load.Program, Services: services(spec.Bundle),
		Open: diagnose.OpenFacts{Connections: s.open.report.Connections, Samples: s.open.report.Samples, Ended: s.open.watched.Ended},
	}
}

// measured does what lies between up and down.
func measured(ctx context.Context, spec Spec, service, load host.Host, place hakaru.Place, sight Sight, stage func(Stage), r *hakaru.Result) (sighting, error) {
	var seen sighting
	prove := func(ctx context.Context, when hakaru.Moment) error {
		if len(spec.Asks) == 0 {
			return nil
		}
		proofs, err := service.Prove(ctx, place, spec.Asks, when)
		if err != nil {
			return fmt.Errorf("prove settings (%s): %w", when, err)
		}
		r.Proofs = append(r.Proofs, proofs...)
		sight.Proofs(proofs)
		return nil
	}
	if err := prove(ctx, hakaru.AtReady); err != nil {
		return seen, err
	}
	if slices.ContainsFunc(r.Proofs, func(p hakaru.Proof) bool { return p.Holds == hakaru.No }) {
		return seen, nil // void already: nothing is learnt by loading it
	}

	connections, middle := 1, spec.Load.Window/2
	if spec.Load.HTTP != nil {
		connections = spec.Load.HTTP.Connections
	}
	window := hakaru.Window{
		Start:  time.Now().Add(lead(connections)),
		WarmUp: spec.Load.WarmUp,
		Length: spec.Load.Window,
	}
	// When the measured run of a load program begins is known when it has. One that
	// counts its requests has no middle that is known before its end: it is looked
	// at one bucket after its start.
	sending := make(chan time.Duration, 1)
	if p := spec.Load.Program; p != nil {
		window.Length += overrun
		if p.Counted {
			middle = hakaru.BucketWidth
		}
	} else {
		sending <- window.WarmUp
	}
	group, groupCtx := errgroup.WithContext(ctx)
	// A load program ends when it ends: then there is nothing to watch any more.
	watching, loaded := context.WithCancel(groupCtx)
	defer loaded()
	begun := make(chan struct{})
	group.Go(func() (err error) {
		first := true // touched by this goroutine only: Watch calls back from within
		seen.watched, err = service.Watch(watching, place, window, func() {
			if first {
				close(begun)
				first = false
			}
		})
		if first && err == nil { // otherwise groupCtx ends, and no load is to begin
			close(begun)
		}
		return err
	})
	group.Go(func() (err error) {
		// Connections are made when load begins: the counters that judge them
		// must have been read by then.
		select {
		case <-begun:
		case <-groupCtx.Done():
			return groupCtx.Err()
		}
		stage(WarmingUp)
		measuring := false
		begin := Measuring
		if spec.Load.Capacity != nil {
			begin = Searching
		}
		seen.report, err = load.Load(groupCtx, place, spec.Load, window, func(b hakaru.Bucket) {
			begins := b.At+hakaru.BucketWidth >= spec.Load.WarmUp
			if spec.Load.Program != nil {
				begins = b.Sending
			}
			if begins && !measuring {
				measuring = true
				stage(begin)
				if spec.Load.Program != nil {
					sending <- b.At
				}
			}
			sight.Bucket(b)
		})
		if spec.Load.Program != nil || spec.Load.Capacity != nil {
			loaded()
		}
		return err
	})
	group.Go(func() error { // proofs under load, in the middle of the measured window
		over := func() error { // the load has ended already, and there is none to prove under
			if groupCtx.Err() == nil {
				unseen(r, spec.Asks, sight)
			}
			return groupCtx.Err()
		}
		var begun time.Duration
		select {
		case begun = <-sending:
		case <-watching.Done():
			return over()
		}
		timer := time.NewTimer(time.Until(window.Start.Add(begun + middle)))
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-watching.Done():
			return over()
		}
		return prove(groupCtx, hakaru.UnderLoad)
	})
	if err := group.Wait(); err != nil {
		return seen, err
	}
	r.Warnings = append(r.Warnings, seen.watched.Warnings...)
	r.Warnings = append(r.Warnings, seen.report.Warnings...)
	r.Buckets, r.Counters = seen.loop.join()
	switch r.Totals = seen.report.Totals; {
	case spec.Load.Program != nil:
		// What was measured, in whole buckets; the warm-up took its moment more.
		r.WarmUp = seen.report.Begun
		r.Window = time.Duration(len(r.Buckets))*hakaru.BucketWidth - r.WarmUp
	case spec.Load.Capacity != nil:
		searched(r, seen)
	case spec.Load.HTTP != nil && spec.Load.HTTP.Arrival != nil:
		r.Open = &hakaru.OpenPhase{
			Rate: spec.Load.HTTP.Arrival.Rate, Whole: true, WarmUp: r.WarmUp, Window: r.Window, Tally: kept(seen.report.Tally),
		}
	}
	if spec.Load.Open != nil && spec.Load.HTTP != nil && diagnose.Void(seen.facts(spec, r)) == nil {
		var err error
		if seen.open, err = openLoop(ctx, spec, service, load, place, sight, r); err != nil {
			return seen, err
		}
	}
	return seen, prove(ctx, hakaru.AtEnd)
}

// searched takes over what a search for the capacity found. It ends by itself, and
// whoever watched may have ended one sample before the load.
func searched(r *hakaru.Result, seen sighting) {
	if n := len(seen.watched.Buckets); n > 0 && len(r.Buckets) == n+1 {
		r.Buckets = r.Buckets[:n]
	}
	r.Window = max(0, time.Duration(len(r.Buckets))*hakaru.BucketWidth-r.WarmUp)
	if found := seen.report.Capacity; found != nil {
		c := *found
		c.Steps = slices.Clone(found.Steps)
		for i := range c.Steps {
			c.Steps[i].Latency = nil // as the buckets have it
		}
		r.Capacity = &c
	}
}

// kept are the sums of an open loop that its buckets do not have.
func kept(t *hakaru.Tally) *hakaru.Tally {
	if t == nil {
		return nil
	}
	k := *t
	k.Latency, k.Waiting, k.Failed, k.Connect = nil, nil, nil, nil
	return &k
}

// openLoop sends the same request once more in an open loop, to the same place and
// watched as well.
func openLoop(ctx context.Context, spec Spec, service, load host.Host, place hakaru.Place, sight Sight, r *hakaru.Result) (loop, error) {
	var seen loop
	open := *spec.Load.Open
	if open.Arrival.Rate == 0 { // not settled: by what the closed loop just showed
		throughput, _ := measuredThroughput(r)
		open.Arrival.Rate = compare.Rate(throughput, open.Share)
	}
	if open.Arrival.Rate <= 0 {
		return seen, nil
	}
	open.WarmUp, open.Window = wholeBuckets(open.WarmUp), wholeBuckets(open.Window)
	request := *spec.Load.HTTP
	request.Arrival = &open.Arrival
	window := hakaru.Window{Start: time.Now().Add(lead(request.Connections)), WarmUp: open.WarmUp, Length: open.Window}

	sight.Stage(OpenLoop)
	group, groupCtx := errgroup.WithContext(ctx)
	begun := make(chan struct{})
	group.Go(func() (err error) {
		var once sync.Once
		seen.watched, err = service.Watch(groupCtx, place, window, func() { once.Do(func() { close(begun) }) })
		if err == nil { // otherwise groupCtx ends, and no load is to begin
			once.Do(func() { close(begun) })
		}
		return err
	})
	group.Go(func() (err error) {
		select {
		case <-begun:
		case <-groupCtx.Done():
			return groupCtx.Err()
		}
		sends := hakaru.LoadSpec{HTTP: &request, WarmUp: open.WarmUp, Window: open.Window}
		seen.report, err = load.Load(groupCtx, place, sends, window, sight.Bucket)
		return err
	})
	if err := group.Wait(); err != nil {
		return seen, err
	}
	r.Warnings = append(r.Warnings, seen.watched.Warnings...)
	r.Warnings = append(r.Warnings, seen.report.Warnings...)
	r.Open = &hakaru.OpenPhase{
		Rate: open.Arrival.Rate, Share: open.Share, WarmUp: open.WarmUp, Window: open.Window, Tally: kept(seen.report.Tally),
	}
	r.Open.Buckets, r.Open.Counters = seen.join()
	return seen, nil
}

// measuredThroughput is that of the closed loop, before all figures are made.
func measuredThroughput(r *hakaru.Result) (float64, bool) {
	for _, m := range measure.Result(r, nil) {
		if m.Metric == hakaru.Throughput {
			return m.Value, true
		}
	}
	return 0, false
}

// unseen notes for the settings that show under load only that the load was over
// before they could be looked at. The others were seen when the service was ready,
// and what it wrote is there at the end.
func unseen(r *hakaru.Result, asks []hakaru.Ask, sight Sight) {
	var proofs []hakaru.Proof
	for _, a := range asks {
		if a.From == hakaru.UnderLoad && a.NotProof == "" && a.Kind != "log" {
			proofs = append(proofs, hakaru.Proof{
				Service: a.Service, Setting: a.Setting, Asked: a.Asked, When: hakaru.UnderLoad,
				Found: "the load was over before it could be looked at",
			})
		}
	}
	if len(proofs) > 0 {
		r.Proofs = append(r.Proofs, proofs...)
		sight.Proofs(proofs)
	}
}

// join puts the counters of both hosts beside each other in the load's buckets.
// A bucket that the watch did not see keeps the load's columns only: what was
// not watched is missing, not 0.
func (l loop) join() ([]hakaru.Bucket, []hakaru.Counter) {
	buckets := l.report.Buckets
	for i := range min(len(buckets), len(l.watched.Buckets)) {
		buckets[i].Counters = slices.Concat(buckets[i].Counters, l.watched.Buckets[i])
	}
	return buckets, slices.Concat(l.report.Counters, l.watched.Counters)
}

// services lists the names of the bundle's services.
func services(b hakaru.Bundle) []string {
	names := make([]string, len(b.Units))
	for i, u := range b.Units {
		names[i] = u.Service
	}
	return names
}
