package refserver

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"

	"hakaru/internal/listen"
	"hakaru/internal/refserver/config"
)

// Options is what the master takes from its surroundings.
type Options struct {
	// Args starts a worker: the words of a command that calls RunWorker,
	// beginning with the program's name. Exe is the file to execute; empty: the
	// one that runs now, even when another was put in its place since.
	Args []string
	Exe  string
	// Env is the environment: handed-over sockets are read from it, and the
	// workers get the rest.
	Env    []string
	Stdout io.Writer // of the workers; they write nothing there
	Stderr io.Writer // what happens, in lines; the workers' request log where it is "on"
	// Signals are the process's: SIGHUP restarts gracefully, SIGTERM and SIGINT
	// stop, a second one of those at once. A cancelled context is a first stop.
	Signals <-chan os.Signal
	// Reload reads the configuration again for a graceful restart; nil: the
	// same as before.
	Reload func() (config.Config, error)
	// Ready is called once, when all workers of the first generation serve,
	// with the addresses they listen on.
	Ready func(addresses []string)
}

const (
	readyTime    = 30 * time.Second // for a worker to come up
	quickDeath   = time.Second      // a worker that lives shorter has something wrong with it
	quickDeaths  = 5                // in a row: the service can not run
	firstBackoff = 50 * time.Millisecond
	killMargin   = 500 * time.Millisecond // beyond the grace time, for the worker to end itself
)

type master struct {
	opts      Options
	env       []string // of the workers
	listeners []*listen.Socket
	board     *scoreboard
	current   *generation
	next      *generation // comes up beside the current one
	children  map[*child]struct{}
	// generations is how many were made.
	generations int
	restart     bool // asked for again while one was under way
	announced   bool
	stopping    bool
	stopWord    string
	stops       int // signals to stop
	quick       int // deaths in a row of workers that hardly lived
	notBefore   time.Time
	failure     error // why it ends, where nobody asked it to
}

// Run serves until it is told to stop, which is no error. A *config.UsageError
// is a mistake in cfg.
func Run(ctx context.Context, cfg config.Config, opts Options) error {
	cfg = cfg.Filled()
	if err := cfg.Check(); err != nil {
		return config.Mistake(err.Error(), "")
	}
	if len(opts.Args) == 0 {
		return errors.New("start the workers: the command is missing")
	}
	if opts.Exe == "" {
		opts.Exe = "/proc/self/exe"
	}
	// Without a file of its own, os/exec copies each worker's output, all of
	// them at once.
	opts.Stdout, opts.Stderr = serialised(opts.Stdout), serialised(opts.Stderr)
	listeners, err := listen.Open(cfg.Listen, cfg.Backlog, opts.Env)
	if err != nil {
		return err
	}
	m := &master{opts: opts, env: listen.HandedOn(opts.Env), listeners: listeners, children: map[*child]struct{}{}, stopWord: sayStop}
	if listeners[0].From == listen.ServerStarter {
		// It stops the old service while the new one serves the same socket:
		// the connections of clients must be handed over, not cut.
		m.stopWord = sayDrain
	}
	err = m.run(ctx, cfg)
	return errors.Join(err, listen.Close(m.listeners))
}

func (m *master) run(ctx context.Context, cfg config.Config) (err error) {
	m.generations = 1
	if m.current, err = newGeneration(m.generations, cfg); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, m.current.close()) }()
	if m.board, err = newScoreboard(); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, m.board.close()) }()
	m.board.asked.Store(uint64(cfg.Processes))

	// Workers die with the thread that started them (PR_SET_PDEATHSIG), so it
	// must be this one for all of them.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var readers sync.WaitGroup
	events := make(chan event)
	defer readers.Wait() // all workers have ended, so all readers are about to
	cancelled := ctx.Done()
	for {
		now := time.Now()
		m.enforce(now)
		if m.stopping && len(m.children) == 0 {
			return m.failure
		}
		if !m.stopping {
			m.fill(now, events, &readers)
			if m.stopping {
				continue
			}
		}
		timer := time.NewTimer(m.nextDue(now))
		select {
		case e := <-events:
			m.heard(e)
		case s := <-m.opts.Signals:
			m.signal(s)
		case <-cancelled:
			cancelled = nil
			m.stop()
		case <-timer.C:
		}
		timer.Stop()
	}
}

