package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"hakaru/internal/campaign"
	"hakaru/internal/grammar"
	"hakaru/internal/mistake"
	"hakaru/internal/redact"
	"hakaru/internal/unit"
)

func (d *door) validateCommand() *cobra.Command {
	var f experimentFlags
	cmd := &cobra.Command{
		Use:   "validate [FILE]",
		Short: "Check an experiment file: all mistakes at once, with line, column and hint",
		Example: `  hakaru validate
  hakaru validate bench/uwsgi.yaml`,
		Args: atMostOneFile,
		RunE: func(cmd *cobra.Command, args []string) error {
			exp, err := d.experiment(cmd, f, args)
			if err != nil {
				return err
			}
			atMost, trials := campaign.Estimate(exp)
			strata := ""
			if n := len(exp.Strata); n > 1 {
				strata = fmt.Sprintf("%d strata, ", n)
			}
			fmt.Fprintf(d.stdout, "%s: %s, %s%s; at most %s, about %s\n",
				exp.Name, count(len(exp.Variants), "variant"), strata,
				count(len(exp.Pairs)*len(exp.Strata), "comparison"), count(trials, "trial"), unit.Duration(atMost))
			doubts, err := doubtsOf(cmd.Context(), exp)
			if err != nil {
				return err
			}
			for _, w := range doubts {
				fmt.Fprintf(d.stdout, "doubt: %s\n", redact.Text(w.Message))
			}
			if len(exp.NotYet) > 0 {
				fmt.Fprintf(d.stdout, "understood, and not to be run yet:\n%s\n", redact.Text(mistake.List(exp.NotYet).Error()))
			}
			return nil
		},
	}
	f.register(cmd)
	return cmd
}

func (d *door) schemaCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "schema",
		Short: "Print the JSON schema of the experiment file, for editors",
		Example: `  hakaru schema > hakaru.schema.json
  # first line of an experiment file, for the YAML language server:
  # yaml-language-server: $schema=hakaru.schema.json`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			schema, err := grammar.Schema()
			if err != nil {
				return err
			}
			_, err = d.stdout.Write(schema)
			return err
		},
	}
}
