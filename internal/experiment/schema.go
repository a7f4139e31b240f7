package experiment

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
)

// Schema returns the JSON schema of an experiment file for editors. It is made
// from the types in document.go. What a schema cannot say (names that must be
// declared, conditions, units) is left to Parse.
func Schema() ([]byte, error) {
	s, err := schemaOf(reflect.TypeFor[document]())
	if err != nil {
		return nil, fmt.Errorf("make the schema of an experiment file: %w", err)
	}
	s.Schema = "https://json-schema.org/draft/2020-12/schema"
	s.Title = "hakaru experiment file"
	text, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("write the schema of an experiment file: %w", err)
	}
	return append(text, '\n'), nil
}

// shaped is a document type that says its own schema.
type shaped interface {
	schema() (*jsonschema.Schema, error)
}

// schemaOf makes the schema of a document type, of structs by their fields.
func schemaOf(t reflect.Type) (*jsonschema.Schema, error) {
	if s, ok := reflect.New(t).Interface().(shaped); ok {
		return s.schema()
	}
	special := map[reflect.Type]*jsonschema.Schema{}
	for i := range t.NumField() {
		f := t.Field(i)
		if !f.IsExported() {
			continue
		}
		inner := f.Type
		if inner.Kind() == reflect.Pointer {
			inner = inner.Elem()
		}
		s, err := schemaOf(inner)
		if err != nil {
			return nil, err
		}
		special[inner] = s
		if f.Type.Kind() == reflect.Pointer { // as inner: a key is there or not, never null
			special[f.Type] = s
		}
	}
	return jsonschema.ForType(t, &jsonschema.ForOptions{TypeSchemas: special})
}

func single() *jsonschema.Schema {
	return &jsonschema.Schema{Types: []string{"string", "number", "boolean"}}
}

func singleOrNull() *jsonschema.Schema {
	return &jsonschema.Schema{Types: []string{"string", "number", "boolean", "null"}}
}

func oneOrList(item *jsonschema.Schema) *jsonschema.Schema {
	return &jsonschema.Schema{AnyOf: []*jsonschema.Schema{item, {Type: "array", Items: item.CloneSchemas()}}}
}

func mapOf(value *jsonschema.Schema) *jsonschema.Schema {
	return &jsonschema.Schema{Type: "object", AdditionalProperties: value}
}

func (*text) schema() (*jsonschema.Schema, error)  { return single(), nil }
func (*texts) schema() (*jsonschema.Schema, error) { return oneOrList(single()), nil }
func (*words) schema() (*jsonschema.Schema, error) {
	return &jsonschema.Schema{AnyOf: []*jsonschema.Schema{{Type: "string"}, {Type: "array", Items: single()}}}, nil
}
func (*number) schema() (*jsonschema.Schema, error) {
	zero := 0.0
	return &jsonschema.Schema{Type: "integer", Minimum: &zero}, nil
}
func (*duration) schema() (*jsonschema.Schema, error) {
	return &jsonschema.Schema{Types: []string{"string", "number"}, Examples: []any{"20s", "1.5m", "250ms"}}, nil
}
func (*share) schema() (*jsonschema.Schema, error) {
	return &jsonschema.Schema{Types: []string{"string", "number"}, Examples: []any{"3%", "0.1%"}}, nil
}
func (*anything) schema() (*jsonschema.Schema, error) { return &jsonschema.Schema{}, nil }
func (*settings) schema() (*jsonschema.Schema, error) {
	s := mapOf(singleOrNull())
	s.Type, s.Types = "", []string{"object", "null"}
	return s, nil
}
func (*variantDoc) schema() (*jsonschema.Schema, error) {
	s := mapOf(singleOrNull())
	s.Type, s.Types = "", []string{"object", "null"}
	s.Properties = map[string]*jsonschema.Schema{"from": {Type: "string", Description: "the variant whose settings it begins with"}}
	return s, nil
}
func (*baselineDoc) schema() (*jsonschema.Schema, error) {
	return &jsonschema.Schema{AnyOf: []*jsonschema.Schema{single(), mapOf(singleOrNull())}}, nil
}
func (m *dict[T]) schema() (*jsonschema.Schema, error) {
	value, err := schemaOf(reflect.TypeFor[T]())
	if err != nil {
		return nil, err
	}
	return mapOf(value), nil
}
func (*levels) schema() (*jsonschema.Schema, error) {
	number := &jsonschema.Schema{Type: "integer"}
	span := &jsonschema.Schema{
		Type: "object", Required: []string{"from", "to"}, AdditionalProperties: &jsonschema.Schema{Not: &jsonschema.Schema{}},
		Properties: map[string]*jsonschema.Schema{"from": number, "to": number.CloneSchemas(), "steps": number.CloneSchemas(), "scale": {Enum: []any{"linear", "log"}}},
	}
	return &jsonschema.Schema{AnyOf: []*jsonschema.Schema{single(), {Type: "array", Items: singleOrNull()}, span, mapOf(singleOrNull())}}, nil
}

// plainFields is the schema of a struct whose type reads itself.
func plainFields(t reflect.Type) (*jsonschema.Schema, error) {
	s := &jsonschema.Schema{Type: "object", Properties: map[string]*jsonschema.Schema{}, AdditionalProperties: &jsonschema.Schema{Not: &jsonschema.Schema{}}}
	for i := range t.NumField() {
		f := t.Field(i)
		if !f.IsExported() {
			continue
		}
		value, err := schemaOf(f.Type)
		if err != nil {
			return nil, err
		}
		value.Description = f.Tag.Get("jsonschema")
		s.Properties[fieldName(f)] = value
	}
	return s, nil
}

