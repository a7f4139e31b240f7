package refserver

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"hakaru/internal/refserver/config"

	"pgregory.net/rapid"
)

func TestAnswer(t *testing.T) {
	const article = "[0, 1, 1, 2, 3, 5, 8, 13, 21, 34, 55, 89, 144, 233, 377, 610, 987, 1597, 2584, 4181, 6765, 10946]"
	for _, test := range []struct {
		path   string
		status int
		body   string
	}{
		{"/", 200, "hakaru serve\n"},
		{"/9000", 200, article},
		{"/fib/9000", 200, article},
		{"/0", 200, "[0, 1]"},
		{"/1", 200, "[0, 1]"},
		{"/2", 200, "[0, 1, 1, 2]"},
		{"/fib", 404, ""},
		{"/fib/", 404, ""},
		{"/fib/x", 404, ""},
		{"/-1", 404, ""},
		{"/12200160415121876739", 400, ""},
		{"/99999999999999999999999", 400, ""},
	} {
		status, _, body := answer(test.path)
		if status != test.status || test.body != "" && string(body) != test.body {
			t.Errorf("%s: %d %s, want %d %s", test.path, status, body, test.status, test.body)
		}
	}
}

func TestFibonacciIsTheSequence(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		number := rapid.Uint64Range(0, lastFibonacci).Draw(t, "number")
		var all []uint64
		if err := json.Unmarshal(fibonacci(number), &all); err != nil {
			t.Fatal(err)
		}
		for i := 2; i < len(all); i++ {
			if all[i] != all[i-1]+all[i-2] {
				t.Fatalf("%d is not %d + %d", all[i], all[i-1], all[i-2])
			}
		}
		n := len(all)
		if all[0] != 0 || all[1] != 1 || n > 2 && all[n-2] >= number || n > 2 && all[n-1] < number {
			t.Fatalf("up to %d: %v", number, all)
		}
	})
}

func TestStallEnd(t *testing.T) {
	const ms = time.Millisecond
	for _, test := range []struct {
		now, stall, every, end time.Duration
		stalled                bool
	}{
		{5000 * ms, 100 * ms, time.Second, 5100 * ms, true},
		{5099 * ms, 100 * ms, time.Second, 5100 * ms, true},
		{5100 * ms, 100 * ms, time.Second, 0, false},
		{5999 * ms, 100 * ms, time.Second, 0, false},
		{5000 * ms, 0, time.Second, 0, false},
		{5000 * ms, 100 * ms, 0, 0, false},
	} {
		end, stalled := stallEnd(test.now, test.stall, test.every)
		if stalled != test.stalled || stalled && end != test.end {
			t.Errorf("at %v of %v every %v: %v, %v", test.now, test.stall, test.every, end, stalled)
		}
	}
}

// Whatever worker the kernel wakes first, P·T connections give each worker T,
// and more are spread within one; and there is always a worker that accepts.
func TestSpreadIsEven(t *testing.T) {
	board, err := newScoreboard()
	if err != nil {
		t.Fatal(err)
	}
	defer board.close()
	rapid.Check(t, func(t *rapid.T) {
		p := rapid.IntRange(1, 6).Draw(t, "processes")
		threads := rapid.IntRange(1, 4).Draw(t, "threads")
		board.slots.Store(0)
		for i := range board.all[:8] {
			board.all[i].state.Store(stateFree)
		}
		var workers []*connections
		for range p {
			i, err := board.take(1)
			if err != nil {
				t.Fatal(err)
			}
			board.all[i].state.Store(stateLive)
			workers = append(workers, newConnections(board, &board.all[i], threads))
		}
		total := rapid.IntRange(p*threads, p*threads+20).Draw(t, "connections")
		for range total {
			var willing []*connections
			for _, w := range workers {
				if w.mayAccept() {
					willing = append(willing, w)
				}
			}
			if len(willing) == 0 {
				t.Fatal("no worker accepts")
			}
			w := willing[rapid.IntRange(0, len(willing)-1).Draw(t, "first")]
			w.add(&conn{of: w})
		}
		low, high := total, 0
		for _, w := range workers {
			low, high = min(low, w.count()), max(high, w.count())
		}
		if high-low > 1 {
			t.Fatalf("%d connections on %d workers: between %d and %d", total, p, low, high)
		}
	})
}

