package load

import (
	"context"
	"hakaru/internal/endpoint"
	"net"
	"sync/atomic"
	"syscall"
	"time"
)

// dialFunc opens one connection.
type dialFunc func(ctx context.Context) (net.Conn, error)

// newDialer connects to a target, within timeout.
//
// A name is looked up until a first connection stands, and that address used
// from then on: a load without keep-alive would otherwise measure the resolver.
// A unix socket whose accept queue is full answers EAGAIN at once where TCP
// would wait; so the attempt is made again, as a blocking connect would wait,
// until the timeout.
func newDialer(to endpoint.Endpoint, timeout time.Duration) dialFunc {
	d := &net.Dialer{KeepAlive: -1} // no probes: a timeout watches every request
	var pinned atomic.Pointer[string]
	return func(ctx context.Context) (net.Conn, error) {
		ctx, cancel := context.WithTimeout(ctx, timeout)
		defer cancel()
		address := to.Address
		if known := pinned.Load(); known != nil {
			address = *known
		}
		for pause := time.Millisecond; ; pause = min(2*pause, 16*time.Millisecond) {
			c, err := d.DialContext(ctx, to.Network, address)
			if err == nil {
				if to.Network == "tcp" && pinned.Load() == nil {
					remote := c.RemoteAddr().String()
					pinned.CompareAndSwap(nil, &remote)
				}
				return c, nil
			}
			if to.Network != "unix" || !isErrno(err, syscall.EAGAIN) {
				return nil, err
			}
			if err := wait(ctx, pause); err != nil {
				return nil, err
			}
		}
	}
}
