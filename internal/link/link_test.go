package link

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"
)

// pair connects a client to handlers over two in-memory pipes. hangUp closes the
// client's side, cut the agent's.
func pair(t *testing.T, handlers map[string]Handler) (c *Client, hangUp, cut func(), served <-chan error) {
	t.Helper()
	toAgent, fromClient := io.Pipe()
	toClient, fromAgent := io.Pipe()
	c = NewClient(NewPipe(toClient, fromClient))
	done := make(chan error, 1)
	var wg sync.WaitGroup
	wg.Go(c.Receive)
	wg.Go(func() {
		done <- Serve(context.Background(), NewPipe(toAgent, fromAgent), handlers)
		fromAgent.Close()
	})
	t.Cleanup(func() {
		fromClient.Close()
		toAgent.Close()
		wg.Wait()
		goleak.VerifyNone(t)
	})
	return c, func() { fromClient.Close() }, func() { fromAgent.Close(); toAgent.Close() }, done
}

type sum struct{ A, B int }

type failed struct{}

func (failed) Error() string    { return "start app: exit status 1" }
func (failed) LinkError() Error { return Error{Code: "not_started", Hint: "look", Output: "boom"} }

func handlers(blocked chan<- struct{}) map[string]Handler {
	return map[string]Handler{
		"add": Handle(func(_ context.Context, in sum, _ func(any) error) (int, error) { return in.A + in.B, nil }),
		"count": Handle(func(_ context.Context, n int, emit func(any) error) (string, error) {
			for i := range n {
				if err := emit(i); err != nil {
					return "", err
				}
			}
			return "counted", nil
		}),
		"fail": Handle(func(context.Context, struct{}, func(any) error) (int, error) { return 0, failed{} }),
		"block": Handle(func(ctx context.Context, _ struct{}, _ func(any) error) (int, error) {
			blocked <- struct{}{}
			<-ctx.Done()
			return 0, ctx.Err()
		}),
	}
}

func TestCall(t *testing.T) {
	c, _, _, _ := pair(t, handlers(nil))
	var wg sync.WaitGroup
	for i := range 50 {
		wg.Go(func() {
			var got int
			if err := c.Call(t.Context(), "add", sum{i, 1}, &got, nil); err != nil || got != i+1 {
				t.Errorf("add %d+1 = %d, %v", i, got, err)
			}
		})
	}
	wg.Wait()
}

func TestEventsComeInOrderBeforeTheAnswer(t *testing.T) {
	c, _, _, _ := pair(t, handlers(nil))
	var seen []string
	var got string
	err := c.Call(t.Context(), "count", 300, &got, func(raw json.RawMessage) { seen = append(seen, string(raw)) })
	if err != nil || got != "counted" || len(seen) != 300 || seen[299] != "299" {
		t.Fatalf("got %q, %v, %d events", got, err, len(seen))
	}
}

func TestErrorKeepsCodeHintAndOutput(t *testing.T) {
	c, _, _, _ := pair(t, handlers(nil))
	err := c.Call(t.Context(), "fail", struct{}{}, nil, nil)
	var e *Error
	if !errors.As(err, &e) || *e != (Error{Code: "not_started", Message: "start app: exit status 1", Hint: "look", Output: "boom"}) {
		t.Fatalf("got %#v", err)
	}
	if err := c.Call(t.Context(), "dance", nil, nil, nil); err == nil || !strings.Contains(err.Error(), `"dance"`) {
		t.Fatalf("unknown request: %v", err)
	}
}

func TestCancelReachesTheHandler(t *testing.T) {
	blocked := make(chan struct{}, 1)
	c, _, _, _ := pair(t, handlers(blocked))
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-blocked; cancel() }()
	if err := c.Call(ctx, "block", struct{}{}, nil, nil); !errors.Is(err, context.Canceled) {
		t.Fatalf("got %v, want context.Canceled", err)
	}
}

func TestLinkEnds(t *testing.T) {
	t.Run("conductor gone", func(t *testing.T) {
		blocked := make(chan struct{}, 1)
		c, hangUp, _, served := pair(t, handlers(blocked))
		var wg sync.WaitGroup
		wg.Go(func() {
			if err := c.Call(context.Background(), "block", struct{}{}, nil, nil); err == nil {
				t.Error("call over a closed link succeeded")
			}
		})
		<-blocked
		hangUp()
		if err := <-served; err != nil { // returns only when the handler has ended
			t.Fatal(err)
		}
		wg.Wait()
	})
	t.Run("agent gone", func(t *testing.T) {
		blocked := make(chan struct{}, 1)
		c, _, cut, _ := pair(t, handlers(blocked))
		go func() { <-blocked; cut() }()
		if err := c.Call(context.Background(), "block", struct{}{}, nil, nil); !errors.Is(err, ErrLost) {
			t.Fatalf("got %v, want ErrLost", err)
		}
		<-c.Lost()
	})
}

func TestGarbageEndsTheLink(t *testing.T) {
	err := Serve(t.Context(), NewPipe(strings.NewReader("{\"id\":1,\nnonsense\n"), io.Discard), nil)
	if err == nil {
		t.Fatal("garbage was taken for a message")
	}
}
