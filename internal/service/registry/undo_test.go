package registry

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"hakaru"
)

// What a person is told to run means to a shell what hakaru would run.
func TestByHand(t *testing.T) {
	for _, words := range [][]string{
		{"printf", "%s\n", "plain", "two words", "it's", `a\b`, "$HOME", "*", "{a,b}", "", "~", "a;b", "#", "=x"},
		{"printf", "%s\n", "line\nbreak", "tab\there"},
	} {
		dir := filepath.Join(t.TempDir(), "my app's")
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		text := Undo{Words: words, Dir: dir}.ByHand()
		out, err := exec.Command("sh", "-c", text).Output()
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		if want := strings.Join(words[2:], "\n") + "\n"; string(out) != want {
			t.Errorf("%s prints %q, want %q", text, out, want)
		}
	}
	pwd := Undo{Words: []string{"pwd"}, Dir: "/"}.ByHand()
	if out, err := exec.Command("sh", "-c", pwd).Output(); err != nil || pwd != "cd / && pwd" || string(out) != "/\n" {
		t.Errorf("%s prints %q, %v", pwd, out, err)
	}
}

func TestUndoSurvives(t *testing.T) {
	files, err := Open(filepath.Join(t.TempDir(), "state"))
	if err != nil {
		t.Fatal(err)
	}
	id, err := NewID()
	if err != nil {
		t.Fatal(err)
	}
	rec := Record{Format: Format, ID: id, Boot: "b", Dir: "/tmp/hakaru-" + id, Units: []Unit{{Service: "app", Mark: "m"}, {
		Service: "db", Undo: &Undo{
			Words: []string{"rm", "-f", "x"}, Dir: "/srv", Env: []string{"PATH=/bin"}, Timeout: time.Second, Restarts: true,
			Ready:   hakaru.Ready{Get: "http://x/", Status: 204, Body: "b", Connect: "c:1", Timeout: time.Second},
			Running: &Command{What: "apply", PID: 3, Start: 4, Output: "/tmp/o"}, Failed: "why", Tries: 2, Ran: true, Set: []string{"A"},
		},
	}}}
	if err := files.Write(rec, true); err != nil {
		t.Fatal(err)
	}
	back, err := files.Read(id + ".json")
	if err != nil || !reflect.DeepEqual(back, rec) {
		t.Errorf("read back %+v, %v", back, err)
	}
	if got := back.Changed(); !reflect.DeepEqual(got, []int{1}) {
		t.Errorf("changed: %v", got)
	}
	back.Undone(1)
	if got := back.Changed(); got != nil {
		t.Errorf("changed after all was undone: %v", got)
	}
}

func TestExclusive(t *testing.T) {
	dir := t.TempDir()
	inside := make(chan struct{})
	leave := make(chan struct{})
	first := make(chan error)
	go func() {
		first <- Exclusive(t.Context(), dir, func() error { close(inside); <-leave; return nil })
	}()
	<-inside
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := Exclusive(ctx, dir, func() error { return nil }); !errors.Is(err, context.Canceled) {
		t.Errorf("while another is inside: %v", err)
	}
	close(leave)
	if err := <-first; err != nil {
		t.Error(err)
	}
	told := errors.New("told")
	if err := Exclusive(t.Context(), dir, func() error { return told }); !errors.Is(err, told) {
		t.Errorf("got %v", err)
	}
}

func TestDurableDir(t *testing.T) {
	for _, c := range []struct {
		uid  int
		env  map[string]string
		want string
	}{
		{0, map[string]string{"HOME": "/root"}, "/var/lib/hakaru"},
		{7, map[string]string{"HOME": "/home/a", "XDG_STATE_HOME": "/s"}, "/s/hakaru"},
		{7, map[string]string{"HOME": "/home/a", "XDG_STATE_HOME": "s"}, "/home/a/.local/state/hakaru"},
		{7, nil, "/tmp/hakaru-7"},
	} {
		if got := DurableDir(func(name string) string { return c.env[name] }, c.uid); got != c.want {
			t.Errorf("of uid %d with %v: %s, want %s", c.uid, c.env, got, c.want)
		}
	}
}
