package proof

import (
	"bufio"
	"maps"
	"slices"
	"strings"
	"testing"
)

func TestReadStats(t *testing.T) {
	for _, tt := range []struct{ name, text, want, err string }{
		{"two", "STAT maxbytes 67108864\r\nSTAT inter 127.0.0.1\r\nEND\r\nSTAT later 1\r\n", "inter=127.0.0.1 maxbytes=67108864", ""},
		{"a value of words, and none", "STAT domain a b\nSTAT empty\nEND\n", "domain=a b empty=", ""},
		{"nothing", "END\r\n", "", ""},
		{"an error", "ERROR\r\n", "", `it answers "ERROR", not as memcached does`},
		{"HTTP", "HTTP/1.1 400 Bad Request\r\n", "", `it answers "HTTP/1.1 400 Bad Request", not as memcached does`},
		{"cut off", "STAT a 1\r\n", "", "EOF"},
		{"no lines", strings.Repeat("x", 10000), "", "it does not answer as memcached does"},
		{"no end", strings.Repeat("STAT a 1\r\n", 3000), "", "it answers more than 2000 lines"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			values, err := readStats(bufio.NewReader(strings.NewReader(tt.text)))
			if (err != nil || tt.err != "") && (err == nil || err.Error() != tt.err) {
				t.Fatalf("%v; want %q", err, tt.err)
			}
			if got := printStats(values, "=", " "); got != tt.want {
				t.Errorf("%q; want %q", got, tt.want)
			}
		})
	}
}

func printStats(values map[string]string, equals, between string) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(values)) {
		parts = append(parts, name+equals+values[name])
	}
	return strings.Join(parts, between)
}

// Whatever is read is the same when it is written and read again.
func FuzzReadStats(f *testing.F) {
	f.Add("STAT maxbytes 67108864\r\nSTAT inter \r\nEND\r\n")
	f.Add("STAT  a b c\nEND\n")
	f.Fuzz(func(t *testing.T, text string) {
		values, err := readStats(bufio.NewReader(strings.NewReader(text)))
		if err != nil || len(values) == 0 {
			return
		}
		again, err := readStats(bufio.NewReader(strings.NewReader("STAT " + printStats(values, " ", "\r\nSTAT ") + "\r\nEND\r\n")))
		if err != nil || !maps.Equal(values, again) {
			t.Fatalf("%q\n%q, %v", values, again, err)
		}
	})
}
