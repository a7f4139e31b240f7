package job

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"strings"
)

// secured is a connection with TLS.
type secured struct{ *tls.Conn }

// Read takes the end of the connection below for the end of this one. RFC 8446
// §6.1 wants it said before (close_notify), and many services do not; whether an
// answer was whole is seen from its length.
func (c *secured) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if err == io.ErrUnexpectedEOF {
		err = io.EOF
	}
	return n, err
}

// HandshakeError says that a connection was made, and no TLS on it.
type HandshakeError struct{ Err error }

func (e *HandshakeError) Unwrap() error { return e.Err }

func (e *HandshakeError) Error() string {
	var (
		record    tls.RecordHeaderError
		authority x509.UnknownAuthorityError
	)
	text := strings.TrimPrefix(e.Err.Error(), "tls: ")
	switch {
	case errors.Is(e.Err, io.EOF), errors.Is(e.Err, io.ErrUnexpectedEOF):
		text = "the service closed the connection"
	case errors.As(e.Err, &record):
		text = "the service does not speak TLS"
		if said := string(record.RecordHeader[:]); strings.HasPrefix(said, "HTTP/") {
			text += ", but HTTP: say http:// instead"
		}
	case errors.As(e.Err, &authority): // without guesses at why it is not known
		text = "failed to verify certificate: " + x509.UnknownAuthorityError{}.Error()
	}
	return "TLS handshake: " + text
}

// saidByTLS reports whether an error of reading or writing is TLS's own: an alert
// of either side, as where the service wants a certificate (in TLS 1.3 it says so
// after the handshake), or bytes that are no TLS.
func saidByTLS(err error) bool {
	var record tls.RecordHeaderError
	var op *net.OpError
	return errors.As(err, &record) ||
		errors.As(err, &op) && (op.Op == "remote error" || op.Op == "local error")
}
