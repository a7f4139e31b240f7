package epoll

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"hakaru/internal/arrival"
	"hakaru/internal/http1"
	"hakaru/internal/load/job"
)

const (
	// bufferSize is what all connections of a loop are read into, one at a time;
	// a read is dearer than its bytes.
	bufferSize = 64 << 10
	// eventsAtOnce is how many connections one wait may tell of.
	eventsAtOnce = 512
	// longestWait bounds a wait, during which the loop's P is nobody else's.
	longestWait = 100 * time.Millisecond
	// spin is how long before a request is due the loop begins to wait for it on
	// the CPU (job.Job.Precise).
	spin = 50 * time.Microsecond
	// openAtOnce connections are opened every openEvery before the start: accept
	// queues are a few hundred long, and what does not fit in waits for a second.
	openAtOnce = 64
	openEvery  = time.Millisecond
	// readsAtOnce bounds what is read for one connection before the others have
	// their turn.
	readsAtOnce = 32
	// never is later than everything.
	never = time.Duration(1<<63 - 1)

	closing  = unix.EPOLLRDHUP | unix.EPOLLHUP | unix.EPOLLERR
	readable = unix.EPOLLIN | unix.EPOLLRDHUP | unix.EPOLLET
	// bellIndex stands for the bell among the indexes of connections.
	bellIndex = -1
)

// state is what a connection waits for.
type state uint8

const (
	down     state = iota // not open, and nothing is under way
	pausing               // not open until a moment has come
	dialling              // the connection is being made
	idle                  // open, nothing is out
	sending               // a part of the request does not fit in yet
	waiting               // the answer is to come
	finished              // no more is wanted of it
)

// conn is one connection of a loop, through all its sockets, and the request that
// is out on it. Times are since the start. There may be 19,000.
type conn struct {
	fd    int32 // -1: none
	index int32
	life  int32 // counts its sockets, so that an event of the one before is known
	state state

	busy    bool // a request has been begun and is not done with
	early   bool // being opened ahead of any request
	lay     bool // open and has lain idle: the service may have closed it meanwhile
	stirred bool // something came while it was idle, and is not read yet
	retried bool // the request is sent for the second time
	opened  bool // stood at some time

	sendErr syscall.Errno // of a request that could not be sent whole
	handed  int           // bytes of the request that the kernel has
	size    int           // of the answer so far

	pause   time.Duration // after the next connection that cannot be opened
	again   time.Duration // before the next try of a full unix socket; 0: the first try
	dialled time.Duration // when the connection began to be made
	due     time.Duration
	began   time.Duration // its timeout runs from here
	sent    time.Duration
	first   time.Duration // 0: it came with the last byte
	free    time.Duration // of an open loop: since when nothing is out
	lag     time.Duration // of an open loop: what the request was sent late by, with a connection free

	parser http1.Parser
}

// loop is one thread's share of a load.
type loop struct {
	*job.Job
	*waiter
	shard  *job.Shard
	bell   *bell
	to     *address
	from   []*address
	nextIP int   // into from
	broken error // why nothing can be sent at all

	conns  []conn
	left   int // not finished
	buffer []byte
	heads  http1.HeadCache // all answers are much the same
	alarms alarms

	now     time.Duration // as last read
	fresh   bool          // it was read in this turn
	next    time.Duration // when there is something to do beside events
	scan    time.Duration // when timeouts are looked for
	started bool
	ended   bool // no more requests are begun
	refused bool // the last connection could not be made

	// Of an open loop. Idle connections are used in turn, so that all are; the
	// next request waits in the law until one is there.
	law     arrival.Law
	number  uint64 // of the request after the next one
	stride  uint64
	due     time.Duration // of the next request; never: there is none before the end
	lasting bool          // the law has more
	queue   []int32       // ring of connections without a request
	head    int
	queued  int
	serving bool // dispatch is at work

	// Of a closed loop: connections whose answer is there, to be sent over when all
	// that has come has been read.
	ready []int32
}

