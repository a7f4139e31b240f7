package address

import (
	"net/netip"
	"slices"
	"strings"
	"testing"

	"hakaru"
	"hakaru/internal/watch/kernel"
)

func TestLeasesDiffer(t *testing.T) {
	var b hakaru.Bundle
	b.Units = []hakaru.Unit{{Service: "a"}, {Service: "b", Argv: []string{"-l", "{x.port}"}}}
	for _, name := range []string{"x", "y", "z"} {
		b.Leases = append(b.Leases, hakaru.Lease{Name: name})
	}
	b.Leases[1].Service = "b"
	leases, err := Take(b.Leases, b.Units, "/tmp/d")
	if err != nil {
		t.Fatal(err)
	}
	low, high := portRange()
	ports := map[uint16]bool{}
	for _, l := range leases.list {
		ports[l.port] = true
		if int(l.port) < low || int(l.port) >= high {
			t.Errorf("port %d is not in [%d, %d)", l.port, low, high)
		}
		l.release()
	}
	if len(ports) != 3 || leases.list[0].unit != 1 || leases.list[1].unit != 1 || leases.list[2].unit != 0 {
		t.Errorf("leases %v of units %d %d %d", ports, leases.list[0].unit, leases.list[1].unit, leases.list[2].unit)
	}
	b.Leases = []hakaru.Lease{{Name: "s", Unix: true}}
	// A service that something else starts and that mentions the address connects
	// to it, also where it comes first.
	mention := []hakaru.File{{Content: "to {x};"}}
	attached := hakaru.Unit{Service: "front", Attached: &hakaru.Attached{}, Files: mention}
	for _, tt := range []struct {
		name  string
		units []hakaru.Unit
		want  int
	}{
		{"attached first", []hakaru.Unit{attached, {Service: "a"}, {Service: "b", Files: mention}}, 2},
		{"attached only", []hakaru.Unit{{Service: "a"}, attached}, 1},
		{"nobody", []hakaru.Unit{{Service: "a"}, {Service: "b"}}, 0},
	} {
		if got := firstUser(tt.units, hakaru.Lease{Name: "x"}); got != tt.want {
			t.Errorf("%s: unit %d, want %d", tt.name, got, tt.want)
		}
	}
	if _, err := Take(b.Leases, b.Units, "/tmp/"+strings.Repeat("d", 100)); err == nil {
		t.Error("a path of more than 107 bytes was leased")
	}
}

func TestAddresses(t *testing.T) {
	for text, want := range map[string]string{
		"http://127.0.0.1:80/x": "127.0.0.1:80", "http://127.0.0.1/": "127.0.0.1:80", "https://[::1]/": "[::1]:443",
		"localhost:81": "127.0.0.1:81", "tcp://127.0.0.1:9": "127.0.0.1:9", "127.0.0.1:9": "127.0.0.1:9",
		"unix:/a": "", "/a/b": "", "http://example.org/": "", "": "", "http://[": "", "9": "",
	} {
		got, ok := TCP(text)
		if ok != (want != "") || ok && got.String() != want {
			t.Errorf("%q: %v, %v; want %q", text, got, ok, want)
		}
	}
}

// Of several sockets that a service listens on those count to which the load
// goes, as far as that is known.
func TestServing(t *testing.T) {
	list := []kernel.Listener{
		{Addr: netip.MustParseAddrPort("0.0.0.0:80"), Inode: 1}, {Addr: netip.MustParseAddrPort("[::]:80"), Inode: 2},
		{Addr: netip.MustParseAddrPort("127.0.0.1:8080"), Inode: 3}, {Addr: netip.MustParseAddrPort("127.0.0.1:9000"), Inode: 4},
		{Path: "/run/app.sock", Inode: 5}, {Addr: netip.MustParseAddrPort("[::]:81"), Inode: 6},
	}
	for name, tt := range map[string]struct {
		ready  hakaru.Ready
		leased uint16
		want   []uint64
	}{
		"asked over IPv4":             {hakaru.Ready{Get: "http://127.0.0.1/"}, 9000, []uint64{1}},
		"asked over IPv6":             {hakaru.Ready{Connect: "[::1]:80"}, 0, []uint64{2}},
		"a socket of both":            {hakaru.Ready{Connect: "127.0.0.1:81"}, 0, []uint64{6}},
		"asked at one address":        {hakaru.Ready{Connect: "tcp://localhost:8080"}, 0, []uint64{3}},
		"asked at a socket":           {hakaru.Ready{Get: "http://unix:/run/app.sock:/fib"}, 9000, []uint64{5}},
		"connected to a socket":       {hakaru.Ready{Connect: "unix:/run/app.sock"}, 9000, []uint64{5}},
		"asked where it is not":       {hakaru.Ready{Connect: "127.0.0.1:1"}, 9000, []uint64{4}},
		"known by its log and lease":  {hakaru.Ready{Log: "ready"}, 9000, []uint64{4}},
		"nothing is known of it":      {hakaru.Ready{Log: "ready"}, 0, []uint64{1, 2, 3, 4, 5, 6}},
		"asked by a name, not leased": {hakaru.Ready{Get: "http://app.example/"}, 0, []uint64{1, 2, 3, 4, 5, 6}},
	} {
		t.Run(name, func(t *testing.T) {
			a := &Leases{}
			if tt.leased != 0 {
				a.list = append(a.list, &lease{port: tt.leased})
			}
			var got []uint64
			for _, l := range a.Serving(tt.ready, list) {
				got = append(got, l.Inode)
			}
			if !slices.Equal(got, tt.want) {
				t.Errorf("sockets %v, want %v", got, tt.want)
			}
		})
	}
}
