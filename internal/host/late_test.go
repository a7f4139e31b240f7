package host

import (
	"context"
	"errors"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"hakaru"
	"hakaru/internal/link"
)

// That the load was late is known at the other end of a link.
func TestLateCrossesTheLink(t *testing.T) {
	spec := hakaru.LoadSpec{HTTP: &hakaru.HTTPRequest{URL: "http://127.0.0.1:9/", Method: "GET", Connections: 1}}
	w := hakaru.Window{Start: time.Now().Add(-time.Minute), Length: time.Second}
	err := loadOverLink(t, spec, w)
	var late *LateError
	if !errors.As(err, &late) {
		t.Errorf("%T %v, want that it is late", err, err)
	}
}

// So is what to do about a load that cannot begin.
func TestAdviceOnTheLoadCrossesTheLink(t *testing.T) {
	spec := hakaru.LoadSpec{HTTP: &hakaru.HTTPRequest{URL: "http://no-such-name.invalid/", Method: "GET", Connections: 1}}
	err := loadOverLink(t, spec, hakaru.Window{Length: time.Second})
	var not *LoadError
	if !errors.As(err, &not) || !strings.Contains(not.Message, "no-such-name.invalid") || !strings.Contains(not.Hint(), "getent") {
		t.Errorf("%T %v, want the name, and what to do", err, err)
	}
}

// loadOverLink is the error of a load that an agent is asked for.
func loadOverLink(t *testing.T, spec hakaru.LoadSpec, w hakaru.Window) error {
	t.Helper()
	toAgent, fromClient := io.Pipe()
	toClient, fromAgent := io.Pipe()
	client := link.NewClient(link.NewPipe(toClient, fromClient))
	var running sync.WaitGroup
	running.Go(client.Receive)
	running.Go(func() {
		if _, err := Serve(context.Background(), link.NewPipe(toAgent, fromAgent), NewLocal(Settings{})); err != nil {
			t.Error(err)
		}
		fromAgent.Close()
	})
	_, err := NewRemote(client).Load(t.Context(), hakaru.Place{}, spec, w, nil)
	fromClient.Close()
	running.Wait()
	return err
}
