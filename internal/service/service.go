// Package service brings a stack of programs up on this machine, knows when
// each gives the right answer, reads back whether settings are in force, and
// takes everything down again.
//
// It takes a hakaru.Bundle, rendered but for leased addresses and the private
// directory; it gives a Stack: the place, proofs, and in the end what was left
// over. What it started is noted on disk before it starts (package registry), so
// that a later process ends what an agent that was killed left behind. Nothing
// outlives Down: processes are found again by cgroup, session, environment mark
// and descent.
//
// How a program is started, what it writes, who holds an address and whether it
// answers rightly are packages below (launch, output, address, answer). It does not
// send load, watch counters, decide whether an ask holds (package proof), or whether
// a trial counts.
package service

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"hakaru"
	"hakaru/internal/checkout"
	"hakaru/internal/service/address"
	"hakaru/internal/service/launch"
	"hakaru/internal/service/registry"
	"hakaru/internal/watch/kernel"
)

// Defaults of hakaru.Ready and hakaru.Stop.
const (
	DefaultReadyTimeout = 30 * time.Second
	DefaultGrace        = 10 * time.Second
)

// Options is what an agent knows and a bundle does not.
type Options struct {
	StateDir string // registry of what is up, see registry.DefaultDir; needed
	// DurableDir is for the records of stacks that change something outside of
	// themselves, see registry.DurableDir; StateDir where empty.
	DurableDir string
	TempDir    string         // where private directories are made; /tmp where empty
	Exe        string         // this program, for {hakaru.exe}
	Owner      registry.Owner // the agent; this process where zero
	Environ    []string       // the agent's environment, which services inherit but for HAKARU_…
	NoCgroup   bool           // do without cgroups although they could be made

	Versions *checkout.Versions // for units that are built or of a version; nil: none can be
}

// StartError says why a stack did not come up. Everything that had been started
// is stopped when it is returned.
type StartError struct {
	Service string `json:"service"`
	Why     string `json:"why"`              // "did not become ready within 30s: …"
	Exit    string `json:"exit,omitempty"`   // how its main process ended: "exit status 1"
	Output  string `json:"output,omitempty"` // its last lines
	Hint    string `json:"hint,omitempty"`
	// Foreign is set where a process that hakaru did not start has its address:
	// that is no doing of the service.
	Foreign bool             `json:"foreign,omitempty"`
	Left    hakaru.Leftovers `json:"left"` // of stopping what had been started
}

// Error is one sentence, followed by the last lines of the service's output.
func (e *StartError) Error() string {
	text := fmt.Sprintf("start %s: %s", hakaru.TheService(e.Service), e.Why)
	if e.Output != "" {
		text += "\nlast output:\n    " + strings.ReplaceAll(e.Output, "\n", "\n    ")
	}
	return text
}

// Stack is what Up has brought up. Its methods may be called from several
// goroutines. Down must be called in the end.
type Stack struct {
	opt    Options
	files  registry.Dir
	record registry.Record
	launch *launch.Launcher
	leases *address.Leases
	units  []*unit
	place  hakaru.Place

	private  *os.Root        // the private directory
	reserved map[string]bool // names in it that are not to be links, see reserve

	commits []string // of the versions that units are of, in the order of the bundle

	mu       sync.Mutex // guards warnings
	warnings []hakaru.Warning

	down    sync.Once
	left    hakaru.Leftovers
	notBack error
}

// Up starts the units of a bundle in order, each ready before the next. On an
// error that concerns a unit, a *StartError, everything started is stopped
// before it returns; so it is when ctx ends.
func Up(ctx context.Context, bundle hakaru.Bundle, opt Options) (*Stack, error) {
	if len(bundle.Units) == 0 {
		return nil, errors.New("start the stack: it has no service")
	}
	if opt.TempDir == "" {
		opt.TempDir = "/tmp"
	}
	if opt.Owner == (registry.Owner{}) {
		owner, err := registry.Self()
		if err != nil {
			return nil, fmt.Errorf("start the stack: %w", err)
		}
		opt.Owner = owner
	}
	began := time.Now()
	s, err := prepare(bundle, opt)
	if err != nil {
		return nil, err
	}
	prepared := time.Since(began)
	if err := s.startAll(ctx, bundle.Units); err != nil {
		// The grace of units that are up is kept, but a cancelled start must
		// not go on for long.
		stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), DefaultGrace)
		if ctx.Err() != nil {
			cancel()
		}
		left := s.Down(stop)
		cancel()
		if back := s.NotBack(); back != nil {
			// More than a start that failed: nothing can be measured now.
			return nil, fmt.Errorf("%w\n(it was to be put back since: %v)", back, err)
		}
		var start *StartError
		if errors.As(err, &start) {
			start.Left = left
		}
		return nil, err
	}
	s.place.Took += prepared
	return s, nil
}

// startAll makes what the units run from, then starts them. Only the latter is
// the time that the stack takes.
func (s *Stack) startAll(ctx context.Context, units []hakaru.Unit) error {
	began := time.Now()
	units, err := s.makeVersions(ctx, units)
	if err != nil {
		return err
	}
	s.place.Built = time.Since(began)
	began = time.Now()
	for i := range units {
		if err := s.startUnit(ctx, i, units[i]); err != nil {
			return err
		}
	}
	s.place.Took = time.Since(began)
	return nil
}

