// Package link carries requests, answers and events between the conductor and
// an agent.
//
// It takes a Transport (a pair of pipes here; a message bus for agents on other
// machines) and gives one side Call and the other Serve. Any number of calls run
// at once over one transport; a call may send events before its answer; a
// cancelled call is told to the other side. When the transport ends, the calling
// side gets ErrLost for every call under way, and the serving side cancels every
// handler, waits for all of them and returns: that is how an agent notices that
// its conductor is gone.
//
// It knows neither trials nor hosts: bodies are JSON and methods are strings.
package link

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"sync"
)

// ErrLost says that the other side, or the way to it, is gone.
var ErrLost = errors.New("the link to the agent is closed")

// Message is what travels. Exactly one of Do, Cancel, Event, Answer and Error
// is set; ID is chosen by the caller and unique per transport.
type Message struct {
	ID     uint64          `json:"id"`
	Do     string          `json:"do,omitempty"`
	Body   json.RawMessage `json:"body,omitempty"`
	Cancel bool            `json:"cancel,omitempty"`
	Event  json.RawMessage `json:"event,omitempty"`
	Answer json.RawMessage `json:"answer,omitempty"`
	Error  *Error          `json:"error,omitempty"`
}

// Error is an error that crossed the link. Code is stable and tells the calling
// side what kind it is; the rest is for people.
type Error struct {
	Code    string `json:"code,omitempty"`
	Message string `json:"message"`
	Hint    string `json:"hint,omitempty"`
	Output  string `json:"output,omitempty"` // last lines of a program
}

func (e *Error) Error() string { return e.Message }

// Coded is implemented by errors that want their code, hint and output to
// survive the link.
type Coded interface {
	error
	LinkError() Error
}

// Transport moves messages in order. Send may be called from several goroutines
// at once, Receive from one. Receive returns io.EOF when the other side is gone.
type Transport interface {
	Send(Message) error
	Receive() (Message, error)
}

// Pipe is a Transport over a pair of byte streams: one JSON object a line.
type Pipe struct {
	in *bufio.Reader

	mu  sync.Mutex // guards out
	out io.Writer
}

// NewPipe returns a transport that reads from in and writes to out. Who opened
// them closes them.
func NewPipe(in io.Reader, out io.Writer) *Pipe {
	return &Pipe{in: bufio.NewReaderSize(in, 64<<10), out: out}
}