func newLoop(j *job.Job, k, threads int, b *bell) *loop {
	l := &loop{
		Job: j, shard: j.Rec.Shard(k), bell: b, buffer: make([]byte, bufferSize),
		conns: make([]conn, (j.Connections-k+threads-1)/threads), due: never, nextIP: k,
	}
	l.left = len(l.conns)
	l.ready = make([]int32, 0, len(l.conns))
	for i := range l.conns {
		c := &l.conns[i]
		c.fd, c.index, c.pause = -1, int32(i), job.FirstPause
		c.parser.Head, c.parser.Want, c.parser.Expect, c.parser.Heads = j.Head, j.Status, j.Expect, &l.heads
	}
	l.waiter, l.broken = newWaiter(min(eventsAtOnce, len(l.conns)+1))
	if l.broken == nil {
		l.to, l.broken = addressOf(j.To)
	}
	for _, ip := range j.To.Sources {
		from, err := inetAddress(netip.AddrPortFrom(ip, 0))
		if err != nil && l.broken == nil {
			l.broken = err
		}
		l.from = append(l.from, from)
	}
	if b.fd >= 0 && l.waiter != nil {
		control(l.ep, unix.EPOLL_CTL_ADD, b.fd, unix.EPOLLIN|unix.EPOLLET, bellIndex, 0)
	}
	if j.Law != nil {
		l.law, l.number, l.stride, l.lasting = j.Law(), uint64(k), uint64(threads), true
		l.queue = make([]int32, len(l.conns))
	}
	return l
}

// run is the loop's whole life.
func (l *loop) run() {
	defer l.shutDown()
	if l.broken != nil {
		l.fail(max(l.clock(), 0), l.now, job.ConnectKind(l.broken), l.broken)
		return
	}
	l.prepare()
	for l.left > 0 && !l.bell.rung.Load() {
		l.turn()
	}
}

// prepare has the connections opened, a few at a time, and the first of the law's
// requests at hand.
func (l *loop) prepare() {
	l.scan = l.clock()
	if l.law != nil {
		l.due, l.lasting = l.law.At(l.number)
		l.number += l.stride
		if !l.lasting {
			l.end()
		} else if l.due >= l.Total {
			l.due = never
		}
	}
	if !l.Close {
		for i := range l.conns {
			c := &l.conns[i]
			if c.state != finished {
				c.early = true
				l.sleep(c, l.now+time.Duration(i/openAtOnce)*openEvery)
			}
		}
	}
	l.tick()
}

// turn waits for something to happen and does what is to be done then.
func (l *loop) turn() {
	events := l.wait(l.timeout())
	l.fresh = false
	for i := range events {
		e := &events[i]
		if e.Fd == bellIndex {
			continue
		}
		if c := &l.conns[e.Fd]; c.life == e.Pad {
			l.event(c, e.Events)
		}
	}
	if !l.fresh || l.law != nil {
		l.clock()
	}
	if l.due <= l.now {
		l.dispatch()
	}
	if l.next <= l.now {
		l.tick()
	}
	l.sendReady()
}

// sendReady begins the next request of the connections that are ready for one.
// Reading all and then sending all is cheaper than by turns, since either way
// through the kernel is longer than the CPU's cache for instructions; and truer,
// since no answer waits to be read until others' requests are sent.
func (l *loop) sendReady() {
	ready := len(l.ready)
	for _, i := range l.ready[:ready] {
		c := &l.conns[i]
		switch {
		case l.ended:
			l.finish(c)
		case !l.Budget.Take():
			l.end()
		default:
			l.clock()
			l.begin(c, l.now)
		}
	}
	// What has failed at once, and is ready again, has its turn after the others.
	l.ready = l.ready[:copy(l.ready, l.ready[ready:])]
}

func (l *loop) clock() time.Duration {
	l.now, l.fresh = l.Now(), true
	return l.now
}

