package attach

import (
	"errors"
	"net"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"hakaru"
)

func TestFind(t *testing.T) {
	s := newServer(t, "master")
	port := s.address[strings.LastIndex(s.address, ":"):]
	socket := filepath.Join(t.TempDir(), "s.sock")
	over, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	defer over.Close()
	for _, c := range []struct {
		name  string
		ready hakaru.Ready
		pid   int
		size  int
	}{
		{"URL", hakaru.Ready{Get: "http://" + s.address + "/x"}, s.pid(), 2},
		{"name of this machine", hakaru.Ready{Get: "http://localhost" + port}, s.pid(), 2},
		{"address", hakaru.Ready{Connect: s.address}, s.pid(), 2},
		{"address with scheme", hakaru.Ready{Connect: "tcp://" + s.address}, s.pid(), 2},
		{"unix", hakaru.Ready{Connect: "unix:" + socket}, unix.Getpid(), 0},
		{"unix path", hakaru.Ready{Connect: socket}, unix.Getpid(), 0},
		{"unix URL", hakaru.Ready{Get: "unix:" + socket + ":/"}, unix.Getpid(), 0},
		{"nobody", hakaru.Ready{Connect: "127.0.0.1:1"}, 0, 0},
		{"no such socket", hakaru.Ready{Connect: socket + "x"}, 0, 0},
		// TEST-NET-1 (RFC 5737) is no machine's, whoever listens at the port here.
		{"another machine", hakaru.Ready{Get: "http://192.0.2.1" + port}, 0, 0},
	} {
		p, err := find(t.Context(), c.ready)
		if p.pid != c.pid || c.size > 0 && len(p.members) != c.size {
			t.Errorf("%s: pid %d with %v, %v; want pid %d with %d", c.name, p.pid, p.members, err, c.pid, c.size)
		}
		if (c.pid == 0) != errors.Is(err, errElsewhere) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}
