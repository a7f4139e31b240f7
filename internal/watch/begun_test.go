package watch

import (
	"net"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"hakaru"
)

// What an accept queue drops after Watch has begun and before the window starts
// is in the first bucket: that is when kept connections are made.
func TestOverflowBeforeTheStart(t *testing.T) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	if err := unix.Bind(fd, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		t.Fatal(err)
	}
	if err := unix.Listen(fd, 1); err != nil {
		t.Fatal(err)
	}
	name, err := unix.Getsockname(fd)
	if err != nil {
		t.Fatal(err)
	}
	addr := (&net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: name.(*unix.SockaddrInet4).Port}).String()

	var dialed []net.Conn
	begun := false
	w := hakaru.Window{Start: time.Now().Add(time.Second), Length: 500 * time.Millisecond}
	seen, err := Watch(t.Context(), hakaru.Place{ID: "p"}, w, func() {
		begun = true
		for range 6 { // two fit; nobody accepts
			if c, err := net.DialTimeout("tcp", addr, 50*time.Millisecond); err == nil {
				dialed = append(dialed, c)
			}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range dialed {
		c.Close()
	}
	if !begun {
		t.Fatal("Watch did not say that it has begun")
	}
	for i, c := range seen.Counters {
		if c.Name == hakaru.CounterListenOverflow && c.Of == hakaru.OfHost {
			if got := seen.Buckets[0][i]; got < 1 {
				t.Errorf("%v overflows in the first bucket, want at least 1", got)
			}
			return
		}
	}
	t.Fatalf("no host-wide overflow counter among %v", seen.Counters)
}
