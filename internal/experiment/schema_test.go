package experiment_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/google/go-cmp/cmp"
	"github.com/google/jsonschema-go/jsonschema"

	"hakaru"
	"hakaru/internal/doubt"
	"hakaru/internal/experiment"
	"hakaru/internal/grammar"
	"hakaru/internal/render"
)

const referenceFile = "../../docs/experiment-file.md"

func resolved(t *testing.T) *jsonschema.Resolved {
	t.Helper()
	text, err := grammar.Schema()
	if err != nil {
		t.Fatal(err)
	}
	var s jsonschema.Schema
	if err := json.Unmarshal(text, &s); err != nil {
		t.Fatal(err)
	}
	r, err := s.Resolve(nil)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// asJSON reads YAML as an editor's language server does.
func asJSON(t *testing.T, src []byte) any {
	t.Helper()
	text, err := yaml.YAMLToJSON(src)
	if err != nil {
		t.Fatalf("%v in\n%s", err, src)
	}
	var v any
	if err := json.Unmarshal(text, &v); err != nil {
		t.Fatal(err)
	}
	return v
}

func TestSchemaAcceptsGoodFiles(t *testing.T) {
	schema := resolved(t)
	files, err := filepath.Glob("testdata/good/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatal(err)
	}
	for _, path := range files {
		src, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := schema.Validate(asJSON(t, src)); err != nil {
			t.Errorf("%s: %v", path, err)
		}
	}
}

func TestSchemaRefuses(t *testing.T) {
	schema := resolved(t)
	for _, name := range []string{"unknown-key", "unknown-key-nested", "wrong-type", "wrong-value-types", "load-unknown", "bad-numbers"} {
		src, err := os.ReadFile("testdata/bad/" + name + ".yaml")
		if err != nil {
			t.Fatal(err)
		}
		if schema.Validate(asJSON(t, src)) == nil {
			t.Errorf("the schema accepts %s", name)
		}
	}
}

var fences = regexp.MustCompile("(?s)```yaml\n(.*?)```")

// Every YAML block of the reference is accepted by the parser and by the schema.
// A block that shows only a part is completed with the least of a file.
func TestReferenceExamples(t *testing.T) {
	reference, err := os.ReadFile(referenceFile)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"../../docs/versions.md", "../../docs/attach.md"} {
		more, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		reference = append(reference, more...)
	}
	read := func(name string) ([]byte, error) {
		switch filepath.Base(name) {
		case "uwsgi.ini":
			return []byte("[uwsgi]\nhttp = :8080\nwsgi-file = app.py\nprocesses = 2\n"), nil
		case "gunicorn.conf.py":
			return []byte("bind = '127.0.0.1:8000'\n"), nil
		case "nginx.conf":
			return []byte("events {}\nhttp { server { listen 80; } }\n"), nil
		case "my.cnf":
			return []byte("[mysqld]\nport = 3306\n"), nil
		case "puma.rb":
			return []byte("threads 1, 5\n"), nil
		}
		return []byte("[serve]\nlisten = 127.0.0.1:8080\n"), nil
	}
	schema := resolved(t)
	blocks := fences.FindAllSubmatch(reference, -1)
	if len(blocks) < 10 {
		t.Fatalf("%d examples", len(blocks))
	}
	// What the file of another program takes is in a table.
	for _, row := range regexp.MustCompile("(?m)^\\| \\w+ \\| `(\\{.*?\\})`, `(base: .*?)`").FindAllSubmatch(reference, -1) {
		blocks = append(blocks, [][]byte{row[0], fmt.Appendf(nil, "service: %s\n%s\n", row[1], row[2])})
	}
	if blocks[len(blocks)-1][0][0] != '|' {
		t.Error("no row of the table of programs was found")
	}
	top := regexp.MustCompile(`(?m)^(\w+):`)
	for i, block := range blocks {
		src := string(block[1])
		var keys []string
		for _, m := range top.FindAllStringSubmatch(src, -1) {
			keys = append(keys, m[1])
		}
		if !slices.Contains(keys, "service") && !slices.Contains(keys, "services") {
			src += "service:\n  run: hakaru serve --listen {http}\n  ports: [http]\n"
		}
		if !slices.Contains(keys, "load") {
			src += "load:\n  http: {url: \"http://127.0.0.1:8080/\"}\n"
		}
		opt := experiment.Options{Dir: "/srv/test", Read: read, Revision: options().Revision}
		exp, err := experiment.Parse(fmt.Sprintf("example-%d.yaml", i+1), []byte(src), opt)
		if err != nil {
			t.Errorf("example %d:\n%s\n%v", i+1, block[1], err)
			continue
		}
		if err := schema.Validate(asJSON(t, []byte(src))); err != nil {
			t.Errorf("example %d and the schema:\n%s\n%v", i+1, block[1], err)
		}
		if doubts := doubt.Of(exp); slices.ContainsFunc(doubts, func(w hakaru.Warning) bool { return w.Code != doubt.NothingToCompare && w.Code != doubt.SameVersion }) {
			t.Errorf("example %d is doubtful:\n%s\n%v", i+1, block[1], doubts)
		}
		for _, v := range exp.Variants {
			if _, _, _, err := render.Trial(exp, v.Name, exp.Strata[0]); err != nil && len(exp.NotYet) == 0 {
				t.Errorf("example %d: %v", i+1, err)
			}
		}
	}
}

// The examples are right, and the three of uwsgi-fib are one experiment under three
// loads: what is changed in one is changed in all.
func TestExamples(t *testing.T) {
	files, err := filepath.Glob("../../examples/*/*.yaml")
	if err != nil || len(files) < 5 {
		t.Fatalf("%d examples, %v", len(files), err)
	}
	fib := map[string]*hakaru.Experiment{}
	for _, path := range files {
		src, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		dir, err := filepath.Abs(filepath.Dir(path))
		if err != nil {
			t.Fatal(err)
		}
		exp, err := experiment.Parse(path, src, experiment.Options{Dir: dir, Read: os.ReadFile})
		if err != nil {
			t.Errorf("%v", err)
			continue
		}
		if len(exp.NotYet) > 0 {
			t.Errorf("%s: %v", path, exp.NotYet)
		}
		if filepath.Base(dir) == "uwsgi-fib" {
			// What may differ: the load, and what is made of the whole text.
			exp.Load, exp.Name, exp.Design.Seed, exp.Sources = hakaru.Load{}, "", 0, exp.Sources[1:]
			fib[filepath.Base(path)] = exp
		}
	}
	for _, name := range []string{"ab.yaml", "wrk.yaml"} {
		if diff := cmp.Diff(fib["hakaru.yaml"], fib[name]); diff != "" || fib[name] == nil {
			t.Errorf("%s is not hakaru.yaml with another load:\n%s", name, diff)
		}
	}
}
