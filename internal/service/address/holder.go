package address

import (
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"slices"
	"strings"

	"hakaru/internal/endpoint"
	"hakaru/internal/watch/kernel"
)

// HeldError says that an address belongs to a process that is not ours.
type HeldError struct {
	addr string
	pid  int // 0: it cannot be seen
	what string
}

func (e *HeldError) Error() string {
	if e.pid == 0 {
		return fmt.Sprintf("%s is held by a process that cannot be looked at from here, and that hakaru did not start", e.addr)
	}
	return fmt.Sprintf("%s is held by pid %d (%s), which hakaru did not start", e.addr, e.pid, e.what)
}

// Strangers tells the processes of a stack from others at an address.
type Strangers struct {
	Ours func() ([]int, error)      // the stack's processes, now
	Warn func(code, message string) // what cannot be told; once for each code
}

// At returns a *HeldError where the listening socket behind an address
// or URL is held by a process of someone else. Where nobody listens here
// (another machine, another network namespace) nothing can be said.
func (s Strangers) At(address string) error {
	if addr, ok := TCP(address); ok {
		if held := s.Listening(addr); held != nil {
			return held
		}
		return nil
	}
	network, path := endpoint.Address(address)
	if network != "unix" || address == "" || strings.Contains(address, "://") && !strings.HasPrefix(address, "unix:") {
		return nil
	}
	listeners, err := s.Listeners(true)
	if err != nil {
		return nil // said once as a warning
	}
	var inodes []uint64
	for _, l := range listeners {
		if l.Path == path {
			inodes = append(inodes, l.Inode)
		}
	}
	if held := s.Holding(path, inodes); held != nil {
		return held
	}
	return nil
}

// Listening looks for whoever listens at addr and is not ours.
func (s Strangers) Listening(addr netip.AddrPort) *HeldError {
	listeners, err := s.Listeners(false)
	if err != nil {
		return nil
	}
	return s.Holding(addr.String(), kernel.Listening(listeners, addr))
}

// Holding tells whether any of the sockets is held by others alone: with
// SO_REUSEPORT one address can have several sockets, and then the others get
// their share of the connections.
func (s Strangers) Holding(addr string, inodes []uint64) *HeldError {
	if len(inodes) == 0 {
		return nil
	}
	ours, err := s.Ours()
	if err != nil {
		return nil
	}
	missing := slices.Clone(inodes)
	hidden := 0 // one of ours that does not show what it has open
	for _, pid := range ours {
		held, err := kernel.SocketInodes(pid)
		if errors.Is(err, fs.ErrPermission) {
			hidden = pid
		}
		if err != nil {
			continue
		}
		missing = slices.DeleteFunc(missing, func(i uint64) bool { return slices.Contains(held, i) })
	}
	if len(missing) == 0 {
		return nil
	}
	pid, err := kernel.Holder(missing)
	if err != nil {
		return nil
	}
	if pid != 0 {
		// Someone started in the meantime is ours all the same.
		if now, err := s.Ours(); err == nil && slices.Contains(now, pid) {
			return nil
		}
		return &HeldError{addr: addr, pid: pid, what: kernel.Describe(pid)}
	}
	if len(missing) < len(inodes) || os.Geteuid() == 0 {
		return nil // ours is among them, or the socket was closed meanwhile
	}
	if hidden != 0 {
		// A program with file capabilities, or one that forbids to look at it: as
		// likely as not it is the one.
		s.Warn("holder_unknown", fmt.Sprintf("whether pid %d (%s) is the one that listens on %s cannot be told: the kernel shows what it has open to root alone", hidden, kernel.Describe(hidden), addr))
		return nil
	}
	return &HeldError{addr: addr}
}

// Listeners asks the kernel for listening sockets, TCP or unix.
func (s Strangers) Listeners(path bool) (_ []kernel.Listener, err error) {
	defer func() {
		if err != nil {
			s.Warn("no_sock_diag", fmt.Sprintf("who listens where cannot be told: %v", err))
		}
	}()
	if path {
		return kernel.ListenersUnix()
	}
	return kernel.ListenersTCP()
}
