package render

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"hakaru"
	"hakaru/internal/grammar"
	"hakaru/internal/unit"
)

// defaultLimit is how long a load may take that ends by itself.
const defaultLimit = time.Minute

// most is the largest number of connections that a program takes.
func most(program string) int {
	if program == "ab" {
		return 20_000 // MAX_CONCURRENCY of ab.c
	}
	return maxConnections
}

// Program renders load by a program, and says all that is wrong with it. Of one
// that hakaru does not run yet only the times are rendered, so that a plan can
// be estimated.
func Program(p *hakaru.ProgramLoad, dir string, expand func(string) string) (hakaru.LoadSpec, []*Mistake) {
	if !grammar.Runs(p.Name) {
		load := hakaru.LoadSpec{Window: defaultDuration}
		for key, to := range map[string]*time.Duration{"warm_up": &load.WarmUp, "duration": &load.Window} {
			if d, err := unit.ParseDuration(expand(p.Options[key])); err == nil && d >= 0 {
				*to = d
			}
		}
		return load, nil
	}
	spec := hakaru.ProgramSpec{Name: p.Name, Dir: dir}
	r := &programRendering{program: p, options: map[string]string{}, written: written{
		path: "load." + p.Name, whole: p.Name, expand: expand, get: func(key string) string { return p.Options[key] },
	}}
	if p.Name == "command" {
		return r.command(spec), r.failed
	}
	return r.http(spec), r.failed
}

// programRendering is one load program on its way.
type programRendering struct {
	written
	program *hakaru.ProgramLoad
	options map[string]string // rendered
}

func (r *programRendering) flag(key string) {
	if r.truth(key, false) {
		r.options[key] = "true"
	}
}

// words splits a command line before names in it are replaced, so that a value
// with blanks stays one word, and writes it so that splitting gives them again.
func (r *programRendering) words(key string) []string {
	line := r.program.Options[key]
	if line == "" {
		return nil
	}
	list, err := grammar.Split(line)
	if err != nil {
		// Whatever stands in its braces, so it is said at once.
		r.wrong(key, "", err.Error(), "no shell reads this line; put what needs one into a script")
		return nil
	}
	for i := range list {
		list[i] = r.expand(list[i])
	}
	r.options[key] = CommandLine(list)
	return list
}

// http is ab and wrk.
func (r *programRendering) http(spec hakaru.ProgramSpec) hakaru.LoadSpec {
	name := r.program.Name
	url := r.text("url")
	if url != "" && (strings.ContainsAny(url, " \t\r\n") || !strings.HasPrefix(url, "http://") && !strings.HasPrefix(url, "https://")) {
		fix := ""
		if strings.HasPrefix(url, "unix:") || strings.HasPrefix(url, "http+unix:") || strings.Contains(url, ".url}") {
			fix = name + " knows no unix sockets: use load.http for one"
		}
		r.wrong("url", url, fmt.Sprintf("%q is not a URL that begins with http://", url), fix)
	}
	r.options["url"] = url
	if spec.Connections = r.number("connections", most(name)); spec.Connections == 0 {
		spec.Connections = defaultConnections
	}
	r.options["method"] = r.method()
	for key, value := range r.program.Options {
		if name, found := strings.CutPrefix(key, "headers."); found {
			r.options[key] = r.header(name, value)
		}
	}
	if timeout := r.period("timeout", 0, time.Second, true); timeout > 0 {
		r.options["timeout"] = strconv.Itoa(int(timeout.Seconds()))
	}
	r.options["body"], r.options["program"] = r.text("body"), r.text("program")
	r.words("args")
	r.flag("keep_alive")
	r.flag("any_length")
	if threads := r.number("threads", maxConnections); threads > 0 {
		r.options["threads"] = strconv.Itoa(threads)
		if threads > spec.Connections {
			r.wrong("threads", r.text("threads"), fmt.Sprintf("%d threads for %d connections: %s needs a connection for each thread", threads, spec.Connections, name), "")
		}
	}
	load := hakaru.LoadSpec{WarmUp: r.period("warm_up", defaultWarmUp, 0, true)}
	if requests := r.number("requests", 1<<31-1); requests > 0 {
		spec.Counted, r.options["requests"] = true, strconv.Itoa(requests)
		if requests < spec.Connections {
			r.wrong("requests", r.text("requests"), fmt.Sprintf("%d requests for %d connections: %s needs one for each", requests, spec.Connections, name), "")
		}
		load.Window = r.period("duration", defaultLimit, hakaru.BucketWidth, false)
	} else {
		load.Window = r.period("duration", defaultDuration, time.Second, true)
	}
	return r.done(load, spec)
}

// command is a program of one's own.
func (r *programRendering) command(spec hakaru.ProgramSpec) hakaru.LoadSpec {
	spec.Counted = true // it ends by itself
	if list := r.words("run"); r.program.Options["run"] != "" && (len(list) == 0 || list[0] == "") && len(r.failed) == 0 {
		r.wrong("run", r.program.Options["run"], "names no program", "")
	}
	for _, key := range []string{"score", "good", "bad", "throughput"} {
		text := r.text(key)
		if text == "" {
			continue
		}
		pattern, err := regexp.Compile(text)
		switch {
		case err != nil:
			r.wrong(key, text, fmt.Sprintf("%q is no regular expression (RE2): %v", text, err), "")
		case pattern.NumSubexp() == 0:
			r.wrong(key, text, fmt.Sprintf("%q has no group that holds the number", text), `write it as 'SCORE: ([0-9.]+)'`)
		}
		r.options[key] = text
	}
	load := hakaru.LoadSpec{
		WarmUp: r.period("warm_up", 0, 0, false),
		Window: r.period("duration", defaultLimit, hakaru.BucketWidth, false),
	}
	return r.done(load, spec)
}

func (r *programRendering) done(load hakaru.LoadSpec, spec hakaru.ProgramSpec) hakaru.LoadSpec {
	maps.DeleteFunc(r.options, func(_, value string) bool { return value == "" })
	slices.SortFunc(r.failed, func(a, b *Mistake) int { return strings.Compare(a.Path, b.Path) })
	spec.Options, load.Program = r.options, &spec
	return load
}
