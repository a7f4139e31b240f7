package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"hakaru"
	"hakaru/internal/campaign"
	"hakaru/internal/compare"
	"hakaru/internal/host"
	"hakaru/internal/mistake"
	"hakaru/internal/plan"
	"hakaru/internal/rehearsal"
	"hakaru/internal/render"
	"hakaru/internal/store"
)

type runFlags struct {
	experimentFlags
	dryRun bool
	wait   bool
	resume string
	format string
}

func (d *door) runCommand() *cobra.Command {
	var f runFlags
	cmd := &cobra.Command{
		Use:   "run [FILE]",
		Short: "Run an experiment and say which variant is better",
		Long: `Run an experiment: the baseline and every variant, interleaved in random order,
block by block, until every comparison is decided or the planned number of
blocks is reached. Every trial is stored before the next begins, so a run that
was cut off goes on with --resume.

Without a file, the experiment is taken from --service, --factor and --url.`,
		Example: `  hakaru run                          # hakaru.yaml in this directory
  hakaru run bench/uwsgi.yaml --blocks 10
  hakaru run hakaru.yaml --set listen=1024 --budget 20m
  hakaru run --dry-run hakaru.yaml    # what would be run, written and how long it takes
  hakaru run --resume last
  hakaru run --service 'hakaru serve --listen {http}' --factor processes=1,2,4 \
      --url 'http://{http}/9000' -c 64 -d 5s`,
		Args: atMostOneFile,
		RunE: func(cmd *cobra.Command, args []string) error {
			return d.run(cmd, f, args)
		},
	}
	f.register(cmd)
	flags := cmd.Flags()
	flags.BoolVar(&f.dryRun, "dry-run", false, "print the trials, the files that would be written and the estimated time, and run nothing")
	flags.BoolVar(&f.wait, "wait", false, "if another run has this machine, wait for it to end")
	flags.StringVar(&f.resume, "resume", "", "go on with this run (an id, or last)")
	flags.StringVar(&f.format, "format", "text", "of the report: text, markdown, json")
	return cmd
}

func (d *door) run(cmd *cobra.Command, f runFlags, args []string) error {
	if err := checkFormat(f.format); err != nil {
		return err
	}
	if f.resume != "" {
		if len(args) > 0 || len(given(cmd, slices.Concat(besideFile, insteadOf))) > 0 {
			return usagef("hakaru run --resume "+f.resume, "--resume goes on with the experiment as it was stored: no file and no flags that change it")
		}
		return d.resume(cmd, f)
	}
	exp, err := d.experiment(cmd, f.experimentFlags, args)
	if err != nil {
		return err
	}
	doubts, err := doubtsOf(cmd.Context(), exp)
	if err != nil {
		return err
	}
	for _, w := range doubts {
		d.say("hakaru: doubt: %s\n", w.Message)
	}
	if f.dryRun {
		return d.dryRun(exp)
	}
	if err := carriedOut(exp); err != nil {
		return err
	}
	st, err := d.openStore(cmd)
	if err != nil {
		return err
	}
	defer st.Close()
	run := hakaru.Run{Name: exp.Name, Started: time.Now(), State: hakaru.RunRunning, Experiment: *exp, Warnings: doubts}
	return d.conduct(cmd, f, st, run)
}

func (d *door) resume(cmd *cobra.Command, f runFlags) error {
	st, err := d.openStore(cmd)
	if err != nil {
		return err
	}
	defer st.Close()
	run, err := st.Find(cmd.Context(), f.resume)
	if err != nil {
		return err
	}
	if run.State == hakaru.RunDone {
		d.say("hakaru: run %s has ended already; this is its report\n", run.ID)
		return d.printReport(cmd.Context(), d.stdout, st, run, f.format)
	}
	return d.conduct(cmd, f, st, run)
}