func (*stopDoc) schema() (*jsonschema.Schema, error) {
	s, err := plainFields(reflect.TypeFor[stopDoc]())
	return &jsonschema.Schema{AnyOf: []*jsonschema.Schema{{Type: "string"}, s}}, err
}
func (*hostDoc) schema() (*jsonschema.Schema, error) {
	s, err := plainFields(reflect.TypeFor[hostDoc]())
	return &jsonschema.Schema{AnyOf: []*jsonschema.Schema{{Type: "string"}, {Type: "array", Items: &jsonschema.Schema{Type: "string"}}, s}}, err
}
func (*cpus) schema() (*jsonschema.Schema, error) {
	return oneOrList(&jsonschema.Schema{Types: []string{"integer", "string"}}), nil
}

func (*loadDoc) schema() (*jsonschema.Schema, error) {
	http, err := schemaOf(reflect.TypeFor[httpDoc]())
	if err != nil {
		return nil, err
	}
	http.Description = "load over HTTP/1.1, closed loop"
	one, most := 1, 1
	s := &jsonschema.Schema{Type: "object", Properties: map[string]*jsonschema.Schema{"http": http},
		AdditionalProperties: &jsonschema.Schema{Not: &jsonschema.Schema{}}, MinProperties: &one, MaxProperties: &most}
	for _, name := range programs() {
		s.Properties[name] = &jsonschema.Schema{Types: []string{"object", "string"}, AdditionalProperties: singleOrNull(), Description: "load by " + name + " (not built yet)"}
	}
	return s, nil
}

func (*proofs) schema() (*jsonschema.Schema, error) {
	plain := &jsonschema.Schema{}
	for _, name := range plainProofs() {
		plain.Enum = append(plain.Enum, name)
	}
	want := &jsonschema.Schema{AnyOf: []*jsonschema.Schema{single(), mapOf(single())}}
	zero := 0.0
	asking := &jsonschema.Schema{Type: "object", AdditionalProperties: &jsonschema.Schema{Not: &jsonschema.Schema{}}, Properties: map[string]*jsonschema.Schema{
		"contains": want, "equals": want.CloneSchemas(), "field": {Type: "string"}, "offset": {Type: "integer", Minimum: &zero},
	}}
	for _, name := range append(askingProofs(), plainProofs()...) {
		asking.Properties[name] = singleOrNull()
	}
	return oneOrList(&jsonschema.Schema{AnyOf: []*jsonschema.Schema{plain, asking}}), nil
}

// Key is one key of an experiment file, for the reference.
type Key struct {
	Path string // "service.ready.get"; a name of the person's own is NAME
	Type string // in words
	Text string
}

// Keys lists all keys, in the order of the types.
func Keys() []Key {
	var out []Key
	listKeys(reflect.TypeFor[document](), "", &out)
	return out
}

func listKeys(t reflect.Type, path string, out *[]Key) {
	for i := range t.NumField() {
		f := t.Field(i)
		if !f.IsExported() {
			continue
		}
		inner := f.Type
		if inner.Kind() == reflect.Pointer {
			inner = inner.Elem()
		}
		here := join(path, fieldName(f))
		*out = append(*out, Key{here, typeWords(inner), f.Tag.Get("jsonschema")})
		switch {
		case here == "services":
			*out = append(*out, Key{"services.NAME", "map", "as service"})
		case inner == reflect.TypeFor[loadDoc]():
			*out = append(*out, Key{here + ".http", "map", "load over HTTP/1.1, closed loop"})
			listKeys(reflect.TypeFor[httpDoc](), here+".http", out)
			*out = append(*out, Key{here + ".PROGRAM", "map", "one of " + strings.Join(slices.Sorted(slices.Values(programs())), ", ") + " (not built yet)"})
		case inner.Kind() == reflect.Struct && (inner.Name() == "stopDoc" || inner.Name() == "hostDoc" || !isLeaf(inner)):
			listKeys(inner, here, out)
		}
	}
}

// typeWords says in words what a key takes.
func typeWords(t reflect.Type) string {
	switch t {
	case reflect.TypeFor[text]():
		return "text"
	case reflect.TypeFor[texts]():
		return "text or list"
	case reflect.TypeFor[words]():
		return "command or list of words"
	case reflect.TypeFor[number]():
		return "whole number"
	case reflect.TypeFor[duration]():
		return "duration"
	case reflect.TypeFor[share]():
		return "percentage"
	case reflect.TypeFor[settings]():
		return "map to text or null"
	case reflect.TypeFor[dict[text]]():
		return "map to text"
	case reflect.TypeFor[dict[duration]]():
		return "map to duration"
	case reflect.TypeFor[dict[levels]]():
		return "map to levels"
	case reflect.TypeFor[dict[proofs]]():
		return "map to proofs"
	case reflect.TypeFor[dict[variantDoc]]():
		return "map to settings"
	case reflect.TypeFor[baselineDoc]():
		return "text or map"
	case reflect.TypeFor[stopDoc]():
		return "text or map"
	case reflect.TypeFor[hostDoc]():
		return "text, list or map"
	case reflect.TypeFor[cpus]():
		return "number, span or list"
	case reflect.TypeFor[anything]():
		return "anything"
	}
	return "map"
}

func isLeaf(t reflect.Type) bool {
	_, ok := reflect.New(t).Interface().(leaf)
	return ok
}
