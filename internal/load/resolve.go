package load

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"hakaru"
	"hakaru/internal/endpoint"
	"hakaru/internal/load/job"
)

// acceptWithin is how long an address of several has to accept a connection.
const acceptWithin = time.Second

// resolver finds where a load connects to; tests put their own in.
type resolver struct {
	lookup func(ctx context.Context, network, host string) ([]netip.Addr, error) // network: "ip", "ip4", "ip6"
	ports  func() (int, error)                                                   // how many local ports there are; 0: not known
}

// resolve finds the one address that a load connects to, and what from. Where the
// name stands for several, resolved are all of them, and the one taken is the
// first that accepts a connection: localhost is ::1 and 127.0.0.1, and services
// are at one of them more often than at both. With none that accepts it is the
// first.
func resolve(ctx context.Context, req hakaru.HTTPRequest, to endpoint.Endpoint) (target *job.Target, resolved []string, err error) {
	return resolver{net.DefaultResolver.LookupNetIP, localPorts}.resolve(ctx, req, to)
}

func (r resolver) resolve(ctx context.Context, req hakaru.HTTPRequest, to endpoint.Endpoint) (target *job.Target, resolved []string, err error) {
	target = &job.Target{Network: to.Network, Address: to.Address}
	if req.ConnectTo != "" {
		target.Network, target.Address = endpoint.Address(req.ConnectTo)
	}
	if to.TLS {
		if target.TLS, err = tlsConfig(req.TLS, to.Hostname()); err != nil {
			return nil, nil, err
		}
	}
	if target.Network == "unix" {
		if req.Family != 0 || len(req.Sources) > 0 {
			return nil, nil, &job.TargetError{Err: fmt.Errorf("connect to the unix socket %s by an address family or from a source address", target.Address),
				Help: "leave them out: a unix socket has no addresses"}
		}
		return target, nil, nil
	}
	family, sources, err := sourcesOf(ctx, req)
	if err != nil {
		return nil, nil, err
	}
	addresses, err := r.addresses(ctx, target.Address, family)
	if err != nil {
		return nil, nil, err
	}
	if len(sources) > 0 && family == 0 { // of both families: all must be of the address's
		return nil, nil, &job.TargetError{Err: fmt.Errorf("connect from %s: they are of both families", strings.Join(req.Sources, ", ")),
			Help: "name source addresses of one family"}
	}
	target.Sources = sources
	taken, err := firstThatAccepts(ctx, addresses, sources)
	if err != nil {
		return nil, nil, err
	}
	target.Address = taken.String()
	if len(addresses) > 1 {
		for _, a := range addresses {
			resolved = append(resolved, a.Addr().String())
		}
	}
	ports, err := r.ports()
	if err != nil {
		return nil, nil, err
	}
	return target, resolved, enoughPorts(req.Connections, ports, len(sources), target.Address)
}

// sourcesOf reads the local addresses to connect from, and tries each. family is
// the one that is asked for or, where none is, theirs; 0 for both.
func sourcesOf(ctx context.Context, req hakaru.HTTPRequest) (family int, sources []netip.Addr, err error) {
	wrong := func(text, why, help string) error {
		return &job.TargetError{Err: fmt.Errorf("connect from %s: %s", text, why), Help: help}
	}
	family = req.Family
	if family != 0 && family != 4 && family != 6 {
		return 0, nil, fmt.Errorf("address family %d: want 4 or 6", family)
	}
	theirs := map[int]bool{}
	for _, text := range req.Sources {
		a, err := netip.ParseAddr(text)
		if err != nil {
			return 0, nil, wrong(text, "it is no IP address", "write an address of this machine: ip -brief address lists them")
		}
		if a = a.Unmap(); slices.Contains(sources, a) {
			continue
		}
		if req.Family != 0 && familyOf(a) != req.Family {
			return 0, nil, wrong(text, fmt.Sprintf("it is IPv%d, and IPv%d is asked for", familyOf(a), req.Family), "name source addresses of the family that is asked for")
		}
		// A socket of UDP is bound and nothing more.
		c, err := new(net.ListenConfig).ListenPacket(ctx, "udp", net.JoinHostPort(a.String(), "0"))
		if err != nil {
			return 0, nil, wrong(text, cause(err), "it has to be an address of this machine: ip -brief address lists them; every 127.x.y.z is one")
		}
		c.Close()
		sources = append(sources, a)
		theirs[familyOf(a)] = true
	}
	if family == 0 && len(theirs) == 1 {
		family = familyOf(sources[0])
	}
	return family, sources, nil
}

