package load

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// spareDescriptors are for what opens between the count and the start: files of
// /proc, the link to the conductor, the watch, one epoll for each thread.
const spareDescriptors = 128

// ensureDescriptors raises the soft limit of open files where so many more
// connections need it, and says what is missing where the hard limit is below.
func ensureDescriptors(connections int) error {
	open, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return fmt.Errorf("count open files: %w", err)
	}
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		return fmt.Errorf("read the limit of open files: %w", err)
	}
	need := uint64(connections + len(open) + spareDescriptors)
	soft, err := softLimit(need, limit.Cur, limit.Max, connections)
	if err != nil || soft == limit.Cur {
		return err
	}
	limit.Cur = soft
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		return fmt.Errorf("raise the limit of open files to %d: %w", soft, err)
	}
	return nil
}

// softLimit is the soft limit to set for need open files.
func softLimit(need, soft, hard uint64, connections int) (uint64, error) {
	switch {
	case need <= soft:
		return soft, nil
	case need <= hard:
		return hard, nil
	}
	return 0, fmt.Errorf("%d connections need %d open files and the hard limit is %d: "+
		"use at most %d connections, or raise the limit (ulimit -Hn, LimitNOFILE=)",
		connections, need, hard, max(int64(connections)-int64(need-hard), 0))
}
