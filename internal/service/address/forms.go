package address

import (
	"cmp"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"hakaru"
	"hakaru/internal/endpoint"
	"hakaru/internal/watch/kernel"
)

// Behind is the address behind a URL, in the form of hakaru.Ready.Connect.
func Behind(address string) string {
	if to, err := endpoint.Plain(address); err == nil && to.Network == "unix" {
		return "unix:" + to.Address
	}
	return address
}

// Ready is the TCP address that readiness asks, where it is written as one.
func Ready(ready hakaru.Ready) (netip.AddrPort, bool) {
	for _, text := range []string{ready.Get, ready.Connect} {
		if addr, ok := TCP(text); ok {
			return addr, true
		}
	}
	return netip.AddrPort{}, false
}

// TCP reads the address of a URL or host:port. localhost is taken for
// 127.0.0.1; other names are not looked up.
func TCP(text string) (netip.AddrPort, bool) {
	if text == "" {
		return netip.AddrPort{}, false
	}
	host := text
	if scheme, rest, ok := strings.Cut(text, "://"); ok {
		u, err := url.Parse(text)
		if err != nil {
			return netip.AddrPort{}, false
		}
		host = u.Host
		switch {
		case u.Port() != "" || scheme == "tcp" && strings.Contains(rest, ":"):
		case scheme == "http":
			host += ":80"
		case scheme == "https":
			host += ":443"
		}
	}
	if port, ok := strings.CutPrefix(host, "localhost:"); ok {
		host = "127.0.0.1:" + port
	}
	addr, err := netip.ParseAddrPort(host)
	return addr, err == nil
}

// Serving picks from a unit's sockets those at which it is asked whether it is
// ready, else those at leased addresses, else all of them.
func (a *Leases) Serving(ready hakaru.Ready, all []kernel.Listener) []kernel.Listener {
	asked := func(l kernel.Listener) bool { return false }
	if addr, ok := Ready(ready); ok {
		inodes := kernel.Listening(all, addr)
		at := func(l kernel.Listener) bool { return slices.Contains(inodes, l.Inode) }
		// Of 0.0.0.0 and [::] beside it the latter has no connection over IPv4.
		same := func(l kernel.Listener) bool { return at(l) && l.Addr.Addr().Is4() == addr.Addr().Unmap().Is4() }
		if asked = at; slices.ContainsFunc(all, same) {
			asked = same
		}
	} else if at := cmp.Or(Behind(ready.Get), ready.Connect); at != "" {
		network, file := endpoint.Address(at)
		asked = func(l kernel.Listener) bool { return network == "unix" && l.Path == file }
	}
	for _, at := range []func(kernel.Listener) bool{asked, a.Has} {
		if some := slices.DeleteFunc(slices.Clone(all), func(l kernel.Listener) bool { return !at(l) }); len(some) > 0 {
			return some
		}
	}
	return all
}
