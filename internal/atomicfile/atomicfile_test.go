package atomicfile

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"testing"
)

func TestReplace(t *testing.T) {
	t.Parallel()
	for name, replace := range map[string]func(string, []byte, fs.FileMode) error{"durable": Replace, "volatile": ReplaceVolatile} {
		path := filepath.Join(t.TempDir(), "a")
		for _, mode := range []fs.FileMode{0o600, 0o400, 0o644} { // also over a file that nobody may write
			content := []byte(mode.String())
			if err := replace(path, content, mode); err != nil {
				t.Fatal(name, err)
			}
			b, err := os.ReadFile(path)
			if err != nil || !bytes.Equal(b, content) {
				t.Errorf("%s: %q %v", name, b, err)
			}
			if st, err := os.Stat(path); err != nil || st.Mode() != mode {
				t.Errorf("%s: mode %v, %v", name, st.Mode(), err)
			}
		}
		if err := replace(filepath.Join(t.TempDir(), "none", "a"), nil, 0o600); err == nil {
			t.Errorf("%s: a directory that is not there was written to", name)
		}
	}
}

// Readers and writers at once see whole files, and nothing is left beside them.
func TestWhole(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "a")
	content := func(i int) []byte { return bytes.Repeat([]byte{byte('a' + i)}, 100_000) }
	if err := Replace(path, content(0), 0o600); err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for i := range 4 {
		all.Go(func() {
			for range 50 {
				if err := ReplaceVolatile(path, content(i), 0o600); err != nil {
					t.Error(err)
				}
				b, err := os.ReadFile(path)
				if err != nil || len(b) != 100_000 || bytes.Count(b, b[:1]) != len(b) {
					t.Errorf("%d bytes, %v", len(b), err)
				}
			}
		})
	}
	all.Wait()
	if list, err := os.ReadDir(dir); err != nil || len(list) != 1 {
		t.Errorf("%v %v", list, err)
	}
}

// What cannot be put in its place leaves the old file and nothing else.
func TestFails(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "a")
	if err := os.MkdirAll(filepath.Join(path, "full"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := Replace(path, []byte("x"), 0o600); err == nil {
		t.Error("a directory was replaced")
	}
	if list, err := os.ReadDir(dir); err != nil || len(list) != 1 {
		t.Errorf("%v %v", list, err)
	}
}
