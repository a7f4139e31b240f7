package edit

import (
	"fmt"
	"slices"
	"strings"

	"hakaru/internal/textedit"
)

// opensGuard tells whether what follows this key of uWSGI counts under a
// condition only, or several times. uWSGI does not nest these.
func opensGuard(key string) bool {
	return strings.HasPrefix(key, "if-") || strings.HasPrefix(key, "for-") ||
		slices.Contains([]string{"ifenv", "ifexists", "ifplugin", "ifdir", "for", "else"}, key)
}

func closesGuard(key string) bool {
	return slices.Contains([]string{"end", "endif", "endfor", "end-if", "end-for"}, key)
}

// drawsIn tells whether uWSGI reads another file at the place of this key: what
// that file sets wins over what stands before. (inherit is read after all else,
// the command line included; nothing wins over it.)
func drawsIn(key string) bool {
	return slices.Contains([]string{"ini", "include", "config", "xml", "xmlconfig", "yaml", "yml", "json"}, key)
}

func (f File) includesUWSGI(content string) []Include {
	var all []Include
	for i, r := range f.readINI(textedit.Lines(content)) {
		if r.section == f.section() && (r.draws || r.key == "inherit") && r.value != "" {
			all = append(all, Include{Path: r.value, Line: i + 1})
		}
	}
	return all
}

// relocateUWSGI puts what uWSGI's magic variables of the file's own place meant
// in their stead. uWSGI replaces them in the whole text, comments too, before it
// looks at lines; a percent sign takes the character behind it along whatever
// that is, unless it opens a %(name). Observed with 2.0.21; the upper case ones
// are those of the first file, which this is.
//
// Of %o, the path as the command line has it, and %i, the inode, the first is
// made the absolute path; the second cannot be kept. A file's own path as the
// start of another section (%p:name) leads to the original.
func relocateUWSGI(content, path string) string {
	magic := placeOf(path)
	var b strings.Builder
	for i := 0; i < len(content); i++ {
		if content[i] != '%' || i+1 == len(content) || content[i+1] == '(' {
			b.WriteByte(content[i])
			continue
		}
		i++
		if meant, known := magic[content[i]]; known {
			b.WriteString(strings.ReplaceAll(meant, "%", "%%"))
		} else {
			b.WriteString(content[i-1 : i+1])
		}
	}
	return b.String()
}

// placeOf returns the values of the magic variables that depend on the place of
// a file.
func placeOf(path string) map[byte]string {
	cut := strings.LastIndexByte(path, '/') + 1
	dir, name := path[:cut], path[cut:]
	parts := strings.Split(strings.Trim(dir, "/"), "/")
	stem, extension := name, ""
	if dot := strings.LastIndexByte(name, '.'); dot >= 0 {
		stem, extension = name[:dot], name[dot+1:]
	}
	// djb33x of the path, its bytes in the machine's order, which is little endian
	// wherever hakaru runs.
	hash := uint32(5381)
	for i := range len(path) {
		hash = (hash<<5 + hash) ^ uint32(path[i])
	}
	sum := fmt.Sprintf("%02X%02X%02X%02X", byte(hash), byte(hash>>8), byte(hash>>16), byte(hash>>24))
	m := map[byte]string{
		'd': dir, 'D': dir, 'p': path, 'P': path, 's': name, 'S': name, 'n': stem, 'N': stem,
		'e': extension, 'E': extension, 'c': parts[len(parts)-1], 'C': parts[len(parts)-1],
		'o': path, 'O': path, 'j': sum, 'J': sum,
	}
	for i := range 10 {
		m['0'+byte(i)] = ""
		if i < len(parts) {
			m['0'+byte(i)] = parts[i]
		}
	}
	return m
}
