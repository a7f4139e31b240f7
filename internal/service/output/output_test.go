package output

import (
	"strings"
	"testing"

	"go.uber.org/goleak"
	"pgregory.net/rapid"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// However the output comes in, its whole lines are seen once and in order while
// nothing is left out.
func TestLinesSince(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var o Output
		var written, seen strings.Builder
		position := int64(0)
		take := func() {
			var text string
			text, position = o.LinesSince(position)
			seen.WriteString(text)
		}
		for range rapid.IntRange(1, 20).Draw(t, "writes") {
			piece := strings.Repeat(rapid.SampledFrom([]string{"a", "b\n", "\n", "long line\n"}).Draw(t, "piece"), rapid.IntRange(0, 2000).Draw(t, "times"))
			written.WriteString(piece)
			o.add([]byte(piece))
			if rapid.Bool().Draw(t, "look") {
				take()
			}
		}
		take()
		all := written.String()
		whole := all[:strings.LastIndexByte(all, '\n')+1]
		if int64(len(all)) <= headSize+tailSize && seen.String() != whole {
			t.Fatalf("%d bytes seen of %d", seen.Len(), len(whole))
		}
		if position != int64(len(whole)) {
			t.Fatalf("at %d of %d", position, len(whole))
		}
	})
}

// What scrolled out of sight while nobody looked is skipped, not read twice.
func TestLinesSinceCut(t *testing.T) {
	var o Output
	o.add([]byte("first\n"))
	text, position := o.LinesSince(0)
	if text != "first\n" || position != 6 {
		t.Fatalf("%q, %d", text, position)
	}
	o.add([]byte(strings.Repeat("0123456\n", (headSize+2*tailSize)/8)))
	text, position = o.LinesSince(position)
	if len(text) != headSize+tailSize-6 || position != o.total {
		t.Errorf("%d bytes, at %d of %d", len(text), position, o.total)
	}
	o.add([]byte("last\n"))
	if text, position = o.LinesSince(position); text != "last\n" || position != o.total {
		t.Errorf("%q, at %d of %d", text, position, o.total)
	}
}
