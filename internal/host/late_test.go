package host

import (
	"context"
	"errors"
	"io"
	"sync"
	"testing"
	"time"

	"hakaru"
	"hakaru/internal/link"
)

// That the load was late is known at the other end of a link.
func TestLateCrossesTheLink(t *testing.T) {
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
	spec := hakaru.LoadSpec{HTTP: &hakaru.HTTPRequest{URL: "http://127.0.0.1:9/", Method: "GET", Connections: 1}}
	w := hakaru.Window{Start: time.Now().Add(-time.Minute), Length: time.Second}
	_, err := NewRemote(client).Load(t.Context(), hakaru.Place{}, spec, w, nil)
	var late *LateError
	if !errors.As(err, &late) {
		t.Errorf("%T %v, want that it is late", err, err)
	}
	fromClient.Close()
	running.Wait()
}
