// Package campaign carries an experiment through: it asks the planner what to
// run, runs it trial by trial, stores every result before the next trial
// begins, and asks again, until the planner is done or somebody interrupts.
//
// It takes an experiment, a store with the history so far (none, or that of a
// run being resumed) and a way to start agents. It emits events for whoever
// draws, and draws nothing. A lost agent costs the trial it was in: the result
// is void and stored, and a new agent takes its place, up to a bound.
package campaign

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"hakaru"
	"hakaru/internal/host"
	"hakaru/internal/link"
	"hakaru/internal/plan"
	"hakaru/internal/render"
	"hakaru/internal/trial"
)

// Store is what a campaign needs of the store.
type Store interface {
	History(ctx context.Context, run string) ([]hakaru.Result, error)
	Append(ctx context.Context, run string, r hakaru.Result, outputs []hakaru.Output) error
	Update(ctx context.Context, run string, change func(*hakaru.Run)) error
}

// Agents starts the two sides of a trial and ends them.
type Agents interface {
	// Start returns both hosts, ready: leftovers swept, the machine locked.
	Start(ctx context.Context) (service, load host.Host, err error)
	// Close ends them; nothing they started survives. It may be called before
	// Start and again after Close.
	Close(ctx context.Context) error
}

// Event is something that happened, for whoever shows it. One member is set.
type Event struct {
	Resumed []hakaru.Result // what was there already
	Frozen  *hakaru.Frozen
	Trial   *TrialEvent
	Stage   trial.Stage
	Bucket  *hakaru.Bucket
	Result  *hakaru.Result
	Lost    error // an agent was lost and is started anew
}

// PlanEvent says how much there is to do.
type PlanEvent struct {
	Trials   int           // at most, from now on, void ones not counted
	AtMost   time.Duration // for them
	PerTrial time.Duration // what that is based on
	Known    bool          // PerTrial was measured, not guessed

	Calibration int           // so many of Trials, the next ones, are of the calibration …
	Lacks       time.Duration // … and each takes so much less, without an open loop
}

// Without is what is left when n of the trials have been run.
func (p PlanEvent) Without(n int) PlanEvent {
	p.Trials, p.Calibration = max(0, p.Trials-n), max(0, p.Calibration-n)
	p.AtMost = max(0, time.Duration(p.Trials)*p.PerTrial-time.Duration(p.Calibration)*p.Lacks)
	return p
}

// TrialEvent says that a trial begins.
type TrialEvent struct {
	Trial hakaru.Trial
	Left  PlanEvent // with this one
}

// Spec is a campaign.
type Spec struct {
	Run    hakaru.Run
	Store  Store
	Agents Agents
	Events func(Event) // called from one goroutine at a time
	Now    func() time.Time
}

// lostAgents bounds how often an agent is started anew in one run.
const lostAgents = 5

// Result is how a campaign ended.
type Result struct {
	History []hakaru.Result
	Frozen  *hakaru.Frozen
	Done    *hakaru.Done // nil when it was interrupted
}

// Run carries the campaign on from what the store has of it. On any error the
// Result holds what there is.
func Run(ctx context.Context, spec Spec) (res Result, err error) {
	exp := &spec.Run.Experiment
	res.Frozen = spec.Run.Frozen
	planner, err := plan.New(exp, spec.Run.Frozen)
	if err != nil {
		return res, err
	}
	if res.History, err = spec.Store.History(ctx, spec.Run.ID); err != nil {
		return res, err
	}
	c := &conduct{Spec: spec, exp: exp, planner: planner, res: &res}
	if len(res.History) > 0 {
		c.emit(Event{Resumed: slices.Clone(res.History)})
	}
	defer func() {
		closeCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
		defer cancel()
		if closeErr := spec.Agents.Close(closeCtx); closeErr != nil && err == nil {
			err = closeErr
		}
	}()
	if err := c.start(ctx); err != nil {
		return res, err
	}
	for {
		if err := c.freeze(ctx); err != nil {
			return res, err
		}
		blocks, done := planner.Next(res.History, 1)
		if done != nil {
			res.Done = done
			return res, nil
		}
		if len(blocks) == 0 {
			return res, errors.New("the planner gave neither a block nor an end")
		}
		for _, t := range blocks[0].Trials {
			if err := ctx.Err(); err != nil {
				return res, context.Cause(ctx)
			}
			if err := c.trial(ctx, t); err != nil {
				return res, err
			}
		}
	}
}

