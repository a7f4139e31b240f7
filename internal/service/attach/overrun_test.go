package attach

import (
	"errors"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"hakaru/internal/service/registry"
	"hakaru/internal/watch/kernel"
)

// overrunning runs a restart that does not return.
func (s server) overrunning(command string) (registry.Command, error) {
	s.t.Helper()
	r := runner{dir: s.dir, env: os.Environ(), limit: 2 * time.Second, service: "app", outputs: s.t.TempDir(), ready: s.ready()}
	var c registry.Command
	err := r.run(s.t.Context(), "restart", []string{"sh", "-c", command}, func(noted *registry.Command) error {
		c = *noted
		return nil
	})
	var failed *Error
	if !errors.As(err, &failed) || !strings.Contains(err.Error(), "it took longer than 2s") {
		s.t.Fatalf("%s: got %v", command, err)
	}
	return c, err
}

// A command that is the service, or waits for it, is not ended when its time is
// over, and nobody waits for it: it is told.
func TestOverrunIsTheService(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, script string }{
		{"the command", "exec $serve"},
		{"below the command", "$serve & wait"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := newServer(t, "serve")
			// Of TERM it takes note and goes on, as uWSGI does.
			s.script("foreground", `kill -9 "$(cat pid)"; rm pid
serve="env FIXTURE=deaf CONF=conf LISTEN=`+s.address+` PIDFILE=pid `+os.Args[0]+`"
`+c.script)
			command, err := s.overrunning("exec ./foreground")
			if !strings.Contains(err.Error(), "restart has not ended") || !strings.Contains(err.Error(), "pid "+strconv.Itoa(s.pid())) {
				t.Errorf("got %v", err)
			}
			for what, pid := range map[string]int{"service": s.pid(), "command": command.PID} {
				if st, err := kernel.ReadStat(pid); err != nil || !st.Alive() || st.Session != command.PID {
					t.Errorf("the %s is %+v, %v; want it alive", what, st, err)
				}
			}
			if got := s.answers(); got != "old" {
				t.Errorf("it answers %q", got)
			}
			if s.read("pid.term") != "" {
				t.Error("hakaru sent it a signal")
			}
		})
	}
}

// Where nobody listens, the service may be among what a restart has started and
// does not listen yet: only the restart itself is ended.
func TestOverrunSparesWhatDoesNotListenYet(t *testing.T) {
	t.Parallel()
	s := newServer(t, "serve")
	command, err := s.overrunning(`kill -9 "$(cat pid)"; sleep 1000 & echo $! > slow; wait`)
	slow, convErr := strconv.Atoi(strings.TrimSpace(s.read("slow")))
	if convErr != nil {
		t.Fatal(convErr)
	}
	defer func() {
		if err := unix.Kill(slow, unix.SIGKILL); err != nil {
			t.Errorf("end pid %d: %v", slow, err)
		}
	}()
	if !strings.Contains(err.Error(), "restart was ended") || !strings.Contains(err.Error(), "left running: pid "+strconv.Itoa(slow)) {
		t.Errorf("got %v", err)
	}
	if st, err := kernel.ReadStat(slow); err != nil || !st.Alive() || st.Session != command.PID {
		t.Errorf("what it had started is %+v, %v; want it alive", st, err)
	}
	if st, err := kernel.ReadStat(command.PID); err == nil && st.Alive() {
		t.Errorf("the command is still there: %+v", st)
	}
}
