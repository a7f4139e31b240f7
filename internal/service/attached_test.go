package service

import (
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"hakaru"
	"hakaru/internal/service/attach"
	"hakaru/internal/service/registry"
	"hakaru/internal/watch/kernel"
)

// standing is a fixture that something else has started: this test.
func standing(t *testing.T) (address string, pid int) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address = l.Addr().String()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0], "-test.run=^$")
	cmd.Env = []string{"FIXTURE=serve", "LISTEN=" + address}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
			t.Error(err)
		}
		_ = cmd.Wait() // it was killed
	})
	deadline := time.Now().Add(20 * time.Second)
	for {
		c, err := net.Dial("tcp", address)
		if err == nil {
			c.Close()
			return address, cmd.Process.Pid
		}
		if time.Now().After(deadline) {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Millisecond) // there is no event for its listen
	}
}

func attachedUnit(dir, address string) hakaru.Unit {
	return hakaru.Unit{
		Service: "front", Dir: dir, Files: []hakaru.File{{Path: "front.conf", Content: "to {http}\n", Mode: 0o644}},
		Ready: hakaru.Ready{Get: "http://" + address + "/", Body: "6765", Timeout: 10 * time.Second},
		Attached: &hakaru.Attached{
			File: "front.conf", Apply: []string{"cp", "{file}", "live.conf"},
			Undo: []string{"sh", "-c", "rm -f live.conf; echo undo >> log"},
		},
	}
}

// A stack of a service that hakaru starts and one that it does not: the copy has
// the leased address, one is stopped in the end and the other goes on.
func TestAttachedBesideStarted(t *testing.T) {
	both(t, func(t *testing.T, opt Options) {
		dir := t.TempDir()
		address, pid := standing(t)
		bundle := one(fixtureUnit("app", "serve"))
		bundle.Units = append(bundle.Units, attachedUnit(dir, address))
		opt.DurableDir = filepath.Join(dir, "durable")
		s := mustUp(t, bundle, opt)
		place := s.Place()
		live, err := os.ReadFile(filepath.Join(dir, "live.conf"))
		if err != nil || string(live) != "to "+place.Names["http"]+"\n" {
			t.Errorf("applied was %q, %v", live, err)
		}
		if info, err := os.Stat(filepath.Join(dir, "live.conf")); err != nil || info.Mode().Perm()&0o004 == 0 {
			t.Errorf("the copy lost its mode: %v, %v", info, err)
		}
		if len(place.Units) != 2 || !place.Units[1].Attached || place.Units[1].PID != pid || place.Units[1].Cgroup != "" || place.Units[0].Attached {
			t.Errorf("units %+v, want the second attached and pid %d", place.Units, pid)
		}
		if n := registryOf(t, opt.DurableDir); n != 1 {
			t.Errorf("%d durable notes", n)
		}
		proofs := s.Prove(t.Context(), []hakaru.Ask{
			{Service: "front", Setting: "a", Asked: "1", Kind: "processes", Equals: "1"},
			{Service: "front", Setting: "b", Asked: "fib", Kind: "http", Argument: "http://" + address + "/", Contains: "fib"},
			{Service: "front", Setting: "c", Asked: "begins", Kind: "log", Argument: "begins"},
			// The copy has it, and so has what apply made of it, which nobody has read.
			{Service: "front", Setting: "d", Asked: "to", Kind: "file", Contains: "to "},
			{Service: "front", Setting: "d", Asked: "to", Kind: "file", Argument: filepath.Join(dir, "live.conf"), Contains: "to "},
		}, hakaru.AtReady)
		for i, want := range []hakaru.Held{hakaru.Yes, hakaru.Yes, hakaru.NotProved, hakaru.NotProved, hakaru.No} {
			if proofs[i].Holds != want {
				t.Errorf("proof %+v, want %s", proofs[i], want)
			}
		}
		if !strings.Contains(proofs[2].Found, "hakaru does not start it and does not see its output") {
			t.Errorf("proof by log: %+v", proofs[2])
		}
		if e := append(s.Ended(), s.Replaced(t.Context())...); len(e) != 0 {
			t.Errorf("ended: %v", e)
		}
		if o := s.Outputs(); len(o) != 1 || o[0].Service != "app" {
			t.Errorf("outputs %v", o)
		}
		app := place.Units[0].PID
		left := down(t, s)
		if len(left.Warnings) != 0 || len(left.Exits) != 1 || s.NotBack() != nil {
			t.Errorf("down: %+v, %v", left, s.NotBack())
		}
		if _, err := os.Stat(filepath.Join(dir, "live.conf")); !os.IsNotExist(err) {
			t.Errorf("it was not put back: %v", err)
		}
		if st, err := kernel.ReadStat(app); err == nil && st.Alive() {
			t.Error("the started service is still there")
		}
		if st, err := kernel.ReadStat(pid); err != nil || !st.Alive() {
			t.Errorf("the attached service is gone: %v", err)
		}
		if n := registryOf(t, opt.DurableDir); n != 0 {
			t.Errorf("%d durable notes are left", n)
		}
	})
}

