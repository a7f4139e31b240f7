package job

import (
	"context"
	"crypto/tls"
	"net"
	"net/netip"
	"syscall"
	"time"
)

// Target is where connections go. Names are looked up before the start and not
// again: a load without keep-alive would otherwise measure the resolver.
type Target struct {
	Network string // "tcp" or "unix"
	Address string // IP:PORT, or the path of a socket
	// Sources are the local addresses to connect from, taken in turn; none: the
	// kernel's choice.
	Sources []netip.Addr
	TLS     *tls.Config // nil: none
	// Dial makes connections in memory: for tests. Nil: by the fields above.
	Dial DialFunc
}

// DialFunc opens one connection.
type DialFunc func(ctx context.Context) (net.Conn, error)

// Dialer gives a function that opens the connections of a net.Conn engine, each
// within timeout, TLS handshake included. It may be called from many goroutines.
//
// A unix socket whose accept queue is full answers EAGAIN at once where TCP
// would wait; so the attempt is made again, as a blocking connect would wait,
// until the timeout.
func (t *Target) Dialer(timeout time.Duration) DialFunc {
	if t.Dial != nil {
		return t.Dial
	}
	d := &net.Dialer{KeepAlive: -1} // no probes: a timeout watches every request
	return func(ctx context.Context) (net.Conn, error) {
		ctx, cancel := context.WithTimeout(ctx, timeout)
		defer cancel()
		for pause := time.Millisecond; ; pause = min(2*pause, 16*time.Millisecond) {
			c, err := d.DialContext(ctx, t.Network, t.Address)
			if err == nil {
				return c, nil
			}
			if t.Network != "unix" || !isErrno(err, syscall.EAGAIN) {
				return nil, err
			}
			if err := Wait(ctx, pause); err != nil {
				return nil, err
			}
		}
	}
}

// Wait returns after d, or with ctx's cause when ctx ends before.
func Wait(ctx context.Context, d time.Duration) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if d <= 0 {
		return nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
