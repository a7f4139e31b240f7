package wording

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"hakaru"
	"hakaru/internal/redact"
)

// program says in words what a load program sends.
func program(p *hakaru.ProgramLoad) string {
	switch p.Name {
	case "ab", "wrk":
		return httpProgram(p)
	case "command":
		return "the command " + p.Options["run"]
	}
	words := []string{p.Name}
	for _, name := range slices.Sorted(maps.Keys(p.Options)) {
		words = append(words, name+"="+p.Options[name])
	}
	return strings.Join(words, " ")
}

func httpProgram(p *hakaru.ProgramLoad) string {
	o := p.Options
	method := or(strings.ToUpper(o["method"]), "GET")
	if o["body"] != "" && o["method"] == "" {
		method = "POST"
	}
	text := fmt.Sprintf("%s: %s %s, closed loop, %s connections", p.Name, method, o["url"], or(o["connections"], "64"))
	switch {
	case p.Name == "wrk":
		text += " kept alive, " + or(o["threads"], "2") + " threads"
	case on(o["keep_alive"]):
		text += " kept alive"
	default:
		text += ", a new one for each request"
	}
	if o["requests"] != "" {
		text += ", " + o["requests"] + " requests"
	}
	for _, key := range slices.Sorted(maps.Keys(o)) {
		name, header := strings.CutPrefix(key, "headers.")
		switch {
		case header && redact.Header(name):
			text += ", " + name + ": " + redact.Mask
		case header:
			text += ", " + name + ": " + o[key]
		case key == "any_length" && on(o[key]):
			text += ", answers of any length"
		case key == "args":
			text += ", with " + o[key]
		case key == "program":
			text += ", the program " + o[key]
		}
	}
	return text
}

// on reports whether an option is switched on, as render reads it.
func on(value string) bool { return value == "true" || value == "yes" || value == "on" }

// Writer names whose output something is.
func Writer(service string) string {
	if service == hakaru.OfLoad {
		return "the load program"
	}
	return service
}
