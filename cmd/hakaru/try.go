package main

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"hakaru"
	"hakaru/internal/campaign"
	"hakaru/internal/doubt"
	"hakaru/internal/hint"
	"hakaru/internal/rehearsal"
	"hakaru/internal/trial"
)

type tryFlags struct {
	experimentFlags
	variant string
	at      []string
	keep    bool
	wait    bool
}

func (d *door) tryCommand() *cobra.Command {
	var f tryFlags
	cmd := &cobra.Command{
		Use:   "try [FILE] --variant NAME",
		Short: "Run one trial and show everything: the tool for writing an experiment file",
		Long: `Run one trial of one variant and show everything about it: the files as they
were written, the command line, what the readiness probe got, every proof, the
first bad answers, the figures, and what the service wrote. Nothing is stored.

With --keep the service stays up after the trial until Ctrl-C, to look at it.`,
		Example: `  hakaru try                         # the baseline of hakaru.yaml
  hakaru try hakaru.yaml --variant threads
  hakaru try --variant base --keep   # leave it running until Ctrl-C
  hakaru try db.yaml --variant jemalloc --at threads=64`,
		Args: atMostOneFile,
		RunE: func(cmd *cobra.Command, args []string) error { return d.try(cmd, f, args) },
	}
	f.register(cmd)
	flags := cmd.Flags()
	for _, name := range []string{"blocks", "budget", "calibrate", "seed", "goal", "limit", "matters", "method"} {
		flags.Lookup(name).Hidden = true // accepted, so that the line of a run can be reused; one trial has no use for it
	}
	flags.StringVar(&f.variant, "variant", "", "which one (default: the baseline)")
	flags.StringArrayVar(&f.at, "at", nil, "which level of at, `name=level` (default: the first)")
	flags.BoolVar(&f.keep, "keep", false, "leave the service running after the trial, until Ctrl-C")
	flags.BoolVar(&f.wait, "wait", false, "if another run has this machine, wait for it to end")
	return cmd
}

func (d *door) try(cmd *cobra.Command, f tryFlags, args []string) error {
	ctx := cmd.Context()
	exp, err := d.experiment(cmd, f.experimentFlags, args)
	if err != nil {
		return err
	}
	if err := carriedOut(exp); err != nil {
		return err
	}
	doubts, err := doubtsOf(ctx, exp)
	if err != nil {
		return err
	}
	for _, w := range doubts {
		if w.Code != doubt.NothingToCompare { // one trial compares nothing anyway
			d.say("hakaru: doubt: %s\n", w.Message)
		}
	}
	variant := f.variant
	if variant == "" {
		variant = exp.Baseline
	}
	if _, ok := exp.Variant(variant); !ok {
		next := "the variants are: " + strings.Join(variantNames(exp), ", ")
		if near := hint.Near(variant, variantNames(exp)); near != "" {
			next = "did you mean " + near + "? " + next
		}
		return usagef(next, "there is no variant %q", variant)
	}
	at, err := stratum(exp, f.at)
	if err != nil {
		return err
	}
	spec, err := campaign.Specify(exp, nil, hakaru.Trial{Seq: 1, Phase: hakaru.Compare, Block: 1, Attempt: 1, Variant: variant, At: at})
	if err != nil {
		return err
	}

	ag := &agents{door: d, exp: exp, holder: holder("try of " + exp.Name), wait: f.wait,
		waiting: newProgress(d.stderr, exp).waiting}
	defer func() {
		closeCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
		defer cancel()
		if err := ag.Close(closeCtx); err != nil {
			d.say("hakaru: %v\n", err)
		}
	}()
	service, load, err := ag.Start(ctx)
	if err != nil {
		return err
	}
	show := rehearsal.NewTry(d.stdout, d.style())
	show.Spec(spec.Bundle, spec.Load)
	out, err := trial.Run(ctx, spec, service, load, trial.Sight{
		Stage:  func(s trial.Stage) { show.Stage(string(s)) },
		Up:     show.Place,
		Proofs: show.Proofs,
		Hold: func(ctx context.Context, place hakaru.Place) {
			if f.keep {
				d.hold(ctx, place)
			}
		},
	})
	if err != nil {
		if out.Result.Void == nil || ctx.Err() != nil {
			return err
		}
	}
	show.Result(out.Result, out.Samples, out.Exits, out.Outputs)
	if show.Err() != nil {
		return show.Err()
	}
	if err != nil { // an agent is gone: that is no answer
		return err
	}
	switch v := out.Result.Void; {
	case v == nil:
		return nil
	case v.Reason == hakaru.VoidNotStarted:
		return errors.New(v.Evidence)
	default:
		return &answerNo{why: "this trial would be void: " + v.Evidence}
	}
}

// hold says how to reach the service and waits for Ctrl-C, which then ends the
// hold only: the trial itself was finished.
func (d *door) hold(ctx context.Context, place hakaru.Place) {
	d.say("hakaru: the service stays up until Ctrl-C:\n")
	for _, name := range slices.Sorted(maps.Keys(place.Names)) {
		if !strings.Contains(name, ".") {
			d.say("hakaru:   {%s} is %s\n", name, place.Names[name])
		}
	}
	for _, u := range place.Units {
		d.say("hakaru:   %s is pid %d\n", u.Service, u.PID)
	}
	<-ctx.Done()
}

// stratum picks one level of each `at`; the first where none was named.
func stratum(exp *hakaru.Experiment, asked []string) (map[string]string, error) {
	at := maps.Clone(exp.Strata[0])
	for _, a := range asked {
		name, level, ok := strings.Cut(a, "=")
		if !ok {
			return nil, usagef("write --at threads=64", "--at %s: want name=level", a)
		}
		if _, known := at[name]; !known {
			names := slices.Sorted(maps.Keys(at))
			if len(names) == 0 {
				return nil, usagef("leave --at out", "--at %s: the experiment has no at", name)
			}
			return nil, usagef("at has: "+strings.Join(names, ", "), "--at %s: nothing under at is called so", name)
		}
		at[name] = level
	}
	for _, s := range exp.Strata {
		if maps.Equal(s, at) {
			return at, nil
		}
	}
	var all []string
	for _, s := range exp.Strata {
		all = append(all, hakaru.AtKey(s))
	}
	return nil, usagef("there are: "+strings.Join(all, "; "), "there is no stratum %s", hakaru.AtKey(at))
}

func variantNames(exp *hakaru.Experiment) []string {
	names := make([]string, len(exp.Variants))
	for i, v := range exp.Variants {
		names[i] = v.Name
	}
	return names
}
