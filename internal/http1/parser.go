package http1

import (
	"bytes"
	"errors"
	"fmt"
)

// maxHead bounds one answer's status line and headers together, and each
// chunk's size line, and the trailers. Real heads stay below 64 KiB.
const maxHead = 256 << 10

// maxCached bounds the heads that are remembered: longer ones are rare, and would
// be copied each time that they change.
const maxCached = 4 << 10

// beginning is how much of a body is kept for words about a bad answer.
const beginning = 160

// Errors of the parser. Each is wrapped with what was seen.
var (
	ErrNotHTTP = errors.New("not an HTTP answer")
	ErrCutOff  = errors.New("the answer was cut off")
	ErrNone    = errors.New("the connection was closed without an answer")
)

type parserState uint8

const (
	inStatus parserState = iota
	inHeader
	inBody      // remaining bytes
	inChunkSize // the line
	inChunk     // remaining bytes
	inChunkEnd  // the line end after a chunk's bytes
	inTrailer
	inRest // until the connection closes
	isDone
	isBroken
)

// Parser reads one HTTP/1.x answer, in whatever pieces it arrives (RFC 9112).
// It holds no bytes but a line that was split, the beginning of the body, and
// where a text is looked for as much of the body as could be the start of it.
// Every engine uses it; it reads from nowhere itself.
//
// It is as lenient as servers need (bare LF, folded headers, a missing reason,
// repeated equal lengths) and strict where an answer's end is at stake.
type Parser struct {
	Head   bool   // the request was HEAD: no body whatever the headers say
	Want   int    // the expected status, 0: any 2xx
	Expect []byte // looked for in the body, where set
	// Heads is where the last head is remembered, shared by the parsers of one
	// thread; nil: this parser's own.
	Heads *HeadCache

	state     parserState
	Found     bool // expect was in the body
	Close     bool // the connection cannot be used again
	Got       bool // a byte of the answer has come
	headBytes int
	remaining uint64
	err       error
	said
	own HeadCache

	part  []byte // of a line that was split
	carry []byte // end of the body so far, shorter than expect
	Begin []byte // beginning of the body, where the answer may be a bad one
	keep  bool   // it may
}

// said is what a head says.
type said struct {
	Status    int
	length    uint64
	hasLength bool
	chunked   bool
	otherTE   bool // a transfer coding whose end is the connection's
	oldHTTP   bool // HTTP/1.0
	keepAlive bool
	closing   bool
	phrase
}

// HeadCache remembers the last head and what it says. A service that is asked the
// same thing over and over says the same thing, but for the date once a second:
// comparing a head with the one before costs a tenth of reading it. It is for one
// goroutine at a time; the zero value is ready.
//
// Only a head that came in one piece is remembered and recognized, and no interim
// one. What it means for a request (HEAD, the expected status) is worked out each
// time, so that parsers of different requests may share a cache.
type HeadCache struct {
	text []byte // with the empty line; nil: none
	said said
}

// recognize returns the length of the head that b begins with, and what it says
// in p, where it is the last one; 0 otherwise. Since the head remembered ends with
// the first empty line in it, so does the one of b.
func (c *HeadCache) recognize(b []byte, p *said) int {
	n := len(c.text)
	if n == 0 || len(b) < n || string(b[:n]) != string(c.text) {
		return 0
	}
	*p = c.said
	return n
}

// remember takes in a head that was read.
func (c *HeadCache) remember(head []byte, said *said) {
	if len(head) <= maxCached {
		c.text, c.said = append(c.text[:0], head...), *said
	}
}

// phrase is the reason of the status line, cut to fit.
type phrase struct {
	text [40]byte
	n    int
}

func (p *phrase) set(b []byte) { p.n = copy(p.text[:], b) }

// Reason is that of the status line, cut to 40 bytes; empty where there is none.
func (p *phrase) Reason() string { return string(p.text[:p.n]) }

// Remaining is how many bytes of the body, or of the chunk, are known to be still
// to come.
func (p *Parser) Remaining() uint64 { return p.remaining }

