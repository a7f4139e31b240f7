package refserver

import (
	"errors"
	"net"
	"net/http"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Keep-alive connections stay with the worker that accepted them, so the
// spread of connections is the spread of work for as long as they live. The
// kernel wakes whoever comes first; left alone, one worker can end up with
// twice its share and the law P·T/w with it. So a worker takes a connection
// only when it has fewer than T, or no more than every other.
const (
	recheck = time.Millisecond // how often a worker looks again that left a connection to others
	// A connection that nobody took for so long is taken by any: the one whose
	// turn it is hangs.
	patience = time.Second
)

// connections are the open ones of a worker.
type connections struct {
	board   *scoreboard
	me      *slot
	threads uint64

	accepting sync.Mutex // one decision at a time, where there are several listeners

	mu      sync.Mutex
	open    map[*conn]struct{}
	changed chan struct{} // gets a value when the last one was closed, or one became idle in a draining worker
}

func newConnections(board *scoreboard, me *slot, threads int) *connections {
	return &connections{board: board, me: me, threads: uint64(threads), open: map[*conn]struct{}{}, changed: make(chan struct{}, 1)}
}

// mayAccept is the rule of the even spread, and of never more than processes
// times threads at work.
func (cs *connections) mayAccept() bool {
	if cs.board.heldBack(cs.me, cs.threads) {
		return false
	}
	mine := cs.me.connections.Load()
	if mine < cs.threads {
		return true
	}
	least, other := cs.board.leastConnections(cs.me)
	return !other || mine <= least
}

func (cs *connections) add(c *conn) {
	cs.mu.Lock()
	cs.open[c] = struct{}{}
	cs.me.connections.Store(uint64(len(cs.open)))
	cs.mu.Unlock()
}

func (cs *connections) remove(c *conn) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	delete(cs.open, c)
	cs.me.connections.Store(uint64(len(cs.open)))
	if len(cs.open) == 0 {
		cs.change()
	}
}

func (cs *connections) change() {
	select {
	case cs.changed <- struct{}{}:
	default: // one is on its way
	}
}

func (cs *connections) count() int {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	return len(cs.open)
}

// closeIdle closes the connections on which no request has begun to arrive.
func (cs *connections) closeIdle() {
	cs.mu.Lock()
	var idle []*conn
	for c := range cs.open {
		if s := http.ConnState(c.state.Load()); (s == http.StateIdle || s == http.StateNew) && !c.readable() {
			idle = append(idle, c)
		}
	}
	cs.mu.Unlock()
	for _, c := range idle {
		_ = c.Close() // it is gone either way
	}
}

// conn is a connection that is counted until it is closed.
type conn struct {
	net.Conn
	of    *connections
	state atomic.Int64 // http.ConnState
	once  sync.Once
}

func (c *conn) Close() error {
	err := c.Conn.Close()
	c.once.Do(func() { c.of.remove(c) })
	return err
}

// readable reports whether bytes have come that nobody read yet: a request.
func (c *conn) readable() bool {
	raw, err := c.Conn.(syscall.Conn).SyscallConn()
	if err != nil {
		return false
	}
	waiting := 0
	if err := raw.Control(func(fd uintptr) { waiting, _ = unix.IoctlGetInt(int(fd), unix.TIOCINQ) }); err != nil {
		return false
	}
	return waiting > 0
}

// acceptor is a worker's share in one listener, as net/http takes it.
type acceptor struct {
	file *os.File
	raw  syscall.RawConn
	addr net.Addr
	of   *connections
	done chan struct{}
	once sync.Once
}

func newAcceptor(file *os.File, address string, of *connections) (*acceptor, error) {
	raw, err := file.SyscallConn()
	if err != nil {
		return nil, err
	}
	return &acceptor{file: file, raw: raw, addr: namedAddr(address), of: of, done: make(chan struct{})}, nil
}

// Accept sleeps in the poller until a connection waits; only while one waits
// that is left to others does it look again every millisecond.
func (a *acceptor) Accept() (net.Conn, error) {
	var refused time.Time
	for {
		fd, err := -1, error(nil)
		wait := false
		if poll := a.raw.Read(func(listener uintptr) bool {
			if !pending(int(listener)) {
				refused = time.Time{}
				return false
			}
			a.of.accepting.Lock()
			defer a.of.accepting.Unlock()
			if !a.of.mayAccept() {
				if refused.IsZero() {
					refused = time.Now()
				}
				if time.Since(refused) < patience {
					wait = true
					return true
				}
			}
			fd, _, err = unix.Accept4(int(listener), unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC)
			switch {
			case errors.Is(err, unix.EAGAIN): // another worker was first
				refused = time.Time{}
				return false
			case errors.Is(err, unix.EINTR), errors.Is(err, unix.ECONNABORTED):
				wait = true // the client is gone; look again
			}
			return true
		}); poll != nil {
			return nil, net.ErrClosed
		}
		switch {
		case wait:
			select {
			case <-a.done:
				return nil, net.ErrClosed
			case <-time.After(recheck):
			}
			continue
		case err != nil:
			return nil, err // EMFILE and the like, after which net/http pauses and comes again
		}
		file := os.NewFile(uintptr(fd), "connection")
		inner, err := net.FileConn(file) // a duplicate
		if closed := file.Close(); err == nil {
			err = closed
		}
		if err != nil {
			return nil, err
		}
		c := &conn{Conn: inner, of: a.of}
		a.of.add(c)
		return c, nil
	}
}

func (a *acceptor) Close() error {
	var err error
	a.once.Do(func() {
		close(a.done)
		err = a.file.Close()
	})
	return err
}

func (a *acceptor) Addr() net.Addr { return a.addr }

func pending(fd int) bool {
	p := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
	n, err := unix.Poll(p, 0)
	return err == nil && n == 1
}

// namedAddr is an address that is only ever printed.
type namedAddr string

func (a namedAddr) Network() string { return "hakaru" }
func (a namedAddr) String() string  { return string(a) }
