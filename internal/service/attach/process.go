package attach

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"hakaru"
	"hakaru/internal/endpoint"
	"hakaru/internal/watch/kernel"
)

// process is the one that listens at the service's address, with its
// descendants.
type process struct {
	pid     int
	members map[int]uint64 // it and its descendants → start time
	more    int            // others that listen there too, not descendants of it
}

// errElsewhere says that the address is not this machine's, or that whoever
// listens there cannot be looked at.
var errElsewhere = errors.New("no process that listens there can be found on this machine")

// find looks for the process that owns the listening socket of the service's
// address. Where several have it open, as master and workers do, it is the one
// whose parent has not; of several such the oldest. Who holds sockets for others
// is never it.
func find(ctx context.Context, ready hakaru.Ready) (process, error) {
	network, address := "", ""
	if ready.Get != "" {
		to, err := endpoint.Plain(ready.Get)
		if err != nil {
			return process{}, err
		}
		network, address = to.Network, to.Address
	} else {
		network, address = endpoint.Address(ready.Connect)
	}
	inodes, err := listening(ctx, network, address)
	if err != nil {
		return process{}, err
	}
	holders, err := kernel.Holders(inodes)
	if err != nil {
		return process{}, fmt.Errorf("find who listens at %s: %w", address, err)
	}
	var tops []kernel.Stat
	for _, pid := range holders {
		st, err := kernel.ReadStat(pid)
		if err != nil || !st.Alive() || forOthers(st) || slices.Contains(holders, st.Parent) && !parentForOthers(st) {
			continue
		}
		tops = append(tops, st)
	}
	if len(tops) == 0 {
		return process{}, fmt.Errorf("%s: %w", address, errElsewhere)
	}
	slices.SortStableFunc(tops, func(a, b kernel.Stat) int { return int(int64(a.Start) - int64(b.Start)) })
	p := process{pid: tops[0].PID, members: map[int]uint64{}, more: len(tops) - 1}
	members, err := kernel.Group{Leader: p.pid, Start: tops[0].Start, Descent: true}.Members()
	if err != nil {
		return process{}, err
	}
	p.members[p.pid] = tops[0].Start
	for _, pid := range members {
		if st, err := kernel.ReadStat(pid); err == nil {
			p.members[pid] = st.Start
		}
	}
	for _, top := range tops[1:] {
		if _, descends := p.members[top.PID]; descends {
			p.more--
		}
	}
	return p, nil
}

// runsIn reports whether the service is a process or runs below it, so that who
// waits for that process waits for the service.
func (p process) runsIn(pid int) bool {
	if _, member := p.members[pid]; member {
		return true
	}
	for at := p.pid; at > 1; {
		st, err := kernel.ReadStat(at)
		if err != nil {
			return false
		}
		if at = st.Parent; at == pid {
			return true
		}
	}
	return false
}

// forOthers reports whether a process only hands connections on to others: the
// service manager (socket activation), of the system or of a user, and the proxy
// of a container's published port. Their descendants are everybody's.
func forOthers(st kernel.Stat) bool {
	return st.PID == 1 || st.Comm == "systemd" || st.Comm == "docker-proxy"
}

func parentForOthers(st kernel.Stat) bool {
	parent, err := kernel.ReadStat(st.Parent)
	return err == nil && forOthers(parent)
}

// listening are the sockets of this machine that listen at an address; none
// where it is another machine's.
func listening(ctx context.Context, network, address string) ([]uint64, error) {
	if network == "unix" {
		listeners, err := kernel.ListenersUnix()
		var inodes []uint64
		for _, l := range listeners {
			if l.Path == address || same(l.Path, address) {
				inodes = append(inodes, l.Inode)
			}
		}
		return inodes, err
	}
	host, service, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	port, err := strconv.ParseUint(service, 10, 16)
	if err != nil {
		return nil, fmt.Errorf("%s: a port that is a number is wanted", address)
	}
	addrs, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
	if err != nil {
		return nil, err
	}
	own, err := net.InterfaceAddrs()
	if err != nil {
		return nil, fmt.Errorf("list this machine's addresses: %w", err)
	}
	listeners, err := kernel.ListenersTCP()
	if err != nil {
		return nil, err
	}
	var inodes []uint64
	for _, addr := range addrs {
		addr = addr.Unmap()
		if addr.IsLoopback() || slices.ContainsFunc(own, func(a net.Addr) bool { return has(a, addr) }) {
			inodes = append(inodes, kernel.Listening(listeners, netip.AddrPortFrom(addr, uint16(port)))...)
		}
	}
	slices.Sort(inodes)
	return slices.Compact(inodes), nil
}

// same reports whether two paths lead to one file: /var/run is /run.
func same(a, b string) bool {
	if filepath.Base(a) != filepath.Base(b) {
		return false
	}
	x, err := os.Stat(a)
	if err != nil {
		return false
	}
	y, err := os.Stat(b)
	return err == nil && os.SameFile(x, y)
}

func has(a net.Addr, addr netip.Addr) bool {
	prefix, err := netip.ParsePrefix(a.String())
	return err == nil && prefix.Addr().Unmap() == addr
}