// Reset makes p ready for the next answer and keeps its memory and what the
// request asks for.
func (p *Parser) Reset() {
	p.state, p.Found, p.Close, p.Got = inStatus, false, false, false
	p.headBytes, p.remaining, p.err = 0, 0, nil
	p.part, p.carry, p.Begin = p.part[:0], p.carry[:0], p.Begin[:0]
	p.forget()
	p.Status, p.closing, p.n = 0, false, 0
}

// forget is for between an interim answer (1xx) and the final one: what its head
// said of its body.
func (p *Parser) forget() {
	p.length, p.hasLength, p.chunked, p.otherTE, p.oldHTTP, p.keepAlive = 0, false, false, false, false, false
}

// Feed takes the next bytes and returns how many of them belong to this answer
// and whether it is complete. Bytes after the end are not looked at.
func (p *Parser) Feed(b []byte) (n int, done bool, err error) {
	unknown := false // b begins with a head that is not the last one
	if !p.Got && len(b) > 0 {
		p.Got = true
		if p.Heads == nil {
			p.Heads = &p.own
		}
		n = p.Heads.recognize(b, &p.said)
		if unknown = n == 0; !unknown {
			p.headBytes = n
			p.headEnd()
		}
	}
	for n < len(b) && p.state < isDone {
		switch p.state {
		case inBody, inChunk:
			take := min(uint64(len(b)-n), p.remaining)
			p.body(b[n : n+int(take)])
			n += int(take)
			p.remaining -= take
			if p.remaining == 0 {
				if p.state == inBody {
					p.state = isDone
				} else {
					p.state = inChunkEnd
				}
			}
		case inRest:
			p.body(b[n:])
			n = len(b)
		default:
			n += p.line(b[n:])
			if unknown && p.state != inHeader { // the head is over
				unknown = false
				if p.state != inStatus && p.state != isBroken {
					p.Heads.remember(b[:n], &p.said)
				}
			}
		}
	}
	return n, p.state == isDone, p.err
}

// EOF says that the connection has ended: the end of an answer without a
// length, and otherwise an error.
func (p *Parser) EOF() (done bool, err error) {
	switch {
	case p.state == isDone || p.state == isBroken:
	case p.state == inRest:
		p.state = isDone
	case !p.Got:
		p.fail(ErrNone, "")
	default:
		p.fail(ErrCutOff, p.where())
	}
	return p.state == isDone, p.err
}

// Wanted reports whether the status is the expected one.
func (p *Parser) Wanted() bool {
	if p.Want == 0 {
		return p.Status/100 == 2
	}
	return p.Status == p.Want
}

func (p *Parser) where() string {
	switch p.state {
	case inStatus, inHeader:
		return "within the head"
	case inBody:
		return fmt.Sprintf("%d bytes of the body missing", p.remaining)
	default:
		return "within a chunked body"
	}
}

func (p *Parser) fail(err error, detail string) {
	p.state, p.Close = isBroken, true
	if detail == "" {
		p.err = err
	} else {
		p.err = fmt.Errorf("%w: %s", err, detail)
	}
}

// line takes bytes up to and with the next line end, and acts on the line once
// it is whole. It returns how many it took.
func (p *Parser) line(b []byte) int {
	end := bytes.IndexByte(b, '\n')
	took := end + 1
	if end < 0 {
		took = len(b)
	}
	p.headBytes += took
	if p.headBytes > maxHead {
		p.fail(ErrNotHTTP, fmt.Sprintf("a head of more than %d bytes", maxHead))
		return took
	}
	if end < 0 {
		p.part = append(p.part, b...)
		p.doubt()
		return took
	}
	line := b[:end]
	if len(p.part) > 0 {
		p.part = append(p.part, line...)
		line = p.part
		p.part = p.part[:0] // line is used up before part is written again
	}
	if len(line) > 0 && line[len(line)-1] == '\r' {
		line = line[:len(line)-1]
	}
	switch p.state {
	case inStatus:
		p.statusLine(line)
	case inHeader:
		if len(line) == 0 {
			p.headEnd()
		} else {
			p.header(line)
		}
	case inChunkSize:
		p.chunkSize(line)
	case inChunkEnd:
		if len(line) != 0 {
			p.fail(ErrNotHTTP, fmt.Sprintf("a chunk longer than it said: %.20q follows", line))
			break
		}
		p.state, p.headBytes = inChunkSize, 0
	case inTrailer:
		if len(line) == 0 {
			p.state = isDone
		}
	}
	return took
}

