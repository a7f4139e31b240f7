// Package listen opens the sockets that a server of several processes accepts
// from.
//
// It takes an address (host:port or unix:PATH), the length of the queue and an
// environment, and gives sockets: bound here, or those that Server::Starter or
// systemd handed over. An address that is taken is an error that says by which
// process, and a socket file that nobody listens on any more is replaced.
//
// It accepts nothing, and it makes no socket for the workers: they inherit the
// master's (Socket.File). Linux only.
package listen

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// A Socket is the one that all workers accept from. Its descriptor is
// non-blocking for everyone, as the flag belongs to the socket and not to the
// process.
type Socket struct {
	Address string // host:port, or unix:PATH
	From    string // who made it: empty for this process, ServerStarter, Systemd
	fd      int
	file    *os.File
	// made is the socket file to take away at the end, if it is still the one
	// that was made here: a file system may give the inode of a removed file to
	// the next one, so the time belongs to it.
	made     string
	identity socketFile
}

// Givers of sockets.
const (
	ServerStarter = "Server::Starter"
	Systemd       = "systemd"
)

// Open returns the sockets that env tells of, or else binds address.
func Open(address string, backlog int, env []string) ([]*Socket, error) {
	given, err := inheritedSockets(env, os.Getpid())
	if err != nil {
		return nil, err
	}
	if len(given) == 0 {
		l, err := bind(address, backlog)
		if err != nil {
			return nil, err
		}
		return []*Socket{l}, nil
	}
	var all []*Socket
	for _, g := range given {
		l, err := adopt(g, backlog)
		if err != nil {
			return nil, errors.Join(err, Close(all))
		}
		all = append(all, l)
	}
	return all, nil
}

type socketFile struct {
	device, inode uint64
	made          unix.Timespec // mtime, which connections to it do not change
}

func identify(st *unix.Stat_t) socketFile { return socketFile{st.Dev, st.Ino, st.Mtim} }

// newSocket takes over fd.
func newSocket(fd int, address, from string) (*Socket, error) {
	// os.File puts a descriptor that was non-blocking when it came back to
	// blocking when it is handed to a child; one that was blocking is left
	// alone. So the order matters.
	if err := unix.SetNonblock(fd, false); err != nil {
		return nil, err
	}
	file := os.NewFile(uintptr(fd), address)
	if err := unix.SetNonblock(fd, true); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return &Socket{Address: address, From: from, fd: fd, file: file}, nil
}

func bind(address string, backlog int) (*Socket, error) {
	if path, ok := strings.CutPrefix(address, "unix:"); ok {
		return bindUnix(path, backlog)
	}
	tcp, err := net.ResolveTCPAddr("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("listen %s: %w", address, err)
	}
	var family int
	var to unix.Sockaddr
	if ip4 := tcp.IP.To4(); ip4 != nil {
		family, to = unix.AF_INET, &unix.SockaddrInet4{Port: tcp.Port, Addr: [4]byte(ip4)}
	} else {
		six := &unix.SockaddrInet6{Port: tcp.Port}
		copy(six.Addr[:], tcp.IP.To16())
		if tcp.Zone != "" {
			ifi, err := net.InterfaceByName(tcp.Zone)
			if err != nil {
				return nil, fmt.Errorf("listen %s: %w", address, err)
			}
			six.ZoneId = uint32(ifi.Index)
		}
		family, to = unix.AF_INET6, six
	}
	fd, err := unix.Socket(family, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("listen %s: %w", address, err)
	}
	// The standard library's listeners take their backlog from somaxconn, so
	// the socket is made by hand.
	if err = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEADDR, 1); err == nil {
		if err = unix.Bind(fd, to); err == nil {
			err = unix.Listen(fd, backlog)
		}
	}
	if err != nil {
		unix.Close(fd)
		if errors.Is(err, unix.EADDRINUSE) {
			return nil, inUse(address, tcpHolder(tcp))
		}
		return nil, fmt.Errorf("listen %s: %w", address, err)
	}
	l, err := newSocket(fd, socketAddress(fd), "")
	if err != nil {
		return nil, fmt.Errorf("listen %s: %w", address, err)
	}
	return l, nil
}

