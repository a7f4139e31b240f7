package kernel

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Listener is a listening socket.
type Listener struct {
	Addr    netip.AddrPort // TCP; invalid for a unix socket
	Path    string         // unix; empty for TCP
	Inode   uint64
	Queue   uint32 // connections that wait to be accepted
	Backlog uint32 // granted: the smaller of what listen() asked for and somaxconn
	Drops   uint32 // connections dropped since it listens
	HasDrop bool   // the kernel told Drops
}

// Constants of linux/inet_diag.h, linux/unix_diag.h and linux/sock_diag.h that
// x/sys/unix lacks.
const (
	diagSKMemInfo     = 7  // INET_DIAG_SKMEMINFO
	skMemInfoDrops    = 8  // SK_MEMINFO_DROPS, index of a u32
	stateListen       = 10 // TCP_LISTEN, used for unix sockets too
	unixDiagName      = 0  // UNIX_DIAG_NAME
	unixDiagRQLen     = 4  // UNIX_DIAG_RQLEN
	unixShowName      = 0x01
	unixShowRQLen     = 0x10
	inetDiagReqLength = 56
	inetDiagMsgLength = 72
	unixDiagReqLength = 24
	unixDiagMsgLength = 16
)

// Diag asks the kernel about sockets over one netlink socket; the caller closes
// it. It is for one goroutine.
type Diag struct {
	fd  int
	seq uint32
	buf []byte
}

// OpenDiag opens the socket. The kernel may be built without sock_diag.
func OpenDiag() (*Diag, error) {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_SOCK_DIAG)
	if err != nil {
		return nil, fmt.Errorf("open socket diagnostics: %w", err)
	}
	// An answer that does not come is an error after a second, not a hang.
	if err := unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Sec: 1}); err != nil {
		return nil, errors.Join(fmt.Errorf("open socket diagnostics: %w", err), unix.Close(fd))
	}
	return &Diag{fd: fd, buf: make([]byte, 64<<10)}, nil
}

// Close closes the socket.
func (d *Diag) Close() error { return unix.Close(d.fd) }

// TCP appends the listening TCP sockets of this network namespace to list.
func (d *Diag) TCP(list []Listener) ([]Listener, error) {
	for _, family := range []byte{unix.AF_INET, unix.AF_INET6} {
		request := make([]byte, inetDiagReqLength)
		request[0], request[1], request[2] = family, unix.IPPROTO_TCP, 1<<(diagSKMemInfo-1)
		binary.NativeEndian.PutUint32(request[4:], 1<<stateListen)
		err := d.dump(request, func(message []byte) {
			if l, ok := parseInet(message); ok {
				list = append(list, l)
			}
		})
		if err != nil {
			return list, fmt.Errorf("ask for listening TCP sockets: %w", err)
		}
	}
	return list, nil
}

// Unix appends the listening unix sockets that have a path to list.
func (d *Diag) Unix(list []Listener) ([]Listener, error) {
	request := make([]byte, unixDiagReqLength)
	request[0] = unix.AF_UNIX
	binary.NativeEndian.PutUint32(request[4:], 1<<stateListen)
	binary.NativeEndian.PutUint32(request[12:], unixShowName|unixShowRQLen)
	err := d.dump(request, func(message []byte) {
		if l, ok := parseUnix(message); ok {
			list = append(list, l)
		}
	})
	if err != nil {
		return list, fmt.Errorf("ask for listening unix sockets: %w", err)
	}
	return list, nil
}

// ListenersTCP is Diag.TCP for whoever asks once.
func ListenersTCP() ([]Listener, error) { return askOnce((*Diag).TCP) }

// ListenersUnix is Diag.Unix for whoever asks once.
func ListenersUnix() ([]Listener, error) { return askOnce((*Diag).Unix) }

func askOnce(ask func(*Diag, []Listener) ([]Listener, error)) (_ []Listener, err error) {
	d, err := OpenDiag()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	return ask(d, nil)
}

// dump sends one request and calls each with the body of every answer.
func (d *Diag) dump(request []byte, each func([]byte)) error {
	d.seq++
	message := make([]byte, unix.NLMSG_HDRLEN+len(request))
	binary.NativeEndian.PutUint32(message[0:], uint32(len(message)))
	binary.NativeEndian.PutUint16(message[4:], 0x14) // SOCK_DIAG_BY_FAMILY
	binary.NativeEndian.PutUint16(message[6:], unix.NLM_F_REQUEST|unix.NLM_F_DUMP)
	binary.NativeEndian.PutUint32(message[8:], d.seq)
	copy(message[unix.NLMSG_HDRLEN:], request)
	if err := unix.Sendto(d.fd, message, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return err
	}
	for {
		n, _, err := unix.Recvfrom(d.fd, d.buf, 0)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return err
		}
		for b := d.buf[:n]; len(b) >= unix.NLMSG_HDRLEN; {
			length := int(binary.NativeEndian.Uint32(b))
			if length < unix.NLMSG_HDRLEN || length > len(b) {
				return errors.New("a netlink message does not fit its answer")
			}
			body := b[unix.NLMSG_HDRLEN:length]
			// An answer to an earlier question that was given up is passed over.
			if binary.NativeEndian.Uint32(b[8:]) == d.seq {
				switch binary.NativeEndian.Uint16(b[4:]) {
				case unix.NLMSG_DONE:
					return nil
				case unix.NLMSG_ERROR:
					if len(body) >= 4 {
						if code := int32(binary.NativeEndian.Uint32(body)); code != 0 {
							return unix.Errno(-code)
						}
					}
					return errors.New("netlink error without a number")
				default:
					each(body)
				}
			}
			b = b[min(len(b), (length+3)&^3):]
		}
	}
}

