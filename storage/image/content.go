package image

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"runtime"
	"slices"
	"unicode/utf8"

	muster "github.com/muster-hpc/muster"
)

// archive is where a distribution offers one of its archives to everybody, by
// the rule that Debian's hosts are named by.
func archive(distribution, name string) string {
	return fmt.Sprintf("http://deb.%s.org/%s", distribution, name)
}

func defaultMirror() string         { return archive("debian", "debian") }
func defaultSecurityMirror() string { return archive("debian", "debian-security") }

// settle puts a resolved recipe in normal form: defaults filled in, sets sorted
// and without repetition. Recipes that mean the same are then the same.
func settle(rec *Recipe) {
	fill := func(s *string, v string) {
		if *s == "" {
			*s = v
		}
	}
	fill(&rec.Base.Distribution, "debian")
	fill(&rec.Base.Mirror, defaultMirror())
	fill(&rec.Base.SecurityMirror, defaultSecurityMirror())
	fill(&rec.Requires.Architecture, runtime.GOARCH) // Go and Debian agree on amd64 and arm64
	if len(rec.Base.Components) == 0 {
		rec.Base.Components = []string{"main"}
	}
	for _, set := range []*[]string{&rec.Base.Components, &rec.Packages, &rec.Keep, &rec.Mask, &rec.Exclude, &rec.Trim, &rec.NSMasks, &rec.Requires.Devices} {
		*set = sortedSet(*set)
	}
	slices.SortFunc(rec.Files, func(a, b File) int { return cmp.Compare(a.Path, b.Path) })
	slices.SortFunc(rec.Accounts, func(a, b Account) int { return cmp.Compare(a.Name, b.Name) })
}

func sortedSet(in []string) []string {
	out := slices.Clone(in)
	slices.Sort(out)
	out = slices.Compact(out)
	if out == nil {
		out = []string{} // nil and empty must hash alike
	}
	return out
}

// builder is raised when the same recipe makes another image than before: those that are
// there stay of use, and the next build makes new ones.
const builder = 3

// Hash is the SHA-256 of the normalized recipe in hexadecimal, and of who builds it. What
// changes no byte of an image (summary, mirror, comments, order of packages) does not
// change it.
func (rec *Recipe) Hash() string {
	type plain Recipe // without methods
	hashed := plain(*rec)
	hashed.Files = slices.Clone(rec.Files)
	for i, f := range hashed.Files {
		// JSON has one character for all bytes that are no text.
		if !utf8.ValidString(f.Content) {
			hashed.Files[i].Content, hashed.Files[i].SHA256 = "", digest([]byte(f.Content))
		}
	}
	data, err := json.Marshal(struct {
		Builder int `json:"Builder"` // these keys are part of what the hash is taken of
		*plain
	}{builder, &hashed})
	if err != nil {
		panic(fmt.Sprintf("image: a recipe is plain data: %v", err))
	}
	return digest(data)
}

// contentID names what comes out: the format, what went in, and the packages
// that were resolved. base is set for derived images only.
func contentID(recipe string, base muster.ImageID, added []string, arch string, packages []muster.ImagePackage) muster.ImageID {
	data, err := json.Marshal(struct {
		Format   int                   `json:"Format"` // as above
		Recipe   string                `json:"Recipe"`
		Base     muster.ImageID        `json:"Base"`
		Added    []string              `json:"Added"`
		Arch     string                `json:"Arch"`
		Packages []muster.ImagePackage `json:"Packages"`
	}{Format, recipe, base, sortedSet(added), arch, packages})
	if err != nil {
		panic(fmt.Sprintf("image: a package list is plain data: %v", err))
	}
	return muster.ImageID("sha256:" + digest(data))
}

// ContentID is the ID that follows from what a manifest says.
func ContentID(m *muster.Image) muster.ImageID {
	if m.Saved != nil && m.Base == "" {
		return savedID(m)
	}
	return contentID(m.Recipe, m.Base, m.Added, m.Architecture, m.Packages)
}

// savedID names an image that was made of a node's root: nothing else says what is in it.
func savedID(m *muster.Image) muster.ImageID {
	root, _ := m.File(muster.FileRoot)
	data, err := json.Marshal(struct {
		Format  int
		Project string
		Base    muster.ImageID
		Root    string
	}{Format, m.Saved.Project, m.Saved.Base, root.SHA256})
	if err != nil {
		panic(fmt.Sprintf("image: an origin is plain data: %v", err))
	}
	return muster.ImageID("sha256:" + digest(data))
}

func digest(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// comparePackages orders packages as manifests have them.
func comparePackages(a, b muster.ImagePackage) int {
	return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Architecture, b.Architecture), cmp.Compare(a.Version, b.Version))
}
