package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"hakaru"
	"hakaru/internal/compare"
	"hakaru/internal/layout"
	"hakaru/internal/render"
	"hakaru/internal/report"
	"hakaru/internal/store"
)

// formats are those of a report.
var formats = []string{"text", "markdown", "json"}

func checkFormat(format string) error {
	for _, f := range formats {
		if f == format {
			return nil
		}
	}
	return usagef("the formats are: "+strings.Join(formats, ", "), "there is no format %q", format)
}

func (d *door) listCommand() *cobra.Command {
	format := "text"
	cmd := &cobra.Command{
		Use:     "list",
		Short:   "List the runs in the store",
		Example: "  hakaru list\n  hakaru list --format json",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if format != "text" && format != "json" {
				return usagef("the formats are: text, json", "there is no format %q", format)
			}
			st, err := d.openStore(cmd)
			if err != nil {
				return err
			}
			defer st.Close()
			runs, err := st.Runs(cmd.Context())
			if err != nil {
				return err
			}
			if format == "text" {
				d.say("hakaru: runs in %s\n", st.Path())
			}
			return report.List(d.stdout, runs, format)
		},
	}
	cmd.Flags().StringVar(&format, "format", format, "text or json")
	return cmd
}

func (d *door) reportCommand() *cobra.Command {
	format := "text"
	cmd := &cobra.Command{
		Use:   "report [RUN]",
		Short: "Print the report of a run",
		Example: `  hakaru report            # of the last run
  hakaru report k3f9a --format markdown > result.md
  hakaru report last --format json | jq .answer.text`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := checkFormat(format); err != nil {
				return err
			}
			st, run, err := d.find(cmd, args)
			if err != nil {
				return err
			}
			defer st.Close()
			return d.printReport(cmd.Context(), d.stdout, st, run, format)
		},
	}
	cmd.Flags().StringVar(&format, "format", format, strings.Join(formats, ", "))
	return cmd
}

func (d *door) showCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "show [RUN] [TRIAL]",
		Short: "Show the trials of a run, or one trial with the output of its services",
		Example: `  hakaru show last
  hakaru show k3f9a 7`,
		Args: cobra.MaximumNArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			st, run, err := d.find(cmd, args[:min(len(args), 1)])
			if err != nil {
				return err
			}
			defer st.Close()
			if len(args) < 2 {
				history, err := st.History(cmd.Context(), run.ID)
				if err != nil {
					return err
				}
				return report.Trials(d.stdout, run, history, d.style())
			}
			seq, err := strconv.Atoi(args[1])
			if err != nil || seq < 1 {
				return usagef("hakaru show "+args[0]+" lists them", "%q is no number of a trial", args[1])
			}
			result, err := st.Trial(cmd.Context(), run.ID, seq)
			if err != nil {
				return err
			}
			outputs, err := st.Outputs(cmd.Context(), run.ID, seq)
			if err != nil {
				return err
			}
			return report.Trial(d.stdout, run, result, outputs, d.style())
		},
	}
}

func (d *door) rmCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "rm RUN...",
		Short:   "Remove runs from the store",
		Example: "  hakaru rm k3f9a",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usagef("hakaru list shows them", "which run is to be removed?")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			st, err := d.openStore(cmd)
			if err != nil {
				return err
			}
			defer st.Close()
			for _, arg := range args {
				run, err := st.Find(cmd.Context(), arg)
				if err != nil {
					return err
				}
				if err := st.Remove(cmd.Context(), run.ID); err != nil {
					return err
				}
				fmt.Fprintf(d.stdout, "removed %s (%s)\n", run.ID, run.Name)
			}
			return nil
		},
	}
}

// find opens the store and looks up the run that was named, or the last.
func (d *door) find(cmd *cobra.Command, args []string) (*store.Store, hakaru.Run, error) {
	name := "last"
	if len(args) > 0 {
		name = args[0]
	}
	st, err := d.openStore(cmd)
	if err != nil {
		return nil, hakaru.Run{}, err
	}
	run, err := st.Find(cmd.Context(), name)
	if err != nil {
		st.Close()
		return nil, hakaru.Run{}, err
	}
	return st, run, nil
}

// reportInput gathers and judges what a report is drawn from. Everything in it
// comes from the store, so that it can be drawn again years later.
func reportInput(ctx context.Context, st *store.Store, run hakaru.Run) (report.Input, error) {
	history, err := st.History(ctx, run.ID)
	if err != nil {
		return report.Input{}, err
	}
	in := report.Input{Run: run, History: history, Diff: map[string]string{}}
	exp := &run.Experiment
	var frozen hakaru.Frozen
	if run.Frozen != nil {
		frozen = *run.Frozen
	}
	in.Comparisons = compare.Compare(exp, frozen, history)
	in.Limits = compare.Limits(exp, history)
	in.Outcome = compare.Judge(exp, frozen, history, in.Comparisons, in.Limits)
	for _, s := range in.Outcome.Strata {
		if s.Winner == "" || s.Winner == exp.Baseline || in.Diff[s.Winner] != "" {
			continue
		}
		if in.Diff[s.Winner], err = render.Diff(exp, s.Winner); err != nil {
			return report.Input{}, fmt.Errorf("work out the change for %s: %w", s.Winner, err)
		}
	}
	return in, nil
}

func (d *door) printReport(ctx context.Context, w io.Writer, st *store.Store, run hakaru.Run, format string) error {
	in, err := reportInput(ctx, st, run)
	if err != nil {
		return err
	}
	switch format {
	case "json":
		return report.JSON(w, in)
	case "markdown":
		return report.Markdown(w, in)
	default:
		return report.Text(w, in, d.style())
	}
}

// style fits the output: colours and the width of a terminal, plain elsewhere.
func (d *door) style() layout.Style {
	file, ok := d.stdout.(*os.File)
	if !ok || !term.IsTerminal(int(file.Fd())) {
		return layout.Style{Width: 80}
	}
	width, _, err := term.GetSize(int(file.Fd()))
	if err != nil || width < 40 {
		width = 80
	}
	return layout.Style{Width: width, Color: d.env("NO_COLOR") == "" && d.env("TERM") != "dumb"}
}
