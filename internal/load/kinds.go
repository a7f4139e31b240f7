package load

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
)

// The kinds by number, so that counting one is an addition in an array.
const (
	wrongStatus = iota
	wrongBody
	badAnswer
	shortBody
	refused
	reset
	closed
	timedOut
	unreachable
	loadPorts
	loadFiles
	loadOther
	serverError
	kindCount
)

var kindNames = [kindCount]hakaru.ErrorKind{
	hakaru.WrongStatus, hakaru.WrongBody, hakaru.BadAnswer, hakaru.ShortBody, hakaru.Refused, hakaru.Reset,
	hakaru.Closed, hakaru.TimedOut, hakaru.Unreachable, hakaru.LoadPorts, hakaru.LoadFiles, hakaru.LoadOther,
	hakaru.ServiceErrors,
}

// connectKind says what it means that a connection could not be opened.
func connectKind(err error) int {
	var dns *net.DNSError
	switch {
	case isErrno(err, syscall.ECONNREFUSED, syscall.ENOENT): // ENOENT: nobody has made the socket yet
		return refused
	case isErrno(err, syscall.EADDRNOTAVAIL):
		return loadPorts
	case isErrno(err, syscall.EMFILE, syscall.ENFILE):
		return loadFiles
	case isErrno(err, syscall.ECONNRESET, syscall.EPIPE, syscall.ECONNABORTED):
		return reset
	case isErrno(err, syscall.ETIMEDOUT), errors.Is(err, os.ErrDeadlineExceeded), errors.Is(err, context.DeadlineExceeded):
		return timedOut
	case isErrno(err, syscall.EHOSTUNREACH, syscall.ENETUNREACH, syscall.EHOSTDOWN, syscall.EACCES, syscall.EPERM), errors.As(err, &dns):
		return unreachable
	}
	// What is left (ENOBUFS, ENOMEM, a limit of the kernel) is this machine's.
	return loadOther
}

// brokenKind says what it means that a connection broke while a request was
// out.
func brokenKind(err error) int {
	switch {
	case errors.Is(err, errNotHTTP):
		return badAnswer
	case errors.Is(err, errCutOff):
		return shortBody
	case errors.Is(err, errNone), errors.Is(err, io.EOF), errors.Is(err, io.ErrClosedPipe):
		return closed
	case isErrno(err, syscall.ECONNRESET, syscall.EPIPE, syscall.ECONNABORTED):
		return reset
	case isErrno(err, syscall.ETIMEDOUT), errors.Is(err, os.ErrDeadlineExceeded):
		return timedOut
	case isErrno(err, syscall.EHOSTUNREACH, syscall.ENETUNREACH):
		return unreachable
	}
	return loadOther
}

func isErrno(err error, of ...syscall.Errno) bool {
	var errno syscall.Errno
	return errors.As(err, &errno) && slices.Contains(of, errno)
}

// judge says whether a complete answer is what was expected; kind is -1 where
// it is.
func (r *request) judge(p *parser) (kind int) {
	if !p.wanted() {
		if p.status/100 == 5 {
			return serverError
		}
		return wrongStatus
	}
	if len(r.expect) > 0 && !p.found {
		return wrongBody
	}
	return -1
}

// words describes an answer that was not expected.
func (r *request) words(kind int, p *parser) string {
	got := fmt.Sprintf("got %d %s", p.status, p.phrase.String())
	if p.n == 0 {
		got = fmt.Sprintf("got %d", p.status)
	}
	if kind == wrongBody {
		got += fmt.Sprintf(" without %q", clip(string(r.expect), 60))
	}
	if len(p.begin) == 0 {
		return got + ", no body"
	}
	return got + fmt.Sprintf(", body begins %q", strings.Join(strings.Fields(string(p.begin)), " "))
}

func clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return s[:n] + "…"
}
