// Package edit reads and changes settings in the texts that programs take them
// from: config files and command lines. It takes a text and gives a text: what
// was not to be changed (order, comments, layout, line endings) stays as it is.
//
// Each style is read as the program reads it, not as the format looks: what a
// repeated key means, which of two counts, what a group or block is, what a
// quote does. Whether a name is a setting of the program at all, and whether a
// value is right, is not known here (internal/kind knows); nor is any file
// opened: what a text includes is told by Includes, and the one who has the file
// reads it.
package edit

import (
	"fmt"
	"strings"
)

// Edit is one setting to put in.
type Edit struct {
	// Names are all it goes by, the first the one to write. Flags are written with
	// their dashes where they are short ("-w"), long ones without ("workers").
	Names []string
	Value *string // nil: taken away
	// Context is the block that the setting stands in, of nginx only: "" (main),
	// "events", "http", "http.server", "http.upstream".
	Context string
}

// Style is the way a program reads its config file.
type Style string

const (
	// INI is a plain ini file: comments stand on lines of their own, the last
	// setting of a name counts.
	INI Style = "ini"
	// UWSGI is INI as uWSGI reads it, with its magic variables (%d) and includes.
	UWSGI Style = "uwsgi"
	// MyCnf is an option file of MariaDB and MySQL.
	MyCnf Style = "mycnf"
	// Nginx is nginx.conf.
	Nginx Style = "nginx"
	// Assign is a Python file of top-level assignments, as gunicorn.conf.py.
	Assign Style = "assign"
)

// Styles are all that a File can have.
func Styles() []Style { return []Style{INI, UWSGI, MyCnf, Nginx, Assign} }

// File is how a config file is written.
type File struct {
	Style Style
	// Sections are those that the program reads, the first the one to write; of
	// INI and UWSGI the first alone counts. Empty: what stands above every section.
	Sections []string
}

// Key is one setting as a file has it.
type Key struct {
	Name    string
	Value   string // as written, without the blanks, quotes and comment around it
	Section string // of nginx the path of blocks: "http.server.location"
	Line    int    // from 1
	Column  int    // of the name, in bytes, from 1
}

// Include is another file that a text draws in.
type Include struct {
	Path string // as written: it may be relative, or of nginx a pattern
	Dir  bool   // all files of the program's own suffix in this directory
	Line int    // from 1
}

// Put returns content with the edits made. The last edit of a setting wins.
func (f File) Put(content string, edits []Edit) (string, error) {
	for _, e := range edits {
		if len(e.Names) == 0 {
			return "", fmt.Errorf("edit a config file: a setting without a name")
		}
		if e.Value != nil && strings.ContainsAny(*e.Value, "\r\n\x00") {
			return "", fmt.Errorf("edit %s: the value is more than one line", e.Names[0])
		}
	}
	for _, e := range edits {
		names := long(e.Names)
		if len(names) == 0 {
			return "", fmt.Errorf("edit %s: it is a flag, and no name in a config file", e.Names[0])
		}
		var err error
		switch f.Style {
		case INI, UWSGI:
			content = f.putINI(content, names, e.Value)
		default:
			err = fmt.Errorf("files of style %q cannot be edited", f.Style)
		}
		if err != nil {
			return "", fmt.Errorf("edit %s: %w", names[0], err)
		}
	}
	return content, nil
}

// Value returns what the content says about a setting: the one that counts to
// the program.
func (f File) Value(content string, names []string) (string, bool) {
	switch f.Style {
	case INI, UWSGI:
		return f.valueINI(content, long(names))
	}
	return "", false
}

// Keys returns every setting as it is written, in all sections and blocks.
func (f File) Keys(content string) []Key {
	switch f.Style {
	case INI, UWSGI:
		return f.keysINI(content)
	}
	return nil
}

// Relocate returns content as it has to read when it is put elsewhere: what is
// relative to the file's own place, which is the absolute path, is made absolute.
func (f File) Relocate(content, path string) string { return content }

// Includes returns what the content draws in, in order.
func (f File) Includes(content string) []Include { return nil }
