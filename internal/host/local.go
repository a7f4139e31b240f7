package host

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"sync"
	"time"

	"hakaru"
	"hakaru/internal/checkout"
	"hakaru/internal/link"
	"hakaru/internal/load"
	"hakaru/internal/service"
	"hakaru/internal/service/attach"
	"hakaru/internal/service/registry"
	"hakaru/internal/watch"
)

// Settings say where a Local keeps what must outlive it.
type Settings struct {
	StateDir string // registry of what is up, for the sweep after a dead agent
	// DurableDir is the registry of what is changed outside of what is up; it
	// outlives a reboot. StateDir where empty.
	DurableDir string
	LockFile   string   // one run at a time on this machine
	Exe        string   // this program, for services that are hakaru itself
	Environ    []string // what services inherit, but for HAKARU_…
	Version    string
	CacheDir   string // checked out and built versions of people's code; empty: none can be made
}

// Local is a Host in this process.
type Local struct {
	settings Settings
	versions *checkout.Versions

	mu     sync.Mutex
	stacks map[string]*service.Stack // by place
	lock   *os.File
}

// NewLocal returns a host that works in this process. Close it.
func NewLocal(s Settings) *Local {
	l := &Local{settings: s, stacks: map[string]*service.Stack{}}
	if s.CacheDir != "" {
		l.versions = checkout.New(checkout.Options{Dir: s.CacheDir, Environ: s.Environ})
	}
	return l
}

// Close takes down every place that is still up and gives the machine back.
// What had to be done beyond asking is returned.
func (l *Local) Close(ctx context.Context) []hakaru.Warning {
	l.mu.Lock()
	stacks := slices.Collect(maps.Values(l.stacks))
	clear(l.stacks)
	lock := l.lock
	l.lock = nil
	l.mu.Unlock()
	var warnings []hakaru.Warning
	for _, s := range stacks {
		warnings = append(warnings, s.Down(ctx).Warnings...)
	}
	if l.versions != nil {
		if err := l.versions.Close(); err != nil {
			warnings = append(warnings, hakaru.Warning{Code: "versions", Message: err.Error()})
		}
	}
	if lock != nil {
		lock.Close()
	}
	return warnings
}

// Hello implements Host.
func (l *Local) Hello(ctx context.Context, ask HelloAsk) (Hello, error) {
	var h Hello
	if ask.Sweep {
		swept, err := l.sweep(ctx)
		h.Swept = swept
		if err != nil {
			return h, &NotSwept{Message: err.Error(), Swept: swept}
		}
	}
	h.Environment = watch.Environment(ctx, ask.Programs, l.settings.Version)
	if err := findProgram(ctx, ask.Load, &h.Environment); err != nil {
		return Hello{}, err
	}
	return h, nil
}

// sweep puts back what dead agents changed, before anything else, and ends what
// they left.
func (l *Local) sweep(ctx context.Context) (swept []hakaru.Warning, err error) {
	var errs []error
	for _, dir := range slices.Compact([]string{l.settings.StateDir, cmp.Or(l.settings.DurableDir, l.settings.StateDir)}) {
		back, err := attach.PutBack(ctx, dir, l.settings.Environ)
		swept = append(swept, back...)
		if err != nil {
			errs = append(errs, fmt.Errorf("put back what a dead agent changed: %w", err))
		}
		ended, err := registry.Sweep(ctx, dir)
		swept = append(swept, ended...)
		if err != nil {
			errs = append(errs, fmt.Errorf("end what a dead agent left: %w", err))
		}
	}
	return swept, errors.Join(errs...)
}

// Lock implements Host.
func (l *Local) Lock(ctx context.Context, ask LockAsk) error {
	l.mu.Lock()
	held := l.lock != nil
	l.mu.Unlock()
	if held {
		return errors.New("this agent has locked the machine already")
	}
	file, err := takeLock(ctx, l.settings.LockFile, ask)
	if err != nil {
		return err
	}
	l.mu.Lock()
	l.lock = file
	l.mu.Unlock()
	return nil
}

