package watch

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// hostSampler counts for the machine.
type hostSampler struct {
	stat    *os.File
	netstat *os.File
	cpus    float64
	at      int // which number of the TcpExt line is ListenOverflows
	buf     []byte
}

func newHostSampler() (_ *hostSampler, err error) {
	h := &hostSampler{buf: make([]byte, 32<<10)}
	defer func() {
		if err != nil {
			err = errors.Join(err, h.close())
		}
	}()
	all, err := os.ReadFile("/proc/stat")
	if err != nil {
		return nil, fmt.Errorf("read the machine's CPU time: %w", err)
	}
	h.cpus = float64(countCPUs(string(all)))
	if h.stat, err = os.Open("/proc/stat"); err != nil {
		return nil, fmt.Errorf("read the machine's CPU time: %w", err)
	}
	if h.netstat, err = os.Open("/proc/net/netstat"); err != nil {
		return nil, fmt.Errorf("read the machine's TCP counters: %w", err)
	}
	n, err := h.netstat.ReadAt(h.buf, 0)
	if n == 0 {
		return nil, fmt.Errorf("read the machine's TCP counters: %w", err)
	}
	header, _, _ := strings.Cut(string(h.buf[:n]), "\n")
	if h.at = slices.Index(strings.Fields(header), "ListenOverflows"); h.at < 0 {
		return nil, errors.New("read the machine's TCP counters: there is no ListenOverflows")
	}
	return h, nil
}

// sample fills the columns of hostColumns.
func (h *hostSampler) sample(values []float64) error {
	// Only the first line is needed; the interrupts below can be long.
	n, err := h.stat.ReadAt(h.buf[:512], 0)
	if n == 0 {
		return fmt.Errorf("read the machine's CPU time: %w", err)
	}
	busy, stolen, ok := cpuLine(h.buf[:n])
	if !ok {
		return fmt.Errorf("read the machine's CPU time: %q is not understood", h.buf[:min(n, 80)])
	}
	n, err = h.netstat.ReadAt(h.buf, 0)
	if n == 0 {
		return fmt.Errorf("read the machine's TCP counters: %w", err)
	}
	overflows, ok := overflowsOf(h.buf[:n], h.at)
	if !ok {
		return errors.New("read the machine's TCP counters: the line of figures is too short")
	}
	own, err := ownCPU()
	if err != nil {
		return err
	}
	values[0], values[1], values[2], values[3], values[4] = busy, stolen, h.cpus, overflows, own
	return nil
}

// ownCPU is what this process has used, the programs it ran for a proof
// included: a service that writes much makes its agent read much, and that is
// nobody else's doing. (The services are this process's children too, but not
// reaped before they are taken down.)
func ownCPU() (seconds float64, err error) {
	for _, who := range []int{unix.RUSAGE_SELF, unix.RUSAGE_CHILDREN} {
		var r unix.Rusage
		if err := unix.Getrusage(who, &r); err != nil {
			return 0, fmt.Errorf("read the agent's CPU time: %w", err)
		}
		seconds += float64(r.Utime.Nano()+r.Stime.Nano()) / 1e9
	}
	return seconds, nil
}

func (h *hostSampler) close() error {
	var errs []error
	if h.stat != nil {
		errs = append(errs, h.stat.Close())
	}
	if h.netstat != nil {
		errs = append(errs, h.netstat.Close())
	}
	return errors.Join(errs...)
}

// cpuLine reads "cpu user nice system idle iowait irq softirq steal guest …" in
// ticks of 10 ms (proc_stat(5)). Guest time is in user time already.
func cpuLine(b []byte) (busy, stolen float64, ok bool) {
	line, _, _ := bytes.Cut(b, []byte{'\n'})
	line, ok = bytes.CutPrefix(line, []byte("cpu "))
	if !ok {
		return 0, 0, false
	}
	i := 0
	for len(line) > 0 && i < 8 {
		line = bytes.TrimLeft(line, " ")
		word := line
		if j := bytes.IndexByte(line, ' '); j >= 0 {
			word, line = line[:j], line[j:]
		} else {
			line = nil
		}
		n, valid := number(word)
		if !valid {
			return 0, 0, false
		}
		switch i {
		case 0, 1, 2, 5, 6: // user, nice, system, irq, softirq
			busy += float64(n) / 100
		case 7:
			stolen = float64(n) / 100
		}
		i++
	}
	return busy, stolen, i >= 4
}

func countCPUs(stat string) int {
	n := 0
	for line := range strings.Lines(stat) {
		if len(line) > 3 && strings.HasPrefix(line, "cpu") && line[3] >= '0' && line[3] <= '9' {
			n++
		}
	}
	return n
}

// overflowsOf takes the at-th word of the second line of netstat.
func overflowsOf(b []byte, at int) (float64, bool) {
	_, b, _ = bytes.Cut(b, []byte{'\n'})
	line, _, _ := bytes.Cut(b, []byte{'\n'})
	if !bytes.HasPrefix(line, []byte("TcpExt:")) {
		return 0, false
	}
	for i := 0; i < at; i++ {
		j := bytes.IndexByte(line, ' ')
		if j < 0 {
			return 0, false
		}
		line = line[j+1:]
	}
	word, _, _ := bytes.Cut(line, []byte{' '})
	n, ok := number(word)
	return float64(n), ok
}
