package endpoint

import (
	"strings"
	"testing"
)

func TestParse(t *testing.T) {
	for _, c := range []struct {
		text, network, address, host, uri string
		tls                               bool
		err                               string
	}{
		{text: "http://127.0.0.1:8080/a?b=c", network: "tcp", address: "127.0.0.1:8080", host: "127.0.0.1:8080", uri: "/a?b=c"},
		{text: "http://127.0.0.1:8080", network: "tcp", address: "127.0.0.1:8080", host: "127.0.0.1:8080", uri: "/"},
		{text: "http://localhost/a b", network: "tcp", address: "localhost:80", host: "localhost", uri: "/a%20b"},
		{text: "http://[::1]:81/#part", network: "tcp", address: "[::1]:81", host: "[::1]:81", uri: "/"},
		{text: "tcp://127.0.0.1:1/x", network: "tcp", address: "127.0.0.1:1", host: "127.0.0.1:1", uri: "/x"},
		{text: "unix:/run/a.sock", network: "unix", address: "/run/a.sock", host: "localhost", uri: "/"},
		{text: "unix:/run/a.sock:/x?y", network: "unix", address: "/run/a.sock", host: "localhost", uri: "/x?y"},
		{text: "unix:/run/a.sock/x", network: "unix", address: "/run/a.sock", host: "localhost", uri: "/x"},
		{text: "unix:/run/app/http:/x", network: "unix", address: "/run/app/http", host: "localhost", uri: "/x"},
		{text: "unix:///run/a.socket/x", network: "unix", address: "/run/a.socket", host: "localhost", uri: "/x"},
		{text: "http://unix:/run/a.sock:/x", network: "unix", address: "/run/a.sock", host: "localhost", uri: "/x"},
		{text: "http+unix://%2Frun%2Fa.sock/x/y", network: "unix", address: "/run/a.sock", host: "localhost", uri: "/x/y"},
		{text: "http:///run/a.sock/x", network: "unix", address: "/run/a.sock", host: "localhost", uri: "/x"},
		{text: "http:///run/a.socket/", network: "unix", address: "/run/a.socket", host: "localhost", uri: "/"},
		{text: "https://service.test/x", network: "tcp", address: "service.test:443", host: "service.test", uri: "/x", tls: true},
		{text: "https://[::1]:8443", network: "tcp", address: "[::1]:8443", host: "[::1]:8443", uri: "/", tls: true},
		{text: "http://[::1]", network: "tcp", address: "[::1]:80", host: "[::1]", uri: "/"},
		{text: "http://[fe80::1%25lo]:81/", network: "tcp", address: "[fe80::1%lo]:81", host: "[fe80::1]:81", uri: "/"},
		{text: "https:///run/a.sock/x", err: "names no host"},
		{text: "https://a:0/", err: "port 0 is none"},
		{text: "ftp://127.0.0.1/", err: "want http://HOST:PORT/PATH, https://HOST:PORT/PATH or unix:SOCKET:/PATH"},
		{text: "127.0.0.1:8080/", err: "URL"},
		{text: "http:///x", err: "names no host"},
		{text: "http://a:99999/", err: "port"},
		{text: "unix:", err: "names no socket"},
		{text: "http+unix://%zz/x", err: "escape"},
	} {
		got, err := Parse(c.text)
		if c.err != "" {
			if err == nil || !strings.Contains(err.Error(), c.err) {
				t.Errorf("%s: error %v, want %q in it", c.text, err, c.err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", c.text, err)
			continue
		}
		got.User = nil
		want := Endpoint{Network: c.network, Address: c.address, Host: c.host, URI: c.uri, TLS: c.tls}
		if got != want {
			t.Errorf("%s: %+v, want %+v", c.text, got, want)
		}
	}
}

func TestPlain(t *testing.T) {
	if to, err := Plain("http://a:1/x"); err != nil || to.Address != "a:1" {
		t.Errorf("%+v, %v: want what Parse says", to, err)
	}
	if _, err := Plain("https://a:1/x"); err == nil || !strings.Contains(err.Error(), "TLS is not supported here") {
		t.Errorf("error %v: want TLS refused", err)
	}
}

// TestPasswords: no error says a password, nor a part of it.
func TestPasswords(t *testing.T) {
	for _, text := range []string{
		"http://user:GEH EIM@h/", "http://user:GEH/EIM@h/", "http://user:GEH#EIM@h/", "http://user:GEH?EIM@h/", "http://user:GEH%EIM@h/",
		"http://user:GEHEIM@h:0/", "ftp://user:GEHEIM@h/", "user:GEHEIM@h", "https://user:GEH@EIM@h:x/", "http+unix://user:GEH%EIM@h/",
	} {
		_, err := Parse(text)
		if err == nil || strings.Contains(err.Error(), "GEH") || strings.Contains(err.Error(), "EIM") || !strings.Contains(err.Error(), "***@h") {
			t.Errorf("%s: error %v: want one without the password", text, err)
		}
	}
	if _, err := Plain("https://user:GEHEIM@h/"); err == nil || strings.Contains(err.Error(), "GEHEIM") {
		t.Errorf("error %v: want one without the password", err)
	}
}

func TestHostname(t *testing.T) {
	for text, want := range map[string]string{
		"https://service.test:8443/": "service.test", "https://service.test": "service.test",
		"https://[::1]:8443/": "::1", "http://127.0.0.1:80/": "127.0.0.1", "unix:/run/a.sock": "localhost",
	} {
		to, err := Parse(text)
		if err != nil || to.Hostname() != want {
			t.Errorf("%s: %q, %v, want %q", text, to.Hostname(), err, want)
		}
	}
}

func TestAddress(t *testing.T) {
	for text, want := range map[string]string{
		"unix:/a/b": "unix /a/b", "unix:///a/b": "unix /a/b", "/a": "unix /a", "@a": "unix @a",
		"h:1": "tcp h:1", "tcp://h:1": "tcp h:1",
	} {
		if network, address := Address(text); network+" "+address != want {
			t.Errorf("%q: %s %s, want %s", text, network, address, want)
		}
	}
}
