// Package experiment turns the text a person wrote (an experiment file, or the
// flags that stand for one) into a hakaru.Experiment, or into all the mistakes in
// it at once, each with line, column and a hint.
//
// The shape of the file is internal/grammar's; here is what its parts mean
// together: names are declared and used, factors are crossed and filtered, every
// setting can reach a service, and whatever would be run can be rendered
// (internal/render).
//
// It reads no file itself, asks no clock and starts nothing: contents of config
// files come through Options.Read, commits through Options.Revision. What the grammar has and hakaru cannot carry
// out yet is named in Experiment.NotYet, so such a file is valid and does not run.
package experiment

import (
	"fmt"
	"hash/fnv"
	"path"
	"strings"
	"time"

	"hakaru"
	"hakaru/internal/grammar"
	"hakaru/internal/kind"
	"hakaru/internal/mistake"
	"hakaru/internal/render"
	"hakaru/internal/variant"
	"hakaru/internal/yamltree"
)

// Options say where a file stands, and override what is in it.
type Options struct {
	// Dir is the directory of the file, absolute.
	Dir string
	// Read returns the content of a person's config file, by its absolute path.
	Read func(path string) ([]byte, error)
	// Mode returns the permissions of such a file; nil: they are not known.
	Mode func(path string) uint32
	// Revision returns the commit that a branch, tag or commit stands for in the
	// repository that holds a directory, and "." for ".". An *UnknownRevision says
	// that there is none.
	Revision func(dir, revision string) (commit string, err error)

	Set         []string // "name=value", into base or params
	Blocks      int      // 0: as in the file
	Budget      time.Duration
	Seed        *uint64
	Calibrate   *int   // trials of the baseline before the first block
	Connections string // of an HTTP load; "": as in the file
	WarmUp      string
	Duration    string
}

// Parse reads an experiment file. An error of type Mistakes is about what the
// person wrote; any other is about hakaru itself.
func Parse(file string, src []byte, opt Options) (*hakaru.Experiment, error) {
	s := mistake.NewSource(file, string(src))
	d := grammar.NewDecoder(s)
	root, partial := yamltree.Read(s, string(src))
	var doc grammar.Document
	switch {
	case root == nil:
		return nil, s.Sorted()
	case root.Kind == yamltree.Null && !partial:
		s.Mistake(mistake.Place{Line: 1, Column: 1}, "empty", "the file is empty", "see docs/experiment-file.md for an example")
	case root.Kind != yamltree.Null:
		d.Decode(root, &doc, "")
	}
	if partial || root.Kind != yamltree.Map {
		return nil, s.Sorted()
	}
	b := &builder{Decoder: d, doc: doc, opt: opt, seed: hashOf(string(src))}
	b.exp = &hakaru.Experiment{
		Name:    experimentName(file, opt.Dir),
		Sources: []hakaru.File{{Path: file, Content: string(src)}},
	}
	return b.finish()
}

// experimentName is the file's name, or its directory's where the file is
// hakaru.yaml.
func experimentName(file, dir string) string {
	if file == "-" {
		return "stdin"
	}
	name := path.Base(file)
	name = strings.TrimSuffix(strings.TrimSuffix(name, ".yaml"), ".yml")
	if name == "hakaru" && dir != "" {
		return path.Base(dir)
	}
	return name
}

// hashOf makes a seed of a text, of 32 bits so that it is short to type (FNV-1a,
// stable for ever).
func hashOf(text string) uint64 {
	hash := fnv.New32a()
	hash.Write([]byte(text))
	return uint64(hash.Sum32())
}

// builder makes an Experiment of a document.
type builder struct {
	*grammar.Decoder
	doc   grammar.Document
	opt   Options
	seed  uint64
	exp   *hakaru.Experiment
	kinds *kind.Catalogue

	services []grammar.Service // as written, in the order of exp.Services
	loads    []hakaru.LoadSpec // of each stratum, as it is for the first variant
	book     *variant.Book
	varied   []string // full names of settings of factors and variants, in order
	based    []string // those of base
}

// finish builds, checks, and returns the experiment or the mistakes.
func (b *builder) finish() (*hakaru.Experiment, error) {
	kinds, err := kind.Load()
	if err != nil {
		return nil, fmt.Errorf("read what is known about kinds: %w", err)
	}
	b.kinds = kinds
	b.book = variant.NewBook()
	b.exp.Question = b.doc.Question.Value
	b.exp.Dir = b.opt.Dir

	b.buildServices()
	b.buildNames()
	b.buildBase()
	b.buildVariants()
	b.buildVersions()
	b.buildLoad()
	b.buildGoal()
	b.buildDesign()
	b.buildLoop()
	b.buildProofs()
	b.buildHosts()
	b.buildLater()
	b.checkNames()
	b.checkAttached()
	b.checkBuilds()
	b.checkSettings()
	b.checkStrays()
	// What a trial would need is only worth a look in a file without mistakes.
	if len(b.Mistakes) == 0 {
		b.checkRendering()
		b.buildOpen()
	}
	if len(b.Mistakes) > 0 {
		return nil, b.Sorted()
	}
	b.exp.NotYet = b.NotYet
	return b.exp, nil
}

// at returns where a key was written, or the beginning of the file.
func (b *builder) at(path string) mistake.Place {
	if p, ok := b.Places[path]; ok {
		return p
	}
	return mistake.Place{Line: 1, Column: 1}
}

// written reports whether a key is in the file, be it with a mistake in it.
func (b *builder) written(path string) bool {
	_, ok := b.Places[path]
	return ok
}

// buildLater names the parts that are only understood, and the plain rest.
func (b *builder) buildLater() {
	b.exp.Allow = b.doc.Allow.Values()
	if b.written("allow") {
		b.Later(b.at("allow"), "allow is not built yet")
	}
	if b.doc.Capture.Set {
		b.Later(b.at("capture"), "capture is not built yet")
	}
	if b.doc.Price != nil {
		b.Later(b.at("price"), "price is not built yet")
	}
	for i, name := range b.doc.Factors.Keys {
		if render.ReservedFactor(name) && name != render.Versions {
			b.Later(b.doc.Factors.Places[i], "factors."+name+": this factor is not built yet")
		}
	}
}
