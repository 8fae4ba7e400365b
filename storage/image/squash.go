package image

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strconv"

	muster "github.com/muster-hpc/muster"
)

// defaultLevel of zstd: beyond it a build takes much longer for a few percent
// (docs/operators/images.md has the figures). Reading costs the same at every level.
const defaultLevel = 3

// squash packs root into one file. Equal trees give equal bytes.
func (s *Store) squash(ctx context.Context, root, to string, level int, log io.Writer) error {
	if level == 0 {
		level = defaultLevel
	}
	return s.run(ctx, job{log: log, argv: []string{
		s.tools.mksquashfs, root, to, "-noappend", "-no-progress", "-quiet", "-no-exports",
		"-comp", "zstd", "-Xcompression-level", strconv.Itoa(level),
		"-mkfs-time", strconv.FormatInt(epoch().Unix(), 10),
		"-processors", strconv.Itoa(runtime.NumCPU()),
	}})
}

// digests describes the files of a finished image's directory.
func digests(ctx context.Context, dir string) ([]muster.ImageFile, error) {
	roles := []struct {
		role muster.FileRole
		name string
	}{{muster.FileRoot, rootFile}, {muster.FileKernel, "vmlinuz"}, {muster.FileInitrd, "initrd.img"}, {muster.FileModules, modulesFile}}
	var out []muster.ImageFile
	for _, r := range roles {
		f, err := os.Open(filepath.Join(dir, r.name))
		if os.IsNotExist(err) && r.role != muster.FileRoot {
			continue
		}
		if err != nil {
			return nil, storeError("read the new image", err)
		}
		sha, err := sum(ctx, f)
		info, statErr := f.Stat()
		_ = f.Close() // only read
		if err != nil || statErr != nil {
			return nil, fmt.Errorf("digest %s: %w", r.name, firstOf(err, statErr))
		}
		out = append(out, muster.ImageFile{Role: r.role, Name: r.name, Size: info.Size(), SHA256: sha})
	}
	return out, nil
}

func firstOf(errs ...error) error {
	for _, e := range errs {
		if e != nil {
			return e
		}
	}
	return nil
}

func hostArchitecture() string { return runtime.GOARCH }
