package refserver

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"hakaru/internal/refserver/config"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"
)

// patient bounds what is waited for; no test measures it.
const patient = 20 * time.Second

// server is a master in this process with real workers.
type server struct {
	t       *testing.T
	address string
	signals chan os.Signal
	stderr  *text
	done    chan struct{}
	err     error // after done
}

// text is a writer that can be read meanwhile, and waited on.
type text struct {
	mu   sync.Mutex
	b    bytes.Buffer
	more chan struct{} // closed with the next write
}

func (w *text) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.more != nil {
		close(w.more)
		w.more = nil
	}
	return w.b.Write(p)
}

func (w *text) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.b.String()
}

// await returns when the text holds all of these.
func (w *text) await(t *testing.T, all ...string) {
	t.Helper()
	limit := time.After(patient)
	for {
		w.mu.Lock()
		if w.more == nil {
			w.more = make(chan struct{})
		}
		more, now := w.more, w.b.String()
		w.mu.Unlock()
		missing := ""
		for _, s := range all {
			if !strings.Contains(now, s) {
				missing = s
			}
		}
		if missing == "" {
			return
		}
		select {
		case <-more:
		case <-limit:
			t.Fatalf("no %q in:\n%s", missing, now)
		}
	}
}

func start(t *testing.T, cfg config.Config, change func(*Options)) *server {
	t.Helper()
	if cfg.Listen == "" {
		cfg.Listen = "127.0.0.1:0"
	}
	if cfg.Grace == 0 {
		cfg.Grace = 5 * time.Second
	}
	s := &server{t: t, signals: make(chan os.Signal, 16), stderr: &text{}, done: make(chan struct{})}
	ready := make(chan string, 1)
	opts := Options{
		Args: []string{"refserver-worker"}, Env: workerEnv(os.Environ(), "worker"), Stderr: s.stderr, Signals: s.signals,
		Ready: func(addresses []string) { ready <- addresses[0] },
	}
	if change != nil {
		change(&opts)
	}
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		defer close(s.done)
		s.err = Run(ctx, cfg, opts)
	}()
	t.Cleanup(func() {
		cancel()
		<-s.done
		if t.Failed() {
			t.Logf("the server said:\n%s", s.stderr)
		}
	})
	select {
	case s.address = <-ready:
	case <-s.done:
		t.Fatalf("the server ended: %v\n%s", s.err, s.stderr)
	case <-time.After(patient):
		t.Fatalf("not ready:\n%s", s.stderr)
	}
	return s
}

// stop ends it with SIGTERM and gives what Run returned.
func (s *server) stop() error {
	s.t.Helper()
	s.signals <- syscall.SIGTERM
	return s.wait()
}

func (s *server) wait() error {
	s.t.Helper()
	select {
	case <-s.done:
	case <-time.After(patient):
		s.t.Fatalf("it does not end:\n%s", s.stderr)
	}
	return s.err
}

// client is one keep-alive connection. Unlike net/http's it never sends a
// request twice, so a lost one shows.
type client struct {
	conn net.Conn
	in   *bufio.Reader
	last bool // the server said that it closes
}

func dial(address string) (*client, error) {
	network := "tcp"
	if path, ok := strings.CutPrefix(address, "unix:"); ok {
		network, address = "unix", path
	}
	conn, err := net.DialTimeout(network, address, patient)
	if err != nil {
		return nil, err
	}
	return &client{conn: conn, in: bufio.NewReader(conn)}, nil
}

func (c *client) send(path string) error {
	_, err := fmt.Fprintf(c.conn, "GET %s HTTP/1.1\r\nHost: hakaru\r\n\r\n", path)
	return err
}

func (c *client) receive() (int, string, error) {
	if err := c.conn.SetReadDeadline(time.Now().Add(patient)); err != nil {
		return 0, "", err
	}
	r, err := http.ReadResponse(c.in, nil)
	if err != nil {
		return 0, "", err
	}
	defer r.Body.Close()
	body, err := io.ReadAll(r.Body)
	c.last = r.Close
	return r.StatusCode, string(body), err
}

func (c *client) get(path string) (int, string, error) {
	if err := c.send(path); err != nil {
		return 0, "", err
	}
	return c.receive()
}

func (s *server) client() *client {
	s.t.Helper()
	c, err := dial(s.address)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { c.conn.Close() })
	return c
}

// get is one request on its own connection.
func get(t *testing.T, address, path string) (int, string) {
	t.Helper()
	c, err := dial(address)
	if err != nil {
		t.Fatal(err)
	}
	defer c.conn.Close()
	status, body, err := c.get(path)
	if err != nil {
		t.Fatalf("GET %s: %v", path, err)
	}
	return status, body
}

func status(t *testing.T, address string) Status {
	t.Helper()
	code, body := get(t, address, statusPath)
	var s Status
	d := json.NewDecoder(strings.NewReader(body))
	d.DisallowUnknownFields()
	if err := d.Decode(&s); err != nil || code != http.StatusOK {
		t.Fatalf("status %d: %v in %s", code, err, body)
	}
	return s
}

// awaitStatus asks until it is as wished for.
func awaitStatus(t *testing.T, address, what string, as func(Status) bool) Status {
	t.Helper()
	for end := time.Now().Add(patient); ; {
		s := status(t, address)
		if as(s) {
			return s
		}
		if time.Now().After(end) {
			t.Fatalf("never %s: %+v", what, s)
		}
	}
}

// load is a closed loop on keep-alive connections.
type load struct {
	address     string
	path        string
	connections int
	want        int // status; every other is an error
}

// until runs the load until ctx ends and counts the right answers. A connection
// is replaced only when the server said that it closes it.
func (l load) until(ctx context.Context) (answers int, err error) {
	counts := make([]int, l.connections)
	g := errgroup.Group{}
	for i := range l.connections {
		g.Go(func() error {
			var c *client
			defer func() {
				if c != nil {
					c.conn.Close()
				}
			}()
			for ctx.Err() == nil {
				if c == nil {
					var err error
					if c, err = dial(l.address); err != nil {
						return fmt.Errorf("connect: %w", err)
					}
				}
				status, body, err := c.get(l.path)
				if err != nil {
					return fmt.Errorf("answer %d of connection %d: %w", counts[i], i, err)
				}
				if status != l.want {
					return fmt.Errorf("answer %d of connection %d: status %d: %s", counts[i], i, status, body)
				}
				counts[i]++
				if c.last {
					err := c.conn.Close()
					if c = nil; err != nil {
						return err
					}
				}
			}
			return nil
		})
	}
	err = g.Wait()
	for _, n := range counts {
		answers += n
	}
	return answers, err
}

func (l load) during(d time.Duration) (int, error) {
	ctx, cancel := context.WithTimeout(context.Background(), d)
	defer cancel()
	return l.until(ctx)
}

// awaitEnd returns when a process that is no child of this one has ended.
func awaitEnd(t *testing.T, pid int) {
	t.Helper()
	fd, err := unix.PidfdOpen(pid, 0)
	if errors.Is(err, unix.ESRCH) {
		return
	}
	if err != nil {
		t.Fatalf("watch pid %d: %v", pid, err)
	}
	defer unix.Close(fd)
	for end := time.Now().Add(patient); ; {
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, int(time.Until(end)/time.Millisecond))
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil:
			t.Fatalf("watch pid %d: %v", pid, err)
		case n == 0:
			t.Fatalf("pid %d does not end", pid)
		default:
			return
		}
	}
}
