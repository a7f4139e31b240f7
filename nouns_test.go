package hakaru_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"testing"
	"time"

	"hakaru"
)

// What is stored and what travels comes back as it was: every field of every
// noun, set to something, survives JSON, and nothing in the JSON is unknown to
// the noun.
func TestNounsSurviveJSON(t *testing.T) {
	for _, noun := range []any{
		&hakaru.Experiment{}, &hakaru.Run{}, &hakaru.RunInfo{}, &hakaru.Result{}, &hakaru.Block{}, &hakaru.Bucket{},
		&hakaru.Comparison{}, &hakaru.LimitResult{}, &hakaru.Frozen{}, &hakaru.Done{}, &hakaru.Finding{},
		&hakaru.Bundle{}, &hakaru.Place{}, &hakaru.LoadSpec{}, &hakaru.LoadReport{}, &hakaru.Watched{}, &hakaru.Window{},
		&hakaru.Leftovers{}, &hakaru.Environment{}, &hakaru.Ask{}, &hakaru.Proof{},
	} {
		name := reflect.TypeOf(noun).Elem().Name()
		t.Run(name, func(t *testing.T) {
			n := 0
			fill(t, reflect.ValueOf(noun).Elem(), name, &n)
			text, err := json.Marshal(noun)
			if err != nil {
				t.Fatal(err)
			}
			back := reflect.New(reflect.TypeOf(noun).Elem())
			decoder := json.NewDecoder(bytes.NewReader(text))
			decoder.DisallowUnknownFields()
			if err := decoder.Decode(back.Interface()); err != nil {
				t.Fatalf("%v\n%s", err, text)
			}
			if !reflect.DeepEqual(noun, back.Interface()) {
				t.Errorf("%s came back as\n%+v", text, back.Elem())
			}
		})
	}
}

// fill gives every field below v a value of its own that is not zero.
func fill(t *testing.T, v reflect.Value, path string, n *int) {
	*n++
	switch v.Type() {
	case reflect.TypeFor[time.Time]():
		v.Set(reflect.ValueOf(time.Date(2026, 11, 30, 1, 2, 3, *n, time.UTC)))
		return
	case reflect.TypeFor[json.RawMessage]():
		v.SetBytes(fmt.Appendf(nil, "%d", *n))
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString(fmt.Sprintf("s%d", *n))
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Uint8: // the enumerations: their second value
		v.SetUint(1)
	case reflect.Int, reflect.Int64:
		v.SetInt(int64(*n))
	case reflect.Uint32, reflect.Uint64:
		v.SetUint(uint64(*n))
	case reflect.Float64:
		v.SetFloat(float64(*n) + 0.1)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(t, v.Elem(), path, n)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		for i := range 2 {
			fill(t, v.Index(i), path, n)
		}
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		fill(t, key, path, n)
		fill(t, value, path, n)
		v.SetMapIndex(key, value)
	case reflect.Struct:
		for i := range v.NumField() {
			fill(t, v.Field(i), path+"."+v.Type().Field(i).Name, n)
		}
	default:
		t.Fatalf("%s is a %s: teach this test to fill it", path, v.Kind())
	}
}

func TestExpand(t *testing.T) {
	names := hakaru.Names{"http": "127.0.0.1:80", "x": "{http}", "x.name": "one"}
	for text, want := range map[string]string{
		"":                       "",
		"{http}":                 "127.0.0.1:80",
		"http://{http}/{y}{":     "http://127.0.0.1:80/{y}{",
		"{x}":                    "{http}", // what was put in is not looked at again
		"{x.name}-{http}{http}":  "one-127.0.0.1:80127.0.0.1:80",
		"{{http}}":               "{127.0.0.1:80}",
		"server { listen {http}": "server { listen 127.0.0.1:80",
		"}{":                     "}{",
	} {
		if got := names.Expand(text); got != want {
			t.Errorf("%q becomes %q, want %q", text, got, want)
		}
	}
}
