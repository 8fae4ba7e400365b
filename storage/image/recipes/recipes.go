// Package recipes carries the recipes that come with Muster, and the sources of
// the programs that they compile.
package recipes

import (
	"embed"
	"io/fs"
	"strings"

	"github.com/muster-hpc/muster/measure/probes"
	"github.com/muster-hpc/muster/measure/programs"
	"github.com/muster-hpc/muster/measure/programs/apps"
	"github.com/muster-hpc/muster/measure/programs/mpitime"
)

//go:embed *.yaml
var recipes embed.FS

// Recipes are the recipe files, NAME.yaml each, and beside them the directories
// probes, kernels, apps and mpitime with what lies in the packages of the probe, of the kernels
// of the NAS Parallel Benchmarks, of the applications and of the library that measures MPI programs.
func Recipes() fs.FS {
	return shelf{recipes: recipes, below: map[string]fs.FS{"probes": probes.Source(), "kernels": programs.Source(), "apps": apps.Source(), "mpitime": mpitime.Source()}}
}

// shelf lays trees below names of another.
type shelf struct {
	recipes fs.FS
	below   map[string]fs.FS
}

// Open implements fs.FS.
func (s shelf) Open(name string) (fs.File, error) {
	first, rest, deeper := strings.Cut(name, "/")
	tree, ok := s.below[first]
	switch {
	case ok && !deeper:
		return tree.Open(".")
	case ok && fs.ValidPath(name):
		return tree.Open(rest)
	}
	return s.recipes.Open(name)
}
