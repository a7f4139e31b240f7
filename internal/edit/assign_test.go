package edit_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"hakaru/internal/edit"
)

func TestPutAssign(t *testing.T) {
	check(t, assign, map[string]change{
		"empty":                {"", []edit.Edit{put("workers", "4")}, "# Set by hakaru:\nworkers = 4\n"},
		"one line for all":     {"x = 1\n", []edit.Edit{put("workers", "4"), put("worker-class|-k", "gthread")}, "x = 1\n# Set by hakaru:\nworkers = 4\nworker_class = \"gthread\"\n"},
		"the earlier goes":     {"# c\nworkers = 1  # why\nbind = 'x'\n", []edit.Edit{put("workers", "4")}, "# c\nbind = 'x'\n# Set by hakaru:\nworkers = 4\n"},
		"what was added, anew": {"# Set by hakaru:\nworkers = 1\nthreads = 2\n", []edit.Edit{put("workers", "4")}, "# Set by hakaru:\nworkers = 4\nthreads = 2\n"},
		"added and taken away": {"x = 1\n# Set by hakaru:\nworkers = 1\n", []edit.Edit{put("workers")}, "x = 1\n"},
		"no longer ours":       {"# Set by hakaru:\nworkers = 1\nif x: pass\n", []edit.Edit{put("workers", "4")}, "# Set by hakaru:\nif x: pass\n# Set by hakaru:\nworkers = 4\n"},
		"something else uses it": {
			"workers = cpus() * 2\nthreads = workers\n", []edit.Edit{put("workers", "4")},
			"workers = cpus() * 2\nthreads = workers\n# Set by hakaru:\nworkers = 4\n"},
		"under a condition": {
			"if prod:\n    workers = 8\n", []edit.Edit{put("workers", "4")},
			"if prod:\n    workers = 8\n# Set by hakaru:\nworkers = 4\n"},
		"an attribute and an argument are others": {
			"timeout = 1\nf(timeout=3)\nx.timeout = 4\n", []edit.Edit{put("timeout")},
			"f(timeout=3)\nx.timeout = 4\n"},
		"in a string it is none":    {"x = '''\nworkers = 1\n'''\n# workers = 2\n", []edit.Edit{put("workers", "4")}, "x = '''\nworkers = 1\n'''\n# workers = 2\n# Set by hakaru:\nworkers = 4\n"},
		"null of what is not there": {"x = 1\n", []edit.Edit{put("workers")}, "x = 1\n"},
		"null takes all away":       {"workers = 1\nx = 2\nworkers: int = 3;\n", []edit.Edit{put("workers")}, "x = 2\n"},
		"no newline at the end":     {"x = 1", []edit.Edit{put("workers", "4")}, "x = 1\n# Set by hakaru:\nworkers = 4\n"},
		"CRLF":                      {"x = 1\r\nworkers = 1\r\n", []edit.Edit{put("workers", "4"), put("preload-app", "true")}, "x = 1\r\n# Set by hakaru:\r\nworkers = 4\r\npreload_app = True\r\n"},
		"byte order mark":           {"\ufeffworkers = 1\n", []edit.Edit{put("workers", "4")}, "\ufeff# Set by hakaru:\nworkers = 4\n"},
		"words and numbers": {"", []edit.Edit{put("a", "true"), put("b", "False"), put("c", "None"), put("d", "-0.5"), put("e", "04"), put("f", "1e3"), put("g", ""), put("h", `a"b\c`), put("i", "0.0.0.0:80"), put("j", "tab\t")},
			"# Set by hakaru:\na = True\nb = False\nc = None\nd = -0.5\ne = \"04\"\nf = 1e3\ng = \"\"\nh = \"a\\\"b\\\\c\"\ni = \"0.0.0.0:80\"\nj = \"tab\\x09\"\n"},
	})
}

// literals are the right sides of assignments, each with what Value makes of it.
var literals = map[string]string{
	"4": "4", "-1.5": "-1.5", "True": "true", "False": "false", "None": "None",
	`"a"`: "a", "'a' # c": "a", `"a\"b\\c"`: `a"b\c`, `r"a\b"`: `a\b`, `"\x41\u00e9\101\0"`: "Aé\x41\x00", `"\q"`: `\q`,
	`"""a"b"""`: `a"b`, `u'a'`: "a", `"à"`: "à", "''": "", `'\t\n\a'`: "\t\n\a",
}

