package watch

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"hakaru"
	"hakaru/internal/watch/kernel"
)

// The services of these tests are this binary with FIXTURE set.
func TestMain(m *testing.M) {
	switch os.Getenv("FIXTURE") {
	case "":
		goleak.VerifyTestMain(m)
	case "busy":
		fmt.Println("ready")
		for {
			burn(time.Second)
		}
	case "idle":
		fmt.Println("ready")
		<-make(chan int)
	case "forks": // short-lived children do all the work
		fmt.Println("ready")
		for {
			cmd := exec.Command(os.Args[0])
			cmd.Env = append(os.Environ(), "FIXTURE=burst")
			if err := cmd.Run(); err != nil {
				os.Exit(1)
			}
		}
	case "burst":
		burn(50 * time.Millisecond)
	case "listens": // and never accepts
		fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0)
		if err == nil {
			err = unix.Bind(fd, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}})
		}
		if err == nil {
			err = unix.Listen(fd, 1)
		}
		name, err2 := unix.Getsockname(fd)
		if err := errors.Join(err, err2); err != nil {
			os.Exit(1)
		}
		fmt.Println(name.(*unix.SockaddrInet4).Port)
		<-make(chan int)
	}
}

// burn uses a CPU for an amount of its own CPU time, so that how busy the
// machine is does not matter.
func burn(amount time.Duration) {
	used := func() time.Duration {
		var u unix.Rusage
		if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
			os.Exit(1)
		}
		return time.Duration(u.Utime.Nano() + u.Stime.Nano())
	}
	for end := used() + amount; used() < end; {
	}
}

// startService starts a fixture as a unit of a place, in a cgroup where it can
// be made and is wanted, and returns what it said first.
func startService(t testing.TB, place *hakaru.Place, mode string, cgroup bool) (*exec.Cmd, string) {
	t.Helper()
	place.ID = "watch-test-" + strings.ReplaceAll(t.Name(), "/", "-") // marks of parallel tests differ
	i := len(place.Units)
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "FIXTURE="+mode, kernel.MarkVariable+"="+kernel.Mark(place.ID, i))
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	dir := ""
	if cgroup {
		dir = makeCgroup(t)
	}
	if dir != "" {
		f, err := os.Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		cmd.SysProcAttr.UseCgroupFD, cmd.SysProcAttr.CgroupFD = true, int(f.Fd())
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		// The session's processes, children of the fixture among them.
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		_ = cmd.Wait()
		_ = out.Close()
	})
	said := make([]byte, 64)
	n, err := out.Read(said)
	if err != nil {
		t.Fatal(err)
	}
	place.Units = append(place.Units, hakaru.RunningUnit{
		Service: fmt.Sprintf("%s%d", mode, i), PID: cmd.Process.Pid, Cgroup: dir,
	})
	return cmd, strings.TrimSpace(string(said[:n]))
}

// makeCgroup returns "" where none can be made: then the test is the one of a
// machine without cgroups.
func makeCgroup(t testing.TB) string {
	mount, _, err := kernel.CgroupRoot()
	if err != nil {
		return ""
	}
	dir, err := os.MkdirTemp(mount, "hakaru-watch-test-")
	if err != nil {
		return ""
	}
	t.Cleanup(func() {
		if err := os.WriteFile(filepath.Join(dir, "cgroup.kill"), []byte("1"), 0); err != nil {
			t.Error(err)
		}
		tick := time.NewTicker(10 * time.Millisecond)
		defer tick.Stop()
		for range 500 {
			if err = unix.Rmdir(dir); err == nil {
				return
			}
			<-tick.C
		}
		t.Errorf("remove cgroup: %v", err)
	})
	return dir
}

func window(total time.Duration) hakaru.Window {
	return hakaru.Window{Start: time.Now().Add(100 * time.Millisecond), WarmUp: total / 2, Length: total - total/2}
}

// column returns all buckets of one counter.
func column(t *testing.T, w hakaru.Watched, name, of string) []float64 {
	t.Helper()
	for i, c := range w.Counters {
		if c.Name == name && c.Of == of {
			var list []float64
			for _, b := range w.Buckets {
				list = append(list, b[i])
			}
			return list
		}
	}
	t.Fatalf("no counter %s of %s in %+v", name, of, w.Counters)
	return nil
}

func sum(list []float64) (total float64) {
	for _, x := range list {
		total += x
	}
	return total
}

