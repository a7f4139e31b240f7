package output

import (
	"errors"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// A pipe that is smaller than was asked for is read more often, so that nobody
// waits for the pause between two reads.
func TestPause(t *testing.T) {
	t.Parallel()
	for room, want := range map[int]time.Duration{4 << 20: readPause, 1 << 20: readPause, 256 << 10: readPause / 4, 64 << 10: readPause / 16, 4 << 10: 0} {
		if got := pauseFor(room); got != want {
			t.Errorf("%d bytes: %s, want %s", room, got, want)
		}
	}
	pipe, w, err := newPipe()
	if err != nil {
		t.Fatal(err)
	}
	if room, err := unix.FcntlInt(w.Fd(), unix.F_GETPIPE_SZ, 0); err != nil || room != pipe.room {
		t.Errorf("the pipe has %d bytes, %v; noted are %d", room, err, pipe.room)
	}
	if err := errors.Join(w.Close(), pipe.close()); err != nil {
		t.Error(err)
	}
}

// A pipe is read until nobody has its other end, in pauses or not; one that
// somebody goes on writing to is given up on, with what has come until then.
func TestPipe(t *testing.T) {
	t.Parallel()
	open := func(t *testing.T) (*Output, *os.File) {
		o, w, err := Open("ready", false)
		if err != nil {
			t.Fatal(err)
		}
		return o, w
	}
	t.Run("ended", func(t *testing.T) {
		o, w := open(t)
		text := strings.Repeat("a line of some length\n", 10_000)
		if _, err := w.WriteString("ready\n" + text); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		<-o.done
		if err := o.Finish(); err != nil {
			t.Error(err)
		}
		if head, tail, cut := o.Text(); !o.Found() || len(head)+len(tail)+int(cut) != len(text)+6 {
			t.Errorf("%d bytes kept and %d cut of %d; ready seen: %v", len(head)+len(tail), cut, len(text)+6, o.Found())
		}
	})
	t.Run("held", func(t *testing.T) {
		o, w := open(t)
		stop := make(chan struct{})
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			for {
				select {
				case <-stop:
					return
				default:
					_, _ = w.WriteString("for ever\n") // fails once the reader has gone
				}
			}
		}()
		for !strings.Contains(o.Lines(), "for ever") {
			runtime.Gosched()
		}
		if err := o.Finish(); err != nil {
			t.Error(err)
		}
		close(stop)
		<-ended
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	})
}
