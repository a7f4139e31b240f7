package attach

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"time"

	"hakaru"
	"hakaru/internal/service/proof"
)

const (
	probeTimeout = 10 * time.Second // of one question
	// Between two questions: more rarely the longer it takes, so that a slow
	// start is not slowed further.
	firstPause   = 20 * time.Millisecond
	slowestPause = 200 * time.Millisecond
)

// await asks until there is no error, until ctx ends; then it returns the last
// error that says something.
func await(ctx context.Context, ask func() error) error {
	pause := firstPause
	timer := time.NewTimer(pause)
	defer timer.Stop()
	last := errors.New("it was not asked yet")
	for {
		err := ask()
		if err == nil {
			return nil
		}
		if ctx.Err() == nil || !errors.Is(err, ctx.Err()) {
			last = err
		}
		select {
		case <-ctx.Done():
			return last
		case <-timer.C:
			pause = min(slowestPause, pause*5/4)
			timer.Reset(pause)
		}
	}
}

// ask puts every question of the unit once.
func ask(ctx context.Context, u hakaru.Unit) ([]hakaru.Answer, error) {
	var answers []hakaru.Answer
	ready := u.Ready
	if ready.Connect != "" {
		network, address := dialled(ready.Connect)
		d := net.Dialer{Timeout: probeTimeout}
		c, err := d.DialContext(ctx, network, address)
		if err != nil {
			return nil, err
		}
		if err := c.Close(); err != nil {
			return nil, fmt.Errorf("connect to %s: %w", ready.Connect, err)
		}
		answers = append(answers, hakaru.Answer{Service: u.Service, Probe: "connect " + ready.Connect, Got: "accepted"})
	}
	if ready.Get != "" {
		got, err := get(ctx, ready)
		if err != nil {
			return nil, err
		}
		answers = append(answers, hakaru.Answer{Service: u.Service, Probe: "GET " + ready.Get, Got: got})
	}
	if len(answers) == 0 {
		return nil, errors.New("attach does not say how to ask it: write get or connect")
	}
	return answers, nil
}

func get(ctx context.Context, ready hakaru.Ready) (string, error) {
	status, body, err := proof.Get(ctx, ready.Get, probeTimeout)
	if err != nil {
		return "", err
	}
	got := fmt.Sprintf("%d %s", status, http.StatusText(status))
	if start := proof.Beginning(body); start != "" {
		got += ": " + start
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

// dialled takes tcp://host:port, host:port, unix:/path, unix:///path or a path.
func dialled(address string) (network, addr string) {
	if path, ok := strings.CutPrefix(address, "unix:"); ok {
		return "unix", "/" + strings.TrimLeft(path, "/")
	}
	if strings.HasPrefix(address, "/") || strings.HasPrefix(address, "@") {
		return "unix", address
	}
	return "tcp", strings.TrimPrefix(address, "tcp://")
}
