package listen

import (
	"fmt"
	"net"
	"net/netip"

	"hakaru/internal/watch/kernel"
)

// tcpHolder says who listens on an address, as " by pid 812 (nginx)", or ""
// where the kernel does not tell (another user's process, a kernel without
// socket diagnostics).
func tcpHolder(a *net.TCPAddr) string {
	all, err := kernel.ListenersTCP()
	if err != nil {
		return ""
	}
	var inodes []uint64
	for _, l := range all {
		if blocks(l.Addr, a.AddrPort()) {
			inodes = append(inodes, l.Inode)
		}
	}
	return holder(inodes)
}

// blocks tells whether a socket at held is in the way of one at wanted.
func blocks(held, wanted netip.AddrPort) bool {
	at := wanted.Addr().Unmap().WithZone("") // the kernel tells addresses without a zone
	return held.Port() == wanted.Port() && (held.Addr() == at || held.Addr().IsUnspecified() || !at.IsValid() || at.IsUnspecified())
}

func unixHolder(path string) string {
	all, err := kernel.ListenersUnix()
	if err != nil {
		return ""
	}
	var inodes []uint64
	for _, l := range all {
		if l.Path == path {
			inodes = append(inodes, l.Inode)
		}
	}
	return holder(inodes)
}

func holder(inodes []uint64) string {
	pid, err := kernel.Holder(inodes)
	if err != nil || pid == 0 {
		return ""
	}
	s, err := kernel.ReadStat(pid)
	if err != nil {
		return fmt.Sprintf(" by pid %d", pid)
	}
	return fmt.Sprintf(" by pid %d (%s)", pid, s.Comm)
}
