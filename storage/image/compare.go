package image

import (
	debversion "github.com/knqyf263/go-deb-version"
	muster "github.com/muster-hpc/muster"
)

// PackageChange is one package of which two images have different versions. From is empty
// where only the second has it, and To where only the first does.
type PackageChange struct {
	Name         string
	Architecture string
	From, To     string
}

// Difference is how the packages of an image differ from those of another, each list by
// name.
type Difference struct {
	Newer   []PackageChange // the second has a newer version
	Older   []PackageChange // the second has an older version
	Added   []PackageChange // only the second has them
	Removed []PackageChange // only the first has them
	Same    int
}

// Compare says what changes from image a to image b, by Debian's order of versions.
func Compare(a, b *muster.Image) Difference {
	type key struct{ name, architecture string }
	had := make(map[key]string, len(a.Packages))
	for _, p := range a.Packages {
		had[key{p.Name, p.Architecture}] = p.Version
	}
	var d Difference
	for _, p := range b.Packages { // manifests have them by name
		k := key{p.Name, p.Architecture}
		was, ok := had[k]
		delete(had, k)
		c := PackageChange{Name: p.Name, Architecture: p.Architecture, From: was, To: p.Version}
		switch {
		case !ok:
			d.Added = append(d.Added, c)
		case was == p.Version:
			d.Same++
		case older(was, p.Version):
			d.Newer = append(d.Newer, c)
		default:
			d.Older = append(d.Older, c)
		}
	}
	for _, p := range a.Packages {
		if _, left := had[key{p.Name, p.Architecture}]; left {
			d.Removed = append(d.Removed, PackageChange{Name: p.Name, Architecture: p.Architecture, From: p.Version})
		}
	}
	return d
}

// older reports whether version a comes before b. What is no version of Debian's is
// compared as text: such a package was made by hand.
func older(a, b string) bool {
	x, errX := debversion.NewVersion(a)
	y, errY := debversion.NewVersion(b)
	if errX != nil || errY != nil {
		return a < b
	}
	return x.LessThan(y)
}