// fill starts the workers that are missing, of the next generation first.
func (m *master) fill(now time.Time, events chan<- event, readers *sync.WaitGroup) {
	if m.next != nil {
		if all, _ := m.count(m.next); all == 0 {
			for range m.next.config.Processes {
				if !m.start(m.next, events, readers) {
					m.giveUpNext("it could not be started")
					break
				}
			}
		}
	}
	if now.Before(m.notBefore) {
		return
	}
	for all, _ := m.count(m.current); all < m.current.config.Processes; all++ {
		if !m.start(m.current, events, readers) {
			m.quicklyDead(now, "it could not be started")
			return
		}
	}
}

func (m *master) start(g *generation, events chan<- event, readers *sync.WaitGroup) bool {
	c, err := m.spawn(g, events, readers)
	if err != nil {
		m.print("%v", err)
		return false
	}
	m.children[c] = struct{}{}
	return true
}

// count is how many workers of a generation are there to stay, and how many of
// them serve. One of the next generation that wants to be replaced is not until
// that is the current one, or it would never be complete.
func (m *master) count(g *generation) (all, ready int) {
	for c := range m.children {
		if c.generation == g.number && !c.leaving && (!c.replace || g == m.next) {
			all++
			if c.ready {
				ready++
			}
		}
	}
	return all, ready
}

func (m *master) heard(e event) {
	c := e.child
	switch {
	case e.word == "":
		m.ended(c, e.err)
	case e.word == sayReady:
		c.ready = true
		if !c.leaving {
			c.deadline = time.Time{}
		}
		m.becameReady(c)
	case e.word == sayReplace:
		c.replace = true
	case strings.HasPrefix(e.word, sayError):
		c.why = strings.TrimPrefix(e.word, sayError)
	case strings.HasPrefix(e.word, sayNote):
		m.print("worker %d: %s", c.cmd.Process.Pid, strings.TrimPrefix(e.word, sayNote))
	}
}

func (m *master) becameReady(c *child) {
	if m.stopping || c.leaving {
		return
	}
	if m.next != nil && c.generation == m.next.number {
		if _, ready := m.count(m.next); ready == m.next.config.Processes {
			m.switchOver()
		}
		return
	}
	if !m.announced {
		if _, ready := m.count(m.current); ready == m.current.config.Processes {
			m.announce()
		}
	}
	// It is the replacement of one that asked: the one that has served longest.
	var oldest *child
	for o := range m.children {
		if o.generation == c.generation && o.replace && !o.leaving && (oldest == nil || o.started.Before(oldest.started)) {
			oldest = o
		}
	}
	if oldest != nil {
		m.leave(oldest, sayDrain, m.current.config.Grace)
	}
}

// relisten changes the length of the queues.
func (m *master) relisten(backlog, before int) error {
	if backlog == before {
		return nil
	}
	for _, l := range m.listeners {
		if err := l.SetBacklog(backlog); err != nil {
			return err
		}
	}
	return nil
}

func (m *master) announce() {
	m.announced = true
	var addresses, words []string
	for _, l := range m.listeners {
		addresses = append(addresses, l.Address)
		word := "http://" + l.Address
		if strings.HasPrefix(l.Address, "unix:") {
			word = l.Address
		}
		if l.From != "" {
			word += " (socket from " + l.From + ")"
		}
		words = append(words, word)
	}
	c := &m.current.config
	m.print("pid %d listens on %s; processes %d, threads %d, handler %s", os.Getpid(), strings.Join(words, ", "), c.Processes, c.Threads, c.Handler)
	if m.opts.Ready != nil {
		m.opts.Ready(addresses)
	}
}

func (m *master) ended(c *child, err error) {
	delete(m.children, c)
	_ = c.control.Close() // nothing is written to it any more
	m.board.all[c.slot].state.Store(stateFree)
	if c.leaving || m.stopping {
		return
	}
	m.print("worker %d ended unasked: %s", c.cmd.Process.Pid, c.end(err))
	if m.next != nil && c.generation == m.next.number {
		m.giveUpNext(c.end(err))
		return
	}
	now := time.Now()
	if c.ready && now.Sub(c.started) >= quickDeath {
		m.quick = 0
		return
	}
	m.quicklyDead(now, c.end(err))
}

// quicklyDead waits longer before each next start, and gives up in the end.
func (m *master) quicklyDead(now time.Time, why string) {
	m.quick++
	m.notBefore = now.Add(firstBackoff << m.quick)
	if m.quick >= quickDeaths {
		m.failure = fmt.Errorf("start workers: %d in a row ended within %v, the last one: %s", m.quick, quickDeath, why)
		m.stop()
	}
}

