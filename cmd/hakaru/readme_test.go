package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"mvdan.cc/sh/v3/shell"

	"hakaru/internal/experiment"
)

// readmeBlocks are the fenced blocks of the README by the name in the comment
// above each.
func readmeBlocks(t *testing.T) map[string]string {
	t.Helper()
	text, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := map[string]string{}
	for _, m := range regexp.MustCompile("(?s)<!-- block: (\\w+) -->\n```\\w*\n(.*?)```").FindAllSubmatch(text, -1) {
		blocks[string(m[1])] = string(m[2])
	}
	if fences := bytes.Count(text, []byte("```")); fences != 2*len(blocks) {
		t.Errorf("%d fences in the README and %d named blocks: every block has a name and a test", fences, len(blocks))
	}
	return blocks
}

// runsBlock runs every command of a console block in dir.
func runsBlock(t *testing.T, s site, dir, block string) {
	t.Helper()
	commands := 0
	for line := range strings.SplitSeq(block, "\n") {
		command, ok := strings.CutPrefix(line, "$ ")
		if !ok {
			continue
		}
		words, err := shell.Fields(command, nil)
		if err != nil {
			t.Fatal(err)
		}
		if words[0] == "hakaru" {
			words[0] = program
		}
		cmd := exec.Command(words[0], words[1:]...)
		cmd.Dir, cmd.Env = dir, s.env
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v\n%s", command, err, out)
		}
		if words[0] == program && len(bytes.TrimSpace(out)) == 0 {
			t.Errorf("%s printed nothing", command)
		}
		commands++
	}
	if commands == 0 {
		t.Errorf("no command in\n%s", block)
	}
}

func TestReadme(t *testing.T) {
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	blocks := readmeBlocks(t)
	s := newSite(t, "")

	t.Run("demo", func(t *testing.T) {
		// The figures are those of a run that was kept; that it is what the
		// program prints today is what is tested, and that make demo runs the
		// same experiment.
		out, err := exec.Command("make", "-n", "-C", root, "demo").Output()
		if err != nil || !bytes.Contains(out, []byte("run examples/fibonacci/hakaru.yaml")) {
			t.Errorf("make demo: %v\n%s", err, out)
		}
		report := string(s.output("report", "last", "--store", demoStore(t, s)))
		first, _, _ := strings.Cut(report, "\nLimits\n")
		if got, want := strings.TrimSpace(blocks["demo"]), strings.TrimSpace(first); got != want {
			if *update {
				writeDemo(t, want)
				return
			}
			t.Errorf("the README shows\n%s\n\nand the report begins\n%s", got, want)
		}
	})
	t.Run("install", func(t *testing.T) { runsBlock(t, s, root, blocks["install"]) })
	t.Run("flags", func(t *testing.T) { runsBlock(t, s, s.dir, blocks["flags"]) })
	t.Run("file", func(t *testing.T) {
		_, err := experiment.Parse("hakaru.yaml", []byte(blocks["file"]), experiment.Options{
			Dir: filepath.Join(root, "examples/fibonacci"), Read: os.ReadFile,
		})
		if err != nil {
			t.Error(err)
		}
	})
	t.Run("load", func(t *testing.T) { loadsAsShown(t, s, blocks["load"]) })
	t.Run("commands", func(t *testing.T) { runsBlock(t, s, root, blocks["commands"]) })
}

// demoStore copies the stored run of the demo: reading needs a file that can be
// written.
func demoStore(t *testing.T, s site) string {
	t.Helper()
	content, err := os.ReadFile("testdata/demo.db")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(s.dir, "demo.db")
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func writeDemo(t *testing.T, text string) {
	t.Helper()
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	block := regexp.MustCompile("(?s)(<!-- block: demo -->\n```\n).*?```")
	readme = block.ReplaceAll(readme, []byte("${1}"+strings.ReplaceAll(text, "$", "$$")+"\n```"))
	if err := os.WriteFile("../../README.md", readme, 0o644); err != nil {
		t.Fatal(err)
	}
}
