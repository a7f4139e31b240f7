package host

import (
	"bufio"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

func holding(what string) LockAsk {
	return LockAsk{Holder: Holder{PID: os.Getpid(), What: what, Since: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}}
}

// Of two who want the machine the second is told who has it, until that one
// gives it back.
func TestLockNamesItsHolder(t *testing.T) {
	settings := Settings{LockFile: filepath.Join(t.TempDir(), "below", "lock")}
	first, second := NewLocal(settings), NewLocal(settings)
	defer first.Close(t.Context())
	defer second.Close(t.Context())
	if err := first.Lock(t.Context(), holding("run fib")); err != nil {
		t.Fatal(err)
	}
	err := second.Lock(t.Context(), holding("try of fib"))
	var busy *BusyError
	if !errors.As(err, &busy) {
		t.Fatalf("the second got it: %v", err)
	}
	if diff := cmp.Diff(holding("run fib").Holder, busy.Holder); diff != "" {
		t.Error(diff)
	}
	if want := "taken by run fib (pid "; !strings.Contains(err.Error(), want) {
		t.Errorf("no %q in %q", want, err)
	}
	if err := first.Lock(t.Context(), holding("run fib")); err == nil || errors.As(err, &busy) {
		t.Errorf("one agent locked it twice: %v", err)
	}
	first.Close(t.Context())
	// A shorter name leaves nothing of the longer one.
	if err := second.Lock(t.Context(), holding("x")); err != nil {
		t.Errorf("it was given back: %v", err)
	}
	if err := NewLocal(settings).Lock(t.Context(), holding("run")); !errors.As(err, &busy) || busy.Holder.What != "x" {
		t.Errorf("held by x: %v", err)
	}
}

func TestLockWaits(t *testing.T) {
	settings := Settings{LockFile: filepath.Join(t.TempDir(), "lock")}
	synctest.Test(t, func(t *testing.T) {
		first, second, third := NewLocal(settings), NewLocal(settings), NewLocal(settings)
		defer second.Close(context.Background())
		if err := first.Lock(t.Context(), holding("run fib")); err != nil {
			t.Fatal(err)
		}
		wait := holding("run next")
		wait.Wait = true

		impatient, cancel := context.WithCancel(t.Context())
		gaveUp := make(chan error, 1)
		go func() { gaveUp <- third.Lock(impatient, wait) }()
		synctest.Wait()
		cancel()
		if err := <-gaveUp; !errors.Is(err, context.Canceled) {
			t.Errorf("waiting was cancelled: %v", err)
		}

		got := make(chan error, 1)
		go func() { got <- second.Lock(t.Context(), wait) }()
		synctest.Wait()
		select {
		case err := <-got:
			t.Fatalf("it did not wait: %v", err)
		default:
		}
		first.Close(t.Context())
		if err := <-got; err != nil {
			t.Errorf("given back while waiting: %v", err)
		}
	})
}

// However its holder ends, the machine is free then.
func TestLockIsFreeWhenItsHolderIsKilled(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	cmd := exec.Command(os.Args[0])
	cmd.Env = []string{"LOCK=" + path, "HOLD=1"}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	hold, err := cmd.StdinPipe() // it ends with this, should the test end before
	if err != nil {
		t.Fatal(err)
	}
	defer hold.Close()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(stdout).ReadString('\n'); line != "held\n" {
		t.Fatalf("the holder said %q: %v", line, err)
	}
	l := NewLocal(Settings{LockFile: path})
	defer l.Close(t.Context())
	var busy *BusyError
	if err := l.Lock(t.Context(), holding("run")); !errors.As(err, &busy) {
		t.Errorf("it is held: %v", err)
	} else if busy.Holder.PID != 0 || !strings.Contains(err.Error(), "another hakaru") {
		t.Errorf("nobody wrote a name into it: %v", err)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err == nil {
		t.Error("the holder was not killed")
	}
	if err := l.Lock(t.Context(), holding("run")); err != nil {
		t.Errorf("its holder is dead: %v", err)
	}
}
