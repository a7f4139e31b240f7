package host

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// TestMain lets this binary take a lock as another user, and HOLD it until its
// input ends: LOCK names the file. With SERVICE it is a service.
func TestMain(m *testing.M) {
	switch os.Getenv("SERVICE") {
	case "serve":
		serve()
		return
	case "fail":
		os.Stderr.WriteString("cannot open database: no such table\n")
		os.Exit(3)
	}
	path := os.Getenv("LOCK")
	if path == "" {
		os.Exit(m.Run())
	}
	file, err := openLock(path)
	if err == nil {
		err = unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	}
	if err != nil {
		os.Stdout.WriteString(err.Error())
		os.Exit(1)
	}
	if os.Getenv("HOLD") != "" {
		os.Stdout.WriteString("held\n")
		_, _ = io.Copy(io.Discard, os.Stdin) // until whoever holds the other end lets go
	}
}

// open is a directory in which all may write, and nobody may remove what is
// another's: as /run/lock.
func open(t *testing.T) string {
	dir := t.TempDir()
	for d := dir; d != os.TempDir() && d != "/"; d = filepath.Dir(d) {
		if err := os.Chmod(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(dir, 0o777|os.ModeSticky); err != nil {
		t.Fatal(err)
	}
	return dir
}

// The lock is one for all users, whoever made it, under fs.protected_regular.
func TestLockOfTwoUsers(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Log("only root can be two users: one takes it twice")
	}
	exe := filepath.Join(open(t), "test")
	b, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(exe, b, 0o755); err != nil {
		t.Fatal(err)
	}
	take := func(path string, uid uint32) string {
		cmd := exec.Command(exe)
		cmd.Env = []string{"LOCK=" + path}
		if os.Geteuid() == 0 {
			cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: uid}}
		}
		said, err := cmd.CombinedOutput()
		if err == nil {
			return ""
		}
		return string(said) + " " + err.Error()
	}
	for _, c := range []struct {
		name          string
		first, second uint32
	}{{"root first", 0, 65534}, {"root second", 65534, 0}, {"neither is root", 65533, 65534}} {
		t.Run(c.name, func(t *testing.T) {
			path := filepath.Join(open(t), "hakaru.lock")
			for _, uid := range []uint32{c.first, c.second} {
				if said := take(path, uid); said != "" {
					t.Errorf("uid %d: %s", uid, said)
				}
			}
		})
	}
}

// What someone else has put in the place of the lock is left as it is.
func TestLockIsNoOtherFile(t *testing.T) {
	for name, put := range map[string]func(path, victim string) error{
		"symbolic link": func(path, victim string) error { return os.Symlink(victim, path) },
		"hard link":     func(path, victim string) error { return os.Link(victim, path) },
		"fifo":          func(path, _ string) error { return unix.Mkfifo(path, 0o666) },
		"directory":     func(path, _ string) error { return os.Mkdir(path, 0o777) },
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			victim, path := filepath.Join(dir, "victim"), filepath.Join(dir, "hakaru.lock")
			if err := os.WriteFile(victim, []byte("mine"), 0o600); err != nil {
				t.Fatal(err)
			}
			if err := put(path, victim); err != nil {
				t.Fatal(err)
			}
			file, err := takeLock(t.Context(), path, LockAsk{})
			if err == nil {
				t.Fatal(errors.Join(errors.New("it was taken"), file.Close()))
			}
			if !strings.Contains(err.Error(), path) {
				t.Errorf("the error does not say which file: %v", err)
			}
			info, err := os.Stat(victim)
			if err != nil {
				t.Fatal(err)
			}
			if b, err := os.ReadFile(victim); err != nil || string(b) != "mine" || info.Mode().Perm() != 0o600 {
				t.Errorf("the file it points to was changed: %s %q %v", info.Mode(), b, err)
			}
		})
	}
}
