package main

import (
	"errors"
	"slices"
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

// The program whose version is asked for is the one that is started.
func TestPrograms(t *testing.T) {
	exp := &hakaru.Experiment{Dir: "/srv/app", Services: []hakaru.Service{
		{Run: []string{"uwsgi", "--ini", "x"}}, {Run: []string{"./fib"}}, {Run: []string{"bin/db"}, Dir: "db"},
		{Run: []string{"/usr/bin/x"}}, {Run: []string{"hakaru", "serve"}}, {Run: []string{"./y"}, Dir: "/opt"}, {},
	}}
	want := []string{"uwsgi", "/srv/app/fib", "/srv/app/db/bin/db", "/usr/bin/x", "/opt/y"}
	if got := programs(exp); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
