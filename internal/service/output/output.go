// Package output reads what a program writes to its standard output and error, for
// as long as anyone has the other end, without making it wait and at little cost
// for the machine that is measured.
//
// It gives the writing end for the program and keeps, in memory, the beginning and
// the end of what comes. It can look for one text as it comes, which may scroll
// away, and tell of news while somebody waits for a line.
//
// It does not start the program, and does not know what any line means.
package output

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"hakaru"
)

// What is kept of a unit's output: the beginning, where it says what it is and
// what it could not do, and the end. In memory, so that a request log of
// 100 MB/s fills no disk.
const (
	headSize = 64 << 10
	tailSize = 192 << 10
)

// Kept is how much of an output is kept at most.
const Kept = headSize + tailSize

// A service that logs each request writes a line at a time. Reading each as it
// comes would cost more CPU than writing it, on the machine that is measured; so
// what has come in readPause is read at once. The pipe has room for 100 MB/s; a
// smaller one is read more often, down to leastPause, below which a pause costs
// more than it saves.
const (
	readSize   = 64 << 10
	readPause  = 10 * time.Millisecond
	leastPause = 500 * time.Microsecond
)

// pauseFor is how long what is written at 100 MB/s may gather in a pipe of that
// many bytes; 0: it is read as it comes.
func pauseFor(room int) time.Duration {
	pause := readPause * time.Duration(min(room, fullRoom)) / fullRoom
	if pause < leastPause {
		return 0
	}
	return pause
}

// Output reads what a unit writes, for as long as anyone has the other end. The
// unit waits for it only where it writes faster than 100 MB/s. A nil Output is
// that of a unit which hakaru did not start: nothing is seen of it.
type Output struct {
	pipe *pipe
	done chan struct{} // closed when reading has ended
	// hurry is closed when what is in the pipe is wanted now.
	hurry     chan struct{}
	hurryOnce sync.Once

	mu    sync.Mutex
	head  []byte
	tail  []byte // ring once it is full
	at    int    // where the ring's oldest byte is
	total int64
	want  []byte // looked for as it comes: it may scroll away
	carry []byte // the end of what was looked at
	seen  bool
	err   error
	// news has an item when something came since it was taken; nil where nobody
	// looks, as after readiness, when every line would cost.
	news chan struct{}
}

// Open makes a pipe and starts reading it; w is the other end, which the caller
// closes once the program has it. What comes is searched for want; with watch there
// is News. Finish is to be called in the end.
func Open(want string, watch bool) (o *Output, w *os.File, err error) {
	pipe, w, err := newPipe()
	if err != nil {
		return nil, nil, fmt.Errorf("make a pipe for its output: %w", err)
	}
	o = &Output{pipe: pipe, done: make(chan struct{}), hurry: make(chan struct{}), want: []byte(want)}
	if watch {
		o.news = make(chan struct{}, 1)
	}
	go o.read()
	return o, w, nil
}

func (o *Output) read() {
	defer close(o.done)
	buf := make([]byte, readSize)
	between := pauseFor(o.pipe.room)
	pause := time.NewTimer(between)
	defer pause.Stop()
	for {
		n, err := o.pipe.read(buf)
		o.mu.Lock()
		o.add(buf[:n])
		watched := o.news != nil
		if err != nil && !errors.Is(err, io.EOF) {
			o.err = err
		}
		o.mu.Unlock()
		if err != nil {
			return
		}
		if watched || n == len(buf) || between == 0 {
			continue
		}
		pause.Reset(between)
		select {
		case <-pause.C:
		case <-o.hurry:
		}
	}
}

// readNow ends the pauses between reads.
func (o *Output) readNow() { o.hurryOnce.Do(func() { close(o.hurry) }) }

