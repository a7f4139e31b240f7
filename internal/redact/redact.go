// Package redact takes secrets out of texts that leave: reports, diffs, what a
// service wrote, errors on a terminal.
//
// It takes a text of any kind (a config, an environment, a command line, a
// header, a URL, a log) and gives it back with a mask where a value stands under
// a name that tells of a secret; and it tells of a name alone whether its value
// is one.
//
// It finds no secret that has no name, changes nothing that is stored, and does
// not replace control characters (layout does, before).
package redact

import (
	"regexp"
	"slices"
	"strings"
	"unicode"
)

// Mask stands for a secret.
const Mask = "***"

// Text replaces what looks like a secret in a config, an environment, a
// command line, a header, a URL, or the output of a service. It goes by the
// name that a value stands under, so it cannot find a secret without a name;
// where in doubt about how far a value reaches it takes more. Redacting twice
// changes nothing more. The store keeps the original.
func Text(text string) string {
	if text == "" {
		return text
	}
	text = privateKey.ReplaceAllString(text, "${1}\n"+Mask+"\n${2}")
	text = urlPassword.ReplaceAllString(text, "${1}"+Mask+"@")
	text = dataSource.ReplaceAllString(text, "${1}"+Mask+"${2}")
	text = identifiedBy.ReplaceAllString(text, "${1}'"+Mask+"'")
	text = replaceOn(mysqlProgram, mysqlFlag, text)
	text = replaceOn(userProgram, userFlag, text)
	text = replaceOn(cookieProgram, cookieFlag, text)
	text = spacedLine.ReplaceAllStringFunc(text, func(line string) string {
		m := spacedLine.FindStringSubmatch(line)
		if !Secret(m[2]) || harmless(m[2], m[4]) {
			return line
		}
		return m[1] + m[2] + m[3] + Mask + m[5]
	})
	text = spacedFlag.ReplaceAllStringFunc(text, func(flag string) string {
		m := spacedFlag.FindStringSubmatch(flag)
		if !Secret(m[2]) || harmless(m[2], m[4]) {
			return flag
		}
		end := ""
		if strings.HasSuffix(m[4], ")") && !strings.Contains(m[4], "(") { // of the sentence around it
			end = ")"
		}
		return m[1] + m[2] + m[3] + Mask + end
	})
	return maskNamed(text)
}

var (
	privateKey   = regexp.MustCompile(`(?s)(-----BEGIN [A-Z0-9 ]*PRIVATE KEY-----).*?(-----END [A-Z0-9 ]*PRIVATE KEY-----)`)
	urlPassword  = regexp.MustCompile(`([A-Za-z][A-Za-z0-9+.\-]*://[^\s:/@"'<>]*:)[^\s/"'<>]*@`)
	dataSource   = regexp.MustCompile(`(\b[\w.\-]+:)[^\s/"'@]+(@(?:tcp|unix)\()`) // user:password@tcp(host)/db
	identifiedBy = regexp.MustCompile(`(?i)(\bidentified\s+by\s+(?:password\s+)?|\bpassword\s*\(\s*)'[^']*'`)
	// mysql -pSECRET, as words or as a quoted list.
	mysqlProgram = regexp.MustCompile(`\b(?:mysql|mariadb)[\w\-]*`)
	mysqlFlag    = regexp.MustCompile(`([\s"',\[]-p)[^\s"',\]]+`)
	// curl -u user:SECRET, ab -A user:SECRET.
	userProgram = regexp.MustCompile(`\b(?:curl|ab)\b`)
	userFlag    = regexp.MustCompile(`([\s"',\[](?:-u|-A|-P|-U|--user|--proxy-user)[\s"',=]+[^\s"',:\]]+:)[^\s"',\]]+`)
	// ab -C session=SECRET, curl -b session=SECRET.
	cookieProgram = regexp.MustCompile(`\b(?:curl|ab)\b`)
	cookieFlag    = regexp.MustCompile(`([\s"',\[](?:-C|-b|--cookie)[\s"',=]+[^\s"',=\]]+=)[^\s"',\]]+`)
	// A line of two words, as in nginx's or redis' config: requirepass SECRET
	spacedLine = regexp.MustCompile(`(?m)^([ \t+\-]*)([A-Za-z][\w.\-]*)([ \t]+)([^\s=:]\S*?)([ \t]*;?[ \t]*)$`)
	// --password SECRET, also as a quoted list.
	spacedFlag = regexp.MustCompile(`((?:^|[\s"'\[,])--?)([A-Za-z][\w.\-]*)("?[ \t,]+"?|'?[ \t,]+'?)([^\s"'\-,=][^\s"',\]]*)`)
	// A name and what separates it from its value.
	named = regexp.MustCompile(`([A-Za-z_][\w.\-]*)(\\?["'])?([ \t]*(?:=>|:=|=|:)[ \t]*)`)
	// What may stand before the name where a line of a config or a diff begins.
	lineStart = regexp.MustCompile(`^[ \t]*(?:[-+#;*>][ \t]*)*(?:(?:export|set|env)[ \t]+)?$`)
)