// timeout is how long a wait may last. In a closed loop the clock as it was last
// read is good enough.
func (l *loop) timeout() time.Duration {
	if len(l.ready) > 0 {
		return 0
	}
	most := min(l.next-l.now, longestWait)
	if l.due == never || l.queued == 0 {
		return most
	}
	left := l.due - l.clock()
	if l.Precise {
		left -= spin
	}
	return min(most, left)
}

// tick does what is due by the clock, and says when it wants to be called next.
func (l *loop) tick() {
	if l.now >= l.Total && !l.ended {
		l.end()
	}
	if !l.started && l.now >= 0 {
		l.start()
	}
	// Not all at once: where connections are dear (19,000 from one address take half
	// a millisecond each, since the kernel has to look for a free port), those that
	// are open are not to wait for the others.
	for now, n := l.now, 0; n < openAtOnce; n++ {
		a, ok := l.alarms.before(now)
		if !ok {
			break
		}
		if c := &l.conns[a.index]; c.life == a.life {
			l.wake(c)
		}
	}
	if l.now >= l.scan {
		l.expire()
		l.scan = l.now + min(max(l.Timeout/20, 5*time.Millisecond), time.Second)
	}
	l.next = min(l.scan, l.alarms.first())
	if !l.started {
		l.next = min(l.next, 0)
	}
	if !l.ended {
		l.next = min(l.next, l.Total)
	}
}

// start begins the first requests.
func (l *loop) start() {
	l.started = true
	for i := range l.conns {
		c := &l.conns[i]
		if c.state != idle && c.state != down {
			continue
		}
		if l.law != nil {
			l.line(c, 0)
			continue
		}
		l.clock()
		l.released(c)
	}
	if l.due <= l.now {
		l.dispatch()
	}
}

// end is for when no more requests are begun: what is out may still be answered.
func (l *loop) end() {
	l.ended, l.due = true, never
	over := l.now >= l.Total
	for i := range l.conns {
		// After the end a request that has not been sent is given up.
		c := &l.conns[i]
		if !c.busy || over && (c.state == dialling || c.state == pausing) {
			l.finish(c)
		}
	}
}

func (l *loop) finish(c *conn) {
	if c.state == finished {
		return
	}
	l.drop(c)
	c.busy, c.state = false, finished
	l.left--
}

// shutDown closes everything.
func (l *loop) shutDown() {
	for i := range l.conns {
		l.drop(&l.conns[i])
	}
	if l.waiter != nil {
		shut(l.ep)
	}
}

func (l *loop) opened() (n int) {
	for i := range l.conns {
		if l.conns[i].opened {
			n++
		}
	}
	return n
}

// released is for when nothing is out on a connection: the next request begins,
// or it waits for one to be due.
func (l *loop) released(c *conn) {
	switch {
	case l.ended:
		l.finish(c)
	case !l.started:
	case l.law == nil:
		l.ready = append(l.ready, c.index)
	default:
		l.line(c, l.now)
		if l.due <= l.now {
			l.dispatch()
		}
	}
}

// line puts a connection that has been free since some time behind the others.
func (l *loop) line(c *conn, free time.Duration) {
	c.free = free
	at := l.head + l.queued
	if at >= len(l.queue) {
		at -= len(l.queue)
	}
	l.queue[at] = c.index
	l.queued++
}

// dispatch begins the requests that are due, as far as there are connections.
func (l *loop) dispatch() {
	if l.serving { // further up
		return
	}
	l.serving = true
	for l.due <= l.now && l.queued > 0 {
		if l.now >= l.Total { // too late by a moment
			l.end()
			break
		}
		if !l.Budget.Take() {
			l.end()
			l.lasting = false
			break
		}
		c := &l.conns[l.queue[l.head]]
		if l.head++; l.head == len(l.queue) {
			l.head = 0
		}
		l.queued--
		due := l.due
		l.due, l.lasting = l.law.At(l.number)
		l.number += l.stride
		if !l.lasting || l.due >= l.Total {
			l.due = never
		}
		l.shard.Sent(due, c.free, l.now)
		c.lag = l.now - max(due, c.free)
		l.begin(c, due)
		if !l.lasting {
			l.end()
			break
		}
		if l.due != never && l.queued > 0 {
			l.clock()
		}
	}
	l.serving = false
}

