package local

import (
	"os"
	"path/filepath"
	"testing"
)

// TestUncharged refuses a host whose kernel charges its memory to nobody.
func TestUncharged(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		cmdline string
		open    []string
		refused bool
	}{
		{"root=/dev/vda ro cgroup.memory=nokmem", nil, true},
		{"cgroup.memory=nosocket,nokmem quiet", nil, true},
		{"cgroup.memory=nokmem", []string{"nokmem"}, false},
		{"root=/dev/vda ro", nil, false},
	} {
		root := t.TempDir()
		if err := os.Mkdir(filepath.Join(root, "proc"), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(root, "proc/cmdline"), []byte(c.cmdline+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		err := (&Config{Slices: []Slice{{Count: 1}}, Open: c.open}).checkKernelMemory(root)
		if (err != nil) != c.refused {
			t.Errorf("%q, open %q: %v", c.cmdline, c.open, err)
		}
	}
}
