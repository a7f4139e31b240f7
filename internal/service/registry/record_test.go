package registry

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// What a record may not do: name a directory or a cgroup that is no stack's.
func TestSweepRefusesForeignRecords(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "s")
	if _, err := Open(dir); err != nil {
		t.Fatal(err)
	}
	precious := filepath.Join(t.TempDir(), "precious")
	if err := os.WriteFile(precious, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	refuse := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Sweep(t.Context(), dir); err == nil || !strings.Contains(err.Error(), "note "+filepath.Join(dir, name)) {
			t.Errorf("%s: error %v", name, err)
		}
		if err := os.Remove(filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	const id = "0123456789abcdef"
	for name, text := range map[string]string{
		"torn.json":        `{"format": 1, "id": "to`,
		id + ".json":       `{"format": 1, "id": "` + id + `", "dir": "` + precious + `"}`,
		"123.json":         `{"format": 1, "id": "123", "dir": "/tmp/hakaru-123"}`,
		"0" + id + ".json": `{"format": 1, "id": "` + id + `", "dir": "/tmp/hakaru-` + id + `"}`,
	} {
		refuse(name, text)
	}
	dirOf := `", "dir": "/tmp/hakaru-` + id + `"`
	refuse(id+".json", `{"format": 1, "id": "`+id+dirOf+`, "cgroup_dir": "/no/such/cgroup"}`)
	refuse(id+".json", `{"format": 1, "id": "`+id+dirOf+`, "cgroup_dir": "/no/hakaru/`+id+`", "units": [{"cgroup": "/no/such/cgroup"}]}`)
	refuse(id+".json", `{"format": 99, "id": "`+id+dirOf+`}`)
	if _, err := os.Stat(precious); err != nil {
		t.Error(err)
	}
	if w, err := Sweep(context.Background(), filepath.Join(dir, "none")); err != nil || w != nil {
		t.Errorf("no directory: %v, %v", w, err)
	}
}

func TestUnfinishedRecords(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "s")
	files, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	self, err := Self()
	if err != nil {
		t.Fatal(err)
	}
	mine := fmt.Sprintf("aa-%d-%d.new", self.PID, self.Start)
	dead := fmt.Sprintf("bb-%d-%d.new", self.PID, self.Start+1)
	for _, name := range []string{mine, dead} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("{"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := Sweep(t.Context(), dir); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, mine)); err != nil {
		t.Errorf("a living agent's file: %v", err)
	}
	if _, err := os.Stat(filepath.Join(dir, dead)); !os.IsNotExist(err) {
		t.Errorf("a dead agent's file: %v", err)
	}
	rec := Record{Format: Format, ID: "00112233445566cc", Owner: self, Dir: "/tmp/hakaru-00112233445566cc", Units: []Unit{{Service: "x", Mark: "cc.1"}}}
	if err := files.Write(rec, true); err != nil {
		t.Fatal(err)
	}
	got, err := files.Read(rec.ID + ".json")
	if err != nil || got.ID != rec.ID || got.Owner != self || got.Units[0] != rec.Units[0] {
		t.Errorf("record %+v, %v", got, err)
	}
}

func TestDefaultDir(t *testing.T) {
	env := func(m map[string]string) func(string) string { return func(n string) string { return m[n] } }
	for _, tt := range []struct {
		env  map[string]string
		uid  int
		want string
	}{
		{nil, 0, "/run/hakaru"},
		{map[string]string{"XDG_RUNTIME_DIR": "/run/user/5"}, 5, "/run/user/5/hakaru"},
		{map[string]string{"TMPDIR": "/var/tmp"}, 5, "/var/tmp/hakaru-5"},
		{map[string]string{"XDG_RUNTIME_DIR": "relative"}, 5, "/tmp/hakaru-5"},
	} {
		if got := DefaultDir(env(tt.env), tt.uid); got != tt.want {
			t.Errorf("%v, uid %d: %s, want %s", tt.env, tt.uid, got, tt.want)
		}
	}
}

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

// A link in the place of the directory is not followed to change what is behind.
func TestOpenDirNoLink(t *testing.T) {
	dir := t.TempDir()
	link := filepath.Join(dir, "link")
	if err := os.Symlink(dir, link); err != nil {
		t.Fatal(err)
	}
	if root, err := openDir(link); err == nil {
		t.Errorf("%s was opened (%v)", link, root.Close())
	}
	root, err := openDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := root.Close(); err != nil {
		t.Error(err)
	}
}
