package main

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"hakaru/internal/watch/kernel"
)

// scriptCommands are the words that test scripts have besides testscript's own:
//
//	exits CODE COMMAND…      run it and want this exit code, or one of 0|3; stdout and stderr are kept
//	nothing-left             no process, cgroup, record or private directory of this script's hakaru
//	wait-for-file FILE TEXT  wait until the file holds the text
//	defer-unmount DIR        unmount it when the script has ended
//	wait-for-connection ADDRESS  wait until it accepts a connection
//	misbehaves NAME MODE [LISTEN]  start the service that does one thing wrong; its address is $NAME
func scriptCommands() map[string]func(*testscript.TestScript, bool, []string) {
	return map[string]func(*testscript.TestScript, bool, []string){
		"exits":         exits,
		"nothing-left":  nothingLeft,
		"wait-for-file": waitForFile,

		"defer-unmount": deferUnmount,

		"wait-for-connection": waitForConnection,

		"misbehaves": misbehaves,
	}
}

// scriptConditions are those that test scripts have besides testscript's own.
func scriptConditions(name string) (bool, error) {
	if name == "root" {
		return os.Getuid() == 0, nil
	}
	return false, fmt.Errorf("there is no condition %q", name)
}

func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE COMMAND [ARG...]")
	}
	err := ts.Exec(args[1], args[2:]...)
	got := 0
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit):
		got = exit.ExitCode()
	case err != nil:
		ts.Fatalf("%v", err)
	}
	if !slices.Contains(strings.Split(args[0], "|"), strconv.Itoa(got)) {
		ts.Fatalf("%s: exit code %d, want %s", strings.Join(args[1:], " "), got, args[0])
	}
}

func nothingLeft(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) > 0 {
		ts.Fatalf("usage: nothing-left")
	}
	if left := leftovers(ts.Getenv("HAKARU_STATE")); left != "" {
		ts.Fatalf("left behind:\n%s", left)
	}
}

func waitForFile(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: wait-for-file FILE TEXT")
	}
	for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		if content, err := os.ReadFile(ts.MkAbs(args[0])); err == nil && bytes.Contains(content, []byte(args[1])) {
			return
		}
	}
	ts.Fatalf("%s never held %q", args[0], args[1])
}

func waitForConnection(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: wait-for-connection ADDRESS")
	}
	var err error
	for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		var c net.Conn
		if c, err = net.DialTimeout("tcp", args[0], time.Second); err == nil {
			c.Close()
			return
		}
	}
	ts.Fatalf("%s never accepted a connection: %v", args[0], err)
}

func deferUnmount(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: defer-unmount DIR")
	}
	dir := ts.MkAbs(args[0])
	ts.Defer(func() {
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			ts.Logf("unmount %s: %v", dir, err)
		}
	})
}

// leftovers names what is left of hakaru runs with this state directory, waiting
// a little for what is just ending: processes that carry its mark or that serve
// it, records, private directories, sockets; and cgroups without a process,
// which belong to nobody.
func leftovers(state string) string {
	deadline := time.Now().Add(5 * time.Second)
	empty := slices.DeleteFunc(emptyCgroups(), func(dir string) bool { return slices.Contains(emptyBefore, dir) })
	for {
		left := look(state)
		// Another run's may be empty for a moment, when it starts or stops.
		now := emptyCgroups()
		empty = slices.DeleteFunc(empty, func(dir string) bool { return !slices.Contains(now, dir) })
		for _, dir := range empty {
			left += "cgroup " + dir + "\n"
		}
		if left == "" || time.Now().After(deadline) {
			return left
		}
		// There is no event for "some process somewhere has ended".
		time.Sleep(50 * time.Millisecond)
	}
}

// emptyBefore are those that were there before these tests began.
var emptyBefore = emptyCgroups()

// emptyCgroups lists cgroups of services, of any run, that hold no process.
func emptyCgroups() (dirs []string) {
	mount, own, err := kernel.CgroupRoot()
	if err != nil {
		return nil // there is no hierarchy for hakaru to use
	}
	for _, parent := range []string{mount, filepath.Join(mount, own)} {
		events, err := filepath.Glob(filepath.Join(parent, "hakaru", "*", "cgroup.events"))
		if err != nil {
			return []string{err.Error()}
		}
		for _, file := range events {
			if text, err := os.ReadFile(file); err == nil && bytes.Contains(text, []byte("populated 0")) {
				dirs = append(dirs, filepath.Dir(file))
			}
		}
	}
	return dirs
}

func look(state string) string {
	var left strings.Builder
	dir := filepath.Dir(state)
	procs, err := filepath.Glob("/proc/[0-9]*/environ")
	if err != nil {
		return err.Error()
	}
	for _, file := range procs {
		environ, err := os.ReadFile(file)
		if err != nil {
			continue // it has ended
		}
		// Services inherit TMPDIR; agents have the state directory too.
		if !bytes.Contains(environ, []byte(dir+"/tmp")) && !bytes.Contains(environ, []byte(state)) {
			continue
		}
		pid := filepath.Base(filepath.Dir(file))
		cmdline, err := os.ReadFile("/proc/" + pid + "/cmdline")
		if err != nil || len(cmdline) == 0 || pid == strconv.Itoa(os.Getpid()) {
			continue
		}
		fmt.Fprintf(&left, "process %s: %s\n", pid, bytes.ReplaceAll(cmdline, []byte{0}, []byte{' '}))
	}
	for _, pattern := range []string{state + "/*", dir + "/tmp/*"} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			return err.Error()
		}
		for _, f := range files {
			fmt.Fprintf(&left, "file %s\n", f)
		}
	}
	return left.String()
}

// kill9 kills one process that this test started.
func kill9(pid int) error { return syscall.Kill(pid, syscall.SIGKILL) }
