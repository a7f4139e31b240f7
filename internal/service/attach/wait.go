package attach

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"hakaru"
	"hakaru/internal/service/registry"
)

// changePatience is how long processes may take to be replaced after a restart
// that has returned: a reload goes on by itself.
const changePatience = 5 * time.Second

// wait is for the right answer after a command that changed the service. Where
// the command restarts it, the answer is to come from a process that was not
// there before, as far as that can be seen: the old ones may go on answering for
// a moment after a reload has returned, with the old settings.
type wait struct {
	unit     hakaru.Unit
	before   process // what there was before the command
	after    string  // the command, for a person
	restarts bool
	limit    time.Duration

	warnings []hakaru.Warning
}

func (w *wait) warn(code, format string, args ...any) {
	w.warnings = append(w.warnings, hakaru.Warning{Code: code, Message: fmt.Sprintf(format, args...)})
}

func (w *wait) forAnswer(ctx context.Context) ([]hakaru.Answer, error) {
	asking, cancel := context.WithTimeout(ctx, w.limit)
	defer cancel()
	began := time.Now()
	name := hakaru.TheService(w.unit.Service)
	var answers []hakaru.Answer
	err := await(asking, func() error {
		got, err := ask(asking, w.unit)
		if err != nil {
			return err
		}
		answers = got
		if !w.restarts || w.before.pid == 0 {
			return nil
		}
		changed, old, err := w.replaced(asking)
		switch {
		case err == nil && changed && old == "":
			return nil
		case time.Since(began) < min(changePatience, w.limit/2):
			if err != nil {
				return err
			}
			return errors.New("it answers, and runs since before " + w.after)
		case err != nil: // told when it is looked for again
		case !changed:
			w.warn("not_restarted", "%s did not restart %s, so what it changed in files may not be in force: %s runs since before it", w.after, name, old)
		default:
			w.warn("old_processes", "%s left processes of %s running that were there before it: %s", w.after, name, old)
		}
		return nil
	})
	return answers, err
}

// replaced reports whether the service has processes that were not there before,
// and names those that were. The one that listens may stay when a reload replaces
// its children; then only they count.
func (w *wait) replaced(ctx context.Context) (changed bool, old string, err error) {
	now, err := find(ctx, w.unit.Ready)
	if err != nil {
		// It answers and nobody listens: it is being replaced this moment.
		return false, "", err
	}
	var left []int
	for pid, start := range now.members {
		if w.before.members[pid] != start {
			changed = true
		} else if pid != now.pid {
			left = append(left, pid)
		}
	}
	slices.Sort(left)
	switch {
	case !changed:
		return false, registry.DescribeAll([]int{now.pid}), nil
	case len(left) > 0:
		return true, registry.DescribeAll(left), nil
	}
	return true, "", nil
}
