package host

import (
	"errors"
	"net"
	"testing"

	"hakaru"
)

// That somebody else's process kept a service from starting is known across the
// link too: the trial is void, and the variant not to blame.
func TestForeignCrossesTheLink(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	b := bundle("fail")
	b.Units[0].Ready = hakaru.Ready{Connect: l.Addr().String()}
	_, err = newServed(t, settings(t)).Up(t.Context(), b)
	var not *NotStarted
	if !errors.As(err, &not) || !not.Foreign || not.Hint == "" {
		t.Errorf("%+v", err)
	}
}
