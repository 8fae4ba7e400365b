// Package hosttest has trees of /proc, /sys and /dev of hosts, for tests: two captured, two
// written.
package hosttest

import (
	"embed"
	"encoding/hex"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
)

//go:embed trees
var trees embed.FS

// Names of trees.
const (
	TwoSockets    = "two-sockets"    // a good host
	Nothing       = "nothing"        // without virtualization, IOMMU, virtual functions, huge pages
	EmulatedIntel = "emulated-intel" // captured: two memory nodes, two virtual functions
	EmulatedAMD   = "emulated-amd"   // captured: one memory node, two virtual functions
)

// Names lists them.
func Names() []string { return []string{TwoSockets, Nothing, EmulatedIntel, EmulatedAMD} }

// Archive is a tree as it is kept: its links in a file of that name, as "PATH -> TARGET".
func Archive(name string) ([]byte, error) { return trees.ReadFile("trees/" + name + ".txtar") }

// Tree is a tree with changes, in a directory that goes with the test: files by path, of
// which those that are "" are removed; "link TARGET" is a link, "hex ..." the bytes.
func Tree(t testing.TB, name string, changes map[string]string) fs.FS {
	t.Helper()
	b, err := Archive(name)
	if err != nil {
		t.Fatal(err)
	}
	root := t.TempDir()
	put := func(name, text string) {
		p := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
			t.Fatal(err)
		}
		if raw, ok := strings.CutPrefix(text, "hex "); ok {
			b, err := hex.DecodeString(strings.TrimSpace(raw))
			if err != nil {
				t.Fatal(err)
			}
			text = string(b)
		}
		if err := os.WriteFile(p, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	link := func(from, to string) {
		p := filepath.Join(root, from)
		if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.RemoveAll(p); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(to, p); err != nil {
			t.Fatal(err)
		}
	}
	for _, f := range txtar.Parse(b).Files {
		if f.Name != "links" {
			put(f.Name, string(f.Data))
			continue
		}
		for line := range strings.Lines(string(f.Data)) {
			from, to, _ := strings.Cut(strings.TrimSpace(line), " -> ")
			link(from, to)
		}
	}
	for name, text := range changes {
		if text == "" {
			if err := os.RemoveAll(filepath.Join(root, name)); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if to, ok := strings.CutPrefix(text, "link "); ok {
			link(name, to)
			continue
		}
		put(name, text)
	}
	return os.DirFS(root)
}
