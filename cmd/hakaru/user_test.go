package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestOrdinaryUser: a run by somebody who may make no cgroup, nor anything else
// that takes root, completes and leaves nothing behind.
func TestOrdinaryUser(t *testing.T) {
	s := newSite(t, killed)
	const nobody = 65534
	cmd := s.command("run", "app.yaml")
	if os.Getuid() == 0 {
		// A directory that nobody can reach, beside the program, which it can.
		s.dir = filepath.Join(filepath.Dir(program), "nobody")
		if err := os.MkdirAll(filepath.Join(s.dir, "tmp"), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(s.dir, "app.yaml"), []byte(killed), 0o644); err != nil {
			t.Fatal(err)
		}
		for _, path := range []string{s.dir, filepath.Join(s.dir, "tmp")} {
			if err := os.Chown(path, nobody, nobody); err != nil {
				t.Fatal(err)
			}
		}
		s.env = append(os.Environ(), isolated(s.dir)...)
		cmd = s.command("run", "app.yaml")
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	}
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v\n%s%s", err, stderr.Bytes(), stdout.Bytes())
	}
	if !strings.Contains(stdout.String(), "5 in all, 0 void") {
		t.Errorf("not five trials that count:\n%s%s", stderr.Bytes(), stdout.Bytes())
	}
	// What it had to do without is said: on standard error with each trial.
	if os.Getuid() == 0 && !strings.Contains(stderr.String(), "no cgroup could be made") {
		t.Errorf("no word on the cgroup that could not be made:\n%s", stderr.Bytes())
	}
	if left := leftovers(filepath.Join(s.dir, "state")); left != "" {
		t.Errorf("left behind:\n%s", left)
	}
}
