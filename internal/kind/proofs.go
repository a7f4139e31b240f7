package kind

import (
	"regexp"
	"strconv"
	"strings"

	"hakaru"
	"hakaru/internal/unit"
)

// Proof is one way to see a setting in force. Exactly one of HTTP, Processes,
// Threads, Backlog, Log, SQL, Stats, Command, File and Cmdline is set.
type Proof struct {
	HTTP      string `yaml:"http"` // a URL, {addr} as in Ready
	Processes bool   `yaml:"processes"`
	Title     string `yaml:"title"` // of Processes: only those whose title has this text count
	Threads   bool   `yaml:"threads"`
	Backlog   bool   `yaml:"backlog"`
	// Log is a pattern (RE2) on the output. Its last group is the value; without
	// one, that it is there is the proof.
	Log   string `yaml:"log"`
	SQL   string `yaml:"sql"`   // a statement; {name} is the setting with underscores
	Stats string `yaml:"stats"` // the field of memcached's "stats settings"
	// Command is a command line whose output is compared: {addr}, {host}, {port} and
	// {path} are of the address, {name} is the setting.
	Command string `yaml:"command"`
	File    bool   `yaml:"file"`    // the line in the config file that the running process has read
	Cmdline bool   `yaml:"cmdline"` // the flag, where it was put on the command line

	Field string `yaml:"field"` // into the answer of HTTP, or what Command prints
	// As says what the value is: "seconds", "share", "bytes" (64 MiB), "size" (64M),
	// "megabytes" (64): the answer is the plain number of it; "first" and "last" of
	// two with a colon between them (1:5).
	As string `yaml:"as"`
	// Part is a pattern on the value whose group is what is asked for; it says
	// nothing where it is not there.
	Part string `yaml:"part"`
	// Offset is added to the number asked for, of Processes; so is what Plus says of
	// each setting (or the first of several, a|b) that is switched on: a number,
	// "value", or "lines" for how often it is written.
	Offset int               `yaml:"offset"`
	Plus   map[string]string `yaml:"plus"`
	// Count: how many distinct lines match Log is the number asked for.
	Count bool `yaml:"count"`
	// Shows is for settings that are on or off: "on" where what Log finds is there
	// when the setting is on, and is not there when it is off; "off" the reverse.
	Shows string `yaml:"shows"`
	// From is the first moment at which it can be seen: ready, load, end.
	From hakaru.Moment `yaml:"from"`
	// Unless and When are conditions: it says nothing where one of Unless holds, and
	// something only where one of When does.
	Unless []string `yaml:"unless"`
	When   []string `yaml:"when"`
}

// Kind is the kind of ask that the proof makes.
func (p Proof) Kind() string {
	switch {
	case p.HTTP != "":
		return "http"
	case p.Processes:
		return "processes"
	case p.Threads:
		return "threads"
	case p.Backlog:
		return "backlog"
	case p.SQL != "":
		return "sql"
	case p.Stats != "":
		return "stats"
	case p.Command != "":
		return "command"
	case p.File:
		return "file"
	case p.Cmdline:
		return "cmdline"
	}
	return "log"
}

// Asks returns what to ask where a setting has this value, and why there is
// nothing to ask where that is known. The service listens at address, and unseen is
// a config file that hakaru does not see; a leased name in a text stays.
func (k *Kind) Asks(words []string, content, unseen, address, name, whole string) (asks []hakaru.Ask, why string) {
	s := k.Describe(name)
	elsewhere := k.Any(k.LogsElsewhere, words, content)
	for _, p := range s.Proofs {
		if other := k.Any(p.Unless, words, content); other != "" {
			why = "what would show it says nothing together with " + other
			continue
		}
		if len(p.When) > 0 && k.Any(p.When, words, content) == "" {
			continue
		}
		if len(p.Unless) > 0 && unseen != "" {
			why = "what would show it depends on a config file that hakaru does not see: " + unseenFix
			continue
		}
		value, there := p.part(whole)
		if !there {
			if why == "" {
				why = k.Name + " may tell it in other words than " + whole
			}
			continue
		}
		a := hakaru.Ask{Kind: p.Kind(), Field: p.Field, Offset: p.Offset, Count: p.Count, From: p.From}
		// Of a choice all the words are known that the program has for it.
		a.Exact = s.Type == Choice && (a.Kind == "sql" || a.Kind == "stats")
		if a.From == hakaru.AtReady {
			a.From = ""
		}
		if want := p.Want(value); want != whole {
			a.Equals = want
		}
		switch a.Kind {
		case "http":
			if address == "" || strings.HasPrefix(address, "unix:") {
				continue
			}
			a.Argument = hakaru.Names{"addr": address}.Expand(p.HTTP)
		case "processes":
			if _, err := strconv.Atoi(value); err != nil {
				why = value + " is not a number, and how many it stands for is known to " + k.Name + " only"
				continue
			}
			if len(p.Plus) > 0 && unseen != "" {
				why = "how many there are to be depends on a config file that hakaru does not see: " + unseenFix
				continue
			}
			a.Offset += k.plus(p, words, content)
			a.Argument = p.Title
		case "log":
			if elsewhere != "" {
				why = "its log goes elsewhere (" + strings.TrimPrefix(elsewhere, "~") + "), so hakaru does not see it"
				continue
			}
			if len(k.LogsElsewhere) > 0 && unseen != "" {
				why = "where its log goes is in a config file that hakaru does not see: " + unseenFix
				continue
			}
			a.Argument = hakaru.Names{"value": value}.Expand(p.Log)
			if p.Shows != "" {
				a.Absent = (p.Shows == "on") == Off(value)
			}
		case "sql":
			a.Exact = s.Type == Choice // those are all the words that there are
			a.Argument = hakaru.Names{"name": strings.ReplaceAll(s.Name, "-", "_")}.Expand(p.SQL)
		case "stats":
			if address == "" {
				why = "where it listens is not known, so it cannot be asked"
				continue
			}
			a.Argument, a.Field = address, p.Stats
		case "command":
			command, known := commandFor(p.Command, address, s.Name)
			if !known {
				continue
			}
			a.Argument = command
		case "file":
			a.Contains = k.Line(content, name)
			if a.Contains == "" {
				continue
			}
		case "cmdline":
			flag, found := k.flag(words, name)
			switch {
			case found:
				a.Argument = flag
			case s.isSwitch() && Off(value):
				a.Argument, a.Absent = "--"+strings.TrimLeft(k.onLine(name)[0], "-"), true
			default:
				continue
			}
		}
		asks = append(asks, a)
	}
	return asks, why
}

