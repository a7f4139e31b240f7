package proof

import (
	"debug/elf"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"hakaru"
	"hakaru/internal/watch/kernel"
)

// The functions here look for the reason of a No, as far as it can be known.
// An empty text says that it cannot.

const preload = "LD_PRELOAD"

// whyNotInEnviron says who of the unit had the variable.
func whyNotInEnviron(on Subject, ask hakaru.Ask) string {
	c, err := castOf(on)
	if err != nil {
		return ""
	}
	for _, pid := range c.wrappers {
		env, err := environment(pid)
		if err != nil {
			continue
		}
		if found, ok, err := matchEnviron(env, ask); err == nil && ok {
			name, _, _ := strings.Cut(found, "=")
			return fmt.Sprintf("its wrapper, pid %d (%s), has %s, and did not hand it on", pid, kernel.Describe(pid), name)
		}
	}
	if found, ok, err := matchEnviron(on.Given, ask); err == nil && ok {
		name, _, _ := strings.Cut(found, "=")
		return fmt.Sprintf("%s was given to the command and taken away on the way: %s", name, clearers)
	}
	return ""
}

const clearers = "env -i, sudo and su - clear the environment"

// whyNotMapped says why a library is not in the process.
func whyNotMapped(on Subject, ask hakaru.Ask) string {
	c, err := castOf(on)
	if err != nil || len(c.daemons) == 0 {
		return ""
	}
	own, _ := c.own()
	pid := own[0]
	exe := processPath(pid, "exe")
	if static, err := staticallyLinked(exe); err == nil && static {
		name, err := os.Readlink(exe)
		if err != nil {
			name = "its program"
		}
		return fmt.Sprintf("it can never be loaded: %s is statically linked", name)
	}
	want := wanted(ask)
	if !strings.Contains(want, ".so") && allocator(want) == "" {
		return "" // not a thing that is preloaded
	}
	env, err := environment(pid)
	if err != nil {
		return ""
	}
	value, set := variable(env, preload)
	if !set {
		for _, w := range c.wrappers {
			if above, err := environment(w); err == nil {
				if _, has := variable(above, preload); has {
					return fmt.Sprintf("%s is in the environment of its wrapper, pid %d (%s), and not in its own: %s", preload, w, kernel.Describe(w), clearers)
				}
			}
		}
		if _, given := variable(on.Given, preload); given {
			return fmt.Sprintf("%s was given to the command and is not in the environment of pid %d: %s", preload, pid, clearers)
		}
		return fmt.Sprintf("%s is not in the environment of pid %d", preload, pid)
	}
	for _, item := range preloaded(value) {
		if !strings.Contains(item, "/") || strings.Contains(item, "$") {
			continue // looked for in the library path, or put together by the loader
		}
		at := processPath(pid, "root") + item
		if !filepath.IsAbs(item) {
			at = processPath(pid, "cwd") + "/" + item
		}
		if _, err := os.Stat(at); os.IsNotExist(err) {
			return fmt.Sprintf("%s names %s, which does not exist", preload, item)
		}
	}
	if on.Output != nil {
		text, _ := on.Output()
		for line := range strings.Lines(text) {
			if strings.Contains(line, "from LD_PRELOAD cannot be preloaded") { // ld.so, elf/rtld.c
				return shorten(strings.TrimSpace(line))
			}
		}
	}
	if value == "" {
		return preload + " is empty"
	}
	return fmt.Sprintf("%s is %s", preload, shorten(value))
}

// staticallyLinked reports whether a program has no loader to load anything for
// it: an ELF without PT_INTERP (elf(5)).
func staticallyLinked(file string) (static bool, err error) {
	f, err := elf.Open(file)
	if err != nil {
		return false, err
	}
	defer f.Close()
	return !slices.ContainsFunc(f.Progs, func(p *elf.Prog) bool { return p.Type == elf.PT_INTERP }), nil
}

func processPath(pid int, name string) string { return "/proc/" + strconv.Itoa(pid) + "/" + name }

func variable(env []string, name string) (value string, set bool) {
	for _, e := range env {
		if value, ok := strings.CutPrefix(e, name+"="); ok {
			return value, true
		}
	}
	return "", false
}

// preloaded are the libraries of LD_PRELOAD, in the order they are loaded
// (ld.so(8): separated by spaces or colons).
func preloaded(value string) []string {
	return strings.FieldsFunc(value, func(r rune) bool { return r == ':' || r == ' ' })
}

// allocator is the name of the allocator that a library is, or nothing.
func allocator(library string) string {
	library = path.Base(library)
	for _, name := range []string{"jemalloc", "tcmalloc", "mimalloc", "snmalloc", "rpmalloc", "scudo", "hoard"} {
		if strings.Contains(library, name) {
			return name
		}
	}
	return ""
}

// whichServes looks for a second allocator beside the one that was found. Of two
// that define malloc the one that is first in search order serves: those of
// LD_PRELOAD in their order, then what the program is linked with (ld.so(8)).
// The order in maps does not tell it: libraries are mapped downwards.
func whichServes(on Subject, ask hakaru.Ask, e Evidence) Evidence {
	own := allocator(e.Found)
	if own == "" {
		return e
	}
	c, err := castOf(on)
	if err != nil {
		return e
	}
	pids, _ := c.own()
	for _, pid := range pids {
		b, err := os.ReadFile(processPath(pid, "maps"))
		if err != nil {
			continue
		}
		if _, ok := matchMaps(string(b), ask); !ok {
			continue
		}
		env, err := environment(pid)
		value, _ := variable(env, preload)
		if note, holds := matchAllocators(string(b), value, err == nil, own); note != "" {
			return told(e.Found+"; "+note, e.Source, holds)
		}
	}
	return e
}

// matchAllocators tells which of several mapped allocators serves: own holds if
// it does.
func matchAllocators(maps, preload string, known bool, own string) (string, hakaru.Held) {
	others := map[string]string{} // allocator → file
	var order []string            // in maps
	for line := range strings.Lines(maps) {
		i := strings.IndexByte(line, '/')
		if i < 0 {
			continue
		}
		file := strings.TrimSpace(line[i:])
		name := allocator(file)
		if name == "" || slices.Contains(order, name) || !strings.Contains(file, ".so") {
			continue
		}
		order = append(order, name)
		if name != own {
			others[name] = file
		}
	}
	if len(others) == 0 {
		return "", hakaru.Yes
	}
	var beside []string
	for _, name := range order {
		if name != own {
			beside = append(beside, path.Base(others[name]))
		}
	}
	note := strings.Join(beside, " and ")
	if len(beside) == 1 {
		note += " is mapped too"
	} else {
		note += " are mapped too"
	}
	if known {
		for _, item := range preloaded(preload) {
			switch first := allocator(item); first {
			case "":
			case own:
				return note + ", and comes after it in search order: " + own + " serves", hakaru.Yes
			default:
				return note + ", and comes before it in search order (LD_PRELOAD): " + first + " serves", hakaru.No
			}
		}
	}
	return fmt.Sprintf("%s (%s comes first in maps), and which of them serves is not known", note, order[0]), hakaru.NotProved
}
