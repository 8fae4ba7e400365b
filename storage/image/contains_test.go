package image

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	muster "github.com/muster-hpc/muster"
)

// What an image has is read once, and of one that is not there nothing is known.
func TestContains(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := open(t)
	if _, known := s.Contains(muster.ImageID("sha256:"+strings.Repeat("0", 64)), "bin/a"); known {
		t.Error("an image that is not there has something")
	}
	// A program that lists as unsquashfs does, and can be asked once.
	tool := filepath.Join(dir, "unsquashfs")
	if err := os.WriteFile(tool, []byte("#!/bin/sh\nfor last; do :; done\n[ \"$last\" = bin/a ] && echo /bin/a || :\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	s.tools.unsquashfs = tool
	id := put(t, s, "hpc", "root").ID
	for path, want := range map[string]bool{"bin/a": true, "bin/b": false} {
		if there, known := s.Contains(id, path); !known || there != want {
			t.Errorf("%s: %v, %v", path, there, known)
		}
	}
	s.tools.unsquashfs = filepath.Join(dir, "none")
	if there, known := s.Contains(id, "bin/a"); !known || !there {
		t.Error("it is not remembered")
	}
	if _, known := s.Contains(id, "bin/c"); known {
		t.Error("without unsquashfs something is known")
	}
}
