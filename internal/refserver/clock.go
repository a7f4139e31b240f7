package refserver

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"time"

	"hakaru/internal/refserver/config"

	"golang.org/x/sys/unix"
)

// A timer waits to a moment with the precision of the kernel's high-resolution
// timers. Go's own timers are rounded to whole milliseconds by the poller they
// sleep in, and a blocking nanosleep keeps one of the few GOMAXPROCS until the
// runtime takes it back; a timerfd does neither and has no slack.
type timer struct {
	fd   int
	file *os.File
}

func newTimer() (*timer, error) {
	fd, err := unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_CLOEXEC|unix.TFD_NONBLOCK)
	if err != nil {
		return nil, fmt.Errorf("make a timer: %w", err)
	}
	return &timer{fd, os.NewFile(uintptr(fd), "timer")}, nil
}

// until waits for a moment of the monotonic clock.
func (t *timer) until(moment time.Duration) error {
	when := unix.ItimerSpec{Value: unix.NsecToTimespec(max(1, int64(moment)))} // 0 would disarm it
	if err := unix.TimerfdSettime(t.fd, unix.TFD_TIMER_ABSTIME, &when, nil); err != nil {
		return fmt.Errorf("set a timer: %w", err)
	}
	var expirations [8]byte
	if _, err := t.file.Read(expirations[:]); err != nil {
		return fmt.Errorf("wait for a timer: %w", err)
	}
	return nil
}

// monotonic is the clock all processes of this machine share.
func monotonic() time.Duration { return clock(unix.CLOCK_MONOTONIC) }

func clock(id int32) time.Duration {
	var t unix.Timespec
	// It only errs for a clock that does not exist or a bad address.
	if err := unix.ClockGettime(id, &t); err != nil {
		panic(fmt.Sprintf("clock_gettime(%d): %v", id, err))
	}
	return time.Duration(t.Nano())
}

// burn uses d of CPU time, whatever it takes on the clock: time in which the
// thread is not running does not count.
func burn(d time.Duration) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	end := clock(unix.CLOCK_THREAD_CPUTIME_ID) + d
	x := uint32(1)
	for clock(unix.CLOCK_THREAD_CPUTIME_ID) < end {
		// About a microsecond: the clock is a system call, and a request that
		// burns should burn in user space. xorshift can not be optimised away
		// as x is used below.
		for range 500 {
			x ^= x << 13
			x ^= x >> 17
			x ^= x << 5
		}
	}
	if x == 0 { // xorshift never reaches 0
		panic("xorshift reached 0")
	}
}

// stallEnd is the end of the stall at a moment, and whether there is one: the
// first part of every period of the machine's monotonic clock, so that all
// workers stall together.
func stallEnd(now, stall, every time.Duration) (time.Duration, bool) {
	if stall <= 0 || every <= 0 {
		return 0, false
	}
	begin := now - now%every
	return begin + stall, now-begin < stall
}

// A thread is the right to work on one request, with what that needs. A worker
// has Config.Threads of them.
type thread struct {
	timer *timer
	sync  *os.File // only for the handler fsync
	sum   uint64   // of compute
}

func newThread(cfg config.Config) (*thread, error) {
	timer, err := newTimer()
	if err != nil {
		return nil, err
	}
	t := &thread{timer: timer}
	if cfg.Handler == config.HandlerFsync {
		f, err := os.CreateTemp("", "hakaru-fsync-*")
		if err != nil {
			return nil, fmt.Errorf("make the file for fsync: %w", err)
		}
		// Without a name it is gone with the process, however that ends.
		if err := os.Remove(f.Name()); err != nil {
			return nil, errors.Join(fmt.Errorf("make the file for fsync: %w", err), f.Close())
		}
		t.sync = f
	}
	return t, nil
}

// work pays what one request costs, in the order of docs/serve.md.
func (t *thread) work(cfg *config.Config) error {
	if err := t.stall(cfg); err != nil {
		return err
	}
	if cfg.Wait > 0 {
		if err := t.timer.until(monotonic() + cfg.Wait); err != nil {
			return err
		}
	}
	if cfg.CPU > 0 {
		burn(cfg.CPU)
	}
	if cfg.Work > 0 {
		t.sum = compute(t.sum, cfg.Work)
	}
	if cfg.Alloc > 0 {
		touch(cfg.Alloc)
	}
	if t.sync != nil {
		if _, err := t.sync.WriteAt(syncBlock[:], 0); err != nil {
			return fmt.Errorf("write the file for fsync: %w", err)
		}
		if err := t.sync.Sync(); err != nil {
			return fmt.Errorf("fsync: %w", err)
		}
	}
	// Again, so that what was begun before a stall is not answered in it.
	return t.stall(cfg)
}

func (t *thread) stall(cfg *config.Config) error {
	if end, stalled := stallEnd(monotonic(), cfg.Stall, cfg.StallEvery); stalled {
		return t.timer.until(end)
	}
	return nil
}

// syncBlock is what the handler fsync writes, one page; read only.
var syncBlock [4096]byte

// roundSteps makes a round about a microsecond on today's CPUs.
const roundSteps = 400

// compute does a fixed amount of computation, xorshift64 (Marsaglia 2003): the
// CPU time it takes changes with the speed of the CPU, as any program's does,
// where burn takes the same CPU time on every CPU. The result is handed on so
// that the work cannot be left out.
func compute(seed uint64, rounds int) uint64 {
	x := seed | 1
	for range rounds * roundSteps {
		x ^= x << 13
		x ^= x >> 7
		x ^= x << 17
	}
	return x
}

// touch allocates n bytes and writes to each page, so that they are really
// there.
func touch(n int64) {
	b := make([]byte, n)
	for i := 0; i < len(b); i += 4096 {
		b[i] = 1
	}
	runtime.KeepAlive(b)
}
