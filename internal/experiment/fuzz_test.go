package experiment_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"hakaru/internal/experiment"
	"hakaru/internal/mistake"
	"hakaru/internal/render"
)

// FuzzParse: no file makes the parser panic, whatever it refuses has a mistake
// with a place, and whatever it accepts can be rendered.
func FuzzParse(f *testing.F) {
	for _, pattern := range []string{"testdata/good/*.yaml", "testdata/bad/*.yaml"} {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			f.Fatalf("%s: %v", pattern, err)
		}
		for _, path := range files {
			src, err := os.ReadFile(path)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(string(src))
		}
	}
	f.Fuzz(func(t *testing.T, src string) {
		opt := options()
		opt.Read = func(string) ([]byte, error) { return []byte("[serve]\nlisten = {http}\nthreads = {x}\n"), nil }
		exp, err := experiment.Parse("fuzz.yaml", []byte(src), opt)
		if err != nil {
			mistakes, ok := errors.AsType[mistake.List](err)
			if !ok || len(mistakes) == 0 || mistakes.Error() == "" {
				t.Fatalf("error %v is no mistake", err)
			}
			for _, m := range mistakes {
				if m.Line > 0 && (m.Column < 1 || m.Column > len(m.Excerpt)+1) {
					t.Errorf("column outside the line: %+v", m)
				}
			}
			return
		}
		if len(exp.Variants) == 0 || len(exp.Strata) == 0 {
			t.Fatal("accepted without a variant or a stratum")
		}
		if _, found := exp.Variant(exp.Baseline); !found {
			t.Fatalf("the baseline %q is no variant", exp.Baseline)
		}
		if len(exp.NotYet) > 0 {
			return
		}
		for i, v := range exp.Variants {
			if i == 5 {
				break
			}
			for _, at := range exp.Strata[:min(len(exp.Strata), 3)] {
				if _, _, _, err := render.Trial(exp, v.Name, at); err != nil {
					t.Errorf("accepted and not rendered: %v", err)
				}
			}
			if _, err := render.Diff(exp, v.Name); err != nil {
				t.Errorf("accepted and not compared: %v", err)
			}
		}
	})
}
