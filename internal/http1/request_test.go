package http1

import (
	"strings"
	"testing"

	"hakaru"
	"hakaru/internal/endpoint"

	"github.com/google/go-cmp/cmp"
)

func TestBuildRequest(t *testing.T) {
	for _, c := range []struct {
		name string
		req  hakaru.HTTPRequest
		want string
	}{
		{"plain", hakaru.HTTPRequest{KeepAlive: true},
			"GET /x HTTP/1.1\r\nHost: a:1\r\nUser-Agent: hakaru\r\n\r\n"},
		{"one connection each", hakaru.HTTPRequest{},
			"GET /x HTTP/1.1\r\nHost: a:1\r\nUser-Agent: hakaru\r\nConnection: close\r\n\r\n"},
		{"own headers, in order", hakaru.HTTPRequest{KeepAlive: true, Headers: map[string]string{"X-B": "2", "Accept": "*/*", "host": "b", "User-Agent": "c", "Connection": "Keep-Alive"}},
			"GET /x HTTP/1.1\r\nHost: b\r\nUser-Agent: c\r\nAccept: */*\r\nConnection: Keep-Alive\r\nX-B: 2\r\n\r\n"},
		{"body", hakaru.HTTPRequest{KeepAlive: true, Method: "POST", Body: "a=1", Headers: map[string]string{"Content-Type": "application/x-www-form-urlencoded"}},
			"POST /x HTTP/1.1\r\nHost: a:1\r\nUser-Agent: hakaru\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: 3\r\n\r\na=1"},
		{"POST of nothing", hakaru.HTTPRequest{KeepAlive: true, Method: "POST"},
			"POST /x HTTP/1.1\r\nHost: a:1\r\nUser-Agent: hakaru\r\nContent-Length: 0\r\n\r\n"},
		{"HEAD", hakaru.HTTPRequest{KeepAlive: true, Method: "HEAD"},
			"HEAD /x HTTP/1.1\r\nHost: a:1\r\nUser-Agent: hakaru\r\n\r\n"},
		{"OPTIONS", hakaru.HTTPRequest{KeepAlive: true, Method: "OPTIONS"},
			"OPTIONS /x HTTP/1.1\r\nHost: a:1\r\nUser-Agent: hakaru\r\n\r\n"},
		{"DELETE with a body", hakaru.HTTPRequest{KeepAlive: true, Method: "DELETE", Body: "a"},
			"DELETE /x HTTP/1.1\r\nHost: a:1\r\nUser-Agent: hakaru\r\nContent-Length: 1\r\n\r\na"},
		{"HTTP/1.0", hakaru.HTTPRequest{Version: "1.0"},
			"GET /x HTTP/1.0\r\nHost: a:1\r\nUser-Agent: hakaru\r\nConnection: close\r\n\r\n"},
		{"HTTP/1.0 kept", hakaru.HTTPRequest{Version: "1.0", KeepAlive: true},
			"GET /x HTTP/1.0\r\nHost: a:1\r\nUser-Agent: hakaru\r\nConnection: keep-alive\r\n\r\n"},
		{"HTTP/1.0 kept, said", hakaru.HTTPRequest{Version: "1.0", KeepAlive: true, Headers: map[string]string{"connection": "Keep-Alive"}},
			"GET /x HTTP/1.0\r\nHost: a:1\r\nUser-Agent: hakaru\r\nconnection: Keep-Alive\r\n\r\n"},
		{"a body that does not wait for leave", hakaru.HTTPRequest{KeepAlive: true, Method: "PUT", Body: "a", Headers: map[string]string{"Expect": "100-continue"}},
			"PUT /x HTTP/1.1\r\nHost: a:1\r\nUser-Agent: hakaru\r\nExpect: 100-continue\r\nContent-Length: 1\r\n\r\na"},
		{"no user agent", hakaru.HTTPRequest{KeepAlive: true, Headers: map[string]string{"User-Agent": ""}},
			"GET /x HTTP/1.1\r\nHost: a:1\r\n\r\n"},
	} {
		c.req.Connections = 1
		got, err := Build(c.req, endpoint.Endpoint{Host: "a:1", URI: "/x"})
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		if d := cmp.Diff(c.want, string(got.Bytes)); d != "" {
			t.Errorf("%s (-want +got)\n%s", c.name, d)
		}
	}
}

// The host of the URL is sent as it was written, an IPv6 address in brackets and
// without its zone, the port where one was written.
func TestHostOfTheURL(t *testing.T) {
	for url, want := range map[string]string{
		"http://service.test/":       "service.test",
		"http://service.test:8080/":  "service.test:8080",
		"https://service.test/":      "service.test",
		"https://service.test:8443/": "service.test:8443",
		"http://[::1]/":              "[::1]",
		"http://[::1]:8080/":         "[::1]:8080",
		"http://[fe80::1%25lo]:81/":  "[fe80::1]:81",
		"unix:/run/a.sock":           "localhost",
	} {
		to, err := endpoint.Parse(url)
		if err != nil {
			t.Fatal(err)
		}
		r, err := Build(hakaru.HTTPRequest{Connections: 1}, to)
		if err != nil || !strings.Contains(string(r.Bytes), "\r\nHost: "+want+"\r\n") {
			t.Errorf("%s: %q, %v: want Host: %s", url, r.Bytes, err, want)
		}
	}
}

// Which requests may be sent twice, and which answers have no body.
func TestMethods(t *testing.T) {
	for _, c := range []struct {
		method      string
		again, head bool
	}{{"", true, false}, {"GET", true, false}, {"HEAD", true, true}, {"PUT", true, false}, {"DELETE", true, false}, {"OPTIONS", true, false},
		{"POST", false, false}, {"PATCH", false, false}, {"get", false, false}, {"PURGE", false, false}} {
		r, err := Build(hakaru.HTTPRequest{Connections: 1, Method: c.method}, endpoint.Endpoint{Host: "a", URI: "/"})
		if err != nil || r.Again != c.again || r.Head != c.head {
			t.Errorf("%q: again %v, head %v, %v, want %v, %v", c.method, r.Again, r.Head, err, c.again, c.head)
		}
	}
	if _, err := Build(hakaru.HTTPRequest{Connections: 1, Method: "CONNECT"}, endpoint.Endpoint{Host: "a", URI: "/"}); err == nil || !strings.Contains(err.Error(), "method CONNECT") {
		t.Errorf("CONNECT: error %v, want one", err)
	}
}

func TestCredentialsOfTheURL(t *testing.T) {
	to, err := endpoint.Parse("http://me:secret@127.0.0.1:1/")
	if err != nil {
		t.Fatal(err)
	}
	r, err := Build(hakaru.HTTPRequest{Connections: 1}, to)
	if err != nil || !strings.Contains(string(r.Bytes), "Authorization: Basic bWU6c2VjcmV0\r\n") {
		t.Errorf("%q, %v: want basic credentials", r.Bytes, err)
	}
}

func TestBuildRequestTellsAllMistakes(t *testing.T) {
	_, err := Build(hakaru.HTTPRequest{
		Method:  "GET /",
		Timeout: -1,
		Headers: map[string]string{"a b": "c", "X": "y\r\nZ: w", "Content-Length": "3", "Connection": "close"},
	}, endpoint.Endpoint{})
	if err == nil {
		t.Fatal("no error")
	}
	for _, part := range []string{`method "GET /"`, "0 connections", "timeout", `header name "a b"`, "header X", "header Content-Length", "header Connection"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%q is not in\n%v", part, err)
		}
	}
}
