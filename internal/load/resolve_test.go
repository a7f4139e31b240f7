package load

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"hakaru"
	"hakaru/internal/endpoint"
	"hakaru/internal/load/job"

	"github.com/google/go-cmp/cmp"
)

// namedHosts is a resolver of the names of the tests, with so many local ports.
func namedHosts(hosts map[string][]string, ports int) resolver {
	return resolver{
		lookup: func(_ context.Context, network, host string) (found []netip.Addr, err error) {
			for _, text := range hosts[host] {
				a := netip.MustParseAddr(text)
				if network == "ip" || network == "ip4" == a.Unmap().Is4() {
					found = append(found, a)
				}
			}
			if len(found) == 0 && len(hosts[host]) > 0 { // as the library says it
				return nil, &net.AddrError{Err: "no suitable address found", Addr: host}
			}
			if len(found) == 0 {
				return nil, &net.DNSError{Err: "no such host", Name: host, Server: "192.0.2.53:53", IsNotFound: true}
			}
			return found, nil
		},
		ports: func() (int, error) { return ports, nil },
	}
}

func TestResolve(t *testing.T) {
	l := listen(t, "tcp", "127.0.0.3:0", func(int, net.Conn) {})
	port := strconv.Itoa(l.Addr().(*net.TCPAddr).Port)
	r := namedHosts(map[string][]string{
		"one.test":  {"127.0.0.7"},
		"six.test":  {"::1"},
		"many.test": {"127.0.0.2", "127.0.0.3", "::ffff:127.0.0.2"}, // nobody listens at the first
		"both.test": {"::1", "127.0.0.3"},
		"none.test": {},
	}, 1000)
	for _, c := range []struct {
		name     string
		url      string
		change   func(*hakaru.HTTPRequest)
		want     string // NETWORK ADDRESS
		resolved []string
		sources  []string
		err      string
		hint     string
	}{
		{name: "address", url: "http://127.0.0.1:80/", want: "tcp 127.0.0.1:80"},
		{name: "address of IPv6", url: "http://[::1]/", want: "tcp [::1]:80"},
		{name: "mapped address", url: "http://[::ffff:127.0.0.1]:80/", want: "tcp 127.0.0.1:80"},
		{name: "name", url: "http://one.test:8080/", want: "tcp 127.0.0.7:8080"},
		{name: "several addresses", url: "http://many.test:" + port + "/", want: "tcp 127.0.0.3:" + port, resolved: []string{"127.0.0.2", "127.0.0.3"}},
		{name: "both families", url: "http://both.test:" + port + "/", want: "tcp 127.0.0.3:" + port, resolved: []string{"::1", "127.0.0.3"}},
		{name: "nobody accepts", url: "http://both.test:1/", want: "tcp [::1]:1", resolved: []string{"::1", "127.0.0.3"}},
		{name: "only IPv4", url: "http://both.test:1/", change: func(q *hakaru.HTTPRequest) { q.Family = 4 }, want: "tcp 127.0.0.3:1"},
		{name: "only IPv6", url: "http://both.test:1/", change: func(q *hakaru.HTTPRequest) { q.Family = 6 }, want: "tcp [::1]:1"},
		{name: "https", url: "https://one.test/", want: "tcp 127.0.0.7:443"},
		{name: "unix", url: "unix:/run/a.sock:/", want: "unix /run/a.sock"},
		{name: "connect to an address", url: "https://none.test/", change: func(q *hakaru.HTTPRequest) { q.ConnectTo = "127.0.0.1:8443" }, want: "tcp 127.0.0.1:8443"},
		{name: "connect to a name", url: "http://none.test/", change: func(q *hakaru.HTTPRequest) { q.ConnectTo = "one.test:81" }, want: "tcp 127.0.0.7:81"},
		{name: "connect to a socket", url: "https://none.test/", change: func(q *hakaru.HTTPRequest) { q.ConnectTo = "unix:/run/a.sock" }, want: "unix /run/a.sock"},
		{name: "sources", url: "http://one.test/", change: func(q *hakaru.HTTPRequest) { q.Sources = []string{"127.0.0.8", "127.0.0.9", "127.0.0.8"} },
			want: "tcp 127.0.0.7:80", sources: []string{"127.0.0.8", "127.0.0.9"}},
		{name: "sources choose the family", url: "http://both.test:1/", change: func(q *hakaru.HTTPRequest) { q.Sources = []string{"127.0.0.8"} },
			want: "tcp 127.0.0.3:1", sources: []string{"127.0.0.8"}},
		{name: "enough ports with two sources", url: "http://one.test/", change: func(q *hakaru.HTTPRequest) { q.Connections, q.Sources = 2000, []string{"127.0.0.8", "127.0.0.9"} },
			want: "tcp 127.0.0.7:80", sources: []string{"127.0.0.8", "127.0.0.9"}},

		{name: "no such name", url: "http://none.test/", err: "look up an address of none.test: no such host", hint: "getent ahosts none.test"},
		{name: "no such family", url: "http://one.test/", change: func(q *hakaru.HTTPRequest) { q.Family = 6 }, err: "look up an IPv6 address of one.test: no suitable address found", hint: "connect-to"},
		{name: "another family", url: "http://127.0.0.1/", change: func(q *hakaru.HTTPRequest) { q.Family = 6 }, err: "connect to 127.0.0.1 by IPv6: it is an IPv4 address", hint: "leave the family out"},
		{name: "a family that is none", url: "http://127.0.0.1/", change: func(q *hakaru.HTTPRequest) { q.Family = 5 }, err: "address family 5: want 4 or 6"},
		{name: "connect to no port", url: "http://a.test/", change: func(q *hakaru.HTTPRequest) { q.ConnectTo = "one.test" }, err: `connect to "one.test": it is no address`, hint: "HOST:PORT"},
		{name: "connect to a port that is none", url: "http://a.test/", change: func(q *hakaru.HTTPRequest) { q.ConnectTo = "one.test:http" }, err: `port "http" is none`, hint: "1 to 65535"},
		{name: "source that is none", url: "http://one.test/", change: func(q *hakaru.HTTPRequest) { q.Sources = []string{"lo"} }, err: "connect from lo: it is no IP address", hint: "ip -brief address"},
		{name: "another machine's source", url: "http://one.test/", change: func(q *hakaru.HTTPRequest) { q.Sources = []string{"192.0.2.1"} }, err: "connect from 192.0.2.1: cannot assign requested address", hint: "an address of this machine"},
		{name: "source of another family", url: "http://one.test/", change: func(q *hakaru.HTTPRequest) { q.Family, q.Sources = 6, []string{"127.0.0.1"} }, err: "connect from 127.0.0.1: it is IPv4, and IPv6 is asked for", hint: "family"},
		{name: "source of another family than the name's", url: "http://six.test/", change: func(q *hakaru.HTTPRequest) { q.Sources = []string{"127.0.0.1"} }, err: "look up an IPv4 address of six.test: no suitable address found", hint: "connect-to"},
		{name: "family of a socket", url: "unix:/run/a.sock", change: func(q *hakaru.HTTPRequest) { q.Family = 4 }, err: "unix socket /run/a.sock", hint: "leave them out"},
		{name: "source to a socket", url: "unix:/run/a.sock", change: func(q *hakaru.HTTPRequest) { q.Sources = []string{"127.0.0.1"} }, err: "unix socket /run/a.sock", hint: "leave them out"},
		{name: "too few ports", url: "http://one.test/", change: func(q *hakaru.HTTPRequest) { q.Connections = 1001 },
			err: "1001 connections to 127.0.0.7:80 need as many local ports, and from one source address there are 1000", hint: "at most 1000 connections; or each further source address has as many (127.0.0.2, 127.0.0.3, …); or widen"},
		{name: "too few ports with two sources", url: "http://one.test/", change: func(q *hakaru.HTTPRequest) { q.Connections, q.Sources = 2001, []string{"127.0.0.8", "127.0.0.9"} },
			err: "from 2 source addresses there are 2000", hint: "at most 2000 connections"},
	} {
		t.Run(c.name, func(t *testing.T) {
			to, err := endpoint.Parse(c.url)
			if err != nil {
				t.Fatal(err)
			}
			req := hakaru.HTTPRequest{URL: c.url, Connections: 1000}
			if c.change != nil {
				c.change(&req)
			}
			target, resolved, err := r.resolve(t.Context(), req, to)
			if c.err != "" {
				var advice interface{ Hint() string }
				hint := ""
				if errors.As(err, &advice) {
					hint = advice.Hint()
				}
				if err == nil || !strings.Contains(err.Error(), c.err) || !strings.Contains(hint, c.hint) {
					t.Errorf("error %v (hint: %s)\nwant %s (hint: %s)", err, hint, c.err, c.hint)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			var sources []string
			for _, a := range target.Sources {
				sources = append(sources, a.String())
			}
			if got := target.Network + " " + target.Address; got != c.want || !cmp.Equal(resolved, c.resolved) || !cmp.Equal(sources, c.sources) {
				t.Errorf("%s of %v from %v, want %s of %v from %v", got, resolved, sources, c.want, c.resolved, c.sources)
			}
			if (target.TLS != nil) != to.TLS {
				t.Errorf("TLS %v, want it for https only", target.TLS)
			}
		})
	}
}

// A name that stands for nothing ends the load before its start, by its type.
func TestNoSuchName(t *testing.T) {
	_, err := HTTP(t.Context(), hakaru.HTTPRequest{URL: "http://no-such-name.invalid/", Connections: 1}, short, nil)
	var name *job.NameError
	if !errors.As(err, &name) || name.Name != "no-such-name.invalid" {
		t.Errorf("error %v, want a *job.NameError", err)
	}
}

func TestLocalPorts(t *testing.T) {
	n, err := localPorts()
	if err != nil || n < 1 || n > 1<<16 {
		t.Errorf("%d local ports, %v", n, err)
	}
}

// Connections are made from the source addresses in turn, by both engines.
func TestSources(t *testing.T) {
	for _, engine := range []string{"epoll", "goroutines"} {
		t.Run(engine, func(t *testing.T) {
			var mu sync.Mutex
			from := map[string]int{}
			l := listen(t, "tcp", "127.0.0.1:0", func(_ int, c net.Conn) {
				mu.Lock()
				from[c.RemoteAddr().(*net.TCPAddr).IP.String()]++
				mu.Unlock()
				eachRequest(c, func() bool { return say(c, hello) })
			})
			report, err := HTTP(t.Context(), hakaru.HTTPRequest{URL: "http://" + l.Addr().String() + "/", Connections: 6, KeepAlive: true, Threads: 1,
				Engine: engine, Sources: []string{"127.0.0.5", "127.0.0.6", "127.0.0.7"}}, short, nil)
			if err != nil {
				t.Fatal(err)
			}
			if good, bad := kinds(report); good == 0 || len(bad) != 0 {
				t.Errorf("%d good, bad %v", good, bad)
			}
			mu.Lock()
			defer mu.Unlock()
			if d := cmp.Diff(map[string]int{"127.0.0.5": 2, "127.0.0.6": 2, "127.0.0.7": 2}, from); d != "" {
				t.Errorf("connections from (-want +got)\n%s", d)
			}
		})
	}
}

// Where to connect is one thing, what to ask for another.
func TestConnectTo(t *testing.T) {
	path := filepath.Join(t.TempDir(), "http.sock")
	for _, at := range []string{"127.0.0.1:0", path} {
		network, address := endpoint.Address(at)
		hosts := make(chan string, 1)
		l := listen(t, network, address, func(_ int, c net.Conn) {
			head := make([]byte, 4096)
			for {
				n, err := c.Read(head)
				if err != nil || !say(c, hello) {
					return
				}
				select {
				case hosts <- strings.Split(string(head[:n]), "\r\n")[1]:
				default:
				}
			}
		})
		to := l.Addr().String()
		if network == "unix" {
			to = "unix:" + to
		}
		report, err := HTTP(t.Context(), hakaru.HTTPRequest{URL: "http://no-such-name.invalid/", Connections: 2, KeepAlive: true, ConnectTo: to}, short, nil)
		if err != nil {
			t.Fatal(err)
		}
		if good, bad := kinds(report); good == 0 || len(bad) != 0 {
			t.Errorf("%s: %d good, bad %v", to, good, bad)
		}
		if host := <-hosts; host != "Host: no-such-name.invalid" {
			t.Errorf("%s: sent %q, want the URL's host", to, host)
		}
	}
}
