// Package images carries the recipes that come with Muster.
package images

import (
	"embed"
	"io/fs"
)

//go:embed *.yaml
var recipes embed.FS

// Recipes are the recipe files, NAME.yaml each.
func Recipes() fs.FS { return recipes }
