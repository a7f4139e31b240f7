package watch

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"hakaru"
	"hakaru/internal/watch/kernel"
)

// versionTime is what a program may take to say its version.
const versionTime = 2 * time.Second

// Environment records the machine. Programs are the services' own binaries,
// each of which is run once with --version; version is hakaru's. What cannot be
// read is left out.
func Environment(ctx context.Context, programs []string, version string) hakaru.Environment {
	env := hakaru.Environment{
		Hakaru: version, Kernel: line("/proc/sys/kernel/osrelease"),
		CPUModel: cpuModel(), Limits: map[string]string{},
	}
	if name, err := os.Hostname(); err == nil {
		env.Hostname = name
	}
	if b, err := os.ReadFile("/proc/stat"); err == nil {
		env.CPUs = countCPUs(string(b))
	}
	if b, err := os.ReadFile("/proc/meminfo"); err == nil {
		env.Memory = memoryOf(string(b))
	}
	for name, path := range map[string]string{
		"somaxconn":      "/proc/sys/net/core/somaxconn",
		"syn_backlog":    "/proc/sys/net/ipv4/tcp_max_syn_backlog",
		"port_range":     "/proc/sys/net/ipv4/ip_local_port_range",
		"tcp_tw_reuse":   "/proc/sys/net/ipv4/tcp_tw_reuse",
		"swappiness":     "/proc/sys/vm/swappiness",
		"overcommit":     "/proc/sys/vm/overcommit_memory",
		"file_max":       "/proc/sys/fs/file-max",
		"autogroup":      "/proc/sys/kernel/sched_autogroup_enabled",
		"huge_pages":     "/sys/kernel/mm/transparent_hugepage/enabled",
		"governor":       "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor",
		"smt":            "/sys/devices/system/cpu/smt/active",
		"clock_source":   "/sys/devices/system/clocksource/clocksource0/current_clocksource",
		"online_cpus":    "/sys/devices/system/cpu/online",
		"kernel_version": "/proc/sys/kernel/version",
	} {
		if text := line(path); text != "" {
			env.Limits[name] = strings.Join(strings.Fields(text), " ")
		}
	}
	for name, resource := range map[string]int{"nofile": unix.RLIMIT_NOFILE, "nproc": unix.RLIMIT_NPROC} {
		var limit unix.Rlimit
		if err := unix.Getrlimit(resource, &limit); err == nil {
			env.Limits[name] = rlimit(limit.Cur) + " of " + rlimit(limit.Max)
		}
	}
	env.Limits["cgroup"] = cgroupVersion()
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(0, &set); err == nil {
		env.Limits["usable_cpus"] = strconv.Itoa(set.Count())
	}
	for _, program := range programs {
		if _, known := env.Programs[program]; known {
			continue
		}
		if env.Programs == nil {
			env.Programs = map[string]string{}
		}
		env.Programs[program] = versionOf(ctx, program)
	}
	return env
}

func line(path string) string {
	b, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}

func rlimit(n uint64) string {
	if n == unix.RLIM_INFINITY {
		return "unlimited"
	}
	return strconv.FormatUint(n, 10)
}

// cpuModel is the name x86 gives; other architectures give numbers.
func cpuModel() string {
	b, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return ""
	}
	for _, wanted := range []string{"model name", "Model", "Hardware", "CPU implementer"} {
		for l := range strings.Lines(string(b)) {
			name, value, ok := strings.Cut(l, ":")
			if ok && strings.TrimSpace(name) == wanted {
				return strings.TrimSpace(value)
			}
		}
	}
	return ""
}

func memoryOf(meminfo string) uint64 {
	for l := range strings.Lines(meminfo) {
		if rest, ok := strings.CutPrefix(l, "MemTotal:"); ok {
			if kb, ok := number([]byte(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(rest), "kB")))); ok {
				return kb << 10
			}
		}
	}
	return 0
}

func cgroupVersion() string {
	mount, _, err := kernel.CgroupRoot()
	switch {
	case err != nil:
		return "1"
	case line(filepath.Join(mount, "cgroup.controllers")) == "" || mount != "/sys/fs/cgroup":
		return "1 and 2 (at " + mount + ")"
	}
	return "2"
}

// versionOf is the first line a program prints when it is asked for its
// version, or why there is none.
func versionOf(ctx context.Context, program string) string {
	ctx, cancel := context.WithTimeout(ctx, versionTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, "--version")
	// A program that does not know the flag may start to serve or to print
	// without end: it is ended with all of its group, and its pipe is not waited for.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	killGroup := func() error {
		if err := syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
			return err
		}
		return nil
	}
	cmd.Cancel = killGroup
	cmd.WaitDelay = 200 * time.Millisecond
	var out beginning
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Start()
	if err == nil {
		err = errors.Join(awaitEnd(cmd.Process.Pid), killGroup(), cmd.Wait())
	}
	if ctx.Err() != nil {
		return "did not say its version"
	}
	for l := range strings.Lines(string(out.kept)) {
		if l = strings.TrimSpace(l); l != "" && err == nil {
			return l
		}
	}
	if err != nil {
		return fmt.Sprintf("version unknown (%v)", err)
	}
	return "version unknown"
}

// awaitEnd waits for a child's end and leaves it a zombie: until it is reaped,
// its group has its number, and what it left running can be ended by it.
func awaitEnd(pid int) error {
	for {
		err := unix.Waitid(unix.P_PID, pid, nil, unix.WEXITED|unix.WNOWAIT, nil)
		if !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

// beginning keeps the first bytes that are written to it.
type beginning struct{ kept []byte }

func (b *beginning) Write(p []byte) (int, error) {
	b.kept = append(b.kept, p[:min(len(p), 4096-len(b.kept))]...)
	return len(p), nil
}
