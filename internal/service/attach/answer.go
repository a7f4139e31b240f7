package attach

import (
	"context"
	"errors"
	"time"

	"hakaru"
	"hakaru/internal/service/answer"
)

const (
	// Between two questions: more rarely the longer it takes, so that a slow
	// start is not slowed further.
	firstPause   = 20 * time.Millisecond
	slowestPause = 200 * time.Millisecond
)

// await asks until there is no error, until ctx ends; then it returns the last
// error that says something.
func await(ctx context.Context, ask func() error) error {
	pause := firstPause
	timer := time.NewTimer(pause)
	defer timer.Stop()
	last := errors.New("it was not asked yet")
	for {
		err := ask()
		if err == nil {
			return nil
		}
		if ctx.Err() == nil || !errors.Is(err, ctx.Err()) {
			last = err
		}
		select {
		case <-ctx.Done():
			return last
		case <-timer.C:
			pause = min(slowestPause, pause*5/4)
			timer.Reset(pause)
		}
	}
}

// ask puts every question of the unit once. Whoever answers is who is asked: it
// is told apart from an impostor by nothing.
func ask(ctx context.Context, u hakaru.Unit) ([]hakaru.Answer, error) {
	answers, err := answer.Ask(ctx, u.Ready, answer.Who{Service: u.Service})
	if err == nil && len(answers) == 0 {
		err = errors.New("attach does not say how to ask it: write get or connect")
	}
	return answers, err
}
