package edit_test

import (
	"testing"

	"hakaru/internal/edit"
)

func TestPutINI(t *testing.T) {
	check(t, ini, map[string]change{
		"in place, comments and order kept": {
			"# top\n[serve]\n; a\nprocesses = 1\nthreads = 2\n", []edit.Edit{put("processes", "4")},
			"# top\n[serve]\n; a\nprocesses = 4\nthreads = 2\n"},
		"spacing of the line kept": {"[serve]\n  processes=1\n", []edit.Edit{put("processes", "4")}, "[serve]\n  processes=4\n"},
		"tabs kept":                {"[serve]\n\tprocesses\t=\t1\t\n", []edit.Edit{put("processes", "4")}, "[serve]\n\tprocesses\t=\t4\t\n"},
		"appended in the section's own spacing": {
			"[serve]\na=1\n\n[other]\nprocesses=9\n", []edit.Edit{put("processes", "4")},
			"[serve]\na=1\nprocesses=4\n\n[other]\nprocesses=9\n"},
		"null takes the line away":  {"[serve]\nlog = off\nthreads = 1\n", []edit.Edit{put("log")}, "[serve]\nthreads = 1\n"},
		"null of what is not there": {"[serve]\nthreads = 1\n", []edit.Edit{put("log")}, "[serve]\nthreads = 1\n"},
		"repeated keys become one": {
			"[serve]\nlog = a\nthreads = 1\nlog = b\n", []edit.Edit{put("log", "off")},
			"[serve]\nlog = off\nthreads = 1\n"},
		"a commented line is a comment": {"[serve]\n#log = a\n", []edit.Edit{put("log", "off")}, "[serve]\n#log = a\nlog = off\n"},
		"empty":                         {"", []edit.Edit{put("log", "off")}, "[serve]\nlog = off\n"},
		"another section only":          {"[x]\na = 1", []edit.Edit{put("log", "off")}, "[x]\na = 1\n[serve]\nlog = off\n"},
		"above every section":           {"log = a\n[x]\nb = 1\n", []edit.Edit{put("log", "off"), put("threads", "2")}, "log = off\nthreads = 2\n[x]\nb = 1\n"},
		"CRLF":                          {"[serve]\r\nlog = a\r\n", []edit.Edit{put("log", "b"), put("threads", "2")}, "[serve]\r\nlog = b\r\nthreads = 2\r\n"},
		"no newline at the end":         {"[serve]\nlog = a", []edit.Edit{put("threads", "2")}, "[serve]\nlog = a\nthreads = 2\n"},
		"value with an equals sign":     {"[serve]\nlog = a=b\n", []edit.Edit{put("log", "c=d")}, "[serve]\nlog = c=d\n"},
		"empty value":                   {"[serve]\nlog = a\n", []edit.Edit{put("log", "")}, "[serve]\nlog = \n"},
		"the later wins":                {"[serve]\n", []edit.Edit{put("log", "a"), put("log", "b")}, "[serve]\nlog = b\n"},
		"no equals sign":                {"[serve]\nlog\na=1\n", []edit.Edit{put("log", "b")}, "[serve]\nlog=b\na=1\n"},
		"comment behind the value":      {"[serve]\nlog = a  # why\n", []edit.Edit{put("log", "b")}, "[serve]\nlog = b  # why\n"},
		"in quotes":                     {"[serve]\nlog = \"a # b\" ; why\n", []edit.Edit{put("log", "c ; d")}, "[serve]\nlog = \"c ; d\" ; why\n"},
		"byte order mark":               {"\ufeff[serve]\nlog = a\n", []edit.Edit{put("log", "b")}, "\ufeff[serve]\nlog = b\n"},
		"another name for it":           {"[serve]\nworkers = 1\nprocesses = 2\n", []edit.Edit{put("processes|workers", "4")}, "[serve]\nprocesses = 4\n"},
	})
}

func TestValueINI(t *testing.T) {
	values(t, ini, map[string]struct {
		content, want string
		found         bool
	}{
		"none":            {"[serve]\ny = 1\n", "", false},
		"other section":   {"[other]\nx = 1\n", "", false},
		"last":            {"[serve]\nx = 1\nx = 2\n", "2", true},
		"comment behind":  {"[serve]\nx = 1 # 2\n", "1", true},
		"hash in a value": {"[serve]\nx = 1#2\n", "1#2", true},
		"quoted":          {"[serve]\nx = \"a # b\" # c\n", "a # b", true},
		"no value":        {"[serve]\nx\n", "", true},
		"CRLF":            {"[serve]\r\nx = 1\r\n", "1", true},
	})
}