func bindUnix(path string, backlog int) (*Socket, error) {
	address := "unix:" + path
	wrap := func(err error) error { return fmt.Errorf("listen %s: %w", address, err) }
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, wrap(err)
	}
	to := &unix.SockaddrUnix{Name: path}
	if err = unix.Bind(fd, to); errors.Is(err, unix.EADDRINUSE) {
		if err = removeStale(path); err == nil {
			err = unix.Bind(fd, to)
		}
	}
	if err != nil {
		unix.Close(fd)
		return nil, wrap(err)
	}
	var st unix.Stat_t
	if err := errors.Join(unix.Listen(fd, backlog), unix.Stat(path, &st)); err != nil {
		unix.Close(fd)
		return nil, errors.Join(wrap(err), os.Remove(path))
	}
	l, err := newSocket(fd, address, "")
	if err != nil {
		return nil, errors.Join(wrap(err), os.Remove(path))
	}
	// Taken away at the end by a name that stays right if the directory changes.
	if l.made, err = filepath.Abs(path); err != nil {
		return nil, errors.Join(wrap(err), Close([]*Socket{l}), os.Remove(path))
	}
	l.identity = identify(&st)
	return l, nil
}

// removeStale takes a socket file away that nobody listens on. Two that start
// at the same moment may both find it stale; the second then fails to bind.
func removeStale(path string) error {
	info, err := os.Lstat(path)
	if err != nil {
		return err
	}
	if info.Mode().Type() != os.ModeSocket {
		return errors.New("a file of that name exists and is no socket")
	}
	c, err := net.Dial("unix", path)
	switch {
	case err == nil:
		c.Close()
	case errors.Is(err, unix.ECONNREFUSED):
		return os.Remove(path)
	case !errors.Is(err, unix.EAGAIN): // EAGAIN: somebody listens, and the queue is full
		return fmt.Errorf("see whether somebody listens: %w", err)
	}
	return errors.New("address in use" + unixHolder(path))
}

func inUse(address, holder string) error {
	return fmt.Errorf("listen %s: address in use%s", address, holder)
}

// inherited is a socket handed to this process.
type inherited struct {
	fd   int
	name string // as the giver calls it
	from string
}

// inheritedSockets reads the two ways of handing over listening sockets:
// Server::Starter's SERVER_STARTER_PORT ("127.0.0.1:8080=3;/run/app.sock=4",
// metacpan.org/pod/Server::Starter) and systemd's LISTEN_FDS, which counts only
// where LISTEN_PID is this process (sd_listen_fds(3)).
func inheritedSockets(env []string, pid int) ([]inherited, error) {
	if ports, ok := lookup(env, "SERVER_STARTER_PORT"); ok {
		var all []inherited
		for pair := range strings.SplitSeq(ports, ";") {
			// The fd is behind the last =, as a path may hold one.
			i := strings.LastIndexByte(pair, '=')
			if i < 0 {
				return nil, fmt.Errorf("SERVER_STARTER_PORT %q: %q is not ADDRESS=FD", ports, pair)
			}
			fd, err := strconv.Atoi(pair[i+1:])
			if err != nil || fd < 0 {
				return nil, fmt.Errorf("SERVER_STARTER_PORT %q: %q is not a descriptor", ports, pair[i+1:])
			}
			all = append(all, inherited{fd, pair[:i], ServerStarter})
		}
		return all, nil
	}
	count, ok := lookup(env, "LISTEN_FDS")
	if !ok {
		return nil, nil
	}
	if owner, _ := lookup(env, "LISTEN_PID"); owner != strconv.Itoa(pid) {
		return nil, nil // meant for another process, an ancestor
	}
	n, err := strconv.Atoi(count)
	if err != nil || n < 0 {
		return nil, fmt.Errorf("LISTEN_FDS %q: not a number of descriptors", count)
	}
	names := []string{}
	if given, ok := lookup(env, "LISTEN_FDNAMES"); ok {
		names = strings.Split(given, ":")
	}
	var all []inherited
	for i := range n {
		g := inherited{fd: 3 + i, from: Systemd} // SD_LISTEN_FDS_START
		if i < len(names) {
			g.name = names[i]
		}
		all = append(all, g)
	}
	return all, nil
}

