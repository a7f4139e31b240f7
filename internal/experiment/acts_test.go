package experiment_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"hakaru/internal/experiment"
)

// The experiment has the shortest time that any level of a setting needs to act,
// and a variant the time of its own level where that is longer.
func TestActsAfter(t *testing.T) {
	for name, c := range map[string]struct {
		said string
		want map[string]map[string]time.Duration // by variant; "": of the experiment
	}{
		"by level": {"", map[string]map[string]time.Duration{
			"":      {"max-worker-lifetime": 5 * time.Second},
			"late":  {"max-worker-lifetime": time.Minute},
			"later": {"max-worker-lifetime": time.Hour},
		}},
		"as the person says": {"acts_after: {max-worker-lifetime: 2s}\n", map[string]map[string]time.Duration{
			"": {"max-worker-lifetime": 2 * time.Second},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			exp, err := experiment.Parse("a.yaml", []byte(`
service: {kind: uwsgi, run: uwsgi --ini uwsgi-plain.ini, settings: uwsgi-plain.ini, ports: [http]}
base: {http: "{http}", master: true}
variants: {none: {}, soon: {max-worker-lifetime: 5}, late: {max-worker-lifetime: 60}, later: {max-worker-lifetime: 3600}}
load: {http: {url: "http://{http}/", duration: 10s}}
`+c.said), options())
			if err != nil {
				t.Fatal(err)
			}
			got := map[string]map[string]time.Duration{"": exp.ActsAfter}
			for _, v := range exp.Variants {
				if v.ActsAfter != nil {
					got[v.Name] = v.ActsAfter
				}
			}
			if d := cmp.Diff(c.want, got); d != "" {
				t.Error(d)
			}
		})
	}
}
