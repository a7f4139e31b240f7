package main

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime/debug"

	"github.com/spf13/cobra"

	"hakaru/internal/service/registry"
	"hakaru/internal/store"
)

// storePath is where the runs are kept.
func (d *door) storePath() (string, error) {
	if d.store != "" {
		return d.store, nil
	}
	if path := d.env("HAKARU_STORE"); path != "" {
		return path, nil
	}
	data := d.env("XDG_DATA_HOME")
	if data == "" {
		home := d.env("HOME")
		if home == "" {
			return "", usagef("name the file with --store or HAKARU_STORE", "there is no place for the store: HOME is not set")
		}
		data = filepath.Join(home, ".local", "share")
	}
	return filepath.Join(data, "hakaru", "hakaru.db"), nil
}

func (d *door) openStore(cmd *cobra.Command) (*store.Store, error) {
	path, err := d.storePath()
	if err != nil {
		return nil, err
	}
	return store.Open(cmd.Context(), path)
}

// stateDir is where agents note what they have up: the same for every hakaru of
// this user.
func (d *door) stateDir() string {
	if dir := d.env("HAKARU_STATE"); dir != "" {
		return dir
	}
	return registry.DefaultDir(d.env, os.Getuid())
}

// versionsDir is where versions of people's code are checked out and built: of
// root's in a place that other users can pass through, since services can run as
// one of them. Empty where no place is known.
func (d *door) versionsDir() string {
	if dir := d.env("HAKARU_CACHE"); dir != "" {
		return filepath.Join(dir, "versions")
	}
	cache := d.env("XDG_CACHE_HOME")
	switch {
	case filepath.IsAbs(cache):
	case os.Getuid() == 0:
		cache = "/var/cache"
	case d.env("HOME") != "":
		cache = filepath.Join(d.env("HOME"), ".cache")
	default:
		return ""
	}
	return filepath.Join(cache, "hakaru", "versions")
}

// durableDir is where agents note what they changed outside of what they have up:
// that outlives a reboot.
func (d *door) durableDir() string {
	if dir := d.env("HAKARU_STATE"); dir != "" {
		return dir
	}
	return registry.DurableDir(d.env, os.Getuid())
}

// lockFile is the same for every user of the machine.
func (d *door) lockFile() string {
	if file := d.env("HAKARU_LOCK"); file != "" {
		return file
	}
	if info, err := os.Stat("/run/lock"); err == nil && info.IsDir() {
		return "/run/lock/hakaru.lock"
	}
	return filepath.Join(os.TempDir(), "hakaru.lock")
}

// executable is this program, to be started again as an agent.
func executable() (string, error) {
	exe, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("find this program: %w", err)
	}
	if _, err := os.Stat(exe); err != nil {
		return "", errors.New("find this program: it was replaced or removed while running")
	}
	return exe, nil
}

// unversioned is the version of a build outside of a version control system.
const unversioned = "development"

// version is that of the build: the module's, or the commit.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	v := info.Main.Version
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" && (v == "" || v == "(devel)") {
			v = s.Value[:min(len(s.Value), 12)]
		}
	}
	if v == "" || v == "(devel)" {
		return unversioned
	}
	return v
}

// builtAs is the version for the record of a run. A build that has none is told
// apart by its content: years later the question is whether two runs were
// measured by the same program.
func builtAs(exe string) string {
	v := version()
	if v != unversioned {
		return v
	}
	file, err := os.Open(exe)
	if err != nil {
		return v
	}
	defer file.Close()
	sum := sha256.New()
	if _, err := io.Copy(sum, file); err != nil {
		return v
	}
	return fmt.Sprintf("%s, sha256 %.6x", v, sum.Sum(nil))
}
