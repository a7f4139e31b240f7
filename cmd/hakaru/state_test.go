package main

import (
	"errors"
	"syscall"
	"testing"

	"hakaru"
)

func TestEndState(t *testing.T) {
	cut := &interrupted{signal: syscall.SIGINT}
	for _, c := range []struct {
		name       string
		run, cause error
		want       hakaru.RunState
	}{
		{"done", nil, nil, hakaru.RunDone},
		{"a signal after the end", nil, cut, hakaru.RunDone},
		{"interrupted", cut, cut, hakaru.RunInterrupted},
		{"interrupted, told otherwise", errors.New("the link is closed"), cut, hakaru.RunInterrupted},
		{"failed", errors.New("disk full"), nil, hakaru.RunFailed},
	} {
		if got := endState(c.run, c.cause); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}
