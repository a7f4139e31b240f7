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
