package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"hakaru"
	"hakaru/internal/checkout"
	"hakaru/internal/doubt"
	"hakaru/internal/experiment"
	"hakaru/internal/render"
)

// revision finds the commit that the name of a version stands for.
func revision(ctx context.Context) func(dir, name string) (string, error) {
	repositories := map[string]*checkout.Repository{}
	return func(dir, name string) (string, error) {
		repo := repositories[dir]
		if repo == nil {
			var err error
			if repo, err = checkout.Open(ctx, dir, os.Environ()); err != nil {
				return "", err
			}
			repositories[dir] = repo
		}
		commit, err := repo.Resolve(ctx, name)
		if unknown, is := errors.AsType[*checkout.UnknownRevisionError](err); is {
			return "", &experiment.UnknownRevision{Err: unknown, Known: unknown.Known}
		}
		return commit, err
	}
}

// doubtsOf is what is to be said of an experiment before time is spent on it.
func doubtsOf(ctx context.Context, exp *hakaru.Experiment) ([]hakaru.Warning, error) {
	differ, err := settingsDiffer(ctx, exp)
	return append(doubt.Of(exp), differ...), err
}

// settingsDiffer is the doubt that a version has a config file of its own: the
// one beside the experiment file is used for all of them, so that what differs
// is the code.
func settingsDiffer(ctx context.Context, exp *hakaru.Experiment) ([]hakaru.Warning, error) {
	var out []hakaru.Warning
	for i := range exp.Services {
		s := &exp.Services[i]
		if s.Settings == "" {
			continue
		}
		path := s.Settings
		if !filepath.IsAbs(path) {
			path = filepath.Join(exp.Dir, path)
		}
		told := map[string]bool{}
		for _, v := range exp.Variants {
			for _, x := range slices.Concat(s.Base, v.Settings) {
				if !render.OfVersion(exp, s, x) || x.Value == nil || *x.Value == checkout.WorkingTree || told[*x.Value] {
					continue
				}
				told[*x.Value] = true
				same, err := sameFile(ctx, exp, *x.Value, s.Settings, path)
				if err != nil {
					return nil, err
				}
				if !same {
					out = append(out, hakaru.Warning{Code: "settings_differ", Message: fmt.Sprintf(
						"version %s has another %s than the working tree; that of the working tree is used for all versions", x.Level, s.Settings)})
				}
			}
		}
	}
	return out, nil
}

// sameFile reports whether a commit has a file as it was read for the
// experiment. One that lies outside the repository is of no version.
func sameFile(ctx context.Context, exp *hakaru.Experiment, commit, name, path string) (bool, error) {
	repo, err := checkout.Open(ctx, filepath.Dir(path), os.Environ())
	if _, outside := errors.AsType[*checkout.RepositoryError](err); outside {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	content, err := repo.File(ctx, commit, path)
	if errors.Is(err, fs.ErrNotExist) {
		return true, nil // nothing that would be left out of account
	}
	if err != nil {
		return false, err
	}
	for _, f := range exp.Sources {
		if f.Path == name {
			return f.Content == string(content), nil
		}
	}
	return true, nil
}