// begin begins a request that was due at some time.
func (l *loop) begin(c *conn, due time.Duration) {
	c.busy, c.retried = true, false
	c.due, c.began, c.sent = due, l.now, l.now
	if c.state == idle && c.stirred && gone(int(c.fd)) {
		l.drop(c) // closed by the service, as a client sees before it sends
	}
	if c.state == idle {
		l.request(c)
		return
	}
	l.dial(c)
}

// request sends the request. A connection that breaks meanwhile shows when its
// answer is read: a service may answer and close before it has read a long body,
// so that an answer may be there although the send broke.
func (l *loop) request(c *conn) {
	c.parser.Reset()
	c.first, c.size, c.handed, c.sendErr = 0, 0, 0, 0
	stirred := c.stirred
	c.stirred = false
	l.hand(c)
	if stirred { // the event of that has been, and may have been the last
		l.read(c, true)
	}
}

// hand gives the kernel what it takes of the request.
func (l *loop) hand(c *conn) {
	n, errno := send(int(c.fd), l.Bytes[c.handed:])
	if errno == 0 {
		if c.handed += n; c.handed == len(l.Bytes) {
			if c.state == sending {
				control(l.ep, unix.EPOLL_CTL_MOD, int(c.fd), readable, c.index, c.life)
			}
			c.state = waiting
			return
		}
	}
	// What took a part takes the rest when there is an event.
	if errno == 0 || errno == unix.EAGAIN || errno == unix.EINTR {
		if c.state != sending {
			c.state = sending
			control(l.ep, unix.EPOLL_CTL_MOD, int(c.fd), readable|unix.EPOLLOUT, c.index, c.life)
		}
		return
	}
	c.sendErr, c.state = errno, waiting
}

// event acts on what epoll says of a connection.
func (l *loop) event(c *conn, flags uint32) {
	switch c.state {
	case waiting:
		l.read(c, flags&closing != 0)
	case dialling:
		errno := outcome(int(c.fd))
		if errno == 0 && flags&unix.EPOLLOUT == 0 {
			return
		}
		l.clock()
		if errno != 0 {
			l.unconnected(c, errno)
			return
		}
		control(l.ep, unix.EPOLL_CTL_MOD, int(c.fd), readable, c.index, c.life)
		l.connected(c)
	case sending:
		life := c.life
		if flags&unix.EPOLLOUT != 0 {
			l.hand(c)
		}
		if flags&^unix.EPOLLOUT != 0 && c.life == life {
			l.read(c, flags&closing != 0)
		}
	case idle:
		c.stirred = c.stirred || flags&^unix.EPOLLOUT != 0
	}
}

// read takes what has come of an answer. A read that does not fill the buffer has
// taken all there was; where the other end closes there may be more, and the end
// itself, of which there is no further event.
func (l *loop) read(c *conn, toTheEnd bool) {
	life := c.life
	for range readsAtOnce {
		n, errno := receive(int(c.fd), l.buffer)
		if errno != 0 || n == 0 {
			if errno == unix.EAGAIN {
				return
			}
			if errno != unix.EINTR {
				l.clock()
				l.cutOff(c, errno)
				return
			}
			continue
		}
		c.size += n
		used, done, err := c.parser.Feed(l.buffer[:n])
		whole := n < len(l.buffer) && !toTheEnd
		switch {
		case done && used == n:
			l.clock()
			l.answered(c)
			if whole || c.life != life {
				return
			}
			if c.state != waiting && c.state != sending {
				c.stirred = c.state == idle
				return
			}
			continue
		case done:
			err = fmt.Errorf("%w: %d bytes after its end", http1.ErrNotHTTP, n-used)
			fallthrough
		case err != nil:
			l.clock()
			l.broke(c, job.BrokenKind(err), err)
			return
		}
		if c.first == 0 {
			c.first = l.clock()
		}
		if whole {
			return
		}
	}
	l.alarm(c, l.clock()+1) // to read on
}

