package service

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

// A service that took the right to write from its own directories must not
// leave something that no later command can remove. (As root everything can.)
func TestRemovePrivateDir(t *testing.T) {
	top := t.TempDir()
	outside := filepath.Join(top, "outside")
	dir := filepath.Join(top, "hakaru-0123456789abcdef")
	for _, d := range []string{outside, filepath.Join(dir, "a", "b")} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(d, "file"), nil, 0o400); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(outside, filepath.Join(dir, "a", "link")); err != nil {
		t.Fatal(err)
	}
	for d, mode := range map[string]fs.FileMode{"a/b": 0, "a": 0o500} {
		if err := os.Chmod(filepath.Join(dir, d), mode); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(outside, 0o500); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.Chmod(outside, 0o700); err != nil {
			t.Error(err)
		}
	})
	if err := removePrivateDir(dir); err != nil {
		t.Error(err)
	}
	if _, err := os.Lstat(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("it is still there (%v)", err)
	}
	if info, err := os.Stat(outside); err != nil || info.Mode().Perm() != 0o500 {
		t.Errorf("what a link in it points to was changed: %v %v", info, err)
	}
	if _, err := os.Stat(filepath.Join(outside, "file")); err != nil {
		t.Error(err)
	}
}
