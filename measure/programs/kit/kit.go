// Package kit packs the built-in programs with a script that runs them on a cluster that is
// not Muster's: gcc, make and an MPI are enough there. See docs/users/platforms.md.
package kit

import (
	"archive/tar"
	"compress/gzip"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"

	"github.com/muster-hpc/muster/measure/programs"
	"github.com/muster-hpc/muster/measure/programs/apps"
)

//go:embed measure.sh
var measure string

//go:embed bind.sh
var bind string

// Folder is what everything in the archive lies below.
const Folder = "muster-kit"

// file is one of the archive; its name is below Folder.
type file struct {
	name string
	mode int64
	data []byte
}

// Write writes the archive, a tar.gz. It is the same for the same Muster, byte by byte.
func Write(w io.Writer) error {
	files, err := contents()
	if err != nil {
		return err
	}
	z := gzip.NewWriter(w)
	t := tar.NewWriter(z)
	for _, f := range files {
		if err := t.WriteHeader(&tar.Header{Name: Folder + "/" + f.name, Mode: f.mode, Size: int64(len(f.data)), Format: tar.FormatUSTAR}); err != nil {
			return err
		}
		if _, err := t.Write(f.data); err != nil {
			return err
		}
	}
	if err := t.Close(); err != nil {
		return err
	}
	return z.Close()
}

// contents are the files by name. The last one, version, has the digest over all others:
// figures of two kits are not of one thing.
func contents() ([]file, error) {
	files := []file{{"measure", 0o755, []byte(measure)}, {"bind", 0o755, []byte(bind)}}
	for folder, source := range map[string]fs.FS{"kernels": programs.Source(), "apps": apps.Source()} {
		err := fs.WalkDir(source, ".", func(name string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			data, err := fs.ReadFile(source, name)
			files = append(files, file{folder + "/" + name, 0o644, data})
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	slices.SortFunc(files, func(a, b file) int { return strings.Compare(a.name, b.name) })
	h := sha256.New()
	for _, f := range files {
		fmt.Fprintf(h, "%q %d\n", f.name, len(f.data))
		h.Write(f.data)
	}
	return append(files, file{"version", 0o644, []byte(hex.EncodeToString(h.Sum(nil)) + "\n")}), nil
}
