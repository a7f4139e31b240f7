package proof

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"hakaru"
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
	if to, err := endpoint.Plain(address); err == nil {
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

func httpAnswer(ctx context.Context, on Subject, ask hakaru.Ask) Evidence {
	address := on.Names.Expand(ask.Argument)
	source := "GET " + address
	network, addr, raw := unasked(address)
	if raw {
		source = "what " + address + " sends"
	}
	if err := on.foreign(listening(address)); err != nil {
		return unreadable(source, err)
	}
	body := ""
	if raw {
		var err error
		if body, err = readAll(ctx, network, addr); err != nil {
			return unreadable(source, err)
		}
	} else {
		status, text, err := Get(ctx, address, Limit)
		if err != nil {
			return unreadable(source, err)
		}
		if status < 200 || status > 299 {
			return told(fmt.Sprintf("status %d: %s", status, Beginning(text)), source, hakaru.NotProved)
		}
		body = text
	}
	if ask.Field != "" {
		source += ", " + ask.Field
	}
	found, holds := matchHTTP(body, ask)
	return told(found, source, holds)
}

// listening is the address that a URL leads to, tcp://host:port or unix:/path;
// the text itself where it is none.
func listening(address string) string {
	to, err := endpoint.Plain(address)
	if err != nil {
		return address
	}
	if to.Network == "unix" {
		return "unix:" + to.Address
	}
	return "tcp://" + to.Address
}

// unasked tells the addresses without a path, tcp://host:port and unix:/path,
// from URLs: what listens there speaks first, as uWSGI's stats server does, and
// no HTTP.
func unasked(address string) (network, addr string, ok bool) {
	if rest, is := strings.CutPrefix(address, "tcp://"); is && !strings.Contains(rest, "/") {
		return "tcp", rest, true
	}
	rest, is := strings.CutPrefix(address, "unix:")
	if !is || strings.Contains(rest, ":/") || strings.Contains(rest, ".sock/") || strings.Contains(rest, ".socket/") {
		return "", "", false
	}
	return "unix", "/" + strings.TrimLeft(rest, "/"), true
}

// readAll reads what a peer sends of itself, until it closes or a whole JSON
// value is there.
func readAll(ctx context.Context, network, addr string) (body string, err error) {
	c, err := new(net.Dialer).DialContext(ctx, network, addr)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	if end, set := ctx.Deadline(); set {
		if err := c.SetReadDeadline(end); err != nil {
			return "", err
		}
	}
	var read []byte
	buf := make([]byte, 16<<10)
	for len(read) < answerSize {
		n, err := c.Read(buf)
		read = append(read, buf[:n]...)
		switch {
		case errors.Is(err, io.EOF):
			return string(read), nil
		case err != nil && len(read) == 0:
			return "", fmt.Errorf("%w: nothing was sent; if HTTP is spoken there, write the path too", err)
		case err != nil:
			return "", fmt.Errorf("read from %s: %w", addr, err)
		}
		if first := read[0]; (first == '{' || first == '[') && json.Valid(read) {
			return string(read), nil
		}
	}
	return "", fmt.Errorf("%s sends more than %d bytes", addr, answerSize)
}
