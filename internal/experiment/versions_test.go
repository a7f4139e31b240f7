package experiment_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"hakaru/internal/experiment"
	"hakaru/internal/mistake"
	"hakaru/internal/render"
)

// commits are the repositories of these tests: directory → name → commit.
var commits = map[string]map[string]string{
	"/srv/test":     {"main": "aaaa", "faster": "bbbb", "v1": "aaaa", ".": "."},
	"/srv/test/api": {"main": "cccc", ".": "."},
}

type hinted struct{ error }

func (hinted) Hint() string { return "the hint" }

func lookUp(asked *[]string) func(dir, revision string) (string, error) {
	return func(dir, revision string) (string, error) {
		*asked = append(*asked, dir+" "+revision)
		known, found := commits[dir]
		if !found {
			return "", hinted{fmt.Errorf("%s is in no repository", dir)}
		}
		if c, found := known[revision]; found {
			return c, nil
		}
		return "", &experiment.UnknownRevision{Err: fmt.Errorf("nothing is called %q", revision), Known: []string{"main", "faster", "origin/far"}}
	}
}

const rest = "\nload: {http: {url: \"http://127.0.0.1:1/\"}}\n"

// Every place where a version can be chosen gives a commit, under the name that
// was written, and each name is looked up once.
func TestVersions(t *testing.T) {
	for name, c := range map[string]struct {
		file string
		want string // of each variant: its services with their revisions
		ask  string // of the first variant
	}{
		"factor":    {"service: {run: ./app, build: make}\nfactors: {git: [main, faster, .]}", "service=aaaa; service=bbbb; service=.", "git main aaaa"},
		"crossed":   {"service: {run: './app {t}'}\nfactors: {t: [1, 2], git: [main, faster]}", "service=aaaa; service=bbbb; service=aaaa; service=bbbb", "git main aaaa"},
		"named":     {"service: {run: ./app}\nfactors: {git: {old: v1, new: faster}}", "service=aaaa; service=bbbb", "git old aaaa"},
		"variants":  {"service: {run: ./app}\nvariants: {a: {git: main}, b: {from: a}, c: {git: faster}}", "service=aaaa; service=aaaa; service=bbbb", "git main aaaa"},
		"base":      {"service: {run: './app {t}'}\nbase: {git: faster}\nfactors: {t: [1, 2]}", "service=bbbb; service=bbbb", "git faster bbbb"},
		"stack":     {"services: {app: {run: ./app, build: make}, db: {run: ./db}}\nfactors: {git: [main, faster]}", "app=aaaa db=; app=bbbb db=", "git main aaaa"},
		"one's own": {"services: {app: {run: ./app}, api: {run: ./api, dir: api}}\nfactors: {app.git: [faster, .], api.git: [main]}", "app=bbbb api=cccc; app=. api=cccc", "git faster bbbb, git main cccc"},
		"none":      {"service: {run: ./app, build: 'make {t}'}\nfactors: {t: [1, 2]}", "service=; service=", ""},
	} {
		t.Run(name, func(t *testing.T) {
			var asked []string
			exp, err := experiment.Parse("a.yaml", []byte(c.file+rest), experiment.Options{Dir: "/srv/test", Revision: lookUp(&asked)})
			if err != nil {
				t.Fatal(err)
			}
			if len(exp.NotYet) > 0 {
				t.Errorf("not built: %v", exp.NotYet)
			}
			var variants, asks []string
			for i, v := range exp.Variants {
				bundle, _, list, err := render.Trial(exp, v.Name, nil)
				if err != nil {
					t.Fatal(err)
				}
				var units []string
				for _, u := range bundle.Units {
					units = append(units, u.Service+"="+u.Revision)
				}
				variants = append(variants, strings.Join(units, " "))
				for _, a := range list {
					if i == 0 && a.Kind == "revision" {
						asks = append(asks, fmt.Sprintf("%s %s %s", a.Setting, a.Asked, a.Equals))
					}
				}
			}
			if diff := cmp.Diff([]string{c.want, c.ask}, []string{strings.Join(variants, "; "), strings.Join(asks, ", ")}); diff != "" {
				t.Error(diff)
			}
			for i, a := range asked {
				for _, b := range asked[:i] {
					if a == b {
						t.Errorf("%s was looked up twice", a)
					}
				}
			}
		})
	}
}

func TestVersionMistakes(t *testing.T) {
	for name, c := range map[string]struct{ file, want, fix string }{
		"unknown":              {"service: {run: ./app}\nfactors: {git: [main, fastre]}", `a.yaml:2:23: git: nothing is called "fastre"`, `did you mean "faster"?`},
		"of a remote":          {"service: {run: ./app}\nfactors: {git: [main, far]}", `a.yaml:2:23: git: nothing is called "far"`, `did you mean "origin/far"?`},
		"named":                {"service: {run: ./app}\nfactors: {git: {a: main, b: nosuch}}", `a.yaml:2:29: git: nothing is called "nosuch"`, "known are main, faster, origin/far"},
		"in base":              {"service: {run: ./app}\nbase: {git: mian}", `a.yaml:2:13: git: nothing is called "mian"`, `did you mean "main"?`},
		"null":                 {"service: {run: ./app}\nfactors: {git: [main, null]}", "a.yaml:2:23: git names no version", "or . for the working tree as it is"},
		"in no repository":     {"service: {run: ./app, dir: /opt}\nfactors: {git: [main]}", "a.yaml:2:17: git: /opt is in no repository", "the hint"},
		"nobody's":             {"services: {a: {run: ./a}, b: {run: ./b}}\nfactors: {git: [main, faster]}", "a.yaml:2:11: no service would be of the version that git names", "NAME.git"},
		"several repositories": {"services: {a: {run: ./a, build: make}, b: {run: ./b, dir: api, build: make}}\nfactors: {git: [main]}", "a.yaml:2:17: git: main is another commit for service b than for service a", "a.git, b.git"},
		"attached":             {"service: {attach: {get: 'http://127.0.0.1:1/'}}\nfactors: {git: [main, faster]}", "a.yaml:2:11: the service is not started by hakaru, so it cannot be of a version", "run:"},
		"a leased name":        {"service: {run: './app {http}', ports: [http], build: 'make {http.port}'}", "a.yaml:1:54: build: {http.port} is known only when the service is started", "leave it out"},
		"an open quote":        {"service: {run: ./app, build: \"make 'x\"}", "service.build: ", ""},
	} {
		t.Run(name, func(t *testing.T) {
			var asked []string
			_, err := experiment.Parse("a.yaml", []byte(c.file+rest), experiment.Options{Dir: "/srv/test", Revision: lookUp(&asked)})
			mistakes, is := errors.AsType[mistake.List](err)
			if !is || len(mistakes) != 1 {
				t.Fatalf("%v", err)
			}
			if text := mistakes.Error(); !strings.Contains(text, c.want) || !strings.Contains(mistakes[0].Fix, c.fix) {
				t.Errorf("%s", text)
			}
		})
	}
	if _, err := experiment.Parse("a.yaml", []byte("service: {run: ./app}\nfactors: {git: [main]}"+rest), experiment.Options{Dir: "/srv/test"}); err == nil {
		t.Error("a version that nobody can look up is taken")
	}
}
