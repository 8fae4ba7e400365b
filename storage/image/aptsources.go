package image

import (
	"io/fs"
	"os"
	"path"
	"strings"
)

// aptSources is where an unpacked base says that packages come from.
type aptSources struct {
	list    []byte   // its sources.list
	mirrors []string // texts that name its mirrors
}

// readSources reads them. In a derived base what a package brought may lie beside the
// sources.list: only that counts there.
func readSources(root string, derived bool) (aptSources, error) {
	in, err := os.OpenRoot(root)
	if err != nil {
		return aptSources{}, storeError("read the mirrors of the base", err)
	}
	defer func() { _ = in.Close() }() // only read
	list, err := readRegular(in, "etc/apt/sources.list")
	if err != nil {
		return aptSources{}, storeError("read the mirrors of the base", err)
	}
	src := aptSources{list: list, mirrors: []string{string(list)}}
	if derived {
		return src, nil
	}
	entries, err := fs.ReadDir(in.FS(), "etc/apt/sources.list.d")
	if err != nil {
		return src, nil //nolint:nilerr // a base need not have the directory
	}
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), ".list") || strings.HasSuffix(e.Name(), ".sources") {
			if data, err := readRegular(in, path.Join("etc/apt/sources.list.d", e.Name())); err == nil {
				src.mirrors = append(src.mirrors, string(data))
			}
		}
	}
	return src, nil
}