// conduct is a campaign under way.
type conduct struct {
	Spec
	exp     *hakaru.Experiment
	planner plan.Planner
	res     *Result

	service, load host.Host
	lost          int
	frozenStored  bool
}

func (c *conduct) emit(e Event) {
	if c.Events != nil {
		c.Events(e)
	}
}

func (c *conduct) start(ctx context.Context) (err error) {
	c.service, c.load, err = c.Agents.Start(ctx)
	return err
}

// freeze stores what is fixed before the first compare block, as soon as the
// calibration is complete.
func (c *conduct) freeze(ctx context.Context) error {
	if c.frozenStored {
		return nil
	}
	frozen := c.planner.Frozen(c.res.History)
	if frozen == nil {
		return nil
	}
	c.res.Frozen, c.frozenStored = frozen, true
	if c.Spec.Run.Frozen == nil {
		if err := c.Store.Update(ctx, c.Spec.Run.ID, func(r *hakaru.Run) { r.Frozen = frozen }); err != nil {
			return err
		}
	}
	c.emit(Event{Frozen: frozen})
	return nil
}

// Left says how much there is to do at most, and how long that takes.
func (c *conduct) left() PlanEvent {
	per, known := perTrial(c.exp, c.res.History)
	trials, calibration := plan.Left(c.exp, c.res.Frozen, c.res.History)
	p := PlanEvent{Trials: trials, PerTrial: per, Known: known, Calibration: calibration}
	if open := c.exp.Design.Open; open != nil {
		p.Lacks = open.Takes
	}
	return p.Without(0)
}

// perTrial is the mean time of a trial of a block so far or, before there is one, what the
// load takes and a guess for start and stop.
func perTrial(exp *hakaru.Experiment, history []hakaru.Result) (mean time.Duration, known bool) {
	var sum time.Duration
	n := 0
	for i := range history {
		if history[i].Void == nil {
			sum += history[i].Took
			if exp.Design.Open != nil && history[i].Phase == hakaru.Calibrate && history[i].Open == nil {
				sum += exp.Design.Open.Takes // which those to come have
			}
			n++
		}
	}
	if n > 0 {
		return sum / time.Duration(n), true
	}
	return Longest(exp), false
}

// startAndStop is what starting and stopping a service is taken to cost before
// it has been seen.
const startAndStop = 500 * time.Millisecond

// Guess is the time of one trial of a phase in a stratum before one has been run. One
// of the calibration lacks the open loop whose rate it is to settle.
func Guess(exp *hakaru.Experiment, phase hakaru.Phase, at map[string]string) time.Duration {
	_, load, _, err := render.Trial(exp, exp.Baseline, at)
	if err != nil {
		return startAndStop
	}
	takes := load.WarmUp + load.Window + startAndStop
	if load.Open != nil && exp.Design.Open != nil && phase != hakaru.Calibrate {
		takes += exp.Design.Open.Takes
	}
	return takes
}

// Longest is Guess of a trial of a block, in the stratum where it is longest.
func Longest(exp *hakaru.Experiment) (longest time.Duration) {
	for _, at := range exp.Strata {
		longest = max(longest, Guess(exp, hakaru.Compare, at))
	}
	return longest
}

