package kind

import (
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"hakaru"
)

// Listen says where the address that the service listens on is written.
type Listen struct {
	// Settings name it, the first that is there.
	Settings []string `yaml:"settings"`
	// Host, Port and Unix are settings for its parts; NoPort is the one that leaves
	// only the unix socket.
	Host   string `yaml:"host"`
	Port   string `yaml:"port"`
	Unix   string `yaml:"unix"`
	NoPort string `yaml:"no_port"`
	// Dir is the setting for the directory that a relative Unix starts at.
	Dir     string `yaml:"dir"`
	Default string `yaml:"default"`
}

// Address returns where a service listens whose command line and config file are
// these, as host:port or unix:/path; empty where the kind does not know.
func (k *Kind) Address(words []string, content string) string {
	written := ""
	for _, name := range k.Listen.Settings {
		value, found := k.Value(words, content, name)
		if !found || value == "" || Off(value) {
			continue
		}
		// The one that is given an address of the trial is the one that is meant.
		if written == "" || strings.Contains(value, "{") && !strings.Contains(written, "{") {
			written = value
		}
	}
	if written != "" {
		return k.within(plainAddress(written), words, content)
	}
	socket, port := k.socket(words, content), ""
	if k.Listen.Port != "" {
		port, _ = k.Value(words, content, k.Listen.Port)
	}
	host, usual := "127.0.0.1", k.Listen.Default
	if k.Listen.Host != "" {
		if value, found := k.Value(words, content, k.Listen.Host); found {
			value, _, _ = strings.Cut(value, ",")
			if strings.Count(value, ":") == 1 && !strings.HasPrefix(value, "{") {
				return plainAddress(value)
			}
			host = reachable(value)
			usual = host + k.Listen.Default[strings.LastIndexByte(k.Listen.Default, ':'):]
		}
	}
	noPort := k.Listen.NoPort != "" && k.Holds(k.Listen.NoPort, words, content)
	switch {
	case socket != "" && (noPort || port == "" || Off(port)):
		return "unix:" + socket
	case port != "":
		return host + ":" + port
	}
	return usual
}

// socket is the path of the unix socket, where one is set.
func (k *Kind) socket(words []string, content string) string {
	if k.Listen.Unix == "" {
		return ""
	}
	value, _ := k.Value(words, content, k.Listen.Unix)
	if value == "" || strings.HasPrefix(value, "/") || strings.HasPrefix(value, "{") || k.Listen.Dir == "" {
		return value
	}
	if dir, found := k.Value(words, content, k.Listen.Dir); found {
		return path.Join(dir, value)
	}
	return ""
}

// within puts the relative path of a unix socket into the directory that the
// program changes to; without one it starts at the service's own.
func (k *Kind) within(address string, words []string, content string) string {
	file, unix := strings.CutPrefix(address, "unix:")
	if !unix || k.Listen.Dir == "" || strings.ContainsAny(file[:min(1, len(file))], "/@{") {
		return address
	}
	dir, found := k.Value(words, content, k.Listen.Dir)
	switch {
	case !found:
		return address
	case strings.ContainsAny(dir, "%$()"):
		return "" // a variable of the file
	}
	return "unix:" + path.Join(dir, file)
}

// Overwritten are the listening addresses of a config file that a setting put
// beside or into it does not do right by: another that stays, or lines that become
// one. It gives the setting and what is said of it, empty where all is well.
func (k *Kind) Overwritten(before, after string, settings []hakaru.Setting) (setting, what string) {
	for _, s := range settings {
		if s.Value == nil || !slices.ContainsFunc(k.Listen.Settings, func(n string) bool { return k.Same(n, s.Name) }) {
			continue
		}
		if lines := len(k.putInto(before, s.Name)); lines > 1 {
			return s.Name, fmt.Sprintf("stands in %d lines of the config file, and all of them become this one, without what else they say; with {%s} written in the line that is meant, only that changes", lines, s.Name)
		}
		for _, other := range k.Listen.Settings {
			value, found := k.inContent(after, other)
			if found && !k.Same(other, s.Name) && !Off(value) && !strings.HasPrefix(plainAddress(value), "unix:") && // of those see TakenOver
				!slices.ContainsFunc(settings, func(o hakaru.Setting) bool { return k.Same(o.Name, other) }) {
				return s.Name, fmt.Sprintf("is put in, and the config file listens with %s = %s, which stays; %s: null takes it out", other, value, other)
			}
		}
	}
	return "", ""
}

