// Command hakaru measures which settings of a service are better, and says so
// only when it is shown. See README.md.
//
// This package is the door: one file a subcommand, which reads flags, calls and
// prints. Exit codes are decided here and nowhere below: 0 done and fine, 1
// could not be done, 2 usage or a mistake in a person's file, 3 done and the
// answer is no, 130 and 143 interrupted.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/sys/unix"

	"hakaru/internal/hint"
	"hakaru/internal/host"
	"hakaru/internal/mistake"
	"hakaru/internal/redact"
	"hakaru/internal/refserver/config"
)

func main() {
	os.Exit(run(context.Background(), os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

// The exit codes.
const (
	exitFine      = 0
	exitFailed    = 1
	exitUsage     = 2
	exitNo        = 3
	exitInterrupt = 130
	exitTerminate = 143
)

func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	d := &door{stdin: stdin, stdout: stdout, stderr: stderr, env: os.Getenv, ctx: ctx}
	defer func() {
		if d.stop != nil {
			d.stop()
		}
	}()
	root := d.command()
	root.SetArgs(args)
	root.SetIn(stdin)
	root.SetOut(stdout)
	root.SetErr(stderr)
	err := root.ExecuteContext(ctx)
	return d.complain(d.ctx, err)
}

// door is what subcommands share: the streams, the environment, and the flags
// that every command has.
type door struct {
	stdin          io.Reader
	stdout, stderr io.Writer
	env            func(string) string
	store          string // --store

	ctx  context.Context // of the command; its cause is *interrupted after a signal
	stop func()          // ends the watch for signals
}

func (d *door) command() *cobra.Command {
	root := &cobra.Command{
		Use:   "hakaru",
		Short: "Find out which settings of a service are better, and by how much",
		Long: `hakaru starts a service under each variant of its settings, proves that the
settings are in force, loads it, watches the machine, interleaves and repeats,
throws out trials that measured something else, and says which difference is
real, how large it is, and where there is not enough data to say.`,
		Example: `  hakaru run hakaru.yaml
  hakaru run --service 'hakaru serve --listen {http}' --factor processes=1,4 --url 'http://{http}/9000' -c 16 -d 2s
  hakaru try hakaru.yaml --variant base
  hakaru report last`,
		SilenceUsage:  true,
		SilenceErrors: true,
		Version:       version(),
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error {
			if cmd.Name() != "serve" { // which has signals of its own
				d.ctx, d.stop = untilSignalled(cmd.Context(), d.stderr, onPipe(cmd.Name()))
				cmd.SetContext(d.ctx)
			}
			d.sweepFirst(cmd)
			return nil
		},
	}
	root.PersistentFlags().StringVar(&d.store, "store", "", "file with the runs (default $HAKARU_STORE, else hakaru/hakaru.db in $XDG_DATA_HOME or ~/.local/share)")
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return &usageError{err: err, hint: nearFlag(cmd, err)}
	})
	root.AddGroup(
		&cobra.Group{ID: "measure", Title: "Measure:"},
		&cobra.Group{ID: "results", Title: "Look at results:"},
		&cobra.Group{ID: "rest", Title: "Besides:"},
	)
	add := func(group string, commands ...*cobra.Command) {
		for _, c := range commands {
			c.GroupID = group
			root.AddCommand(c)
		}
	}
	add("measure", d.runCommand(), d.tryCommand(), d.loadCommand(), d.validateCommand(), d.schemaCommand())
	add("results", d.listCommand(), d.showCommand(), d.reportCommand(), d.rmCommand())
	serve := newServeCommand()
	add("rest", serve)
	root.SetHelpCommandGroupID("rest")
	root.SetCompletionCommandGroupID("rest")
	root.AddCommand(d.agentCommand())
	return root
}

// usageError is a mistake on the command line.
type usageError struct {
	err  error
	hint string
}

func (e *usageError) Error() string { return e.err.Error() }
func (e *usageError) Unwrap() error { return e.err }

func usagef(hint, format string, args ...any) error {
	return &usageError{err: fmt.Errorf(format, args...), hint: hint}
}

// nearFlag is a hint for a flag that is not known, or nothing.
func nearFlag(cmd *cobra.Command, err error) string {
	var unknown *pflag.NotExistError
	if !errors.As(err, &unknown) {
		return ""
	}
	var names []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden {
			names = append(names, f.Name)
		}
	})
	if near := hint.Near(unknown.GetSpecifiedName(), names); near != "" {
		return "did you mean --" + near + "?"
	}
	return "hakaru " + cmd.Name() + " --help lists the flags"
}

// answerNo ends a command whose work was done and whose answer is no; it has
// been printed already.
type answerNo struct{ why string }

func (e *answerNo) Error() string { return e.why }

// interrupted ends a command by signal; it is the cause of the context then.
type interrupted struct{ signal syscall.Signal }

func (e *interrupted) Error() string { return "interrupted by " + unix.SignalName(e.signal) }

// hinter is an error that knows what to do about itself.
type hinter interface{ Hint() string }

// say writes to standard error, which ends up in logs: an error or a doubt can
// quote what a file or a command line keeps secret.
func (d *door) say(format string, args ...any) {
	fmt.Fprint(d.stderr, redact.Text(fmt.Sprintf(format, args...)))
}

