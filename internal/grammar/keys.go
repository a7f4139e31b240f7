package grammar

import (
	"reflect"
	"slices"
	"strings"
)

// Key is one key of an experiment file, for the reference.
type Key struct {
	Path string // "service.ready.get"; a name of the person's own is NAME
	Type string // in words
	Text string
}

// Keys lists all keys, in the order of the types.
func Keys() []Key {
	var out []Key
	listKeys(reflect.TypeFor[Document](), "", &out)
	return out
}

func listKeys(t reflect.Type, path string, out *[]Key) {
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
		*out = append(*out, Key{here, typeWords(inner), f.Tag.Get("jsonschema")})
		switch {
		case here == "services":
			*out = append(*out, Key{"services.NAME", "map", "as service"})
		case inner == reflect.TypeFor[Load]():
			*out = append(*out, Key{here + ".http", "map", "load over HTTP/1.1, closed loop"})
			listKeys(reflect.TypeFor[HTTP](), here+".http", out)
			*out = append(*out, Key{here + ".PROGRAM", "map", "one of " + strings.Join(slices.Sorted(slices.Values(programs())), ", ") + " (not built yet)"})
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
