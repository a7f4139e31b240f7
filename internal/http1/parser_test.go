package http1

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
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
	{name: "until the close, kept", text: "HTTP/1.0 200 OK\r\nConnection: keep-alive\r\n\r\nas long as it is",
		want: outcome{Status: 200, Done: true, Close: true, Reason: "OK"}},
	{name: "nothing until the close", text: "HTTP/1.1 200 OK\r\n\r\n",
		want: outcome{Status: 200, Done: true, Close: true, Reason: "OK"}},
	{name: "nothing in chunks", text: "HTTP/1.1 200 OK\r\nTransfer-Encoding: Chunked\r\n\r\n0\r\n\r\n",
		want: outcome{Status: 200, Done: true, Reason: "OK"}},
	{name: "padded chunk sizes", text: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5  \r\nhello\r\n00000\t\r\n\r\n",
		want: outcome{Status: 200, Done: true, Reason: "OK"}},
	{name: "chunks with bare line feeds", text: "HTTP/1.1 200 OK\nTransfer-Encoding: chunked\n\n5\nhello\n0\n\n",
		want: outcome{Status: 200, Done: true, Reason: "OK"}},
	{name: "a line feed within a chunk", text: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n6\r\n0\r\n\r\n1\r\n0\r\n\r\n", expect: "0\r\n\r\n1",
		want: outcome{Status: 200, Done: true, Reason: "OK", Found: true, Begin: "0\r\n\r\n1"}},
	{name: "chunk extension in quotes", text: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5;a=\"b; c\";d\r\nhello\r\n0\r\n\r\n",
		want: outcome{Status: 200, Done: true, Reason: "OK"}},
	{name: "HEAD, chunked said", head: true, text: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
		want: outcome{Status: 200, Done: true, Reason: "OK"}},
	{name: "HEAD, nothing said", head: true, text: "HTTP/1.1 200 OK\r\n\r\n",
		want: outcome{Status: 200, Done: true, Reason: "OK"}},
	{name: "HEAD of an error", head: true, text: "HTTP/1.1 404 Not Found\r\nContent-Length: 9\r\nConnection: close\r\n\r\n",
		want: outcome{Status: 404, Done: true, Close: true, Reason: "Not Found"}},
	{name: "204, chunked said", text: "HTTP/1.1 204 No Content\r\nTransfer-Encoding: chunked\r\n\r\n",
		want: outcome{Status: 204, Done: true, Reason: "No Content"}},
	{name: "204, nothing said", text: "HTTP/1.1 204 No Content\r\n\r\n",
		want: outcome{Status: 204, Done: true, Reason: "No Content"}},
	{name: "304, nothing said", text: "HTTP/1.1 304 Not Modified\r\nETag: \"x\"\r\n\r\n",
		want: outcome{Status: 304, Done: true, Reason: "Not Modified"}},
	{name: "205 has a body", text: "HTTP/1.1 205 Reset Content\r\nContent-Length: 0\r\n\r\n",
		want: outcome{Status: 205, Done: true, Reason: "Reset Content"}},
	{name: "another protocol from here on", text: "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n",
		want: outcome{Status: 101, Done: true, Close: true, Reason: "Switching Protocols"}},
	{name: "interim answer before a 204", text: "HTTP/1.1 102 Processing\n\nHTTP/1.1 204 No Content\r\n\r\n",
		want: outcome{Status: 204, Done: true, Reason: "No Content"}},
	{name: "names in any case, with space", text: "HTTP/1.1 200 OK\r\nCONTENT-LENGTH :  \t2 \r\nconnection:\tCLOSE\r\n\r\nhi",
		want: outcome{Status: 200, Done: true, Close: true, Reason: "OK"}},
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
	{name: "cut in the trailers", text: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nETag: x\r\n", want: outcome{Err: cutOff}},
	{name: "cut in a chunk size", text: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1", want: outcome{Err: cutOff}},
	{name: "shorter than its length", text: "HTTP/1.1 200 OK\r\nContent-Length: 18446744073709551\r\n\r\nhello", want: outcome{Err: cutOff}},
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
	{name: "a length that is no number", text: "HTTP/1.1 200 OK\r\nContent-Length: 0x5\r\n\r\nhello", want: outcome{Err: notHTTP}},
	{name: "two lengths in one", text: "HTTP/1.1 200 OK\r\nContent-Length: 2, 3\r\n\r\nhi!", want: outcome{Err: notHTTP}},
	{name: "chunk shorter than it said", text: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n8\r\nhello\r\n0\r\n\r\n", want: outcome{Err: notHTTP}},
	{name: "chunk size with a sign", text: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n+5\r\nhello\r\n", want: outcome{Err: notHTTP}},
	{name: "endless chunk extension", text: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5;" + strings.Repeat("y", maxHead), want: outcome{Err: notHTTP}},
	{name: "endless trailers", text: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n" + strings.Repeat("X: y\r\n", maxHead/6+1), want: outcome{Err: notHTTP}},
	{name: "endless interim answers", text: strings.Repeat("HTTP/1.1 100 Continue\r\n\r\n", maxHead/25+1), want: outcome{Err: notHTTP}},
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
				if d := cmp.Diff(c.want, parse(p, slices.Collect(slices.Chunk(text, 999))...)); d != "" {
					t.Errorf("in pieces of 999 bytes (-want +got)\n%s", d)
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
			c.name == "the same length twice" || c.name == "chunks with bare line feeds" || strings.Contains(c.text, "gzip") {
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

// A remembered head changes nothing: parsers that share a cache say of any answers,
// in any order and any pieces, what a new parser says of each.
func TestParserRemembersHeads(t *testing.T) {
	var texts []string
	for _, c := range answers {
		if len(c.text) < 1000 {
			texts = append(texts, c.text)
		}
	}
	texts = append(texts, // heads that begin, or go on, alike
		"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello",
		"HTTP/1.1 200 OK\n\nContent-Length: 5\r\n\r\nhello", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello, and more",
		"HTTP/1.1 503 OK\r\nContent-Length: 5\r\n\r\nhello", "HTTP/1.1 200 OK\r\nX: "+strings.Repeat("x", maxCached)+"\r\nContent-Length: 0\r\n\r\n")
	sequences := func(t *rapid.T) (hits int) {
		var heads HeadCache
		shared := []*Parser{{Heads: &heads}, {Heads: &heads, Head: true}, {Heads: &heads, Want: 503, Expect: []byte("ell")}}
		pool := rapid.SliceOfN(rapid.SampledFrom(texts), 1, 3).Draw(t, "pool")
		for range rapid.IntRange(1, 12).Draw(t, "answers") {
			p := shared[rapid.IntRange(0, len(shared)-1).Draw(t, "parser")]
			text := []byte(rapid.SampledFrom(pool).Draw(t, "answer"))
			var pieces [][]byte
			switch rapid.IntRange(0, 3).Draw(t, "pieces") {
			case 0:
				pieces = split(t, text)
			case 1:
				at := rapid.IntRange(0, len(text)).Draw(t, "at")
				pieces = [][]byte{text[:at], text[at:]}
			default:
				pieces = [][]byte{text}
			}
			if n := len(heads.text); n > 0 && len(pieces) > 0 && bytes.HasPrefix(pieces[0], heads.text) {
				hits++
			}
			want := parse(&Parser{Head: p.Head, Want: p.Want, Expect: p.Expect}, pieces...)
			if d := cmp.Diff(want, parse(p, pieces...)); d != "" {
				t.Fatalf("%q after %q (-new parser +sharing)\n%s", pieces, heads.text, d)
			}
		}
		return hits
	}
	hits := 0
	rapid.Check(t, func(t *rapid.T) { hits += sequences(t) })
	if hits < 50 {
		t.Errorf("%d heads were those before: the test tests little", hits)
	}
}

// What is remembered: whole final heads that are not too long.
func TestWhatIsRemembered(t *testing.T) {
	const head = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n"
	for _, c := range []struct {
		name   string
		pieces []string
		want   string
	}{
		{"head and body", []string{head + "hello"}, head},
		{"the body later", []string{head, "hello"}, head},
		{"what follows the answer", []string{head + "hello" + head}, head},
		{"a split head", []string{head[:20], head[20:] + "hello"}, ""},
		{"an interim answer", []string{"HTTP/1.1 100 Continue\r\n\r\n" + head + "hello"}, ""},
		{"a head that is wrong", []string{"HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n"}, ""},
		{"a long head", []string{strings.Replace(head, "\n", "\nX: "+strings.Repeat("x", maxCached)+"\r\n", 1) + "hello"}, ""},
	} {
		p := &Parser{}
		parse(p, bytesOf(c.pieces)...)
		if got := string(p.own.text); got != c.want {
			t.Errorf("%s: %q is remembered, want %q", c.name, got, c.want)
		}
	}
}

func bytesOf(texts []string) (pieces [][]byte) {
	for _, text := range texts {
		pieces = append(pieces, []byte(text))
	}
	return pieces
}

// Heads that change, as that with the date does each second, cost no allocation.
func TestParserDoesNotAllocate(t *testing.T) {
	texts := bytesOf([]string{
		"HTTP/1.1 200 OK\r\nDate: Mon, 30 Nov 2026 18:00:00 GMT\r\nContent-Length: 5\r\n\r\nhello",
		"HTTP/1.1 200 OK\r\nDate: Mon, 30 Nov 2026 18:00:01 GMT\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
	})
	p, n := &Parser{Expect: []byte("ell")}, 0
	if allocations := testing.AllocsPerRun(1000, func() {
		n++
		p.Reset()
		if _, done, err := p.Feed(texts[n/3%2]); !done || !p.Found {
			t.Error("not done:", err)
		}
	}); allocations != 0 {
		t.Errorf("%g allocations for an answer, want 0", allocations)
	}
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
		p := &Parser{Head: !head, Want: 999}
		parse(p, text)
		p.Head, p.Want, p.Expect = head, 0, []byte(expect)
		if d := cmp.Diff(whole, parse(p, text)); d != "" {
			t.Fatalf("with its head remembered (-whole +again)\n%s", d)
		}
	})
}

// A head that is the one before, and one that is not.
func BenchmarkParser(b *testing.B) {
	b.Run("same", func(b *testing.B) { benchmarkParser(b, false) })
	b.Run("other", func(b *testing.B) { benchmarkParser(b, true) })
}

func benchmarkParser(b *testing.B, forget bool) {
	text := []byte("HTTP/1.1 200 OK\r\nServer: nginx/1.22.1\r\nDate: Mon, 30 Nov 2026 18:00:00 GMT\r\nContent-Type: text/plain\r\nContent-Length: 6\r\nConnection: keep-alive\r\n\r\nhello\n")
	var p Parser
	b.ReportAllocs()
	for b.Loop() {
		p.Reset()
		if forget {
			p.own.text = p.own.text[:0]
		}
		if _, done, err := p.Feed(text); !done {
			b.Fatal(err)
		}
	}
}
