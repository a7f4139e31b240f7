package service

import (
	"errors"
	"io/fs"
	"net"
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

// What somebody of the stack has under a name of its own in the private directory
// is no link to what the person has under that name, and neither is a socket, be
// it of a service that runs.
func TestBesideReserved(t *testing.T) {
	t.Parallel()
	beside := t.TempDir()
	own := map[string]string{"front.conf": "front", "app.ini": "app", "front.pid": "12", "inner.conf": "inner", "sub": ""}
	for name, content := range own {
		if err := os.WriteFile(filepath.Join(beside, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	l, err := net.Listen("unix", filepath.Join(beside, "live.sock"))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for link, to := range map[string]string{"linked.sock": "live.sock", "linked.conf": "inner.conf"} {
		if err := os.Symlink(to, filepath.Join(beside, link)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(beside, "app.sock"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	front := hakaru.Unit{
		Service: "front", Argv: []string{"sleep", "60"}, Dir: beside, Beside: beside,
		Files: []hakaru.File{{Path: "front.conf", Content: "pid {hakaru.dir}/front.pid; to {app};"}},
	}
	app := hakaru.Unit{
		Service: "app", Argv: []string{"sleep", "60"}, Dir: beside,
		Files: []hakaru.File{{Path: "app.ini", Content: "edited"}, {Path: "sub/x.ini", Content: "deeper"}},
	}
	s := mustUp(t, hakaru.Bundle{Leases: []hakaru.Lease{{Name: "app", Unix: true}}, Units: []hakaru.Unit{front, app}}, options(t))
	for name, want := range map[string]string{"app.ini": "edited", "sub/x.ini": "deeper", "inner.conf": "inner", "linked.conf": "inner"} {
		if got, err := os.ReadFile(filepath.Join(s.Place().Dir, name)); err != nil || string(got) != want {
			t.Errorf("%s in the private directory: %q, %v; want %q", name, got, err, want)
		}
	}
	for _, name := range []string{"front.pid", "app.sock", "live.sock", "linked.sock"} {
		if info, err := os.Lstat(filepath.Join(s.Place().Dir, name)); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s is in the private directory: %v, %v", name, info.Mode(), err)
		}
	}
	if left := down(t, s); len(left.Warnings) > 0 {
		t.Errorf("left: %v", left.Warnings)
	}
	for name, want := range own {
		if got, err := os.ReadFile(filepath.Join(beside, name)); err != nil || string(got) != want {
			t.Errorf("%s of the person: %q, %v; want %q", name, got, err, want)
		}
	}
}

// The private directory is the one that was made, though its user has put a link
// to another in its place.
func TestPrivateDirReplaced(t *testing.T) {
	t.Parallel()
	opt := options(t)
	other := t.TempDir()
	u := fixtureUnit("app", "serve")
	u.Argv = []string{"/bin/sh", "-c", `mv "$0" "$0-moved" && ln -s "$1" "$0"; echo replaced; exec sleep 600`, "{hakaru.dir}", other}
	u.Ready = hakaru.Ready{Log: "replaced"}
	second := hakaru.Unit{Service: "second", Argv: []string{"sleep", "60"}, Dir: "/", Files: []hakaru.File{{Path: "a.ini", Content: "a"}}}
	b := one(u)
	b.Units = append(b.Units, second)
	s := mustUp(t, b, opt)
	moved := s.Place().Dir + "-moved"
	if got, err := os.ReadFile(filepath.Join(moved, "a.ini")); err != nil || string(got) != "a" {
		t.Errorf("written was %q, %v", got, err)
	}
	down(t, s)
	entries, err := os.ReadDir(other)
	if err != nil || len(entries) > 0 {
		t.Errorf("written where the link leads: %v, %v", entries, err)
	}
}
