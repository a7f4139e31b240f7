package nginxconf

import (
	"slices"
	"strings"

	"hakaru/internal/textedit"
)

// Relocate makes absolute what nginx takes from the directory of its config
// file (ngx_conf_full_name with conf_prefix). What it takes from its prefix
// (logs, pid, root, load_module) stays.
func Relocate(content, path string) string {
	dir := path[:strings.LastIndexByte(path, '/')+1]
	top, _ := parse(content) // of what nginx would refuse, it names the mistake itself
	scripts := false
	walk(top, func(d *directive) bool {
		scripts = scripts || d.name() == "js_path"
		return true
	})
	var changes []textedit.Change
	walk(top, func(d *directive) bool {
		if d.block || len(d.words) < 2 || d.outer != nil && d.outer.data() && d.name() != "include" {
			return true
		}
		w := d.words[1]
		switch {
		case besideConfig(d.name()):
		case d.name() == "js_import" && !scripts: // js_import [name from] path
			w = d.words[len(d.words)-1]
		default:
			return true
		}
		if relativePath(w.text) {
			changes = append(changes, textedit.Change{Span: w.Span, Text: pathIn(dir, content[w.Start:w.End])})
		}
		return true
	})
	return textedit.Apply(content, changes)
}

// relativePath tells whether a path is one, and relative. It is none where it
// begins with a variable, which may hold anything, or where it is a key of an
// engine, a store or in place (data:).
func relativePath(text string) bool {
	if text == "" || strings.ContainsAny(text[:1], "/$") {
		return false
	}
	for _, prefix := range []string{"data:", "engine:", "store:"} {
		if strings.HasPrefix(text, prefix) {
			return false
		}
	}
	return true
}

// pathIn puts a directory before a path, which is as written.
func pathIn(dir, raw string) string {
	quote := ""
	if raw[0] == '"' || raw[0] == '\'' {
		quote, raw = raw[:1], raw[1:len(raw)-1]
	} else if strings.ContainsAny(dir, " \t;{}#'\"\\") {
		quote = `"`
		raw = strings.ReplaceAll(raw, `"`, `\"`)
	}
	dir = strings.ReplaceAll(dir, `\`, `\\`)
	if quote != "" {
		dir = strings.ReplaceAll(dir, quote, `\`+quote)
	}
	return quote + dir + raw + quote
}

// besideConfig tells whether the first argument of a directive is a path that
// nginx takes from the directory of its config file.
func besideConfig(name string) bool {
	if slices.Contains([]string{
		"include", "auth_basic_user_file", "ssl_client_certificate", "ssl_dhparam", "ssl_session_ticket_key",
		"ssl_stapling_file", "xml_entities", "modsecurity_rules_file",
	}, name) {
		return true
	}
	for _, side := range []string{"proxy_", "grpc_", "uwsgi_"} {
		name = strings.TrimPrefix(name, side)
	}
	return slices.Contains([]string{
		"ssl_certificate", "ssl_certificate_key", "ssl_trusted_certificate", "ssl_crl", "ssl_password_file",
	}, name)
}

// Includes returns the arguments of include, as nginx reads them.
func Includes(content string) []Include {
	var all []Include
	top, _ := parse(content) // as Entries
	walk(top, func(d *directive) bool {
		if !d.block && d.name() == "include" && len(d.words) == 2 {
			line, _ := textedit.Place(content, d.words[0].Start)
			all = append(all, Include{Path: d.words[1].text, Line: line})
		}
		return true
	})
	return all
}
