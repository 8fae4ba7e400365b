package image

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
)

// mostNames bounds how many names an image has, and mostNameBytes each of the files
// in which they stand.
const (
	mostNames     = 4096
	mostNameBytes = 1 << 20
)

// accountNames are the names of the users and groups of a root file system, sorted:
// nobody can have one of them on its nodes.
func accountNames(in *os.Root) ([]string, error) {
	var all []string
	for _, file := range []string{"etc/passwd", "etc/group"} {
		f, err := openRegular(in, file, os.O_RDONLY)
		if errors.Is(err, fs.ErrNotExist) {
			continue // a system that has none
		}
		if err != nil {
			return nil, storeError("read the accounts of the new root file system", err)
		}
		text, err := io.ReadAll(io.LimitReader(f, mostNameBytes))
		_ = f.Close()
		if err != nil {
			return nil, storeError("read the accounts of the new root file system", err)
		}
		all = append(all, namesOf(string(text))...)
	}
	slices.Sort(all)
	all = slices.Compact(all)
	return all[:min(len(all), mostNames)], nil
}

// namesOf reads the first fields of passwd(5) or group(5).
func namesOf(text string) []string {
	var out []string
	for line := range strings.Lines(text) {
		name, _, ok := strings.Cut(line, ":")
		if ok && name != "" && len(name) <= 64 && !strings.ContainsFunc(name, func(r rune) bool { return r <= ' ' || r > '~' }) {
			out = append(out, name)
		}
	}
	return out
}