// add keeps what has to be kept of b.
func (o *Output) add(b []byte) {
	o.total += int64(len(b))
	select {
	case o.news <- struct{}{}:
	default: // nobody looks, or there is news already
	}
	if len(o.want) > 0 && !o.seen && len(b) > 0 {
		text := append(o.carry, b...)
		o.seen = bytes.Contains(text, o.want)
		keep := min(len(text), len(o.want)-1)
		o.carry = append(o.carry[:0:0], text[len(text)-keep:]...)
	}
	if room := headSize - len(o.head); room > 0 {
		n := min(room, len(b))
		o.head = append(o.head, b[:n]...)
		b = b[n:]
	}
	if len(b) > tailSize {
		b = b[len(b)-tailSize:]
	}
	if room := tailSize - len(o.tail); room > 0 {
		n := min(room, len(b))
		o.tail = append(o.tail, b[:n]...)
		b = b[n:]
	}
	for len(b) > 0 {
		n := copy(o.tail[o.at:], b)
		o.at = (o.at + n) % tailSize
		b = b[n:]
	}
}

// Found reports whether the text waited for has come.
func (o *Output) Found() bool {
	if o == nil {
		return false
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.seen
}

// News has an item when something came since it was taken; nil where nobody looks.
func (o *Output) News() <-chan struct{} {
	if o == nil {
		return nil
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.news
}

// Unwatch ends the news.
func (o *Output) Unwatch() {
	if o == nil {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.news = nil
}

// LinesSince returns the whole lines that came after a position of the stream,
// as far as they are kept, and the position after them.
func (o *Output) LinesSince(position int64) (text string, next int64) {
	head, tail, cut := o.Text()
	text = head + tail
	total := int64(len(text)) + cut
	if begin := int64(len(head)); position > begin {
		position = max(position-cut, begin)
	}
	text = text[min(position, int64(len(text))):]
	end := strings.LastIndexByte(text, '\n') + 1
	return text[:end], total - int64(len(text)-end)
}

// Text returns what is kept and how many bytes are missing between.
func (o *Output) Text() (head, tail string, cut int64) {
	if o == nil {
		return "", "", 0
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	tail = string(o.tail[o.at:]) + string(o.tail[:o.at])
	return string(o.head), tail, o.total - int64(len(o.head)+len(o.tail))
}

// Lines is all that is kept, for those who look at one line at a time.
func (o *Output) Lines() string {
	head, tail, cut := o.Text()
	if cut > 0 {
		return head + "\n" + tail
	}
	return head + tail
}

// Result is what is kept, for the record: whole lines, and how much is left out
// between them.
func (o *Output) Result(service string) hakaru.Output {
	head, tail, cut := o.Text()
	if cut > 0 {
		// Whole lines on both sides of the cut, so that the rest reads.
		if i := strings.LastIndexByte(head, '\n'); i >= 0 {
			cut += int64(len(head) - i - 1)
			head = head[:i+1]
		}
		if i := strings.IndexByte(tail, '\n'); i >= 0 && i+1 < len(tail) {
			cut += int64(i + 1)
			tail = tail[i+1:]
		}
		head += fmt.Sprintf("[… %d bytes left out …]\n", cut)
	}
	return hakaru.Output{Service: service, Text: strings.ToValidUTF8(head+tail, "\uFFFD"), Cut: cut}
}

// LastLines returns the end of the output, for an error.
func (o *Output) LastLines() string {
	head, tail, _ := o.Text()
	const most, size = 12, 2000
	text := strings.TrimRight(head+tail, "\n ")
	lines := strings.Split(text, "\n")
	text = strings.Join(lines[max(0, len(lines)-most):], "\n")
	if len(text) > size {
		text = "…" + text[len(text)-size:]
	}
	return strings.ToValidUTF8(text, "\uFFFD")
}

// Drain gives what is still in the pipe a moment to be read.
func (o *Output) Drain(limit time.Duration) {
	if o == nil {
		return
	}
	o.readNow()
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-o.done:
	case <-timer.C:
	}
}

// Finish ends the reading. When every process of the unit is gone the end of
// the pipe has been reached; a process that got away may still hold it, and is
// not waited for.
func (o *Output) Finish() error {
	if o == nil {
		return nil
	}
	o.readNow()
	giveUp := o.pipe.giveUp()
	<-o.done
	o.mu.Lock()
	defer o.mu.Unlock()
	return errors.Join(giveUp, o.err, o.pipe.close())
}
