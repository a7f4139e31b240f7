package kind

import (
	"bytes"
	"embed"
	"fmt"
	"io/fs"
	"reflect"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"
)

//go:embed kinds/*.yaml kinds/*.names
var files embed.FS

// plannedKinds is the file of kinds that are known by name only.
const plannedKinds = "planned.yaml"

// Catalogue is all kinds. Their files are read as they are asked for: few are, and
// reading all takes longer than checking an experiment. It is for one goroutine.
type Catalogue struct {
	from  fs.FS
	heads []head
	read  map[string]*Kind
}

// head is what is known of a kind without reading all of its file.
type head struct {
	Name     string   `yaml:"name"`
	Built    bool     `yaml:"built"`
	Programs []string `yaml:"programs"`
	path     string
}

// Load lists the embedded kinds. An error is a mistake in hakaru itself.
func Load() (*Catalogue, error) { return load(files) }

func load(from fs.FS) (*Catalogue, error) {
	c := &Catalogue{from: from, read: map[string]*Kind{}}
	paths, err := fs.Glob(from, "kinds/*.yaml")
	if err != nil {
		return nil, fmt.Errorf("list kinds: %w", err)
	}
	for _, path := range paths {
		text, err := fs.ReadFile(from, path)
		if err != nil {
			return nil, fmt.Errorf("read kind: %w", err)
		}
		if strings.HasSuffix(path, "/"+plannedKinds) {
			var planned []*Kind
			if err := decode(text, &planned); err != nil {
				return nil, fmt.Errorf("read %s: %w", path, err)
			}
			for _, k := range planned {
				c.heads = append(c.heads, head{Name: k.Name, Programs: k.Programs})
				c.read[k.Name] = k
			}
			continue
		}
		h := head{path: path}
		if err := yaml.Unmarshal(headLines(text), &h); err != nil {
			return nil, fmt.Errorf("read %s: %w", path, err)
		}
		c.heads = append(c.heads, h)
	}
	slices.SortFunc(c.heads, func(a, b head) int { return strings.Compare(a.Name, b.Name) })
	// A name in planned.yaml would hide the file that was written for it.
	for i, h := range c.heads[min(1, len(c.heads)):] {
		if other := c.heads[i]; other.Name == h.Name {
			return nil, fmt.Errorf("list kinds: %s is there twice (%s): once it has a file, it is taken out of %s", h.Name, other.path+h.path, plannedKinds)
		}
	}
	return c, nil
}

// headLines are the lines of a kind file that its head stands on, those that go on
// with it included.
func headLines(text []byte) []byte {
	var out []byte
	head := false
	for line := range bytes.Lines(text) {
		if !bytes.ContainsAny(line[:1], " \t-]}\n") { // a key of the file, or a comment
			head = slices.ContainsFunc([]string{"name:", "built:", "programs:"}, func(key string) bool {
				return bytes.HasPrefix(line, []byte(key))
			})
		}
		if head {
			out = append(out, line...)
		}
	}
	return out
}

func decode(text []byte, into any) error {
	return yaml.NewDecoder(bytes.NewReader(text), yaml.Strict()).Decode(into)
}

// Read returns a kind by name, nil where there is none. An error is a mistake in
// its file.
func (c *Catalogue) Read(name string) (*Kind, error) {
	if k := c.read[name]; k != nil {
		return k, nil
	}
	i := slices.IndexFunc(c.heads, func(h head) bool { return h.Name == name })
	if i < 0 {
		return nil, nil
	}
	text, err := fs.ReadFile(c.from, c.heads[i].path)
	if err != nil {
		return nil, fmt.Errorf("read kind: %w", err)
	}
	k := &Kind{}
	if err := decode(text, k); err != nil {
		return nil, fmt.Errorf("read %s: %w", c.heads[i].path, err)
	}
	if k.Like != "" {
		model, err := c.Read(k.Like)
		if err != nil {
			return nil, err
		}
		if model == nil || model.Like != "" {
			return nil, fmt.Errorf("kind %s is like %q, which is no kind of its own", k.Name, k.Like)
		}
		k.inherit(model)
	}
	if err := k.index(c.from); err != nil {
		return nil, fmt.Errorf("kind %s: %w", k.Name, err)
	}
	c.read[name] = k
	return k, nil
}

// Find is Read for a kind whose file is known to be right, as a test sees to for
// those that are embedded.
func (c *Catalogue) Find(name string) (*Kind, bool) {
	k, err := c.Read(name)
	return k, err == nil && k != nil
}

// Names returns the names of all kinds, those that can be worked with first.
func (c *Catalogue) Names() []string {
	var built, planned []string
	for _, h := range c.heads {
		if h.Built {
			built = append(built, h.Name)
		} else {
			planned = append(planned, h.Name)
		}
	}
	return append(built, planned...)
}

// Guess returns the kind whose program a command line starts, or nil. A
// directory before the program's name does not matter.
func (c *Catalogue) Guess(words []string) *Kind {
	for _, h := range c.heads {
		for _, program := range h.Programs {
			first := strings.Fields(program)
			if n := len(first); n > 0 && len(words) >= n &&
				words[0][strings.LastIndexByte(words[0], '/')+1:] == first[0] &&
				slices.Equal(words[1:n], first[1:]) {
				k, _ := c.Find(h.Name)
				return k
			}
		}
	}
	return nil
}

// inherit fills a kind with what the one has that it is like: every key that is not
// written counts as it does there. Its own settings and signs come before those of
// the other.
func (k *Kind) inherit(model *Kind) {
	own := *k
	*k = *model
	k.names, k.all, k.switches = nil, nil, nil
	to, written := reflect.ValueOf(k).Elem(), reflect.ValueOf(own)
	for i := range to.NumField() {
		if to.Type().Field(i).IsExported() && !written.Field(i).IsZero() {
			to.Field(i).Set(written.Field(i))
		}
	}
	k.Built = own.Built
	if own.Run != "" {
		k.RunUnless = own.RunUnless // the other command of this one
	}
	k.Settings = append(slices.Clone(own.Settings), slices.DeleteFunc(slices.Clone(model.Settings), func(s Setting) bool {
		return slices.ContainsFunc(own.Settings, func(o Setting) bool { return o.Name == s.Name })
	})...)
	k.Signs = append(slices.Clone(own.Signs), model.Signs...)
}
