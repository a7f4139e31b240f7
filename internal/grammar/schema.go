package grammar

import (
	"encoding/json"
	"fmt"
	"reflect"

	"github.com/google/jsonschema-go/jsonschema"
)

// Schema returns the JSON schema of an experiment file for editors. It is made
// from the types in document.go. What a schema cannot say (names that must be
// declared, conditions, units) is left to Parse.
func Schema() ([]byte, error) {
	s, err := schemaOf(reflect.TypeFor[Document]())
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
		if fieldName(f) == "" {
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

func (*Text) schema() (*jsonschema.Schema, error) { return single(), nil }

func (*Texts) schema() (*jsonschema.Schema, error) { return oneOrList(single()), nil }

func (*Words) schema() (*jsonschema.Schema, error) {
	return &jsonschema.Schema{AnyOf: []*jsonschema.Schema{{Type: "string"}, {Type: "array", Items: single()}}}, nil
}

func (*Number) schema() (*jsonschema.Schema, error) {
	zero := 0.0
	return &jsonschema.Schema{Type: "integer", Minimum: &zero}, nil
}

func (*Duration) schema() (*jsonschema.Schema, error) {
	return &jsonschema.Schema{Types: []string{"string", "number"}, Examples: []any{"20s", "1.5m", "250ms"}}, nil
}

func (*Share) schema() (*jsonschema.Schema, error) {
	return &jsonschema.Schema{Types: []string{"string", "number"}, Examples: []any{"3%", "0.1%"}}, nil
}

func (*Anything) schema() (*jsonschema.Schema, error) { return &jsonschema.Schema{}, nil }

func (*Settings) schema() (*jsonschema.Schema, error) {
	s := mapOf(singleOrNull())
	s.Type, s.Types = "", []string{"object", "null"}
	return s, nil
}

func (*Variant) schema() (*jsonschema.Schema, error) {
	s := mapOf(singleOrNull())
	s.Type, s.Types = "", []string{"object", "null"}
	s.Properties = map[string]*jsonschema.Schema{"from": {Type: "string", Description: "the variant whose settings it begins with"}}
	return s, nil
}

func (*Baseline) schema() (*jsonschema.Schema, error) {
	return &jsonschema.Schema{AnyOf: []*jsonschema.Schema{single(), mapOf(singleOrNull())}}, nil
}

func (m *Dict[T]) schema() (*jsonschema.Schema, error) {
	value, err := schemaOf(reflect.TypeFor[T]())
	if err != nil {
		return nil, err
	}
	return mapOf(value), nil
}

func (*Levels) schema() (*jsonschema.Schema, error) {
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
		if fieldName(f) == "" {
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

func (*Stop) schema() (*jsonschema.Schema, error) {
	s, err := plainFields(reflect.TypeFor[Stop]())
	return &jsonschema.Schema{AnyOf: []*jsonschema.Schema{{Type: "string"}, s}}, err
}

func (*Host) schema() (*jsonschema.Schema, error) {
	s, err := plainFields(reflect.TypeFor[Host]())
	return &jsonschema.Schema{AnyOf: []*jsonschema.Schema{{Type: "string"}, {Type: "array", Items: &jsonschema.Schema{Type: "string"}}, s}}, err
}

func (*CPUs) schema() (*jsonschema.Schema, error) {
	return oneOrList(&jsonschema.Schema{Types: []string{"integer", "string"}}), nil
}

func (*Load) schema() (*jsonschema.Schema, error) {
	http, err := schemaOf(reflect.TypeFor[HTTP]())
	if err != nil {
		return nil, err
	}
	http.Description = "load over HTTP/1.1: a closed loop, an open one where rate says so"
	one, most := 1, 1
	s := &jsonschema.Schema{Type: "object", Properties: map[string]*jsonschema.Schema{"http": http},
		AdditionalProperties: &jsonschema.Schema{Not: &jsonschema.Schema{}}, MinProperties: &one, MaxProperties: &most}
	for name, shape := range known() {
		if s.Properties[name], err = plainFields(shape); err != nil {
			return nil, err
		}
		description := "load by " + name
		if _, command := fieldNamed(shape, "run"); command {
			keys := s.Properties[name]
			s.Properties[name] = &jsonschema.Schema{AnyOf: []*jsonschema.Schema{{Type: "string"}, keys}}
			description = "load by a program of one's own"
		}
		s.Properties[name].Description = description
	}
	for _, name := range later() {
		s.Properties[name] = &jsonschema.Schema{Types: []string{"object", "string"}, AdditionalProperties: singleOrNull(), Description: "load by " + name + " (not built yet)"}
	}
	return s, nil
}

func (*Proofs) schema() (*jsonschema.Schema, error) {
	plain := &jsonschema.Schema{}
	for _, name := range plainProofs() {
		plain.Enum = append(plain.Enum, name)
	}
	want := &jsonschema.Schema{AnyOf: []*jsonschema.Schema{single(), mapOf(single())}}
	zero := 0.0
	asking := &jsonschema.Schema{Type: "object", AdditionalProperties: &jsonschema.Schema{Not: &jsonschema.Schema{}}, Properties: map[string]*jsonschema.Schema{
		"contains": want, "equals": want.CloneSchemas(), "field": {Type: "string"}, "offset": {Type: "integer", Minimum: &zero},
		"count": {Type: "boolean"}, "absent": {Type: "boolean"}, "from": {Type: "string"},
	}}
	for _, name := range moments() {
		asking.Properties["from"].Enum = append(asking.Properties["from"].Enum, name)
	}
	for _, name := range append(askingProofs(), plainProofs()...) {
		asking.Properties[name] = singleOrNull()
	}
	return oneOrList(&jsonschema.Schema{AnyOf: []*jsonschema.Schema{plain, asking}}), nil
}
