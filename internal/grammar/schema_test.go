package grammar

import (
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/jsonschema-go/jsonschema"
)

var update = flag.Bool("update", false, "rewrite golden files")

const (
	schemaFile    = "../../docs/experiment.schema.json"
	referenceFile = "../../docs/experiment-file.md"
)

func fresh(t *testing.T, path string, want string) {
	t.Helper()
	if *update {
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