// cutOff is for a connection that ended, or broke, while an answer was due.
func (l *loop) cutOff(c *conn, errno syscall.Errno) {
	var err error
	switch {
	case c.sendErr != 0 && !c.parser.Got:
		err = os.NewSyscallError("send", c.sendErr)
	case errno != 0:
		err = os.NewSyscallError("read", errno)
	default:
		var done bool
		if done, err = c.parser.EOF(); done {
			l.answered(c)
			return
		}
	}
	l.broke(c, job.BrokenKind(err), err)
}

// answered judges a complete answer and records it.
func (l *loop) answered(c *conn) {
	now := l.now
	if now >= l.Total { // counts in no bucket
		l.finish(c)
		return
	}
	if now-c.began > l.Timeout {
		l.broke(c, job.TimedOut, nil)
		return
	}
	a := job.Answer{Due: c.due, Sent: c.sent, First: c.first, Done: now, Lag: c.lag, Status: c.parser.Status, Bytes: c.size}
	if a.First == 0 {
		a.First = now
	}
	if kind := job.Judge(&l.Request, &c.parser); kind < 0 {
		l.shard.Good(&a)
	} else {
		l.shard.Wrong(&a, kind)
		l.Rec.Tell(kind, func() string { return job.Words(&l.Request, kind, &c.parser) })
	}
	// A request that was answered before it was sent whole cannot be followed by
	// another.
	if l.Close || c.parser.Close || c.handed < len(l.Bytes) {
		l.drop(c)
	} else {
		c.state, c.lay = idle, true
	}
	c.busy = false
	l.released(c)
}

// broke is for a request that was sent and will not be answered well.
func (l *loop) broke(c *conn, kind int, err error) {
	lay := c.lay
	l.drop(c)
	if l.now >= l.Total {
		l.finish(c)
		return
	}
	if l.now-c.began > l.Timeout {
		kind, err = job.TimedOut, nil
	}
	if l.Again && lay && !c.retried && !c.parser.Got && (kind == job.Closed || kind == job.Reset) {
		c.retried = true
		l.Rec.Retried.Add(1)
		l.dial(c)
		return
	}
	l.fail(c.due, l.now, kind, err)
	c.busy = false
	l.released(c)
}

// fail records a request without a usable answer.
func (l *loop) fail(due, now time.Duration, kind int, err error) {
	l.shard.Failed(due, now, kind)
	l.Rec.Tell(kind, func() string {
		if err == nil {
			return fmt.Sprintf("no answer within %v", l.Timeout)
		}
		return err.Error()
	})
}

// dial makes the connection.
func (l *loop) dial(c *conn) {
	if c.again == 0 {
		c.dialled = l.now
	}
	var from *address
	if len(l.from) > 0 {
		from = l.from[l.nextIP%len(l.from)]
		l.nextIP++
	}
	fd, errno := l.to.socket(from)
	if errno != 0 {
		l.clock()
		l.unconnected(c, errno)
		return
	}
	c.fd = int32(fd)
	c.life++
	events := uint32(readable)
	switch errno = l.to.connect(fd); errno {
	case 0:
		c.state = down // for the moment
	case unix.EINPROGRESS, unix.EINTR:
		c.state = dialling
		events |= unix.EPOLLOUT
	case unix.EAGAIN:
		if l.to.family == unix.AF_UNIX {
			// The accept queue is full; a blocking connect would wait, and so does
			// this one, until the timeout.
			l.drop(c)
			c.again = min(max(2*c.again, time.Millisecond), 16*time.Millisecond)
			l.sleep(c, l.now+c.again)
			return
		}
		fallthrough // ports are used up, in the words of an old kernel
	default:
		l.clock()
		l.unconnected(c, errno)
		return
	}
	if errno := control(l.ep, unix.EPOLL_CTL_ADD, fd, events, c.index, c.life); errno != 0 {
		l.clock()
		l.unconnected(c, errno)
		return
	}
	if c.state != dialling {
		l.clock()
		l.connected(c)
	}
}

