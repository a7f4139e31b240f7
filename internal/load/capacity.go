package load

import (
	"context"
	"errors"
	"fmt"
	"time"

	"hakaru"
	"hakaru/internal/capacity"
	"hakaru/internal/latency"
	"hakaru/internal/load/job"
	"hakaru/internal/unit"
)

const (
	// A service is taken to have got over a rate that was too high when one request
	// takes no longer than twice what it took at first, and a little. recovery is
	// how long that is waited for.
	recovered = 2
	little    = 5 * time.Millisecond
	recovery  = 3 * time.Second
	// probing bounds how long the answer to one such request is waited for.
	probing = 2 * time.Second
	// samplesKept of bad answers are told of a whole search.
	samplesKept = 12
)

// FindCapacity searches for the highest rate at which the request holds spec's
// conditions: a closed loop shows what there may be (where spec names no first
// rate), then one rate after another is held in an open loop, as package capacity
// asks. Each step connects anew and begins at the boundary of a bucket; before the
// next one, what was out is answered, or the service is given up to 3 s to get over
// it. The first load settles for w.WarmUp where that is longer than spec.Settle.
//
// It ends when the capacity is known to within 3 %, the steps are used up, or what
// is left of w does not hold another one; a w of length 0 has no end. What it sends
// comes as buckets without a gap, as from HTTP; those between steps hold no answers.
// The report's Tally is of the highest rate that held and is not above the capacity,
// where there is one, and otherwise of the last load. Its Capacity is nil only
// beside an error.
//
// step, where given, is told of each step when it is over.
func FindCapacity(ctx context.Context, req hakaru.HTTPRequest, spec hakaru.CapacitySpec, w hakaru.Window, emit func(hakaru.Bucket), step func(hakaru.CapacityStep)) (hakaru.LoadReport, error) {
	report, err := findCapacity(ctx, req, spec, w, emit, step, func(ctx context.Context, req hakaru.HTTPRequest, w hakaru.Window, emit func(hakaru.Bucket)) (hakaru.LoadReport, error) {
		return run(ctx, req, w, emit, nil, nil)
	})
	return report, named(req, err)
}

// runner sends one load.
type runner func(ctx context.Context, req hakaru.HTTPRequest, w hakaru.Window, emit func(hakaru.Bucket)) (hakaru.LoadReport, error)

// finder is a search under way. Times are since base.
type finder struct {
	req  hakaru.HTTPRequest
	spec hakaru.CapacitySpec
	send runner
	emit func(hakaru.Bucket)

	base   time.Time
	total  time.Duration // 0: no end
	settle time.Duration // of the next load
	cost   *usage        // of the time between loads

	search  capacity.Search
	steps   []hakaru.CapacityStep
	tallies []*hakaru.Tally // of steps
	usual   time.Duration   // what one request took, without a queue; 0: not known

	report hakaru.LoadReport
}

func findCapacity(ctx context.Context, req hakaru.HTTPRequest, spec hakaru.CapacitySpec, w hakaru.Window, emit func(hakaru.Bucket), step func(hakaru.CapacityStep), send runner) (hakaru.LoadReport, error) {
	if err := capacity.Valid(spec); err != nil {
		return hakaru.LoadReport{}, err
	}
	spec.Settle, spec.Step = wholeBuckets(spec.Settle), wholeBuckets(spec.Step)
	cost, err := newUsage()
	if err != nil {
		return hakaru.LoadReport{}, err
	}
	f := &finder{
		req: req, spec: spec, send: send, emit: emit, cost: cost,
		base: time.Now(), settle: max(spec.Settle, wholeBuckets(w.WarmUp)),
		search: capacity.Search{First: spec.From, Steps: spec.Steps},
	}
	f.req.Requests = 0
	if !w.Start.IsZero() {
		f.base = f.base.Add(w.Start.Sub(f.base)) // with a monotonic reading
	}
	if w.Length > 0 {
		f.total = w.Total()
	}
	err = f.find(ctx, step)
	f.conclude()
	return f.report, err
}

var errOver = errors.New("the time is used up")

