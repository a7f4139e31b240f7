package experiment

import (
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/google/go-cmp/cmp"
	"github.com/google/jsonschema-go/jsonschema"
)

const (
	schemaFile    = "../../docs/experiment.schema.json"
	referenceFile = "../../docs/experiment-file.md"
)

func updating() bool { return flag.Lookup("update").Value.String() == "true" }

func fresh(t *testing.T, path string, want string) {
	t.Helper()
	if updating() {
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("%s is not as the types say (rewrite with -update):\n%s", path, diff)
	}
}

func TestSchemaIsFresh(t *testing.T) {
	want, err := Schema()
	if err != nil {
		t.Fatal(err)
	}
	fresh(t, schemaFile, string(want))
}

func resolved(t *testing.T) *jsonschema.Resolved {
	t.Helper()
	text, err := Schema()
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

// schemaPaths lists the properties of a schema as Keys does.
func schemaPaths(s *jsonschema.Schema, path string, out map[string]string) {
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		here := join(path, name)
		out[here] = s.Properties[name].Description
		schemaPaths(s.Properties[name], here, out)
	}
	for _, a := range s.AnyOf {
		schemaPaths(a, path, out)
	}
}

// The table of the reference is made of the same types as the schema, and the
// two name the same keys.
func TestReferenceTable(t *testing.T) {
	text, err := Schema()
	if err != nil {
		t.Fatal(err)
	}
	var schema jsonschema.Schema
	if err := json.Unmarshal(text, &schema); err != nil {
		t.Fatal(err)
	}
	inSchema := map[string]string{}
	schemaPaths(&schema, "", inSchema)
	var table strings.Builder
	table.WriteString("| key | takes | meaning |\n|---|---|---|\n")
	for _, k := range Keys() {
		fmt.Fprintf(&table, "| `%s` | %s | %s |\n", k.Path, k.Type, strings.ReplaceAll(k.Text, "|", "\\|"))
		if strings.HasSuffix(k.Path, "NAME") || strings.HasSuffix(k.Path, "PROGRAM") {
			continue
		}
		if description, found := inSchema[k.Path]; !found || description != k.Text {
			t.Errorf("%s is %q here and %q (%v) in the schema", k.Path, k.Text, description, found)
		}
		delete(inSchema, k.Path)
	}
	for path := range inSchema {
		if program, found := strings.CutPrefix(path, "load."); found && slices.Contains(programs(), program) {
			continue
		}
		t.Errorf("%s is in the schema and not in the table", path)
	}
	reference, err := os.ReadFile(referenceFile)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, found1 := strings.Cut(string(reference), "<!-- keys: made by the test, do not edit -->\n")
	_, after, found2 := strings.Cut(rest, "<!-- end of keys -->")
	if !found1 || !found2 {
		t.Fatalf("%s has no place for the table", referenceFile)
	}
	fresh(t, referenceFile, before+"<!-- keys: made by the test, do not edit -->\n"+table.String()+"<!-- end of keys -->"+after)
}

var fences = regexp.MustCompile("(?s)```yaml\n(.*?)```")

// Every YAML block of the reference is accepted by the parser and by the schema.
// A block that shows only a part is completed with the least of a file.
func TestReferenceExamples(t *testing.T) {
	reference, err := os.ReadFile(referenceFile)
	if err != nil {
		t.Fatal(err)
	}
	schema := resolved(t)
	blocks := fences.FindAllSubmatch(reference, -1)
	if len(blocks) < 10 {
		t.Fatalf("%d examples", len(blocks))
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
		opt := Options{Dir: "/srv/test", Read: func(string) ([]byte, error) { return []byte("[serve]\nlisten = 127.0.0.1:8080\n"), nil }}
		exp, err := Parse(fmt.Sprintf("example-%d.yaml", i+1), []byte(src), opt)
		if err != nil {
			t.Errorf("example %d:\n%s\n%v", i+1, block[1], err)
			continue
		}
		if err := schema.Validate(asJSON(t, []byte(src))); err != nil {
			t.Errorf("example %d and the schema:\n%s\n%v", i+1, block[1], err)
		}
		for _, v := range exp.Variants {
			if _, _, _, err := Render(exp, v.Name, exp.Strata[0]); err != nil && len(exp.NotYet) == 0 {
				t.Errorf("example %d: %v", i+1, err)
			}
		}
	}
}
