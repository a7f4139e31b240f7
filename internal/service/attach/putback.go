package attach

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	"hakaru"
	"hakaru/internal/service/launch"
	"hakaru/internal/service/registry"
	"hakaru/internal/watch/kernel"
)

// mostTries is how often hakaru tries to put something back: after that it only
// tells the person, each time.
const mostTries = 3

// PutBack puts back what killed agents changed, by the records in stateDir: each
// undo once, by one process at a time. What a living agent has changed is not
// touched. It is to come before registry.Sweep, which removes the records. A
// record of before a reboot counts as well: files that were changed still are.
// One that cannot be read keeps nothing else from being put back. When ctx ends,
// an undo that was begun is carried through, and no other is begun.
func PutBack(ctx context.Context, stateDir string, environ []string) ([]hakaru.Warning, error) {
	files, names, unread := changed(stateDir)
	if len(names) == 0 {
		return nil, unread
	}
	var warnings []hakaru.Warning
	errs := []error{unread}
	err := registry.Exclusive(ctx, stateDir, func() error {
		boot, err := kernel.BootID()
		if err != nil {
			return err
		}
		for _, name := range names {
			// Read again: another hakaru may have put it back while this one
			// waited for the lock.
			o, orphaned, err := files.Orphan(name, boot)
			if err != nil || !orphaned {
				errs = append(errs, err)
				continue
			}
			for _, i := range slices.Backward(o.Changed()) {
				if err := ctx.Err(); err != nil {
					return fmt.Errorf("put %s back: %w", hakaru.TheService(o.Units[i].Service), err)
				}
				w, err := putBackUnit(ctx, files, &o, i, environ)
				warnings = append(warnings, w...)
				errs = append(errs, err)
			}
		}
		return nil
	})
	return warnings, errors.Join(append(errs, err)...)
}

// changed lists the records of dead agents that have something to put back, also
// where others cannot be read.
func changed(stateDir string) (registry.Dir, []string, error) {
	entries, err := os.ReadDir(stateDir)
	if errors.Is(err, fs.ErrNotExist) {
		return registry.Dir{}, nil, nil
	}
	if err != nil {
		return registry.Dir{}, nil, fmt.Errorf("look for what is to be put back: %w", err)
	}
	files, err := registry.Open(stateDir)
	if err != nil {
		return files, nil, err
	}
	boot, err := kernel.BootID()
	if err != nil {
		return files, nil, err
	}
	var names []string
	var errs []error
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), ".json") {
			continue
		}
		o, orphaned, err := files.Orphan(e.Name(), boot)
		if err != nil {
			errs = append(errs, fmt.Errorf("look for what is to be put back: %w", err))
		}
		if orphaned && len(o.Changed()) > 0 {
			names = append(names, e.Name())
		}
	}
	return files, names, errors.Join(errs...)
}

func putBackUnit(ctx context.Context, files registry.Dir, o *registry.Orphan, i int, environ []string) ([]hakaru.Warning, error) {
	undo := o.Units[i].Undo
	name := hakaru.TheService(o.Units[i].Service)
	self, err := registry.Self()
	if err != nil {
		return nil, err
	}
	save := func(sync bool) error { return files.WriteAs(o.Record, self, sync) }
	if undo.Ran {
		// Only the right answer was missing, and a person may have seen to that.
		if _, err := ask(ctx, hakaru.Unit{Service: o.Units[i].Service, Ready: undo.Ready}); err == nil {
			o.Undone(i)
			return []hakaru.Warning{{Code: "put_back", Message: name + " answers rightly again after what was changed for a trial was put back"}}, save(true)
		}
	}
	if undo.Tries >= mostTries {
		return nil, fmt.Errorf("%w\nhakaru has tried %d times and does not try again; when it is put back, remove what hakaru kept of it: rm -r %s %s",
			notPutBack(name, errors.New(undo.Failed), undo), undo.Tries, registry.ShellWord(o.Dir), registry.ShellWord(files.Path(o.ID)))
	}
	limit := undo.Timeout
	if limit <= 0 {
		limit = DefaultTimeout
	}
	commands := runner{dir: undo.Dir, env: overlaid(launch.Environment(environ, nil, ""), undo.Env), limit: limit, service: o.Units[i].Service, outputs: o.Dir, ready: undo.Ready}
	if c := undo.Running; c != nil && o.SameBoot {
		if err := commands.orphaned(ctx, *c); err != nil {
			return nil, err
		}
	}
	// An undo that is cut in half is worse than a wait, and would count as a try.
	warnings, err := putBack(context.WithoutCancel(ctx), commands, o.Units[i].Service, undo, save)
	if err != nil {
		return warnings, err
	}
	if len(undo.Words) > 0 {
		warnings = append([]hakaru.Warning{{Code: "put_back", Message: fmt.Sprintf(
			"%s had been changed by an agent that was killed (pid %d) and has been put back", name, o.Owner.PID)}}, warnings...)
	}
	o.Undone(i)
	return warnings, save(true)
}

// overlaid is an environment with the variables of another in the place of its
// own.
func overlaid(env, over []string) []string {
	taken := make(map[string]bool, len(over))
	for _, e := range over {
		name, _, _ := strings.Cut(e, "=")
		taken[name] = true
	}
	list := slices.DeleteFunc(slices.Clone(env), func(e string) bool {
		name, _, _ := strings.Cut(e, "=")
		return taken[name]
	})
	return append(list, over...)
}
