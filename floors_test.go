package hakaru_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// floors is the house: every package, its floor, and which packages of its own
// floor it may import (HOUSE: imports go down only). A new package is entered
// here before it is built.
var floors = []struct {
	floor    int
	name     string
	besides  []string // of the same floor
	external []string // what floor 0 and 1 may import of the outside, besides the standard library
}{
	{0, "", nil, nil},
	{0, "internal/stats", nil, []string{"gonum.org/v1/gonum"}},
	{0, "internal/endpoint", nil, nil},
	{0, "internal/unit", nil, nil},
	{0, "internal/latency", nil, []string{"github.com/HdrHistogram/hdrhistogram-go"}},
	{0, "internal/arrival", nil, nil},
	{0, "internal/hint", nil, nil},
	{0, "internal/redact", nil, nil},

	{1, "internal/textedit", nil, nil},
	{1, "internal/nginxconf", []string{"internal/textedit"}, nil},
	{1, "internal/edit", []string{"internal/nginxconf", "internal/textedit"}, nil},
	{1, "internal/kind", []string{"internal/edit"}, []string{"github.com/goccy/go-yaml"}},
	{1, "internal/mistake", nil, nil},
	{1, "internal/yamltree", []string{"internal/mistake"}, []string{"github.com/goccy/go-yaml"}},
	{1, "internal/grammar", []string{"internal/mistake", "internal/yamltree"}, []string{"github.com/google/jsonschema-go", "mvdan.cc/sh/v3"}},
	{1, "internal/where", nil, nil},
	{1, "internal/render", []string{"internal/grammar", "internal/kind"}, []string{"github.com/rogpeppe/go-internal/diff"}},
	{1, "internal/variant", []string{"internal/grammar", "internal/mistake", "internal/render", "internal/where"}, nil},
	{1, "internal/experiment", []string{"internal/grammar", "internal/kind", "internal/mistake", "internal/render", "internal/variant", "internal/yamltree"}, nil},
	{1, "internal/doubt", []string{"internal/render"}, nil},
	{1, "internal/http1", nil, nil},
	{1, "internal/condition", nil, nil},
	{1, "internal/capacity", []string{"internal/condition"}, nil},
	{1, "internal/measure", nil, nil},
	{1, "internal/compare", []string{"internal/measure"}, nil},
	{1, "internal/plan", []string{"internal/compare"}, nil},
	{1, "internal/plan/simulate", []string{"internal/compare", "internal/plan"}, nil},
	{1, "internal/diagnose", []string{"internal/measure"}, nil},
	{1, "internal/layout", nil, []string{"charm.land/lipgloss/v2"}},
	{1, "internal/wording", []string{"internal/compare", "internal/layout"}, nil},
	{1, "internal/loadreport", []string{"internal/condition", "internal/diagnose", "internal/layout", "internal/wording"}, nil},
	{1, "internal/rehearsal", []string{"internal/layout", "internal/render", "internal/wording"}, nil},
	{1, "internal/report", []string{"internal/compare", "internal/layout", "internal/wording"}, nil},
	{1, "internal/refserver/config", nil, nil},

	{2, "internal/watch/kernel", nil, nil},
	{2, "internal/watch", []string{"internal/watch/kernel"}, nil},
	{2, "internal/checkout", []string{"internal/service/registry", "internal/watch/kernel"}, nil},
	{2, "internal/service/address", []string{"internal/watch/kernel"}, nil},
	{2, "internal/service/answer", []string{"internal/service/proof"}, nil},
	{2, "internal/service/attach", []string{"internal/service/answer", "internal/service/launch", "internal/service/registry", "internal/watch/kernel"}, nil},
	{2, "internal/service/proof", []string{"internal/watch/kernel"}, nil},
	{2, "internal/service/launch", []string{"internal/watch/kernel"}, nil},
	{2, "internal/service/output", nil, nil},
	{2, "internal/service/registry", []string{"internal/watch/kernel"}, nil},
	{2, "internal/service", []string{"internal/checkout", "internal/service/address", "internal/service/answer", "internal/service/attach", "internal/service/launch", "internal/service/output", "internal/service/proof", "internal/service/registry", "internal/watch/kernel"}, nil},
	{2, "internal/load/job", nil, nil},
	{2, "internal/load/goroutines", []string{"internal/load/job"}, nil},
	{2, "internal/load/epoll", []string{"internal/load/job"}, nil},
	{2, "internal/load", []string{"internal/load/epoll", "internal/load/goroutines", "internal/load/job", "internal/watch/kernel"}, nil},
	{2, "internal/load/program", []string{"internal/load", "internal/watch/kernel"}, nil},
	{2, "internal/store", nil, nil},
	{2, "internal/listen", []string{"internal/watch/kernel"}, nil},
	{2, "internal/refserver", []string{"internal/listen"}, nil},

	{3, "internal/link", nil, nil},
	{3, "internal/host", []string{"internal/link"}, nil},
	{3, "internal/trial", []string{"internal/host", "internal/link"}, nil},
	{3, "internal/campaign", []string{"internal/host", "internal/link", "internal/trial"}, nil},

	{4, "cmd/hakaru", nil, nil},
}

// handsOff are the packages that thought (floor 1) must not import: it touches
// no machine and asks no clock.
var handsOff = []string{"os", "os/exec", "net", "net/http", "syscall", "golang.org/x/sys/unix"}

type listed struct {
	ImportPath  string
	Imports     []string
	TestImports []string
}

func TestImportsGoDown(t *testing.T) {
	out, err := exec.Command("go", "list", "-json=ImportPath,Imports", "./...").Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	for decoder := json.NewDecoder(bytes.NewReader(out)); ; {
		var p listed
		if err := decoder.Decode(&p); errors.Is(err, io.EOF) {
			return
		} else if err != nil {
			t.Fatal(err)
		}
		name := strings.TrimPrefix(strings.TrimPrefix(p.ImportPath, "hakaru"), "/")
		if strings.HasPrefix(name, "bench/") { // measures from outside
			continue
		}
		own := slices.IndexFunc(floors, func(f struct {
			floor    int
			name     string
			besides  []string
			external []string
		}) bool {
			return f.name == name
		})
		if own < 0 {
			t.Errorf("%s has no floor: enter it in floors_test.go", p.ImportPath)
			continue
		}
		here := floors[own]
		for _, path := range p.Imports {
			if rest, ok := strings.CutPrefix(path, "hakaru"); ok && (rest == "" || rest[0] == '/') {
				target := strings.TrimPrefix(rest, "/")
				for _, f := range floors {
					if f.name != target {
						continue
					}
					if f.floor > here.floor || f.floor == here.floor && f.floor > 0 && !slices.Contains(here.besides, target) {
						t.Errorf("%s (floor %d) imports %s (floor %d)", name, here.floor, target, f.floor)
					}
					if here.floor == 0 && target != "" {
						t.Errorf("%s (floor 0) imports %s: words need no other words", name, target)
					}
				}
				continue
			}
			if here.floor <= 1 && slices.Contains(handsOff, path) {
				t.Errorf("%s (floor %d) imports %s: thought touches no machine", name, here.floor, path)
			}
			outside := strings.Contains(strings.SplitN(path, "/", 2)[0], ".")
			if here.floor <= 1 && outside && !slices.ContainsFunc(here.external, func(allowed string) bool {
				return path == allowed || strings.HasPrefix(path, allowed+"/")
			}) {
				t.Errorf("%s (floor %d) imports %s: enter it in floors_test.go if it belongs there", name, here.floor, path)
			}
		}
	}
}
