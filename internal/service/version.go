package service

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"hakaru"
	"hakaru/internal/checkout"
	"hakaru/internal/service/launch"
)

// makeVersions builds what is to be built and moves units that are of a version
// into it, before anything is started: neither is part of the time that a
// service takes to start. It returns the units as they are to run.
func (s *Stack) makeVersions(ctx context.Context, units []hakaru.Unit) ([]hakaru.Unit, error) {
	units = slices.Clone(units)
	s.commits = make([]string, len(units))
	names := hakaru.Names{"hakaru.exe": s.opt.Exe}
	for i := range units {
		u := &units[i]
		if u.Revision == "" && len(u.Build) == 0 {
			continue
		}
		if s.opt.Versions == nil {
			return nil, fmt.Errorf("start %s: this host has no place to build in", hakaru.TheService(u.Service))
		}
		ask := checkout.Ask{Service: u.Service, Dir: u.Dir, Revision: u.Revision, Mark: s.record.Units[i].Mark}
		for _, word := range u.Build {
			ask.Build = append(ask.Build, names.Expand(word))
		}
		// A user that is not there is said better when the unit is started.
		if credential, err := launch.Credential(u.User); err == nil {
			ask.User = credential
		}
		v, err := s.opt.Versions.Make(ctx, ask)
		var broken *checkout.BuildError
		switch {
		case errors.As(err, &broken):
			return nil, &StartError{Service: u.Service, Why: broken.Why, Output: broken.Output, Hint: broken.Help}
		case err != nil:
			return nil, fmt.Errorf("start %s: %w", hakaru.TheService(u.Service), err)
		}
		u.Dir, s.commits[i] = v.Dir, v.Commit
		for _, w := range v.Warnings {
			s.warn(w.Code, w.Message)
		}
	}
	return units, nil
}
