// Package address finds addresses for a stack of services and knows who holds one.
//
// It takes the leases of a bundle and gives free ports, which it keeps until the
// unit starts that is to listen there, and paths for sockets; it takes an address
// and the processes of the stack, and says which other process listens there.
//
// It connects to nothing and starts nothing.
package address

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"hakaru"
	"hakaru/internal/watch/kernel"
)

// maxSocketPath is what fits into sockaddr_un with its closing zero.
const maxSocketPath = 107

// lease is an address found for the stack. A TCP port is kept bound until the
// unit that is to listen there starts, so that nothing else gets it.
type lease struct {
	spec hakaru.Lease
	unit int // index of the unit before whose start it is let go
	port uint16
	path string
	hold net.Listener
}

// names are the placeholders of the lease: {n}, {n.host}, {n.port}, {n.url}.
func (l *lease) names() hakaru.Names {
	n := l.spec.Name
	if l.path != "" {
		return hakaru.Names{n: l.path, n + ".url": "unix:" + l.path, n + ".path": l.path}
	}
	port := strconv.Itoa(int(l.port))
	return hakaru.Names{
		n: "127.0.0.1:" + port, n + ".host": "127.0.0.1", n + ".port": port,
		n + ".url": "tcp://127.0.0.1:" + port,
	}
}

// Leases are the addresses of one stack. They are for one goroutine at a time.
type Leases struct{ list []*lease }

// Take finds an address for each; sockets lie in dir.
func Take(specs []hakaru.Lease, units []hakaru.Unit, dir string) (*Leases, error) {
	all := &Leases{}
	for _, spec := range specs {
		l := &lease{spec: spec, unit: firstUser(units, spec)}
		if spec.Unix {
			l.path = filepath.Join(dir, FileName(spec.Name)+".sock")
			if len(l.path) > maxSocketPath {
				all.Close()
				return nil, fmt.Errorf("lease socket %s: the path %s has %d bytes and the kernel allows %d; choose a shorter temporary directory", spec.Name, l.path, len(l.path), maxSocketPath)
			}
		} else {
			hold, err := bindPort()
			if err != nil {
				all.Close()
				return nil, fmt.Errorf("lease port %s: %w", spec.Name, err)
			}
			l.hold, l.port = hold, uint16(hold.Addr().(*net.TCPAddr).Port)
		}
		all.list = append(all.list, l)
	}
	return all, nil
}

// Names are the placeholders of all leases.
func (a *Leases) Names() hakaru.Names {
	names := hakaru.Names{}
	for _, l := range a.list {
		maps.Copy(names, l.names())
	}
	return names
}

// Ports are those that were leased.
func (a *Leases) Ports() (ports []uint16) {
	for _, l := range a.list {
		if l.port != 0 {
			ports = append(ports, l.port)
		}
	}
	return ports
}

// Sockets are the paths that were leased.
func (a *Leases) Sockets() (paths []string) {
	for _, l := range a.list {
		if l.path != "" {
			paths = append(paths, l.path)
		}
	}
	return paths
}

// Release lets the ports go on which a unit is to listen.
func (a *Leases) Release(unit int) {
	for _, l := range a.list {
		if l.unit == unit {
			l.release()
		}
	}
}

// Close lets all ports go; nil has none.
func (a *Leases) Close() {
	if a == nil {
		return
	}
	for _, l := range a.list {
		l.release()
	}
}

// Holds reports whether an address was leased.
func (a *Leases) Holds(addr netip.AddrPort) bool { return slices.Contains(a.Ports(), addr.Port()) }

// Has reports whether a socket listens on what was leased.
func (a *Leases) Has(l kernel.Listener) bool {
	return a.Holds(l.Addr) || slices.Contains(a.Sockets(), l.Path)
}

// bindPort listens on a free loopback port below the range from which the
// kernel takes the ports of clients: a connection of the load generator must
// not get the port between our letting go and the service's listen.
func bindPort() (net.Listener, error) {
	low, high := portRange()
	var err error
	for range 64 {
		port := low + rand.IntN(high-low)
		var hold net.Listener
		hold, err = net.Listen("tcp4", "127.0.0.1:"+strconv.Itoa(port))
		if err == nil {
			return hold, nil
		}
		if !errors.Is(err, syscall.EADDRINUSE) && !errors.Is(err, syscall.EACCES) {
			return nil, err
		}
	}
	if hold, anyErr := net.Listen("tcp4", "127.0.0.1:0"); anyErr == nil {
		return hold, nil
	}
	return nil, err
}

// portRange is [low, high) to lease from: up to 16,000 ports below the client
// ports, or above 10,000 where those begin lower than 12,000.
func portRange() (low, high int) {
	client := 32768
	if b, err := os.ReadFile("/proc/sys/net/ipv4/ip_local_port_range"); err == nil {
		if f := strings.Fields(string(b)); len(f) == 2 {
			if n, err := strconv.Atoi(f[0]); err == nil {
				client = n
			}
		}
	}
	if client < 12000 {
		return 10000, 60000
	}
	return max(10000, client-16000), client
}

// firstUser is the index of the unit that is to listen: the one named, else the
// first that hakaru starts and that mentions the name, else the first that
// mentions it, else the first. A service that something else starts mentions the
// address to connect to it as a rule, also where it comes first.
func firstUser(units []hakaru.Unit, spec hakaru.Lease) int {
	for i, u := range units {
		if spec.Service != "" && u.Service == spec.Service {
			return i
		}
	}
	mentions := func(t string) bool {
		return strings.Contains(t, "{"+spec.Name+"}") || strings.Contains(t, "{"+spec.Name+".")
	}
	attached := -1
	for i, u := range units {
		switch {
		case !slices.ContainsFunc(Texts(u), mentions):
		case u.Attached == nil:
			return i
		case attached < 0:
			attached = i
		}
	}
	return max(attached, 0)
}

// release lets a port go. An error in closing a socket that nobody used leaves
// nothing behind that could be mended.
func (l *lease) release() {
	if l.hold != nil {
		_ = l.hold.Close()
		l.hold = nil
	}
}

// Texts is all of a unit that may name an address or a path.
func Texts(u hakaru.Unit) []string {
	list := append([]string{u.Ready.Get, u.Ready.Connect}, u.Argv...)
	for _, f := range u.Files {
		list = append(list, f.Content)
	}
	for _, e := range u.Env {
		if e.Value != nil {
			list = append(list, *e.Value)
		}
	}
	return list
}

// FileName keeps of a name what may stand in that of a file or of a cgroup.
func FileName(name string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' || r == '_' {
			return r
		}
		return '_'
	}, name)
}
