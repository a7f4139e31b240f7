package goroutines

import (
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// exactAlarm is a timer of the kernel that the runtime's poller waits for as for
// a socket: exact to some microseconds, without a thread of its own.
type exactAlarm struct {
	file *os.File
	conn syscall.RawConn
	spec unix.ItimerSpec
	set  bool
	arm  func(fd uintptr) (rang bool)
}

// newExactAlarm is nil where the kernel has no timer to give.
func newExactAlarm() *exactAlarm {
	fd, err := unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_CLOEXEC|unix.TFD_NONBLOCK)
	if err != nil {
		return nil
	}
	a := &exactAlarm{file: os.NewFile(uintptr(fd), "timer")}
	if a.conn, err = a.file.SyscallConn(); err != nil {
		a.file.Close()
		return nil
	}
	// It is called before the wait and after it. Nobody reads how often the timer
	// has rung: setting it forgets that.
	a.arm = func(fd uintptr) bool {
		if a.set {
			return true
		}
		a.set = true
		return unix.TimerfdSettime(int(fd), 0, &a.spec, nil) != nil
	}
	return a
}

func (a *exactAlarm) wait(d time.Duration) (goOn bool) {
	a.spec.Value = unix.NsecToTimespec(int64(d))
	a.set = false
	return a.conn.Read(a.arm) == nil
}

func (a *exactAlarm) close() { a.file.Close() }
