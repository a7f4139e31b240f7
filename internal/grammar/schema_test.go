package grammar

import (
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"reflect"
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

// schemaPaths lists the properties of a schema as keys does.
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
	for _, k := range keys() {
		fmt.Fprintf(&table, "| `%s` | %s | %s |\n", k.path, k.takes, strings.ReplaceAll(k.text, "|", "\\|"))
		if strings.HasSuffix(k.path, "NAME") || strings.HasSuffix(k.path, "PROGRAM") {
			continue
		}
		if description, found := inSchema[k.path]; !found || description != k.text {
			t.Errorf("%s is %q here and %q (%v) in the schema", k.path, k.text, description, found)
		}
		delete(inSchema, k.path)
	}
	for path := range inSchema {
		if program, found := strings.CutPrefix(path, "load."); found && slices.Contains(later(), program) {
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

// key is one key of an experiment file, for the reference.
type key struct {
	path  string // "service.ready.get"; a name of the person's own is NAME
	takes string // in words
	text  string
}

// keys lists all keys, in the order of the types.
func keys() []key {
	var out []key
	listKeys(reflect.TypeFor[Document](), "", &out)
	return out
}

func listKeys(t reflect.Type, path string, out *[]key) {
	for i := range t.NumField() {
		f := t.Field(i)
		if fieldName(f) == "" {
			continue
		}
		inner := f.Type
		if inner.Kind() == reflect.Pointer {
			inner = inner.Elem()
		}
		here := join(path, fieldName(f))
		*out = append(*out, key{here, typeWords(inner), f.Tag.Get("jsonschema")})
		switch {
		case here == "services":
			*out = append(*out, key{"services.NAME", "map", "as service"})
		case inner == reflect.TypeFor[Load]():
			*out = append(*out, key{here + ".http", "map", "load over HTTP/1.1: a closed loop, an open one where rate says so"})
			listKeys(reflect.TypeFor[HTTP](), here+".http", out)
			for _, name := range slices.Sorted(maps.Keys(known())) {
				k := key{here + "." + name, "map", "load by " + name}
				if name == "command" {
					k.takes, k.text = "command or map", "load by a program of one's own"
				}
				*out = append(*out, k)
				listKeys(known()[name], here+"."+name, out)
			}
			*out = append(*out, key{here + ".PROGRAM", "map", "one of " + strings.Join(later(), ", ") + " (not built yet)"})
		case inner.Kind() == reflect.Struct && (inner == reflect.TypeFor[Stop]() || inner == reflect.TypeFor[Host]() || !isLeaf(inner)):
			listKeys(inner, here, out)
		}
	}
}

// typeWords says in words what a key takes.
func typeWords(t reflect.Type) string {
	switch t {
	case reflect.TypeFor[Text]():
		return "text"
	case reflect.TypeFor[Texts]():
		return "text or list"
	case reflect.TypeFor[Words]():
		return "command or list of words"
	case reflect.TypeFor[Number]():
		return "whole number"
	case reflect.TypeFor[Duration]():
		return "duration"
	case reflect.TypeFor[Share]():
		return "percentage"
	case reflect.TypeFor[Settings]():
		return "map to text or null"
	case reflect.TypeFor[Dict[Text]]():
		return "map to text"
	case reflect.TypeFor[Dict[Duration]]():
		return "map to duration"
	case reflect.TypeFor[Dict[Levels]]():
		return "map to levels"
	case reflect.TypeFor[Dict[Proofs]]():
		return "map to proofs"
	case reflect.TypeFor[Dict[Variant]]():
		return "map to settings"
	case reflect.TypeFor[Baseline]():
		return "text or map"
	case reflect.TypeFor[Stop]():
		return "text or map"
	case reflect.TypeFor[Host]():
		return "text, list or map"
	case reflect.TypeFor[CPUs]():
		return "number, span or list"
	case reflect.TypeFor[Anything]():
		return "anything"
	}
	return "map"
}

func isLeaf(t reflect.Type) bool {
	_, ok := reflect.New(t).Interface().(leaf)
	return ok
}
