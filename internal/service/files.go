package service

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"hakaru"
	"hakaru/internal/service/address"
	"hakaru/internal/service/launch"
)

// makePrivateDir makes the place's directory. It belongs to the user that the
// services run as, since that one makes sockets and pid files there; where they
// run as several, all may pass through it and nobody but the agent writes.
//
// It is opened before it is given away, and used by that: its user may rename it
// and put a link to another directory in its place.
func (s *Stack) makePrivateDir(bundle hakaru.Bundle) error {
	if err := os.Mkdir(s.place.Dir, 0o700); err != nil {
		return fmt.Errorf("make the private directory: %w", err)
	}
	root, err := os.OpenRoot(s.place.Dir)
	if err != nil {
		return fmt.Errorf("open the private directory: %w", err)
	}
	s.private = root
	users := map[string]bool{}
	for _, u := range bundle.Units {
		if u.User != "" {
			users[u.User] = true
		}
	}
	switch len(users) {
	case 0:
		return nil
	case 1:
		for name := range users {
			c, err := launch.Credential(name)
			if err != nil || c == nil {
				return nil // an error is said better when the unit is started
			}
			if err := root.Chown(".", int(c.Uid), int(c.Gid)); err != nil {
				return fmt.Errorf("give the private directory to user %s: %w", name, err)
			}
			return nil
		}
	}
	s.warn("several_users", "services run as several users: none of them can make files in {hakaru.dir}")
	if err := root.Chmod(".", 0o711); err != nil {
		return fmt.Errorf("open the private directory for several users: %w", err)
	}
	return nil
}

// closePrivateDir closes what makePrivateDir opened, if it did.
func (s *Stack) closePrivateDir() error {
	if s.private == nil {
		return nil
	}
	if err := s.private.Close(); err != nil {
		return fmt.Errorf("close the private directory: %w", err)
	}
	return nil
}

// writeFiles writes the unit's files into the private directory. It goes
// through os.Root: no link that a service has put there leads out of it.
func (s *Stack) writeFiles(spec hakaru.Unit, c *syscall.Credential) (written []hakaru.File, err error) {
	root := s.private
	for _, f := range spec.Files {
		if !filepath.IsLocal(f.Path) {
			return nil, fmt.Errorf("write file %s: its path must lie inside the private directory", f.Path)
		}
		mode := fs.FileMode(f.Mode).Perm()
		if mode == 0 {
			mode = 0o600
		}
		parts := strings.Split(filepath.Dir(filepath.Clean(f.Path)), "/")
		for i := range parts {
			dir := filepath.Join(parts[:i+1]...)
			if dir == "." {
				continue
			}
			err := root.Mkdir(dir, 0o700)
			if errors.Is(err, fs.ErrExist) {
				continue
			}
			if err == nil && c != nil {
				err = root.Lchown(dir, int(c.Uid), int(c.Gid))
			}
			if err != nil {
				return nil, fmt.Errorf("write file %s: %w", f.Path, err)
			}
		}
		if err := writeOne(root, f, mode, c); err != nil {
			return nil, fmt.Errorf("write file %s: %w", f.Path, err)
		}
		written = append(written, hakaru.File{Path: filepath.Join(s.place.Dir, f.Path), Content: f.Content, Mode: uint32(mode)})
	}
	if spec.Beside == "" {
		return written, nil
	}
	return written, s.linkBeside(spec)
}

// linkBeside makes a link in the private directory to every entry of the one
// that the unit's config file is in, but for names that somebody of the stack
// needs for a file of its own: it would be written through the link, over the
// person's, or not be made at all. Sockets and FIFOs are left out: behind them is
// what runs already.
func (s *Stack) linkBeside(spec hakaru.Unit) error {
	entries, err := os.ReadDir(spec.Beside)
	if errors.Is(err, fs.ErrPermission) {
		// The file itself was read; it may include nothing of there.
		s.warn("beside", fmt.Sprintf("%s: what stands beside its config file is not beside its copy, so what that includes by relative names is not found: %v", hakaru.TheService(spec.Service), err))
		return nil
	}
	if err != nil {
		return fmt.Errorf("link what stands beside the config file: %w", err)
	}
	for _, e := range entries {
		path := filepath.Join(spec.Beside, e.Name())
		mode := e.Type()
		if mode&fs.ModeSymlink != 0 {
			if info, err := os.Stat(path); err == nil { // else it leads nowhere, here and there
				mode = info.Mode()
			}
		}
		if mode&(fs.ModeSocket|fs.ModeNamedPipe) != 0 || s.reserved[e.Name()] {
			continue
		}
		if err := s.private.Symlink(path, e.Name()); err != nil && !errors.Is(err, fs.ErrExist) {
			return fmt.Errorf("link what stands beside the config file: %w", err)
		}
	}
	return nil
}

// reserve lists the names in the private directory that are files of units,
// leased sockets, or named by anything of a unit: a pid file or a log that it is
// going to write.
func (s *Stack) reserve(units []hakaru.Unit) {
	s.reserved = map[string]bool{}
	first := func(path string) string {
		name, _, _ := strings.Cut(filepath.Clean(path), "/")
		return name
	}
	for _, path := range s.leases.Sockets() {
		s.reserved[filepath.Base(path)] = true
	}
	for _, u := range units {
		u = expand(u, s.place.Names)
		for _, f := range u.Files {
			s.reserved[first(f.Path)] = true
		}
		for _, text := range address.Texts(u) {
			for {
				_, after, found := strings.Cut(text, s.place.Dir+"/")
				if !found {
					break
				}
				text = after
				end := strings.IndexFunc(text, func(r rune) bool { return strings.ContainsRune(" \t\r\n\"'`;,:)]}|&<>", r) })
				if end < 0 {
					end = len(text)
				}
				s.reserved[first(text[:end])] = true
			}
		}
	}
}

func writeOne(root *os.Root, f hakaru.File, mode fs.FileMode, c *syscall.Credential) (err error) {
	w, err := root.OpenFile(f.Path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.Close()) }()
	if _, err := w.WriteString(f.Content); err != nil {
		return err
	}
	if err := w.Chmod(mode); err != nil {
		return err
	}
	if c != nil {
		return w.Chown(int(c.Uid), int(c.Gid))
	}
	return nil
}