// find sends the loads.
func (f *finder) find(ctx context.Context, step func(hakaru.CapacityStep)) error {
	if f.spec.From == 0 {
		t, err := f.load(ctx, nil)
		if err != nil {
			return f.ended(err)
		}
		f.report.Tally = t
		if t.Took > 0 {
			f.search.Most = float64(t.Good) / t.Took.Seconds()
		}
		if t.Good == 0 {
			f.report.Warnings = append(f.report.Warnings, hakaru.Warning{Code: "nothing_completed", Message: "not one good answer came in a closed loop, so that there was no rate to search from"})
			return nil
		}
		if f.usual, err = f.probe(ctx, f.spare(probing)); err != nil {
			return f.ended(err)
		}
	}
	for {
		rate, done := f.search.Next(f.steps)
		if done {
			return nil
		}
		t, err := f.load(ctx, f.arrival(rate))
		var s hakaru.CapacityStep
		switch late, is := errors.AsType[*LateError](err); {
		case is && len(f.report.Buckets) > 0:
			s = hakaru.CapacityStep{Rate: rate, Void: "the load host was held up: " + late.Error()}
			t = &hakaru.Tally{}
		case err != nil:
			return f.ended(err)
		default:
			s = capacity.Judge(rate, f.spec.Holds, t, f.req.Precise)
			f.report.Tally = t
		}
		f.steps, f.tallies = append(f.steps, s), append(f.tallies, t)
		if step != nil {
			step(s)
		}
		if s.Holds && f.usual == 0 {
			if h, err := latency.Decode(t.Service); err == nil {
				f.usual = h.Quantile(0.5)
			}
		}
		if _, more := f.search.Next(f.steps); !s.Holds && !more {
			if err := f.recover(ctx); err != nil {
				return f.ended(err)
			}
		}
	}
}

// ended is the error of a search that ended by err.
func (f *finder) ended(err error) error {
	if errors.Is(err, errOver) {
		return nil
	}
	return err
}

// arrival is the law of the next step.
func (f *finder) arrival(rate float64) *hakaru.Arrival {
	if a := f.req.Arrival; a != nil && a.Law == hakaru.PoissonRate {
		return &hakaru.Arrival{Law: a.Law, Rate: rate, Seed: a.Seed + uint64(len(f.steps))}
	}
	return &hakaru.Arrival{Law: hakaru.ConstantRate, Rate: rate}
}

// lead is the time before a load in which connections are made: more of them need
// more of it.
func lead(connections int) time.Duration {
	return 100*time.Millisecond + time.Duration(connections)*200*time.Microsecond
}

func wholeBuckets(d time.Duration) time.Duration {
	return (d + hakaru.BucketWidth - 1).Truncate(hakaru.BucketWidth)
}

func (f *finder) now() time.Duration { return time.Since(f.base) }

// reached is the end of the buckets so far.
func (f *finder) reached() time.Duration {
	return time.Duration(len(f.report.Buckets)) * hakaru.BucketWidth
}

// load holds one rate, or none (a closed loop), from the next bucket on at whose
// beginning connections can be there.
func (f *finder) load(ctx context.Context, a *hakaru.Arrival) (*hakaru.Tally, error) {
	start := f.reached()
	if start > 0 { // the first begins when the window does
		start = max(start, wholeBuckets(f.now()+lead(f.req.Connections)))
	}
	if end := start + f.settle + f.spec.Step; f.total > 0 && end > f.total {
		return nil, errOver
	}
	if start > 0 {
		if err := job.Wait(ctx, start-lead(f.req.Connections)-f.now()); err != nil {
			return nil, err
		}
		if err := f.fill(start); err != nil {
			return nil, err
		}
	}
	req := f.req
	req.Arrival = a
	w := hakaru.Window{Start: f.base.Add(start), WarmUp: f.settle, Length: f.spec.Step}
	report, err := f.send(ctx, req, w, func(b hakaru.Bucket) {
		b.At += start
		f.bucket(b)
	})
	if f.report.Counters == nil {
		f.report.Counters = report.Counters
	}
	f.report.Connections = max(f.report.Connections, report.Connections)
	f.report.Samples = append(f.report.Samples, report.Samples...)
	f.report.Samples = f.report.Samples[:min(len(f.report.Samples), samplesKept)]
	if err != nil {
		return nil, err
	}
	f.settle = f.spec.Settle
	if report.Tally == nil {
		return nil, errors.New("the load was sent without a tally of it")
	}
	_, err = f.cost.read(nil) // it is in the load's buckets
	return report.Tally, err
}

func (f *finder) bucket(b hakaru.Bucket) {
	f.report.Buckets = append(f.report.Buckets, b)
	if f.emit != nil {
		f.emit(b)
	}
}

// fill makes buckets without answers up to the next load; what the generator cost
// since the last one is spread over them.
func (f *finder) fill(to time.Duration) error {
	values, err := f.cost.read(nil)
	if err != nil {
		return err
	}
	for i, c := range f.cost.counters() {
		if !c.Gauge {
			values[i] /= max(1, float64((to-f.reached())/hakaru.BucketWidth))
		}
	}
	values = append(values, 0, 0) // connects and retried
	for f.reached() < to {
		f.bucket(hakaru.Bucket{At: f.reached(), Counters: append([]float64(nil), values...)})
	}
	return nil
}