func TestWatch(t *testing.T) {
	for _, cgroup := range []bool{true, false} {
		t.Run(fmt.Sprintf("cgroup=%v", cgroup), func(t *testing.T) {
			t.Parallel()
			var place hakaru.Place
			startService(t, &place, "busy", cgroup)
			startService(t, &place, "idle", cgroup)
			startService(t, &place, "forks", cgroup)
			w, err := Watch(t.Context(), place, window(1200*time.Millisecond), nil)
			if err != nil {
				t.Fatal(err)
			}
			if len(w.Buckets) != 3 {
				t.Fatalf("%d buckets of 500 ms in 1.2 s", len(w.Buckets))
			}
			busy, idle := sum(column(t, w, hakaru.CounterCPU, "busy0")), sum(column(t, w, hakaru.CounterCPU, "idle1"))
			forks := sum(column(t, w, hakaru.CounterCPU, "forks2"))
			host := sum(column(t, w, hakaru.CounterCPU, hakaru.OfHost))
			if busy <= 0 || busy <= idle || forks <= idle {
				t.Errorf("CPU: busy %v, forks %v, idle %v", busy, forks, idle)
			}
			// Ticks of 10 ms on either side of every sample.
			if cpus := column(t, w, hakaru.CounterCPUs, hakaru.OfHost)[0]; cpus < 1 || host < (busy+forks)/2 {
				t.Errorf("host: CPU %v on %v CPUs, of which the services' %v", host, cpus, busy+forks)
			}
			hot, wait := sum(column(t, w, hakaru.CounterHotThread, "busy0")), sum(column(t, w, hakaru.CounterWait, "busy0"))
			if hot <= 0 || wait < 0 || hot < busy/4 {
				t.Errorf("hot thread %v, waiting %v, CPU %v", hot, wait, busy)
			}
			for _, name := range []string{"busy0", "idle1"} {
				if n := column(t, w, hakaru.CounterProcesses, name); n[0] != 1 || n[2] != 1 {
					t.Errorf("%s: processes %v", name, n)
				}
				if m := column(t, w, hakaru.CounterMemory, name); m[0] < 1<<20 || m[2] < 1<<18 || m[2] > 2*m[0] {
					t.Errorf("%s: memory %v", name, m)
				}
				if c := column(t, w, hakaru.CounterCPUs, name)[0]; c < 1 || c > float64(runtime.NumCPU()) {
					t.Errorf("%s: CPUs %v", name, c)
				}
				column(t, w, hakaru.CounterThrottled, name)
			}
			if len(w.Ended) != 0 {
				t.Errorf("ended: %v", w.Ended)
			}
			without := false
			for _, x := range w.Warnings {
				without = without || x.Code == "no_cgroup"
			}
			if without != (place.Units[0].Cgroup == "") {
				t.Errorf("warnings %v", w.Warnings)
			}
		})
	}
}