// replaceOn replaces the last group of flag on the lines that name a program
// for which the flag means a password.
func replaceOn(program, flag *regexp.Regexp, text string) string {
	if !program.MatchString(text) {
		return text
	}
	lines := strings.Split(text, "\n")
	for i, l := range lines {
		if at := program.FindStringIndex(l); at != nil {
			lines[i] = l[:at[1]] + flag.ReplaceAllString(l[at[1]:], "${1}"+Mask)
		}
	}
	return strings.Join(lines, "\n")
}

// maskNamed replaces the values of secret names: name=value, name: value,
// "name": "value", in configs, environments, queries and logs.
func maskNamed(text string) string {
	var b strings.Builder
	done := 0 // text before it is written
	for at := 0; at < len(text); {
		m := named.FindStringSubmatchIndex(text[at:])
		if m == nil {
			break
		}
		start, value := at+m[2], at+m[1]
		name := text[start : at+m[3]]
		at = value
		if strings.HasPrefix(text[value:], "//") && text[value-1] == ':' { // the scheme of a URL
			continue
		}
		header := headers[strings.ToLower(name)]
		if !header && !Secret(name) {
			continue
		}
		from, to := extent(text, start, value, header)
		if from == to || harmless(name, text[from:to]) {
			continue
		}
		b.WriteString(text[done:from])
		b.WriteString(Mask)
		done, at = to, to
	}
	b.WriteString(text[done:])
	return b.String()
}

var headers = map[string]bool{
	"authorization": true, "proxy-authorization": true, "http_authorization": true, "cookie": true, "set-cookie": true,
}

// Header reports whether the value of an HTTP header of this name is to be
// redacted.
func Header(name string) bool { return headers[strings.ToLower(name)] || Secret(name) }

// extent finds where the value of a secret name begins and ends. start is where
// the name begins, value where its value may.
func extent(text string, start, value int, header bool) (from, to int) {
	end := value + len(line(text[value:]))
	lineBegin := strings.LastIndexByte(text[:start], '\n') + 1
	before := text[lineBegin:start]
	rest := text[value:end]

	for _, quote := range []string{`\"`, `"`, `'`} {
		if !strings.HasPrefix(rest, quote) {
			continue
		}
		from = value + len(quote)
		for i := from; i < end; i++ {
			if strings.HasPrefix(text[i:], quote) {
				return from, i
			}
			if text[i] == '\\' && quote == `"` {
				i++
			}
		}
		return from, end
	}
	if header {
		if i := strings.IndexAny(rest, `"'`); i >= 0 {
			rest = rest[:i]
		}
		return value, value + len(strings.TrimRight(rest, " \t\r\\"))
	}
	switch {
	case rest != "" && (rest[0] == '|' || rest[0] == '>') && strings.Trim(rest, "|>+-0123456789 \t\r") == "":
		return yamlBlock(text, lineBegin, end)
	case lineStart.MatchString(strings.TrimRight(before, `"'`)):
		// A config line: the value goes to its end, whatever it holds.
		return value, value + len(strings.TrimRight(rest, " \t\r"))
	}
	stop := " \t\r,;&)}]\"'<>"
	switch before[len(before)-1] {
	case '?', '&':
		stop = " \t\r&#\"'<>"
	case '-':
		stop = " \t\r\"'"
	}
	if i := strings.IndexAny(rest, stop); i >= 0 {
		rest = rest[:i]
	}
	return value, value + len(rest)
}

