package refserver

import (
	"bufio"
	"encoding/hex"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// tcpHolder says who listens on an address, as " by pid 812 (nginx)", or ""
// where /proc does not tell (another user's process, a kernel without it).
func tcpHolder(a *net.TCPAddr) string {
	var inodes []string
	for _, table := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		// A line: sl local_address rem_address st … inode at field 9; state 0A
		// is LISTEN (proc_pid_net(5)).
		eachLine(table, func(f []string) {
			if len(f) < 10 || f[3] != "0A" {
				return
			}
			ip, port, ok := hexAddress(f[1])
			if ok && port == a.Port && (ip.Equal(a.IP) || ip.IsUnspecified() || len(a.IP) == 0 || a.IP.IsUnspecified()) {
				inodes = append(inodes, f[9])
			}
		})
	}
	return holderOf(inodes)
}

func unixHolder(path string) string {
	var inodes []string
	// Num RefCount Protocol Flags Type St Inode Path
	eachLine("/proc/net/unix", func(f []string) {
		if len(f) >= 8 && f[7] == path {
			inodes = append(inodes, f[6])
		}
	})
	return holderOf(inodes)
}

func eachLine(file string, do func(fields []string)) {
	f, err := os.Open(file)
	if err != nil {
		return
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		do(strings.Fields(lines.Text()))
	}
}

// hexAddress reads "0100007F:1F90": 32-bit words in host order (little-endian
// here and on every machine Go runs Linux on but s390x).
func hexAddress(s string) (net.IP, int, bool) {
	host, port, ok := strings.Cut(s, ":")
	raw, err := hex.DecodeString(host)
	n, errPort := strconv.ParseUint(port, 16, 16)
	if !ok || err != nil || errPort != nil || len(raw)%4 != 0 {
		return nil, 0, false
	}
	for i := 0; i < len(raw); i += 4 {
		raw[i], raw[i+1], raw[i+2], raw[i+3] = raw[i+3], raw[i+2], raw[i+1], raw[i]
	}
	return net.IP(raw), int(n), true
}

// holderOf finds the process with the smallest number that has one of the
// sockets open: of a prefork server that is the master.
func holderOf(inodes []string) string {
	want := map[string]bool{}
	for _, i := range inodes {
		want["socket:["+i+"]"] = true
	}
	if len(want) == 0 {
		return ""
	}
	found := 0
	fds, err := filepath.Glob("/proc/[0-9]*/fd/*")
	if err != nil {
		return ""
	}
	for _, fd := range fds {
		pid, err := strconv.Atoi(strings.Split(fd, "/")[2])
		if err != nil || found != 0 && pid >= found {
			continue
		}
		if to, err := os.Readlink(fd); err == nil && want[to] {
			found = pid
		}
	}
	if found == 0 {
		return ""
	}
	name, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", found))
	if err != nil {
		return fmt.Sprintf(" by pid %d", found)
	}
	return fmt.Sprintf(" by pid %d (%s)", found, strings.TrimSpace(string(name)))
}
