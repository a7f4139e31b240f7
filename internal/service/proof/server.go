package proof

import (
	"strconv"
	"strings"

	"hakaru"
	"hakaru/internal/redact"
)

// sameSize compares a number of bytes with a size as MariaDB and memcached take
// it: 64M is 64·1024·1024.
func sameSize(found, want string) bool {
	n, err := strconv.ParseFloat(strings.TrimSpace(found), 64)
	want = strings.TrimSpace(want)
	if err != nil || want == "" {
		return false
	}
	i := strings.IndexByte("KMGTPE", want[len(want)-1]&^0x20)
	if i < 0 {
		return false
	}
	size, err := strconv.ParseFloat(want[:len(want)-1], 64)
	return err == nil && n == size*float64(int64(1)<<(10*(i+1)))
}

// matchServerValue compares a value that a server tells of its own settings. It
// may tell it in its own words (ALWAYS for 2, the whole list for one switch of
// it), so that another text contradicts only where it is of the same sort: a
// number, a switch, or where the ask knows all the words that there are.
func matchServerValue(found string, ask hakaru.Ask) hakaru.Held {
	want := wanted(ask)
	switch {
	case matchValue(found, ask) || ask.Contains == "" && sameSize(found, want):
		return held(true, ask.Absent)
	case ask.Exact || ask.Equals == "" && ask.Contains != "" || sameSort(found, want):
		return held(false, ask.Absent)
	}
	return hakaru.NotProved
}

func sameSort(a, b string) bool {
	if isNumber(a) && isNumber(b) {
		return true
	}
	_, one := switchWord(strings.TrimSpace(a))
	_, other := switchWord(strings.TrimSpace(b))
	return one && other
}

// isNumber takes a size for a number too.
func isNumber(text string) bool {
	text = strings.TrimSpace(text)
	if i := len(text) - 1; i > 0 && strings.IndexByte("KMGTPE", text[i]&^0x20) >= 0 {
		text = text[:i]
	}
	_, err := strconv.ParseFloat(text, 64)
	return err == nil
}

// byServer is the evidence of what a server told.
func byServer(value, source string, ask hakaru.Ask) Evidence {
	holds, found := matchServerValue(value, ask), shorten(value)
	if redact.Secret(ask.Setting) {
		found = redact.Mask
	}
	if holds == hakaru.NotProved {
		found += "; it may be the server's word for it"
	}
	return told(found, source, holds)
}
