package experiment_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"hakaru"
	"hakaru/internal/experiment"
	"hakaru/internal/mistake"
	"hakaru/internal/render"
)

var update = flag.Bool("update", false, "rewrite golden files")

// readFiles stands for the directory of the test's experiment files.
func readFiles(path string) ([]byte, error) {
	name, found := strings.CutPrefix(path, "/srv/test/")
	if !found {
		return nil, fs.ErrNotExist
	}
	content, err := os.ReadFile(filepath.Join("testdata/good/files", name))
	if err != nil {
		return nil, fs.ErrNotExist
	}
	return content, nil
}

func options() experiment.Options {
	return experiment.Options{Dir: "/srv/test", Read: readFiles, Revision: func(_, revision string) (string, error) {
		return fmt.Sprintf("%040x", len(revision)), nil // a repository that has whatever is asked for
	}}
}

func golden(t *testing.T, path string, got []byte) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v (write it with -update)", err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s differs (rewrite with -update, and look):\n%s", path, diff)
	}
}

func parse(t *testing.T, path string) *hakaru.Experiment {
	t.Helper()
	src, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	exp, err := experiment.Parse(filepath.Base(path), src, options())
	if err != nil {
		t.Fatalf("%s:\n%v", path, err)
	}
	return exp
}

type rendered struct {
	Bundle hakaru.Bundle
	Load   hakaru.LoadSpec
	Asks   []hakaru.Ask
	Error  string `json:",omitempty"`
	Diff   string `json:",omitempty"`
}

func TestGood(t *testing.T) {
	files, err := filepath.Glob("testdata/good/*.yaml")
	if err != nil || len(files) < 8 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	for _, path := range files {
		t.Run(filepath.Base(path), func(t *testing.T) {
			exp := parse(t, path)
			// What is stored survives the round trip.
			stored, err := json.Marshal(exp)
			if err != nil {
				t.Fatal(err)
			}
			var back hakaru.Experiment
			if err := json.Unmarshal(stored, &back); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(exp, &back); diff != "" {
				t.Errorf("JSON round trip:\n%s", diff)
			}
			out := struct {
				Experiment hakaru.Experiment
				Rendered   []rendered
			}{Experiment: *exp}
			out.Experiment.Sources = nil
			for i, v := range exp.Variants {
				if i > 4 {
					break
				}
				at := exp.Strata[i%len(exp.Strata)]
				var r rendered
				var err error
				r.Bundle, r.Load, r.Asks, err = render.Trial(exp, v.Name, at)
				if err != nil {
					r.Error = err.Error()
					if len(exp.NotYet) == 0 {
						t.Errorf("render %s: %v", v.Name, err)
					}
				}
				if r.Diff, err = render.Diff(exp, v.Name); err != nil && len(exp.NotYet) == 0 {
					t.Errorf("diff %s: %v", v.Name, err)
				}
				// The store's copy renders the same.
				again, load, asks, _ := render.Trial(&back, v.Name, at)
				if diff := cmp.Diff([]any{r.Bundle, r.Load, r.Asks}, []any{again, load, asks}); diff != "" {
					t.Errorf("rendered from the store's copy:\n%s", diff)
				}
				for i := range r.Bundle.Units {
					r.Bundle.Units[i].Signs = nil // the kind's, the same for every trial
				}
				out.Rendered = append(out.Rendered, r)
			}
			var b bytes.Buffer
			enc := json.NewEncoder(&b)
			enc.SetEscapeHTML(false)
			enc.SetIndent("", "  ")
			if err := enc.Encode(out); err != nil {
				t.Fatal(err)
			}
			golden(t, strings.TrimSuffix(path, ".yaml")+".json", b.Bytes())
		})
	}
}

func TestBad(t *testing.T) {
	files, err := filepath.Glob("testdata/bad/*.yaml")
	if err != nil || len(files) < 30 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	for _, path := range files {
		t.Run(filepath.Base(path), func(t *testing.T) {
			src, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			_, err = experiment.Parse(filepath.Base(path), src, options())
			mistakes, ok := errors.AsType[mistake.List](err)
			if !ok || len(mistakes) == 0 {
				t.Fatalf("%s: error %v, want mistakes", path, err)
			}
			for _, m := range mistakes {
				if m.Code == "" || m.Message == "" || m.File == "" || m.Severity != hakaru.Error {
					t.Errorf("incomplete mistake: %+v", m)
				}
				if m.Line > 0 && (m.Column < 1 || m.Column > len(m.Excerpt)+1) {
					t.Errorf("column outside the line: %+v", m)
				}
			}
			golden(t, strings.TrimSuffix(path, ".yaml")+".err", []byte(mistakes.Error()+"\n"))
		})
	}
}