func adopt(g inherited, backlog int) (*Socket, error) {
	wrap := func(err error) error {
		return fmt.Errorf("take over descriptor %d (%s) from %s: %w", g.fd, g.name, g.from, err)
	}
	accepts, err := unix.GetsockoptInt(g.fd, unix.SOL_SOCKET, unix.SO_ACCEPTCONN)
	if err != nil {
		return nil, wrap(err)
	}
	kind, err := unix.GetsockoptInt(g.fd, unix.SOL_SOCKET, unix.SO_TYPE)
	if err != nil {
		return nil, wrap(err)
	}
	if accepts == 0 || kind != unix.SOCK_STREAM {
		return nil, wrap(errors.New("it is not a listening stream socket"))
	}
	unix.CloseOnExec(g.fd)
	// Listening again only changes the length of the queue.
	if err := unix.Listen(g.fd, backlog); err != nil {
		return nil, wrap(err)
	}
	l, err := newSocket(g.fd, socketAddress(g.fd), g.from)
	if err != nil {
		return nil, wrap(err)
	}
	return l, nil
}

// File is the socket as a child process is given it; it stays the Socket's.
func (l *Socket) File() *os.File { return l.file }

// SetBacklog changes the length of the queue, which listen(2) does for a socket
// that listens already.
func (l *Socket) SetBacklog(backlog int) error {
	if err := unix.Listen(l.fd, backlog); err != nil {
		return fmt.Errorf("change the backlog of %s to %d: %w", l.Address, backlog, err)
	}
	return nil
}

// close takes the socket file away if it is still ours.
func (l *Socket) close() error {
	var err error
	if l.made != "" {
		var st unix.Stat_t
		if unix.Stat(l.made, &st) == nil && identify(&st) == l.identity {
			err = os.Remove(l.made)
		}
	}
	return errors.Join(err, l.file.Close())
}

// Close closes all of them, and takes away the socket files made here.
func Close(all []*Socket) error {
	var errs []error
	for _, l := range all {
		errs = append(errs, l.close())
	}
	return errors.Join(errs...)
}

// QueueLength is the backlog in force: the kernel cuts what was asked for to
// net.core.somaxconn without a word. For a listening TCP socket it is in the
// field of tcp_info that otherwise counts SACKs (tcp_get_info in net/ipv4/tcp.c);
// of a unix socket it can not be read, so it is calculated.
func QueueLength(fd, asked int) int {
	if info, err := unix.GetsockoptTCPInfo(fd, unix.IPPROTO_TCP, unix.TCP_INFO); err == nil {
		return int(info.Sacked)
	}
	text, err := os.ReadFile("/proc/sys/net/core/somaxconn")
	if err != nil {
		return asked
	}
	if most, err := strconv.Atoi(strings.TrimSpace(string(text))); err == nil {
		return min(asked, most)
	}
	return asked
}

func socketAddress(fd int) string {
	sa, err := unix.Getsockname(fd)
	if err != nil {
		return fmt.Sprintf("descriptor %d", fd)
	}
	switch a := sa.(type) {
	case *unix.SockaddrInet4:
		return net.JoinHostPort(net.IP(a.Addr[:]).String(), strconv.Itoa(a.Port))
	case *unix.SockaddrInet6:
		return net.JoinHostPort(net.IP(a.Addr[:]).String(), strconv.Itoa(a.Port))
	case *unix.SockaddrUnix:
		return "unix:" + a.Name
	}
	return fmt.Sprintf("descriptor %d", fd)
}

func lookup(env []string, name string) (string, bool) {
	for i := len(env) - 1; i >= 0; i-- {
		if value, ok := strings.CutPrefix(env[i], name+"="); ok {
			return value, true
		}
	}
	return "", false
}

// HandedOn is env without what tells of sockets: the workers get theirs from
// the master.
func HandedOn(env []string) []string {
	var rest []string
	for _, e := range env {
		switch name, _, _ := strings.Cut(e, "="); name {
		case "SERVER_STARTER_PORT", "SERVER_STARTER_GENERATION", "LISTEN_FDS", "LISTEN_PID", "LISTEN_FDNAMES":
		default:
			rest = append(rest, e)
		}
	}
	return rest
}
