package image

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/ulikunitz/xz"
	"golang.org/x/sync/errgroup"

	muster "github.com/muster-hpc/muster"
)

// maxModule is more than any module of a kernel, unpacked.
const maxModule = 128 << 20

// takeKernel takes the kernel and its modules out of a root, and leaves the modules there
// unpacked.
func (s *Store) takeKernel(ctx context.Context, root, out string, m *muster.Image, log io.Writer) error {
	base := ""
	if m.Base != "" {
		if b, err := s.Show(m.Base); err == nil && b.Kernel == m.Kernel {
			base = filepath.Join(s.Path(m.Base), modulesFile)
		}
	}
	if err := extractKernel(root, out, base, m); err != nil {
		return err
	}
	in, err := os.OpenRoot(root)
	if err != nil {
		return storeError("unpack the modules", err)
	}
	defer func() { _ = in.Close() }()
	some, err := unpackModules(ctx, in, m.Kernel)
	if err != nil || !some {
		return err
	}
	return s.indexModules(ctx, root, m.Kernel, log)
}

// unpackModules replaces the modules of a kernel, which Debian packs one by one, by what is
// in them. The image is packed as a whole, so that it hardly grows; and a node that loads a
// module unpacks it with zstd, which is quicker than xz. It reports whether there was any.
func unpackModules(ctx context.Context, root *os.Root, release string) (bool, error) {
	var packed []string
	err := fs.WalkDir(root.FS(), modulesOf(release), func(name string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() && strings.HasSuffix(name, ".ko.xz") {
			packed = append(packed, name)
		}
		return err
	})
	if err != nil {
		return false, storeError("look for the kernel's modules", err)
	}
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(runtime.NumCPU())
	for _, name := range packed {
		g.Go(func() error {
			if err := ctx.Err(); err != nil {
				return err
			}
			if err := unpackModule(root, name); err != nil {
				return fmt.Errorf("unpack %s: %w", path.Base(name), err)
			}
			return nil
		})
	}
	return len(packed) > 0, g.Wait()
}

func unpackModule(root *os.Root, name string) (err error) {
	b, err := readRegular(root, name)
	if err != nil {
		return err
	}
	r, err := xz.NewReader(bytes.NewReader(b))
	if err != nil {
		return err
	}
	out, err := root.OpenFile(strings.TrimSuffix(name, ".xz"), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	n, err := io.Copy(out, io.LimitReader(r, maxModule+1))
	if err == nil && n > maxModule {
		err = fmt.Errorf("it is larger than %d MiB", maxModule>>20)
	}
	if err != nil {
		return err
	}
	return root.Remove(name)
}

// indexModules makes the kernel's own tables of its modules anew: they name the files.
// The program that does it is the image's, whatever packages made of it.
func (s *Store) indexModules(ctx context.Context, root, release string, log io.Writer) error {
	return s.installing(ctx, job{log: log, confined: &confinement{
		Root: root, Argv: []string{"/usr/sbin/depmod", release}, Env: hostEnvironment(),
	}})
}

// modulesOf is where the modules of a kernel are.
func modulesOf(release string) string { return "usr/lib/modules/" + release }
