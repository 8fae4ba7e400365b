package configure

import (
	"errors"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// disk is a file system of blocks of 4 KiB.
func disk(blocks, free, files, inodes uint64) unix.Statfs_t {
	return unix.Statfs_t{Bsize: 4096, Blocks: blocks, Bfree: free, Bavail: free, Files: files, Ffree: inodes}
}

func TestRoom(t *testing.T) {
	t.Parallel()
	const gib, mib = 1 << 18, 1 << 8 // in blocks
	for name, c := range map[string]struct {
		looks []unix.Statfs_t
		want  []bool
	}{
		"plenty":                  {[]unix.Statfs_t{disk(gib, gib/2, 1e6, 1e6)}, []bool{false}},
		"full":                    {[]unix.Statfs_t{disk(gib, 0, 1e6, 1e6)}, []bool{true}},
		"one block is left":       {[]unix.Statfs_t{disk(gib, 1, 1e6, 1e6)}, []bool{true}},
		"just too little":         {[]unix.Statfs_t{disk(gib, 8*mib-1, 1e6, 1e6)}, []bool{true}},
		"just enough":             {[]unix.Statfs_t{disk(gib, 8*mib, 1e6, 1e6)}, []bool{false}},
		"small, and empty":        {[]unix.Statfs_t{disk(4*mib, 4*mib, 1e3, 1e3)}, []bool{false}},
		"small, a 64th is left":   {[]unix.Statfs_t{disk(4*mib, 16, 1e3, 1e3)}, []bool{false}},
		"small, less is left":     {[]unix.Statfs_t{disk(4*mib, 15, 1e3, 1e3)}, []bool{true}},
		"tiny":                    {[]unix.Statfs_t{disk(16, 1, 0, 0)}, []bool{false}},
		"tiny and full":           {[]unix.Statfs_t{disk(16, 0, 0, 0)}, []bool{true}},
		"no inodes":               {[]unix.Statfs_t{disk(gib, gib, 1e6, 0)}, []bool{true}},
		"few inodes":              {[]unix.Statfs_t{disk(gib, gib, 1e6, 63)}, []bool{true}},
		"enough inodes":           {[]unix.Statfs_t{disk(gib, gib, 1e6, 64)}, []bool{false}},
		"few inodes of few":       {[]unix.Statfs_t{disk(gib, gib, 640, 9)}, []bool{true}},
		"enough inodes of few":    {[]unix.Statfs_t{disk(gib, gib, 640, 10)}, []bool{false}},
		"inodes are not counted":  {[]unix.Statfs_t{disk(gib, gib, 0, 0)}, []bool{false}},
		"no size":                 {[]unix.Statfs_t{disk(0, 0, 0, 0)}, []bool{false}},
		"stays low until twice":   {[]unix.Statfs_t{disk(gib, 0, 0, 0), disk(gib, 8*mib, 0, 0), disk(gib, 16*mib-1, 0, 0), disk(gib, 16*mib, 0, 0), disk(gib, 8*mib, 0, 0)}, []bool{true, true, true, false, false}},
		"so do its inodes":        {[]unix.Statfs_t{disk(gib, gib, 1e6, 0), disk(gib, gib, 1e6, 127), disk(gib, gib, 1e6, 128)}, []bool{true, true, false}},
		"tiny: over when emptied": {[]unix.Statfs_t{disk(16, 0, 0, 0), disk(16, 16, 0, 0)}, []bool{true, false}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var r room
			for i, st := range c.looks {
				if got := r.lacks("/", &st); got != c.want[i] {
					t.Errorf("look %d: low is %v", i, got)
				}
			}
		})
	}
}

// A directory says for itself whether it is full, and one that is not there says nothing.
func TestDiskHasRoom(t *testing.T) {
	t.Parallel()
	c, _, root := node(t)
	state := map[string]unix.Statfs_t{"/": disk(1<<18, 1<<17, 0, 0), "/tmp": disk(1<<18, 1, 0, 0), "/dev/shm": disk(1<<18, 1<<17, 1e6, 3)}
	c.statfs = func(path string, st *unix.Statfs_t) error {
		for dir, is := range state {
			if path == filepath.Join(root, dir) {
				*st = is
				return nil
			}
		}
		return errors.New("not there")
	}
	if err := c.diskHasRoom(t.Context()); err == nil || err.Error() != "hardly any space is left on /tmp, /dev/shm" {
		t.Errorf("%v", err)
	}
	state["/tmp"], state["/dev/shm"] = state["/"], state["/"]
	if err := c.diskHasRoom(t.Context()); err != nil {
		t.Error(err)
	}
}
