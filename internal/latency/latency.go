// Package latency records durations, merges them, answers quantiles and turns
// them into bytes and back.
//
// It takes durations one at a time, from one goroutine (Histogram) or from many
// (Recorder), and gives histograms in HdrHistogram's layout: 1 µs to 10 min at
// three significant digits, values in nanoseconds. Encoded they are
// HdrHistogram's V2 compressed form, so that the base64 which JSON makes of the
// bytes is what every HdrHistogram tool reads.
//
// It holds no samples, keeps no time, knows nothing of requests, and does not
// correct for anything: what is recorded is what was measured.
package latency

import (
	"bytes"
	"compress/zlib"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"iter"
	"math"
	"time"

	hdr "github.com/HdrHistogram/hdrhistogram-go"
)

// The layout. It is part of what is stored: another one is another format.
const (
	lowest  = int64(time.Microsecond) // told apart from 0; in fact the unit is 512 ns
	highest = int64(10 * time.Minute)
	digits  = 3
)

// Highest is the longest duration that is told apart; longer ones count as this.
const Highest = time.Duration(highest)

// Histogram counts durations. The zero value is empty and ready; it is for one
// goroutine at a time. Recording allocates once, for the first value, and not
// again.
type Histogram struct {
	h *hdr.Histogram // nil: empty
}

func (h *Histogram) open() *hdr.Histogram {
	if h.h == nil {
		h.h = hdr.New(lowest, highest, digits)
	}
	return h.h
}

func clamp(d time.Duration) int64 { return min(max(int64(d), 0), highest) }

// Record counts d. What is below 0 counts as 0 and what is above Highest as
// Highest, so that nothing is ever left out of Count.
func (h *Histogram) Record(d time.Duration) {
	// A value within the layout is refused only past 2^63 of them.
	_ = h.open().RecordValue(clamp(d))
}

// Merge adds what other holds. The sum of two is the same whichever is merged
// into the other.
func (h *Histogram) Merge(other *Histogram) {
	if other.h == nil || other.h.TotalCount() == 0 {
		return
	}
	h.open().Merge(other.h) // one layout: nothing is dropped
}

// Count is how many durations were recorded.
func (h *Histogram) Count() uint64 {
	if h.h == nil {
		return 0
	}
	return uint64(h.h.TotalCount())
}

// Quantile returns the duration that a share q (0..1) of the recorded ones did
// not exceed: the highest value that cannot be told from the one of rank
// q·Count (HdrHistogram's definition, rounded to the nearest rank); for q = 0 the
// lowest such value. 0 where nothing was recorded.
func (h *Histogram) Quantile(q float64) time.Duration {
	if h.h == nil || h.h.TotalCount() == 0 {
		return 0
	}
	return min(time.Duration(h.h.ValueAtPercentile(q*100)), Highest)
}

// Mean is the arithmetic mean, from the middle of each cell: exact to the
// layout's three digits. 0 where nothing was recorded.
func (h *Histogram) Mean() time.Duration {
	if h.h == nil {
		return 0
	}
	return time.Duration(math.Round(h.h.Mean()))
}

// Max is the longest recorded duration, rounded up to what the layout tells
// apart. 0 where nothing was recorded.
func (h *Histogram) Max() time.Duration {
	if h.h == nil || h.h.TotalCount() == 0 {
		return 0
	}
	return min(time.Duration(h.h.Max()), Highest)
}

// StdDev is the standard deviation, from the middle of each cell. 0 where nothing
// was recorded.
func (h *Histogram) StdDev() time.Duration {
	if h.h == nil || h.h.TotalCount() == 0 {
		return 0
	}
	return time.Duration(math.Round(h.h.StdDev()))
}

// Cells goes through the cells that hold anything, from the lowest: the middle of
// each, which is exact to the layout's three digits, and its count.
func (h *Histogram) Cells() iter.Seq2[time.Duration, uint64] {
	return func(yield func(time.Duration, uint64) bool) {
		if h.Count() == 0 {
			return
		}
		for _, c := range h.h.Distribution() {
			if c.Count > 0 && !yield(time.Duration(c.From+(c.To-c.From)/2), uint64(c.Count)) {
				return
			}
		}
	}
}

// CountBetween is how many durations lie in from..to, to itself not included,
// each taken as the middle of its cell.
func (h *Histogram) CountBetween(from, to time.Duration) (n uint64) {
	for d, count := range h.Cells() {
		if d >= from && d < to {
			n += count
		}
	}
	return n
}

// Reset empties h and keeps its memory.
func (h *Histogram) Reset() {
	if h.h != nil {
		h.h.Reset()
	}
}

// Equal reports whether both hold the same counts.
func (h *Histogram) Equal(other *Histogram) bool {
	if h.Count() == 0 || other.Count() == 0 {
		return h.Count() == other.Count()
	}
	return h.h.Equals(other.h)
}

// Encode returns the histogram in HdrHistogram's V2 compressed form, nil for an
// empty one. Decode gives it back without loss.
func (h *Histogram) Encode() ([]byte, error) {
	if h.Count() == 0 {
		return nil, nil
	}
	text, err := h.h.Encode(hdr.V2CompressedEncodingCookieBase)
	if err != nil {
		return nil, fmt.Errorf("encode a latency histogram: %w", err)
	}
	// The library gives base64; JSON would make base64 of that a second time.
	raw := make([]byte, base64.StdEncoding.DecodedLen(len(text)))
	n, err := base64.StdEncoding.Decode(raw, text)
	if err != nil {
		return nil, fmt.Errorf("encode a latency histogram: %w", err)
	}
	return raw[:n], nil
}

// errLayout is another layout than ours: it could be read, but not merged
// without loss, and a hostile one asks for a lot of memory.
var errLayout = errors.New("the histogram has another layout than 1 µs to 10 min at 3 digits")

// Decode reads what Encode gave. No bytes are an empty histogram.
func Decode(encoded []byte) (*Histogram, error) {
	if len(encoded) == 0 {
		return &Histogram{}, nil
	}
	if err := checkLayout(encoded); err != nil {
		return nil, fmt.Errorf("decode a latency histogram: %w", err)
	}
	h, err := hdr.Decode([]byte(base64.StdEncoding.EncodeToString(encoded)))
	if err != nil {
		return nil, fmt.Errorf("decode a latency histogram: %w", err)
	}
	return &Histogram{h: h}, nil
}

// checkLayout reads the header (40 bytes, big endian, deflated behind 8 bytes
// of cookie and length: HdrHistogram's AbstractHistogram.encodeIntoByteBuffer)
// before anything is sized by what it says.
func checkLayout(encoded []byte) error {
	const outer = 8
	if len(encoded) < outer {
		return io.ErrUnexpectedEOF
	}
	z, err := zlib.NewReader(bytes.NewReader(encoded[outer:]))
	if err != nil {
		return err
	}
	var header [40]byte
	if _, err := io.ReadFull(z, header[:]); err != nil {
		return err
	}
	if binary.BigEndian.Uint32(header[12:]) != digits ||
		int64(binary.BigEndian.Uint64(header[16:])) != lowest ||
		int64(binary.BigEndian.Uint64(header[24:])) != highest {
		return errLayout
	}
	return nil
}
