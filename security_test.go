package muster_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestThreatsNameTheirTests keeps docs/operators/security.md true: each test that it names for a
// threat is there, in the package that it names.
func TestThreatsNameTheirTests(t *testing.T) {
	t.Parallel()
	doc, err := os.ReadFile("docs/operators/security.md")
	if err != nil {
		t.Fatal(err)
	}
	word := regexp.MustCompile("`([a-z/]+)`|((?:Test|Fuzz)[A-Z][A-Za-z]*)")
	within := func(dir, name string) bool {
		files, _ := filepath.Glob(filepath.Join(dir, "*_test.go"))
		for _, f := range files {
			if b, err := os.ReadFile(f); err == nil && strings.Contains(string(b), "\nfunc "+name+"(") {
				return true
			}
		}
		return false
	}
	named := 0
	for line := range strings.Lines(string(doc)) {
		cells := strings.Split(strings.TrimSpace(line), " | ")
		if !strings.HasPrefix(line, "|") || len(cells) < 3 {
			continue
		}
		in := ""
		for _, m := range word.FindAllStringSubmatch(cells[len(cells)-1], -1) {
			if m[1] != "" {
				in = m[1]
				continue
			}
			if named++; !within(in, m[2]) {
				t.Errorf("docs/operators/security.md names %s of package %q, which is not there", m[2], in)
			}
		}
	}
	if named < 40 {
		t.Errorf("only %d tests are named: is the table read?", named)
	}
}
