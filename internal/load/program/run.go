package program

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"

	"hakaru"
	"hakaru/internal/grammar"
	"hakaru/internal/load"
)

const (
	// settle is how long after the end of the last bucket the load is said to
	// have ended: who watches the service samples at the same boundary, and has
	// done so by then.
	settle = 100 * time.Millisecond
	// lateness is how far past the start a load without warm-up may begin.
	lateness = hakaru.BucketWidth / 10
)

// Run sends the load of spec. From w.Start the program runs for spec.WarmUp, its
// figures dropped; when the service has done with what that run left behind (see
// answered), it is started again at the next boundary of a bucket, and that run is
// measured: LoadReport.Begun says when. Run ends with the bucket in which the
// program ended. It may take until the end of w, which is to be longer than warm-up
// and spec.Window: a third of the rest is for the warm-up to end, one for what it
// left behind, and one for the measured run to start and to end. A program that
// ends by itself (spec.Program.Counted) may take spec.Window.
//
// emit is given Sending with the buckets at whose end the measured run is under
// way.
//
// A program that fails is no error: its Totals say so. Run returns an error where
// nothing can be told, or ctx ended; the program has ended in either case.
//
// Totals.Took is the program's own time, which excludes its start. Outside of it
// the service does nothing for the load, but that it may still work on what a
// program that ends by its time has walked away from (diagnose: cut_requests).
func Run(ctx context.Context, spec hakaru.LoadSpec, names hakaru.Names, environ []string, w hakaru.Window, emit func(hakaru.Bucket)) (hakaru.LoadReport, error) {
	given := *spec.Program
	p, known := Find(given.Name)
	if !known {
		return hakaru.LoadReport{}, fmt.Errorf("there is no load program %q", given.Name)
	}
	var err error
	if given.Options, err = expanded(given.Options, names); err != nil {
		return hakaru.LoadReport{}, fmt.Errorf("load by %s: %w", given.Name, err)
	}

	r := &running{program: p, spec: given, environ: environ, emit: emit, window: w}
	now := time.Now()
	r.start = now
	if !w.Start.IsZero() {
		r.start = now.Add(w.Start.Sub(now)) // on the monotonic clock
	}
	if late := now.Sub(r.start); late > w.WarmUp+lateness {
		return hakaru.LoadReport{}, &load.LateError{Late: late, WarmUp: w.WarmUp}
	}
	// The parent-death signal is sent when the thread that started the child
	// ends, not when the process does (prctl(2)), so this one is kept.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	report, err := r.run(ctx, spec)
	if err != nil {
		return report, fmt.Errorf("load by %s: %w", given.Name, err)
	}
	return report, nil
}

// expanded replaces names; in command lines after they are split, so that every
// value stays one word.
func expanded(options map[string]string, names hakaru.Names) (map[string]string, error) {
	out := make(map[string]string, len(options))
	for key, value := range options {
		if key != "run" && key != "args" {
			out[key] = names.Expand(value)
			continue
		}
		words, err := grammar.Split(value)
		if err != nil {
			return nil, fmt.Errorf("%s %w", key, err)
		}
		for i := range words {
			words[i] = names.Expand(words[i])
		}
		out[key] = grammar.Join(words)
	}
	return out, nil
}

// running is a load under way.
type running struct {
	program Program
	spec    hakaru.ProgramSpec
	environ []string
	emit    func(hakaru.Bucket)
	window  hakaru.Window
	start   time.Time

	usage   usage
	buckets []hakaru.Bucket
	notes   []hakaru.Warning
}

func (r *running) run(ctx context.Context, spec hakaru.LoadSpec) (hakaru.LoadReport, error) {
	if err := r.wait(ctx, 0); err != nil {
		return r.report(nil, nil), err
	}
	r.usage.cpus = allowed(r.program.CPUs(r.spec))
	redirected := r.askForRedirect(ctx)
	defer redirected.end()
	if spec.WarmUp > 0 {
		if err := r.warmUp(ctx, spec); err != nil {
			return r.report(nil, nil), err
		}
	}
	begun := time.Duration(len(r.buckets)) * hakaru.BucketWidth
	call, err := r.program.Call(r.spec, spec.Window, false)
	if err != nil {
		return r.notRun(ctx, &hakaru.Totals{Failed: err.Error()})
	}
	// Warm-up and leftovers have left a third of the rest at least, so that what
	// is said of the time is so.
	limit, what := r.window.Total(), "had not ended long after its time was over"
	if r.spec.Counted {
		limit, what = min(limit, begun+spec.Window), "had not ended after "+spec.Window.String()
	}
	c, err := r.launch(call)
	if err != nil {
		t := &hakaru.Totals{Failed: err.Error(), OfLoadHost: true}
		if missing, ok := errors.AsType[*MissingError](err); ok {
			t.Hint = missing.Install
		}
		return r.notRun(ctx, t)
	}
	inTime, err := r.await(ctx, c, limit, true)
	if err != nil {
		return r.report(c, nil), err
	}
	written := c.written()
	totals := r.program.Read(r.spec, written)
	if totals.Failed != "" {
		blame(&totals, written)
	}
	if !inTime {
		totals = hakaru.Totals{
			Failed: fmt.Sprintf("%s %s, and was ended", r.spec.Name, what),
			Hint:   "give it more time with duration: of the load, or see what it waits for with hakaru try",
		}
	}
	totals.Command = grammar.Join(call.Argv)
	if totals.Failed == "" {
		r.notes = append(r.notes, r.program.Doubts(r.spec, totals)...)
	}
	report := r.report(c, &totals)
	report.Begun = begun
	if sample := redirected.end(); sample != nil && totals.Good > 0 {
		totals.Good--
		count(&totals, hakaru.WrongStatus, 1)
		report.Samples = append(report.Samples, *sample)
	}
	return report, nil
}

