// Package endpoint reads the URLs of load, readiness and proofs: HTTP, with TLS or
// not, over TCP or over a unix socket, in the forms that people know from curl, nginx and hakaru's
// own leased sockets. It takes a text and gives where to connect and what to ask
// for; it connects to nothing.
package endpoint

import (
	"fmt"
	"net/url"
	"strconv"
	"strings"
)

// Endpoint is where to connect and what to ask for there.
type Endpoint struct {
	Network string // for a dialer: "tcp" or "unix"
	Address string
	Host    string // the Host field
	URI     string // the request target
	User    *url.Userinfo
	TLS     bool // https
}

// Hostname is the host alone, without port and brackets, as certificates name it.
func (e Endpoint) Hostname() string {
	u := url.URL{Host: e.Host}
	return u.Hostname()
}

// Plain is Parse for whoever does not speak TLS.
func Plain(text string) (Endpoint, error) {
	to, err := Parse(text)
	if err == nil && to.TLS {
		return Endpoint{}, fmt.Errorf("URL %q: TLS is not supported here", masked(text))
	}
	return to, err
}

// Parse reads the forms of a URL:
//
//	http://host:port/path                https:// for TLS
//	http+unix://%2Frun%2Fapp.sock/path   the socket's path escaped as the host
//	unix:/run/app.sock:/path             also http://unix:/run/app.sock:/path, as nginx writes it
//	unix:/run/app.sock/path              where a part of the path ends in ".sock" or ".socket"
//	http:///run/app.sock/path            so that http://{socket}/path works whatever the socket is
//	tcp://host:port/path                 … and {socket.url}/path
//
// Over a unix socket there is no TLS.
func Parse(text string) (Endpoint, error) {
	for _, prefix := range []string{"unix:", "http://unix:"} {
		if rest, ok := strings.CutPrefix(text, prefix); ok {
			return overUnix(text, strings.TrimPrefix(rest, "//"))
		}
	}
	if rest, ok := strings.CutPrefix(text, "http+unix://"); ok {
		host, path, _ := strings.Cut(rest, "/")
		socket, err := url.PathUnescape(host)
		if err != nil {
			return Endpoint{}, fmt.Errorf("URL %q: %w", masked(text), err)
		}
		return overUnix(text, socket+":/"+path)
	}
	u, err := url.Parse(text)
	if err != nil {
		if strings.Contains(text, "@") { // err may hold a part of the password: user:p/w@h has the port p
			return Endpoint{}, fmt.Errorf("URL %q cannot be read: percent-encode what is no letter or digit in its user and password, / as %%2F", masked(text))
		}
		return Endpoint{}, fmt.Errorf("URL: %w", err) // url.Error names it
	}
	switch u.Scheme {
	case "http", "https", "tcp":
	default:
		return Endpoint{}, fmt.Errorf("URL %q: want http://HOST:PORT/PATH, https://HOST:PORT/PATH or unix:SOCKET:/PATH", masked(text))
	}
	if u.Scheme != "https" && u.Host == "" && strings.Contains(u.Path, ".sock") {
		return overUnix(text, strings.TrimPrefix(text, u.Scheme+"://"))
	}
	if u.Hostname() == "" {
		return Endpoint{}, fmt.Errorf("URL %q names no host", masked(text))
	}
	port := u.Port()
	switch {
	case port != "":
	case u.Scheme == "https":
		port = "443"
	default:
		port = "80"
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
		return Endpoint{}, fmt.Errorf("URL %q: port %s is none", masked(text), port)
	}
	secure := u.Scheme == "https"
	if u.Scheme == "tcp" {
		u.Scheme = "http"
	}
	return Endpoint{
		Network: "tcp",
		Address: join(u.Hostname(), port),
		Host:    withoutZone(u.Host),
		URI:     u.RequestURI(),
		User:    u.User,
		TLS:     secure,
	}, nil
}

// Address reads the forms of an address, without a path to ask for: tcp://host:port,
// host:port, unix:/path, unix:///path, a path, or @name of the abstract namespace.
func Address(text string) (network, address string) {
	if path, ok := strings.CutPrefix(text, "unix:"); ok {
		return "unix", "/" + strings.TrimLeft(path, "/")
	}
	if strings.HasPrefix(text, "/") || strings.HasPrefix(text, "@") {
		return "unix", text
	}
	return "tcp", strings.TrimPrefix(text, "tcp://")
}

// overUnix splits SOCKET:/PATH, or SOCKET/PATH after a part that looks like a
// socket.
func overUnix(text, rest string) (Endpoint, error) {
	socket, path := rest, "/"
	if before, after, ok := strings.Cut(rest, ":/"); ok {
		socket, path = before, "/"+after
	} else {
		for _, suffix := range []string{".sock/", ".socket/"} {
			if before, after, ok := strings.Cut(rest, suffix); ok {
				socket, path = before+strings.TrimSuffix(suffix, "/"), "/"+after
				break
			}
		}
	}
	if socket == "" {
		return Endpoint{}, fmt.Errorf("URL %q names no socket", masked(text))
	}
	u, err := url.Parse("http://localhost" + path)
	if err != nil {
		return Endpoint{}, fmt.Errorf("URL %q: %w", masked(text), err)
	}
	return Endpoint{Network: "unix", Address: socket, Host: "localhost", URI: u.RequestURI()}, nil
}

// masked is a URL without what may be its user and password, as errors name it. Of
// one that does not parse nobody can say where a password ends: before the last @.
func masked(text string) string {
	at := strings.LastIndexByte(text, '@')
	if at < 0 {
		return text
	}
	for _, scheme := range []string{"http://", "https://", "tcp://", "unix:"} {
		if strings.HasPrefix(text, scheme) && at >= len(scheme) {
			return scheme + "***" + text[at:]
		}
	}
	return "***" + text[at:]
}

// withoutZone takes the zone out of [fe80::1%eth0]:80: it says something to this
// machine only, and is never sent (RFC 6874 §4).
func withoutZone(host string) string {
	zone := strings.IndexByte(host, '%')
	if end := strings.IndexByte(host, ']'); strings.HasPrefix(host, "[") && zone > 0 && zone < end {
		return host[:zone] + host[end:]
	}
	return host
}

// join is net.JoinHostPort, which this floor does not import.
func join(host, port string) string {
	if strings.Contains(host, ":") {
		return "[" + host + "]:" + port
	}
	return host + ":" + port
}
