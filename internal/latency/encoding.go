package latency

import (
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"sync"
)

// HdrHistogram's V2 compressed form (AbstractHistogram.encodeIntoByteBuffer), big
// endian:
//
//	cookie 0x1c849314, length of what follows
//	deflated:
//	  cookie 0x1c849313, length of the counts, normalizing offset 0, digits,
//	  lowest, highest, ratio 1.0
//	  counts: ZigZag LEB128, at most 9 bytes each; a negative one is a run of zeros
//
// It is written here and not by the library because that makes a histogram of
// 180 KB and a compressor of 800 KB for each half second of a load; tests hold
// the two against each other.
const (
	outerCookie = 0x1c849304 | 0x10
	innerCookie = 0x1c849303 | 0x10
	outerLength = 8
	innerLength = 40
	mostBytes   = 9 // of one count
)

// deflaters are kept, since each has hundreds of kilobytes.
var deflaters = sync.Pool{New: func() any {
	z, err := zlib.NewWriterLevel(io.Discard, zlib.BestSpeed)
	if err != nil { // only for a level that is none
		panic(err)
	}
	return z
}}

// Encode returns the histogram in HdrHistogram's V2 compressed form, nil for an
// empty one. Decode gives it back without loss.
func (h *Histogram) Encode() ([]byte, error) {
	if h.count == 0 {
		return nil, nil
	}
	inner := make([]byte, innerLength, innerLength+1024)
	next := 0
	for cell, count := range h.filled() {
		switch zeros := cell - next; {
		case zeros == 1:
			inner = appendCount(inner, 0)
		case zeros > 1:
			inner = appendCount(inner, -int64(zeros))
		}
		inner = appendCount(inner, count)
		next = cell + 1
	}
	be := binary.BigEndian
	be.PutUint32(inner, innerCookie)
	be.PutUint32(inner[4:], uint32(len(inner)-innerLength))
	be.PutUint32(inner[12:], digits)
	be.PutUint64(inner[16:], uint64(lowest))
	be.PutUint64(inner[24:], uint64(highest))
	be.PutUint64(inner[32:], math.Float64bits(1))

	var out bytes.Buffer
	out.Write(make([]byte, outerLength))
	z := deflaters.Get().(*zlib.Writer)
	defer deflaters.Put(z)
	z.Reset(&out)
	if _, err := z.Write(inner); err != nil {
		return nil, fmt.Errorf("encode a latency histogram: %w", err)
	}
	if err := z.Close(); err != nil {
		return nil, fmt.Errorf("encode a latency histogram: %w", err)
	}
	encoded := out.Bytes()
	be.PutUint32(encoded, outerCookie)
	be.PutUint32(encoded[4:], uint32(len(encoded)-outerLength))
	return encoded, nil
}

// appendCount writes a number as LEB128 in zigzag; the ninth byte has eight bits.
func appendCount(to []byte, n int64) []byte {
	v := uint64(n<<1) ^ uint64(n>>63)
	for i := 1; i < mostBytes && v >= 0x80; i++ {
		to = append(to, byte(v)|0x80)
		v >>= 7
	}
	return append(to, byte(v))
}

// count reads what appendCount wrote, and how many bytes that was; 0 where it is
// cut off.
func readCount(from []byte) (n int64, length int) {
	v := uint64(0)
	for i, b := range from {
		if i == mostBytes-1 {
			v |= uint64(b) << (7 * i)
			return int64(v>>1) ^ -int64(v&1), i + 1
		}
		v |= uint64(b&0x7f) << (7 * i)
		if b < 0x80 {
			return int64(v>>1) ^ -int64(v&1), i + 1
		}
	}
	return 0, 0
}

var (
	// errLayout is another layout than ours: it could be read, but not merged
	// without loss.
	errLayout = errors.New("the histogram has another layout than 1 µs to 10 min at 3 digits")
	errForm   = errors.New("it is not in HdrHistogram's V2 compressed form")
	errCounts = errors.New("its counts are not whole")
)

// Decode reads what Encode gave, and what any other writer of the same layout did.
// No bytes are an empty histogram.
func Decode(encoded []byte) (*Histogram, error) {
	h := &Histogram{}
	if len(encoded) == 0 {
		return h, nil
	}
	if err := h.decode(encoded); err != nil {
		return nil, fmt.Errorf("decode a latency histogram: %w", err)
	}
	return h, nil
}

func (h *Histogram) decode(encoded []byte) error {
	const kind = ^uint32(0xf0) // the rest of a cookie says how wide counts are
	be := binary.BigEndian
	if len(encoded) < outerLength {
		return io.ErrUnexpectedEOF
	}
	if be.Uint32(encoded)&kind != outerCookie&kind || uint64(be.Uint32(encoded[4:])) > uint64(len(encoded)-outerLength) {
		return errForm
	}
	z, err := zlib.NewReader(bytes.NewReader(encoded[outerLength:]))
	if err != nil {
		return err
	}
	var header [innerLength]byte
	if _, err := io.ReadFull(z, header[:]); err != nil {
		return err
	}
	if be.Uint32(header[:])&kind != innerCookie&kind {
		return errForm
	}
	if be.Uint32(header[12:]) != digits || be.Uint64(header[16:]) != uint64(lowest) || be.Uint64(header[24:]) != uint64(highest) {
		return errLayout
	}
	length := be.Uint32(header[4:])
	if length > cells*mostBytes {
		return errCounts
	}
	// One byte more than there should be: so that an end is seen, and the checksum.
	counts, err := io.ReadAll(io.LimitReader(z, int64(length)+1))
	if err != nil {
		return err
	}
	if len(counts) != int(length) {
		return errCounts
	}
	for at := 0; len(counts) > 0; {
		n, used := readCount(counts)
		counts = counts[max(used, 0):]
		switch {
		case used == 0:
			return errCounts
		case n < 0:
			if n < int64(at-cells) {
				return errCounts
			}
			at += int(-n)
		case at >= cells || uint64(n) > math.MaxInt64-h.count:
			return errCounts
		default:
			if n > 0 {
				*h.at(at) = n
				h.count += uint64(n)
			}
			at++
		}
	}
	return nil
}