// Up implements Host.
func (l *Local) Up(ctx context.Context, b hakaru.Bundle) (hakaru.Place, error) {
	stack, err := service.Up(ctx, b, service.Options{
		StateDir: l.settings.StateDir, DurableDir: l.settings.DurableDir, Exe: l.settings.Exe, Environ: l.settings.Environ,
		Versions: l.versions,
	})
	if err != nil {
		if back := notBack(err); back != err {
			return hakaru.Place{}, back
		}
		var start *service.StartError
		if errors.As(err, &start) {
			return hakaru.Place{}, &NotStarted{
				Message: fmt.Sprintf("start %s: %s", hakaru.TheService(start.Service), start.Why),
				Hint:    start.Hint, Output: start.Output, Foreign: start.Foreign,
			}
		}
		return hakaru.Place{}, err
	}
	place := stack.Place()
	l.mu.Lock()
	l.stacks[place.ID] = stack
	l.mu.Unlock()
	return place, nil
}

func (l *Local) stack(place hakaru.Place) (*service.Stack, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.stacks[place.ID]
	if s == nil {
		return nil, fmt.Errorf("place %s is not up on this host", place.ID)
	}
	return s, nil
}

// Load implements Host.
func (l *Local) Load(ctx context.Context, place hakaru.Place, spec hakaru.LoadSpec, w hakaru.Window, emit func(hakaru.Bucket)) (hakaru.LoadReport, error) {
	if spec.Program != nil {
		return l.loadProgram(ctx, place, spec, w, emit)
	}
	if spec.HTTP == nil {
		return hakaru.LoadReport{}, errors.New("this load is not one this host can send")
	}
	request := *spec.HTTP
	request.URL = place.Names.Expand(request.URL)
	request.Body = place.Names.Expand(request.Body)
	request.ConnectTo = place.Names.Expand(request.ConnectTo)
	request.Headers = make(map[string]string, len(spec.HTTP.Headers))
	for name, value := range spec.HTTP.Headers {
		request.Headers[name] = place.Names.Expand(value)
	}
	var report hakaru.LoadReport
	var err error
	if spec.Capacity != nil {
		report, err = load.FindCapacity(ctx, request, *spec.Capacity, w, emit, nil)
	} else {
		report, err = load.HTTP(ctx, request, w, emit)
	}
	var late *load.LateError
	if errors.As(err, &late) {
		return report, &LateError{Message: err.Error()}
	}
	if advice, is := errors.AsType[hinted](err); is {
		return report, &LoadError{Message: err.Error(), Help: advice.Hint()}
	}
	return report, err
}

// Watch implements Host.
func (l *Local) Watch(ctx context.Context, place hakaru.Place, w hakaru.Window, begun func()) (hakaru.Watched, error) {
	stack, err := l.stack(place)
	if err != nil {
		return hakaru.Watched{}, err
	}
	watched, err := watch.Watch(ctx, place, w, begun)
	if err != nil && ctx.Err() != nil {
		err = nil // it was to end now, and has told what it saw
	}
	watched.Ended = unite(unite(stack.Ended(), stack.Replaced(ctx)), watched.Ended)
	return watched, err
}

// unite adds to what is known of the units that ended those that only more
// knows of.
func unite(known, more []hakaru.Exit) []hakaru.Exit {
	for _, e := range more {
		if !slices.ContainsFunc(known, func(k hakaru.Exit) bool { return k.Service == e.Service }) {
			known = append(known, e)
		}
	}
	return known
}

// downTime bounds how long a place may take to go down: its services' graces,
// and closeGrace for what is done by force.
func (l *Local) downTime(place hakaru.Place) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	if s := l.stacks[place.ID]; s != nil {
		return closeGrace + s.Grace()
	}
	return closeGrace
}

// closeTime bounds how long Close may take: it takes down one after another.
func (l *Local) closeTime() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	limit := closeGrace
	for _, s := range l.stacks {
		limit += s.Grace()
	}
	return limit
}

