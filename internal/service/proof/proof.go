// Package proof answers whether a setting is in force, by what the running
// processes, the kernel and the service itself say.
//
// It takes a Subject, which is a unit that is up, and a hakaru.Ask; it gives
// Evidence: what was found, where, and whether the ask holds by it. match.go,
// words.go and server.go decide by what was read; the other files read:
// processes.go who is there, collect.go processes and sockets, file.go files,
// answer.go, sql.go, stats.go and command.go what the service answers, and why.go
// looks for the reason of a No.
//
// A No voids the trial and a Yes is believed, so both are said only of what
// cannot be otherwise. All else is NotProved with its reason, and so is what
// could not be read, which is never an error: a trial goes on.
//
// It does not choose what to ask, and signals nothing but the command of an ask,
// which it started itself.
package proof

import (
	"context"
	"fmt"
	"os/exec"
	"time"

	"hakaru"
	"hakaru/internal/watch/kernel"
)

// Limit is what one question may take, asked again or not.
const (
	Limit = 2 * time.Second
	pause = 100 * time.Millisecond
	// A person's command costs more than a look, and may leave something behind.
	commandPause = Limit / 4
)

// Again says until when an answer that does not hold is asked for again.
type Again uint8

const (
	Once Again = iota
	// WhileNo: for a quarter of Limit, as long as it contradicts. A worker that is
	// being replaced, or a program that was run for one request, is soon over.
	WhileNo
	// UntilYes: until Limit. Workers and threads come up after the first right
	// answer.
	UntilYes
)

// Subject is a unit that is up, and what of its stack a proof may need. Every
// function may be nil: then what it would tell is not known.
type Subject struct {
	PID    int // of the main process, for {pid}; 0: not on this machine
	Group  kernel.Group
	Output func() (text string, cut bool) // what is kept of its output; cut where some is not. nil: hakaru does not see it
	Files  []hakaru.File                  // as they were written for it
	Dir    string                         // private directory of the stack
	Names  hakaru.Names
	// Attached: something else started it. What hakaru wrote for it was brought to
	// it by a command of the person's, and may be anywhere.
	Attached bool
	// Serving picks the sockets that the load goes to from those of the unit, as
	// far as that is known.
	Serving func([]kernel.Listener) []kernel.Listener
	// Foreign is an error where somebody who is not of this stack listens at an
	// address of this machine: what answers there proves nothing.
	Foreign func(address string) error
	Given   []string                                // environment of its first process, where hakaru started it
	Command func(words []string) (*exec.Cmd, error) // as the unit would run it: environment, directory, user
	SQL     string                                  // data source name, with a password perhaps
	Commit  string                                  // the version of the person's code that runs
}

func (s Subject) foreign(address string) error {
	if s.Foreign == nil {
		return nil
	}
	return s.Foreign(address)
}

// Evidence is what was found. Source is empty where nothing was looked at.
type Evidence struct {
	Found, Source string
	Holds         hakaru.Held

	lasts bool // it will be the same however often it is asked
}

func told(found, source string, holds hakaru.Held) Evidence {
	return Evidence{Found: found, Source: source, Holds: holds}
}

// never is why an ask cannot be answered, now or later.
func never(why, source string) Evidence {
	return Evidence{Found: why, Source: source, lasts: true}
}

func unreadable(source string, err error) Evidence {
	return Evidence{Found: err.Error(), Source: source}
}

// Seek puts one ask to the subject, and again as that says, until it holds,
// cannot hold any more, or the time is over.
func Seek(ctx context.Context, on Subject, ask hakaru.Ask, again Again) Evidence {
	collect := map[string]func(context.Context, Subject, hakaru.Ask) Evidence{
		"cmdline": cmdlines, "environ": environs, "maps": mapped,
		"processes": new(attendance).count, "threads": threadCount, "backlog": backlogs,
		"http": httpAnswer, "log": logged, "file": fileHolds,
		"sql": sqlValue, "stats": statsValue, "command": commandOutput, "revision": revision,
	}[ask.Kind]
	if collect == nil {
		return never(fmt.Sprintf("there is no proof by %q", ask.Kind), "")
	}
	ctx, cancel := context.WithTimeout(ctx, Limit)
	defer cancel()
	every, within := pause, Limit
	if ask.Kind == "command" {
		every = commandPause
	}
	if again == WhileNo {
		within = Limit / 4
	}
	tick, over := time.NewTicker(every), time.NewTimer(within)
	defer tick.Stop()
	defer over.Stop()
	var last Evidence
	for {
		e := collect(ctx, on, ask)
		if ctx.Err() == nil || last.Source == "" {
			// An answer cut off by the time limit does not replace a whole one.
			last = e
		}
		if again == Once || e.Holds == hakaru.Yes || e.lasts || again == WhileNo && e.Holds != hakaru.No {
			return last
		}
		select {
		case <-ctx.Done():
			return last
		case <-over.C:
			return last
		case <-tick.C:
		}
	}
}
