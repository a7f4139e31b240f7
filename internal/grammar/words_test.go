package grammar

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestSplitWords(t *testing.T) {
	for line, want := range map[string][]string{
		`a b  c`:                    {"a", "b", "c"},
		`a 'b c' "d e" f\ g`:        {"a", "b c", "d e", "f g"},
		`a --x="1 2" --y='a b'c`:    {"a", "--x=1 2", "--y=a bc"},
		`a "x\"y" 'x\y' x\\y "x\y"`: {"a", `x"y`, `x\y`, `x\y`, `x\y`},
		`a {http} {a.b}/{c}`:        {"a", "{http}", "{a.b}/{c}"},
		`a "" ''`:                   {"a", "", ""},
		`nginx -g 'daemon off;'`:    {"nginx", "-g", "daemon off;"},
		"a \\\n b":                  {"a", "b"},
		`sh -c 'rm x && restart'`:   {"sh", "-c", "rm x && restart"},
		`a * ? [x] ~`:               {"a", "*", "?", "[x]", "~"},
		`app # comment`:             {"app"},
		`a=b`:                       nil,
		`a 'b`:                      nil,
		`a | b`:                     nil,
		`a; b`:                      nil,
		`a && b`:                    nil,
		`a > b`:                     nil,
		`a &`:                       nil,
		`a $X`:                      nil,
		"a `b`":                     nil,
		`a "$(b)"`:                  nil,
		"! a":                       nil,
		"for x in y; do z; done":    nil,
		"a\nb":                      nil,
	} {
		got, err := Split(line)
		if (err != nil) != (want == nil) {
			t.Errorf("%q: %q, error %v", line, got, err)
		} else if diff := cmp.Diff(want, got); err == nil && diff != "" {
			t.Errorf("%q:\n%s", line, diff)
		}
	}
}
