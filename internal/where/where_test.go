package where

import (
	"strings"
	"testing"
)

func TestWhere(t *testing.T) {
	values := map[string]Value{
		"processes":      {given: true, text: "4", level: "4"},
		"threads":        {given: true, text: "2", level: "2"},
		"enable-threads": {given: true, text: "true", level: "true"},
		"max":            {given: true, text: "10", level: "10"},
		"max-requests":   {given: true, text: "100", level: "100"},
		"requests":       {given: true, text: "3", level: "3"},
		"malloc":         {level: "glibc"}, // null under a name
		"gone":           {},
		"log":            {given: true, text: "off", level: "quiet"},
		"wait":           {given: true, text: "5ms", level: "5ms"},
		"puma.threads":   {given: true, text: "7", level: "7"},
	}
	var names []string
	for name := range values {
		names = append(names, name)
	}
	levels := []string{"glibc", "jemalloc", "quiet", "off", "5ms"}
	for text, want := range map[string]bool{
		"processes * threads <= 8":              true,
		"processes*threads<8":                   false,
		"threads == 1 || enable-threads":        true,
		"threads == 1 && enable-threads":        false,
		"max-requests == 100":                   true, // one name
		"max - requests == 7":                   true,
		"max-requests - max == 90":              true,
		"max -requests == 7":                    true,
		"puma.threads > 6":                      true,
		"malloc == glibc":                       true,
		"malloc == jemalloc":                    false,
		"malloc == null":                        true,
		"malloc != null":                        false,
		"gone":                                  false,
		"!gone":                                 true,
		"gone == null && !(gone > 1) && !gone":  true,
		"gone + 1 == null":                      true,
		"log == quiet":                          true,
		"log == off":                            true,
		"log == 'off'":                          true,
		`log == "on"`:                           false,
		"log":                                   false,
		"!log":                                  true,
		"wait <= 5ms":                           true,
		"wait < 0.004":                          false,
		"wait * 2 == 10ms":                      true,
		"(1 + 2) * 3 == 9 && 7 % 4 == 3":        true,
		"1 + 2 * 3 == 7":                        true,
		"10 - 2 - 3 == 5":                       true,
		"8 / 2 / 2 == 2":                        true,
		"1 / 0 == null":                         true,
		"-processes == -4":                      true,
		"4.0 == processes":                      true,
		"true && !false":                        true,
		"!(processes == 4) || !!(threads == 2)": true,
		"enable-threads == true":                true,
		"processes >= 4 && processes != 5 || 0": true,
		" \t processes\n== 4 ":                  true,
		"threads-processes == -2":               true,
	} {
		c, err := Parse(text, names, levels)
		if err != nil {
			t.Errorf("%q: %v", text, err)
			continue
		}
		got, err := c(func(name string) Value { return values[name] })
		if err != nil || got.Truth() != want {
			t.Errorf("%q is %v, %v, want %v", text, got, err, want)
		}
	}
	for _, text := range []string{
		"processes == 4 || processes == x",
		"processes == 4 == true", "log < 3", "log * 2 == 1", "", "processes == 'x", "processes ==", "processes = 4",
		"1.2.3 == 1", "1 & 2", "processes 4", "(processes == 4", "processes == 4)",
		strings.Repeat("(", 99), strings.Repeat("!", 99) + "gone", strings.Repeat("-", 99) + "1 == 1",
	} {
		c, err := Parse(text, names, levels)
		if err == nil {
			_, err = c(func(name string) Value { return values[name] })
		}
		if err == nil {
			t.Errorf("%q is accepted", text)
		}
	}
}

func FuzzWhere(f *testing.F) {
	for _, seed := range []string{"processes * threads <= 64", "a-b == 1 || !c", "((1))", "'x' == \"y\"", "-a % 0 > null"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		c, err := Parse(text, []string{"a", "a-b", "processes", "threads"}, []string{"c", "off"})
		if err != nil {
			return
		}
		// What is accepted has a value or an error for any settings; both are fine.
		lookup := func(name string) Value { return Value{given: name != "a-b", text: "2"} }
		first, err1 := c(lookup)
		again, err2 := c(lookup)
		if first != again || (err1 == nil) != (err2 == nil) {
			t.Errorf("%q is %v, %v and then %v, %v", text, first, err1, again, err2)
		}
	})
}
