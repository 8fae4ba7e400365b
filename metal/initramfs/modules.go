package initramfs

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/klauspost/compress/zstd"
	"github.com/ulikunitz/xz"

	"github.com/muster-hpc/muster"
)

// maxModule is more than any module, uncompressed.
const maxModule = 128 << 20

// Modules are the files of one kernel's modules, by their path below
// lib/modules/RELEASE.
type Modules struct {
	Release string
	files   map[string]func() ([]byte, error)
}

// FromTar reads the modules of an image (muster.FileModules): names are
// usr/lib/modules/RELEASE/... The reader is used until the archive is built.
func FromTar(r io.ReaderAt, size int64) (*Modules, error) {
	m := &Modules{files: map[string]func() ([]byte, error){}}
	s := io.NewSectionReader(r, 0, size)
	t := tar.NewReader(s)
	for {
		h, err := t.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, muster.Errorf(muster.ECorrupt, "the archive of the kernel's modules cannot be read").
				WithHint("build the image again").Wrap(err)
		}
		if h.Typeflag != tar.TypeReg {
			continue
		}
		// The tar reader seeks: it stands where the file's bytes begin.
		at, err := s.Seek(0, io.SeekCurrent)
		if err != nil {
			return nil, err
		}
		n := h.Size
		if n > maxModule || at+n > size {
			return nil, muster.Errorf(muster.ECorrupt, "%s of the kernel's modules is cut off or too large", path.Base(h.Name))
		}
		read := func() ([]byte, error) {
			b := make([]byte, n)
			_, err := r.ReadAt(b, at)
			return b, err
		}
		if err := m.add(path.Clean(h.Name), read); err != nil {
			return nil, err
		}
	}
	return m, m.check()
}

// FromFS reads modules from a tree that holds lib/modules/RELEASE or
// usr/lib/modules/RELEASE.
func FromFS(tree fs.FS) (*Modules, error) {
	m := &Modules{files: map[string]func() ([]byte, error){}}
	for _, dir := range []string{"usr/lib/modules", "lib/modules"} {
		err := fs.WalkDir(tree, dir, func(name string, d fs.DirEntry, err error) error {
			if err != nil || !d.Type().IsRegular() {
				return err
			}
			return m.add(name, func() ([]byte, error) { return fs.ReadFile(tree, name) })
		})
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		if len(m.files) > 0 {
			break
		}
	}
	return m, m.check()
}

func (m *Modules) add(name string, read func() ([]byte, error)) error {
	name = strings.TrimPrefix(strings.TrimPrefix(name, "usr/"), "lib/modules/")
	release, rest, ok := strings.Cut(name, "/")
	if !ok || rest == "" {
		return nil
	}
	if m.Release != "" && m.Release != release {
		return muster.Errorf(muster.EInvalid, "there are modules of two kernels, %s and %s", m.Release, release).
			WithHint("an image has one kernel")
	}
	m.Release = release
	m.files[rest] = read
	return nil
}

func (m *Modules) check() error {
	if m.Release == "" {
		return muster.Errorf(muster.EInvalid, "there are no modules of a kernel").WithHint("build the image with kernel: true")
	}
	return nil
}

// names lists the modules, in order.
func (m *Modules) names() []string {
	var out []string
	for name := range m.files {
		if moduleName(name) != "" {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}

// moduleName is the name of the module in a file; "" where the file is none.
func moduleName(file string) string {
	base, _, ok := strings.Cut(path.Base(file), ".ko")
	rest := strings.TrimPrefix(path.Base(file), base)
	if !ok || base == "" || (rest != ".ko" && rest != ".ko.xz" && rest != ".ko.zst" && rest != ".ko.gz") {
		return ""
	}
	return canonical(base)
}

// text reads a file of names; one that is not there is empty.
func (m *Modules) text(name string) (string, error) {
	read, ok := m.files[name]
	if !ok {
		return "", nil
	}
	b, err := read()
	return string(b), err
}

// module reads a module and undoes its compression.
func (m *Modules) module(name string) ([]byte, error) {
	b, err := m.files[name]()
	if err == nil {
		b, err = unpack(name, b)
	}
	if err != nil {
		return nil, muster.Errorf(muster.ECorrupt, "the kernel's module %s cannot be read", path.Base(name)).
			WithHint("build the image again").Wrap(err)
	}
	return b, nil
}

func unpack(name string, b []byte) ([]byte, error) {
	var r io.Reader = bytes.NewReader(b)
	switch path.Ext(name) {
	case ".ko":
		return b, nil
	case ".xz":
		x, err := xz.NewReader(r)
		if err != nil {
			return nil, err
		}
		r = x
	case ".zst":
		z, err := zstd.NewReader(r, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(maxModule))
		if err != nil {
			return nil, err
		}
		defer z.Close()
		r = z
	default:
		return nil, fmt.Errorf("compressed as %s, which is not known", path.Ext(name))
	}
	out, err := io.ReadAll(io.LimitReader(r, maxModule+1))
	if err == nil && len(out) > maxModule {
		err = errors.New("too large")
	}
	return out, err
}