// Estimate is the longest time a run takes, and its trials, before any was run.
func Estimate(exp *hakaru.Experiment) (atMost time.Duration, trials int) {
	guessed := map[hakaru.Phase]map[string]time.Duration{hakaru.Calibrate: {}, hakaru.Compare: {}}
	return plan.Estimate(exp, func(phase hakaru.Phase, at map[string]string) time.Duration {
		takes, known := guessed[phase][hakaru.AtKey(at)]
		if !known {
			takes = Guess(exp, phase, at)
			guessed[phase][hakaru.AtKey(at)] = takes
		}
		return takes
	})
}

// trial runs one trial and stores its result.
func (c *conduct) trial(ctx context.Context, t hakaru.Trial) error {
	t.Run = c.Spec.Run.ID
	t.Seq = len(c.res.History) + 1
	spec, err := Specify(c.exp, c.res.Frozen, t)
	if err != nil {
		return err
	}
	c.emit(Event{Trial: &TrialEvent{Trial: t, Left: c.left()}})
	out, err := trial.Run(ctx, spec, c.service, c.load, trial.Sight{
		Stage:  func(s trial.Stage) { c.emit(Event{Stage: s}) },
		Bucket: func(b hakaru.Bucket) { c.emit(Event{Bucket: &b}) },
	})
	if err != nil {
		if out.Result.Void == nil || !errors.Is(err, link.ErrLost) || ctx.Err() != nil {
			return err
		}
		// The agent is gone, and what it had up with it or, if it was killed,
		// with the sweep of the next one.
		c.lost++
		c.emit(Event{Lost: err})
		closeCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 15*time.Second)
		closeErr := c.Agents.Close(closeCtx)
		cancel()
		if c.lost > lostAgents {
			return fmt.Errorf("agents were lost %d times: %w", c.lost, errors.Join(err, closeErr))
		}
		if err := c.start(ctx); err != nil {
			return fmt.Errorf("start the agents anew: %w", err)
		}
	}
	// A trial that was finished is kept, even when the interrupt came while it
	// was taken down.
	if err := c.Store.Append(context.WithoutCancel(ctx), c.Spec.Run.ID, out.Result, out.Outputs); err != nil {
		return fmt.Errorf("store trial %d: %w", t.Seq, err)
	}
	c.res.History = append(c.res.History, out.Result)
	c.emit(Event{Result: &out.Result})
	return nil
}

// Specify renders a trial. frozen has the rate of its open loop; where it is nil,
// as for a trial that belongs to no run, the rate is a share of what the trial's own
// closed loop shows.
func Specify(exp *hakaru.Experiment, frozen *hakaru.Frozen, t hakaru.Trial) (trial.Spec, error) {
	bundle, load, asks, err := render.Trial(exp, t.Variant, t.At)
	if err != nil {
		return trial.Spec{}, fmt.Errorf("render variant %s: %w", t.Variant, err)
	}
	if open := load.Open; open != nil {
		rate, settled := frozen.Rate(t.At)
		switch {
		case settled:
			open.Arrival.Rate = rate.Rate
		case frozen != nil || t.Phase == hakaru.Calibrate:
			load.Open = nil // it is what calibration is to settle, or could not
		}
	}
	// What is left to chance is the same for all variants of a block.
	seed := exp.Design.Seed + uint64(t.Block)
	if load.Open != nil {
		load.Open.Arrival.Seed = seed
	}
	if load.HTTP != nil && load.HTTP.Arrival != nil {
		load.HTTP.Arrival.Seed = seed
	}
	bundle.Run, bundle.Trial = t.Run, t
	return trial.Spec{
		Trial: t, Bundle: bundle, Load: load, Asks: asks, Goal: exp.Goal, Limits: exp.Limits,
		Shared: overlap(exp.ServiceHost, exp.LoadHost),
	}, nil
}

// overlap reports whether service and generator may run on the same CPU.
func overlap(a, b hakaru.HostSpec) bool {
	if a.Agent != b.Agent {
		return false
	}
	if len(a.CPUs) == 0 || len(b.CPUs) == 0 {
		return true
	}
	for _, x := range a.CPUs {
		for _, y := range b.CPUs {
			if x == y {
				return true
			}
		}
	}
	return false
}
