// Package answer asks a service whether it is ready, once, by what its experiment
// says: a line of its output, an address that accepts a connection, the right
// answer to a GET.
//
// It takes a hakaru.Ready with everything expanded, and who ought to answer; it
// gives what was answered, or what is wrong with it. It does not wait or ask again.
package answer

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"strings"
	"time"

	"hakaru"
	"hakaru/internal/endpoint"
	"hakaru/internal/service/proof"
)

// Limit is how long one question may take.
const Limit = 10 * time.Second

// Who ought to answer.
type Who struct {
	Service string
	// Log reports whether the line waited for was written; nil: what the service
	// writes is not seen, and no line is waited for.
	Log func() bool
	// Ours is the error where somebody else answers at an address or URL; nil:
	// whoever does is the one who is asked.
	Ours func(address string) error
}

// Ask puts every question once. No answer and no error: there is none to put.
func Ask(ctx context.Context, ready hakaru.Ready, who Who) ([]hakaru.Answer, error) {
	var answers []hakaru.Answer
	record := func(probe, got string) {
		answers = append(answers, hakaru.Answer{Service: who.Service, Probe: probe, Got: got})
	}
	if ready.Log != "" && who.Log != nil {
		if !who.Log() {
			return nil, fmt.Errorf("its output does not contain %q", ready.Log)
		}
		record("log", ready.Log)
	}
	if ready.Connect != "" {
		if err := connect(ctx, ready.Connect, who); err != nil {
			return nil, err
		}
		record("connect "+ready.Connect, "accepted")
	}
	if ready.Get != "" {
		got, err := get(ctx, ready, who)
		if err != nil {
			return nil, err
		}
		record("GET "+ready.Get, got)
	}
	return answers, nil
}

// connect checks that the address accepts a connection, and who does.
func connect(ctx context.Context, address string, who Who) error {
	network, addr := endpoint.Address(address)
	d := net.Dialer{Timeout: Limit}
	c, err := d.DialContext(ctx, network, addr)
	if err != nil {
		return err
	}
	if err := c.Close(); err != nil {
		return fmt.Errorf("connect to %s: %w", address, err)
	}
	return who.ours(address)
}

// get asks over HTTP and checks status and body, and who answered.
func get(ctx context.Context, ready hakaru.Ready, who Who) (string, error) {
	status, body, err := proof.Get(ctx, ready.Get, Limit)
	if err != nil {
		return "", err
	}
	got := fmt.Sprintf("%d %s", status, http.StatusText(status))
	if start := proof.Beginning(body); start != "" {
		got += ": " + start
	}
	// Who answers matters more than what: the wrong process may answer rightly.
	if err := who.ours(ready.Get); err != nil {
		return "", err
	}
	switch {
	case ready.Status != 0 && status != ready.Status:
		return "", fmt.Errorf("GET %s answered %s; status %d is wanted", ready.Get, got, ready.Status)
	case ready.Status == 0 && (status < 200 || status > 299):
		return "", fmt.Errorf("GET %s answered %s; a status of 2xx is wanted", ready.Get, got)
	case !strings.Contains(body, ready.Body):
		return "", fmt.Errorf("GET %s answered %s; a body that contains %q is wanted", ready.Get, got, ready.Body)
	}
	return got, nil
}

func (w Who) ours(address string) error {
	if w.Ours == nil {
		return nil
	}
	return w.Ours(address)
}
