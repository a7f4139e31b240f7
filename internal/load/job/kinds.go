package job

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"strings"
	"syscall"

	"hakaru"
	"hakaru/internal/http1"
)

// The kinds by number, so that counting one is an addition in an array.
const (
	WrongStatus = iota
	WrongBody
	BadAnswer
	ShortBody
	Refused
	Reset
	Closed
	TimedOut
	Unreachable
	TLSFailed
	LoadPorts
	LoadFiles
	LoadOther
	ServerError
	kindCount
)

var kindNames = [kindCount]hakaru.ErrorKind{
	hakaru.WrongStatus, hakaru.WrongBody, hakaru.BadAnswer, hakaru.ShortBody, hakaru.Refused, hakaru.Reset,
	hakaru.Closed, hakaru.TimedOut, hakaru.Unreachable, hakaru.TLSFailed, hakaru.LoadPorts, hakaru.LoadFiles, hakaru.LoadOther,
	hakaru.ServiceErrors,
}

// ConnectKind says what it means that a connection could not be opened.
func ConnectKind(err error) int {
	var dns *net.DNSError
	var handshake *HandshakeError
	switch {
	case isErrno(err, syscall.ECONNREFUSED, syscall.ENOENT): // ENOENT: nobody has made the socket yet
		return Refused
	case isErrno(err, syscall.EADDRNOTAVAIL, syscall.EADDRINUSE): // the latter where a source address was chosen
		return LoadPorts
	case isErrno(err, syscall.EMFILE, syscall.ENFILE):
		return LoadFiles
	case isErrno(err, syscall.ECONNRESET, syscall.EPIPE, syscall.ECONNABORTED):
		return Reset
	case isErrno(err, syscall.ETIMEDOUT), errors.Is(err, os.ErrDeadlineExceeded), errors.Is(err, context.DeadlineExceeded):
		return TimedOut
	case isErrno(err, syscall.EHOSTUNREACH, syscall.ENETUNREACH, syscall.EHOSTDOWN, syscall.EACCES, syscall.EPERM), errors.As(err, &dns):
		return Unreachable
	case errors.As(err, &handshake):
		return TLSFailed
	}
	// What is left (ENOBUFS, ENOMEM, a limit of the kernel) is this machine's.
	return LoadOther
}

// BrokenKind says what it means that a connection broke while a request was
// out.
func BrokenKind(err error) int {
	switch {
	case errors.Is(err, http1.ErrNotHTTP):
		return BadAnswer
	case errors.Is(err, http1.ErrCutOff):
		return ShortBody
	case errors.Is(err, http1.ErrNone), errors.Is(err, io.EOF), errors.Is(err, io.ErrClosedPipe):
		return Closed
	case isErrno(err, syscall.ECONNRESET, syscall.EPIPE, syscall.ECONNABORTED):
		return Reset
	case isErrno(err, syscall.ETIMEDOUT), errors.Is(err, os.ErrDeadlineExceeded):
		return TimedOut
	case isErrno(err, syscall.EHOSTUNREACH, syscall.ENETUNREACH):
		return Unreachable
	case saidByTLS(err):
		return TLSFailed
	}
	return LoadOther
}

func isErrno(err error, of ...syscall.Errno) bool {
	var errno syscall.Errno
	return errors.As(err, &errno) && slices.Contains(of, errno)
}

// Judge says whether a complete answer is what was expected; kind is -1 where
// it is.
func Judge(r *http1.Request, p *http1.Parser) (kind int) {
	if !p.Wanted() {
		if p.Status/100 == 5 {
			return ServerError
		}
		return WrongStatus
	}
	if len(r.Expect) > 0 && !p.Found {
		return WrongBody
	}
	return -1
}

// Words describes an answer that was not expected.
func Words(r *http1.Request, kind int, p *http1.Parser) string {
	got := strings.TrimSpace(fmt.Sprintf("got %d %s", p.Status, p.Reason()))
	if kind == WrongBody {
		got += fmt.Sprintf(" without %q", clip(string(r.Expect), 60))
	}
	if len(p.Begin) == 0 {
		return got + ", no body"
	}
	return got + fmt.Sprintf(", body begins %q", strings.Join(strings.Fields(string(p.Begin)), " "))
}

func clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return s[:n] + "…"
}
