package watch

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"hakaru"
	"hakaru/internal/watch/kernel"
)

// sampler holds the open files and what was seen before. Its values only grow,
// but for gauges; Watch takes the differences.
type sampler struct {
	units  []*unitSampler
	host   *hostSampler
	notes  []hakaru.Warning
	drops  bool // the kernel tells drops of each listener
	diag   *kernel.Diag
	listen []kernel.Listener
	owners map[uint64]int         // inode of a listener → index of the unit, -1: someone else's
	last   map[uint64]uint32      // its drops at the last sample
	first  bool                   // the next sample is the first: it sets what is compared with
	before float64                // the machine's full accept queues at the first sample
	exits  map[string]hakaru.Exit // by service
}

func newSampler(place hakaru.Place) (_ *sampler, err error) {
	s := &sampler{
		owners: map[uint64]int{}, last: map[uint64]uint32{}, first: true,
		exits: map[string]hakaru.Exit{},
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.close())
		}
	}()
	for i, u := range place.Units {
		mark := kernel.Mark(place.ID, i)
		if u.Attached {
			if u.PID == 0 {
				s.warn("not_watched", fmt.Sprintf("no process of %s can be found on this machine: its CPU time and memory are not measured", hakaru.TheService(u.Service)))
				continue
			}
			mark = "" // nothing that hakaru did not start carries one
		}
		s.units = append(s.units, newUnitSampler(u, mark))
	}
	if s.host, err = newHostSampler(); err != nil {
		return nil, err
	}
	if s.diag, err = kernel.OpenDiag(); err == nil {
		s.listen, err = s.diag.TCP(s.listen[:0])
	}
	if err != nil {
		s.warn("listen_overflow_host", fmt.Sprintf("drops of single listeners cannot be had (%v): only the machine's count tells of a full accept queue, and other programs are in it", err))
	} else {
		s.drops = !slices.ContainsFunc(s.listen, func(l kernel.Listener) bool { return !l.HasDrop })
		if !s.drops {
			s.warn("listen_overflow_host", "this kernel does not tell the drops of single listeners: only the machine's count tells of a full accept queue, and other programs are in it")
		}
	}
	for _, u := range s.units {
		if u.cpu == nil && u.foreign {
			s.warn("no_cgroup", fmt.Sprintf("hakaru did not start %s: its CPU time is the sum over pid %d and its descendants, in steps of 10 ms", hakaru.TheService(u.name), u.leader))
		} else if u.cpu == nil {
			s.warn("no_cgroup", fmt.Sprintf("%s has no cgroup: its CPU time is the sum over its processes in steps of 10 ms, without what a process used since the last look before it ended unseen", hakaru.TheService(u.name)))
		}
	}
	return s, nil
}

// columns of one unit, in order; the last two only where they can be had.
var unitColumns = []hakaru.Counter{
	{Name: hakaru.CounterCPU}, {Name: hakaru.CounterWait}, {Name: hakaru.CounterHotThread},
	{Name: hakaru.CounterMemory, Gauge: true}, {Name: hakaru.CounterProcesses, Gauge: true},
	{Name: hakaru.CounterThrottled}, {Name: hakaru.CounterCPUs, Gauge: true},
	{Name: hakaru.CounterBacklog, Gauge: true}, {Name: hakaru.CounterListenOverflow},
}

var hostColumns = []hakaru.Counter{
	{Name: hakaru.CounterCPU, Of: hakaru.OfHost}, {Name: hakaru.CounterStolen, Of: hakaru.OfHost},
	{Name: hakaru.CounterCPUs, Of: hakaru.OfHost, Gauge: true},
	{Name: hakaru.CounterListenOverflow, Of: hakaru.OfHost},
	{Name: hakaru.CounterCPU, Of: hakaru.OfAgent},
}

// hostOverflows is the place of the machine's overflows in hostColumns.
const hostOverflows = 3

func (s *sampler) unitWidth() int {
	if s.drops {
		return len(unitColumns)
	}
	return len(unitColumns) - 2
}

func (s *sampler) counters() []hakaru.Counter {
	var list []hakaru.Counter
	for _, u := range s.units {
		for _, c := range unitColumns[:s.unitWidth()] {
			c.Of = u.name
			list = append(list, c)
		}
	}
	return append(list, hostColumns...)
}