// Prove implements Host.
func (l *Local) Prove(ctx context.Context, place hakaru.Place, asks []hakaru.Ask, when hakaru.Moment) ([]hakaru.Proof, error) {
	stack, err := l.stack(place)
	if err != nil {
		return nil, err
	}
	return stack.Prove(ctx, asks, when), nil
}

// Output implements Host.
func (l *Local) Output(_ context.Context, place hakaru.Place) ([]hakaru.Output, error) {
	stack, err := l.stack(place)
	if err != nil {
		return nil, err
	}
	return stack.Outputs(), nil
}

// Down implements Host.
func (l *Local) Down(ctx context.Context, place hakaru.Place) (hakaru.Leftovers, error) {
	stack, err := l.stack(place)
	if err != nil {
		return hakaru.Leftovers{}, err
	}
	left := stack.Down(ctx)
	// What was to doubt about bringing it up belongs into the result as well.
	left.Warnings = append(stack.Warnings(), left.Warnings...)
	l.mu.Lock()
	delete(l.stacks, place.ID)
	l.mu.Unlock()
	return left, notBack(stack.NotBack())
}

// NotStarted says that a service did not become ready; nothing of it is left.
type NotStarted struct {
	Message string
	Hint    string
	Output  string // its last lines
	// Foreign is set where something else on the machine kept it from starting.
	Foreign bool
}

func (e *NotStarted) Error() string { return e.Message }

const (
	codeNotStarted = "not_started"
	codeKept       = "not_started_kept" // by something else
)

// LinkError lets hint and output cross a link.
func (e *NotStarted) LinkError() link.Error {
	code := codeNotStarted
	if e.Foreign {
		code = codeKept
	}
	return link.Error{Code: code, Message: e.Message, Hint: e.Hint, Output: e.Output}
}

// NotBack says that a service that hakaru did not start was changed and is not
// put back: a person has to look, and nothing is to be measured before.
type NotBack struct{ Message string }

func (e *NotBack) Error() string { return e.Message }

const codeNotBack = "not_put_back"

// LinkError lets it cross a link.
func (e *NotBack) LinkError() link.Error {
	return link.Error{Code: codeNotBack, Message: e.Message}
}

// notBack makes a *NotBack of an error that holds a *service.NotBackError, and
// leaves others.
func notBack(err error) error {
	if _, is := errors.AsType[*service.NotBackError](err); is {
		return &NotBack{Message: err.Error()}
	}
	return err
}

// NotSwept says what of dead agents could not be ended or put back; Swept is what
// was all the same.
type NotSwept struct {
	Message string
	Swept   []hakaru.Warning
}

func (e *NotSwept) Error() string { return e.Message }

const codeNotSwept = "not_swept"

// LinkError lets it cross a link.
func (e *NotSwept) LinkError() link.Error {
	raw, err := json.Marshal(e.Swept)
	if err != nil { // warnings always encode
		raw = []byte("[]")
	}
	return link.Error{Code: codeNotSwept, Message: e.Message, Output: string(raw)}
}

// LateError says that the load host was held up until its window had begun.
type LateError struct{ Message string }

func (e *LateError) Error() string { return e.Message }

const codeLate = "late"

// LinkError lets it cross a link.
func (e *LateError) LinkError() link.Error { return link.Error{Code: codeLate, Message: e.Message} }

// hinted is an error that knows what to do about itself.
type hinted interface {
	error
	Hint() string
}

// LoadError says why a load could not begin: a name that stands for no address, a
// certificate that cannot be read, too few local ports.
type LoadError struct{ Message, Help string }

func (e *LoadError) Error() string { return e.Message }

// Hint says what to do about it.
func (e *LoadError) Hint() string { return e.Help }

const codeLoad = "load"

// LinkError lets it cross a link.
func (e *LoadError) LinkError() link.Error {
	return link.Error{Code: codeLoad, Message: e.Message, Hint: e.Help}
}
