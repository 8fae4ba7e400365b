package diskbench

import (
	"os"
	"path/filepath"
	"testing"
)

// A disk of the site is taken where one is mounted, and never one that others share.
func TestScratch(t *testing.T) {
	t.Parallel()
	const root = "22 1 0:20 / / rw shared:1 - overlay overlay rw\n"
	for name, c := range map[string]struct {
		mounts, path, kind string
		memory             bool
	}{
		"memory": {root + "23 22 0:21 / /tmp rw - tmpfs tmpfs rw\n", "/tmp", "tmpfs", true},
		"root":   {root, "/tmp", "overlay", false},
		"disk":   {root + "23 22 259:1 / /scratch rw - ext4 /dev/nvme0n1 rw\n", "/scratch", "ext4", false},
		"shared": {root + "23 22 0:40 / /scratch rw - nfs4 files:/scratch rw\n", "/tmp", "overlay", false},
		"over":   {root + "23 22 0:21 / /tmp rw - ext4 /dev/sda rw\n24 23 0:21 / /tmp rw - tmpfs tmpfs rw\n25 22 0:3 / /tmpfoo rw - xfs /dev/sdb rw\n", "/tmp", "tmpfs", true},
		"odd":    {"no mount\n- - -\n22 1 0:20 / / rw -\n", "/tmp", "", false},
	} {
		dir := t.TempDir()
		for _, d := range []string{"tmp", "scratch", "proc/self"} {
			if err := os.MkdirAll(filepath.Join(dir, d), 0o755); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.WriteFile(filepath.Join(dir, "proc/self/mountinfo"), []byte(c.mounts), 0o644); err != nil {
			t.Fatal(err)
		}
		if s := Root(dir).Scratch(); s.Path != c.path || s.Type != c.kind || s.Memory != c.memory {
			t.Errorf("%s: %+v", name, s)
		}
	}
	if s := Root(t.TempDir()).Scratch(); s.Path != "" {
		t.Errorf("%+v", s)
	}
}

// A file without a name is gone with who has it open.
func TestNameless(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	f, err := nameless(dir, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteString("x"); err != nil {
		t.Error(err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("it has a name: %v, %v", left, err)
	}
	if _, err := nameless(filepath.Join(dir, "none"), 0); err == nil {
		t.Error("in a folder that is not there")
	}
}
