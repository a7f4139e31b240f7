package service

import (
	"os"
	"path/filepath"
	"testing"

	"hakaru"
)

// What stands beside the person's config file is found beside its copy, and is
// still there when the copy has gone.
func TestBeside(t *testing.T) {
	t.Parallel()
	beside := t.TempDir()
	for name, content := range map[string]string{"app.conf": "the person's own", "inner.conf": "inner"} {
		if err := os.WriteFile(filepath.Join(beside, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s, err := Up(t.Context(), hakaru.Bundle{Units: []hakaru.Unit{{
		Service: "app", Argv: []string{"sleep", "60"}, Dir: beside, Beside: beside,
		Files: []hakaru.File{{Path: "app.conf", Content: "edited"}},
	}}}, Options{StateDir: filepath.Join(t.TempDir(), "state"), Environ: os.Environ()})
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"app.conf": "edited", "inner.conf": "inner"} {
		if got, err := os.ReadFile(filepath.Join(s.Place().Dir, name)); err != nil || string(got) != want {
			t.Errorf("%s beside the copy: %q, %v; want %q", name, got, err, want)
		}
	}
	if left := s.Down(t.Context()); len(left.Warnings) > 0 {
		t.Errorf("left: %v", left.Warnings)
	}
	for name, want := range map[string]string{"app.conf": "the person's own", "inner.conf": "inner"} {
		if got, err := os.ReadFile(filepath.Join(beside, name)); err != nil || string(got) != want {
			t.Errorf("%s of the person: %q, %v; want %q", name, got, err, want)
		}
	}
}
