// Package roottar writes the root file system of a node as a tar: what is mounted on it,
// devices and sockets are left out.
package roottar

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// xattr is the prefix of keys under which tar keeps extended attributes.
const xattr = "SCHILY.xattr."

// Write writes all of the file system at root, names relative to it, in the order of names.
// Files that change meanwhile are written as they were when they were read; those that go
// are left out.
func Write(ctx context.Context, root string, to io.Writer) error {
	w := &writer{tar: tar.NewWriter(to), root: root, links: map[inode]string{}}
	var err error
	if w.mount, err = mountOf(root); err != nil {
		return fmt.Errorf("find the mount of %s: %w", root, err)
	}
	err = filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err != nil {
			if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
				return nil
			}
			return err
		}
		return w.add(name, d)
	})
	if err != nil {
		return err
	}
	return w.tar.Close()
}

type inode struct{ device, number uint64 }

type writer struct {
	tar   *tar.Writer
	root  string
	mount uint64
	links map[inode]string // the first name of what has several
}

// mountOf is the number of the mount that a path is on, which is its own where something is
// mounted there.
func mountOf(path string) (uint64, error) {
	var st unix.Statx_t
	err := unix.Statx(unix.AT_FDCWD, path, unix.AT_SYMLINK_NOFOLLOW|unix.AT_NO_AUTOMOUNT, unix.STATX_MNT_ID, &st)
	if err == nil && st.Mask&unix.STATX_MNT_ID == 0 {
		err = errors.New("the kernel does not number mounts: Linux 5.8 does")
	}
	return st.Mnt_id, err
}

// add writes one entry.
func (w *writer) add(path string, d fs.DirEntry) error {
	name, err := filepath.Rel(w.root, path)
	if err != nil {
		return err
	}
	if name != "." {
		if on, err := mountOf(path); err != nil || on != w.mount {
			return w.mountPoint(name, path, d, err)
		}
	}
	info, err := d.Info()
	if err != nil {
		return skipGone(err)
	}
	h, err := w.header(name, path, info)
	if h == nil || err != nil {
		return skipGone(err)
	}
	if h.Typeflag != tar.TypeReg {
		return w.tar.WriteHeader(h)
	}
	return w.file(h, path)
}

// mountPoint writes the directory on which something is mounted, and leaves out what is.
func (w *writer) mountPoint(name, path string, d fs.DirEntry, err error) error {
	if err != nil || !d.IsDir() {
		return skipGone(err)
	}
	if err := w.tar.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: name + "/", Mode: 0o755, Format: tar.FormatPAX}); err != nil {
		return err
	}
	return filepath.SkipDir
}

// header describes an entry; nil: it is not written.
func (w *writer) header(name, path string, info fs.FileInfo) (*tar.Header, error) {
	target := ""
	switch t := info.Mode().Type(); t {
	case 0, fs.ModeDir, fs.ModeNamedPipe:
	case fs.ModeSymlink:
		var err error
		if target, err = os.Readlink(path); err != nil {
			return nil, err
		}
	default: // a device or a socket: a node makes its own
		return nil, nil
	}
	h, err := tar.FileInfoHeader(info, target)
	if err != nil {
		return nil, err
	}
	h.Name, h.Uname, h.Gname, h.Format = name, "", "", tar.FormatPAX
	if info.IsDir() {
		h.Name += "/"
	}
	if st, ok := info.Sys().(*syscall.Stat_t); ok && !info.IsDir() && st.Nlink > 1 {
		key := inode{st.Dev, st.Ino}
		if first, ok := w.links[key]; ok {
			h.Typeflag, h.Linkname, h.Size = tar.TypeLink, first, 0
			return h, nil
		}
		w.links[key] = name
	}
	h.PAXRecords, err = attributes(path)
	return h, err
}

// attributes are the extended attributes of a file that mean the same on another machine.
func attributes(path string) (map[string]string, error) {
	n, err := unix.Llistxattr(path, nil)
	if err != nil || n == 0 {
		return nil, nil //nolint:nilerr // the file system has none
	}
	list := make([]byte, n)
	if n, err = unix.Llistxattr(path, list); err != nil {
		return nil, nil //nolint:nilerr // they have changed: it is what it was a moment before
	}
	out := map[string]string{}
	for _, key := range slices.Sorted(strings.SplitSeq(strings.TrimRight(string(list[:n]), "\x00"), "\x00")) {
		if key != "security.capability" && !strings.HasPrefix(key, "user.") && !strings.HasPrefix(key, "system.posix_acl_") || strings.HasPrefix(key, "user.overlay.") {
			continue
		}
		value := make([]byte, 64<<10)
		n, err := unix.Lgetxattr(path, key, value)
		if err == nil {
			out[xattr+key] = string(value[:n])
		}
	}
	return out, nil
}

// file writes a file of the size that its header says: one that shrank meanwhile ends in
// zeros, as other programs for archives have it.
func (w *writer) file(h *tar.Header, path string) error {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return skipGone(err)
	}
	defer func() { _ = f.Close() }() // only read
	if err := w.tar.WriteHeader(h); err != nil {
		return err
	}
	n, err := io.Copy(w.tar, io.LimitReader(f, h.Size))
	if err != nil {
		return err
	}
	_, err = io.CopyN(w.tar, zeros{}, h.Size-n)
	return err
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

// skipGone leaves out what went away while the tree was read.
func skipGone(err error) error {
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
		return nil
	}
	return err
}
