package proof

import (
	"slices"
	"strings"
	"testing"
)

func TestParseCommandLine(t *testing.T) {
	for _, tt := range []struct {
		name, raw string
		want      string
		title     bool
	}{
		{"words", "memcached\x00-p\x0011211\x00", "memcached|-p|11211", false},
		{"an empty word", "app\x00\x00-v\x00", "app||-v", false},
		{"one word", "memcached\x00", "memcached", false},
		{"nginx's master", "nginx: master process nginx -c /a.conf\x00", "nginx:|master|process|nginx|-c|/a.conf", true},
		{"padded", "nginx: worker process\x00\x00\x00", "nginx:|worker|process", true},
		{"a path with a blank", "/opt/my app/run\x00", "/opt/my app/run", false},
		{"nothing", "", "", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			words, title := parseCommandLine(tt.raw)
			if got := strings.Join(words, "|"); got != tt.want || title != tt.title {
				t.Errorf("%q, %v; want %q, %v", got, title, tt.want, tt.title)
			}
		})
	}
}

func TestParseEnvironment(t *testing.T) {
	for _, tt := range []struct {
		name, raw string
		whole     bool
	}{
		{"whole", "A=1\x00B=\x00C=a=b c: d\x00", true},
		{"empty, as by env -i", "", true},
		{"zeros", "\x00\x00\x00\x00", false},
		{"the end of a title", "nx -c /a.conf\x00\x00\x00\x00B=2\x00", false},
		{"a title that has an equals sign", "r process -g x=1\x00\x00\x00", false},
		{"the rest of a title, and variables", "gunicorn: master [a=b]\x00B=2\x00", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if env, whole := parseEnvironment(tt.raw); whole != tt.whole || !whole && env != nil {
				t.Errorf("%q, %v", env, whole)
			}
		})
	}
}

// What is written as the kernel writes it is read as it was.
func FuzzParseEnvironment(f *testing.F) {
	f.Add("A=1\x00B=2\x00")
	f.Add("\x00\x00")
	f.Fuzz(func(t *testing.T, raw string) {
		env, whole := parseEnvironment(raw)
		if !whole || len(env) == 0 {
			return
		}
		again, whole := parseEnvironment(strings.Join(env, "\x00") + "\x00")
		if !whole || !slices.Equal(env, again) {
			t.Fatalf("%q\n%q", env, again)
		}
	})
}