// part is what of a setting's value the proof is about.
func (p Proof) part(value string) (string, bool) {
	if p.Part == "" {
		return value, true
	}
	pattern, err := regexp.Compile(p.Part)
	if err != nil {
		return "", false
	}
	match := pattern.FindStringSubmatch(value)
	if len(match) < 2 {
		return "", false
	}
	return match[1], true
}

// commandFor fills in what a command is asked about; known says that the address
// has the parts that it needs.
func commandFor(command, address, name string) (text string, known bool) {
	names := hakaru.Names{"name": name}
	if file, unix := strings.CutPrefix(address, "unix:"); unix {
		names["path"] = file
	} else if address != "" {
		names["addr"] = address
		if lease, whole := strings.CutSuffix(address, "}"); whole && strings.HasPrefix(lease, "{") {
			names["host"], names["port"] = lease+".host}", lease+".port}"
		} else if colon := strings.LastIndexByte(address, ':'); colon >= 0 {
			names["host"], names["port"] = strings.Trim(address[:colon], "[]"), address[colon+1:]
		}
	}
	text = names.Expand(command)
	for _, part := range []string{"{addr}", "{host}", "{port}", "{path}"} {
		if strings.Contains(text, part) {
			return "", false
		}
	}
	return text, true
}

// unseenFix is what to do about a config file that is not known.
const unseenFix = "name it with settings:, and write what it draws in into it"

// plus is how many processes other settings add.
func (k *Kind) plus(p Proof, words []string, content string) int {
	sum := 0
	for names, more := range p.Plus {
		for name := range strings.SplitSeq(names, "|") {
			if on, _ := k.On(words, content, name); !on {
				continue
			}
			switch more {
			case "value":
				more, _ = k.Value(words, content, name)
			case "lines":
				more = strconv.Itoa(len(k.keysOf(content, name)) + k.flags(words, name))
			}
			if n, err := strconv.Atoi(more); err == nil {
				sum += n
			}
			break
		}
	}
	return sum
}

// flags is how often a setting stands on the command line.
func (k *Kind) flags(words []string, name string) int {
	if !k.CanEditWords() {
		return 0
	}
	return k.words(k.Describe(name)).Count(words, k.onLine(name))
}

// flag is a setting's flag as it stands on the command line.
func (k *Kind) flag(words []string, name string) (string, bool) {
	for _, n := range k.onLine(name) {
		if !strings.HasPrefix(n, "-") {
			n = "--" + n
		}
		for _, w := range words {
			if w == n || strings.HasPrefix(w, n+"=") {
				return n, true
			}
		}
	}
	return "", false
}

// Want returns what a proof is to find where value was asked for.
func (p Proof) Want(value string) string {
	var number float64
	var err error
	switch p.As {
	case "seconds":
		d, derr := unit.ParseDuration(value)
		number, err = d.Seconds(), derr
	case "share":
		number, err = unit.ParseShare(value)
	case "bytes":
		number, err = unit.ParseBytes(value)
	case "first", "last":
		low, high, both := strings.Cut(value, ":")
		if p.As == "first" || !both {
			return low
		}
		return high
	case "size", "megabytes":
		n, ok := size(value)
		if !ok {
			return value
		}
		if number = n; p.As == "megabytes" {
			number *= 1 << 20
		}
	default:
		return value
	}
	if err != nil {
		return value
	}
	return strconv.FormatFloat(number, 'f', -1, 64)
}
