package report

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// TestCodesAreDocumented keeps the codes of warnings and the reasons of void
// trials in docs/report-json.md complete: it reads them out of the sources.
func TestCodesAreDocumented(t *testing.T) {
	data, err := os.ReadFile("../../docs/report-json.md")
	if err != nil {
		t.Fatal(err)
	}
	doc := string(data)
	found := 0
	documented := func(what, code string) {
		found++
		if !strings.Contains(doc, "`"+code+"`") {
			t.Errorf("%s %s is not in docs/report-json.md", what, code)
		}
	}
	root, err := parser.ParseFile(token.NewFileSet(), "../../hakaru.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range constants(root) {
		if strings.HasPrefix(name, "Void") {
			documented("void reason", value)
		}
	}
	for _, dir := range sources(t) {
		for _, code := range warningCodes(t, dir) {
			documented(dir+": warning", code)
		}
	}
	if found < 40 { // of which a dozen reasons
		t.Errorf("only %d codes and reasons were found in the sources: has their form changed?", found)
	}
}

// sources are the directories whose warnings end up in results or runs: not those
// that print.
func sources(t *testing.T) (dirs []string) {
	printing := []string{"report", "rehearsal", "wording", "layout", "refserver", "testdata"}
	err := filepath.WalkDir("../../internal", func(path string, e fs.DirEntry, err error) error {
		if err != nil || !e.IsDir() {
			return err
		}
		if slices.Contains(printing, e.Name()) {
			return fs.SkipDir
		}
		dirs = append(dirs, path)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return append(dirs, "../../cmd/hakaru")
}

var code = regexp.MustCompile(`^[a-z]+(_[a-z]+)*$`)

// warningCodes are the codes of hakaru.Warning that the package in a directory
// makes: in literals, and as the first of several arguments of what is called
// warn, warnOnce or say.
func warningCodes(t *testing.T, dir string) (codes []string) {
	paths, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	var files []*ast.File
	names := map[string]string{}
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, f)
		for name, value := range constants(f) {
			names[name] = value
		}
	}
	add := func(e ast.Expr) {
		value := ""
		switch e := e.(type) {
		case *ast.BasicLit:
			value = text(e)
		case *ast.Ident:
			value = names[e.Name]
		}
		if code.MatchString(value) {
			codes = append(codes, value)
		}
	}
	for _, f := range files {
		ast.Inspect(f, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.CompositeLit:
				for _, literal := range warnings(n) {
					for _, e := range literal.Elts {
						if kv, ok := e.(*ast.KeyValueExpr); ok && nameOf(kv.Key) == "Code" {
							add(kv.Value)
						}
					}
				}
			case *ast.CallExpr:
				if len(n.Args) > 1 && slices.Contains([]string{"warn", "warnOnce", "say"}, nameOf(n.Fun)) {
					add(n.Args[0])
				}
			}
			return true
		})
	}
	return codes
}

// warnings are the literals of hakaru.Warning that a literal is, or is a list of.
func warnings(n *ast.CompositeLit) (all []*ast.CompositeLit) {
	if list, ok := n.Type.(*ast.ArrayType); ok && nameOf(list.Elt) == "Warning" {
		for _, e := range n.Elts {
			if one, ok := e.(*ast.CompositeLit); ok && one.Type == nil {
				all = append(all, one)
			}
		}
		return all
	}
	if nameOf(n.Type) == "Warning" {
		all = append(all, n)
	}
	return all
}

// constants are the texts that a file's constants stand for.
func constants(f *ast.File) map[string]string {
	values := map[string]string{}
	for _, d := range f.Decls {
		group, ok := d.(*ast.GenDecl)
		if !ok || group.Tok != token.CONST {
			continue
		}
		for _, s := range group.Specs {
			spec := s.(*ast.ValueSpec)
			for i, name := range spec.Names {
				if i < len(spec.Values) {
					if value, ok := spec.Values[i].(*ast.BasicLit); ok && value.Kind == token.STRING {
						values[name.Name] = text(value)
					}
				}
			}
		}
	}
	return values
}

func text(e *ast.BasicLit) string {
	value, err := strconv.Unquote(e.Value)
	if err != nil {
		return ""
	}
	return value
}

func nameOf(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.SelectorExpr:
		return e.Sel.Name
	}
	return ""
}
