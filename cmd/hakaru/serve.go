package main

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"hakaru"
	"hakaru/internal/refserver"
	"hakaru/internal/refserver/config"

	"github.com/spf13/cobra"
)

// newServeCommand is `hakaru serve`: the built-in service. The same command
// with the hidden --worker is one of its worker processes.
func newServeCommand() *cobra.Command {
	var file string
	var worker bool
	values := map[string]*serveSetting{}
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Run the built-in web service, whose speed is known beforehand",
		Long: `Run the built-in web service: N worker processes on a shared listener, each of
which answers T requests at once. Its speed can be written down beforehand
(docs/serve.md), so it is what to try an experiment, or hakaru itself, with.

  GET /             hakaru serve
  GET /fib/9000     the Fibonacci numbers up to the first that is not below 9000, as JSON
  GET /-/status     what is in force, as JSON

SIGHUP restarts it without losing a request, SIGTERM ends it when what is open
is answered, a second SIGTERM ends it at once.`,
		Example: `  hakaru serve --processes 4 --wait 5ms
  hakaru serve --listen unix:/tmp/app.sock --config serve.ini`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return config.Mistake(fmt.Sprintf("serve takes no argument, got %q", args[0]), "settings are flags: hakaru serve --help")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			// For every other command the first signal, SIGHUP too, ends the
			// context, and the second one the process. Here they mean what they
			// mean to a server, so whoever asked for them before is struck off.
			signal.Reset(syscall.SIGHUP, syscall.SIGTERM, syscall.SIGINT)
			// Room for each signal, so that none is lost while the master is busy.
			signals := make(chan os.Signal, 16)
			signal.Notify(signals, syscall.SIGHUP, syscall.SIGTERM, syscall.SIGINT)
			defer signal.Stop(signals)
			if worker {
				return refserver.RunWorker(cmd.Context(), refserver.WorkerOptions{Stderr: os.Stderr, Signals: signals})
			}
			load := func() (config.Config, error) { return serveConfig(cmd, file, values) }
			cfg, err := load()
			if err != nil {
				return err
			}
			return refserver.Run(cmd.Context(), cfg, refserver.Options{
				Args:    []string{filepath.Base(os.Args[0]), "serve", "--worker"},
				Env:     os.Environ(),
				Stdout:  cmd.OutOrStdout(),
				Stderr:  cmd.ErrOrStderr(),
				Signals: signals,
				Reload:  load,
			})
		},
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.Var((*fileName)(&file), "config", "read settings from the section [serve] of an ini file; flags override it")
	defaults := config.Default()
	for _, k := range config.Keys() {
		values[k.Name] = &serveSetting{text: defaults.Get(k.Name), kind: k.Value}
		flags.Var(values[k.Name], k.Name, k.Help)
	}
	flags.BoolVar(&worker, "worker", false, "be a worker of a running master")
	if err := flags.MarkHidden("worker"); err != nil {
		panic(err) // there is no such flag
	}
	cmd.SetFlagErrorFunc(func(_ *cobra.Command, err error) error {
		hint := "hakaru serve --help"
		if name, ok := strings.CutPrefix(err.Error(), "unknown flag: --"); ok && config.NearKey(name) != "" {
			hint = "did you mean --" + config.NearKey(name) + "?"
		}
		return config.Mistake(err.Error(), hint)
	})
	return cmd
}

// serveSetting is a flag's text as given. It is read later, over the file, and
// again at each restart.
type serveSetting struct{ text, kind string }

func (s *serveSetting) String() string        { return s.text }
func (s *serveSetting) Set(text string) error { s.text = text; return nil }
func (s *serveSetting) Type() string          { return s.kind }

type fileName string

func (f *fileName) String() string        { return string(*f) }
func (f *fileName) Set(text string) error { *f = fileName(text); return nil }
func (f *fileName) Type() string          { return "FILE" }

// serveConfig reads the file and lays the flags over it; all mistakes of both
// come together.
func serveConfig(cmd *cobra.Command, file string, values map[string]*serveSetting) (config.Config, error) {
	cfg := config.Default()
	var mistakes []hakaru.Finding
	if file != "" {
		f, err := os.Open(file)
		if err != nil {
			return cfg, fmt.Errorf("read settings: %w", err)
		}
		defer f.Close()
		read, err := config.Read(f, file)
		var usage *config.UsageError
		switch {
		case errors.As(err, &usage):
			mistakes = append(mistakes, usage.Mistakes...)
		case err != nil:
			return cfg, err
		default:
			cfg = read
		}
	}
	for _, k := range config.Keys() {
		if !cmd.Flags().Changed(k.Name) {
			continue
		}
		if err := cfg.Set(k.Name, values[k.Name].text); err != nil {
			mistakes = append(mistakes, config.Mistake(fmt.Sprintf("--%s: %v", k.Name, err), "").Mistakes...)
		}
	}
	if len(mistakes) > 0 {
		return cfg, &config.UsageError{Mistakes: mistakes}
	}
	if err := cfg.Check(); err != nil {
		return cfg, config.Mistake(err.Error(), "")
	}
	return cfg, nil
}
