package service

import (
	"strings"
	"testing"
	"time"

	"hakaru"
	"hakaru/internal/service/proof"
)

// The proofs put to a running service.
func TestProve(t *testing.T) {
	both(t, func(t *testing.T, opt Options) {
		u := fixtureUnit("app", "json")
		exe := u.Argv[0]
		// Behind a shell, whose maps and words prove nothing.
		u.Argv = []string{"/bin/sh", "-c", `"$0" "$@"; exit $?`, exe, "-test.run=^$", "--workers=4"}
		setenv(&u, "BACKLOG", "7")
		setenv(&u, "POOL", "8")
		u.Ready.Body = "workers"
		u.Files = []hakaru.File{{Path: "app.ini", Content: "a = 1\nworkers = 4\n"}}
		s := mustUp(t, one(u), opt)
		const yes, no, not = hakaru.Yes, hakaru.No, hakaru.NotProved
		tests := []struct {
			ask           hakaru.Ask
			found, source string
			holds         hakaru.Held
		}{
			{hakaru.Ask{Kind: "cmdline", Argument: "--workers", Asked: "4"}, "--workers 4", "cmdline of pid ", yes},
			{hakaru.Ask{Kind: "cmdline", Contains: "exit $?", Absent: true}, "", "cmdline of pid ", yes},
			{hakaru.Ask{Kind: "environ", Argument: "POOL", Asked: "8"}, "POOL=8", "environ of pid ", yes},
			{hakaru.Ask{Kind: "maps", Asked: exe}, exe, "maps of pid ", yes},
			{hakaru.Ask{Kind: "maps", Contains: "libjemalloc", Absent: true}, "not mapped", "maps of pid ", yes},
			{hakaru.Ask{Kind: "processes", Asked: "1"}, "1", "processes of the service", yes},
			{hakaru.Ask{Kind: "processes", Asked: "4", Offset: 1}, "1", "(asked for, and 1)", no},
			{hakaru.Ask{Kind: "threads", Asked: "100000"}, "", "threads", no},
			{hakaru.Ask{Kind: "backlog", Asked: "7"}, "7 on 127.0.0.1:", "socket diagnostics", yes},
			{hakaru.Ask{Kind: "http", Argument: "http://{http}/", Field: "pool.size", Asked: "8"}, "8", "GET http://127.0.0.1:", yes},
			{hakaru.Ask{Kind: "http", Argument: "http://127.0.0.1:0/", Asked: "8"}, "GET http://127.0.0.1:0/", "GET", not},
			{hakaru.Ask{Kind: "log", Contains: "fixture json begins"}, "fixture json begins", "output", yes},
			{hakaru.Ask{Kind: "file", Contains: "workers = 4"}, "workers = 4", "app.ini as written", yes},
			{hakaru.Ask{Kind: "file", Argument: "app.ini", Contains: "workers = 5"}, "not there", "app.ini as written", no},
			{hakaru.Ask{Kind: "file", Argument: "other.ini", Contains: "x"}, "no such file", "", not},
			{hakaru.Ask{Kind: "sql", Asked: "8"}, "it is not known where to ask", "", not},
			{hakaru.Ask{Kind: "maps", NotProof: "the file is not read"}, "the file is not read", "", not},
			{hakaru.Ask{Service: "other", Kind: "maps", Asked: "x"}, `no service "other" is up`, "", not},
		}
		var asks []hakaru.Ask
		for _, tt := range tests {
			tt.ask.Setting = "x"
			asks = append(asks, tt.ask)
		}
		proofs := s.Prove(t.Context(), asks, hakaru.UnderLoad)
		for i, tt := range tests {
			p := proofs[i]
			if !strings.Contains(p.Found, tt.found) || !strings.Contains(p.Source, tt.source) || p.Holds != tt.holds || p.Setting != "x" || p.When != hakaru.UnderLoad {
				t.Errorf("%+v:\n%+v\nwant %q from %q, %v", tt.ask, p, tt.found, tt.source, tt.holds)
			}
		}
		down(t, s)
	})
}

// An answer that never comes does not hold up a trial.
func TestProofEnds(t *testing.T) {
	t.Parallel()
	opt := options(t)
	u := fixtureUnit("app", "quiet")
	setenv(&u, "LISTEN", "{http}")
	u.Ready = hakaru.Ready{Log: "begins", Timeout: 20 * time.Second}
	s := mustUp(t, one(u), opt)
	done := make(chan []hakaru.Proof, 1)
	go func() {
		done <- s.Prove(t.Context(), []hakaru.Ask{{Kind: "processes", Asked: "9"}}, hakaru.AtReady)
	}()
	timer := time.NewTimer(10 * proof.Limit)
	defer timer.Stop()
	select {
	case proofs := <-done:
		if len(proofs) != 1 || proofs[0].Holds != hakaru.No {
			t.Errorf("%+v", proofs)
		}
	case <-timer.C:
		t.Error("still proving")
	}
	down(t, s)
}

// What a service runs for its requests is not it: it counts for nothing, and
// nothing that it has is the service's.
func TestProveBesideHelpers(t *testing.T) {
	both(t, func(t *testing.T, opt Options) {
		s := mustUp(t, one(fixtureUnit("app", "helpers")), opt)
		const yes, no, not = hakaru.Yes, hakaru.No, hakaru.NotProved
		tests := []struct {
			ask   hakaru.Ask
			found string
			holds hakaru.Held
		}{
			{hakaru.Ask{Kind: "processes", Asked: "1"}, "1, and 2 of other programs", yes},
			{hakaru.Ask{Kind: "processes", Asked: "3"}, "1, and 2 of other programs; whether those count is not known", not},
			{hakaru.Ask{Kind: "processes", Asked: "9"}, "1, and 2 of other programs", no},
			{hakaru.Ask{Kind: "cmdline", Asked: "600"}, "which is not the program of the service", not},
			{hakaru.Ask{Kind: "cmdline", Contains: "sleep 600", Absent: true}, "which is not the program of the service", not},
			{hakaru.Ask{Kind: "cmdline", Contains: "-test.run"}, "-test.run", yes},
			{hakaru.Ask{Kind: "environ", Argument: "NEITHER", Asked: "1"}, "not set", no},
		}
		var asks []hakaru.Ask
		for _, tt := range tests {
			asks = append(asks, tt.ask)
		}
		for i, p := range s.Prove(t.Context(), asks, hakaru.UnderLoad) {
			if tt := tests[i]; !strings.Contains(p.Found, tt.found) || p.Holds != tt.holds {
				t.Errorf("%+v:\n%+v\nwant %q, %v", tt.ask, p, tt.found, tt.holds)
			}
		}
		down(t, s)
	})
}
