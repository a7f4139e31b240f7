package experiment_test

import (
	"errors"
	"strings"
	"testing"

	"hakaru/internal/experiment"
	"hakaru/internal/mistake"
)

// What is said of a factor that does nothing without another can be followed.
func TestNeedsHint(t *testing.T) {
	for name, c := range map[string]struct{ file, fix, line string }{
		"crossed": {"factors: {master: [null, true], max-worker-lifetime: [null, 30]}\n",
			`where: ["master || !max-worker-lifetime"]`, `where: ["master || !max-worker-lifetime"]`},
		"more levels": {"factors: {master: [null, yes], max-worker-lifetime: [null, 30, 60]}\ndesign: {method: factorial}\n",
			`where: ["master || !max-worker-lifetime"]`, `where: ["master || !max-worker-lifetime"]`},
		"one at a time": {"factors: {master: [null, true], max-worker-lifetime: [null, 30]}\ndesign: {method: one-at-a-time}\n",
			"baseline: {master: true}", "baseline: {master: true}"},
		"variants": {"variants: {one: {}, life: {max-worker-lifetime: 30}}\n", "under base or in the variant", "base: {http: \"{http}\", master: true}"},
	} {
		t.Run(name, func(t *testing.T) {
			const service = "service: {kind: uwsgi, run: uwsgi --ini uwsgi-plain.ini, settings: uwsgi-plain.ini, ports: [http]}\n"
			const load = "load: {http: {url: \"http://{http}/\"}}\n"
			base := "base: {http: \"{http}\"}\n"
			_, err := experiment.Parse("a.yaml", []byte(service+base+c.file+load), options())
			mistakes, is := errors.AsType[mistake.List](err)
			if !is || len(mistakes) != 1 || mistakes[0].Code != "needs" || !strings.Contains(mistakes[0].Fix, c.fix) {
				t.Fatalf("%v", err)
			}
			if strings.HasPrefix(c.line, "base:") {
				base = ""
			}
			if _, err := experiment.Parse("a.yaml", []byte(service+base+c.file+c.line+"\n"+load), options()); err != nil {
				t.Errorf("as the hint says: %v", err)
			}
		})
	}
}
