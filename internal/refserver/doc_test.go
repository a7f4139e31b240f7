package refserver

import (
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"

	"hakaru/internal/refserver/config"
)

// The page names every setting with its default and every field of the status.
func TestPageIsComplete(t *testing.T) {
	data, err := os.ReadFile("../../docs/serve.md")
	if err != nil {
		t.Fatal(err)
	}
	page, defaults := string(data), config.Default()
	for _, k := range config.Keys() {
		if row := fmt.Sprintf("| `%s` | `%s` | ", k.Name, k.Get(&defaults)); !strings.Contains(page, row) {
			t.Errorf("no row %q", row)
		}
	}
	for _, of := range []reflect.Type{reflect.TypeFor[Status](), reflect.TypeFor[WorkerStatus]()} {
		for f := range of.Fields() {
			if name := f.Tag.Get("json"); name != "generation" && name != "started" && !strings.Contains(page, "`"+name+"`") {
				t.Errorf("the status field %s is not described", name)
			}
		}
	}
	for _, h := range config.Handlers() {
		if !strings.Contains(page, "`"+h+"`") {
			t.Errorf("the handler %s is not described", h)
		}
	}
}
