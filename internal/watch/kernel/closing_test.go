package kernel

import (
	"errors"
	"net"
	"testing"
	"time"
)

// A connection that its client has closed is told until the service has done
// with it, read or not.
func TestClosing(t *testing.T) {
	diag, err := OpenDiag()
	if err != nil {
		t.Fatal(err)
	}
	defer diag.Close()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	port := l.Addr().(*net.TCPAddr).AddrPort().Port()
	var served []net.Conn
	for i := range 3 {
		c, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		if i < 2 { // the third stays in the accept queue
			s, err := l.Accept()
			if err != nil {
				t.Fatal(err)
			}
			served = append(served, s)
		}
		_, err = c.Write([]byte("GET / HTTP/1.0\r\n\r\n"))
		if err := errors.Join(err, c.Close()); err != nil {
			t.Fatal(err)
		}
	}
	// The kernel may do its part a moment later.
	want := func(n int) {
		t.Helper()
		limit, tick := time.After(5*time.Second), time.NewTicker(10*time.Millisecond)
		defer tick.Stop()
		for {
			all, err := diag.Closing()
			if err != nil {
				t.Fatal(err)
			}
			found := 0
			for c := range all {
				if c.Port() == port {
					found++
				}
			}
			if found == n {
				return
			}
			select {
			case <-tick.C:
			case <-limit:
				t.Fatalf("%d connections to port %d are being closed, want %d", found, port, n)
			}
		}
	}
	want(3)
	served[0].Close()
	want(2)
	served[1].Close()
	want(1)
	last, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	last.Close()
	want(0)
}
