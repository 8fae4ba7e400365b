package local

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

func TestUnpack(t *testing.T) {
	t.Parallel()
	for _, tool := range []string{"mksquashfs", "unsquashfs"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skip(err)
		}
	}
	dir := t.TempDir()
	src, image := filepath.Join(dir, "src"), filepath.Join(dir, "image")
	if err := putFile(filepath.Join(src, "a/b"), "hello", 0o640); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(t.Context(), "mksquashfs", src, image, "-quiet", "-no-progress").CombinedOutput(); err != nil {
		t.Fatal(err, string(out))
	}
	var at string
	for range 2 {
		var err error
		if at, err = unpack(t.Context(), dir, image); err != nil {
			t.Fatal(err)
		}
	}
	if b, err := os.ReadFile(filepath.Join(at, "a/b")); err != nil || string(b) != "hello" {
		t.Error(string(b), err)
	}
	if err := dropTrees(dir, map[string]bool{image: true}); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(at); err != nil {
		t.Error("dropped while in use")
	}
	if err := dropTrees(dir, nil); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(at); err == nil {
		t.Error("still there")
	}
	if _, err := unpack(t.Context(), dir, filepath.Join(src, "a/b")); err == nil {
		t.Error("unpacked a text file")
	}
}