// spare is how much of a time may pass before the next load must begin.
func (f *finder) spare(d time.Duration) time.Duration {
	if f.total == 0 {
		return d
	}
	last := (f.total - f.settle - f.spec.Step).Truncate(hakaru.BucketWidth)
	return max(0, min(d, last-lead(f.req.Connections)-f.now()))
}

var errProbed = errors.New("no answer in the time of a probe")

// probe sends one request and says how long it took; 0 where no good answer came
// within a time.
func (f *finder) probe(ctx context.Context, within time.Duration) (time.Duration, error) {
	if within <= 0 {
		return 0, nil
	}
	req := f.req
	req.Arrival, req.Connections, req.Threads, req.Requests = nil, 1, 1, 1
	// It ends with the time, although an answer that is out then could come later.
	probing, cancel := context.WithTimeoutCause(ctx, within, errProbed)
	defer cancel()
	report, err := f.send(probing, req, hakaru.Window{Length: within}, nil)
	if errors.Is(err, errProbed) && ctx.Err() == nil {
		return 0, nil
	}
	if err != nil || report.Tally == nil {
		return 0, err
	}
	took, err := latency.Decode(report.Tally.Latency)
	if err != nil {
		return 0, err
	}
	return took.Quantile(0.5), nil
}

// recover waits until a request takes about what it took at first, but not for
// long: what the service is like after that the next step shows.
func (f *finder) recover(ctx context.Context) error {
	if f.usual == 0 {
		return job.Wait(ctx, f.spare(hakaru.BucketWidth))
	}
	for until := f.now() + f.spare(recovery); f.now() < until; {
		took, err := f.probe(ctx, min(probing, until-f.now()))
		if err != nil {
			return err
		}
		if took > 0 && took <= recovered*f.usual+little {
			return nil
		}
		if err := job.Wait(ctx, min(hakaru.BucketWidth/5, max(until-f.now(), 0))); err != nil {
			return err
		}
	}
	return nil
}

// conclude writes down what was found.
func (f *finder) conclude() {
	found := f.search.Estimate(f.steps)
	f.report.Capacity = &found
	best := -1
	for i, s := range f.steps {
		if s.Holds && s.Void == "" && s.Rate <= found.Value*1.001 && (best < 0 || s.Rate > f.steps[best].Rate) {
			best = i
		}
	}
	if best >= 0 {
		f.report.Tally = f.tallies[best]
		if w, doubt := f.few(f.steps[best], f.tallies[best]); doubt {
			f.report.Warnings = append(f.report.Warnings, w)
		}
	}
	if t := f.report.Tally; t != nil {
		f.report.Latency = t.Latency
	}
	if w, doubt := f.connections(); doubt {
		f.report.Warnings = append(f.report.Warnings, w)
	}
}

// few says where a step has so few answers that a quantile which is asked for is
// that of the slowest two or three.
func (f *finder) few(s hakaru.CapacityStep, t *hakaru.Tally) (w hakaru.Warning, doubt bool) {
	const above = 3
	for _, c := range f.spec.Holds {
		if c.Quantile > 0 && c.Quantile < 1 && float64(t.Good)*(1-c.Quantile) < above {
			return hakaru.Warning{Code: "few_answers", Message: fmt.Sprintf("a step at %s has %d answers, of which at most %d lie above %s: longer steps say more",
				unit.Rate(s.Rate), t.Good, int(float64(t.Good)*(1-c.Quantile)), c.Metric)}, true
		}
	}
	return w, false
}

// connections says where the number of connections may have been the bound, not the
// service: requests of the lowest rate that failed waited for a connection, and once
// sent they took little longer than at the lowest that held.
func (f *finder) connections() (w hakaru.Warning, doubt bool) {
	lowest := func(holds bool) int {
		at := -1
		for i, s := range f.steps {
			if s.Void == "" && s.Holds == holds && (at < 0 || s.Rate < f.steps[at].Rate) {
				at = i
			}
		}
		return at
	}
	failed, held := lowest(false), lowest(true)
	if failed < 0 || held < 0 {
		return w, false
	}
	median := func(i int) time.Duration {
		h, err := latency.Decode(f.tallies[i].Service)
		if err != nil {
			return 0
		}
		return h.Quantile(0.5)
	}
	t := f.tallies[failed]
	at, before := median(failed), median(held)
	const most, much = 0.5, 1.5
	if float64(t.Queued) < most*float64(t.Due) || t.Due == 0 || before == 0 || float64(at) > much*float64(before) {
		return w, false
	}
	return hakaru.Warning{
		Code: "connections_in_use",
		Message: fmt.Sprintf("at %s all %d connections were in use, and a request once sent took %s, as at %s (%s): more connections may carry a higher rate",
			unit.Rate(f.steps[failed].Rate), f.req.Connections, unit.Duration(at), unit.Rate(f.steps[held].Rate), unit.Duration(before)),
	}, true
}
