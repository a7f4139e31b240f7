package host

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"hakaru"
	"hakaru/internal/link"
)

// closeGrace bounds how long an agent may take, beside the graces of services,
// to end what it has up.
const closeGrace = time.Minute

// The requests, one for each method of Host. `begun` and `bucket` are events.
type (
	loadAsk struct {
		Place  hakaru.Place    `json:"place"`
		Spec   hakaru.LoadSpec `json:"spec"`
		Window hakaru.Window   `json:"window"`
	}
	watchAsk struct {
		Place  hakaru.Place  `json:"place"`
		Window hakaru.Window `json:"window"`
	}
	proveAsk struct {
		Place hakaru.Place  `json:"place"`
		Asks  []hakaru.Ask  `json:"asks"`
		When  hakaru.Moment `json:"when"`
	}
	nothing struct{}
)

// Serve offers h over t until the link closes or ctx ends, and then takes down
// whatever is up. It returns what that took beyond asking.
func Serve(ctx context.Context, t link.Transport, h *Local) ([]hakaru.Warning, error) {
	err := link.Serve(ctx, t, map[string]link.Handler{
		"hello": link.Handle(func(ctx context.Context, in HelloAsk, _ func(any) error) (Hello, error) {
			return h.Hello(ctx, in)
		}),
		"lock": link.Handle(func(ctx context.Context, in LockAsk, _ func(any) error) (nothing, error) {
			return nothing{}, h.Lock(ctx, in)
		}),
		"up": link.Handle(func(ctx context.Context, in hakaru.Bundle, _ func(any) error) (hakaru.Place, error) {
			return h.Up(ctx, in)
		}),
		"load": link.Handle(func(ctx context.Context, in loadAsk, emit func(any) error) (hakaru.LoadReport, error) {
			// An event that cannot be sent means that the link is gone, and
			// with it ctx.
			return h.Load(ctx, in.Place, in.Spec, in.Window, func(b hakaru.Bucket) { _ = emit(b) })
		}),
		"watch": link.Handle(func(ctx context.Context, in watchAsk, emit func(any) error) (hakaru.Watched, error) {
			return h.Watch(ctx, in.Place, in.Window, func() { _ = emit("begun") })
		}),
		"prove": link.Handle(func(ctx context.Context, in proveAsk, _ func(any) error) ([]hakaru.Proof, error) {
			return h.Prove(ctx, in.Place, in.Asks, in.When)
		}),
		"output": link.Handle(func(ctx context.Context, in hakaru.Place, _ func(any) error) ([]hakaru.Output, error) {
			return h.Output(ctx, in)
		}),
		"down": link.Handle(func(ctx context.Context, in hakaru.Place, _ func(any) error) (hakaru.Leftovers, error) {
			// Taking down goes on when the conductor loses patience: nothing
			// may survive it.
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), h.downTime(in))
			defer cancel()
			return h.Down(ctx, in)
		}),
	})
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), h.closeTime())
	defer cancel()
	return h.Close(ctx), err
}

// Remote is a Host at the other end of a link.
type Remote struct{ client *link.Client }

// NewRemote returns the host that answers on client.
func NewRemote(client *link.Client) *Remote { return &Remote{client: client} }

func (r *Remote) call(ctx context.Context, do string, in, out any, event func(json.RawMessage)) error {
	err := r.client.Call(ctx, do, in, out, event)
	var crossed *link.Error
	if !errors.As(err, &crossed) {
		return err
	}
	switch crossed.Code {
	case codeNotStarted, codeKept:
		return &NotStarted{Message: crossed.Message, Hint: crossed.Hint, Output: crossed.Output, Foreign: crossed.Code == codeKept}
	case codeNoProgram:
		return &NoProgramError{Message: crossed.Message, Install: crossed.Hint}
	case codeNotBack:
		return &NotBack{Message: crossed.Message}
	case codeNotSwept:
		not := &NotSwept{Message: crossed.Message}
		if jsonErr := json.Unmarshal([]byte(crossed.Output), &not.Swept); jsonErr != nil {
			return fmt.Errorf("%w (what was swept is unreadable: %w)", not, jsonErr)
		}
		return not
	case codeLate:
		return &LateError{Message: crossed.Message}
	case codeLoad:
		return &LoadError{Message: crossed.Message, Help: crossed.Hint}
	case codeBusy:
		var h Holder
		if jsonErr := json.Unmarshal([]byte(crossed.Output), &h); jsonErr != nil {
			return fmt.Errorf("%w (its holder is unreadable: %w)", crossed, jsonErr)
		}
		return &BusyError{Holder: h}
	}
	return crossed
}

// Hello implements Host.
func (r *Remote) Hello(ctx context.Context, ask HelloAsk) (h Hello, err error) {
	err = r.call(ctx, "hello", ask, &h, nil)
	if not, is := errors.AsType[*NotSwept](err); is {
		h.Swept = not.Swept
	}
	return h, err
}

// Lock implements Host.
func (r *Remote) Lock(ctx context.Context, ask LockAsk) error {
	return r.call(ctx, "lock", ask, nil, nil)
}

// Up implements Host.
func (r *Remote) Up(ctx context.Context, b hakaru.Bundle) (p hakaru.Place, err error) {
	err = r.call(ctx, "up", b, &p, nil)
	return p, err
}

// Load implements Host.
func (r *Remote) Load(ctx context.Context, place hakaru.Place, spec hakaru.LoadSpec, w hakaru.Window, emit func(hakaru.Bucket)) (report hakaru.LoadReport, err error) {
	var bad error
	err = r.call(ctx, "load", loadAsk{place, spec, w}, &report, func(raw json.RawMessage) {
		var b hakaru.Bucket
		if err := json.Unmarshal(raw, &b); err != nil {
			bad = fmt.Errorf("decode bucket: %w", err)
			return
		}
		if emit != nil {
			emit(b)
		}
	})
	return report, errors.Join(err, bad)
}

// Watch implements Host.
func (r *Remote) Watch(ctx context.Context, place hakaru.Place, w hakaru.Window, begun func()) (watched hakaru.Watched, err error) {
	err = r.call(ctx, "watch", watchAsk{place, w}, &watched, func(json.RawMessage) {
		if begun != nil {
			begun()
		}
	})
	return watched, err
}

// Prove implements Host.
func (r *Remote) Prove(ctx context.Context, place hakaru.Place, asks []hakaru.Ask, when hakaru.Moment) (proofs []hakaru.Proof, err error) {
	err = r.call(ctx, "prove", proveAsk{place, asks, when}, &proofs, nil)
	return proofs, err
}

// Output implements Host.
func (r *Remote) Output(ctx context.Context, place hakaru.Place) (outputs []hakaru.Output, err error) {
	err = r.call(ctx, "output", place, &outputs, nil)
	return outputs, err
}

// Down implements Host.
func (r *Remote) Down(ctx context.Context, place hakaru.Place) (left hakaru.Leftovers, err error) {
	err = r.call(ctx, "down", place, &left, nil)
	return left, err
}
