package image

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestAccountNames(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	if err := os.Mkdir(filepath.Join(root, "etc"), 0o755); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"passwd": "root:x:0:0:root:/root:/bin/bash\nelastic:x:999:999::/:/bin/false\nno line\n:x:\n",
		"group":  "root:x:0:\nvideo:x:44:\n",
	} {
		if err := os.WriteFile(filepath.Join(root, "etc", name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	in, err := os.OpenRoot(root)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	got, err := accountNames(in)
	if err != nil || !slices.Equal(got, []string{"elastic", "root", "video"}) {
		t.Errorf("%q, %v", got, err)
	}
}

func FuzzNames(f *testing.F) {
	f.Add("root:x:0:0\n")
	f.Add("\x1b[2J:\n:\na:b")
	f.Fuzz(func(t *testing.T, text string) {
		for _, n := range namesOf(text) {
			if n == "" || len(n) > 64 || strings.ContainsAny(n, "\n:\x1b ") {
				t.Fatalf("%q", n)
			}
		}
	})
}
