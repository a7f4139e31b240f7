package epoll

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strconv"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"hakaru/internal/load/job"
)

// All calls here return at once, and are made without telling the runtime
// (RawSyscall): entering and leaving a system call by its rules costs a tenth of a
// small request. The one that waits does so too, see wait.

// address is a socket address as the kernel reads it.
type address struct {
	family int
	size   uintptr
	raw    unix.RawSockaddrAny
}

// Fits says why the engine cannot send to a target; nil: it can.
func Fits(to *job.Target) error {
	switch {
	case to.Dial != nil:
		return errors.New("its connections are not made of sockets")
	case to.TLS != nil:
		return errors.New("it does not speak TLS")
	}
	_, err := addressOf(to)
	return err
}

func addressOf(to *job.Target) (*address, error) {
	if to.Network == "unix" {
		return unixAddress(to.Address)
	}
	a, err := netip.ParseAddrPort(to.Address)
	if err != nil {
		return nil, fmt.Errorf("address %q: want IP:PORT", to.Address)
	}
	return inetAddress(a)
}

func unixAddress(path string) (*address, error) {
	a := &address{family: unix.AF_UNIX}
	raw := (*unix.RawSockaddrUnix)(unsafe.Pointer(&a.raw))
	if len(path) >= len(raw.Path) {
		return nil, fmt.Errorf("socket path %q: at most %d bytes", path, len(raw.Path)-1)
	}
	raw.Family = unix.AF_UNIX
	for i, c := range []byte(path) {
		raw.Path[i] = int8(c)
	}
	a.size = unsafe.Offsetof(raw.Path) + uintptr(len(path)) + 1
	if len(path) > 0 && path[0] == '@' { // an abstract one: its name begins with 0 and ends with its length
		raw.Path[0] = 0
		a.size--
	}
	return a, nil
}

func inetAddress(ap netip.AddrPort) (*address, error) {
	a := &address{}
	port, ip := networkOrder(ap.Port()), ap.Addr().Unmap()
	if ip.Is4() {
		a.family, a.size = unix.AF_INET, unix.SizeofSockaddrInet4
		*(*unix.RawSockaddrInet4)(unsafe.Pointer(&a.raw)) = unix.RawSockaddrInet4{Family: unix.AF_INET, Port: port, Addr: ip.As4()}
		return a, nil
	}
	scope := 0
	if zone := ip.Zone(); zone != "" {
		if i, err := net.InterfaceByName(zone); err == nil {
			scope = i.Index
		} else if scope, err = strconv.Atoi(zone); err != nil {
			return nil, fmt.Errorf("address %v: no interface %q", ap, zone)
		}
	}
	a.family, a.size = unix.AF_INET6, unix.SizeofSockaddrInet6
	*(*unix.RawSockaddrInet6)(unsafe.Pointer(&a.raw)) = unix.RawSockaddrInet6{Family: unix.AF_INET6, Port: port, Addr: ip.As16(), Scope_id: uint32(scope)}
	return a, nil
}

func networkOrder(port uint16) uint16 {
	var b [2]byte
	binary.BigEndian.PutUint16(b[:], port)
	return binary.NativeEndian.Uint16(b[:])
}

