// Package programs carries the source of the kernels of the NAS Parallel Benchmarks:
// muster-ep, muster-is, muster-cg, muster-mg and muster-ft, written from their
// specification. They are compiled inside images, with their MPI; see
// docs/internals/programs.md.
package programs

import (
	"embed"
	"io/fs"
)

//go:embed src
var source embed.FS

// Source is the directory src, with its Makefile.
func Source() fs.FS { return source }
