package link

import (
	"encoding/json"
	"io"
	"testing"
)

// once is a transport to an agent that sends an event, answers and is gone.
type once struct {
	sent chan Message
	left *[]Message
}

func (o once) Send(m Message) error { o.sent <- m; return nil }

func (o once) Receive() (Message, error) {
	if *o.left == nil {
		m := <-o.sent
		*o.left = []Message{{ID: m.ID, Event: json.RawMessage("1")}, {ID: m.ID, Answer: json.RawMessage("7")}}
	}
	if len(*o.left) == 0 {
		return Message{}, io.EOF
	}
	m := (*o.left)[0]
	*o.left = (*o.left)[1:]
	return m, nil
}

// An answer that has come is not lost by the end of the link right behind it.
func TestAnswerBeforeTheEnd(t *testing.T) {
	for range 50 {
		c := NewClient(once{make(chan Message, 1), new([]Message)})
		received := make(chan struct{})
		go func() { defer close(received); c.Receive() }()
		var got int
		// The event is being handled until all has come, so that the answer and
		// the end are there at once.
		err := c.Call(t.Context(), "add", nil, &got, func(json.RawMessage) { <-c.Lost() })
		<-received
		if err != nil || got != 7 {
			t.Fatalf("%d, %v", got, err)
		}
	}
}
