package render

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"hakaru/internal/hint"
	"hakaru/internal/unit"
)

// written reads what is written under a load, whoever sends it, and notes all that
// is wrong with it.
type written struct {
	path   string // "load.http"
	whole  string // who counts in whole seconds
	get    func(key string) string
	expand func(string) string
	failed []*Mistake
}

func (w *written) text(key string) string { return w.expand(w.get(key)) }

func (w *written) wrong(key, text, why, fix string) {
	path := w.path + "." + key
	w.failed = append(w.failed, &Mistake{Path: path, Text: text, Code: "bad-value", Message: path + ": " + why, Fix: fix})
}

// period reads a duration; whole says that the program counts in seconds.
func (w *written) period(key string, otherwise, least time.Duration, whole bool) time.Duration {
	text := w.text(key)
	if text == "" {
		return otherwise
	}
	d, err := unit.ParseDuration(text)
	switch {
	case err != nil:
		w.wrong(key, text, err.Error(), hint.Duration(text))
		return otherwise
	case d < least:
		w.wrong(key, text, fmt.Sprintf("%s is shorter than %s", text, unit.ExactDuration(least)), "")
	case whole && d%time.Second != 0:
		w.wrong(key, text, fmt.Sprintf("%s counts in whole seconds, and %s is none", w.whole, text), "")
	}
	return d
}

// number reads a whole number from 1; 0 where there is none.
func (w *written) number(key string, limit int) int {
	text := w.text(key)
	if text == "" {
		return 0
	}
	n, err := strconv.ParseUint(text, 10, 32)
	if err != nil || n == 0 || int(n) > limit {
		w.wrong(key, text, fmt.Sprintf("%q is not a whole number from 1 to %d", text, limit), "")
		return 0
	}
	return int(n)
}

func (w *written) truth(key string, otherwise bool) bool {
	switch text := w.text(key); text {
	case "":
		return otherwise
	case "false", "no", "off":
		return false
	case "true", "yes", "on":
		return true
	default:
		w.wrong(key, text, fmt.Sprintf("%q is neither true nor false", text), "")
		return otherwise
	}
}

// choice reads one of a few words; empty where there is none.
func (w *written) choice(key string, words ...string) string {
	text := w.text(key)
	if text == "" || slices.Contains(words, text) {
		return text
	}
	w.wrong(key, text, fmt.Sprintf("%q is neither %s", text, strings.Join(words, " nor ")), hint.Name(text, words))
	return ""
}

// method reads the method of a request; empty where there is none.
func (w *written) method() string {
	method := w.text("method")
	if method != "" && !token(method) {
		w.wrong("method", method, fmt.Sprintf("%q is not a method of HTTP", method), "")
	}
	return strings.ToUpper(method)
}

// header reads the value of one request header.
func (w *written) header(name, value string) string {
	value = w.expand(value)
	if strings.ContainsAny(value, "\r\n\x00") {
		w.wrong("headers."+name, value, "a header is one line", "")
	}
	if !token(name) {
		w.failed = append(w.failed, &Mistake{Path: w.path + ".headers." + name, Text: name, Code: "bad-header", Message: fmt.Sprintf("%q cannot be the name of a header", name)})
	}
	return value
}
