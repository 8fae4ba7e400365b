package diskbench

import (
	"bufio"
	"errors"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/muster-hpc/muster"
)

// Program is what measures.
const Program = "fio"

// Root is a node's tree of files; "" is this computer's.
type Root string

func (r Root) at(path string) string { return filepath.Join("/", string(r), path) }

// Scratch is where users' programs put files for a while on this node: /scratch, where
// a site has mounted a local file system there, else /tmp.
func (r Root) Scratch() muster.Scratch {
	for _, path := range []string{"/scratch", "/tmp"} {
		kind, mountedOn := r.fileSystem(path)
		if st, err := os.Stat(r.at(path)); err != nil || !st.IsDir() || path != "/tmp" && (path != mountedOn || remote(kind)) {
			continue
		}
		return muster.Scratch{Path: path, Type: kind, Memory: kind == "tmpfs" || kind == "ramfs", Direct: direct(r.at(path))}
	}
	return muster.Scratch{}
}

// remote reports whether files of a file system lie elsewhere, where other nodes use
// the same disks.
func remote(kind string) bool {
	for _, prefix := range []string{"nfs", "cifs", "smb", "lustre", "beegfs", "ceph", "gpfs", "glusterfs", "9p", "virtiofs", "fuse"} {
		if strings.HasPrefix(kind, prefix) {
			return true
		}
	}
	return false
}

// fileSystem is the kind of the one that a path lies on, and where that is mounted.
func (r Root) fileSystem(path string) (kind, mountedOn string) {
	f, err := os.Open(r.at("/proc/self/mountinfo"))
	if err != nil {
		return "", ""
	}
	defer func() { _ = f.Close() }()
	in := bufio.NewScanner(f)
	in.Buffer(nil, 1<<20)
	for in.Scan() {
		where, what, ok := strings.Cut(in.Text(), " - ")
		w, k := strings.Fields(where), strings.Fields(what)
		if !ok || len(w) < 5 || len(k) < 1 {
			continue
		}
		// Of those on the way to it the deepest counts, of two on one place the later.
		if on := w[4]; within(path, on) && len(on) >= len(mountedOn) {
			kind, mountedOn = k[0], on
		}
	}
	return kind, mountedOn
}

func within(path, dir string) bool {
	return dir == "/" || path == dir || strings.HasPrefix(path, dir+"/")
}

// direct reports whether files there can be read and written past the page cache.
func direct(dir string) bool {
	f, err := nameless(dir, unix.O_DIRECT)
	if err != nil {
		return false
	}
	_ = f.Close()
	return true
}

// nameless makes a file without a name, so that nothing of it is left when the last
// who has it open is gone, however that ends.
func nameless(dir string, flags int) (*os.File, error) {
	fd, err := unix.Open(dir, unix.O_TMPFILE|unix.O_RDWR|unix.O_CLOEXEC|flags, 0o600)
	if err == nil {
		return os.NewFile(uintptr(fd), filepath.Join(dir, "(no name)")), nil
	}
	if !errors.Is(err, unix.EOPNOTSUPP) && !errors.Is(err, unix.EISDIR) {
		return nil, &os.PathError{Op: "make a file in", Path: dir, Err: err}
	}
	// A file system that cannot: it has a name for a moment.
	f, err := os.CreateTemp(dir, ".muster-disk-")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.Remove(f.Name()) }()
	if flags == 0 {
		return f, nil
	}
	defer func() { _ = f.Close() }()
	return os.OpenFile(f.Name(), os.O_RDWR|flags, 0)
}
