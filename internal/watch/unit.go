package watch

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"hakaru"
	"hakaru/internal/watch/kernel"
)

// maxThreads is how many threads of a service are looked at for waiting time:
// one read each, every half second.
const maxThreads = 512

// unitSampler counts for one service.
type unitSampler struct {
	name    string
	foreign bool // hakaru did not start it
	leader  int
	start   uint64
	finder  kernel.Finder
	cpu     *os.File // cpu.stat of its cgroup; nil where it has none
	quotas  []quotaFile
	cpus    float64
	notes   []hakaru.Warning
	buf     []byte
	members []int
	tids    []int

	procs   map[int]procCPU // where there is no cgroup
	used    float64         // seconds so far
	threads map[int]*thread
	wait    float64 // seconds so far
	hot     float64 // sum of the busiest thread of each sample: its increase is that bucket's
	many    bool    // there were more than maxThreads
	round   int
	dropped float64
	backlog uint32 // the least of its listeners'
}

type procCPU struct {
	parent   int
	own      float64 // seconds
	children float64 // seconds, of those it has waited for
	taken    float64 // by how much children grew at the last look
	round    int
}

type thread struct {
	file      *os.File
	run, wait uint64 // ns
	round     int
}

type quotaFile struct {
	file  *os.File
	field string
	unit  float64 // seconds
}

func newUnitSampler(u hakaru.RunningUnit, mark string) *unitSampler {
	s := &unitSampler{
		name: u.Service, foreign: u.Attached, leader: u.PID, buf: make([]byte, 16<<10),
		procs: map[int]procCPU{}, threads: map[int]*thread{},
	}
	if st, err := kernel.ReadStat(u.PID); err == nil {
		s.start = st.Start
	}
	s.finder.Group = kernel.Group{Cgroup: u.Cgroup, Mark: mark, Leader: u.PID, Start: s.start, Descent: u.Attached}
	if u.Cgroup != "" {
		f, err := os.Open(filepath.Join(u.Cgroup, "cpu.stat"))
		if err == nil {
			s.cpu = f
		} else {
			s.finder.Cgroup = ""
		}
	}
	s.openQuotas(u)
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(u.PID, &set); err == nil {
		s.cpus = float64(set.Count())
	}
	return s
}

// openQuotas opens the files that tell of throttling: of the service's own
// cgroup and all above it, in version 2 and in version 1's cpu controller. A
// cgroup without a cpu controller has no such field and cannot throttle.
func (s *unitSampler) openQuotas(u hakaru.RunningUnit) {
	try := func(mount, path, field string, unit float64) {
		for dir := filepath.Clean("/" + path); ; dir = filepath.Dir(dir) {
			f, err := os.Open(filepath.Join(mount, dir, "cpu.stat"))
			if err == nil {
				if _, ok := s.field(f, field); ok {
					s.quotas = append(s.quotas, quotaFile{f, field, unit})
				} else {
					_ = f.Close()
				}
			}
			if dir == "/" {
				return
			}
		}
	}
	if mount, _, err := kernel.CgroupRoot(); err == nil {
		try(mount, kernel.CgroupOf(u.PID, ""), "throttled_usec", 1e-6)
	}
	if path := kernel.CgroupOf(u.PID, "cpu"); path != "" {
		for _, mount := range []string{"/sys/fs/cgroup/cpu", "/sys/fs/cgroup/cpu,cpuacct"} {
			if info, err := os.Lstat(mount); err == nil && info.IsDir() {
				try(mount, path, "throttled_time", 1e-9)
			}
		}
	}
}

// field reads one "name number" line of an open file, from its beginning.
func (s *unitSampler) field(f *os.File, name string) (uint64, bool) {
	n, err := f.ReadAt(s.buf, 0)
	if n == 0 && err != nil {
		return 0, false
	}
	return fieldOf(s.buf[:n], name)
}

func fieldOf(b []byte, name string) (uint64, bool) {
	for len(b) > 0 {
		line := b
		if i := bytes.IndexByte(b, '\n'); i >= 0 {
			line, b = b[:i], b[i+1:]
		} else {
			b = nil
		}
		if len(line) > len(name) && line[len(name)] == ' ' && string(line[:len(name)]) == name {
			return number(bytes.TrimSpace(line[len(name)+1:]))
		}
	}
	return 0, false
}

// number is strconv.ParseUint without an allocation.
func number(b []byte) (uint64, bool) {
	if len(b) == 0 || len(b) > 19 {
		return 0, false
	}
	var n uint64
	for _, c := range b {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = n*10 + uint64(c-'0')
	}
	return n, true
}

// sample fills the columns of unitColumns but the last two, which are of its
// listeners.
func (s *unitSampler) sample(values []float64, first, final bool) error {
	s.round++
	var err error
	if s.members, err = s.finder.Find(); err != nil {
		return err
	}
	rss, err := s.processes(first)
	if err != nil {
		return err
	}
	if s.cpu != nil {
		usec, ok := s.field(s.cpu, "usage_usec")
		if !ok {
			return fmt.Errorf("read its CPU time from %s: no usage_usec", s.cpu.Name())
		}
		s.used = float64(usec) / 1e6
	}
	s.sampleThreads(first)
	memory := float64(rss)
	if final {
		memory = s.pss(rss)
	}
	throttled := 0.0
	for _, q := range s.quotas {
		if n, ok := s.field(q.file, q.field); ok {
			throttled += float64(n) * q.unit
		}
	}
	copy(values, []float64{s.used, s.wait, s.hot, memory, float64(len(s.members)), throttled, s.cpus})
	return nil
}

