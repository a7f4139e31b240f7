// Package edit reads and changes settings in the texts that programs take them
// from: config files and command lines. It takes a text and gives a text: what
// was not to be changed (order, comments, layout, line endings) stays as it is.
//
// Each style is read as the program reads it, not as the format looks: what a
// repeated name means, which of two counts, where a block or a comment ends.
// Whether a name is a setting of the program at all, and whether a value is
// right, is not known here (internal/kind knows). No file is opened: what a text
// draws in is told by Includes, and who has the files reads them.
package edit

import (
	"fmt"
	"strings"

	"hakaru/internal/nginxconf"
)

// Edit is one setting to put in.
type Edit struct {
	// Names are all it goes by, the first the one to write. Short flags are written
	// with their dash ("-w") and are no names in a config file; long flags without.
	Names []string
	Value *string // nil: taken away
	// Context is the block that the setting stands in, of nginx only: "" (main),
	// "events", "http", "http.server", "http.upstream".
	Context string
}

// Style is the way a program reads its config file.
type Style string

const (
	// INI is an ini file as `hakaru serve` reads it: a value may stand in double
	// quotes and have a comment behind it.
	INI Style = "ini"
	// UWSGI is an ini file as uWSGI reads it: everything behind the equals sign is
	// the value, %d and the like are magic, other files may be drawn in.
	UWSGI Style = "uwsgi"
	// MyCnf is an option file of MariaDB and MySQL.
	MyCnf Style = "mycnf"
	// Nginx is nginx.conf.
	Nginx Style = "nginx"
	// Assign is a Python file of assignments, as gunicorn.conf.py.
	Assign Style = "assign"
)

// File is how a config file is written.
type File struct {
	Style Style
	// Sections are those that the program reads, the first the one to write. Of
	// INI and UWSGI the first alone counts.
	Sections []string
	// Context limits Value to a block of nginx.conf and what is in it, as in Edit;
	// empty: the whole file.
	Context string
}

// Key is one setting as a file has it.
type Key struct {
	Name    string
	Value   string // as Value gives it; empty where there is none
	Section string // of nginx the path of blocks: "http.server.location"
	Line    int    // from 1
	Column  int    // of the name, in bytes, from 1
}

// Include is another file that a text draws in.
type Include struct {
	Path string // as written: relative to what the program has it, of nginx maybe a pattern
	Dir  bool   // a directory: all files in it that end as the program wants
	Line int    // from 1
}

// Put returns content with the edits made, one after the other, so that the last
// edit of a setting wins.
func (f File) Put(content string, edits []Edit) (string, error) {
	for _, e := range edits {
		names, err := f.names(e)
		if err != nil {
			return "", err
		}
		content, err = f.put(content, names, e)
		if err != nil {
			return "", fmt.Errorf("edit %s: %w", names[0], err)
		}
	}
	return content, nil
}

func (f File) put(content string, names []string, e Edit) (string, error) {
	switch f.Style {
	case INI, UWSGI:
		return f.putINI(content, names, e.Value), nil
	case MyCnf:
		return f.putMyCnf(content, names, e.Value)
	case Nginx:
		return nginxconf.Put(content, names, e.Value, e.Context)
	case Assign:
		return putAssign(content, names, e.Value)
	}
	return "", fmt.Errorf("files of style %q cannot be edited", f.Style)
}

// names returns the names that can stand in a config file. A name or value that
// would change more than the setting is refused.
func (f File) names(e Edit) ([]string, error) {
	var names []string
	for _, name := range e.Names {
		switch {
		case strings.HasPrefix(name, "-"): // a short flag
		case name == "" || strings.ContainsAny(name, "=\r\n\x00") || strings.TrimSpace(name) != name || strings.ContainsAny(name[:1], "[#;!"):
			return nil, fmt.Errorf("edit %q: this is no name of a setting", name)
		default:
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return nil, fmt.Errorf("edit %q: no name that can stand in a config file", e.Names)
	}
	if e.Value != nil && strings.ContainsAny(*e.Value, "\r\n\x00") {
		return nil, fmt.Errorf("edit %s: the value is more than one line", names[0])
	}
	return names, nil
}

// Value returns what the content says about a setting: the one that counts to
// the program, without quotes. It is empty where the setting is written without
// a value, which programs take for "on".
func (f File) Value(content string, names []string) (string, bool) {
	switch f.Style {
	case INI, UWSGI:
		return f.valueINI(content, names)
	case MyCnf:
		return f.valueMyCnf(content, names)
	case Nginx:
		return nginxconf.Value(content, names, f.Context)
	case Assign:
		return valueAssign(content, names)
	}
	return "", false
}

// Keys returns every setting as it is written, in all sections and blocks. Of a
// text that the program would refuse, it returns those before the mistake.
func (f File) Keys(content string) []Key {
	switch f.Style {
	case INI, UWSGI:
		return f.keysINI(content)
	case MyCnf:
		return keysMyCnf(content)
	case Nginx:
		var keys []Key
		for _, e := range nginxconf.Entries(content) {
			keys = append(keys, Key{Name: e.Name, Value: e.Value, Section: e.Path, Line: e.Line, Column: e.Column})
		}
		return keys
	case Assign:
		return keysAssign(content)
	}
	return nil
}

// Relocate returns content as it has to read when it is put elsewhere: what is
// relative to the file's own place, whose absolute path is given, is made
// absolute. What is relative to the working directory or a prefix stays.
func (f File) Relocate(content, path string) string {
	switch f.Style {
	case UWSGI:
		return relocateUWSGI(content, path)
	case Nginx:
		return nginxconf.Relocate(content, path)
	case Assign:
		return relocateAssign(content, path)
	}
	return content
}

// Includes returns what the content draws in, in order.
func (f File) Includes(content string) []Include {
	switch f.Style {
	case UWSGI:
		return f.includesUWSGI(content)
	case MyCnf:
		return includesMyCnf(content)
	case Nginx:
		var list []Include
		for _, i := range nginxconf.Includes(content) {
			list = append(list, Include{Path: i.Path, Line: i.Line})
		}
		return list
	}
	return nil
}
