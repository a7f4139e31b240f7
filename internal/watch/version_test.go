package watch

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// A program that does not know --version may begin to work, and end while what
// it started goes on.
func TestVersionProbeLeavesNobody(t *testing.T) {
	for _, end := range []string{"exit 0", "exit 3", "exec sleep 600"} {
		t.Run(end, func(t *testing.T) {
			dir := t.TempDir()
			script := filepath.Join(dir, "start.sh")
			text := "#!/bin/sh\nsleep 600 >/dev/null 2>&1 &\necho $! >" + filepath.Join(dir, "pid") + "\n" + end + "\n"
			if err := os.WriteFile(script, []byte(text), 0o700); err != nil {
				t.Fatal(err)
			}
			if got := versionOf(t.Context(), script); !strings.HasPrefix(got, "version unknown") && got != "did not say its version" {
				t.Errorf("its version is said to be %q", got)
			}
			b, err := os.ReadFile(filepath.Join(dir, "pid"))
			if err != nil {
				t.Fatal(err)
			}
			pid, err := strconv.Atoi(strings.TrimSpace(string(b)))
			if err != nil {
				t.Fatal(err)
			}
			fd, err := unix.PidfdOpen(pid, 0)
			if errors.Is(err, unix.ESRCH) {
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			defer unix.Close(fd)
			if n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 5000); n != 1 {
				t.Errorf("pid %d is still there (%v)", pid, errors.Join(err, unix.Kill(pid, unix.SIGKILL)))
			}
		})
	}
}
