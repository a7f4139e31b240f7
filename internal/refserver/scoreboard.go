package refserver

import (
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"time"
	"unsafe"

	"hakaru/internal/refserver/config"

	"golang.org/x/sys/unix"
)

// The scoreboard is one piece of memory (a memfd) that the master and all
// workers map: who lives, who has how many connections, how much was done. A
// worker writes its own slot only; every word is read and written atomically,
// none of them together with another, so a reader may see a request counted
// whose connection it does not see yet.

// A slot fills one cache line, so that two workers do not slow each other down.
const (
	scoreboardMagic = 0x68616b6172750001 // "hakaru", layout 1
	slotWords       = 8
	slotBytes       = slotWords * 8
	maxSlots        = 4 * config.MaxProcesses // live ones, a new generation, draining ones
	scoreboardBytes = (1 + maxSlots) * slotBytes
)

type header struct {
	magic    atomic.Uint64
	asked    atomic.Uint64 // processes asked for
	slots    atomic.Uint64 // slots that were ever used; the rest is not looked at
	answered atomic.Uint64 // requests that came to the error law, for its even spacing
	started  atomic.Uint64 // workers started so far
	_        [slotWords - 5]uint64
}

type slot struct {
	state       atomic.Uint64 // one of the states below
	pid         atomic.Uint64
	requests    atomic.Uint64
	connections atomic.Uint64
	busy        atomic.Uint64 // requests in work or waiting for a thread
	started     atomic.Uint64 // Unix nanoseconds
	generation  atomic.Uint64
	_           uint64
}

const (
	stateFree = iota
	stateStarting
	stateLive
	stateDraining
)

type scoreboard struct {
	file *os.File
	mem  []byte
	*header
	all []slot
}

func newScoreboard() (*scoreboard, error) {
	fd, err := unix.MemfdCreate("hakaru-scoreboard", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("make the scoreboard: %w", err)
	}
	file := os.NewFile(uintptr(fd), "scoreboard")
	if err := unix.Ftruncate(fd, scoreboardBytes); err != nil {
		return nil, errors.Join(fmt.Errorf("make the scoreboard: %w", err), file.Close())
	}
	b, err := mapScoreboard(file)
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	b.magic.Store(scoreboardMagic)
	return b, nil
}

// openScoreboard maps the one that the master made.
func openScoreboard(file *os.File) (*scoreboard, error) {
	info, err := file.Stat()
	if err != nil {
		return nil, fmt.Errorf("open the scoreboard: %w", err)
	}
	if info.Size() != scoreboardBytes {
		return nil, fmt.Errorf("open the scoreboard: it has %d bytes, want %d: the master is another version of hakaru", info.Size(), scoreboardBytes)
	}
	b, err := mapScoreboard(file)
	if err != nil {
		return nil, err
	}
	if b.magic.Load() != scoreboardMagic {
		return nil, errors.Join(errors.New("open the scoreboard: unknown layout: the master is another version of hakaru"), b.unmap())
	}
	return b, nil
}

func mapScoreboard(file *os.File) (*scoreboard, error) {
	mem, err := unix.Mmap(int(file.Fd()), 0, scoreboardBytes, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("map the scoreboard: %w", err)
	}
	return &scoreboard{
		file:   file,
		mem:    mem,
		header: (*header)(unsafe.Pointer(&mem[0])),
		all:    unsafe.Slice((*slot)(unsafe.Pointer(&mem[slotBytes])), maxSlots),
	}, nil
}

func (b *scoreboard) unmap() error { return unix.Munmap(b.mem) }

func (b *scoreboard) close() error { return errors.Join(b.unmap(), b.file.Close()) }

// take reserves a slot; only the master does.
func (b *scoreboard) take(generation int) (int, error) {
	for i := range b.all {
		s := &b.all[i]
		if s.state.Load() != stateFree {
			continue
		}
		s.pid.Store(0)
		s.requests.Store(0)
		s.connections.Store(0)
		s.busy.Store(0)
		s.started.Store(uint64(time.Now().UnixNano()))
		s.generation.Store(uint64(generation))
		s.state.Store(stateStarting)
		if n := uint64(i + 1); n > b.slots.Load() {
			b.slots.Store(n)
		}
		b.started.Add(1)
		return i, nil
	}
	return 0, fmt.Errorf("all %d places of the scoreboard are taken by workers that have not ended", maxSlots)
}

func (b *scoreboard) used() []slot { return b.all[:min(b.slots.Load(), maxSlots)] }

// leastConnections is the smallest number of open connections among the live
// workers other than me, and whether there is another.
func (b *scoreboard) leastConnections(me *slot) (least uint64, other bool) {
	used := b.used()
	for i := range used {
		s := &used[i]
		if s == me || s.state.Load() != stateLive {
			continue
		}
		if n := s.connections.Load(); !other || n < least {
			least, other = n, true
		}
	}
	return least, other
}

// heldBack reports whether me is to leave new connections alone because workers
// that drain still fill their threads: as many of the newest live workers wait
// as there are such. Otherwise a replacement would answer beside the one it
// replaces, and the service be faster than processes times threads meanwhile.
func (b *scoreboard) heldBack(me *slot, threads uint64) bool {
	full, newer := 0, 0
	used := b.used()
	for i := range used {
		switch s := &used[i]; s.state.Load() {
		case stateDraining:
			if s.busy.Load() >= threads {
				full++
			}
		case stateLive:
			if s.started.Load() > me.started.Load() {
				newer++
			}
		}
	}
	return newer < full
}