// What Value says of a literal is what Python makes of it, and so is what is put
// in.
func TestValueAssignConfirm(t *testing.T) {
	var contents, wants []string
	for right, want := range literals {
		contents = append(contents, "y = 0\nx = 'first'\nx = "+right+"\n")
		wants = append(wants, want)
	}
	for _, value := range []string{
		"4", "a b", `"`, `'`, `\`, `a\nb`, "04", "1_000", "-", "à", "{x}", "#", "true", "unix:/a", "None", "\x01\x7f", "1.", ".5", "0x10", "'''",
	} {
		edited, err := assign.Put("x = 1\nx = 2\nimport os\n", []edit.Edit{put("x", value)})
		if err != nil {
			t.Fatal(err)
		}
		contents = append(contents, edited)
		wants = append(wants, value)
	}
	for i, got := range python(t, contents) {
		if got != wants[i] {
			t.Errorf("%q: Python has %q, want %q", contents[i], got, wants[i])
		}
		if got, found := assign.Value(contents[i], []string{"x"}); got != wants[i] || !found {
			t.Errorf("%q: Value %q, %v, want %q", contents[i], got, found, wants[i])
		}
	}
}

// python runs texts and returns x of each, in the words of an experiment.
func python(t *testing.T, contents []string) []string {
	t.Helper()
	const script = `import json, sys
def x(text):
    names = {}
    exec(text, names)
    x = names["x"]
    return {True: "true", False: "false"}[x] if isinstance(x, bool) else str(x)
print(json.dumps([x(text) for text in json.load(sys.stdin)]))`
	in, err := json.Marshal(contents)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("python3", "-I", "-W", "ignore", "-c", script)
	cmd.Stdin = bytes.NewReader(in)
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("python3 of %q: %v", contents, err)
	}
	var found []string
	if err := json.Unmarshal(out, &found); err != nil {
		t.Fatal(err)
	}
	return found
}

// Of texts that Python accepts, the assignments at the top are those that
// Python's own parser finds, where each stands in lines of its own.
func TestKeysAssignConfirm(t *testing.T) {
	pieces := []string{
		"x = 1", "x: int = 2", "x = y = 3", "x, y = 1, 2", "x += 1", "x == 1", "x = 'a' \"b\"", "x = {", "  1: [2,", " 3]}", "x = (1 if 2 else 3)", "x = f'{1}#'", "x = rb'\\''",
		"x = '''a", "b = 1", "'''", "x = 1 \\", "  + 2", "# x = 5", "", "if 1: x = 6", "if 1:", "    x = 7", "\tx = 8", "def f(x=1, *y): return x", "class C: x = 1", "x = lambda x=1: x == 2",
		"x = 1; y = 2", "x = 3;", "x[0] = 1", "x.y = 2", "x = (y := 3)", "x = not 1", "x = 2 <= 3 != 4 >= 5", "é = 1", "x=\t1 # c", "import os as x", "x = \"\\\"#\"", "x = ...", "x = 1.e5", "x=1if 2else 3",
		"for x in (): pass", "@x", "x: int", "async def g(): x = 1", "x = \\", "1", "x = '", "x = \"\"\"\"a\"\"\"",
	}
	random := rand.New(rand.NewPCG(3, 4))
	var contents []string
	for range 1500 {
		var lines []string
		for range 1 + random.IntN(5) {
			lines = append(lines, pieces[random.IntN(len(pieces))])
		}
		contents = append(contents, strings.Join(lines, "\n")+"\n")
	}
	const script = `import ast, json, sys
def keys(text):
    try:
        body = ast.parse(text).body
    except (SyntaxError, ValueError):
        return None
    out = []
    for i, s in enumerate(body):
        beside = [b for b in body if b is not s and b.lineno <= s.end_lineno and s.lineno <= b.end_lineno]
        if isinstance(s, ast.AnnAssign):
            targets = [s.target] if s.value else []
        else:
            targets = s.targets if isinstance(s, ast.Assign) else []
        if not beside and len(targets) == 1 and isinstance(targets[0], ast.Name):
            out.append("%s:%d" % (targets[0].id, s.lineno))
    return out
print(json.dumps([keys(text) for text in json.load(sys.stdin)]))`
	in, err := json.Marshal(contents)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("python3", "-I", "-W", "ignore", "-c", script)
	cmd.Stdin = bytes.NewReader(in)
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	var wants [][]string
	if err := json.Unmarshal(out, &wants); err != nil {
		t.Fatal(err)
	}
	accepted := 0
	for i, want := range wants {
		if want == nil {
			continue
		}
		accepted++
		var got []string
		for _, k := range assign.Keys(contents[i]) {
			got = append(got, fmt.Sprintf("%s:%d", k.Name, k.Line))
		}
		if strings.Join(got, " ") != strings.Join(want, " ") {
			t.Errorf("%q: got %q, Python has %q", contents[i], got, want)
		}
	}
	if accepted < 200 {
		t.Errorf("Python accepts only %d texts", accepted)
	}
}

func TestKeysAssign(t *testing.T) {
	content := strings.Join([]string{
		"\ufeffimport os", "bind = '0.0.0.0:80'; ", "def f(x=1):", "    workers = 3", "workers: int = 4", "a = b = 5", "c, d = 1, 2",
		"e += 1", "g == 1", "h = {", "  'x': 1}", "i = 1; j = 2", "k[0] = 1", "l = lambda m: m == 1", `n = '''`, `o = 1'''`, "p = q \\", " + 1",
	}, "\n")
	want := []edit.Key{
		{Name: "bind", Value: "0.0.0.0:80", Line: 2, Column: 1},
		{Name: "workers", Value: "4", Line: 5, Column: 1},
		{Name: "h", Value: "{\n  'x': 1}", Line: 10, Column: 1},
		{Name: "l", Value: "lambda m: m == 1", Line: 14, Column: 1},
		{Name: "n", Value: "\no = 1", Line: 15, Column: 1},
		{Name: "p", Value: "q \\\n + 1", Line: 17, Column: 1},
	}
	if d := cmp.Diff(want, assign.Keys(content)); d != "" {
		t.Error(d)
	}
}

// What is beside the file is found from a copy elsewhere too.
func TestRelocateAssign(t *testing.T) {
	for content, want := range map[string]string{
		"import os\nhere = os.path.dirname(__file__)\n":      "import os\nhere = os.path.dirname(\"/srv/a \\\"b\\\"/gunicorn.conf.py\")\n",
		"x = os.__file__\n# __file__\ny = '__file__'\nz = 1": "x = os.__file__\n# __file__\ny = '__file__'\nz = 1",
		"f(__file__,\n  __file__) # __file__\n":              "f(\"/srv/a \\\"b\\\"/gunicorn.conf.py\",\n  \"/srv/a \\\"b\\\"/gunicorn.conf.py\") # __file__\n",
		"x = 'open\n":                                        "x = 'open\n",
	} {
		if got := assign.Relocate(content, `/srv/a "b"/gunicorn.conf.py`); got != want {
			t.Errorf("%q becomes %q, want %q", content, got, want)
		}
	}
}