// complain prints an error, if there is one, and returns the exit code.
func (d *door) complain(ctx context.Context, err error) int {
	if err == nil {
		return exitFine
	}
	var cut *interrupted
	if errors.As(err, &cut) || errors.As(context.Cause(ctx), &cut) {
		d.say("hakaru: %v\n", cut)
		var changed *host.NotBack
		if errors.As(err, &changed) {
			d.say("hakaru: error: %v\n", changed)
		}
		if cut.signal == syscall.SIGINT {
			return exitInterrupt
		}
		return exitTerminate
	}
	var no *answerNo
	if errors.As(err, &no) {
		d.say("hakaru: %s\n", no.why)
		return exitNo
	}
	var mistakes mistake.List
	if errors.As(err, &mistakes) {
		d.say("%s", mistakes.Error())
		if !strings.HasSuffix(mistakes.Error(), "\n") {
			d.say("\n")
		}
		return exitUsage
	}
	d.say("hakaru: error: %v\n", err)
	var (
		use     *usageError
		serving *config.UsageError
		not     *host.NotStarted
		busy    *host.BusyError
		advice  hinter
	)
	switch {
	case errors.As(err, &use):
		if use.hint != "" {
			d.say("hakaru: hint: %s\n", use.hint)
		}
		return exitUsage
	case errors.As(err, &serving):
		return exitUsage
	case strings.HasPrefix(err.Error(), "unknown command"), strings.HasPrefix(err.Error(), "unknown flag"):
		d.say("hakaru: hint: hakaru --help lists the commands\n")
		return exitUsage
	case errors.As(err, &not):
		if not.Output != "" {
			d.say("its last lines:\n%s\n", indent(not.Output))
		}
		if not.Hint != "" {
			d.say("hakaru: hint: %s\n", not.Hint)
		}
	case errors.As(err, &busy):
		d.say("hakaru: hint: %s\n", busy.LinkError().Hint)
	case errors.As(err, &advice) && advice.Hint() != "":
		d.say("hakaru: hint: %s\n", advice.Hint())
	}
	return exitFailed
}

func indent(text string) string {
	return "  | " + strings.ReplaceAll(strings.TrimRight(text, "\n"), "\n", "\n  | ")
}

// pipeSignal says what SIGPIPE does to a command: a write to a standard stream
// that nobody reads any more raises it.
type pipeSignal uint8

const (
	pipeEnds       pipeSignal = iota // as for any program: hakaru report | head
	pipeInterrupts                   // as Ctrl-C does: services are up, and the run is to be told interrupted
	pipeIgnored                      // the write says EPIPE, and nothing else happens
)

// onPipe is by the name of a command. An agent whose conductor was killed must
// not die of the answer that nobody takes any more: it has services to end. The
// signal is caught rather than ignored, since services would inherit the latter.
func onPipe(command string) pipeSignal {
	switch command {
	case "run", "try":
		return pipeInterrupts
	case "agent":
		return pipeIgnored
	}
	return pipeEnds
}

// unread reports whether a stream is a pipe or a socket that nobody reads any
// more.
func unread(fd int) bool {
	poll := []unix.PollFd{{Fd: int32(fd)}}
	n, err := unix.Poll(poll, 0)
	return err == nil && n > 0 && poll[0].Revents&(unix.POLLERR|unix.POLLHUP) != 0
}

// onceMore is how long the same signal is the same wish: timeout(1) sends its
// signal to the process and then to the group that it is in.
const onceMore = 300 * time.Millisecond

// untilSignalled returns a context that ends, with *interrupted as its cause,
// at the first SIGINT, SIGTERM or SIGHUP. A second SIGINT or SIGTERM, unless it
// follows the same one within onceMore, ends the process at once: the agents notice
// and end what they started. A second SIGHUP is no impatience: a terminal that is
// closed sends several. A SIGHUP that was ignored from the start stays so.
func untilSignalled(ctx context.Context, stderr io.Writer, pipe pipeSignal) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM)
	// A run under nohup outlives its terminal. An agent listens all the same:
	// what it starts would inherit the ignored signal.
	if pipe == pipeIgnored || !signal.Ignored(syscall.SIGHUP) {
		signal.Notify(signals, syscall.SIGHUP)
	}
	if pipe != pipeEnds {
		signal.Notify(signals, syscall.SIGPIPE)
	}
	done := make(chan struct{})
	ended := make(chan struct{})
	first := true // no signal has come; of the goroutine until it has ended
	go func() {
		defer close(ended)
		var since time.Time // the first one
		var was syscall.Signal
		for {
			select {
			case <-done:
				return
			case s := <-signals:
				sig, ok := s.(syscall.Signal)
				if !ok {
					continue
				}
				// An agent that was killed raises it too, when it is next spoken
				// to; that the link to it ended is for the trial to tell.
				if sig == syscall.SIGPIPE && (pipe == pipeIgnored || !unread(1) && !unread(2)) {
					continue
				}
				if !first && sig != syscall.SIGINT && sig != syscall.SIGTERM {
					continue
				}
				if !first && sig == was && time.Since(since) < onceMore {
					continue
				}
				if !first {
					fmt.Fprintln(stderr, "hakaru: interrupted again: leaving at once")
					os.Exit(128 + int(sig))
				}
				first, since, was = false, time.Now(), sig
				cancel(&interrupted{signal: sig})
			}
		}
	}()
	return ctx, func() {
		close(done)
		<-ended
		if first { // otherwise the process ends, and the same wish once more does not kill it
			signal.Stop(signals)
		}
		cancel(nil)
	}
}
