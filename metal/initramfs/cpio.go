package initramfs

import (
	"fmt"
	"io"
	"path"
	"slices"
	"strings"
)

// entry is one file, directory, link or device of the archive.
type entry struct {
	name         string // without a slash at its start
	mode         uint32 // with the type
	data         []byte
	major, minor uint32 // of a device
}

// Types of a mode, from stat(2).
const (
	typeDir    = 0o040000
	typeChar   = 0o020000
	typeFile   = 0o100000
	typeLink   = 0o120000
	archiveEnd = "TRAILER!!!"
)

// writeArchive writes entries as a newc cpio archive, the form that kernels read:
// Documentation/driver-api/early-userspace/buffer-format.rst. Directories are added where
// they are missing; owners are root, times zero, the order that of the names.
func writeArchive(w io.Writer, entries []entry) error {
	all := map[string]entry{}
	for _, e := range entries {
		if _, twice := all[e.name]; twice {
			return fmt.Errorf("%s is in the archive twice", e.name)
		}
		all[e.name] = e
	}
	for _, e := range entries {
		for dir := path.Dir(e.name); dir != "."; dir = path.Dir(dir) {
			if _, ok := all[dir]; !ok {
				all[dir] = entry{name: dir, mode: typeDir | 0o755}
			}
		}
	}
	names := make([]string, 0, len(all))
	for name := range all {
		names = append(names, name)
	}
	slices.Sort(names) // a directory sorts before what is in it
	c := &cpio{w: w}
	for i, name := range names {
		c.put(i+1, all[name])
	}
	c.put(0, entry{name: archiveEnd})
	c.pad(512)
	return c.err
}

// cpio writes entries one after the other, and remembers the first error.
type cpio struct {
	w   io.Writer
	at  int64
	err error
}

func (c *cpio) put(inode int, e entry) {
	links := 1
	if e.mode&0o170000 == typeDir {
		links = 2
	}
	// inode, mode, uid, gid, links, time, size, device, its own device, length of
	// the name with its zero byte, checksum (not of this form).
	c.write([]byte(fmt.Sprintf("070701%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X",
		inode, e.mode, 0, 0, links, 0, len(e.data), 0, 0, e.major, e.minor, len(e.name)+1, 0)))
	c.write([]byte(e.name + "\x00"))
	c.pad(4)
	c.write(e.data)
	c.pad(4)
}

func (c *cpio) write(b []byte) {
	if c.err == nil {
		var n int
		n, c.err = c.w.Write(b)
		c.at += int64(n)
	}
}

func (c *cpio) pad(to int64) { c.write([]byte(strings.Repeat("\x00", int((to-c.at%to)%to)))) }
