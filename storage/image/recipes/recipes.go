// Package recipes carries the recipes that come with Muster, and the source of
// the probe that they compile.
package recipes

import (
	"embed"
	"io/fs"
	"strings"

	"github.com/muster-hpc/muster/measure/probes"
)

//go:embed *.yaml
var recipes embed.FS

// Recipes are the recipe files, NAME.yaml each, and beside them the directory
// probes with what lies in the package of that name.
func Recipes() fs.FS { return shelf{recipes: recipes, probes: probes.Source()} }

// shelf lays one tree below a name of another.
type shelf struct{ recipes, probes fs.FS }

// Open implements fs.FS.
func (s shelf) Open(name string) (fs.File, error) {
	if name == "probes" {
		return s.probes.Open(".")
	}
	if below, ok := strings.CutPrefix(name, "probes/"); ok && fs.ValidPath(name) {
		return s.probes.Open(below)
	}
	return s.recipes.Open(name)
}