func (m *master) signal(s os.Signal) {
	switch s {
	case syscall.SIGHUP:
		m.reload()
	case syscall.SIGTERM, syscall.SIGINT:
		m.stops++
		if m.stops == 1 {
			m.stop()
			return
		}
		busy := uint64(0)
		for c := range m.children {
			busy += m.board.all[c.slot].busy.Load()
			c.kill()
		}
		if m.failure == nil {
			m.failure = fmt.Errorf("stop: a second signal ended it at once; %d requests were cut off", busy)
		}
	}
}

func (m *master) reload() {
	if m.stopping {
		return
	}
	if m.next != nil {
		m.restart = true
		return
	}
	m.restart = false
	cfg := m.current.config
	if m.opts.Reload != nil {
		fresh, err := m.opts.Reload()
		if err == nil {
			fresh = fresh.Filled()
			err = fresh.Check()
		}
		if err == nil && fresh.Listen != cfg.Listen && m.listeners[0].From == "" {
			err = fmt.Errorf("listen %s: the address can not change while it serves (%s); stop it and start it again", fresh.Listen, cfg.Listen)
		}
		if err != nil {
			m.print("restart given up, generation %d serves on: %v", m.current.number, err)
			return
		}
		cfg = fresh
	}
	m.generations++ // a number is not used again: its workers may still be ending
	next, err := newGeneration(m.generations, cfg)
	if err != nil {
		m.print("restart given up, generation %d serves on: %v", m.current.number, err)
		return
	}
	m.next = next
}

// switchOver makes the next generation the current one: all of it serves
// already, beside the old one, which now drains.
func (m *master) switchOver() {
	old := m.current
	if err := m.relisten(m.next.config.Backlog, old.config.Backlog); err != nil {
		m.print("%v", err)
	}
	m.current, m.next = m.next, nil
	m.quick = 0
	m.board.asked.Store(uint64(m.current.config.Processes))
	for c := range m.children {
		if c.generation < m.current.number && !c.leaving {
			m.leave(c, sayDrain, old.config.Grace)
		}
	}
	if err := old.close(); err != nil {
		m.print("%v", err)
	}
	m.print("generation %d serves, generation %d drains", m.current.number, old.number)
	if !m.announced {
		m.announce()
	}
	if m.restart {
		m.reload()
	}
}

func (m *master) giveUpNext(why string) {
	m.print("restart given up, generation %d serves on: %s", m.current.number, why)
	for c := range m.children {
		if c.generation == m.next.number && !c.leaving {
			m.leave(c, sayStop, m.next.config.Grace)
		}
	}
	if err := m.next.close(); err != nil {
		m.print("%v", err)
	}
	m.next = nil
	if m.restart {
		m.reload()
	}
}

// leave tells a worker to end.
func (m *master) leave(c *child, word string, grace time.Duration) {
	c.leaving = true
	c.deadline = time.Now().Add(grace + killMargin)
	c.tell(word)
}

func (m *master) stop() {
	if m.stopping {
		return
	}
	m.stopping = true
	for c := range m.children {
		// Those that drain already are told to hurry.
		m.leave(c, m.stopWord, m.current.config.Grace)
	}
	// Nothing is accepted any more, here neither.
	if err := listen.Close(m.listeners); err != nil {
		m.failure = errors.Join(m.failure, err)
	}
	m.listeners = nil
	if m.next != nil {
		if err := m.next.close(); err != nil {
			m.print("%v", err)
		}
		m.next = nil
	}
}

// enforce kills what is over its time.
func (m *master) enforce(now time.Time) {
	for c := range m.children {
		if c.deadline.IsZero() || now.Before(c.deadline) {
			continue
		}
		what := "did not become ready in " + readyTime.String()
		if c.leaving {
			what = "did not end in the grace time"
		}
		m.print("worker %d %s and is killed", c.cmd.Process.Pid, what)
		leaving := c.leaving
		c.kill()
		c.leaving = leaving // one that never became ready counts as a death
		c.deadline = time.Time{}
	}
}

// nextDue is how long the loop may sleep.
func (m *master) nextDue(now time.Time) time.Duration {
	due := now.Add(time.Hour)
	if all, _ := m.count(m.current); !m.stopping && all < m.current.config.Processes {
		due = m.notBefore
	}
	for c := range m.children {
		if !c.deadline.IsZero() && c.deadline.Before(due) {
			due = c.deadline
		}
	}
	return max(0, due.Sub(now))
}

func (m *master) print(format string, args ...any) {
	// If nobody reads what happens there is nobody to tell that either.
	_, _ = fmt.Fprintf(m.opts.Stderr, "hakaru serve: "+format+"\n", args...)
}
