package main

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

var update = flag.Bool("update", false, "rewrite the expected output of test scripts")

// program is the real hakaru, built once for all tests here: what starts agents
// and services is the program that people run.
var program string

func TestMain(m *testing.M) {
	flag.Parse()
	// The runs that are killed wait more than they work, and measure nothing
	// that anybody reads: more of them than there are CPUs at once.
	if err := flag.Set("test.parallel", "8"); err != nil {
		panic(err) // there is such a flag
	}
	os.Exit(withProgram(m.Run))
}

func withProgram(run func() int) int {
	dir, err := os.MkdirTemp("", "hakaru-test-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	// A place that another user can reach: one test runs as nobody.
	if err := os.Chmod(dir, 0o755); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	program = filepath.Join(dir, "hakaru")
	for out, pkg := range map[string]string{program: ".", filepath.Join(dir, "misbehave"): "./testdata/misbehave"} {
		build := exec.Command("go", "build", "-o", out, pkg)
		build.Stdout, build.Stderr = os.Stdout, os.Stderr
		if err := build.Run(); err != nil {
			fmt.Fprintf(os.Stderr, "build %s: %v\n", pkg, err)
			return 1
		}
	}
	return run()
}

// isolated is the environment of one test's hakaru: its own store, registry and
// lock, so that tests and a person's runs do not see each other.
func isolated(dir string) []string {
	return []string{
		"HAKARU_STORE=" + filepath.Join(dir, "store", "hakaru.db"),
		"HAKARU_STATE=" + filepath.Join(dir, "state"),
		"HAKARU_LOCK=" + filepath.Join(dir, "lock"),
		"HAKARU_CACHE=" + filepath.Join(dir, "cache"),
		"TMPDIR=" + filepath.Join(dir, "tmp"),
		"PATH=" + filepath.Dir(program) + ":" + os.Getenv("PATH"),
	}
}

func TestScripts(t *testing.T) {
	root := filepath.Join(filepath.Dir(program), "scripts") // removed with the program
	if err := os.MkdirAll(root, 0o755); err != nil {
		t.Fatal(err)
	}
	testscript.RunT(inTurn{t}, testscript.Params{
		WorkdirRoot:   root,
		Dir:           filepath.Join("testdata", "script"),
		UpdateScripts: *update,
		Setup: func(env *testscript.Env) error {
			if err := os.Mkdir(filepath.Join(env.WorkDir, "tmp"), 0o755); err != nil && !os.IsExist(err) {
				return err
			}
			docs, err := filepath.Abs("../../docs")
			if err != nil {
				return err
			}
			env.Vars = append(env.Vars, isolated(env.WorkDir)...)
			env.Vars = append(env.Vars, "DOCS="+docs)
			return nil
		},
		Cmds:      scriptCommands(),
		Condition: scriptConditions,
	})
}

// inTurn runs scripts one after another: two that measure at once would measure
// each other.
type inTurn struct{ *testing.T }

func (inTurn) Parallel() {}

func (t inTurn) Run(name string, f func(testscript.T)) {
	t.T.Run(name, func(t *testing.T) { f(inTurn{t}) })
}

func (inTurn) Verbose() bool { return testing.Verbose() }