// notRun reports a program that could not be started.
func (r *running) notRun(ctx context.Context, t *hakaru.Totals) (hakaru.LoadReport, error) {
	begun := time.Duration(len(r.buckets)) * hakaru.BucketWidth
	err := r.toBoundary(ctx)
	report := r.report(nil, t)
	report.Begun = begun
	return report, err
}

// warmUp runs the program for a while and drops what it says. A program that
// ends by itself is run once, and ended when the time is over.
func (r *running) warmUp(ctx context.Context, spec hakaru.LoadSpec) error {
	call, err := r.program.Call(r.spec, spec.WarmUp, true)
	if err != nil {
		return r.toBoundary(ctx) // the measured run says the same
	}
	rest := max(0, r.window.Length-spec.Window) / 3
	left, err := r.watchLeft()
	if err != nil {
		r.notes = append(r.notes, hakaru.Warning{Code: "left_over", Message: fmt.Sprintf(
			"whether the service still worked on what the warm-up left behind when the measured run began cannot be told (%v)", err)})
	}
	defer left.close()
	c, err := r.launch(call)
	if err != nil {
		return r.toBoundary(ctx)
	}
	limit := spec.WarmUp
	byTime := r.spec.Name != "command"
	if byTime { // it knows its time, and needs a moment more to start and to end
		limit += rest
	}
	inTime, err := r.await(ctx, c, limit, false)
	if err != nil {
		return err
	}
	if w := c.written(); inTime && w.State != "" || byTime && !inTime {
		r.notes = append(r.notes, hakaru.Warning{Code: "warm_up_failed", Message: "in the warm-up, " + ended(r.spec.Name, w)})
	}
	return r.answered(ctx, left, rest)
}

// await counts buckets until the program has ended, and to the end of that
// bucket. It ends the program at limit, and says whether it ended before.
func (r *running) await(ctx context.Context, c *child, limit time.Duration, measured bool) (inTime bool, err error) {
	r.usage.follow(c)
	defer c.end()
	inTime = true
	deadline := time.NewTimer(time.Until(r.start.Add(limit)))
	defer deadline.Stop()
	for {
		boundary := time.NewTimer(time.Until(r.start.Add(time.Duration(len(r.buckets)+1) * hakaru.BucketWidth)))
		select {
		case <-ctx.Done():
			boundary.Stop()
			return false, context.Cause(ctx)
		case <-deadline.C:
			boundary.Stop()
			inTime = false
			c.end()
		case <-c.ended:
			boundary.Stop()
			if c.err != nil {
				return false, c.err
			}
			return inTime, r.toBoundary(ctx)
		case <-boundary.C:
			r.bucket(measured)
		}
	}
}

// toBoundary waits for the end of the bucket, and closes it. Where that is well
// over, since a program took its time to end, it closes those that are and waits
// for the next end: what comes then begins when it is said to.
func (r *running) toBoundary(ctx context.Context) error {
	end := len(r.buckets) + 1
	if now := time.Since(r.start); now > time.Duration(end)*hakaru.BucketWidth+lateness {
		end = int(now/hakaru.BucketWidth) + 1
	}
	if err := r.wait(ctx, time.Duration(end)*hakaru.BucketWidth); err != nil {
		return err
	}
	for len(r.buckets) < end {
		r.bucket(false)
	}
	return nil
}

// bucket closes a bucket: what the program used in it.
func (r *running) bucket(sending bool) {
	b := hakaru.Bucket{At: time.Duration(len(r.buckets)) * hakaru.BucketWidth, Counters: r.usage.read()}
	r.buckets = append(r.buckets, b)
	if r.emit != nil {
		b.Sending = sending
		r.emit(b)
	}
}

// wait waits for a time since the start.
func (r *running) wait(ctx context.Context, at time.Duration) error {
	timer := time.NewTimer(time.Until(r.start.Add(at)))
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (r *running) report(c *child, t *hakaru.Totals) hakaru.LoadReport {
	report := hakaru.LoadReport{
		Buckets: r.buckets, Counters: r.usage.counters(), Connections: r.spec.Connections,
		Totals: t, Warnings: r.notes,
	}
	if c != nil {
		report.Output = c.output()
	}
	return report
}

var errNoProgram = errors.New("it names no program")

// Settle waits until whoever watches has seen the last bucket.
func Settle(ctx context.Context, report hakaru.LoadReport, start time.Time) error {
	r := running{start: time.Now().Add(time.Until(start))}
	return r.wait(ctx, time.Duration(len(report.Buckets))*hakaru.BucketWidth+settle)
}
