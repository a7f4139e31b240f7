package launch

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"hakaru"
	"hakaru/internal/watch/kernel"
)

// Environment is the agent's own without HAKARU_…, with the unit's changes and
// its mark; without one where that is empty.
func Environment(base []string, changes []hakaru.EnvVar, mark string) []string {
	changed := make(map[string]bool, len(changes))
	for _, c := range changes {
		changed[c.Name] = true
	}
	var env []string
	for _, e := range base {
		name, _, _ := strings.Cut(e, "=")
		if !changed[name] && !strings.HasPrefix(name, "HAKARU_") {
			env = append(env, e)
		}
	}
	for _, c := range changes {
		if c.Value != nil && c.Name != kernel.MarkVariable {
			env = append(env, c.Name+"="+*c.Value)
		}
	}
	if mark == "" {
		return env
	}
	return append(env, kernel.MarkVariable+"="+mark)
}

// LookUp finds the program as execvp would with the unit's own PATH and
// directory.
func LookUp(name, dir string, env []string) (string, error) {
	notFound := fmt.Errorf("command not found: %s", name)
	if strings.Contains(name, "/") {
		path := name
		if !filepath.IsAbs(path) {
			path = filepath.Join(dir, name)
		}
		return path, executable(path, notFound)
	}
	search := "/usr/local/bin:/usr/bin:/bin"
	for _, e := range env {
		if value, ok := strings.CutPrefix(e, "PATH="); ok {
			search = value
		}
	}
	err := notFound
	for _, d := range filepath.SplitList(search) {
		if !filepath.IsAbs(d) {
			d = filepath.Join(dir, d) // an empty part is the current directory
		}
		path := filepath.Join(d, name)
		switch e := executable(path, notFound); {
		case e == nil:
			return path, nil
		case errors.Is(e, fs.ErrPermission):
			// A directory of PATH that is not ours to search has it for nobody.
		case !errors.Is(e, notFound):
			err = e
		}
	}
	return "", err
}

func executable(path string, notFound error) error {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
		return notFound
	case err != nil:
		return fmt.Errorf("look at %s: %w", path, err)
	case info.IsDir():
		return fmt.Errorf("%s is a directory", path)
	case info.Mode()&0o111 == 0:
		return fmt.Errorf("%s is not executable", path)
	}
	return nil
}

// Credential looks a user up, its supplementary groups included; nil for the
// agent's own.
func Credential(name string) (*syscall.Credential, error) {
	if name == "" {
		return nil, nil
	}
	u, err := user.Lookup(name)
	if err != nil {
		if _, convErr := strconv.Atoi(name); convErr == nil {
			u, err = user.LookupId(name)
		}
		if err != nil {
			return nil, fmt.Errorf("run as user %s: %w", name, err)
		}
	}
	uid, err := strconv.ParseUint(u.Uid, 10, 32)
	if err != nil {
		return nil, fmt.Errorf("run as user %s: uid %w", name, err)
	}
	if int(uid) == os.Geteuid() {
		return nil, nil
	}
	if os.Geteuid() != 0 {
		return nil, fmt.Errorf("run as user %s: only root may start a program as someone else", name)
	}
	gid, err := strconv.ParseUint(u.Gid, 10, 32)
	if err != nil {
		return nil, fmt.Errorf("run as user %s: gid %w", name, err)
	}
	ids, err := u.GroupIds()
	if err != nil {
		return nil, fmt.Errorf("run as user %s: %w", name, err)
	}
	c := &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
	for _, id := range ids {
		n, err := strconv.ParseUint(id, 10, 32)
		if err != nil {
			return nil, fmt.Errorf("run as user %s: group %w", name, err)
		}
		c.Groups = append(c.Groups, uint32(n))
	}
	return c, nil
}