func TestErrorsAreEvenlySpaced(t *testing.T) {
	for _, rate := range []float64{0.01, 0.07, 0.1, 0.25, 0.29, 0.5, 1} {
		board, err := newScoreboard()
		if err != nil {
			t.Fatal(err)
		}
		h := handler{cfg: &config.Config{ErrorRate: rate}, board: board}
		failed := 0
		for n := 1; n <= 1000; n++ {
			if h.fails() {
				failed++
			}
			if want := int(float64(n)*rate + 1e-9); failed != want {
				t.Fatalf("rate %v: %d of %d failed, want %d", rate, failed, n, want)
			}
		}
		if err := board.close(); err != nil {
			t.Fatal(err)
		}
	}
}

// times runs two servers in turn, so that whatever else the machine does meets
// both, and gives the ratio of their throughputs. What is still queued at the
// end of a slice is answered and counted, so the time is what it really took.
func times(t *testing.T, a, b load, slice time.Duration) float64 {
	t.Helper()
	var answers, seconds [2]float64
	for range 3 {
		for i, l := range []load{a, b} {
			begin := time.Now()
			n, err := l.during(slice)
			if err != nil {
				t.Fatal(err)
			}
			answers[i] += float64(n)
			seconds[i] += time.Since(begin).Seconds()
		}
	}
	return answers[1] / seconds[1] / (answers[0] / seconds[0])
}

func TestWaitLaw(t *testing.T) {
	base := start(t, config.Config{Wait: 5 * time.Millisecond}, nil)
	for _, test := range []struct {
		name                string
		cfg                 config.Config
		times, lower, upper float64
	}{
		{"processes", config.Config{Wait: 5 * time.Millisecond, Processes: 4}, 4, 3, 5},
		{"threads", config.Config{Wait: 5 * time.Millisecond, Threads: 4}, 4, 3, 5},
		{"wait", config.Config{Wait: 20 * time.Millisecond, Processes: 2, Threads: 2}, 1, 0.7, 1.3},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := start(t, test.cfg, nil)
			got := times(t, load{base.address, "/9000", 8, 200}, load{s.address, "/9000", 8, 200}, 120*time.Millisecond)
			t.Logf("%.2f times, the law says %v", got, test.times)
			if got < test.lower || got > test.upper {
				t.Errorf("%.2f times the throughput, want between %v and %v", got, test.lower, test.upper)
			}
		})
	}
}

// Replacing workers changes nothing in the law: the replacement does not answer
// beside the one that still has requests queued.
func TestReplacementLaw(t *testing.T) {
	base := start(t, config.Config{Wait: 5 * time.Millisecond}, nil)
	s := start(t, config.Config{Wait: 5 * time.Millisecond, MaxLifetime: 200 * time.Millisecond}, nil)
	got := times(t, load{base.address, "/9000", 16, 200}, load{s.address, "/9000", 16, 200}, 400*time.Millisecond)
	t.Logf("%.2f times, the law says 1", got)
	// Side by side a worker of 200 ms and one that drains 16 connections of
	// 5 ms each would give up to 1.4.
	if got < 0.7 || got > 1.2 {
		t.Errorf("%.2f times the throughput with workers that are replaced, want about 1", got)
	}
}

// As many of the newest workers wait as there are draining ones with a queue.
func TestHeldBack(t *testing.T) {
	board, err := newScoreboard()
	if err != nil {
		t.Fatal(err)
	}
	defer board.close()
	worker := func(state, busy, started uint64) *slot {
		i, err := board.take(1)
		if err != nil {
			t.Fatal(err)
		}
		s := &board.all[i]
		s.state.Store(state)
		s.busy.Store(busy)
		s.started.Store(started)
		return s
	}
	oldest, old, fresh := worker(stateLive, 5, 10), worker(stateLive, 5, 20), worker(stateLive, 0, 30)
	draining := worker(stateDraining, 16, 5)
	also := worker(stateDraining, 0, 6)
	held := func() (all [3]bool) {
		for i, s := range []*slot{oldest, old, fresh} {
			all[i] = board.heldBack(s, 2)
		}
		return all
	}
	if got := held(); got != [3]bool{false, false, true} {
		t.Errorf("one drains with a queue: held back %v", got)
	}
	also.busy.Store(2)
	if got := held(); got != [3]bool{false, true, true} {
		t.Errorf("two drain with a queue: held back %v", got)
	}
	draining.busy.Store(1)
	also.busy.Store(1)
	if got := held(); got != [3]bool{} {
		t.Errorf("threads are free: held back %v", got)
	}
}