// processes sums resident memory, and CPU time where no cgroup does.
//
// The time of a child that has ended goes to the parent that waited for it
// (cutime, cstime), so the sum over live members stays whole when the parent is
// a member. What an orphan had used is kept from the last look at it.
func (s *unitSampler) processes(first bool) (rss uint64, err error) {
	sum := 0.0
	look := func(st kernel.Stat) {
		before := s.procs[st.PID]
		now := procCPU{st.Parent, st.CPU.Seconds(), st.ChildCPU.Seconds(), 0, s.round}
		now.taken = now.children - before.children
		sum += now.own - before.own + now.taken
		s.procs[st.PID] = now
	}
	for _, pid := range s.members {
		st, err := kernel.ReadStat(pid)
		if gone(err) {
			continue
		}
		if err != nil {
			return 0, err
		}
		rss += st.RSS
		if s.cpu == nil {
			look(st)
		}
	}
	if s.cpu != nil {
		return rss, nil
	}
	for pid, p := range s.procs {
		if p.round == s.round {
			continue
		}
		// One that has ended and waits for its parent still has its figures.
		if st, err := kernel.ReadStat(pid); err == nil && !st.Alive() && st.Parent == p.parent {
			look(st)
			continue
		}
		// Gone: what a member has taken over from it is in the sum twice.
		if parent, ok := s.procs[p.parent]; ok && parent.round == s.round {
			twice := min(parent.taken, p.own+p.children)
			sum -= twice
			parent.taken -= twice
			s.procs[p.parent] = parent
		}
		delete(s.procs, pid)
	}
	if !first {
		s.used += max(0, sum)
	}
	return rss, nil
}

func gone(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ESRCH)
}

// sampleThreads adds up what threads ran and waited since the last look.
func (s *unitSampler) sampleThreads(first bool) {
	hottest, seen := 0.0, 0
	for _, pid := range s.members {
		var err error
		if s.tids, err = kernel.Threads(pid, s.tids); err != nil {
			continue // it has ended
		}
		for _, tid := range s.tids {
			t := s.threads[tid]
			if t == nil {
				if seen >= maxThreads {
					s.tooMany()
					continue
				}
				f, err := os.Open("/proc/" + strconv.Itoa(pid) + "/task/" + strconv.Itoa(tid) + "/schedstat")
				if err != nil {
					continue
				}
				t = &thread{file: f}
				if first || s.many {
					// It lived before, or may have: only what comes counts.
					t.run, t.wait, _ = s.schedstat(f)
				}
				s.threads[tid] = t
			}
			seen++
			t.round = s.round
			run, wait, ok := s.schedstat(t.file)
			if !ok || run < t.run || wait < t.wait {
				continue // it ended just now; a new thread with its number is opened anew
			}
			busy := float64(run-t.run+wait-t.wait) / 1e9
			s.wait += float64(wait-t.wait) / 1e9
			hottest = max(hottest, busy)
			t.run, t.wait = run, wait
		}
	}
	s.hot += hottest
	for tid, t := range s.threads {
		if t.round != s.round {
			_ = t.file.Close()
			delete(s.threads, tid)
		}
	}
}

func (s *unitSampler) tooMany() {
	if !s.many {
		s.many = true
		s.notes = append(s.notes, hakaru.Warning{Code: "threads_skipped", Message: fmt.Sprintf(
			"%s has more than %d threads: waiting time and the busiest thread are those of the first %d", hakaru.TheService(s.name), maxThreads, maxThreads)})
	}
}

// schedstat reads "run wait slices" in ns, the time on and the time waiting for
// a CPU (kernel documentation, scheduler/sched-stats).
func (s *unitSampler) schedstat(f *os.File) (run, wait uint64, ok bool) {
	n, err := f.ReadAt(s.buf[:128], 0)
	if n == 0 && err != nil {
		return 0, 0, false
	}
	first, rest, ok1 := bytes.Cut(s.buf[:n], []byte{' '})
	second, _, ok2 := bytes.Cut(rest, []byte{' '})
	run, ok3 := number(first)
	wait, ok4 := number(second)
	return run, wait, ok1 && ok2 && ok3 && ok4
}

// pss sums proportional set sizes: pages shared by forked workers count once.
// It walks the page tables, so it is done once, when the window is over.
func (s *unitSampler) pss(rss uint64) float64 {
	var sum uint64
	for _, pid := range s.members {
		b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/smaps_rollup")
		if errors.Is(err, fs.ErrNotExist) && processGone(pid) || errors.Is(err, syscall.ESRCH) {
			continue
		}
		kb, ok := uint64(0), false
		if err == nil {
			kb, ok = pssOf(string(b))
		}
		if !ok {
			s.notes = append(s.notes, hakaru.Warning{Code: "memory_rss", Message: fmt.Sprintf(
				"%s: proportional memory cannot be read (%v): memory is the sum of resident sizes, in which shared pages count once per process", hakaru.TheService(s.name), err)})
			return float64(rss)
		}
		sum += kb << 10
	}
	return float64(sum)
}

func processGone(pid int) bool {
	_, err := os.Stat("/proc/" + strconv.Itoa(pid))
	return errors.Is(err, fs.ErrNotExist)
}

// pssOf returns the Pss line of smaps_rollup, in kB.
func pssOf(text string) (uint64, bool) {
	for line := range strings.Lines(text) {
		if rest, ok := strings.CutPrefix(line, "Pss:"); ok {
			return number([]byte(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(rest), "kB"))))
		}
	}
	return 0, false
}

func (s *unitSampler) close() error {
	var errs []error
	if s.cpu != nil {
		errs = append(errs, s.cpu.Close())
	}
	for _, q := range s.quotas {
		errs = append(errs, q.file.Close())
	}
	for _, t := range s.threads {
		errs = append(errs, t.file.Close())
	}
	return errors.Join(errs...)
}
