package refserver

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	stdlog "log"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"hakaru/internal/refserver/config"

	"golang.org/x/sys/unix"
)

// A worker finds these open when it starts; the listeners follow, then the log.
const (
	controlFD = 3
	boardFD   = 4
	firstFD   = 5
)

// setup is the first line the master writes to a worker.
type setup struct {
	Config     config.Config `json:"config"`
	Master     int           `json:"master"`
	Slot       int           `json:"slot"`
	Generation int           `json:"generation"`
	Serial     uint64        `json:"serial"` // of the worker, seeds its jitter
	Listen     []string      `json:"listen"`
	Log        bool          `json:"log"`  // a descriptor for the log follows the listeners
	Name       string        `json:"name"` // of the process, as ps shows it
}

// Words between master and worker, a line each. The link also tells each of
// them that the other has ended.
const (
	sayReady   = "ready"   // worker: accepting
	sayReplace = "replace" // worker: a limit is reached, start another
	sayError   = "error "  // worker: why it ends
	sayNote    = "note "   // worker: to be told to the person
	sayDrain   = "drain"   // master: no more connections; finish the open ones, idle ones too
	sayStop    = "stop"    // master: as drain, but idle connections are closed
)

// WorkerOptions is what a worker takes from its surroundings.
type WorkerOptions struct {
	Stderr io.Writer
	// Signals are those the process gets. SIGTERM to a single worker asks for
	// its replacement; the others are the master's business, and are delivered
	// here only because a terminal sends them to the whole group.
	Signals <-chan os.Signal
}

type worker struct {
	setup       setup
	board       *scoreboard
	me          *slot
	connections *connections
	handler     *handler
	draining    atomic.Bool
	acceptors   []*acceptor
	control     *os.File
}

// RunWorker is the life of one worker process, which the master starts with
// Options.Args. It returns when it was told to stop or drain and has, and with
// an error when the master is gone or it can not go on; the process must then
// end.
func RunWorker(ctx context.Context, opts WorkerOptions) error {
	if _, err := unix.GetsockoptInt(controlFD, unix.SOL_SOCKET, unix.SO_TYPE); err != nil {
		return errors.New("this is a worker of hakaru serve, which only its master can start")
	}
	if err := unix.SetNonblock(controlFD, true); err != nil {
		return fmt.Errorf("take the link to the master: %w", err)
	}
	control := os.NewFile(controlFD, "master")
	defer control.Close()
	// The rest of what was inherited is not for children of this process.
	unix.CloseOnExec(controlFD)
	unix.CloseOnExec(boardFD)
	err := serve(ctx, control, opts)
	if err != nil {
		// If the master is gone this errs too, and there is nobody to tell.
		_, _ = fmt.Fprintf(control, "%s%s\n", sayError, strings.ReplaceAll(err.Error(), "\n", "; "))
	}
	return err
}

func serve(ctx context.Context, control *os.File, opts WorkerOptions) error {
	lines := bufio.NewReader(control)
	first, err := lines.ReadBytes('\n')
	if err != nil {
		return fmt.Errorf("read the master's settings: %w", err)
	}
	w := &worker{control: control}
	if err := json.Unmarshal(first, &w.setup); err != nil {
		return fmt.Errorf("read the master's settings: %w", err)
	}
	cfg := &w.setup.Config
	runtime.GOMAXPROCS(cfg.Threads)
	// It was started as /proc/self/exe and would be called "exe". Only the name
	// in ps hangs on it.
	_ = os.WriteFile("/proc/self/comm", []byte(w.setup.Name), 0)
	if w.board, err = openScoreboard(os.NewFile(boardFD, "scoreboard")); err != nil {
		return err
	}
	if w.setup.Slot < 0 || w.setup.Slot >= len(w.board.all) {
		return fmt.Errorf("read the master's settings: there is no slot %d", w.setup.Slot)
	}
	w.me = &w.board.all[w.setup.Slot]
	w.connections = newConnections(w.board, w.me, cfg.Threads)
	for i, address := range w.setup.Listen {
		unix.CloseOnExec(firstFD + i)
		a, err := newAcceptor(os.NewFile(uintptr(firstFD+i), address), address, w.connections)
		if err != nil {
			return fmt.Errorf("take the listener %s: %w", address, err)
		}
		w.acceptors = append(w.acceptors, a)
	}
	w.handler = &handler{
		cfg: cfg, board: w.board, me: w.me, draining: &w.draining, threads: make(chan *thread, cfg.Threads),
		full: make(chan struct{}), status: w.status,
	}
	for range cfg.Threads {
		t, err := newThread(*cfg)
		if err != nil {
			return err
		}
		w.handler.threads <- t
	}
	switch {
	case cfg.Log == config.LogOn:
		w.handler.log = opts.Stderr
	case w.setup.Log:
		fd := firstFD + len(w.setup.Listen)
		unix.CloseOnExec(fd)
		w.handler.log = os.NewFile(uintptr(fd), cfg.Log)
	}
	// Each worker has limits of its own, so that they are not all replaced at
	// once; the seed makes them the same in every run. Never longer than asked.
	random := rand.New(rand.NewPCG(w.setup.Serial, 0x68616b617275))
	shorten := func(limit float64) float64 { return limit * (1 - cfg.Jitter*random.Float64()) }
	if cfg.MaxRequests > 0 {
		w.handler.limit = max(1, uint64(shorten(float64(cfg.MaxRequests))))
	}
	var lifetime <-chan time.Time
	if cfg.MaxLifetime > 0 {
		t := time.NewTimer(max(1, time.Duration(shorten(float64(cfg.MaxLifetime)))))
		defer t.Stop()
		lifetime = t.C
	}
	server := &http.Server{
		Handler:           w.handler,
		ReadHeaderTimeout: time.Minute,
		ErrorLog:          stdlog.New(opts.Stderr, "hakaru serve: worker: ", 0),
		ConnState: func(c net.Conn, s http.ConnState) {
			if c, ok := c.(*conn); ok {
				c.state.Store(int64(s))
				// It was answered before the draining began and so was not told
				// that it ends. Draining is set before the idle ones are looked
				// for, the state before draining is: one of the two sees it.
				if s == http.StateIdle && w.draining.Load() {
					w.connections.change()
				}
			}
		},
	}
	return w.run(ctx, server, lines, lifetime, opts.Signals)
}

