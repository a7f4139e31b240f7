// Package host is a machine as a trial sees it: somewhere services can be
// brought up, loaded, watched, proved and taken down.
//
// Host is the interface. Local does the work in this process, with the hands of
// internal/service, internal/load and internal/watch; Serve offers a Local over
// a link, and Remote is a Host at the other end of one. Spawn starts this
// program again as an agent and returns the Remote for it. There is one code
// path: even on one machine, the conductor only ever speaks to a Remote.
//
// When its link closes, an agent takes down every place it has up.
package host

import (
	"context"
	"time"

	"hakaru"
)

// Host is one side of a trial: the service host or the load host.
type Host interface {
	// Hello ends what dead agents left on the machine, and describes it. With a
	// *NotSwept it tells what was ended nevertheless.
	Hello(ctx context.Context, ask HelloAsk) (Hello, error)
	// Lock takes the machine for one run, until the link closes. If another
	// run has it: an *BusyError, or with wait set, it waits.
	Lock(ctx context.Context, ask LockAsk) error
	// Up starts the bundle's units in order and returns when the last is ready.
	// On error nothing of it is left running.
	Up(ctx context.Context, b hakaru.Bundle) (hakaru.Place, error)
	// Load sends the load of spec to the place, on the clock of w. emit gets
	// each bucket soon after it has ended.
	Load(ctx context.Context, place hakaru.Place, spec hakaru.LoadSpec, w hakaru.Window, emit func(hakaru.Bucket)) (hakaru.LoadReport, error)
	// Watch samples the place and the machine on the clock of w. begun is
	// called when the counters that count from now on have been read. When ctx
	// ends it tells what it has seen until then: a load may end before w.
	Watch(ctx context.Context, place hakaru.Place, w hakaru.Window, begun func()) (hakaru.Watched, error)
	// Prove asks a place whether settings are in force.
	Prove(ctx context.Context, place hakaru.Place, asks []hakaru.Ask, when hakaru.Moment) ([]hakaru.Proof, error)
	// Output returns what the place's units have written so far.
	Output(ctx context.Context, place hakaru.Place) ([]hakaru.Output, error)
	// Down takes a place down and tells what it found. Nothing survives it.
	Down(ctx context.Context, place hakaru.Place) (hakaru.Leftovers, error)
}

// HelloAsk says which programs' versions belong into the environment record.
type HelloAsk struct {
	Programs []string `json:"programs,omitempty"`
	// Load is the load program that is to be there: a *NoProgramError where it is
	// not. Only the load host is asked.
	Load *hakaru.ProgramSpec `json:"load,omitempty"`
	// Sweep ends what dead agents left; only the service host is asked to.
	Sweep bool `json:"sweep,omitempty"`
}

// Hello is an agent's description of its machine.
type Hello struct {
	Environment hakaru.Environment `json:"environment"`
	Swept       []hakaru.Warning   `json:"swept,omitempty"` // leftovers of dead agents, now ended
}

// LockAsk names who wants the machine.
type LockAsk struct {
	Holder Holder `json:"holder"`
	Wait   bool   `json:"wait,omitempty"`
}

// Holder is who has the machine.
type Holder struct {
	PID   int       `json:"pid"`  // of the conductor
	What  string    `json:"what"` // "run uwsgi-fib"
	Since time.Time `json:"since"`
}
