package volume

import (
	"context"
	"errors"
	"io"
	"os"

	"golang.org/x/sys/unix"

	"github.com/muster-hpc/muster"
)

// Bounds of a count by looking at every file.
const (
	maxFiles = 2_000_000
	maxDepth = 128
)

// Usage asks the file system where it counts, and looks at every file where it
// does not.
func (h *HostPath) Usage(ctx context.Context, v muster.Volume) (bytes int64, part bool, err error) {
	at, err := h.path(v.ID)
	if err != nil {
		return 0, false, err
	}
	if used, ok := h.counted(at); ok {
		return used, false, nil
	}
	top, err := openDir(unix.AT_FDCWD, at)
	if errors.Is(err, unix.ENOENT) {
		return 0, false, muster.Errorf(muster.ENotFound, "volume %s has no directory", v.Name).Because(muster.ReasonVolumeGone)
	}
	if err != nil {
		return 0, false, err
	}
	defer top.Close()
	c := &counter{ctx: ctx, linked: map[[2]uint64]bool{}, left: maxFiles}
	err = c.count(top, 0)
	return c.bytes, c.part, err
}

// counter adds up what files take on disk. Its users may change the tree
// meanwhile: what is not there any more does not count.
type counter struct {
	ctx    context.Context
	bytes  int64
	left   int
	part   bool
	linked map[[2]uint64]bool
}

func (c *counter) count(d *os.File, depth int) error {
	for {
		if err := c.ctx.Err(); err != nil {
			return err
		}
		list, err := d.Readdirnames(1024)
		if len(list) == 0 {
			if errors.Is(err, unix.ENOENT) || err == nil || errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
		for _, n := range list {
			if c.left--; c.left < 0 {
				c.part = true
				return nil
			}
			var st unix.Stat_t
			if unix.Fstatat(int(d.Fd()), n, &st, unix.AT_SYMLINK_NOFOLLOW) != nil {
				continue
			}
			c.add(&st)
			if st.Mode&unix.S_IFMT != unix.S_IFDIR {
				continue
			}
			if depth == maxDepth {
				c.part = true
				continue
			}
			sub, err := openDir(int(d.Fd()), n)
			if err != nil {
				continue
			}
			err = c.count(sub, depth+1)
			_ = sub.Close()
			if err != nil {
				return err
			}
		}
	}
}

// add counts a file once, however many names it has.
func (c *counter) add(st *unix.Stat_t) {
	if st.Nlink > 1 && st.Mode&unix.S_IFMT != unix.S_IFDIR {
		key := [2]uint64{st.Dev, st.Ino}
		if c.linked[key] {
			return
		}
		if len(c.linked) < 100_000 {
			c.linked[key] = true
		}
	}
	c.bytes += st.Blocks * 512
}
