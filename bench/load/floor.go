//go:build linux

package main

import (
	"bufio"
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/netip"
	"net/textproto"
	"strconv"
	"sync"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// request is what the floor sends.
func request(path, host string) []byte {
	return []byte("GET " + path + " HTTP/1.1\r\nHost: " + host + "\r\n\r\n")
}

// answerLength is how many bytes the server's answer to the floor's request has,
// head included: nginx gives each answer of a location the same length.
func answerLength(path, host string) (int, error) {
	c, err := net.DialTimeout("tcp", host, 5*time.Second)
	if err != nil {
		return 0, err
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(5 * time.Second))
	if _, err := c.Write(request(path, host)); err != nil {
		return 0, err
	}
	var head bytes.Buffer
	text := textproto.NewReader(bufio.NewReader(io.TeeReader(c, &head)))
	line, err := text.ReadLine()
	if err != nil {
		return 0, err
	}
	fields, err := text.ReadMIMEHeader()
	if err != nil {
		return 0, err
	}
	body, err := strconv.Atoi(fields.Get("Content-Length"))
	end := bytes.Index(head.Bytes(), []byte("\r\n\r\n"))
	if err != nil || end < 0 || line != "HTTP/1.1 200 OK" {
		return 0, fmt.Errorf("GET %s: %q, content length %q", path, line, fields.Get("Content-Length"))
	}
	return end + 4 + body, nil
}

// floor is the least a client can do: on each connection a blocking write of
// fixed bytes, then blocking reads until the known length is there; nothing is
// parsed, recorded or timed. One thread; all connections are written to before
// the first is read from.
func floor(args []string) error {
	flags := flag.NewFlagSet("floor", flag.ContinueOnError)
	host := flags.String("to", "", "IP:PORT")
	path := flags.String("path", "/", "")
	connections := flags.Int("c", 1, "")
	length := flags.Int("bytes", 0, "of an answer")
	d := flags.Duration("d", time.Second, "")
	if err := flags.Parse(args); err != nil {
		return err
	}
	to, err := netip.ParseAddrPort(*host)
	if err != nil {
		return err
	}
	address := unix.SockaddrInet4{Port: int(to.Port()), Addr: to.Addr().As4()}
	fds := make([]int, *connections)
	for i := range fds {
		if fds[i], err = unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0); err != nil {
			return err
		}
		if err := unix.Connect(fds[i], &address); err != nil {
			return fmt.Errorf("connect: %w", err)
		}
		if err := unix.SetsockoptInt(fds[i], unix.IPPROTO_TCP, unix.TCP_NODELAY, 1); err != nil {
			return err
		}
	}
	out, in := request(*path, *host), make([]byte, 64<<10)
	for end := time.Now().Add(*d); time.Now().Before(end); {
		for _, fd := range fds {
			if n, err := bare(unix.SYS_WRITE, fd, out); err != nil || n != len(out) {
				return fmt.Errorf("write: %d bytes, %w", n, err)
			}
		}
		for _, fd := range fds {
			for rest := *length; rest > 0; {
				n, err := bare(unix.SYS_READ, fd, in[:min(rest, len(in))])
				if err != nil {
					return fmt.Errorf("read: %w", err)
				}
				rest -= n
			}
		}
	}
	return nil // the kernel closes them
}

// bare is a system call that Go's scheduler is not told of.
func bare(call uintptr, fd int, b []byte) (int, error) {
	for {
		n, _, errno := syscall.RawSyscall(call, uintptr(fd), uintptr(unsafe.Pointer(unsafe.SliceData(b))), uintptr(len(b)))
		switch {
		case errno == syscall.EINTR:
		case errno != 0:
			return 0, errno
		case n == 0:
			return 0, io.ErrUnexpectedEOF
		default:
			return int(n), nil
		}
	}
}

// The stalling server answers at once, but for stallLength from stallAt on in
// each second since its first request. It is not at the seconds' ends, so that a
// load of whole seconds holds whole stalls.
const (
	stallAt     = 200 * time.Millisecond
	stallLength = 100 * time.Millisecond
)

// stall is that server, on a port that it prints, until stdin ends.
func stall(stdin io.Reader, stdout io.Writer) error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintln(stdout, l.Addr()); err != nil {
		return err
	}
	var serving sync.WaitGroup
	defer serving.Wait()
	serving.Go(func() {
		io.Copy(io.Discard, stdin)
		l.Close()
	})
	var first sync.Once
	var began time.Time
	for {
		c, err := l.Accept()
		if errors.Is(err, net.ErrClosed) {
			return nil
		} else if err != nil {
			return err
		}
		serving.Go(func() {
			defer c.Close()
			r := bufio.NewReader(c)
			for {
				line, err := r.ReadSlice('\n')
				if err != nil {
					return
				}
				if len(line) > 2 { // the head goes on
					continue
				}
				first.Do(func() { began = time.Now() })
				if at := time.Since(began) % time.Second; at >= stallAt && at < stallAt+stallLength {
					time.Sleep(stallAt + stallLength - at)
				}
				if _, err := io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nhello\n"); err != nil {
					return
				}
			}
		})
	}
}
