package http1

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// outcome is all that the parser says about an answer.
type outcome struct {
	Status int
	Done   bool
	Close  bool
	Found  bool
	Reason string
	Begin  string
	Used   int // bytes of the answer; not compared where it is an error
	Err    string
}

// parse feeds the pieces, then the end of the connection.
func parse(p *Parser, pieces ...[]byte) outcome {
	p.Reset()
	used, done, err := 0, false, error(nil)
	for _, piece := range pieces {
		var n int
		n, done, err = p.Feed(piece)
		used += n
		if done || err != nil {
			break
		}
	}
	if !done && err == nil {
		done, err = p.EOF()
	}
	o := outcome{Status: p.Status, Done: done, Close: p.Close, Found: p.Found, Reason: p.Reason(), Begin: string(p.Begin), Used: used}
	for _, kind := range []error{ErrNotHTTP, ErrCutOff, ErrNone} {
		if errors.Is(err, kind) {
			o = outcome{Err: kind.Error()} // what was read before it is of no use
		}
	}
	return o
}

var (
	notHTTP = ErrNotHTTP.Error()
	cutOff  = ErrCutOff.Error()
	none    = ErrNone.Error()
)

var answers = []struct {
	name, text string
	head       bool
	expect     string
	want       outcome // Used 0: all of the text
}{
	{name: "plain", text: "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello",
		want: outcome{Status: 200, Done: true, Reason: "OK"}},
	{name: "no body", text: "HTTP/1.1 200 OK\r\ncontent-length:0\r\n\r\n",
		want: outcome{Status: 200, Done: true, Reason: "OK"}},
	{name: "no reason", text: "HTTP/1.1 200\r\nContent-Length: 0\r\n\r\n",
		want: outcome{Status: 200, Done: true}},
	{name: "empty reason", text: "HTTP/1.1 200 \r\nContent-Length: 0\r\n\r\n",
		want: outcome{Status: 200, Done: true}},
	{name: "bare line feeds", text: "HTTP/1.1 200 OK\nContent-Length: 2\n\nhi",
		want: outcome{Status: 200, Done: true, Reason: "OK"}},
	{name: "connection: close", text: "HTTP/1.1 200 OK\r\nConnection: foo, Close\r\nContent-Length: 2\r\n\r\nhi",
		want: outcome{Status: 200, Done: true, Close: true, Reason: "OK"}},
	{name: "HTTP/1.0 closes", text: "HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nhi",
		want: outcome{Status: 200, Done: true, Close: true, Reason: "OK"}},
	{name: "HTTP/1.0 kept", text: "HTTP/1.0 200 OK\r\nConnection: Keep-Alive\r\nContent-Length: 2\r\n\r\nhi",
		want: outcome{Status: 200, Done: true, Reason: "OK"}},
	{name: "until the close", text: "HTTP/1.1 200 OK\r\n\r\nas long as it is",
		want: outcome{Status: 200, Done: true, Close: true, Reason: "OK"}},
	{name: "chunked", text: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\nA\r\n, 23456789\r\n0\r\n\r\n",
		expect: "hello, 2", want: outcome{Status: 200, Done: true, Found: true, Reason: "OK", Begin: "hello, 23456789"}},
	{name: "chunk extensions and trailers", text: "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n5 ;a=b\r\nhello\r\n000;last\r\nETag: x\r\nY: z\r\n\r\n",
		want: outcome{Status: 200, Done: true, Reason: "OK"}},
	{name: "chunked over a length", text: "HTTP/1.1 200 OK\r\nContent-Length: 999\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n",
		want: outcome{Status: 200, Done: true, Reason: "OK"}},
	{name: "a coding whose end is the close", text: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked, gzip\r\n\r\nzzz",
		want: outcome{Status: 200, Done: true, Close: true, Reason: "OK"}},
	{name: "HEAD", head: true, text: "HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n",
		want: outcome{Status: 200, Done: true, Reason: "OK"}},
	{name: "204", text: "HTTP/1.1 204 No Content\r\nContent-Length: 9\r\n\r\n",
		want: outcome{Status: 204, Done: true, Reason: "No Content"}},
	{name: "304", text: "HTTP/1.1 304 Not Modified\r\nContent-Length: 9\r\n\r\n",
		want: outcome{Status: 304, Done: true, Reason: "Not Modified"}},
	{name: "interim answers", text: "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nContent-Length: 9\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi",
		want: outcome{Status: 200, Done: true, Reason: "OK"}},
	{name: "folded header", text: "HTTP/1.1 200 OK\r\nX: a\r\n b: c\r\nContent-Length: 2\r\n\r\nhi",
		want: outcome{Status: 200, Done: true, Reason: "OK"}},
	{name: "the same length twice", text: "HTTP/1.1 200 OK\r\nContent-Length: 2, 2\r\nContent-Length: 2\r\n\r\nhi",
		want: outcome{Status: 200, Done: true, Reason: "OK"}},
	{name: "more than the answer", text: "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi there",
		want: outcome{Status: 200, Done: true, Reason: "OK", Used: 40}},
	{name: "bad gateway", text: "HTTP/1.1 502 Bad Gateway\r\nContent-Length: 4\r\n\r\noops",
		want: outcome{Status: 502, Done: true, Reason: "Bad Gateway", Begin: "oops"}},
	{name: "64 KiB of headers", text: "HTTP/1.1 200 OK\r\n" + strings.Repeat("X-Pad: "+strings.Repeat("y", 1000)+"\r\n", 65) + "Content-Length: 2\r\n\r\nhi",
		want: outcome{Status: 200, Done: true, Reason: "OK"}},
	{name: "text not there", text: "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", expect: "hallo",
		want: outcome{Status: 200, Done: true, Reason: "OK", Begin: "hello"}},

	{name: "nothing", text: "", want: outcome{Err: none}},
	{name: "cut in the status", text: "HTTP/1.1 20", want: outcome{Err: cutOff}},
	{name: "cut in the headers", text: "HTTP/1.1 200 OK\r\nContent-", want: outcome{Err: cutOff}},
	{name: "cut in the body", text: "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhel", want: outcome{Err: cutOff}},
	{name: "cut before the body", text: "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", want: outcome{Err: cutOff}},
	{name: "cut in a chunk", text: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhel", want: outcome{Err: cutOff}},
	{name: "cut before the last chunk", text: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n", want: outcome{Err: cutOff}},
	{name: "cut after an interim answer", text: "HTTP/1.1 100 Continue\r\n\r\n", want: outcome{Err: cutOff}},
	{name: "another protocol", text: "SSH-2.0-OpenSSH_9.2\r\n", want: outcome{Err: notHTTP}},
	{name: "another protocol that waits", text: "5.5.5-10.11\x00\x01", want: outcome{Err: notHTTP}},
	{name: "HTTP/2", text: "HTTP/2 200 OK\r\n\r\n", want: outcome{Err: notHTTP}},
	{name: "HTTP/0.9", text: "<html>hello</html>", want: outcome{Err: notHTTP}},
	{name: "status of two digits", text: "HTTP/1.1 20 OK\r\n\r\n", want: outcome{Err: notHTTP}},
	{name: "status of four digits", text: "HTTP/1.1 2000 OK\r\n\r\n", want: outcome{Err: notHTTP}},
	{name: "status 099", text: "HTTP/1.1 099 OK\r\n\r\n", want: outcome{Err: notHTTP}},
	{name: "header without a name", text: "HTTP/1.1 200 OK\r\n: x\r\n\r\n", want: outcome{Err: notHTTP}},
	{name: "header without a colon", text: "HTTP/1.1 200 OK\r\nhello\r\n\r\n", want: outcome{Err: notHTTP}},
	{name: "two lengths", text: "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nhi!", want: outcome{Err: notHTTP}},
	{name: "negative length", text: "HTTP/1.1 200 OK\r\nContent-Length: -2\r\n\r\n", want: outcome{Err: notHTTP}},
	{name: "endless length", text: "HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\n", want: outcome{Err: notHTTP}},
	{name: "empty length", text: "HTTP/1.1 200 OK\r\nContent-Length:\r\n\r\n", want: outcome{Err: notHTTP}},
	{name: "chunk size that is none", text: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n", want: outcome{Err: notHTTP}},
	{name: "chunk size with a tail", text: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5 5\r\nhello\r\n", want: outcome{Err: notHTTP}},
	{name: "endless chunk", text: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\n", want: outcome{Err: notHTTP}},
	{name: "chunk longer than it said", text: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhello\r\n0\r\n\r\n", want: outcome{Err: notHTTP}},
	{name: "empty chunk size", text: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n\r\nhi", want: outcome{Err: notHTTP}},
	{name: "endless header", text: "HTTP/1.1 200 OK\r\nX: " + strings.Repeat("y", maxHead), want: outcome{Err: notHTTP}},
	{name: "endless headers", text: "HTTP/1.1 200 OK\r\n" + strings.Repeat("X: y\r\n", maxHead/6+1), want: outcome{Err: notHTTP}},
}

func TestParser(t *testing.T) {
	for _, c := range answers {
		t.Run(c.name, func(t *testing.T) {
			p := &Parser{Head: c.head, Expect: []byte(c.expect)}
			if c.want.Err == "" && c.want.Used == 0 {
				c.want.Used = len(c.text)
			}
			text := []byte(c.text)
			if d := cmp.Diff(c.want, parse(p, text)); d != "" {
				t.Fatalf("in one piece (-want +got)\n%s", d)
			}
			if len(text) > 10_000 { // every split of these would take a while
				pieces := bytes.SplitAfter(text, []byte("\n"))
				if d := cmp.Diff(c.want, parse(p, pieces...)); d != "" {
					t.Errorf("line by line (-want +got)\n%s", d)
				}
				return
			}
			for i := range text {
				if d := cmp.Diff(c.want, parse(p, text[:i], text[i:])); d != "" {
					t.Fatalf("split at byte %d (-want +got)\n%s", i, d)
				}
			}
			if d := cmp.Diff(c.want, parse(p, bytewise(text)...)); d != "" {
				t.Errorf("byte by byte (-want +got)\n%s", d)
			}
		})
	}
}

func bytewise(text []byte) [][]byte {
	pieces := make([][]byte, len(text))
	for i := range text {
		pieces[i] = text[i : i+1]
	}
	return pieces
}

// The Go library agrees about every answer that both accept.
func TestParserAgreesWithNetHTTP(t *testing.T) {
	for _, c := range answers {
		method := "GET"
		if c.head {
			method = "HEAD"
		}
		if strings.HasPrefix(c.text, "HTTP/1.1 1") || c.want.Err != "" || c.name == "no reason" ||
			c.name == "the same length twice" || strings.Contains(c.text, "gzip") {
			// net/http hands interim answers on, knows no other coding, and refuses
			continue
		}
		r := bufio.NewReader(strings.NewReader(c.text))
		res, err := http.ReadResponse(r, &http.Request{Method: method})
		if err != nil {
			t.Errorf("%s: net/http: %v", c.name, err)
			continue
		}
		body, err := io.ReadAll(res.Body)
		if err != nil {
			t.Errorf("%s: net/http: %v", c.name, err)
		}
		got := parse(&Parser{Head: c.head, Want: 999}, []byte(c.text)) // 999: every body may be a bad one
		if got.Status != res.StatusCode || got.Begin != string(body[:min(len(body), beginning)]) {
			t.Errorf("%s: %d %q, net/http says %d %q", c.name, got.Status, got.Begin, res.StatusCode, body)
		}
		if left, _ := io.ReadAll(r); len(left) != len(c.text)-got.Used {
			t.Errorf("%s: %d bytes left, net/http leaves %d", c.name, len(c.text)-got.Used, len(left))
		}
	}
}

func split(t *rapid.T, text []byte) [][]byte {
	var pieces [][]byte
	for len(text) > 0 {
		n := rapid.IntRange(1, min(len(text), 40)).Draw(t, "piece")
		pieces = append(pieces, text[:n])
		text = text[n:]
	}
	return pieces
}

// Whatever the body, however it is chunked and however it arrives: the answer
// ends where it ends, and the text is found where strings.Contains finds it.
func TestParserFindsText(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		letters := rapid.SliceOfN(rapid.SampledFrom([]byte("ab")), 0, 60)
		body := letters.Draw(t, "body")
		expect := rapid.SliceOfN(rapid.SampledFrom([]byte("ab")), 1, 8).Draw(t, "expect")
		var b bytes.Buffer
		b.WriteString("HTTP/1.1 200 OK\r\n")
		switch rapid.SampledFrom([]string{"length", "chunks"}).Draw(t, "framing") {
		case "length":
			fmt.Fprintf(&b, "Content-Length: %d\r\n\r\n%s", len(body), body)
		case "chunks":
			b.WriteString("Transfer-Encoding: chunked\r\n\r\n")
			for _, chunk := range split(t, body) {
				fmt.Fprintf(&b, "%x\r\n%s\r\n", len(chunk), chunk)
			}
			b.WriteString("0\r\n\r\n")
		}
		got := parse(&Parser{Expect: expect}, split(t, b.Bytes())...)
		want := outcome{Status: 200, Done: true, Reason: "OK", Begin: string(body),
			Found: bytes.Contains(body, expect), Used: b.Len()}
		if d := cmp.Diff(want, got); d != "" {
			t.Fatalf("%q in %q (-want +got)\n%s", expect, b.Bytes(), d)
		}
	})
}

// Any bytes, however they are split, give the same outcome as in one piece.
func FuzzParser(f *testing.F) {
	for _, c := range answers {
		if len(c.text) < 1000 {
			f.Add([]byte(c.text), uint8(3), c.head, c.expect)
		}
	}
	f.Fuzz(func(t *testing.T, text []byte, size uint8, head bool, expect string) {
		if len(expect) > 50 || len(text) > 5000 {
			return
		}
		whole := parse(&Parser{Head: head, Expect: []byte(expect)}, text)
		if whole.Done == (whole.Err != "") {
			t.Fatalf("neither done nor an error, or both: %+v", whole)
		}
		if whole.Used > len(text) {
			t.Fatalf("%d of %d bytes used", whole.Used, len(text))
		}
		var pieces [][]byte
		for rest := text; len(rest) > 0; {
			n := min(int(size)%16+1, len(rest))
			pieces = append(pieces, rest[:n])
			rest = rest[n:]
		}
		if d := cmp.Diff(whole, parse(&Parser{Head: head, Expect: []byte(expect)}, pieces...)); d != "" {
			t.Fatalf("in pieces (-whole +pieces)\n%s", d)
		}
		if d := cmp.Diff(whole, parse(&Parser{Head: head, Expect: []byte(expect)}, bytewise(text)...)); d != "" {
			t.Fatalf("byte by byte (-whole +bytes)\n%s", d)
		}
	})
}

func BenchmarkParser(b *testing.B) {
	text := []byte("HTTP/1.1 200 OK\r\nServer: nginx/1.22.1\r\nDate: Mon, 30 Nov 2026 18:00:00 GMT\r\nContent-Type: text/plain\r\nContent-Length: 6\r\nConnection: keep-alive\r\n\r\nhello\n")
	var p Parser
	b.ReportAllocs()
	for b.Loop() {
		p.Reset()
		if _, done, err := p.Feed(text); !done {
			b.Fatal(err)
		}
	}
}
