package kind

import (
	"fmt"
	"path"
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
	for _, name := range k.Listen.Settings {
		if value, found := k.Value(words, content, name); found && value != "" && !Off(value) {
			return plainAddress(value)
		}
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

// TakenOver is the socket file that a config file names and the program would take
// from whoever listens on it, with the setting that names it; empty where there is
// none. One that hakaru makes is not meant.
func (k *Kind) TakenOver(content string) (setting, file string) {
	for _, name := range k.TakesOver {
		value, found := k.inContent(content, name)
		if path, unix := strings.CutPrefix(plainAddress(value), "unix:"); found && unix && strings.HasPrefix(path, "/") {
			return name, path
		}
	}
	return "", ""
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

// plainAddress makes host:port or unix:/path of the ways in which servers write
// an address: a bare port, ":80", "*:80", "tcp://…", "unix://…", a path, with
// options behind it, or as the first of a Python list.
func plainAddress(value string) string {
	if list, found := strings.CutPrefix(value, "["); found && strings.ContainsAny(list, `'"`) {
		value = strings.Trim(strings.TrimSpace(strings.Split(strings.TrimSuffix(list, "]"), ",")[0]), `'"`)
	}
	if words := strings.Fields(value); len(words) > 0 {
		value = words[0]
	}
	value, _, _ = strings.Cut(strings.TrimPrefix(value, "tcp://"), "?")
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
	if colon < 0 || strings.Contains(value[colon:], "]") || strings.HasPrefix(value, "{") {
		return value
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