// doubt gives up on the beginning of a line that can become nothing, so that a
// peer that says something else and then waits is an error, not a timeout.
func (p *Parser) doubt() {
	const version = "HTTP/1."
	switch p.state {
	case inStatus:
		if n := min(len(p.part), len(version)); string(p.part[:n]) != version[:n] {
			p.notHTTP(p.part)
		}
	case inChunkEnd:
		if string(p.part) != "\r" {
			p.fail(ErrNotHTTP, fmt.Sprintf("a chunk longer than it said: %.20q follows", p.part))
		}
	case inChunkSize:
		if c := p.part[0]; hexDigit(c) < 0 && c != '\r' {
			p.fail(ErrNotHTTP, fmt.Sprintf("a chunk size that is none: %.20q", p.part))
		}
	}
}

func (p *Parser) notHTTP(line []byte) {
	p.fail(ErrNotHTTP, fmt.Sprintf("it begins %.60q", line))
}

// statusLine reads "HTTP/1.x NNN reason".
func (p *Parser) statusLine(line []byte) {
	if len(line) < 12 || string(line[:7]) != "HTTP/1." || line[7] < '0' || line[7] > '9' || line[8] != ' ' ||
		len(line) > 12 && line[12] != ' ' {
		p.notHTTP(line)
		return
	}
	status := 0
	for _, c := range line[9:12] {
		if c < '0' || c > '9' {
			p.notHTTP(line)
			return
		}
		status = status*10 + int(c-'0')
	}
	if status < 100 {
		p.notHTTP(line)
		return
	}
	p.Status = status
	p.oldHTTP = line[7] == '0'
	if len(line) > 13 {
		p.set(line[13:])
	} else {
		p.n = 0
	}
	p.state = inHeader
}

// header reads one field line. Only what tells where the answer ends, and
// whether the connection lives on, is looked at.
func (p *Parser) header(line []byte) {
	if line[0] == ' ' || line[0] == '\t' {
		return // folded (RFC 9112 §5.2): never of a field that matters here
	}
	colon := bytes.IndexByte(line, ':')
	if colon <= 0 {
		p.fail(ErrNotHTTP, fmt.Sprintf("a header line without a name: %.60q", line))
		return
	}
	name := trim(line[:colon])
	switch len(name) {
	case len("connection"):
		if equalFold(name, "connection") {
			eachToken(line[colon+1:], func(token []byte) {
				p.closing = p.closing || equalFold(token, "close")
				p.keepAlive = p.keepAlive || equalFold(token, "keep-alive")
			})
		}
	case len("content-length"):
		if equalFold(name, "content-length") {
			p.contentLength(line[colon+1:])
		}
	case len("transfer-encoding"):
		if equalFold(name, "transfer-encoding") {
			// Only the last coding says how the body ends (RFC 9112 §6.3).
			eachToken(line[colon+1:], func(token []byte) {
				p.chunked = equalFold(token, "chunked")
				p.otherTE = !p.chunked && !equalFold(token, "identity")
			})
		}
	}
}

// contentLength reads "5", and also "5, 5" as RFC 9110 §8.6 allows.
func (p *Parser) contentLength(value []byte) {
	empty := true
	eachToken(value, func(token []byte) {
		empty = false
		length := uint64(0)
		for _, c := range token {
			if c < '0' || c > '9' || length > 1<<58 {
				p.fail(ErrNotHTTP, fmt.Sprintf("content length %.40q", token))
				return
			}
			length = length*10 + uint64(c-'0')
		}
		if p.hasLength && length != p.length {
			p.fail(ErrNotHTTP, fmt.Sprintf("two content lengths, %d and %d", p.length, length))
			return
		}
		p.hasLength, p.length = true, length
	})
	if empty {
		p.fail(ErrNotHTTP, "an empty content length")
	}
}