func parseInet(b []byte) (Listener, bool) {
	if len(b) < inetDiagMsgLength {
		return Listener{}, false
	}
	var addr netip.Addr
	if b[0] == unix.AF_INET {
		addr = netip.AddrFrom4([4]byte(b[8:12]))
	} else {
		addr = netip.AddrFrom16([16]byte(b[8:24])).Unmap()
	}
	l := Listener{
		Addr:    netip.AddrPortFrom(addr, binary.BigEndian.Uint16(b[4:])),
		Queue:   binary.NativeEndian.Uint32(b[56:]),
		Backlog: binary.NativeEndian.Uint32(b[60:]),
		Inode:   uint64(binary.NativeEndian.Uint32(b[68:])),
	}
	attributes(b[inetDiagMsgLength:], func(kind uint16, value []byte) {
		if kind == diagSKMemInfo && len(value) >= 4*(skMemInfoDrops+1) {
			l.Drops, l.HasDrop = binary.NativeEndian.Uint32(value[4*skMemInfoDrops:]), true
		}
	})
	return l, true
}

func parseUnix(b []byte) (Listener, bool) {
	if len(b) < unixDiagMsgLength {
		return Listener{}, false
	}
	l := Listener{Inode: uint64(binary.NativeEndian.Uint32(b[4:]))}
	attributes(b[unixDiagMsgLength:], func(kind uint16, value []byte) {
		switch {
		case kind == unixDiagName:
			l.Path = strings.TrimRight(string(value), "\x00")
			if strings.HasPrefix(l.Path, "\x00") {
				l.Path = "@" + l.Path[1:] // abstract
			}
		case kind == unixDiagRQLen && len(value) >= 8:
			l.Queue, l.Backlog = binary.NativeEndian.Uint32(value), binary.NativeEndian.Uint32(value[4:])
		}
	})
	return l, l.Path != ""
}

func attributes(b []byte, each func(kind uint16, value []byte)) {
	for len(b) >= 4 {
		length := int(binary.NativeEndian.Uint16(b))
		if length < 4 || length > len(b) {
			return
		}
		each(binary.NativeEndian.Uint16(b[2:])&0x3fff, b[4:length])
		b = b[min(len(b), (length+3)&^3):]
	}
}

// SocketInodes returns the inodes of all sockets a process has open.
func SocketInodes(pid int) ([]uint64, error) {
	dir := "/proc/" + strconv.Itoa(pid) + "/fd"
	d, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	names, err := d.Readdirnames(-1)
	if err != nil {
		return nil, err
	}
	var inodes []uint64
	for _, name := range names {
		target, err := os.Readlink(dir + "/" + name)
		if errors.Is(err, fs.ErrPermission) {
			return nil, err // it may do more than we may, so nothing is shown
		}
		if err != nil {
			continue // closed in between
		}
		number, ok := strings.CutPrefix(target, "socket:[")
		if !ok {
			continue
		}
		if inode, err := strconv.ParseUint(strings.TrimSuffix(number, "]"), 10, 64); err == nil {
			inodes = append(inodes, inode)
		}
	}
	return inodes, nil
}

// Holder finds the process with the smallest number that has one of the sockets
// open: of a prefork server that is the master. 0: none that may be looked at.
func Holder(inodes []uint64) (int, error) {
	first := 0
	err := holders(inodes, func(pid int) bool {
		first = pid
		return false
	})
	return first, err
}

// Holders finds all processes that have one of the sockets open, in rising
// order; those that may not be looked at are missing.
func Holders(inodes []uint64) (pids []int, err error) {
	err = holders(inodes, func(pid int) bool {
		pids = append(pids, pid)
		return true
	})
	return pids, err
}

// holders calls each with the processes that have one of the sockets open, in
// rising order, until it returns false.
func holders(inodes []uint64, each func(pid int) bool) error {
	if len(inodes) == 0 {
		return nil
	}
	pids, err := PIDs(nil)
	if err != nil {
		return err
	}
	slices.Sort(pids)
	for _, pid := range pids {
		held, err := SocketInodes(pid)
		if err == nil && slices.ContainsFunc(held, func(i uint64) bool { return slices.Contains(inodes, i) }) && !each(pid) {
			return nil
		}
	}
	return nil
}

// Listening picks the sockets to which the kernel gives a connection to addr:
// those bound to it, else those bound to every address. Several share one
// address with SO_REUSEPORT.
func Listening(listeners []Listener, addr netip.AddrPort) (inodes []uint64) {
	addr = netip.AddrPortFrom(addr.Addr().Unmap(), addr.Port())
	var exact, wild []uint64
	for _, l := range listeners {
		switch {
		case l.Addr.Port() != addr.Port():
		case l.Addr.Addr() == addr.Addr():
			exact = append(exact, l.Inode)
		case l.Addr.Addr().IsUnspecified() && (l.Addr.Addr().Is6() || addr.Addr().Is4()):
			wild = append(wild, l.Inode)
		}
	}
	if len(exact) > 0 {
		return exact
	}
	return wild
}
