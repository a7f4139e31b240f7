package service

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"hakaru"
	"hakaru/internal/service/address"
	"hakaru/internal/service/answer"
	"hakaru/internal/service/registry"
)

// Readiness is asked for every firstPoll at first, more rarely the longer it
// takes, so that a slow start is not slowed further.
const (
	firstPoll   = 20 * time.Millisecond
	slowestPoll = 200 * time.Millisecond
	settle      = 200 * time.Millisecond
)

// awaitReady asks until the right answers come from processes of this stack.
func (s *Stack) awaitReady(ctx context.Context, u *unit) ([]hakaru.Answer, error) {
	limit := u.spec.Ready.Timeout
	if limit <= 0 {
		limit = DefaultReadyTimeout
	}
	ready := u.spec.Ready
	// Questions end with the main process, and with a line that says that nobody
	// will answer them rightly.
	asking, cancel := context.WithTimeout(ctx, limit)
	hopeless := make(chan string, 1) // that line
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		defer cancel()
		position := int64(0)
		for news := u.out.News(); ; {
			select {
			case <-u.process.Ended():
				return
			case <-asking.Done():
				return
			case <-news:
				var text string
				text, position = u.out.LinesSince(position)
				if line, found := u.signs.fatalIn(text); found {
					hopeless <- line
					return
				}
			}
		}
	}()
	defer func() { cancel(); <-watched; u.out.Unwatch() }()

	last := "nothing was asked yet"
	pause := firstPoll
	if ready.Get == "" && ready.Connect == "" && ready.Log == "" {
		// Nothing says what ready means; that it survives its first moments is
		// all that can be seen.
		pause = min(settle, limit)
	}
	timer := time.NewTimer(pause)
	defer timer.Stop()
	for {
		if u.hasEnded() {
			return nil, s.endedEarly(u)
		}
		var answers []hakaru.Answer
		var err error
		if ready.Get != "" || ready.Connect != "" || ready.Log != "" {
			answers, err = s.ask(asking, u)
			if err == nil && !u.hasEnded() {
				// The right answer proves more than any line; that something
				// listens does not.
				if line, found := u.fatalSign(); found && ready.Get == "" {
					return nil, s.hopeless(u, line)
				}
				return answers, nil
			}
			var held *address.HeldError
			if errors.As(err, &held) {
				return nil, s.startError(u, held.Error(), heldHint)
			}
			if err != nil && asking.Err() == nil {
				last = err.Error()
			}
		}
		select {
		case <-u.process.Ended():
			continue
		case <-asking.Done():
			if u.hasEnded() {
				continue
			}
			if err := ctx.Err(); err != nil {
				return nil, fmt.Errorf("start %s: %w", hakaru.TheService(u.spec.Service), err)
			}
			select {
			case line := <-hopeless:
				return nil, s.hopeless(u, line)
			default:
			}
			e := s.startError(u, fmt.Sprintf("it did not become ready within %s: %s", limit, last), "")
			if e.Hint == "" {
				e.Hint = "see the last lines of its output; ready: {get: …, status: …} says what is asked and the right answer, ready: {timeout: …} how long a start may take"
			}
			return nil, e
		case <-timer.C:
			if ready.Get == "" && ready.Connect == "" && ready.Log == "" {
				if line, found := u.fatalSign(); found {
					return nil, s.hopeless(u, line)
				}
				return []hakaru.Answer{{Service: u.spec.Service, Probe: "alive", Got: fmt.Sprintf("pid %d", u.group.Leader)}}, nil
			}
		}
		pause = min(slowestPoll, pause*5/4)
		timer.Reset(pause)
	}
}

// endedEarly says how a main process ended before it was ready, and tells a
// daemon from a failure.
func (s *Stack) endedEarly(u *unit) error {
	state, code := u.process.State()
	rest, err := u.group.Members()
	if err == nil && len(rest) > 0 && code == 0 {
		return s.startError(u,
			fmt.Sprintf("the command ended (exit 0) and left %s running: hakaru needs it in the foreground", registry.DescribeAll(rest)),
			"switch off its daemon mode (often --foreground, --nodaemon or `daemon off;`)")
	}
	why, hint := fmt.Sprintf("it ended before it was ready (%s)", state), ""
	if u.spec.Ready.Get != "" || u.spec.Ready.Connect != "" {
		if addr, ok := address.Ready(u.spec.Ready); ok {
			if held := s.strangers().Listening(addr); held != nil {
				why, hint = why+"; "+held.Error(), heldHint
			}
		}
	}
	e := s.startError(u, why, hint)
	if e.Hint == "" && code == 0 {
		e.Hint = "if it goes on in the background, switch that off: hakaru needs it in the foreground"
	}
	return e
}

// heldHint is what to do about an address that somebody else has.
const heldHint = "end that process, or let hakaru choose the port: ports: [name] and {name}"

// fatalSign looks for a line that says that the unit will not become ready in
// all that it wrote.
func (u *unit) fatalSign() (line string, found bool) {
	if !u.signs.hasFatal() {
		return "", false
	}
	return u.signs.fatalIn(u.out.Lines())
}

// hopeless is the error of a unit that wrote such a line. Many end by themselves
// then; how they do is worth a moment.
func (s *Stack) hopeless(u *unit, line string) error {
	timer := time.NewTimer(settle)
	defer timer.Stop()
	select {
	case <-u.process.Ended():
		return s.endedEarly(u)
	case <-timer.C:
		return s.startError(u, "it will not become ready: "+shortLine(line), "")
	}
}

// startError says why a unit did not come up, with the lines of its output that
// explain it. hint is what to do where that is known better than by those lines.
func (s *Stack) startError(u *unit, why, hint string) *StartError {
	e := &StartError{Service: u.spec.Service, Why: why, Hint: hint}
	if u.hasEnded() {
		e.Exit, _ = u.process.State()
		u.out.Drain(200 * time.Millisecond) // its last words may still be in the pipe
	}
	e.Output = u.out.LastLines()
	text := u.out.Lines()
	lines, known := u.signs.explain(text)
	for _, line := range lines {
		if !strings.Contains(e.Why, line) {
			e.Why += "; it says: " + line
		}
	}
	if addr, taken := takenAddress(text); taken && e.Hint == "" {
		if held := s.strangers().Listening(addr); held != nil {
			e.Why, e.Hint = e.Why+"; "+held.Error(), heldHint
		}
	}
	e.Foreign = e.Hint == heldHint
	if e.Hint == "" {
		e.Hint = known
	}
	return e
}

// ask puts every question of the unit once.
func (s *Stack) ask(ctx context.Context, u *unit) ([]hakaru.Answer, error) {
	return answer.Ask(ctx, u.spec.Ready, answer.Who{
		Service: u.spec.Service, Log: u.out.Found,
		Ours: func(at string) error { return s.strangers().At(address.Behind(at)) },
	})
}

// checkFree says who holds an address that the unit's readiness asks for before
// the unit is started. Leased addresses were free a moment ago; those held by
// earlier units of the stack are ours.
func (s *Stack) checkFree(ctx context.Context, spec hakaru.Unit) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	for _, text := range []string{address.Behind(spec.Ready.Get), spec.Ready.Connect} {
		if addr, ok := address.TCP(text); ok && s.leases.Holds(addr) {
			continue
		}
		if err := s.strangers().At(text); err != nil {
			return err
		}
	}
	return nil
}

// strangers tells the stack's processes from others.
func (s *Stack) strangers() address.Strangers {
	return address.Strangers{Ours: s.members, Warn: s.warnOnce}
}
