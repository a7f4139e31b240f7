package epoll

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"hakaru/internal/load/job"
)

// Run implements job.Engine.
func (Engine) Run(ctx context.Context, j *job.Job) int {
	threads := max(1, min(j.Threads, j.Connections))
	giveBack := borrow(threads)
	defer giveBack()

	bell := newBell()
	defer bell.close()
	loops := make([]*loop, threads)
	for k := range loops {
		loops[k] = newLoop(j, k, threads, bell)
	}
	rung := make(chan struct{})
	stop := context.AfterFunc(ctx, func() { bell.ring(); close(rung) })
	var working sync.WaitGroup
	for _, l := range loops {
		working.Go(func() {
			if j.Law != nil {
				// The thread's timers are made exact, which is to end with it: so the
				// goroutine keeps the thread, and ends it.
				runtime.LockOSThread()
				unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0)
			}
			l.run()
		})
	}
	working.Wait()
	if !stop() {
		<-rung
	}
	opened := 0
	for _, l := range loops {
		opened += l.opened()
	}
	return opened
}

// bell tells all loops to stop: an eventfd that stays readable.
type bell struct {
	fd   int // -1: there is none; the loops look at rung now and then
	rung atomic.Bool
}

func newBell() *bell {
	fd, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		fd = -1
	}
	return &bell{fd: fd}
}

func (b *bell) ring() {
	b.rung.Store(true)
	if b.fd >= 0 {
		unix.Write(b.fd, []byte{1, 0, 0, 0, 0, 0, 0, 0}) // any number but 0
	}
}

func (b *bell) close() {
	if b.fd >= 0 {
		unix.Close(b.fd)
	}
}

// procs is what all engines of this process that run now want of the one number
// of Ps (GOMAXPROCS) that a process has.
var procs struct {
	sync.Mutex
	threads int
	before  int
}

// borrow sees to it that beside so many threads, which keep their Ps while they
// wait, there are two more for the rest of the program. With a P too few the
// collector of memory and of figures would wait for the threads' waits to end.
func borrow(threads int) (giveBack func()) {
	const others = 2
	change := func(by int) {
		procs.Lock()
		defer procs.Unlock()
		if procs.threads == 0 {
			procs.before = runtime.GOMAXPROCS(0)
		}
		procs.threads += by
		want := procs.before
		if procs.threads > 0 {
			want = max(want, procs.threads+others)
		}
		if want != runtime.GOMAXPROCS(0) {
			runtime.GOMAXPROCS(want)
		}
	}
	change(threads)
	return func() { change(-threads) }
}
