package muster_test

import (
	"io/fs"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// Every relative link in a page leads to a file, and its fragment to a heading there.
func TestLinksLeadSomewhere(t *testing.T) {
	link := regexp.MustCompile(`\]\(([^)\s]+)\)`)
	anchors := map[string]map[string]bool{}
	count := 0
	for _, page := range treeFiles(t, ".md") {
		for _, m := range link.FindAllStringSubmatch(prose(t, page), -1) {
			u, err := url.Parse(m[1])
			if err != nil {
				t.Errorf("%s: %v", page, err)
				continue
			}
			if u.Scheme != "" {
				continue
			}
			count++
			target := page
			if u.Path != "" {
				target = path.Join(path.Dir(page), u.Path)
			}
			if _, err := os.Stat(target); err != nil {
				t.Errorf("%s links to %s, which is not there", page, m[1])
				continue
			}
			if u.Fragment == "" || !strings.HasSuffix(target, ".md") {
				continue
			}
			if anchors[target] == nil {
				anchors[target] = anchorsOf(t, target)
			}
			if !anchors[target][u.Fragment] {
				t.Errorf("%s links to %s, but %s has no such heading", page, m[1], target)
			}
		}
	}
	if count < 100 {
		t.Errorf("only %d links were found", count)
	}
}

// A path of docs in source, help, a script or a page names a file that is there.
func TestPathsOfDocsExist(t *testing.T) {
	mention := regexp.MustCompile(`\bdocs/[a-z0-9/._-]*[a-z0-9]`)
	for _, file := range treeFiles(t, ".md", ".go", ".h", ".golden", ".txtar", ".json", "") {
		if file == "CHANGELOG.md" { // tells of the past
			continue
		}
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range mention.FindAllString(string(text), -1) {
			if _, err := os.Stat(name); err != nil {
				t.Errorf("%s speaks of %s, which is not there", file, name)
			}
		}
	}
}

// docs/README.md lists every page of docs but the decisions.
func TestEveryPageIsListed(t *testing.T) {
	text, err := os.ReadFile("docs/README.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, page := range treeFiles(t, ".md") {
		name, ok := strings.CutPrefix(page, "docs/")
		if !ok || name == "README.md" || strings.HasPrefix(name, "decisions/0") {
			continue
		}
		if !strings.Contains(string(text), "]("+name+")") {
			t.Errorf("docs/README.md does not list %s", page)
		}
	}
}

// treeFiles are the files of the tree with one of these endings, "" being none.
func treeFiles(t *testing.T, ends ...string) []string {
	t.Helper()
	var list []string
	err := filepath.WalkDir(".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && name != "." && (strings.HasPrefix(d.Name(), ".") || d.Name() == "bin" || d.Name() == "dist"):
			return fs.SkipDir
		case !d.Type().IsRegular():
			return nil
		}
		for _, end := range ends {
			if filepath.Ext(name) == end {
				list = append(list, filepath.ToSlash(name))
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// prose is a page without its blocks and spans of code.
func prose(t *testing.T, page string) string {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	blocks := regexp.MustCompile("(?ms)^```.*?^```$")
	spans := regexp.MustCompile("`[^`\n]*`")
	return spans.ReplaceAllString(blocks.ReplaceAllString(string(text), ""), "")
}

// anchorsOf are the fragments of a page's headings, as GitHub forms them.
func anchorsOf(t *testing.T, page string) map[string]bool {
	t.Helper()
	out := map[string]bool{}
	for _, h := range headings(t, page) {
		a := regexp.MustCompile(`[^\pL\pN _-]`).ReplaceAllString(strings.ToLower(h), "")
		a = strings.ReplaceAll(a, " ", "-")
		for n, first := 1, a; out[a]; n++ {
			a = first + "-" + strconv.Itoa(n)
		}
		out[a] = true
	}
	return out
}

// headings are the texts of a page's headings, without the marks of code and links.
func headings(t *testing.T, page string) []string {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	var list []string
	code := false
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "```") {
			code = !code
		}
		if mark, h, ok := strings.Cut(line, " "); ok && !code && mark != "" && strings.Trim(mark, "#") == "" {
			h = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`).ReplaceAllString(strings.TrimSpace(h), "$1")
			list = append(list, strings.ReplaceAll(h, "`", ""))
		}
	}
	return list
}
