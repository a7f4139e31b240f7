package kernel

import (
	"encoding/binary"
	"fmt"

	"golang.org/x/sys/unix"
)

// States of a connection that this side has closed and the other has not
// (include/net/tcp_states.h).
const (
	stateFinWait1 = 4
	stateFinWait2 = 5
)

// Connection names one TCP connection: ports and addresses as the kernel tells
// them. It is to be compared, and asked for its port.
type Connection struct{ ports, addresses string }

// Port is the other side's.
func (c Connection) Port() uint16 { return binary.BigEndian.Uint16([]byte(c.ports[2:])) }

// Closing returns the TCP connections of this network namespace that were closed
// on this side only: whoever is at the other end has not done with them. One that
// was closed with an answer unread, or whose other end has ended, is none of them.
func (d *Diag) Closing() (map[Connection]bool, error) {
	found := map[Connection]bool{}
	for _, family := range []byte{unix.AF_INET, unix.AF_INET6} {
		request := make([]byte, inetDiagReqLength)
		request[0], request[1] = family, unix.IPPROTO_TCP
		binary.NativeEndian.PutUint32(request[4:], 1<<stateFinWait1|1<<stateFinWait2)
		err := d.dump(request, func(message []byte) {
			// Where the state is FIN_WAIT2 the connection may be what stands in for
			// it until it is over, which has its ports and addresses too.
			if len(message) >= inetDiagMsgLength {
				found[Connection{string(message[4:8]), string(message[8:40])}] = true
			}
		})
		if err != nil {
			return nil, fmt.Errorf("ask for connections that are being closed: %w", err)
		}
	}
	return found, nil
}
