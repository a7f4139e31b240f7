package program

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// report is the lines "name: value" and "50% value" of a program's output; of
// two lines with one name the first counts.
type report map[string]string

func fields(text string) report {
	r := report{}
	put := func(name, value string) {
		if _, known := r[name]; !known {
			r[name] = strings.TrimSpace(value)
		}
	}
	for l := range strings.Lines(text) {
		l = strings.TrimSpace(l)
		if name, value, found := strings.Cut(l, ":"); found {
			put(name, value)
			continue
		}
		if name, value, found := strings.Cut(l, "%"); found {
			if _, err := strconv.Atoi(name); err == nil {
				put(name+"%", value)
			}
		}
	}
	return r
}

// number is the first word of a line's value.
func (r report) number(name string) (float64, bool) {
	f := strings.Fields(r[name])
	if len(f) == 0 {
		return 0, false
	}
	v, err := strconv.ParseFloat(f[0], 64)
	return v, err == nil && finite(v) && v >= 0
}

// whole is the first word of a line's value where it is a count.
func (r report) whole(name string) (uint64, bool) {
	f := strings.Fields(r[name])
	if len(f) == 0 {
		return 0, false
	}
	n, err := strconv.ParseUint(f[0], 10, 63)
	return n, err == nil
}

// between is what stands between two texts, or nothing.
func between(text, begin, end string) string {
	_, rest, found := strings.Cut(text, begin)
	if !found {
		return ""
	}
	inner, _, _ := strings.Cut(rest, end)
	return inner
}

func finite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }

// seconds is a printed time; one that is too long to be one is 0.
func seconds(s float64) time.Duration {
	if !finite(s) || s < 0 || s > 1e9 {
		return 0
	}
	return time.Duration(s * float64(time.Second))
}

// headers are those of the options, "Name: value", in order.
func headers(options map[string]string) []string {
	var list []string
	for _, key := range slices.Sorted(maps.Keys(options)) {
		if name, found := strings.CutPrefix(key, "headers."); found {
			list = append(list, name+": "+options[key])
		}
	}
	return list
}

// httpURL is a URL as ab and wrk take it: over TCP, with a path.
func httpURL(url string) (string, error) {
	scheme, rest, found := strings.Cut(url, "://")
	if !found || scheme != "http" && scheme != "https" || rest == "" || rest[0] == '/' {
		return "", fmt.Errorf("%q is no URL of a service on TCP, which is all that such a program knows", url)
	}
	if !strings.ContainsAny(rest, "/?") {
		return url + "/", nil
	}
	return url, nil
}
