package service

import (
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"strings"

	"hakaru"
)

const (
	signLine  = 300 // runes that are shown of a line
	signLines = 3   // lines that are named
)

// signs are lines of a unit's output that explain why it does not come up, the
// most telling first.
type signs []sign

type sign struct {
	pattern *regexp.Regexp
	hint    string
	fatal   bool
}

// compileSigns compiles the patterns of a unit. They come from hakaru's own
// kinds, so that an error is hakaru's.
func compileSigns(given []hakaru.Sign) (signs, error) {
	var list signs
	for _, g := range given {
		pattern, err := regexp.Compile(g.Pattern)
		if err != nil {
			return nil, fmt.Errorf("sign %q of a failed start: %w", g.Pattern, err)
		}
		list = append(list, sign{pattern, g.Hint, g.Fatal})
	}
	return list, nil
}

// hasFatal reports whether there is anything to look for while the unit starts.
func (l signs) hasFatal() bool {
	return slices.ContainsFunc(l, func(s sign) bool { return s.fatal })
}

// fatalIn returns the first line that says that the unit will not become ready.
func (l signs) fatalIn(text string) (line string, found bool) {
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\r\n")
		if slices.ContainsFunc(l, func(s sign) bool { return s.fatal && s.pattern.MatchString(line) }) {
			return line, true
		}
	}
	return "", false
}

// explain returns the lines that explain a failed start, in the order of the
// signs, each the first of its sign, and the hint of the most telling one.
func (l signs) explain(text string) (lines []string, hint string) {
	for _, s := range l {
		for line := range strings.Lines(text) {
			line = strings.TrimRight(line, "\r\n")
			if !s.pattern.MatchString(line) {
				continue
			}
			if hint == "" {
				hint = s.hint
			}
			if line = shortLine(line); len(lines) < signLines && !slices.Contains(lines, line) {
				lines = append(lines, line)
			}
			break
		}
	}
	return lines, hint
}

func shortLine(line string) string {
	line = strings.ToValidUTF8(strings.TrimSpace(line), "\uFFFD")
	if runes := []rune(line); len(runes) > signLine {
		return string(runes[:signLine-1]) + "…"
	}
	return line
}

// What programs say of an address that they cannot have. The first is the
// kernel's message (EADDRINUSE), which nearly all of them hand on; the others are
// gunicorn's, uWSGI's and MariaDB's.
var (
	takenLine = regexp.MustCompile(`(?i)address (is )?already in use|connection in use|running on the same address|server running on port`)
	hostPort  = regexp.MustCompile(`(\d{1,3}(?:\.\d{1,3}){3}|\[[0-9a-fA-F:.]+\]|\*|localhost)[:'", ]+(?:port )?(\d{1,5})\b`)
	portAlone = regexp.MustCompile(`(?i)(?:\bport:?\s+|\s:+)(\d{1,5})\b`)
)

// takenAddress finds the address that a program says it could not bind.
func takenAddress(text string) (netip.AddrPort, bool) {
	for line := range strings.Lines(text) {
		if !takenLine.MatchString(line) {
			continue
		}
		host, port := "", ""
		if m := hostPort.FindStringSubmatch(line); m != nil {
			host, port = m[1], m[2]
		} else if m := portAlone.FindStringSubmatch(line); m != nil {
			host, port = "*", m[1]
		} else {
			continue
		}
		switch host {
		case "*", "localhost", "0.0.0.0", "[::]":
			// Whoever has it in the way of a wildcard has it here too, but for
			// those at another interface alone.
			host = "127.0.0.1"
		}
		if addr, err := netip.ParseAddrPort(host + ":" + port); err == nil && addr.Port() != 0 {
			return addr, true
		}
	}
	return netip.AddrPort{}, false
}
