package host

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"hakaru"
	"hakaru/internal/link"
	"hakaru/internal/service/registry"
)

// serve is what this binary does as a service: it says so, and answers a SIGTERM.
func serve() {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM)
	os.Stdout.WriteString("serving with level " + os.Getenv("LEVEL") + "\n")
	<-signals
	os.Stdout.WriteString("good bye\n")
}

// served is a Local served over two pipes in memory, and the Remote for it.
type served struct {
	*Remote
	hangUp func() // as a conductor that is gone
	ended  <-chan []hakaru.Warning
}

func newServed(t *testing.T, s Settings) served {
	t.Helper()
	toAgent, fromClient := io.Pipe()
	toClient, fromAgent := io.Pipe()
	client := link.NewClient(link.NewPipe(toClient, fromClient))
	ended := make(chan []hakaru.Warning, 1)
	var wg sync.WaitGroup
	wg.Go(client.Receive)
	wg.Go(func() {
		warnings, err := Serve(context.Background(), link.NewPipe(toAgent, fromAgent), NewLocal(s))
		if err != nil {
			t.Errorf("serve: %v", err)
		}
		ended <- warnings
		fromAgent.Close()
	})
	t.Cleanup(func() {
		fromClient.Close()
		toAgent.Close()
		wg.Wait()
		goleak.VerifyNone(t)
	})
	return served{NewRemote(client), func() { fromClient.Close() }, ended}
}

func settings(t *testing.T) Settings {
	dir := t.TempDir()
	return Settings{
		StateDir: filepath.Join(dir, "state"), LockFile: filepath.Join(dir, "lock"), Exe: os.Args[0],
		Environ: append(os.Environ(), "TMPDIR="+dir), Version: "v1",
	}
}

func bundle(mode string) hakaru.Bundle {
	return hakaru.Bundle{
		Run: "k3f9a", Trial: hakaru.Trial{Variant: "two", Seq: 1, Block: 1, Attempt: 1},
		Units: []hakaru.Unit{{
			Service: "app", Kind: "command", Argv: []string{"{hakaru.exe}"}, Dir: "/",
			Env:   []hakaru.EnvVar{value("SERVICE", mode), value("LEVEL", "3")},
			Ready: hakaru.Ready{Log: "serving", Timeout: 20 * time.Second},
			Stop:  hakaru.Stop{Grace: 10 * time.Second},
		}},
	}
}

func value(name, v string) hakaru.EnvVar { return hakaru.EnvVar{Name: name, Value: &v} }

func alive(pid int) bool { return syscall.Kill(pid, 0) == nil }

// A place over the link: what goes in and what comes back, to its end.
func TestRemotePlace(t *testing.T) {
	s := newServed(t, settings(t))
	hello, err := s.Hello(t.Context(), HelloAsk{Sweep: true})
	if err != nil || hello.Environment.Hakaru != "v1" || hello.Environment.CPUs < 1 || len(hello.Swept) != 0 {
		t.Errorf("hello %+v: %v", hello, err)
	}
	place, err := s.Up(t.Context(), bundle("serve"))
	if err != nil {
		t.Fatal(err)
	}
	if len(place.Units) != 1 || !alive(place.Units[0].PID) || place.Took <= 0 || place.Answers[0].Probe != "log" {
		t.Errorf("%+v", place)
	}
	level := "3"
	proofs, err := s.Prove(t.Context(), place, []hakaru.Ask{{Service: "app", Setting: "level", Asked: level, Kind: "environ", Argument: "LEVEL", Equals: level}}, hakaru.AtReady)
	if err != nil || len(proofs) != 1 || proofs[0].When != hakaru.AtReady || proofs[0].Setting != "level" {
		t.Errorf("proofs %+v: %v", proofs, err)
	}

	begun := 0
	watched, err := s.Watch(t.Context(), place, hakaru.Window{Start: time.Now(), Length: hakaru.BucketWidth}, func() { begun++ })
	if err != nil || begun != 1 || len(watched.Buckets) != 1 || len(watched.Ended) != 0 {
		t.Errorf("watched %+v, begun %d: %v", watched, begun, err)
	}
	outputs, err := s.Output(t.Context(), place)
	if err != nil || len(outputs) != 1 || outputs[0].Text != "serving with level 3\n" {
		t.Errorf("output %+v: %v", outputs, err)
	}
	left, err := s.Down(t.Context(), place)
	if err != nil || len(left.Warnings) != 0 || left.Exits[0].State != "exit status 0" {
		t.Errorf("left %+v: %v", left, err)
	}
	if want := "serving with level 3\ngood bye\n"; left.Outputs[0].Text != want {
		t.Errorf("output %q, want %q", left.Outputs[0].Text, want)
	}
	if alive(place.Units[0].PID) {
		t.Error("it is still there")
	}
	if _, err := s.Down(t.Context(), place); err == nil || !strings.Contains(err.Error(), "is not up on this host") {
		t.Errorf("taken down twice: %v", err)
	}
}

