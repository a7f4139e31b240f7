package experiment_test

import (
	"strings"
	"testing"

	"hakaru/internal/experiment"
)

func TestDoubts(t *testing.T) {
	const load = "load: {http: {url: \"http://127.0.0.1:8000/\", connections: 4, duration: 1s}}\n"
	tests := map[string]struct {
		src  string
		want []string // code, then what the message holds
	}{
		"nothing to doubt":   {"service: {kind: command, run: \"./app {http.port} {http} {n} {n.name}\", ports: [http]}\nfactors: {n: [1, 2]}\n", nil},
		"one variant":        {"service: {kind: command, run: ./app}\n", []string{experiment.NothingToCompare, "second variant"}},
		"port undeclared":    {"service: {kind: command, run: \"./app {web.port} {n}\"}\nfactors: {n: [1, 2]}\n", []string{experiment.BraceStays, "ports: [web]"}},
		"another name":       {"service: {kind: command, run: \"./app {port} {n}\", ports: [http]}\nfactors: {n: [1, 2]}\n", []string{experiment.BraceStays, "{http.port} the port alone"}},
		"mistyped":           {"service: {kind: command, run: \"./app {htpp} {n}\", ports: [http]}\nfactors: {n: [1, 2]}\n", []string{experiment.BraceStays, "did you mean {http}?"}},
		"of a program's own": {"service: {kind: command, run: \"./app {} {a b} {n}\"}\nfactors: {n: [1, 2]}\n", nil},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			exp, err := experiment.Parse("a.yaml", []byte(tt.src+load), options())
			if err != nil {
				t.Fatal(err)
			}
			got := experiment.Doubts(exp)
			if len(tt.want) == 0 {
				if len(got) != 0 {
					t.Errorf("doubts %v, want none", got)
				}
				return
			}
			if len(got) != 1 || got[0].Code != tt.want[0] || !strings.Contains(got[0].Message, tt.want[1]) {
				t.Errorf("doubts %v, want one %s with %q", got, tt.want[0], tt.want[1])
			}
		})
	}
}