// yamlBlock gives the lines after end that are indented deeper than the line
// at begin: the value of "name: |".
func yamlBlock(text string, begin, end int) (from, to int) {
	depth := indent(text[begin:])
	from = min(end+1, len(text))
	to = from
	for to < len(text) {
		l := line(text[to:])
		if strings.TrimSpace(l) != "" && indent(l) <= depth {
			break
		}
		to = min(to+len(l)+1, len(text))
	}
	from += indent(text[from:to])
	for to > from && text[to-1] == '\n' {
		to--
	}
	return from, to
}

func line(text string) string {
	l, _, _ := strings.Cut(text, "\n")
	return l
}

func indent(text string) int { return len(text) - len(strings.TrimLeft(text, " \t")) }

// reference is a value that names where the secret is: ${NAME} or {name}.
var reference = regexp.MustCompile(`^\$?\{[A-Za-z_][\w.]*\}$`)

// harmless values are no secrets whatever they stand under.
func harmless(name, value string) bool {
	value = strings.TrimRight(value, ",;")
	switch strings.ToLower(value) {
	case "", "true", "false", "on", "off", "yes", "no", "null", "none", "nil", "~", Mask, "|", ">":
		return true
	}
	if reference.MatchString(value) {
		return true
	}
	// A key or a token that is a path is the place of one.
	return !strongName(nameWords(name)) && (strings.HasPrefix(value, "/") || strings.HasPrefix(value, "./") || strings.HasPrefix(value, "~/"))
}

var (
	strongWords = []string{"password", "passwd", "passphrase", "passwort", "secret", "secrets", "credential", "credentials", "apikey", "pwd", "secretkey", "accesskey", "privatekey", "requirepass", "masterauth"}
	// Ends of run-together names: PGPASSWORD, dbpasswd, authtoken.
	strongEnds = []string{"password", "passwd", "passphrase", "secret", "apikey", "authtoken", "accesstoken"}
	weakWords  = []string{"token", "key", "pass", "auth"}
	// A strong word before one of these is about secrets, not one.
	about = []string{"file", "files", "path", "dir", "policy", "length", "len", "timeout", "lifetime", "age", "expiry", "expire", "expiration",
		"size", "min", "max", "count", "plugin", "encryption", "algorithm", "format", "check", "validation", "history", "interval",
		"rotation", "enabled", "required", "type", "per", "second", "seconds", "rounds", "cost"}
	// Keys that are none to a lock.
	otherKeys = []string{"primary", "foreign", "sort", "partition", "cache", "public", "hash", "unique", "routing", "index", "group", "order", "zone", "pub", "map", "host", "request"}
	// X_pass that is not a password: nginx's directives.
	otherPasses = []string{"proxy", "fastcgi", "uwsgi", "scgi", "grpc", "memcached", "two", "single", "multi", "first", "second"}
)

// Secret reports whether a value under this name is to be redacted.
func Secret(name string) bool {
	w := nameWords(name)
	if len(w) == 0 {
		return false
	}
	last := w[len(w)-1]
	if strongName(w) {
		return !slices.Contains(about, last)
	}
	if !slices.Contains(weakWords, last) {
		return false
	}
	before := ""
	if len(w) > 1 {
		before = w[len(w)-2]
	}
	switch last {
	case "key":
		return !slices.Contains(otherKeys, before)
	case "pass":
		return !slices.Contains(otherPasses, before)
	case "auth":
		return before == "redis" || before == "master" || before == "basic"
	}
	return true
}

func strongName(w []string) bool {
	return slices.ContainsFunc(w, func(word string) bool {
		return slices.Contains(strongWords, word) ||
			slices.ContainsFunc(strongEnds, func(end string) bool { return strings.HasSuffix(word, end) })
	})
}

// nameWords splits key_buffer_size, key-buffer-size, keyBufferSize into lower-case
// words.
func nameWords(name string) []string {
	var b strings.Builder
	runes := []rune(name)
	for i, r := range runes {
		if i > 0 && unicode.IsUpper(r) && (unicode.IsLower(runes[i-1]) || i+1 < len(runes) && unicode.IsUpper(runes[i-1]) && unicode.IsLower(runes[i+1])) {
			b.WriteByte(' ')
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return strings.FieldsFunc(b.String(), func(r rune) bool { return r == ' ' || r == '_' || r == '-' || r == '.' })
}