// When its conductor is gone, an agent takes down what it had up and gives the
// machine back.
func TestHangUp(t *testing.T) {
	set := settings(t)
	s := newServed(t, set)
	if err := s.Lock(t.Context(), holding("run fib")); err != nil {
		t.Fatal(err)
	}
	place, err := s.Up(t.Context(), bundle("serve"))
	if err != nil {
		t.Fatal(err)
	}
	s.hangUp()
	if warnings := <-s.ended; len(warnings) != 0 {
		t.Errorf("%v", warnings)
	}
	if alive(place.Units[0].PID) {
		t.Error("the service is still there")
	}
	if _, err := s.Output(t.Context(), place); !errors.Is(err, link.ErrLost) {
		t.Errorf("over a closed link: %v", err)
	}
	l := NewLocal(set)
	defer l.Close(t.Context())
	if err := l.Lock(t.Context(), holding("run next")); err != nil {
		t.Errorf("the machine was not given back: %v", err)
	}
}

// Errors with a meaning keep it across the link.
func TestErrorsCrossTheLink(t *testing.T) {
	set := settings(t)
	s := newServed(t, set)

	_, err := s.Up(t.Context(), bundle("fail"))
	var not *NotStarted
	if !errors.As(err, &not) {
		t.Fatalf("not a NotStarted: %#v", err)
	}
	if !strings.HasPrefix(not.Message, "start service app: ") || !strings.Contains(not.Message, "exit status 3") ||
		!strings.Contains(not.Output, "no such table") {
		t.Errorf("%+v", not)
	}

	first := NewLocal(set)
	defer first.Close(t.Context())
	if err := first.Lock(t.Context(), holding("run fib")); err != nil {
		t.Fatal(err)
	}
	err = s.Lock(t.Context(), holding("run next"))
	var busy *BusyError
	if !errors.As(err, &busy) {
		t.Fatalf("not a BusyError: %#v", err)
	}
	if diff := cmp.Diff(holding("run fib").Holder, busy.Holder); diff != "" {
		t.Error(diff)
	}

	_, err = s.Load(t.Context(), hakaru.Place{}, hakaru.LoadSpec{}, hakaru.Window{}, nil)
	if err == nil || errors.As(err, &not) || errors.As(err, &busy) || !strings.Contains(err.Error(), "this load is not one") {
		t.Errorf("an error without a meaning: %v", err)
	}
}

// What could not be swept does not hide what was.
func TestNotSwept(t *testing.T) {
	set := settings(t)
	files, err := registry.Open(set.StateDir)
	if err != nil {
		t.Fatal(err)
	}
	id, err := registry.NewID()
	if err != nil {
		t.Fatal(err)
	}
	// Of a service that is as it was and needs no undo: it answers.
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	rec := registry.Record{
		Format: registry.Format, ID: id, Boot: "another", Dir: filepath.Join(filepath.Dir(set.StateDir), "hakaru-"+id),
		Units: []registry.Unit{{Service: "db", Undo: &registry.Undo{
			Words: []string{"true"}, Timeout: 10 * time.Second, Ready: hakaru.Ready{Connect: l.Addr().String()},
		}}},
	}
	if err := files.Write(rec, true); err != nil {
		t.Fatal(err)
	}
	bad := files.Path("0000000000000000")
	if err := os.WriteFile(bad, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	s := newServed(t, set)
	hello, err := s.Hello(t.Context(), HelloAsk{Sweep: true})
	var not *NotSwept
	if !errors.As(err, &not) || !strings.Contains(err.Error(), bad) {
		t.Errorf("%#v", err)
	}
	if len(hello.Swept) != 1 || hello.Swept[0].Code != "put_back" || !strings.Contains(hello.Swept[0].Message, "service db") {
		t.Errorf("swept %+v", hello.Swept)
	}
}

// A start that is given up is ended by the agent before the call returns.
func TestCancelledUp(t *testing.T) {
	s := newServed(t, settings(t))
	why := errors.New("interrupted")
	ctx, cancel := context.WithCancelCause(t.Context())
	b := bundle("serve")
	b.Units[0].Ready = hakaru.Ready{Log: "this is never said"}
	done := make(chan error, 1)
	go func() {
		_, err := s.Up(ctx, b)
		done <- err
	}()
	cancel(why)
	if err := <-done; !errors.Is(err, why) {
		t.Errorf("%v", err)
	}
	hello, err := s.Hello(t.Context(), HelloAsk{Sweep: true})
	if err != nil || len(hello.Swept) != 0 {
		t.Errorf("something was left: %+v, %v", hello.Swept, err)
	}
}
