package proof

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"hakaru/internal/endpoint"
)

const (
	answerSize = 1 << 20 // what is read of one
	// Shown is how much of an answer, or of other text, is shown.
	Shown = 200
)

// Get is one GET over a connection of its own, without proxy or redirects.
func Get(ctx context.Context, address string, limit time.Duration) (status int, body string, err error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	transport := &http.Transport{DisableKeepAlives: true}
	asked := address
	var user *url.Userinfo
	if to, err := endpoint.Parse(address); err == nil {
		transport.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, to.Network, to.Address)
		}
		asked, user = "http://"+to.Host+to.URI, to.User
	} // else TLS, or a mistake that the client names
	defer transport.CloseIdleConnections()
	client := http.Client{
		Transport:     transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, asked, nil)
	if err != nil {
		return 0, "", fmt.Errorf("GET %s: %w", address, err)
	}
	if user != nil {
		password, _ := user.Password()
		request.SetBasicAuth(user.Username(), password)
	}
	response, err := client.Do(request)
	if err != nil {
		var wrapped *url.Error
		if errors.As(err, &wrapped) {
			err = wrapped.Err
		}
		return 0, "", fmt.Errorf("GET %s: %w", address, err)
	}
	b, err := io.ReadAll(io.LimitReader(response.Body, answerSize))
	err = errors.Join(err, response.Body.Close())
	if err != nil {
		return response.StatusCode, string(b), fmt.Errorf("GET %s: read the body: %w", address, err)
	}
	return response.StatusCode, string(b), nil
}

// Beginning is what is shown of an answer: its start, on one line.
func Beginning(body string) string {
	text := strings.Join(strings.Fields(body), " ")
	if len(text) > Shown {
		text = text[:Shown] + "…"
	}
	return strings.ToValidUTF8(text, "\uFFFD")
}