// sample fills values, in the order of counters.
func (s *sampler) sample(values []float64, final bool) error {
	host := values[len(values)-len(hostColumns):]
	if err := s.host.sample(host); err != nil {
		return err
	}
	if s.first {
		s.before = host[hostOverflows]
	}
	width := s.unitWidth()
	for i, u := range s.units {
		if err := u.sample(values[i*width:(i+1)*width], s.first, final); err != nil {
			return fmt.Errorf("%s: %w", hakaru.TheService(u.name), err)
		}
		if exit, ended := u.mainEnded(); ended {
			if _, known := s.exits[u.name]; !known {
				s.exits[u.name] = exit
			}
		}
	}
	if s.drops {
		if err := s.sampleDrops(); err != nil {
			return err
		}
		for i, u := range s.units {
			values[(i+1)*width-2] = float64(u.backlog)
			values[(i+1)*width-1] = min(u.dropped, host[hostOverflows]-s.before)
		}
	}
	s.first = false
	return nil
}

// sampleDrops adds what each listener dropped since the last sample to its
// unit. sk_drops of a listening socket grows with every connection that found
// the accept queue full (tcp_listendrop in the kernel's tcp.h), with those few
// for which there was no memory, and on some kernels with each bare ACK that
// TCP_DEFER_ACCEPT waits out, which uWSGI asks for: no connection is lost by it.
// ListenOverflows counts full queues only, but of the whole machine; so what a
// unit is said to have dropped is never more than that grew (see sample).
func (s *sampler) sampleDrops() error {
	var err error
	if s.listen, err = s.diag.TCP(s.listen[:0]); err != nil {
		return err
	}
	if slices.ContainsFunc(s.listen, func(l kernel.Listener) bool { _, known := s.owners[l.Inode]; return !known }) {
		s.resolveOwners()
	}
	for _, l := range s.listen {
		i := s.owners[l.Inode]
		if i < 0 {
			continue
		}
		before, known := s.last[l.Inode]
		u := s.units[i]
		if u.backlog == 0 || l.Backlog < u.backlog {
			u.backlog = l.Backlog
		}
		if known || !s.first {
			u.dropped += float64(l.Drops - before) // wraps as the counter does
		}
		s.last[l.Inode] = l.Drops
	}
	return nil
}

// resolveOwners looks for the unit that holds each listener not seen before.
// Someone else's is not looked up again.
func (s *sampler) resolveOwners() {
	for i, u := range s.units {
		for _, pid := range u.members {
			inodes, err := kernel.SocketInodes(pid)
			if err != nil {
				continue // it has ended, or belongs to someone else
			}
			for _, inode := range inodes {
				if old, known := s.owners[inode]; !known || old < 0 {
					if slices.ContainsFunc(s.listen, func(l kernel.Listener) bool { return l.Inode == inode }) {
						s.owners[inode] = i
					}
				}
			}
		}
	}
	for _, l := range s.listen {
		if _, known := s.owners[l.Inode]; !known {
			s.owners[l.Inode] = -1
		}
	}
}

func (s *sampler) warn(code, message string) {
	s.notes = append(s.notes, hakaru.Warning{Code: code, Message: message})
}

func (s *sampler) warnings() []hakaru.Warning {
	all := slices.Clone(s.notes)
	for _, u := range s.units {
		all = append(all, u.notes...)
	}
	return all
}

func (s *sampler) ended() []hakaru.Exit {
	var list []hakaru.Exit
	for _, u := range s.units {
		if exit, ok := s.exits[u.name]; ok {
			list = append(list, exit)
		}
	}
	return list
}

func (s *sampler) close() error {
	var errs []error
	for _, u := range s.units {
		errs = append(errs, u.close())
	}
	if s.host != nil {
		errs = append(errs, s.host.close())
	}
	if s.diag != nil {
		errs = append(errs, s.diag.Close())
	}
	return errors.Join(errs...)
}

// mainEnded looks whether the main process is still the one that was started.
// The service host leaves it a zombie until the stack goes down.
func (u *unitSampler) mainEnded() (hakaru.Exit, bool) {
	if u.leader == 0 {
		return hakaru.Exit{}, false
	}
	st, err := kernel.ReadStat(u.leader)
	switch {
	case errors.Is(err, os.ErrNotExist), errors.Is(err, syscall.ESRCH):
		return hakaru.Exit{Service: u.name, State: "ended"}, true
	case err != nil:
		return hakaru.Exit{}, false
	case st.Start != u.start:
		return hakaru.Exit{Service: u.name, State: "ended, and its number is used by another process: " + st.Comm}, true
	case !st.Alive():
		return hakaru.Exit{Service: u.name, State: exitState(u.leader)}, true
	}
	return hakaru.Exit{}, false
}

// exitState reads the last field of a zombie's stat: its wait status.
func exitState(pid int) string {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return "ended"
	}
	fields := strings.Fields(string(b))
	var code int
	if _, err := fmt.Sscan(fields[len(fields)-1], &code); err != nil {
		return "ended"
	}
	status := unix.WaitStatus(code)
	if status.Signaled() {
		return "signal: " + status.Signal().String()
	}
	return fmt.Sprintf("exit status %d", status.ExitStatus())
}
