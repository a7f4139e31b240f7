package link

import (
	"encoding/json"
	"io"
	"testing"
)

// once is a transport to an agent that answers one request and is gone.
type once struct{ sent chan Message }

func (o once) Send(m Message) error { o.sent <- m; return nil }

func (o once) Receive() (Message, error) {
	m, open := <-o.sent
	if !open {
		return Message{}, io.EOF
	}
	close(o.sent)
	return Message{ID: m.ID, Answer: json.RawMessage("7")}, nil
}

// An answer that has come is not lost by the end of the link right behind it.
func TestAnswerBeforeTheEnd(t *testing.T) {
	for range 500 {
		c := NewClient(once{make(chan Message, 1)})
		received := make(chan struct{})
		go func() { defer close(received); c.Receive() }()
		var got int
		err := c.Call(t.Context(), "add", nil, &got, nil)
		<-received
		if err != nil || got != 7 {
			t.Fatalf("%d, %v", got, err)
		}
	}
}
