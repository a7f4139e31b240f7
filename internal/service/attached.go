package service

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"time"

	"hakaru"
	"hakaru/internal/service/attach"
	"hakaru/internal/service/registry"
)

// attachUnit brings settings to unit i, which something else starts. What it
// changes is put back by Down, also when it fails half-way.
func (s *Stack) attachUnit(ctx context.Context, i int, spec hakaru.Unit) error {
	fail := func(e *attach.Error) error {
		return &StartError{Service: spec.Service, Why: e.Why, Hint: e.Hint, Output: e.Output}
	}
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("attach to %s: %w", hakaru.TheService(spec.Service), err)
	}
	written, err := s.writeFiles(spec, nil)
	if err != nil {
		return fmt.Errorf("attach to %s: %w", hakaru.TheService(spec.Service), err)
	}
	spec.Attached = s.commands(spec)
	u := &unit{spec: spec, attached: attach.New(attach.Options{
		Unit: spec, Dir: s.place.Dir, Environ: s.opt.Environ,
		Note: func(undo *registry.Undo, sync bool) error {
			before := s.record.Units[i].Undo
			s.record.Units[i].Undo = undo
			err := s.files.Write(s.record, sync)
			if err != nil {
				s.record.Units[i].Undo = before // as it may be on disk
			}
			return err
		},
	})}
	s.leases.Release(i) // nothing stands between its restart and an address that it is given
	// From here on Down has to do with it.
	s.units = append(s.units, u)
	began := time.Now()
	answers, err := u.attached.Up(ctx)
	s.addWarnings(u.attached.Warnings())
	u.group = u.attached.Group()
	var failed *attach.Error
	switch {
	case errors.As(err, &failed):
		return fail(failed)
	case err != nil:
		return fmt.Errorf("attach to %s: %w", hakaru.TheService(spec.Service), err)
	}
	s.place.Units = append(s.place.Units, hakaru.RunningUnit{
		Service: spec.Service, PID: u.group.Leader, Attached: true, Files: written, Ready: time.Since(began),
	})
	s.place.Answers = append(s.place.Answers, answers...)
	return nil
}

// commands puts leased names and the path of the edited copy into the commands.
func (s *Stack) commands(spec hakaru.Unit) *hakaru.Attached {
	names := maps.Clone(s.place.Names)
	if spec.Attached.File != "" {
		names["file"] = filepath.Join(s.place.Dir, spec.Attached.File)
	}
	words := func(list []string) []string {
		list = slices.Clone(list)
		for i := range list {
			list[i] = names.Expand(list[i])
		}
		return list
	}
	return &hakaru.Attached{
		File: spec.Attached.File, Apply: words(spec.Attached.Apply),
		Restart: words(spec.Attached.Restart), Undo: words(spec.Attached.Undo),
	}
}

// detach puts back what was changed for an attached unit.
func (s *Stack) detach(ctx context.Context, u *unit) {
	err := u.attached.Down(ctx)
	for _, w := range u.attached.Warnings() {
		s.leave(w.Code, w.Message)
	}
	if err != nil {
		s.notBack = errors.Join(s.notBack, &NotBackError{fmt.Errorf("%w\nThe note of it stays in %s: the next hakaru command tries again", err, s.files.Path(s.record.ID))})
		s.leave("not_put_back", err.Error())
	}
}

// NotBackError says that something that hakaru did not start is not as it was.
type NotBackError struct{ err error }

func (e *NotBackError) Error() string { return e.err.Error() }
func (e *NotBackError) Unwrap() error { return e.err }

// NotBack is set after Down where something that hakaru did not start could not
// be put back: nothing is to be measured before a person has looked at it.
func (s *Stack) NotBack() error { return s.notBack }

// Replaced tells of attached units whose process that listened has gone, or does
// not listen any more.
func (s *Stack) Replaced(ctx context.Context) []hakaru.Exit {
	var exits []hakaru.Exit
	for _, u := range s.units {
		if u.attached == nil {
			continue
		}
		if exit, ended := u.attached.Ended(ctx); ended {
			exits = append(exits, exit)
		}
	}
	return exits
}

func (s *Stack) addWarnings(list []hakaru.Warning) {
	for _, w := range list {
		s.warn(w.Code, w.Message)
	}
}

// changes reports whether bringing the bundle up changes something that outlives
// the machine's next boot.
func changes(bundle hakaru.Bundle) bool {
	return slices.ContainsFunc(bundle.Units, func(u hakaru.Unit) bool {
		return u.Attached != nil && len(u.Attached.Apply)+len(u.Attached.Restart) > 0
	})
}
