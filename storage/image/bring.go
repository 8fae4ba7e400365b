package image

import (
	"errors"
	"fmt"
	"io/fs"
	"path"

	muster "github.com/muster-hpc/muster"
)

// bring puts the files that a recipe has beside it in the place of what names
// them. As with recipes, the first shelf that has them counts.
func (b *Book) bring(rec *Recipe) []muster.Problem {
	var c checker
	var out []File
	for i, f := range rec.Files {
		if f.From == "" {
			out = append(out, f)
			continue
		}
		files, err := b.files(f)
		c.that(err == nil, fmt.Sprintf("files[%d].from", i), "", "%v", err)
		out = append(out, files...)
	}
	c.that(len(out) <= maxFiles, "files", "", "has %d entries with what they bring; %d is the limit", len(out), maxFiles)
	if len(c.problems) == 0 {
		c.files(out)
	}
	rec.Files = out
	return c.problems
}

func (b *Book) files(f File) ([]File, error) {
	for _, s := range b.shelves {
		info, err := fs.Lstat(s, f.From)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		if !info.IsDir() {
			return brought(s, f, f.From, f.Path)
		}
		below, err := fs.Sub(s, f.From)
		if err != nil {
			return nil, err
		}
		var out []File
		return out, fs.WalkDir(below, ".", func(name string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			if len(out) > maxFiles {
				return fmt.Errorf("%q has more than %d files", clip(f.From), maxFiles)
			}
			one, err := brought(below, f, name, path.Join(f.Path, name))
			out = append(out, one...)
			return err
		})
	}
	return nil, fmt.Errorf("%q is not beside the recipe", clip(f.From))
}

// brought is one file with its content. Links and devices are refused: a recipe
// brings what lies beside it, and nothing else.
func brought(s fs.FS, f File, name, to string) ([]File, error) {
	info, err := fs.Lstat(s, name)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%q is not a file", clip(name))
	}
	if info.Size() > maxFileBytes {
		return nil, fmt.Errorf("%q has %d bytes; %d is the limit", clip(name), info.Size(), maxFileBytes)
	}
	data, err := fs.ReadFile(s, name)
	if err != nil {
		return nil, err
	}
	return []File{{Path: to, Mode: f.Mode, Content: string(data), Early: f.Early}}, nil
}
