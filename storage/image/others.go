package image

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/internal/plaintext"
)

// Other is something of two images that is not the same, beside their packages.
type Other struct{ What, From, To string }

// Others says what else differs between two images: two contents with the same packages are
// not the same if a recipe, the builder or the day are others.
func Others(a, b *muster.Image) []Other {
	if a.ID == b.ID {
		return nil
	}
	list := []Other{{"content", a.ID.Short(), b.ID.Short()}}
	add := func(what, from, to string) {
		if from != to {
			list = append(list, Other{what, from, to})
		}
	}
	short := func(s string) string { return s[:min(len(s), 12)] }
	built := func(m *muster.Image) string { return m.Created.UTC().Format(time.DateTime) }
	saved := func(m *muster.Image) string {
		if m.Saved == nil {
			return ""
		}
		return fmt.Sprintf("of %s", m.Saved.Cluster)
	}
	add("built", built(a), built(b))
	add("recipe", short(a.Recipe), short(b.Recipe))
	add("builder", strconv.Itoa(a.Format), strconv.Itoa(b.Format))
	add("base", a.Base.Short(), b.Base.Short())
	add("added", strings.Join(a.Added, " "), strings.Join(b.Added, " "))
	add("saved", saved(a), saved(b))
	add("suite", a.Suite, b.Suite)
	add("kernel", a.Kernel, b.Kernel)
	add("units", strings.Join(a.NamespaceMasks, " "), strings.Join(b.NamespaceMasks, " "))
	files := func(m *muster.Image) map[string]muster.ImageFile {
		out := map[string]muster.ImageFile{}
		for _, f := range m.Files {
			out[f.Name] = f
		}
		return out
	}
	had, has := files(a), files(b)
	names := slices.Sorted(maps.Keys(had))
	for name := range has {
		if _, ok := had[name]; !ok {
			names = append(names, name)
		}
	}
	text := func(m map[string]muster.ImageFile, name string) string {
		f, ok := m[name]
		if !ok {
			return ""
		}
		return fmt.Sprintf("%s, %s", plaintext.Bytes(f.Size), short(f.SHA256))
	}
	slices.Sort(names)
	for _, name := range names {
		add(name, text(had, name), text(has, name))
	}
	return list
}