// Connections that find a listener's accept queue full are put down to that
// service, and not to the one beside it.
func TestListenOverflow(t *testing.T) {
	t.Parallel()
	var place hakaru.Place
	_, port := startService(t, &place, "listens", false)
	startService(t, &place, "listens", false)
	start := time.Now()
	done := make(chan []net.Conn)
	go func() {
		timer := time.NewTimer(300 * time.Millisecond)
		defer timer.Stop()
		<-timer.C
		var conns []net.Conn
		d := net.Dialer{Timeout: 20 * time.Millisecond}
		for range 8 {
			// Those that find no room do not get an answer: that is the point.
			if c, err := d.Dial("tcp", "127.0.0.1:"+port); err == nil {
				conns = append(conns, c)
			}
		}
		done <- conns
	}()
	w, err := Watch(t.Context(), place, hakaru.Window{Start: start.Add(100 * time.Millisecond), Length: 1500 * time.Millisecond}, nil)
	for _, c := range <-done {
		_ = c.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	host := sum(column(t, w, hakaru.CounterListenOverflow, hakaru.OfHost))
	if host < 1 {
		t.Errorf("host: %v overflows", host)
	}
	for _, x := range w.Warnings {
		if x.Code == "listen_overflow_host" {
			return // this kernel tells no more, and said so
		}
	}
	first, second := sum(column(t, w, hakaru.CounterListenOverflow, "listens0")), sum(column(t, w, hakaru.CounterListenOverflow, "listens1"))
	if first < 1 || second != 0 {
		t.Errorf("drops: %v and %v; host %v", first, second, host)
	}
}

func TestEnded(t *testing.T) {
	t.Parallel()
	var place hakaru.Place
	cmd, _ := startService(t, &place, "idle", false)
	startService(t, &place, "idle", false)
	w := hakaru.Window{Start: time.Now(), Length: time.Second}
	timer := time.AfterFunc(200*time.Millisecond, func() { _ = cmd.Process.Kill() })
	defer timer.Stop()
	seen, err := Watch(t.Context(), place, w, nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(seen.Ended) != 1 || seen.Ended[0].Service != "idle0" || seen.Ended[0].State != "signal: killed" {
		t.Errorf("ended %+v", seen.Ended)
	}
	if n := column(t, seen, hakaru.CounterProcesses, "idle0"); n[1] != 0 {
		t.Errorf("processes %v", n)
	}
}

func TestCancelled(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := Watch(ctx, hakaru.Place{ID: "p"}, hakaru.Window{Start: time.Now().Add(time.Hour), Length: time.Second}, nil); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error %v", err)
	}
	if _, err := Watch(t.Context(), hakaru.Place{ID: "p"}, hakaru.Window{}, nil); err == nil {
		t.Error("an empty window was watched")
	}
}

func TestTexts(t *testing.T) {
	busy, stolen, ok := cpuLine([]byte("cpu  100 200 300 9999 50 10 20 40 7 0\ncpu0 1 2"))
	if !ok || busy != 6.3 || stolen != 0.4 {
		t.Errorf("cpu line: %v, %v, %v", busy, stolen, ok)
	}
	for _, bad := range []string{"", "cpu0 1 2 3 4", "cpu  1 x", "cpu  1"} {
		if _, _, ok := cpuLine([]byte(bad)); ok {
			t.Errorf("%q was understood", bad)
		}
	}
	if n := countCPUs("cpu  1\ncpu0 1\ncpu1 1\nintr 5\n"); n != 2 {
		t.Errorf("%d CPUs", n)
	}
	const netstat = "TcpExt: SyncookiesSent ListenOverflows ListenDrops\nTcpExt: 1 22 333\nIpExt: A\n"
	if n, ok := overflowsOf([]byte(netstat), 2); !ok || n != 22 {
		t.Errorf("overflows %v, %v", n, ok)
	}
	if _, ok := overflowsOf([]byte(netstat), 9); ok {
		t.Error("a figure beyond the line was found")
	}
	const stat = "usage_usec 123\nuser_usec 100\nthrottled_usec 7"
	for name, want := range map[string]uint64{"usage_usec": 123, "user_usec": 100, "throttled_usec": 7} {
		if n, ok := fieldOf([]byte(stat), name); !ok || n != want {
			t.Errorf("%s: %d, %v", name, n, ok)
		}
	}
	if _, ok := fieldOf([]byte(stat), "usage"); ok {
		t.Error("half a name was found")
	}
	if kb, ok := pssOf("Rss: 9 kB\nPss:                 123 kB\nPss_Dirty: 7 kB\n"); !ok || kb != 123 {
		t.Errorf("Pss %d, %v", kb, ok)
	}
	if m := memoryOf("MemTotal:       16 kB\n"); m != 16<<10 {
		t.Errorf("memory %d", m)
	}
}

func TestEnvironment(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	programs := map[string]string{
		"good":  "#!/bin/sh\necho; echo 'good 1.2 (x)'; echo more\n",
		"deaf":  "#!/bin/sh\nsleep 600\n",
		"fails": "#!/bin/sh\nexit 3\n",
		"loud":  "#!/bin/sh\nwhile :; do echo yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy; done\n",
	}
	var paths []string
	for name, text := range programs {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
		paths = append(paths, path)
	}
	env := Environment(t.Context(), append(paths, "/no/such/program"), "0.1")
	if env.Hakaru != "0.1" || env.Kernel == "" || env.CPUs < 1 || env.Memory == 0 {
		t.Errorf("%+v", env)
	}
	for _, name := range []string{"nofile", "somaxconn", "port_range", "cgroup", "usable_cpus"} {
		if env.Limits[name] == "" {
			t.Errorf("no %s in %v", name, env.Limits)
		}
	}
	for name, want := range map[string]string{
		"good": "good 1.2 (x)", "deaf": "did not say its version", "loud": "did not say its version",
		"fails": "version unknown (exit status 3)",
	} {
		if got := env.Programs[filepath.Join(dir, name)]; got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	if got := env.Programs["/no/such/program"]; !strings.HasPrefix(got, "version unknown") {
		t.Errorf("a program that is not there: %q", got)
	}
}

// What a sample costs is CPU taken from what is measured.
func BenchmarkSample(b *testing.B) {
	for _, cgroup := range []bool{true, false} {
		b.Run(fmt.Sprintf("cgroup=%v", cgroup), func(b *testing.B) {
			var place hakaru.Place
			startService(b, &place, "idle", cgroup)
			s, err := newSampler(place)
			if err != nil {
				b.Fatal(err)
			}
			values := make([]float64, len(s.counters()))
			b.ReportAllocs()
			for b.Loop() {
				if err := s.sample(values, false); err != nil {
					b.Fatal(err)
				}
			}
			if err := s.close(); err != nil {
				b.Fatal(err)
			}
		})
	}
}
