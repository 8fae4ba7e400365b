package muster_test

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"
)

// Every target that a page names is in the Makefile, and every script that the Makefile or a
// page names is there and can be run.
func TestMakeTargetsAndScriptsExist(t *testing.T) {
	text, err := os.ReadFile("Makefile")
	if err != nil {
		t.Fatal(err)
	}
	have := map[string]bool{}
	for _, m := range regexp.MustCompile(`(?m)^([a-z][a-z-]*):`).FindAllStringSubmatch(string(text), -1) {
		have[m[1]] = true
	}
	scripts := map[string]string{}
	script := regexp.MustCompile(`\bscripts/[a-z][a-z.-]*[a-z]\b`)
	for _, name := range script.FindAllString(string(text), -1) {
		scripts[name] = "Makefile"
	}
	named := 0
	for _, page := range treeFiles(t, ".md") {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile("(?m)(?:`|^|&& )make ([a-z][a-z-]*)").FindAllStringSubmatch(string(text), -1) {
			if named++; !have[m[1]] {
				t.Errorf("%s names make %s, which is not in the Makefile", page, m[1])
			}
		}
		for _, name := range script.FindAllString(string(text), -1) {
			scripts[name] = page
		}
	}
	for name, page := range scripts {
		info, err := os.Stat(name)
		if err != nil || !info.IsDir() && filepath.Dir(name) == "scripts" && info.Mode()&0o111 == 0 {
			t.Errorf("%s names %s, which is not there or no program", page, name)
		}
	}
	if named < 15 {
		t.Errorf("only %d targets are named", named)
	}
}
