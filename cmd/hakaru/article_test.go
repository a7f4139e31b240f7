package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// The blocks of an article are parts of the reports of its stored runs, as the
// program draws them today: "<!-- run: ID answer -->" is all before the doubts,
// "<!-- run: ID Some heading -->" the paragraph under it. -update writes them.
func TestArticles(t *testing.T) {
	stores, err := filepath.Glob("../../docs/articles/*.db")
	if err != nil || len(stores) == 0 {
		t.Fatalf("no stored runs of articles: %v", err)
	}
	for _, store := range stores {
		t.Run(filepath.Base(store), func(t *testing.T) {
			s := newSite(t, "")
			copied := filepath.Join(s.dir, "article.db") // reading needs a file that can be written
			content, err := os.ReadFile(store)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(copied, content, 0o600); err != nil {
				t.Fatal(err)
			}
			article := strings.TrimSuffix(store, ".db") + ".md"
			text, err := os.ReadFile(article)
			if err != nil {
				t.Fatal(err)
			}
			reports := map[string]string{}
			blocks := 0
			fresh := articleBlock.ReplaceAllStringFunc(string(text), func(block string) string {
				blocks++
				m := articleBlock.FindStringSubmatch(block)
				run, part := m[1], m[2]
				if reports[run] == "" {
					cmd := exec.Command(program, "--store", copied, "report", run)
					cmd.Env = s.env
					out, err := cmd.Output()
					if err != nil {
						t.Fatalf("report of run %s: %v", run, err)
					}
					reports[run] = string(out)
				}
				want := partOf(reports[run], part)
				if want == "" {
					t.Errorf("the report of run %s has no part %q", run, part)
				}
				return "<!-- run: " + run + " " + part + " -->\n```\n" + want + "\n```"
			})
			if blocks == 0 {
				t.Errorf("%s shows none of its runs", article)
			}
			if fresh == string(text) {
				return
			}
			if !*update {
				t.Errorf("%s does not show what its runs say (rewrite with -update, and look)", article)
			} else if err := os.WriteFile(article, []byte(fresh), 0o644); err != nil {
				t.Fatal(err)
			}
		})
	}
}

var articleBlock = regexp.MustCompile("(?s)<!-- run: (\\w+) ([^>]+) -->\n```\n(.*?)```")

// partOf is a part of a report on a terminal.
func partOf(report, part string) string {
	if part == "answer" {
		answer, _, _ := strings.Cut(report, "\n\nDoubt\n")
		return strings.TrimSpace(answer)
	}
	for paragraph := range strings.SplitSeq(report, "\n\n") {
		if strings.HasPrefix(paragraph, part+"\n") {
			return strings.TrimSpace(paragraph)
		}
	}
	return ""
}
