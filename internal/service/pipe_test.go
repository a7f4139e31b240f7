package service

import (
	"os"
	"runtime"
	"strings"
	"testing"
)

// A pipe is read until nobody has its other end, in pauses or not; one that
// somebody goes on writing to is given up on, with what has come until then.
func TestOutputPipe(t *testing.T) {
	t.Parallel()
	open := func(t *testing.T) (*output, *os.File) {
		pipe, w, err := newOutputPipe()
		if err != nil {
			t.Fatal(err)
		}
		return newOutput(pipe, "ready", false), w
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
		if err := o.finish(); err != nil {
			t.Error(err)
		}
		if head, tail, cut := o.text(); !o.found() || len(head)+len(tail)+int(cut) != len(text)+6 {
			t.Errorf("%d bytes kept and %d cut of %d; ready seen: %v", len(head)+len(tail), cut, len(text)+6, o.found())
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
		for !strings.Contains(o.lines(), "for ever") {
			runtime.Gosched()
		}
		if err := o.finish(); err != nil {
			t.Error(err)
		}
		close(stop)
		<-ended
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	})
}