// prepare makes everything that is needed before the first process: the record,
// the private directory, leased addresses, cgroups.
func prepare(bundle hakaru.Bundle, opt Options) (_ *Stack, err error) {
	id, err := registry.NewID()
	if err != nil {
		return nil, fmt.Errorf("start the stack: %w", err)
	}
	state := opt.StateDir
	if opt.DurableDir != "" && changes(bundle) {
		state = opt.DurableDir
	}
	files, err := registry.Open(state)
	if err != nil {
		return nil, fmt.Errorf("start the stack: %w", err)
	}
	dir := filepath.Join(opt.TempDir, "hakaru-"+id)
	boot, err := kernel.BootID()
	if err != nil {
		return nil, fmt.Errorf("start the stack: %w", err)
	}
	s := &Stack{
		opt:   opt,
		files: files,
		record: registry.Record{
			Format: registry.Format, ID: id, Owner: opt.Owner, Boot: boot,
			Dir: dir, Run: bundle.Run,
		},
		place: hakaru.Place{ID: id, Dir: dir, Names: hakaru.Names{}},
	}
	defer func() {
		if err != nil {
			s.leases.Close()
			err = errors.Join(err, s.closePrivateDir(), s.removeTraces())
		}
	}()
	cgroup := ""
	if !opt.NoCgroup {
		cgroup, err = registry.CgroupParent()
		if err != nil {
			s.warn("no_cgroup", fmt.Sprintf("no cgroup could be made (%v): CPU time of processes that end between two looks is lost, and what leaves both its session and its environment is not found again", err))
			err = nil
		}
	}
	for i, u := range bundle.Units {
		r := registry.Unit{Service: u.Service}
		if u.Attached == nil {
			r.Mark = kernel.Mark(id, i)
		}
		if cgroup != "" && u.Attached == nil {
			r.Cgroup = filepath.Join(cgroup, id, fmt.Sprintf("%d-%s", i+1, address.FileName(u.Service)))
			s.record.CgroupDir = filepath.Join(cgroup, id)
		}
		s.record.Units = append(s.record.Units, r)
	}
	s.leases, err = address.Take(bundle.Leases, bundle.Units, dir)
	if err != nil {
		return nil, err
	}
	maps.Copy(s.place.Names, s.leases.Names())
	s.record.Ports = s.leases.Ports()
	s.place.Names["hakaru.dir"] = dir
	s.place.Names["hakaru.exe"] = opt.Exe
	s.reserve(bundle.Units)
	// From here on everything that is made is on disk first.
	if err = s.files.Write(s.record, true); err != nil {
		return nil, err
	}
	if err = s.makePrivateDir(bundle); err != nil {
		return nil, err
	}
	for i := range s.record.Units {
		r := &s.record.Units[i]
		if r.Cgroup == "" {
			continue
		}
		if err := registry.MakeCgroup(r.Cgroup); err != nil {
			s.warn("no_cgroup", fmt.Sprintf("no cgroup for %s: %v", hakaru.TheService(r.Service), err))
			r.Cgroup = ""
		}
	}
	s.launch = launch.New()
	return s, nil
}

func (s *Stack) warn(code, message string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.warnings = append(s.warnings, hakaru.Warning{Code: code, Message: message})
}

// warnOnce is for what is noticed again and again.
func (s *Stack) warnOnce(code, message string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !slices.ContainsFunc(s.warnings, func(w hakaru.Warning) bool { return w.Code == code }) {
		s.warnings = append(s.warnings, hakaru.Warning{Code: code, Message: message})
	}
}

// Place describes the stack that is up.
func (s *Stack) Place() hakaru.Place { return s.place }

// Warnings is what was noticed while the stack was brought up, above all that
// no cgroup could be made and what is lost by it.
func (s *Stack) Warnings() []hakaru.Warning {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.warnings)
}

// Ended tells of the units whose main process has ended; of attached ones
// Replaced does.
func (s *Stack) Ended() []hakaru.Exit {
	var exits []hakaru.Exit
	for _, u := range s.units {
		if u.attached != nil || !u.hasEnded() {
			continue
		}
		state, _ := u.process.State()
		exit := hakaru.Exit{Service: u.spec.Service, State: state}
		if rest, err := u.group.Members(); err == nil && len(rest) > 0 {
			exit.State += fmt.Sprintf(", and left %s running", registry.DescribeAll(rest))
		}
		exits = append(exits, exit)
	}
	return exits
}

// Outputs is what the units wrote so far.
func (s *Stack) Outputs() []hakaru.Output {
	outputs := make([]hakaru.Output, 0, len(s.units))
	for _, u := range s.units {
		if u.attached == nil {
			outputs = append(outputs, u.out.Result(u.spec.Service))
		}
	}
	return outputs
}

// members returns the live processes of all units that were started.
func (s *Stack) members() ([]int, error) {
	var all []int
	for _, u := range s.units {
		if u.attached != nil {
			continue
		}
		m, err := u.group.Members()
		if err != nil {
			return nil, err
		}
		all = append(all, m...)
	}
	return all, nil
}
