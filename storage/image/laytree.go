package image

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	muster "github.com/muster-hpc/muster"
)

// What a node's root file system may have at most.
const (
	mostEntries = 4_000_000
	mostTree    = 256 << 30 // bytes in files
)

// layBounds say what of a tree is taken.
type layBounds struct {
	Keep    []string // patterns of path.Match: what is there stays, and what comes is left out
	Entries int
	Bytes   int64
	Room    func() error // whether there is room for more; may be nil
}

// layer makes a tree equal to that of a tar.
type layer struct {
	in      *os.Root
	bounds  layBounds
	exact   map[string]bool // of Keep, without wildcards
	wild    []string
	seen    map[string]bool // entries of the tar; true: a directory
	changes TreeChanges
	bytes   int64
}

// layTree makes the tree at in what a tar says, which comes from a stranger: names lead
// nowhere else, directories come before what is in them, and nothing is a device.
func layTree(ctx context.Context, in *os.Root, tree io.Reader, b layBounds) (TreeChanges, error) {
	l := &layer{in: in, bounds: b, exact: map[string]bool{}, seen: map[string]bool{".": true}}
	for _, p := range b.Keep {
		if strings.ContainsAny(p, `*?[\`) {
			l.wild = append(l.wild, p)
		} else {
			l.exact[p] = true
		}
	}
	r := tar.NewReader(tree)
	for n := 0; ; n++ {
		if ctx.Err() != nil {
			return l.changes, context.Cause(ctx)
		}
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return l.changes, badTree("what the node sent ended early, or is no tar: %v", err)
		}
		if n > b.Entries {
			return l.changes, badTree("it has more than %d files", b.Entries)
		}
		if n%1000 == 0 && b.Room != nil {
			if err := b.Room(); err != nil {
				return l.changes, err
			}
		}
		if err := l.entry(h, r); err != nil {
			return l.changes, err
		}
	}
	return l.changes, l.removeOthers()
}

// kept reports whether a path is, or is below, one that stays what it is.
func (l *layer) kept(name string) bool {
	for i := 0; i <= len(name); i++ {
		if i < len(name) && name[i] != '/' {
			continue
		}
		part := name[:i]
		if l.exact[part] || slices.ContainsFunc(l.wild, func(p string) bool { ok, _ := path.Match(p, part); return ok }) {
			return true
		}
	}
	return false
}

func (l *layer) entry(h *tar.Header, content io.Reader) error {
	name := strings.TrimSuffix(strings.TrimPrefix(h.Name, "./"), "/")
	if name == "" || name == "." {
		return nil
	}
	if !fs.ValidPath(name) || len(name) > unix.PathMax || h.Size < 0 {
		return badTree("a file has the name %q", clip(name))
	}
	if l.bytes += h.Size; l.bytes > l.bounds.Bytes {
		return badTree("its files have more than %d GiB", l.bounds.Bytes>>30)
	}
	if l.kept(name) {
		return nil
	}
	if !l.seen[path.Dir(name)] {
		return badTree("%q comes before the directory that it is in", clip(name))
	}
	if _, twice := l.seen[name]; twice {
		return badTree("%q comes twice", clip(name))
	}
	st, err := l.in.Lstat(name)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return storeError("lay a node's root", err)
	}
	if err != nil {
		st = nil
	}
	l.seen[name] = h.Typeflag == tar.TypeDir
	switch h.Typeflag {
	case tar.TypeDir:
		err = l.directory(name, h, st)
	case tar.TypeReg:
		err = l.file(name, h, st, content)
	case tar.TypeSymlink:
		err = l.symlink(name, h, st)
	case tar.TypeLink:
		err = l.link(name, h, st)
	case tar.TypeFifo:
		err = l.fifo(name, h, st)
	default:
		delete(l.seen, name) // a device: the image has what its base has
	}
	var known *muster.Error
	switch {
	case err == nil || errors.As(err, &known):
		return err
	case errors.Is(err, tar.ErrHeader), errors.Is(err, io.ErrUnexpectedEOF):
		return badTree("what the node sent ended early, or is no tar: %v", err)
	}
	return storeError("lay a node's root", err)
}

// clear makes room for another kind of file.
func (l *layer) clear(name string, st fs.FileInfo) error {
	if st == nil {
		return nil
	}
	return l.in.RemoveAll(name)
}

func (l *layer) directory(name string, h *tar.Header, st fs.FileInfo) error {
	if st == nil || !st.IsDir() {
		if err := l.clear(name, st); err != nil {
			return err
		}
		if err := l.in.Mkdir(name, 0o700); err != nil {
			return err
		}
		l.changes.Written++
		st = nil
	}
	return l.attributes(name, h, st)
}

func (l *layer) symlink(name string, h *tar.Header, st fs.FileInfo) error {
	if st != nil && st.Mode().Type() == fs.ModeSymlink {
		if to, err := l.in.Readlink(name); err == nil && to == h.Linkname {
			return nil
		}
	}
	if err := l.clear(name, st); err != nil {
		return err
	}
	l.changes.Written++
	if err := l.in.Symlink(h.Linkname, name); err != nil {
		return err
	}
	return l.in.Lchown(name, h.Uid, h.Gid)
}

func (l *layer) link(name string, h *tar.Header, st fs.FileInfo) error {
	first := strings.TrimPrefix(h.Linkname, "./")
	if dir, ok := l.seen[first]; !ok || dir {
		if l.kept(first) { // it stays the base's, and this name is of it, too
			delete(l.seen, name)
			return nil
		}
		return badTree("%q is another name of %q, which did not come", clip(name), clip(first))
	}
	was, err := l.in.Lstat(first)
	if err != nil {
		return err
	}
	if st != nil && os.SameFile(was, st) {
		return nil
	}
	if err := l.clear(name, st); err != nil {
		return err
	}
	l.changes.Written++
	return l.in.Link(first, name)
}

func (l *layer) fifo(name string, h *tar.Header, st fs.FileInfo) error {
	if st == nil || st.Mode().Type() != fs.ModeNamedPipe {
		if err := l.clear(name, st); err != nil {
			return err
		}
		dir, err := l.in.Open(path.Dir(name))
		if err != nil {
			return err
		}
		err = unix.Mkfifoat(int(dir.Fd()), path.Base(name), 0o600)
		if err = errors.Join(err, dir.Close()); err != nil {
			return err
		}
		l.changes.Written++
		st = nil
	}
	if st != nil {
		return nil
	}
	return errors.Join(l.in.Lchown(name, h.Uid, h.Gid), l.in.Chmod(name, h.FileInfo().Mode()&^fs.ModeType))
}

// file writes a file unless it has that content already.
func (l *layer) file(name string, h *tar.Header, st fs.FileInfo, content io.Reader) error {
	if st != nil && st.Mode().IsRegular() && st.Size() == h.Size {
		same, err := l.sameContent(name, st, content)
		if err != nil {
			return err
		}
		if same < 0 {
			return l.attributes(name, h, st)
		}
		// Other content from there on: what is equal comes from the old file.
		return l.write(name, h, st, same, content)
	}
	return l.write(name, h, st, 0, content)
}

// sameContent compares a file with what comes; negative: they are equal, or else how many
// bytes at the beginning are. Of content it has read no more than the block in which they
// differ, which it puts back.
func (l *layer) sameContent(name string, st fs.FileInfo, content io.Reader) (int64, error) {
	f, err := openRegular(l.in, name, os.O_RDONLY)
	if err != nil {
		return 0, err
	}
	defer func() { _ = f.Close() }() // only read
	const block = 64 << 10
	ours, theirs := make([]byte, block), make([]byte, block)
	for at := int64(0); at < st.Size(); at += block {
		n := int(min(block, st.Size()-at))
		if _, err := io.ReadFull(content, theirs[:n]); err != nil {
			return 0, err
		}
		if _, err := io.ReadFull(f, ours[:n]); err != nil || !bytes.Equal(ours[:n], theirs[:n]) {
			if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, io.EOF) {
				return 0, err
			}
			return at, l.start(name, f, at, theirs[:n])
		}
	}
	return -1, nil
}

// beside is the name under which a file is written before it takes its place.
const beside = ".muster-save"

// start begins a file anew that is equal to the old one up to at, and goes on with more.
func (l *layer) start(name string, old *os.File, at int64, more []byte) error {
	out, err := l.in.OpenFile(beside, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, io.NewSectionReader(old, 0, at))
	if err == nil {
		_, err = out.Write(more)
	}
	return errors.Join(err, out.Close())
}

// write puts a file in its place, of which the first block that differs is there already
// where same says so.
func (l *layer) write(name string, h *tar.Header, st fs.FileInfo, same int64, content io.Reader) error {
	begun := st != nil && st.Mode().IsRegular() && st.Size() == h.Size
	flag := os.O_CREATE | os.O_WRONLY | os.O_TRUNC
	if begun {
		flag = os.O_WRONLY | os.O_APPEND
	}
	out, err := l.in.OpenFile(beside, flag, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, content)
	if err = errors.Join(err, out.Close()); err != nil {
		return err
	}
	if st != nil && !st.Mode().IsRegular() {
		if err := l.clear(name, st); err != nil {
			return err
		}
	}
	if err := l.in.Rename(beside, name); err != nil {
		return err
	}
	l.changes.Written++
	l.changes.Bytes += h.Size
	return l.attributes(name, h, nil)
}

// attributes gives a file or directory its owner, mode, attributes and time, unless st has
// them already.
func (l *layer) attributes(name string, h *tar.Header, st fs.FileInfo) error {
	mode := h.FileInfo().Mode() &^ fs.ModeType
	owner := func() bool {
		sys, ok := st.Sys().(*syscall.Stat_t)
		return ok && int(sys.Uid) == h.Uid && int(sys.Gid) == h.Gid
	}
	xattrs := attributesOf(h)
	if st != nil && st.Mode()&^fs.ModeType == mode && owner() && len(xattrs) == 0 && (st.IsDir() || sameTime(st.ModTime(), h.ModTime)) {
		return nil
	}
	f, err := l.in.OpenFile(name, os.O_RDONLY|unix.O_NONBLOCK|unix.O_NOFOLLOW, 0)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	if st != nil && st.Mode()&^fs.ModeType == mode && owner() && sameXattrs(f, xattrs) && (st.IsDir() || sameTime(st.ModTime(), h.ModTime)) {
		return nil
	}
	if st != nil {
		l.changes.Written++
	}
	// A new owner takes away what the mode and the capabilities give.
	if err := f.Chown(h.Uid, h.Gid); err != nil {
		return err
	}
	if err := f.Chmod(mode); err != nil {
		return err
	}
	for key, value := range xattrs {
		if err := unix.Fsetxattr(int(f.Fd()), key, []byte(value), 0); err != nil && !errors.Is(err, unix.ENOTSUP) {
			return err
		}
	}
	if h.Typeflag == tar.TypeDir {
		return nil // what is put into it gives it another time
	}
	return l.in.Chtimes(name, h.ModTime, h.ModTime)
}

// sameTime compares times as archives keep them.
func sameTime(a, b time.Time) bool { return a.Unix() == b.Unix() }

// attributesOf are the extended attributes that an image may have.
func attributesOf(h *tar.Header) map[string]string {
	out := map[string]string{}
	for key, value := range h.PAXRecords {
		name, ok := strings.CutPrefix(key, "SCHILY.xattr.")
		if ok && (name == "security.capability" || strings.HasPrefix(name, "system.posix_acl_")) {
			out[name] = value
		}
	}
	return out
}

func sameXattrs(f *os.File, want map[string]string) bool {
	for key, value := range want {
		b := make([]byte, len(value)+1)
		n, err := unix.Fgetxattr(int(f.Fd()), key, b)
		if err != nil || string(b[:n]) != value {
			return false
		}
	}
	return true
}

// removeOthers removes what the tar did not have.
func (l *layer) removeOthers() error {
	var dirs []string
	err := fs.WalkDir(l.in.FS(), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if name == "." {
			return nil
		}
		if l.kept(name) {
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		if _, ok := l.seen[name]; ok {
			return nil
		}
		if d.IsDir() {
			dirs = append(dirs, name) // something below may stay
			return nil
		}
		l.changes.Removed++
		return l.in.Remove(name)
	})
	if err != nil {
		return storeError("lay a node's root", err)
	}
	for _, name := range slices.Backward(dirs) {
		if err := l.in.Remove(name); err == nil {
			l.changes.Removed++
		} else if !errors.Is(err, unix.ENOTEMPTY) && !errors.Is(err, unix.EEXIST) {
			return storeError("lay a node's root", err)
		}
	}
	return nil
}
