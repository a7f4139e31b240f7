package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"hakaru"
	"hakaru/internal/experiment"
	"hakaru/internal/unit"
)

// defaultFile is the experiment where none is named.
const defaultFile = "hakaru.yaml"

// experimentFlags say where an experiment comes from and what overrides it.
type experimentFlags struct {
	set         []string
	blocks      int
	budget      string
	seed        uint64
	service     string
	factors     []string
	url         string
	connections string
	duration    string
}

func (f *experimentFlags) register(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringArrayVar(&f.set, "set", nil, "set a setting of the base, name=value (repeatable)")
	flags.IntVar(&f.blocks, "blocks", 0, "run at most N blocks")
	flags.StringVar(&f.budget, "budget", "", "spend at most this long, 20m")
	flags.Uint64Var(&f.seed, "seed", 0, "of the random order; the same seed gives the same order")
	flags.StringVar(&f.service, "service", "", "without a file: command line of the service; {http} is the address it is to listen on")
	flags.StringArrayVar(&f.factors, "factor", nil, "without a file: setting and its levels, name=a,b,c (repeatable)")
	flags.StringVar(&f.url, "url", "", "without a file: what to request, 'http://{http}/'")
	flags.StringVarP(&f.connections, "connections", "c", "", "keep this many connections busy; overrides the file's load")
	flags.StringVarP(&f.duration, "duration", "d", "", "measure this long in each trial; overrides the file's load")
}

// given reports whether any of the flags was used.
func (f *experimentFlags) given(cmd *cobra.Command) bool {
	for _, name := range []string{"set", "blocks", "budget", "seed", "service", "factor", "url", "connections", "duration"} {
		if cmd.Flags().Changed(name) {
			return true
		}
	}
	return false
}

func atMostOneFile(_ *cobra.Command, args []string) error {
	if len(args) > 1 {
		return usagef("", "one experiment file at a time, got %d: %s", len(args), strings.Join(args, " "))
	}
	return nil
}

// experiment reads the experiment from its file or from the flags.
func (d *door) experiment(cmd *cobra.Command, f experimentFlags, args []string) (*hakaru.Experiment, error) {
	var budget time.Duration
	if f.budget != "" {
		var err error
		if budget, err = unit.ParseDuration(f.budget); err != nil {
			return nil, usagef("write it as 90s, 20m or 2h", "--budget %s: %w", f.budget, err)
		}
	}
	if f.blocks < 0 {
		return nil, usagef("", "--blocks %d: want a number from 1", f.blocks)
	}
	options := experiment.Options{
		Read: os.ReadFile, Set: f.set, Blocks: f.blocks, Budget: budget,
		Connections: f.connections, Duration: f.duration,
	}
	if cmd.Flags().Changed("seed") {
		options.Seed = &f.seed
	}
	fromFlags := f.service != "" || len(f.factors) > 0 || f.url != ""
	switch {
	case fromFlags && len(args) > 0:
		return nil, usagef("put the service into the file, or leave the file out", "--service, --factor and --url describe an experiment without a file, and %s is one", args[0])
	case fromFlags:
		dir, err := os.Getwd()
		if err != nil {
			return nil, fmt.Errorf("find the working directory: %w", err)
		}
		options.Dir = dir
		return experiment.FromFlags(experiment.Flags{Service: f.service, Factors: f.factors, URL: f.url, Options: options})
	}
	name := defaultFile
	if len(args) == 1 {
		name = args[0]
	}
	var src []byte
	var err error
	if name == "-" {
		src, err = io.ReadAll(d.stdin)
	} else {
		src, err = os.ReadFile(name)
	}
	if errors.Is(err, fs.ErrNotExist) {
		hint := "name the file: hakaru " + cmd.Name() + " FILE"
		if len(args) == 1 {
			hint = "look for it with ls " + filepath.Dir(name)
		}
		return nil, usagef(hint, "there is no %s here", name)
	}
	if err != nil {
		return nil, usagef("", "read the experiment: %w", err)
	}
	abs, err := filepath.Abs(name)
	if err != nil {
		return nil, fmt.Errorf("find the directory of %s: %w", name, err)
	}
	options.Dir = filepath.Dir(abs)
	return experiment.Parse(name, src, options)
}
