package proof

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"

	"hakaru"
	"hakaru/internal/endpoint"
)

// statsLines bounds what is read of one answer; memcached has about a hundred.
const statsLines = 2000

// statsValue asks memcached for a setting, and where that is none of "stats
// settings" for a figure of "stats" (memcached, doc/protocol.txt).
func statsValue(ctx context.Context, on Subject, ask hakaru.Ask) Evidence {
	address := on.Names.Expand(ask.Argument)
	source := "stats settings of " + address + ", " + ask.Field
	if ask.Field == "" {
		return never("which key of the answer is not said: write field", source)
	}
	network, addr := endpoint.Address(address)
	at := "tcp://" + addr
	if network == "unix" {
		at = "unix:" + addr
	}
	if err := on.foreign(at); err != nil {
		return unreadable(source, err)
	}
	value, command, err := askStats(ctx, network, addr, ask.Field)
	if err != nil {
		return unreadable(source, err)
	}
	return byServer(value, command+" of "+address+", "+ask.Field, ask)
}

func askStats(ctx context.Context, network, addr, key string) (value, command string, err error) {
	c, err := new(net.Dialer).DialContext(ctx, network, addr)
	if err != nil {
		return "", "", err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	if end, ok := ctx.Deadline(); ok {
		if err := c.SetDeadline(end); err != nil {
			return "", "", err
		}
	}
	r := bufio.NewReader(c)
	for _, command := range []string{"stats settings", "stats"} {
		if _, err := io.WriteString(c, command+"\r\n"); err != nil {
			return "", "", fmt.Errorf("send %q to %s: %w", command, addr, err)
		}
		values, err := readStats(r)
		if err != nil {
			return "", "", fmt.Errorf("%q of %s: %w", command, addr, err)
		}
		if value, ok := values[key]; ok {
			return value, command, nil
		}
	}
	return "", "", fmt.Errorf("neither \"stats settings\" nor \"stats\" of %s has %s", addr, key)
}

// readStats reads lines "STAT name value" until END.
func readStats(from *bufio.Reader) (map[string]string, error) {
	values := map[string]string{}
	for range statsLines {
		line, err := from.ReadSlice('\n')
		if errors.Is(err, bufio.ErrBufferFull) {
			return nil, errors.New("it does not answer as memcached does")
		}
		if err != nil {
			return nil, err
		}
		text := strings.TrimRight(string(line), "\r\n")
		if text == "END" {
			return values, nil
		}
		rest, ok := strings.CutPrefix(text, "STAT ")
		if !ok {
			return nil, fmt.Errorf("it answers %q, not as memcached does", Beginning(text))
		}
		name, value, _ := strings.Cut(rest, " ")
		values[name] = value
	}
	return nil, fmt.Errorf("it answers more than %d lines", statsLines)
}
