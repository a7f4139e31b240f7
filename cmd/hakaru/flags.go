package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"hakaru"
	"hakaru/internal/experiment"
	"hakaru/internal/hint"
	"hakaru/internal/unit"
)

// defaultFile is the experiment where none is named.
const defaultFile = "hakaru.yaml"

// experimentFlags say where an experiment comes from and what overrides it.
type experimentFlags struct {
	experiment.Flags
	budget    string
	calibrate int
	seed      uint64
}

// Names of the flags: those that hold beside a file, and those that are an
// experiment without one.
var (
	besideFile = []string{"set", "blocks", "budget", "calibrate", "seed", "connections", "warm-up", "duration"}
	insteadOf  = []string{"service", "settings", "factor", "url", "status", "expect", "goal", "limit", "matters", "method"}
)

func (f *experimentFlags) register(cmd *cobra.Command) {
	flags, o := cmd.Flags(), &f.Options
	flags.SortFlags = false // those without a file together
	flags.StringArrayVar(&o.Set, "set", nil, "set a setting of the base, name=value (repeatable)")
	flags.IntVar(&o.Blocks, "blocks", 0, "run at most N blocks")
	flags.StringVar(&f.budget, "budget", "", "spend at most this long, 20m")
	flags.IntVar(&f.calibrate, "calibrate", 0, "run the baseline N times before the first block")
	flags.Uint64Var(&f.seed, "seed", 0, "of the random order; the same seed gives the same order")
	flags.StringVarP(&o.Connections, "connections", "c", "", "keep this many connections busy")
	flags.StringVar(&o.WarmUp, "warm-up", "", "send load this long before measuring")
	flags.StringVarP(&o.Duration, "duration", "d", "", "measure this long in each trial")

	flags.StringVar(&f.Service, "service", "", "without a file: command line of the service; {http} is the 127.0.0.1:PORT to listen on, {http.port} its port")
	flags.StringVar(&f.Settings, "settings", "", "without a file: config file of the service, as its command names it")
	flags.StringArrayVar(&f.Factors, "factor", nil, "without a file: setting and its levels, name=a,b,c (repeatable)")
	flags.StringVar(&f.URL, "url", "", "without a file: what to request, 'http://{http}/'")
	flags.StringVar(&f.Status, "status", "", "without a file: the right status (default any 2xx)")
	flags.StringVar(&f.Expect, "expect", "", "without a file: what the right answer contains")
	flags.StringVar(&f.Goal, "goal", "", "without a file: what decides (default throughput)")
	flags.StringArrayVar(&f.Limits, "limit", nil, "without a file: what must hold, metric=bound (repeatable)")
	flags.StringVar(&f.Matters, "matters", "", "without a file: the smallest difference that matters (default 3%)")
	flags.StringVar(&f.Method, "method", "", "without a file: factorial (default) or one-at-a-time")
}

// given returns which of the named flags were used, as they are written.
func given(cmd *cobra.Command, names []string) []string {
	var used []string
	for _, name := range names {
		if cmd.Flags().Changed(name) {
			used = append(used, "--"+name)
		}
	}
	return used
}

func are(names []string) string {
	if len(names) == 1 {
		return names[0] + " is"
	}
	return strings.Join(names, ", ") + " are"
}

func atMostOneFile(_ *cobra.Command, args []string) error {
	if len(args) > 1 {
		return usagef("", "one experiment file at a time, got %d: %s", len(args), strings.Join(args, " "))
	}
	return nil
}

// experiment reads the experiment from its file or from the flags.
func (d *door) experiment(cmd *cobra.Command, f experimentFlags, args []string) (*hakaru.Experiment, error) {
	options := f.Options
	options.Read = os.ReadFile
	options.Mode = func(path string) uint32 {
		info, err := os.Stat(path)
		if err != nil {
			return 0 // Read says so
		}
		return uint32(info.Mode().Perm())
	}
	options.Revision = revision(cmd.Context())
	if f.budget != "" {
		var err error
		if options.Budget, err = unit.ParseDuration(f.budget); err != nil {
			return nil, usagef("write it as 90s, 20m or 2h", "--budget %s: %w", f.budget, err)
		}
	}
	if n := f.Options.Blocks; cmd.Flags().Changed("blocks") && (n < 1 || n > experiment.MaxBlocks) {
		return nil, usagef("", "--blocks %d: want a number from 1 to %d", n, experiment.MaxBlocks)
	}
	if cmd.Flags().Changed("calibrate") {
		if f.calibrate < 0 || f.calibrate > experiment.MaxCalibrate {
			return nil, usagef("", "--calibrate %d: want a number from 0 to %d", f.calibrate, experiment.MaxCalibrate)
		}
		options.Calibrate = &f.calibrate
	}
	if cmd.Flags().Changed("seed") {
		options.Seed = &f.seed
	}
	instead := given(cmd, insteadOf)
	switch {
	case len(instead) > 0 && len(args) > 0:
		return nil, usagef("write it into the file, or leave the file out", "%s for an experiment without a file, and %s is one", are(instead), args[0])
	case len(instead) > 0 && f.Service == "" && f.URL == "" && len(f.Factors) == 0:
		return nil, usagef("write it into the file; without one, begin with --service and --url", "%s for an experiment without a file", are(instead))
	case len(instead) > 0:
		dir, err := os.Getwd()
		if err != nil {
			return nil, fmt.Errorf("find the working directory: %w", err)
		}
		options.Dir = dir
		f.Flags.Options = options
		return experiment.FromFlags(f.Flags)
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
		next := "name the file: hakaru " + cmd.Name() + " FILE"
		if len(args) == 1 {
			next = elsewhere(name)
		}
		return nil, usagef(next, "there is no %s", name)
	}
	if info, statErr := os.Stat(name); statErr == nil && info.IsDir() {
		return nil, usagef(elsewhere(filepath.Join(name, defaultFile)), "%s is a directory, and an experiment is a file", name)
	}
	if err != nil {
		return nil, fmt.Errorf("read the experiment: %w", err)
	}
	abs, err := filepath.Abs(name)
	if err != nil {
		return nil, fmt.Errorf("find the directory of %s: %w", name, err)
	}
	options.Dir = filepath.Dir(abs)
	return experiment.Parse(name, src, options)
}

// elsewhere is a hint at what may have been meant by a file that is not there.
func elsewhere(name string) string {
	dir := filepath.Dir(name)
	entries, err := os.ReadDir(dir)
	if err != nil {
		return "there is no directory " + dir + " to read either: " + err.Error()
	}
	var files []string
	for _, e := range entries {
		if ext := filepath.Ext(e.Name()); ext == ".yaml" || ext == ".yml" {
			files = append(files, filepath.Join(dir, e.Name()))
		}
	}
	if near := hint.Near(filepath.Clean(name), files); near != "" {
		return "did you mean " + near + "?"
	}
	const few = 6
	switch {
	case len(files) == 0:
		return "no file in " + dir + " ends in .yaml; `hakaru run --help` shows how to do without a file"
	case len(files) > few:
		return fmt.Sprintf("%d files in %s end in .yaml, the first is %s", len(files), dir, files[0])
	}
	return "there are: " + strings.Join(files, ", ")
}