// headEnd decides how long the body is (RFC 9112 §6.3).
func (p *Parser) headEnd() {
	if p.Status < 200 && p.Status != 101 {
		p.forget()
		p.state = inStatus // an interim answer; the final one follows
		return
	}
	p.keep = len(p.Expect) > 0 || !p.Wanted()
	p.Close = p.closing || p.Status == 101 || p.oldHTTP && !p.keepAlive
	switch {
	case p.Head || p.Status == 204 || p.Status == 304 || p.Status == 101:
		p.state = isDone
	case p.chunked:
		p.state, p.headBytes = inChunkSize, 0
	case p.otherTE || !p.hasLength:
		p.state, p.Close = inRest, true
	case p.length == 0:
		p.state = isDone
	default:
		p.state, p.remaining = inBody, p.length
	}
}

// chunkSize reads a chunk's size line; extensions are passed over.
func (p *Parser) chunkSize(line []byte) {
	size, i := uint64(0), 0
	for ; i < len(line); i++ {
		digit := hexDigit(line[i])
		if digit < 0 {
			break
		}
		if size > 1<<56 {
			p.fail(ErrNotHTTP, "a chunk size beyond all bounds")
			return
		}
		size = size<<4 | uint64(digit)
	}
	if rest := trim(line[i:]); i == 0 || len(rest) > 0 && rest[0] != ';' {
		p.fail(ErrNotHTTP, fmt.Sprintf("a chunk size that is none: %.20q", line))
		return
	}
	if size == 0 {
		p.state = inTrailer
		return
	}
	p.remaining, p.state = size, inChunk
}

// body takes the next bytes of the body. Without anything to look for it does
// nothing, and costs nothing.
func (p *Parser) body(b []byte) {
	if p.keep && len(p.Begin) < beginning {
		p.Begin = append(p.Begin, b[:min(len(b), beginning-len(p.Begin))]...)
	}
	if len(p.Expect) == 0 || p.Found {
		return
	}
	overlap := len(p.Expect) - 1
	if len(p.carry) > 0 { // what is looked for may lie across two pieces
		p.carry = append(p.carry, b[:min(len(b), overlap)]...)
		if bytes.Contains(p.carry, p.Expect) {
			p.Found = true
			return
		}
	}
	if len(b) >= overlap {
		p.Found = bytes.Contains(b, p.Expect)
		p.carry = append(p.carry[:0], b[len(b)-overlap:]...)
		return
	}
	if len(p.carry) == 0 {
		p.carry = append(p.carry, b...)
		return
	}
	if extra := len(p.carry) - overlap; extra > 0 {
		p.carry = p.carry[:copy(p.carry, p.carry[extra:])]
	}
}

// eachToken calls f for each part of a comma-separated list that is not empty.
func eachToken(list []byte, f func([]byte)) {
	for len(list) > 0 {
		token := list
		if comma := bytes.IndexByte(list, ','); comma >= 0 {
			token, list = list[:comma], list[comma+1:]
		} else {
			list = nil
		}
		if token = trim(token); len(token) > 0 {
			f(token)
		}
	}
}

func trim(b []byte) []byte {
	for len(b) > 0 && (b[0] == ' ' || b[0] == '\t') {
		b = b[1:]
	}
	for len(b) > 0 && (b[len(b)-1] == ' ' || b[len(b)-1] == '\t') {
		b = b[:len(b)-1]
	}
	return b
}

// equalFold compares with a lower-case ASCII word.
func equalFold(b []byte, lower string) bool {
	if len(b) != len(lower) {
		return false
	}
	for i, c := range b {
		if 'A' <= c && c <= 'Z' {
			c |= 0x20
		}
		if c != lower[i] {
			return false
		}
	}
	return true
}

func hexDigit(c byte) int {
	switch {
	case '0' <= c && c <= '9':
		return int(c - '0')
	case 'a' <= c && c <= 'f':
		return int(c-'a') + 10
	case 'A' <= c && c <= 'F':
		return int(c-'A') + 10
	}
	return -1
}