// cause is the innermost error's text, without the call and the address.
func cause(err error) string {
	for inner := err; inner != nil; inner = errors.Unwrap(inner) {
		err = inner
	}
	return err.Error()
}

func familyOf(a netip.Addr) int {
	if a.Is4() {
		return 4
	}
	return 6
}

// addresses are those of HOST:PORT, in the order in which they are preferred, of
// one family where it is not 0.
func (r resolver) addresses(ctx context.Context, text string, family int) ([]netip.AddrPort, error) {
	host, port, err := net.SplitHostPort(text)
	if err != nil || host == "" {
		return nil, &job.TargetError{Err: fmt.Errorf("connect to %q: it is no address", text), Help: "write HOST:PORT, [IPV6]:PORT or unix:PATH"}
	}
	number, err := strconv.ParseUint(port, 10, 16)
	if err != nil || number == 0 {
		return nil, &job.TargetError{Err: fmt.Errorf("connect to %q: port %q is none", text, port), Help: "write HOST:PORT, with a port of 1 to 65535"}
	}
	found := []netip.Addr(nil)
	if a, err := netip.ParseAddr(host); err == nil {
		if a = a.Unmap(); family != 0 && familyOf(a) != family {
			return nil, &job.TargetError{Err: fmt.Errorf("connect to %s by IPv%d: it is an IPv%d address", host, family, familyOf(a)),
				Help: fmt.Sprintf("leave the family out, and sources of IPv%d, or name an IPv%d address", family, family)}
		}
		found = append(found, a)
	} else {
		network := "ip"
		if family != 0 {
			network += strconv.Itoa(family)
		}
		all, err := r.lookup(ctx, network, host)
		if err == nil && len(all) == 0 {
			err = errors.New("it has none")
		}
		if err != nil {
			if ctx.Err() != nil {
				return nil, context.Cause(ctx)
			}
			// Without the name once more, and the server that was asked.
			if dns, is := errors.AsType[*net.DNSError](err); is {
				err = errors.New(dns.Err)
			} else if none, is := errors.AsType[*net.AddrError](err); is {
				err = errors.New(none.Err)
			}
			return nil, &job.NameError{Name: host, Family: family, Err: err}
		}
		for _, a := range all {
			if a = a.Unmap(); !slices.Contains(found, a) {
				found = append(found, a)
			}
		}
	}
	var addresses []netip.AddrPort
	for _, a := range found {
		addresses = append(addresses, netip.AddrPortFrom(a, uint16(number)))
	}
	return addresses, nil
}

// firstThatAccepts is the first address that accepts a connection, or the first
// of all; of one alone it is not asked.
func firstThatAccepts(ctx context.Context, addresses []netip.AddrPort, sources []netip.Addr) (netip.AddrPort, error) {
	if len(addresses) == 1 {
		return addresses[0], nil
	}
	for _, a := range addresses {
		probe := job.Target{Network: "tcp", Address: a.String(), Sources: sources}
		c, err := probe.Dialer(acceptWithin)(ctx)
		if err == nil {
			c.Close()
			return a, nil
		}
		if ctx.Err() != nil {
			return netip.AddrPort{}, context.Cause(ctx)
		}
	}
	return addresses[0], nil
}

// localPorts is how many ports the kernel has for connections that were bound to
// none; 0 where it does not say.
func localPorts() (int, error) {
	const path = "/proc/sys/net/ipv4/ip_local_port_range" // of IPv6 too
	text, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("read the range of local ports: %w", err)
	}
	var low, high int
	if _, err := fmt.Sscan(string(text), &low, &high); err != nil || high < low {
		return 0, fmt.Errorf("read the range of local ports: %s holds %q", path, text)
	}
	return high - low + 1, nil
}

// enoughPorts says what to do where connections to one address need more local
// ports than there are: each has one of its own, of those of its source address.
func enoughPorts(connections, ports, sources int, to string) error {
	have := ports * max(sources, 1)
	if ports == 0 || connections <= have {
		return nil
	}
	from := "one source address"
	if sources > 1 {
		from = fmt.Sprintf("%d source addresses", sources)
	}
	another := "each further source address has as many"
	if a, err := netip.ParseAddrPort(to); err == nil && a.Addr().Is4() && a.Addr().IsLoopback() {
		another += " (127.0.0.2, 127.0.0.3, …)"
	}
	return &job.TargetError{
		Err:  fmt.Errorf("%d connections to %s need as many local ports, and from %s there are %d (net.ipv4.ip_local_port_range)", connections, to, from, have),
		Help: fmt.Sprintf("use at most %d connections; or %s; or widen the range: sysctl -w net.ipv4.ip_local_port_range='1024 65535'", have, another),
	}
}
