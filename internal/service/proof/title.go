package proof

import (
	"fmt"
	"os"
	"strings"
)

// Programs that set a title (nginx, PostgreSQL, sshd, Ruby and Perl servers)
// write it over the words they were started with, and where it is longer over
// the environment that lies behind them: /proc shows that memory (proc(5)). What
// was written over proves nothing, least of all that something is absent.

// commandLine returns the words of a process, and whether they are a title:
// then the words of that, which may hold the old ones, as nginx's master does.
func commandLine(pid int) (words []string, title bool, err error) {
	b, err := os.ReadFile(processPath(pid, "cmdline"))
	if err != nil {
		return nil, false, err
	}
	words, title = parseCommandLine(string(b))
	return words, title, nil
}

func parseCommandLine(raw string) (words []string, title bool) {
	text := strings.TrimRight(raw, "\x00")
	if text == "" {
		return nil, false
	}
	words = strings.Split(text, "\x00")
	// One word with blanks in it; a title has a colon or was cut to the room
	// there was, and the words may be a program whose path has a blank.
	if len(words) == 1 && strings.Contains(text, " ") && !strings.HasPrefix(text, "/") {
		return strings.Fields(text), true
	}
	return words, false
}

// environment returns the environment that a process was executed with; an
// error where it has been written over.
func environment(pid int) ([]string, error) {
	b, err := os.ReadFile(processPath(pid, "environ"))
	if err != nil {
		return nil, err
	}
	env, whole := parseEnvironment(string(b))
	if !whole {
		return nil, fmt.Errorf("pid %d has written its title over its environment", pid)
	}
	return env, nil
}

// parseEnvironment splits what /proc shows. Of an environment every entry has a
// name; blanks, zeros and the rest of a title have none.
func parseEnvironment(raw string) (env []string, whole bool) {
	if raw == "" {
		return nil, true
	}
	for entry := range strings.SplitSeq(strings.TrimSuffix(raw, "\x00"), "\x00") {
		name, _, ok := strings.Cut(entry, "=")
		if !ok || name == "" || strings.Contains(name, ": ") {
			return nil, false
		}
		env = append(env, entry)
	}
	return env, true
}
