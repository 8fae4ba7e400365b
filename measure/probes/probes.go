// Package probes carries the source of muster-probe, the program that measures
// machines and what is between them. It is compiled inside the images, with
// their MPI and their BLAS; see docs/decisions/0009-how-speed-is-measured.md.
package probes

import (
	"embed"
	"io/fs"
)

//go:embed Makefile src hpl
var source embed.FS

// Source is the Makefile and the directory src, and hpl: what HPL needs beside its
// own source.
func Source() fs.FS { return source }
