package job

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/netip"
	"runtime"
	"sync/atomic"
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

	turn atomic.Uint64 // of Sources, for Dialer
}

// NameError says that a name stands for no address: nothing can be connected to,
// which is known before the start.
type NameError struct {
	Name   string
	Family int // 4 or 6 where only such an address was looked for
	Err    error
}

func (e *NameError) Error() string {
	what := "an address"
	if e.Family != 0 {
		what = fmt.Sprintf("an IPv%d address", e.Family)
	}
	return fmt.Sprintf("look up %s of %s: %v", what, e.Name, e.Err)
}

func (e *NameError) Unwrap() error { return e.Err }

// Hint says what to do about it.
func (e *NameError) Hint() string {
	return "ask this machine with: getent ahosts " + e.Name + "; or say which HOST:PORT to connect to (connect-to)"
}

// TargetError is what is wrong with where to connect, or with what from, which is
// known before the start.
type TargetError struct {
	Err  error
	Help string
}

func (e *TargetError) Error() string { return e.Err.Error() }
func (e *TargetError) Unwrap() error { return e.Err }

// Hint says what to do about it.
func (e *TargetError) Hint() string { return e.Help }

// DialFunc opens one connection.
type DialFunc func(ctx context.Context) (net.Conn, error)

// Dialer gives a function that opens the connections of a net.Conn engine, each
// within timeout, TLS handshake included. It may be called from many goroutines.
func (t *Target) Dialer(timeout time.Duration) DialFunc {
	if t.Dial != nil {
		return t.Dial
	}
	return func(ctx context.Context) (net.Conn, error) {
		ctx, cancel := context.WithTimeout(ctx, timeout)
		defer cancel()
		c, err := t.connect(ctx)
		if err != nil || t.TLS == nil {
			return c, err
		}
		secure := tls.Client(c, t.TLS)
		if err := secure.HandshakeContext(ctx); err != nil {
			c.Close()
			return nil, &HandshakeError{err}
		}
		return &secured{secure}, nil
	}
}

// connect opens a connection below TLS.
//
// A unix socket whose accept queue is full answers EAGAIN at once where TCP
// would wait; so the attempt is made again, as a blocking connect would wait,
// until ctx ends.
func (t *Target) connect(ctx context.Context) (net.Conn, error) {
	d := net.Dialer{KeepAlive: -1} // no probes: a timeout watches every request
	if n := uint64(len(t.Sources)); n > 0 {
		from := t.Sources[(t.turn.Add(1)-1)%n]
		d.LocalAddr = net.TCPAddrFromAddrPort(netip.AddrPortFrom(from, 0))
		d.Control = portAtConnect
	}
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

// portAtConnect has the kernel choose the port of a bound socket at the connect,
// when the other end is known: a range of ports to each service, not one in all.
// Where it cannot be had (Linux before 4.2) there are fewer ports.
func portAtConnect(_, _ string, c syscall.RawConn) error {
	const bindAddressNoPort = 24 // IP_BIND_ADDRESS_NO_PORT, which package syscall lacks
	if runtime.GOOS != "linux" {
		return nil
	}
	return c.Control(func(fd uintptr) {
		syscall.SetsockoptInt(int(fd), syscall.IPPROTO_IP, bindAddressNoPort, 1)
	})
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
