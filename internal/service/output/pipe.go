package output

import (
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// pipe is the reading end of the pipe that a unit writes to, and a bell
// that ends the waiting for it.
//
// It is no os.File: the runtime's poller would be woken by every single write,
// also while nobody reads, and a service that logs each request makes thousands
// a second.
type pipe struct {
	end, bell int
	room      int       // bytes that fit into it
	until     time.Time // the end of the moment after the bell; zero before it; the reader's
}

// fullRoom is the size of a pipe that is asked for: as much as an ordinary user
// may have (pipe-max-size).
const fullRoom = 1 << 20

// giveUpAfter is how long a pipe that somebody still holds is read once it is
// given up on.
const giveUpAfter = 200 * time.Millisecond

// newPipe also returns the writing end, which blocks, as programs expect
// of their standard output.
func newPipe() (_ *pipe, w *os.File, err error) {
	var fds [2]int
	if err := unix.Pipe2(fds[:], unix.O_CLOEXEC); err != nil {
		return nil, nil, err
	}
	p := &pipe{end: fds[0], bell: -1}
	err = unix.SetNonblock(p.end, true)
	if err == nil {
		p.bell, err = unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	}
	if err != nil {
		return nil, nil, errors.Join(err, p.close(), unix.Close(fds[1]))
	}
	// More room, so that a burst does not wait for this process to be scheduled.
	// Past the user's limit of pipe memory (pipe(7), pipe-user-pages-soft) there is
	// none to be had, and what there is, 64 KiB or 4, is read in shorter pauses.
	if p.room, err = unix.FcntlInt(uintptr(p.end), unix.F_SETPIPE_SZ, fullRoom); err != nil {
		if p.room, err = unix.FcntlInt(uintptr(p.end), unix.F_GETPIPE_SZ, 0); err != nil {
			return nil, nil, errors.Join(err, p.close(), unix.Close(fds[1]))
		}
	}
	return p, os.NewFile(uintptr(fds[1]), "output"), nil
}

// read waits until something is there. Once the bell has rung it returns what
// is there, or comes within giveUpAfter, and then io.EOF.
func (p *pipe) read(buf []byte) (int, error) {
	if err := p.listen(0); err != nil { // who never makes us wait is given up on as well
		return 0, err
	}
	for {
		n, err := unix.Read(p.end, buf)
		switch {
		case err == nil && n > 0 && (p.until.IsZero() || time.Now().Before(p.until)):
			return n, nil
		case err == nil: // nobody has the other end, or whoever has it goes on for ever
			return max(n, 0), io.EOF
		case errors.Is(err, unix.EINTR):
		case !errors.Is(err, unix.EAGAIN):
			return 0, fmt.Errorf("read a unit's output: %w", err)
		default:
			if err := p.wait(); err != nil {
				return 0, err
			}
		}
	}
}

// wait returns when there is something to read, or io.EOF when it is not waited
// for any longer.
func (p *pipe) wait() error {
	if p.until.IsZero() {
		if err := p.listen(-1, unix.PollFd{Fd: int32(p.end), Events: unix.POLLIN}); err != nil || p.until.IsZero() {
			return err
		}
	}
	for {
		left := time.Until(p.until)
		if left <= 0 {
			return io.EOF
		}
		end := []unix.PollFd{{Fd: int32(p.end), Events: unix.POLLIN}}
		switch n, err := unix.Poll(end, int(left.Milliseconds())+1); {
		case errors.Is(err, unix.EINTR):
		case err != nil:
			return fmt.Errorf("wait for a unit's output: %w", err)
		case n > 0:
			return nil
		}
	}
}

// listen waits for the bell, or for something else, and notes the end of the
// moment in which what is under way may still come.
func (p *pipe) listen(timeout int, or ...unix.PollFd) error {
	ears := append([]unix.PollFd{{Fd: int32(p.bell), Events: unix.POLLIN}}, or...)
	for {
		_, err := unix.Poll(ears, timeout)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return fmt.Errorf("wait for a unit's output: %w", err)
		}
		if ears[0].Revents != 0 && p.until.IsZero() {
			p.until = time.Now().Add(giveUpAfter)
		}
		return nil
	}
}

// giveUp rings the bell.
func (p *pipe) giveUp() error {
	if _, err := unix.Write(p.bell, []byte{1, 0, 0, 0, 0, 0, 0, 0}); err != nil {
		return fmt.Errorf("end the reading of a unit's output: %w", err)
	}
	return nil
}

func (p *pipe) close() error {
	err := unix.Close(p.end)
	if p.bell >= 0 {
		err = errors.Join(err, unix.Close(p.bell))
	}
	return err
}