// run serves until it is over. All goroutines it starts but those of open
// connections have ended when it returns.
func (w *worker) run(ctx context.Context, server *http.Server, lines *bufio.Reader, lifetime <-chan time.Time, signals <-chan os.Signal) (err error) {
	var wg sync.WaitGroup
	defer wg.Wait()
	defer func() { err = errors.Join(err, server.Close()) }()
	ended := make(chan error, len(w.acceptors))
	for _, a := range w.acceptors {
		wg.Go(func() { ended <- server.Serve(a) })
	}
	words := make(chan string)
	done := make(chan struct{})
	defer close(done)
	// The reader ends with the link: at the latest when this process says its
	// last word and closes it, so it is not waited for.
	go func() {
		defer close(words)
		for {
			word, err := lines.ReadString('\n')
			if err != nil {
				return
			}
			select {
			case words <- strings.TrimSpace(word):
			case <-done:
				return
			}
		}
	}()
	w.me.state.Store(stateLive)
	if err := w.say(sayReady); err != nil {
		return err
	}
	full := w.handler.full
	var grace <-chan time.Time
	serving := len(w.acceptors)
	stopping, closing := false, false
	drain := func() error {
		if stopping {
			return nil
		}
		stopping = true
		w.draining.Store(true)
		w.me.state.Store(stateDraining)
		for _, a := range w.acceptors {
			if err := a.Close(); err != nil {
				return err
			}
		}
		grace = time.After(w.setup.Config.Grace)
		return nil
	}
	for {
		if closing {
			w.connections.closeIdle()
		}
		// A connection that is being accepted while the listeners are closed is
		// counted before Serve returns, so both must be over.
		if stopping && serving == 0 && w.connections.count() == 0 {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case word, open := <-words:
			switch {
			case !open:
				return errors.New("the master is gone")
			case word == sayDrain, word == sayStop:
				if err := drain(); err != nil {
					return err
				}
				closing = closing || word == sayStop
			}
		case <-full:
			full = nil
			if err := w.say(sayReplace); err != nil {
				return err
			}
		case <-lifetime:
			lifetime = nil
			if err := w.say(sayReplace); err != nil {
				return err
			}
		case s := <-signals:
			if s == syscall.SIGTERM && !stopping {
				if err := w.say(sayReplace); err != nil {
					return err
				}
			}
		case <-grace:
			w.connections.closeIdle()
			if n := w.me.busy.Load(); n > 0 {
				return w.say(fmt.Sprintf("%s%d requests were cut off, they took longer than the grace time of %v", sayNote, n, w.setup.Config.Grace))
			}
			return nil
		case err := <-ended:
			serving--
			if !stopping {
				return fmt.Errorf("accept: %w", err)
			}
		case <-w.connections.changed:
		}
	}
}

func (w *worker) say(word string) error {
	if _, err := io.WriteString(w.control, word+"\n"); err != nil {
		return fmt.Errorf("the master is gone: %w", err)
	}
	return nil
}