// cpuTime is what all threads of a process have run.
func cpuTime(t *testing.T, pid int) time.Duration {
	t.Helper()
	files, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", pid))
	if err != nil || len(files) == 0 {
		t.Fatalf("threads of %d: %d, %v", pid, len(files), err)
	}
	var sum time.Duration
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			continue // a thread that has just ended
		}
		ns, err := strconv.ParseInt(strings.Fields(string(text))[0], 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		sum += time.Duration(ns)
	}
	return sum
}

// The cost is CPU time, so it is the same when the machine is busy and takes
// three times as long.
func TestCPULaw(t *testing.T) {
	const requests = 60
	used := func(cost time.Duration) time.Duration {
		s := start(t, config.Config{CPU: cost}, nil)
		pid := status(t, s.address).Workers[0].PID
		c := s.client()
		before := cpuTime(t, pid)
		for range requests {
			if code, _, err := c.get("/"); err != nil || code != 200 {
				t.Fatal(code, err)
			}
		}
		return cpuTime(t, pid) - before
	}
	two, six := used(2*time.Millisecond), used(6*time.Millisecond)
	per := (six - two) / requests // what else a request costs drops out
	t.Logf("the difference of 4ms costs %v", per)
	if ratio := per.Seconds() / 0.004; ratio < 0.8 || ratio > 1.3 {
		t.Errorf("4ms more CPU per request cost %v of CPU time", per)
	}
}

func TestStallLaw(t *testing.T) {
	const stall, every = 100 * time.Millisecond, 200 * time.Millisecond
	s := start(t, config.Config{Stall: stall, StallEvery: every, Processes: 2}, nil)
	var in, out int
	c := s.client()
	for begin := monotonic(); monotonic()-begin < 5*every; {
		if _, _, err := c.get("/"); err != nil {
			t.Fatal(err)
		}
		// An answer that was sent just before can be read within a stall.
		if phase := monotonic() % every; phase >= stall/5 && phase < stall {
			in++
		} else {
			out++
		}
	}
	t.Logf("%d answers within stalls, %d outside", in, out)
	if out == 0 || in > out/20 {
		t.Errorf("%d answers came within stalls, %d outside", in, out)
	}
}

func TestErrorsAreCountedOverAllWorkers(t *testing.T) {
	s := start(t, config.Config{ErrorRate: 0.25, Processes: 2}, nil)
	clients := []*client{s.client(), s.client()}
	failed := 0
	for n := 1; n <= 40; n++ {
		code, _, err := clients[n%2].get("/9000")
		if err != nil {
			t.Fatal(err)
		}
		if code == http.StatusInternalServerError {
			failed++
		}
		if failed != n/4 {
			t.Fatalf("%d of %d answers are errors", failed, n)
		}
	}
}

func TestFsyncAndAlloc(t *testing.T) {
	dir := t.TempDir()
	s := start(t, config.Config{Handler: config.HandlerFsync, Alloc: 1 << 20, Threads: 2}, func(o *Options) {
		o.Env = append(o.Env, "TMPDIR="+dir)
	})
	if n, err := (load{s.address, "/2", 2, 200}).during(100 * time.Millisecond); err != nil || n == 0 {
		t.Fatal(n, err)
	}
	left, err := os.ReadDir(dir)
	if err != nil || len(left) > 0 {
		t.Errorf("files left: %v, %v", left, err)
	}
	pid := status(t, s.address).Workers[0].PID
	fds, err := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid))
	if err != nil {
		t.Fatal(err)
	}
	files := 0
	for _, fd := range fds {
		if to, _ := os.Readlink(fd); strings.HasPrefix(to, dir) {
			files++
		}
	}
	if files != 2 {
		t.Errorf("%d files to fsync, want one per thread", files)
	}
}