func registryOf(t *testing.T, dir string) int {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	return len(entries)
}

// When a later unit does not start, the attached one is put back all the same.
func TestAttachedPutBackWhenAnotherFails(t *testing.T) {
	both(t, func(t *testing.T, opt Options) {
		dir := t.TempDir()
		address, _ := standing(t)
		bundle := one(attachedUnit(dir, address))
		bundle.Units = append(bundle.Units, fixtureUnit("app", "exit"))
		_, err := Up(t.Context(), bundle, opt)
		var start *StartError
		if !errors.As(err, &start) || start.Service != "app" {
			t.Fatalf("got %v", err)
		}
		if log, err := os.ReadFile(filepath.Join(dir, "log")); err != nil || string(log) != "undo\n" {
			t.Errorf("undo was run: %q, %v", log, err)
		}
		nothingIn(t, opt.StateDir)
	})
}

// What cannot be put back is no failed start of a variant: nothing may be
// measured any more. The note stays until it is put back.
func TestAttachedNotPutBack(t *testing.T) {
	both(t, func(t *testing.T, opt Options) {
		dir := t.TempDir()
		address, _ := standing(t)
		u := attachedUnit(dir, address)
		u.Attached.Undo = []string{"sh", "-c", "test -e allowed"}
		bundle := one(u)
		bundle.Units = append(bundle.Units, fixtureUnit("app", "exit"))
		_, err := Up(t.Context(), bundle, opt)
		var start *StartError
		if err == nil || errors.As(err, &start) || !strings.Contains(err.Error(), "NOT put back") || !strings.Contains(err.Error(), "it ended before it was ready") {
			t.Fatalf("got %v", err)
		}
		if n := registryOf(t, opt.StateDir); n != 1 {
			t.Fatalf("%d notes", n)
		}
		// The agent that was this process has ended.
		files, err := registry.Open(opt.StateDir)
		if err != nil {
			t.Fatal(err)
		}
		entries, err := os.ReadDir(opt.StateDir)
		if err != nil {
			t.Fatal(err)
		}
		rec, err := files.Read(entries[0].Name())
		if err != nil {
			t.Fatal(err)
		}
		rec.Owner = registry.Owner{PID: 1 << 22, Start: 1}
		if err := files.Write(rec, true); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "allowed"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := attach.PutBack(t.Context(), opt.StateDir, os.Environ()); err != nil {
			t.Fatal(err)
		}
		if _, err := registry.Sweep(t.Context(), opt.StateDir); err != nil {
			t.Fatal(err)
		}
		nothingIn(t, opt.StateDir)
		nothingIn(t, opt.TempDir)
	})
}

// The process that listens ends during a trial.
func TestAttachedDies(t *testing.T) {
	both(t, func(t *testing.T, opt Options) {
		address, pid := standing(t)
		u := attachedUnit(t.TempDir(), address)
		u.Attached, u.Files = &hakaru.Attached{}, nil
		s := mustUp(t, one(u), opt)
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		deadline := time.Now().Add(10 * time.Second)
		for len(s.Replaced(t.Context())) == 0 {
			if time.Now().After(deadline) {
				t.Fatal("nobody noticed")
			}
			time.Sleep(10 * time.Millisecond) // killed is not yet gone
		}
		if e := s.Replaced(t.Context()); e[0].Service != "front" || !strings.Contains(e[0].State, "ended") {
			t.Errorf("ended: %+v", e)
		}
		down(t, s)
	})
}
