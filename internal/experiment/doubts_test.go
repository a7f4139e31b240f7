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

// What settings will do, or not do, is said before time is spent on it.
func TestEffects(t *testing.T) {
	const uwsgi = "service: {kind: uwsgi, run: uwsgi --ini uwsgi-plain.ini, settings: uwsgi-plain.ini, ports: [http]}\n"
	for name, c := range map[string]struct {
		src  string
		want []string // code, then what the message holds
	}{
		"too late": {uwsgi + "base: {http: \"{http}\", master: true}\nvariants: {one: {}, life: {max-worker-lifetime: 30}}\n" + loadFor("10s"),
			[]string{experiment.CannotAct, "max-worker-lifetime needs 30s", "after 11s", "-d 35s would do"}},
		"in time":            {uwsgi + "base: {http: \"{http}\", master: true}\nvariants: {one: {}, life: {max-worker-lifetime: 30}}\n" + loadFor("35s"), nil},
		"said to act sooner": {uwsgi + "base: {http: \"{http}\", master: true}\nvariants: {one: {}, life: {max-worker-lifetime: 30}}\nacts_after: {max-worker-lifetime: 5s}\n" + loadFor("10s"), nil},
		"the longest level": {uwsgi + "base: {http: \"{http}\", master: true}\nfactors: {max-worker-lifetime: [5, 60, 120]}\n" + loadFor("10s"),
			[]string{experiment.CannotAct, "needs 2m", "-d 2m20s would do"}},
		"idle": {uwsgi + "base: {http: \"{http}\", master: false}\nvariants: {one: {}, life: {max-worker-lifetime: 3}}\n" + loadFor("10s"),
			[]string{experiment.IdleSetting, "max-worker-lifetime needs master, which is switched off"}},
		"idle is not late too": {uwsgi + "base: {http: \"{http}\", master: false}\nvariants: {one: {}, life: {max-worker-lifetime: 30}}\n" + loadFor("10s"),
			[]string{experiment.IdleSetting, "max-worker-lifetime"}},
		"an observer": {uwsgi + "base: {http: \"{http}\"}\nvariants: {one: {}, watched: {stats: \"127.0.0.1:1717\"}}\n" + loadFor("10s"),
			[]string{experiment.AlsoSwitched, "stats switches master on in variant watched", "write master under base"}},
		"an observer everywhere":      {uwsgi + "base: {http: \"{http}\", stats: \"127.0.0.1:1717\"}\nvariants: {one: {}, two: {threads: 2}}\n" + loadFor("10s"), nil},
		"an observer, and the master": {uwsgi + "base: {http: \"{http}\", master: true}\nvariants: {one: {}, watched: {stats: \"127.0.0.1:1717\"}}\n" + loadFor("10s"), nil},
		"a key that is nothing": {"service: {kind: uwsgi, run: uwsgi --ini stray.ini, settings: stray.ini, ports: [http]}\nbase: {http: \"{http}\"}\nvariants: {one: {}, two: {threads: 2}}\n" + loadFor("10s"),
			[]string{experiment.UnknownKey, `stray.ini:3:1: uwsgi has no setting called "zzyzx-road"`, "ignored"}},
		"a socket that is in use": {"service: {kind: uwsgi, settings: production.ini, ports: [http]}\nbase: {http: \"{http}\"}\nvariants: {one: {}, two: {threads: 2}}\n" + loadFor("10s"),
			[]string{experiment.TakesOver, "socket = /run/app.sock", "{hakaru.dir}/sock"}},
		"a socket of its own": {"service: {kind: uwsgi, settings: production.ini, ports: [http]}\nbase: {http: \"{http}\", socket: \"{hakaru.dir}/sock\"}\nvariants: {one: {}, two: {threads: 2}}\n" + loadFor("10s"), nil},
		"in the background": {"service: {run: \"gunicorn -D app:app\", ports: [http]}\nbase: {bind: \"{http}\"}\nvariants: {one: {}, two: {threads: 2}}\n" + loadFor("10s"),
			[]string{experiment.LeavesForeground, "daemon sends the service to the background", "base: {daemon: null}"}},
	} {
		t.Run(name, func(t *testing.T) {
			exp, err := experiment.Parse("a.yaml", []byte(c.src), options())
			if err != nil {
				t.Fatal(err)
			}
			got := experiment.Doubts(exp)
			if len(c.want) == 0 {
				if len(got) > 0 {
					t.Errorf("doubts %v, want none", got)
				}
				return
			}
			if len(got) != 1 || got[0].Code != c.want[0] {
				t.Fatalf("doubts %v, want one %s", got, c.want[0])
			}
			for _, text := range c.want[1:] {
				if !strings.Contains(got[0].Message, text) {
					t.Errorf("%q does not hold %q", got[0].Message, text)
				}
			}
		})
	}
}

func loadFor(duration string) string {
	return "load: {http: {url: \"http://{http}/\", duration: " + duration + "}}\n"
}