// conduct takes the machine, stores the run if it is new, carries it through
// and reports it, whatever came of it.
func (d *door) conduct(cmd *cobra.Command, f runFlags, st *store.Store, run hakaru.Run) error {
	ctx := cmd.Context()
	progress := newProgress(d.stderr, &run.Experiment)
	ag := &agents{door: d, exp: &run.Experiment, holder: holder("run " + run.Name), wait: f.wait, waiting: progress.waiting}

	// The agents are started first: a run that cannot have the machine leaves
	// no trace in the store.
	if _, _, err := ag.Start(ctx); err != nil {
		return err
	}
	for _, w := range ag.swept {
		progress.say("%s", w.Message)
	}
	if run.ID == "" {
		run.Service, run.Loader = ag.environments[0], ag.environments[1]
		run.Warnings = append(run.Warnings, ag.swept...)
		id, err := st.NewRun(ctx, run)
		if err != nil {
			return errors.Join(err, ag.Close(ctx))
		}
		run.ID = id
	} else if err := st.Update(ctx, run.ID, func(r *hakaru.Run) {
		r.State, r.Ended = hakaru.RunRunning, nil
		r.Warnings = append(r.Warnings, ag.swept...)
	}); err != nil {
		return errors.Join(err, ag.Close(ctx))
	}
	progress.begin(run, st.Path())

	res, runErr := campaign.Run(ctx, campaign.Spec{Run: run, Store: st, Agents: ag, Events: progress.event})
	progress.end()

	// The end is recorded and reported even after an interrupt.
	ctx = context.WithoutCancel(ctx)
	state := endState(runErr, context.Cause(cmd.Context()))
	ended := time.Now()
	storeErr := st.Update(ctx, run.ID, func(r *hakaru.Run) {
		r.State, r.Ended, r.Done = state, &ended, res.Done
	})
	if runErr != nil {
		if len(res.History) > 0 && state == hakaru.RunInterrupted {
			runErr = errors.Join(runErr, d.partial(ctx, st, run.ID, f.format))
		}
		if len(res.History) > 0 {
			kept := "1 trial is kept"
			if n := len(res.History); n > 1 {
				kept = fmt.Sprintf("%d trials are kept", n)
			}
			d.say("hakaru: %s; go on with: hakaru run --resume %s%s\n", kept, run.ID, d.storeFlag())
		}
		return errors.Join(runErr, storeErr)
	}
	if storeErr != nil {
		return storeErr
	}
	run, err := st.Find(ctx, run.ID)
	if err != nil {
		return err
	}
	if run.Done.State == hakaru.NoStart && f.format == "text" {
		// There is nothing in it but the error, which follows.
		d.say("hakaru: all of it: hakaru report %s%s\n", run.ID, d.storeFlag())
	} else if err := d.printReport(ctx, d.stdout, st, run, f.format); err != nil {
		return err
	}
	return verdictCode(ctx, st, run)
}

// endState is how a run ended. One that was done when the signal came is done.
func endState(runErr, cause error) hakaru.RunState {
	var cut *interrupted
	switch {
	case runErr == nil:
		return hakaru.RunDone
	case errors.As(runErr, &cut), errors.As(cause, &cut):
		return hakaru.RunInterrupted
	}
	return hakaru.RunFailed
}

// partial prints the report of a run that was cut off.
func (d *door) partial(ctx context.Context, st *store.Store, id, format string) error {
	run, err := st.Find(ctx, id)
	if err != nil {
		return err
	}
	return d.printReport(ctx, d.stdout, st, run, format)
}

// storeFlag repeats --store in a command to paste.
func (d *door) storeFlag() string {
	if d.store == "" {
		return ""
	}
	return " --store " + d.store
}

// verdictCode maps an answer to an exit code: 3 where it is no.
func verdictCode(ctx context.Context, st *store.Store, run hakaru.Run) error {
	in, err := reportInput(ctx, st, run)
	if err != nil {
		return err
	}
	done := run.Done
	switch {
	case done != nil && done.State == hakaru.NoStart:
		return notStarted(ctx, st, run, in.History)
	case done != nil && done.State == hakaru.AllVoid, in.Outcome.State == compare.StateVoid:
		why := "the trials were void"
		if done != nil && done.Text != "" {
			why = done.Text
		}
		return &answerNo{why: why}
	case in.Outcome.ViolatesLimit:
		return &answerNo{why: "the recommended variant violates a limit"}
	}
	return nil
}

// notStarted is the error of a run whose baseline did not come up: with the last
// lines of the service, as they were stored with the last trial.
func notStarted(ctx context.Context, st *store.Store, run hakaru.Run, history []hakaru.Result) error {
	e := &host.NotStarted{Message: run.Done.Text}
	if len(history) == 0 {
		return e
	}
	last := history[len(history)-1]
	if last.Void != nil {
		e.Hint = last.Void.Hint
	}
	outputs, err := st.Outputs(ctx, run.ID, last.Seq)
	if err != nil {
		return errors.Join(e, err)
	}
	for _, o := range outputs {
		e.Output += o.Text
	}
	return e
}

// carriedOut refuses an experiment with parts that are understood and not built.
// There is no mistake in the file, so the error is not one of a person's.
func carriedOut(exp *hakaru.Experiment) error {
	if len(exp.NotYet) == 0 {
		return nil
	}
	return &notBuilt{parts: exp.NotYet}
}

// notBuilt says which parts of an experiment this version cannot carry out.
type notBuilt struct{ parts []hakaru.Finding }

func (e *notBuilt) Error() string {
	return "this experiment is understood, and cannot be run yet:\n" + mistake.List(e.parts).Error()
}

func (e *notBuilt) Hint() string {
	return "hakaru run --dry-run shows what would be run"
}

// dryRun prints what a run would do.
func (d *door) dryRun(exp *hakaru.Experiment) error {
	atMost, trials := campaign.Estimate(exp)
	return rehearsal.Outline(d.stdout, rehearsal.Input{
		Experiment: *exp, Blocks: plan.Outline(exp), Trials: trials, PerTrial: campaign.Longest(exp), AtMost: atMost,
		Render: func(variant string, at map[string]string) (hakaru.Bundle, hakaru.LoadSpec, error) {
			bundle, load, _, err := render.Trial(exp, variant, at)
			return bundle, load, err
		},
	})
}