// TakenOver is the socket file that a config file names and the program would take
// from whoever listens on it, with the setting that names it; empty where there is
// none. One that hakaru makes is not meant.
func (k *Kind) TakenOver(content string) (setting, file string) {
	for _, name := range k.TakesOver {
		value, found := k.inContent(content, name)
		if path, unix := strings.CutPrefix(plainAddress(value), "unix:"); found && unix && !strings.HasPrefix(path, "{") && !strings.HasPrefix(path, "@") {
			return name, path
		}
	}
	return "", ""
}

// Shared are the lines of a config file that name what a live server of the person
// may write too, each with its setting and the path. What hakaru makes for a trial
// is not meant.
func (k *Kind) Shared(content string) (lines [][2]string) {
	for _, name := range k.Shares {
		for _, key := range k.keysOf(content, name) {
			words := strings.Fields(key.Value)
			if len(words) == 0 || Off(words[0]) || strings.HasPrefix(words[0], "{hakaru.dir}") || strings.HasPrefix(words[0], "/dev/") || strings.Contains(words[0], ":") {
				continue // syslog:server=… is no file
			}
			if line := [2]string{name, words[0]}; !slices.Contains(lines, line) {
				lines = append(lines, line)
			}
		}
	}
	return lines
}

// DataSource returns where proofs by SQL are asked; empty where the kind has none.
func (k *Kind) DataSource(words []string, content string) string {
	if socket := k.socket(words, content); socket != "" && k.SQL.Unix != "" {
		return hakaru.Names{"path": socket}.Expand(k.SQL.Unix)
	}
	if k.SQL.TCP == "" {
		return ""
	}
	return hakaru.Names{"addr": k.Address(words, content)}.Expand(k.SQL.TCP)
}

// DataSourceAt is DataSource of a server whose address is known.
func (k *Kind) DataSourceAt(address string) string {
	if socket, unix := strings.CutPrefix(address, "unix:"); unix {
		return hakaru.Names{"path": socket}.Expand(k.SQL.Unix)
	}
	if address == "" {
		return ""
	}
	return hakaru.Names{"addr": address}.Expand(k.SQL.TCP)
}

// plainAddress makes host:port or unix:/path of the ways in which servers write
// an address: a bare port, ":80", "*:80", "tcp://…", "unix://…", a path, with
// options behind it, or as the first of several. Empty where it is none that can be
// read: a variable or an expression of the config file.
func plainAddress(value string) string {
	if list, found := strings.CutPrefix(value, "["); found && strings.ContainsAny(list, `'"`) {
		value = strings.Trim(strings.TrimSpace(strings.Split(strings.TrimSuffix(list, "]"), ",")[0]), `'"`)
	}
	if words := strings.Fields(value); len(words) > 0 {
		value = words[0]
	}
	value, _, _ = strings.Cut(strings.TrimPrefix(value, "tcp://"), "?")
	value, _, _ = strings.Cut(value, ",") // uWSGI's https has its certificates behind it
	if strings.ContainsAny(value, "()'\"%$=\\") {
		return ""
	}
	if file, unix := strings.CutPrefix(value, "unix:"); unix {
		return "unix:" + strings.TrimPrefix(file, "//")
	}
	if strings.HasPrefix(value, "/") || strings.HasPrefix(value, "@") {
		return "unix:" + value
	}
	if _, err := strconv.ParseUint(value, 10, 16); err == nil {
		return "127.0.0.1:" + value
	}
	colon := strings.LastIndexByte(value, ':')
	switch {
	case strings.HasPrefix(value, "{"):
		return value
	case colon < 0 && (strings.Contains(value, "/") || strings.HasSuffix(value, ".sock") || strings.HasSuffix(value, ".socket")):
		return "unix:" + value
	case colon < 0 || strings.Contains(value[colon:], "]"):
		return "" // a host alone, or a name that something else gives a meaning
	}
	if _, err := strconv.ParseUint(value[colon+1:], 10, 16); err != nil && !strings.HasPrefix(value[colon+1:], "{") {
		return "" // fd://3, a port by name
	}
	return reachable(value[:colon]) + value[colon:]
}

// reachable is an address to reach a service at that listens on host: on loopback
// where it listens everywhere.
func reachable(host string) string {
	switch host {
	case "", "*", "0.0.0.0":
		return "127.0.0.1"
	case "[::]", "::":
		return "[::1]"
	}
	return host
}

func checkAddress(value string) error {
	if file, unix := strings.CutPrefix(value, "unix:"); unix && file != "" {
		return nil
	}
	colon := strings.LastIndexByte(value, ':')
	if colon < 0 {
		return fmt.Errorf("%q is not an address: write host:port or unix:PATH", value)
	}
	if _, err := strconv.ParseUint(value[colon+1:], 10, 16); err != nil {
		return fmt.Errorf("%q is not an address: its port is no number", value)
	}
	return nil
}