// socket opens a socket to connect with.
func (a *address) socket(from *address) (fd int, errno syscall.Errno) {
	n, _, errno := unix.RawSyscall(unix.SYS_SOCKET, uintptr(a.family), unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	if errno != 0 {
		return -1, errno
	}
	fd = int(n)
	if a.family != unix.AF_UNIX {
		set(fd, unix.IPPROTO_TCP, unix.TCP_NODELAY)
	}
	if from != nil {
		// The port is chosen at the connect, when the other end is known: 28,000 to
		// each service, not 28,000 in all.
		set(fd, unix.IPPROTO_IP, unix.IP_BIND_ADDRESS_NO_PORT)
		if _, _, errno := unix.RawSyscall(unix.SYS_BIND, n, uintptr(unsafe.Pointer(&from.raw)), from.size); errno != 0 {
			shut(fd)
			return -1, errno
		}
	}
	return fd, 0
}

func (a *address) connect(fd int) syscall.Errno {
	_, _, errno := unix.RawSyscall(unix.SYS_CONNECT, uintptr(fd), uintptr(unsafe.Pointer(&a.raw)), a.size)
	return errno
}

// toItself reports whether a connection's two ends are one: the kernel may choose
// the port that it is to connect to where nobody listens there.
func (a *address) toItself(fd int) bool {
	if a.family == unix.AF_UNIX {
		return false
	}
	var own unix.RawSockaddrAny
	size := uint32(unsafe.Sizeof(own))
	_, _, errno := unix.RawSyscall(unix.SYS_GETSOCKNAME, uintptr(fd), uintptr(unsafe.Pointer(&own)), uintptr(unsafe.Pointer(&size)))
	if errno != 0 {
		return false
	}
	if a.family == unix.AF_INET {
		return *(*unix.RawSockaddrInet4)(unsafe.Pointer(&own)) == *(*unix.RawSockaddrInet4)(unsafe.Pointer(&a.raw))
	}
	x, y := (*unix.RawSockaddrInet6)(unsafe.Pointer(&own)), (*unix.RawSockaddrInet6)(unsafe.Pointer(&a.raw))
	return x.Port == y.Port && x.Addr == y.Addr
}

// set switches an option of a socket on. One that the kernel does not have is
// done without.
func set(fd, level, option int) {
	on := int32(1)
	unix.RawSyscall6(unix.SYS_SETSOCKOPT, uintptr(fd), uintptr(level), uintptr(option), uintptr(unsafe.Pointer(&on)), unsafe.Sizeof(on), 0)
}

// outcome is how a connect that took its time ended.
func outcome(fd int) syscall.Errno {
	var value int32
	size := uint32(unsafe.Sizeof(value))
	_, _, errno := unix.RawSyscall6(unix.SYS_GETSOCKOPT, uintptr(fd), unix.SOL_SOCKET, unix.SO_ERROR,
		uintptr(unsafe.Pointer(&value)), uintptr(unsafe.Pointer(&size)), 0)
	if errno != 0 {
		return errno
	}
	return syscall.Errno(value)
}

// shut closes a descriptor. An error of closing says nothing about an answer that
// has come or failed already.
func shut(fd int) { unix.RawSyscall(unix.SYS_CLOSE, uintptr(fd), 0, 0) }

func send(fd int, b []byte) (int, syscall.Errno) {
	n, _, errno := unix.RawSyscall6(unix.SYS_SENDTO, uintptr(fd), uintptr(unsafe.Pointer(&b[0])), uintptr(len(b)), unix.MSG_NOSIGNAL, 0, 0)
	return int(n), errno
}

func receive(fd int, b []byte) (int, syscall.Errno) {
	n, _, errno := unix.RawSyscall6(unix.SYS_RECVFROM, uintptr(fd), uintptr(unsafe.Pointer(&b[0])), uintptr(len(b)), 0, 0, 0)
	return int(n), errno
}

// gone looks whether the other end has closed the connection, and takes nothing
// of what has come over it.
func gone(fd int) bool {
	var b [1]byte
	n, _, errno := unix.RawSyscall6(unix.SYS_RECVFROM, uintptr(fd), uintptr(unsafe.Pointer(&b[0])), 1, unix.MSG_PEEK, 0, 0)
	return errno == 0 && n == 0 || errno != 0 && errno != unix.EAGAIN && errno != unix.EINTR
}

// control adds a descriptor to an epoll, or changes what is waited for.
func control(ep, op, fd int, events uint32, index, life int32) syscall.Errno {
	e := unix.EpollEvent{Events: events, Fd: index, Pad: life}
	_, _, errno := unix.RawSyscall6(unix.SYS_EPOLL_CTL, uintptr(ep), uintptr(op), uintptr(fd), uintptr(unsafe.Pointer(&e)), 0, 0)
	return errno
}

// waiter waits for events of an epoll.
type waiter struct {
	ep     int
	events []unix.EpollEvent
	// until is the kernel's timespec, which has 64 bits everywhere.
	until  struct{ seconds, nanoseconds int64 }
	coarse bool // there is no epoll_pwait2 (Linux before 5.11)
}

func newWaiter(events int) (*waiter, error) {
	ep, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, os.NewSyscallError("epoll_create1", err)
	}
	return &waiter{ep: ep, events: make([]unix.EpollEvent, events)}, nil
}

// wait gives the events that are there, waiting for the first at most so long.
//
// The thread keeps its part of the runtime (its P) while it waits: were it given
// back, as a system call by the rules does after 20 µs, each wake-up would have to
// get one first, which at one connection costs a third more CPU than the request.
// So the wait has to be bounded, and others need Ps of their own (see borrow).
// The runtime interrupts it by a signal when it needs all threads to stop.
func (w *waiter) wait(most time.Duration) []unix.EpollEvent {
	n, errno := uintptr(0), unix.ENOSYS
	most = max(most, 0)
	if !w.coarse {
		w.until.seconds, w.until.nanoseconds = int64(most/time.Second), int64(most%time.Second)
		n, _, errno = unix.RawSyscall6(unix.SYS_EPOLL_PWAIT2, uintptr(w.ep), uintptr(unsafe.Pointer(&w.events[0])),
			uintptr(len(w.events)), uintptr(unsafe.Pointer(&w.until)), 0, 0)
		// ENOSYS; EPERM where a sandbox does not know the call.
		w.coarse = errno != 0 && errno != unix.EINTR
	}
	if w.coarse {
		n, _, errno = unix.RawSyscall6(unix.SYS_EPOLL_PWAIT, uintptr(w.ep), uintptr(unsafe.Pointer(&w.events[0])),
			uintptr(len(w.events)), uintptr((most+time.Millisecond-1)/time.Millisecond), 0, 0)
	}
	if errno != 0 { // EINTR
		return nil
	}
	return w.events[:n]
}