// Send writes one message.
func (p *Pipe) Send(m Message) error {
	line, err := json.Marshal(m)
	if err != nil {
		return fmt.Errorf("encode message: %w", err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	_, err = p.out.Write(append(line, '\n'))
	return err
}

// Receive reads one message.
func (p *Pipe) Receive() (Message, error) {
	line, err := p.in.ReadBytes('\n')
	if err != nil {
		// A last line without its end is a message cut off in the middle.
		return Message{}, io.EOF
	}
	var m Message
	if err := json.Unmarshal(line, &m); err != nil {
		return Message{}, fmt.Errorf("decode message: %w", err)
	}
	return m, nil
}

// Client is the calling side.
type Client struct {
	transport Transport

	mu    sync.Mutex
	next  uint64
	calls map[uint64]chan Message
	lost  chan struct{} // closed when Receive has ended
	cause error         // why, set before lost is closed
}

// NewClient returns a client; Receive must run for calls to be answered.
func NewClient(t Transport) *Client {
	return &Client{transport: t, calls: map[uint64]chan Message{}, lost: make(chan struct{})}
}

// Receive hands incoming messages to the calls they belong to until the
// transport ends, and then makes every call return ErrLost.
func (c *Client) Receive() {
	for {
		m, err := c.transport.Receive()
		if err != nil {
			c.mu.Lock()
			c.cause = ErrLost
			if !errors.Is(err, io.EOF) {
				c.cause = fmt.Errorf("%w: %w", ErrLost, err)
			}
			c.mu.Unlock()
			close(c.lost)
			return
		}
		c.mu.Lock()
		call := c.calls[m.ID]
		c.mu.Unlock()
		if call == nil {
			continue // the answer to a call that was given up
		}
		call <- m // buffered; the caller drains it until it has unregistered
	}
}

// Lost is closed when the other side is gone.
func (c *Client) Lost() <-chan struct{} { return c.lost }

// Call asks the other side to do something and decodes the answer into out
// (nil: it is dropped). Events are handed to event, in order, before Call
// returns. A cancelled ctx is told to the other side, and Call then waits for
// its answer: a handler ends what it started first.
func (c *Client) Call(ctx context.Context, do string, in, out any, event func(json.RawMessage)) error {
	body, err := json.Marshal(in)
	if err != nil {
		return fmt.Errorf("encode %s: %w", do, err)
	}
	// Receive hands messages on from this channel's far end; the buffer only
	// smooths bursts of events.
	call := make(chan Message, 64)
	c.mu.Lock()
	c.next++
	id := c.next
	c.calls[id] = call
	c.mu.Unlock()
	defer func() {
		c.mu.Lock()
		delete(c.calls, id)
		c.mu.Unlock()
		for { // free a Receive that is about to hand over
			select {
			case <-call:
			default:
				return
			}
		}
	}()

	if err := c.transport.Send(Message{ID: id, Do: do, Body: body}); err != nil {
		return fmt.Errorf("%s: %w: %w", do, ErrLost, err)
	}
	done := ctx.Done()
	for {
		select {
		case <-done:
			done = nil
			if err := c.transport.Send(Message{ID: id, Cancel: true}); err != nil {
				return fmt.Errorf("%s: %w: %w", do, ErrLost, err)
			}
		case <-c.lost:
			// What came before the end of the link came: an agent that is
			// killed right after its answer has answered.
			for {
				select {
				case m := <-call:
					if answered, err := receive(ctx, do, m, out, event); answered {
						return err
					}
				default:
					c.mu.Lock()
					defer c.mu.Unlock()
					return fmt.Errorf("%s: %w", do, c.cause)
				}
			}
		case m := <-call:
			if answered, err := receive(ctx, do, m, out, event); answered {
				return err
			}
		}
	}
}

// receive handles one message of a call, and reports whether it was the answer.
func receive(ctx context.Context, do string, m Message, out any, event func(json.RawMessage)) (answered bool, err error) {
	switch {
	case m.Event != nil:
		if event != nil {
			event(m.Event)
		}
		return false, nil
	case m.Error != nil:
		if ctx.Err() != nil && m.Error.Code == codeCancelled {
			return true, fmt.Errorf("%s: %w", do, context.Cause(ctx))
		}
		return true, m.Error
	case out != nil:
		if err := json.Unmarshal(m.Answer, out); err != nil {
			return true, fmt.Errorf("decode answer to %s: %w", do, err)
		}
	}
	return true, nil
}

const codeCancelled = "cancelled"

// Handler does one request. It may emit events, from one goroutine at a time,
// until it returns.
type Handler func(ctx context.Context, body json.RawMessage, emit func(any) error) (any, error)

// Handle makes a Handler of a function with typed input.
func Handle[In, Out any](do func(ctx context.Context, in In, emit func(any) error) (Out, error)) Handler {
	return func(ctx context.Context, body json.RawMessage, emit func(any) error) (any, error) {
		var in In
		if err := json.Unmarshal(body, &in); err != nil {
			return nil, fmt.Errorf("decode request: %w", err)
		}
		return do(ctx, in, emit)
	}
}

// Serve answers requests until the transport ends or ctx is done, then cancels
// what is still running and waits for it. It returns nil when the other side
// has closed the link.
//
// A blocked Receive is only freed by the end of its transport: when ctx ends
// first, Serve returns at once after its handlers, and leaves the reading
// goroutine to the transport's owner, who closes it (at the door: process exit).
func Serve(ctx context.Context, t Transport, handlers map[string]Handler) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()

	type incoming struct {
		m   Message
		err error
	}
	in := make(chan incoming)
	go func() {
		for {
			m, err := t.Receive()
			select {
			case in <- incoming{m, err}:
			case <-ctx.Done():
				return
			}
			if err != nil {
				return
			}
		}
	}()

	var (
		running sync.WaitGroup
		mu      sync.Mutex
		cancels = map[uint64]context.CancelFunc{}
	)
	var ended error
loop:
	for {
		select {
		case <-ctx.Done():
			break loop
		case got := <-in:
			if got.err != nil {
				if !errors.Is(got.err, io.EOF) {
					ended = got.err
				}
				break loop
			}
			m := got.m
			if m.Cancel {
				mu.Lock()
				if stop := cancels[m.ID]; stop != nil {
					stop()
				}
				mu.Unlock()
				continue
			}
			callCtx, stop := context.WithCancel(ctx)
			mu.Lock()
			cancels[m.ID] = stop
			mu.Unlock()
			running.Go(func() {
				reply := answer(callCtx, m, handlers[m.Do], func(event any) error {
					raw, err := json.Marshal(event)
					if err != nil {
						return fmt.Errorf("encode event: %w", err)
					}
					return t.Send(Message{ID: m.ID, Event: raw})
				})
				stop()
				mu.Lock()
				delete(cancels, m.ID)
				mu.Unlock()
				// A failing Send means the other side is gone; Receive tells
				// the loop the same.
				_ = t.Send(reply)
			})
		}
	}
	cancel()
	mu.Lock()
	for stop := range maps.Values(cancels) {
		stop()
	}
	mu.Unlock()
	running.Wait()
	return ended
}

func answer(ctx context.Context, m Message, h Handler, emit func(any) error) Message {
	if h == nil {
		return Message{ID: m.ID, Error: &Error{Code: "unknown", Message: fmt.Sprintf("agent does not know the request %q", m.Do)}}
	}
	out, err := h(ctx, m.Body, emit)
	if err != nil {
		var coded Coded
		e := Error{Message: err.Error()}
		switch {
		case errors.As(err, &coded):
			e = coded.LinkError()
			e.Message = err.Error()
		case ctx.Err() != nil:
			e.Code = codeCancelled
		}
		return Message{ID: m.ID, Error: &e}
	}
	raw, err := json.Marshal(out)
	if err != nil {
		return Message{ID: m.ID, Error: &Error{Message: fmt.Sprintf("encode answer to %s: %v", m.Do, err)}}
	}
	return Message{ID: m.ID, Answer: raw}
}