// connected is for when the connection stands.
func (l *loop) connected(c *conn) {
	if (l.refused || !l.Close) && l.to.toItself(int(c.fd)) {
		l.unconnected(c, unix.ECONNREFUSED)
		return
	}
	l.refused = false
	l.shard.Connected(l.now - c.dialled)
	l.Rec.Connects.Add(1)
	c.state, c.opened, c.lay, c.stirred = idle, true, false, false
	c.again, c.pause = 0, job.FirstPause
	if l.now >= l.Total {
		l.finish(c)
		return
	}
	if c.busy {
		c.sent = l.now
		l.request(c)
		return
	}
	c.early, c.lay = false, true
	l.released(c)
}

// errConnectTimeout is for a connection that is not there after the timeout.
var errConnectTimeout = fmt.Errorf("no connection in time: %w", os.ErrDeadlineExceeded)

// unconnected is for a connection that could not be made. What goes wrong before
// the start is not counted: the service is not under load yet, and what is still
// wrong at the start shows then. An attempt that ends in vain after it counts.
func (l *loop) unconnected(c *conn, err error) {
	l.drop(c)
	c.again = 0
	l.refused = true
	if l.now >= l.Total {
		l.finish(c)
		return
	}
	failed := func(due time.Duration) {
		l.fail(due, l.now, job.ConnectKind(err), l.told(err))
	}
	if c.early && l.now >= 0 {
		c.early, c.pause = false, job.FirstPause
		if l.law == nil { // in an open loop no request was due on this connection
			if !l.Budget.Take() {
				l.end()
				return
			}
			failed(l.now)
		}
		l.released(c)
		return
	}
	if !c.early {
		failed(c.due)
		c.busy = false
		if l.ended {
			l.finish(c)
			return
		}
	}
	l.sleep(c, l.now+c.pause)
	c.pause = min(2*c.pause, job.LongPause)
}

// told is an error of connecting with where to.
func (l *loop) told(err error) error {
	var errno syscall.Errno
	if errors.As(err, &errno) {
		err = os.NewSyscallError("connect", errno)
	}
	return fmt.Errorf("dial %s %s: %w", l.To.Network, l.To.Address, err)
}

// drop closes the connection.
func (l *loop) drop(c *conn) {
	if c.fd >= 0 {
		shut(int(c.fd))
		c.fd = -1
		c.life++ // nothing more is heard of this one
	}
	if c.state != finished {
		c.state = down
	}
}

// sleep has the connection woken at a time, until when it is not open.
func (l *loop) sleep(c *conn, at time.Duration) {
	c.state = pausing
	c.life++ // an alarm of before is for nothing now
	l.alarm(c, at)
}

func (l *loop) alarm(c *conn, at time.Duration) {
	l.alarms.add(alarm{at: at, index: c.index, life: c.life})
	l.next = min(l.next, at)
}

// wake is for when an alarm goes off.
func (l *loop) wake(c *conn) {
	switch {
	case c.state == waiting || c.state == sending:
		l.read(c, true)
	case c.state != pausing:
	case c.busy || c.early:
		c.state = down
		l.dial(c)
	default:
		c.state = down
		l.released(c)
	}
}

// expire ends what has taken too long. One look at all connections every
// twentieth of the timeout is cheaper than a timer for each request.
func (l *loop) expire() {
	for i := range l.conns {
		c := &l.conns[i]
		switch c.state {
		case waiting, sending:
			if l.now-c.began > l.Timeout {
				l.broke(c, job.TimedOut, nil)
			}
		case dialling, pausing:
			if c.state == pausing && c.again == 0 {
				continue // after an attempt in vain, which has been told
			}
			since := c.dialled
			if c.busy { // a request that was out before, and is sent again, began earlier
				since = min(since, c.began)
			}
			if l.now-since > l.Timeout {
				l.unconnected(c, errConnectTimeout)
			}
		}
	}
}
